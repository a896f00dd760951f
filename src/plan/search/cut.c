/* SPDX-License-Identifier: MIT
 *
 * At a moment, every value that is read later either is alive or is made again later, and then the
 * same holds for the values that making it reads. With a price per byte, the cheapest choice is a
 * minimum cut: the source's side has the needed values and the tasks that run again; the edge from
 * a task to the sink has its seconds as capacity, the edge from a value to the task that makes it
 * the price of its bytes. (The variables are those of Jain et al., "Checkmate", 2020, at one
 * moment; PyTorch's partitioner of forward and backward graphs cuts likewise, by bytes alone.) Each
 * price gives a point of the lower convex hull of bytes and seconds.
 */
#include "plan/search/cut.h"

#include "plan/search/flow.h"

#include <math.h>
#include <string.h>

/* Units of flow for a second, at most: fewer where capacities would overflow. UNBOUNDED: a capacity
 * above every sum of others. */
static const double UNITS = 1e9;
static const int64_t UNBOUNDED = INT64_MAX / 4;

/* The dearest price of a byte is the seconds of all forward tasks over this. */
enum { DEAREST = 4096 };

struct cutting {
    const struct qn_problem *problem;
    double early;
    double total;      /* seconds of all forward tasks */
    double units;      /* units of flow for a second */
    bool *later, *now; /* by value: read after the moment; read at it, thus alive in any case */
    struct qn_flow flow;
    struct qn_cut *cuts;
    bool *final; /* by cut: the hull has no cut between it and the next */
    int count;
};

enum { SOURCE, SINK, FIRST };

static int task_node(int task)
{
    return FIRST + task;
}

static int value_node(const struct cutting *c, int value)
{
    return FIRST + c->problem->n_forward + value;
}

/* Whether the value may be alive at the moment or not, by choice. */
static bool is_made(const struct cutting *c, int value)
{
    return c->problem->producer[value] >= 0 && !c->now[value] &&
           c->problem->values[value].life == QN_LIFE_MICRO;
}

int64_t qn_cut_weight(const struct qn_problem *problem, int value, double early)
{
    const double first = 1 - (double)problem->producer[value] / (problem->n_forward + 1);
    return (int64_t)((double)problem->values[value].bytes * (1 + early * first));
}

/* --- one cut --- */

static void add_task(struct cutting *c, int task)
{
    const struct qn_task *t = &c->problem->tasks[task];
    qn_flow_add(&c->flow, task_node(task), SINK, (int64_t)(t->seconds * c->units) + 1);
    for (int i = 0; i < t->n_reads; i++)
        if (is_made(c, t->reads[i].value))
            qn_flow_add(&c->flow, task_node(task), value_node(c, t->reads[i].value), UNBOUNDED);
}

static void add_value(struct cutting *c, int value, double seconds_per_byte)
{
    const int maker = c->problem->producer[value];
    const double bytes = (double)qn_cut_weight(c->problem, value, c->early);
    const double price = fmin(seconds_per_byte * bytes * c->units, (double)UNBOUNDED / 2);
    qn_flow_add(&c->flow, value_node(c, value),
                qn_task_repeats(&c->problem->tasks[maker]) ? task_node(maker) : SINK,
                (int64_t)price);
    if (c->later[value])
        qn_flow_add(&c->flow, SOURCE, value_node(c, value), UNBOUNDED);
}

static void read_cut(struct cutting *c, struct qn_cut *cut)
{
    cut->bytes = 0;
    cut->seconds = 0;
    for (int t = 0; t < c->problem->n_forward; t++) {
        cut->drop[t] =
            qn_task_repeats(&c->problem->tasks[t]) && qn_flow_reaches(&c->flow, task_node(t));
        cut->seconds += cut->drop[t] ? c->problem->tasks[t].seconds : 0;
    }
    for (int v = 0; v < c->problem->n_values; v++)
        if (is_made(c, v) && qn_flow_reaches(&c->flow, value_node(c, v)) &&
            !cut->drop[c->problem->producer[v]])
            cut->bytes += qn_cut_weight(c->problem, v, c->early);
}

static bool make_cut(struct cutting *c, double seconds_per_byte, struct qn_arena *arena,
                     struct qn_cut *cut)
{
    const double price = fmin(seconds_per_byte, c->total / DEAREST);
    cut->drop = qn_arena_new(arena, bool, (size_t)c->problem->n_tasks + 1);
    if (!cut->drop)
        return false;
    qn_flow_clear(&c->flow);
    for (int t = 0; t < c->problem->n_forward; t++)
        if (qn_task_repeats(&c->problem->tasks[t]))
            add_task(c, t);
    for (int v = 0; v < c->problem->n_values; v++)
        if (is_made(c, v))
            add_value(c, v, price);
    qn_flow_run(&c->flow);
    read_cut(c, cut);
    return true;
}

/* --- the hull --- */

/* Number of the cut before the widest gap in which there may be another cut; -1: none. */
static int widest(const struct cutting *c)
{
    int best = -1;
    int64_t most = 0;
    for (int i = 0; i + 1 < c->count; i++) {
        const int64_t gap = c->cuts[i].bytes - c->cuts[i + 1].bytes;
        if (!c->final[i] && gap > most) {
            most = gap;
            best = i;
        }
    }
    return best;
}

static bool split(struct cutting *c, int i, struct qn_arena *arena)
{
    const struct qn_cut *a = &c->cuts[i], *b = &c->cuts[i + 1];
    const double price = (b->seconds - a->seconds) / (double)(a->bytes - b->bytes);
    struct qn_cut cut;
    if (!make_cut(c, price, arena, &cut))
        return false;
    c->final[i] = cut.bytes >= a->bytes || cut.bytes <= b->bytes;
    if (c->final[i])
        return true;
    const size_t rest = (size_t)(c->count - i - 1);
    memmove(&c->cuts[i + 2], &c->cuts[i + 1], rest * sizeof *c->cuts);
    memmove(&c->final[i + 2], &c->final[i + 1], rest * sizeof *c->final);
    c->cuts[i + 1] = cut;
    c->final[i + 1] = false;
    c->count++;
    return true;
}

/* --- setting up --- */

static void find_reads(struct cutting *c, int moment)
{
    const struct qn_problem *p = c->problem;
    for (int t = moment; t < qn_tasks_required(p); t++)
        for (int i = 0; i < p->tasks[t].n_reads; i++)
            (t > moment ? c->later : c->now)[p->tasks[t].reads[i].value] = true;
}

/* Sets c->total and c->units: the largest capacity, of the largest value at the dearest price, must
 * be at most UNBOUNDED / 2. */
static void measure(struct cutting *c)
{
    const struct qn_problem *p = c->problem;
    int64_t largest = DEAREST;
    for (int t = 0; t < p->n_forward; t++)
        c->total += p->tasks[t].seconds;
    for (int v = 0; v < p->n_values; v++)
        if (is_made(c, v) && qn_cut_weight(p, v, c->early) > largest)
            largest = qn_cut_weight(p, v, c->early);
    c->units = fmin(UNITS, (double)UNBOUNDED / 2 * DEAREST / (c->total * (double)largest));
}

static bool open(struct cutting *c, int moment, struct qn_arena *arena)
{
    const size_t values = (size_t)c->problem->n_values + 1;
    const int nodes = FIRST + c->problem->n_forward + c->problem->n_values;
    int pipes = 2 * c->problem->n_values;
    for (int t = 0; t < c->problem->n_forward; t++)
        pipes += 1 + c->problem->tasks[t].n_reads;
    c->later = qn_arena_new(arena, bool, values);
    c->now = qn_arena_new(arena, bool, values);
    c->final = qn_arena_new(arena, bool, QN_MOST_CUTS + 1);
    if (!c->later || !c->now || !c->final || !qn_flow_open(&c->flow, nodes, pipes, arena))
        return false;
    find_reads(c, moment);
    measure(c);
    return true;
}

bool qn_cut_find(const struct qn_problem *problem, int moment, double early,
                 double seconds_per_byte, struct qn_arena *arena, struct qn_cut *cut)
{
    struct cutting c = {.problem = problem, .early = early};
    return open(&c, moment, arena) && make_cut(&c, seconds_per_byte, arena, cut);
}

bool qn_cuts_find(const struct qn_problem *problem, int moment, double early, int most,
                  struct qn_arena *arena, struct qn_cut *cuts, int *count)
{
    struct cutting c = {.problem = problem, .early = early, .cuts = cuts, .count = 2};
    if (!open(&c, moment, arena) || !make_cut(&c, 0, arena, &cuts[0]) ||
        !make_cut(&c, INFINITY, arena, &cuts[1]))
        return false;
    for (int i = widest(&c), made = 2; i >= 0 && made < most; i = widest(&c), made++)
        if (!split(&c, i, arena))
            return false;
    *count = c.count;
    return true;
}

/* --- moments --- */

/* Bytes alive at a task if all is kept: of values that cannot be dropped (fixed) or can (free). */
struct load {
    int64_t fixed, free;
};

/* By value: the first task that writes it, and the last that reads or writes it; -1: none. */
static void find_lives(const struct qn_problem *p, int *first, int *last)
{
    for (int v = 0; v < p->n_values; v++)
        first[v] = last[v] = -1;
    for (int t = 0; t < qn_tasks_required(p); t++) {
        const struct qn_task *task = &p->tasks[t];
        for (int i = 0; i < task->n_reads; i++)
            last[task->reads[i].value] = t;
        for (int i = 0; i < task->n_writes; i++) {
            const int v = task->writes[i].value;
            first[v] = first[v] < 0 ? t : first[v];
            last[v] = t;
        }
    }
}

static void add_loads(const struct qn_problem *p, const int *first, const int *last,
                      struct load *loads)
{
    for (int v = 0; v < p->n_values; v++) {
        if (first[v] < 0 || p->values[v].life == QN_LIFE_TRAINING)
            continue;
        const int maker = p->producer[v], from = first[v] > p->n_forward ? first[v] : p->n_forward;
        const int end = p->values[v].life == QN_LIFE_CYCLE ? qn_tasks_required(p) - 1 : last[v];
        const bool free = maker >= 0 && qn_task_repeats(&p->tasks[maker]);
        for (int t = from; t <= end; t++)
            *(free ? &loads[t].free : &loads[t].fixed) += p->values[v].bytes;
    }
}

/* The backward task with the largest fixed + share * free. */
static int heaviest(const struct qn_problem *problem, const struct load *loads, double share)
{
    int best = problem->n_forward;
    double most = -1;
    for (int t = best; t < qn_tasks_required(problem); t++) {
        const double load = (double)loads[t].fixed + share * (double)loads[t].free;
        if (load > most) {
            most = load;
            best = t;
        }
    }
    return best;
}

bool qn_moments_find(const struct qn_problem *problem, struct qn_arena *arena, int *moments,
                     int *count)
{
    const size_t values = (size_t)problem->n_values + 1;
    struct load *loads = qn_arena_new(arena, struct load, (size_t)problem->n_tasks + 1);
    int *first = qn_arena_new(arena, int, values), *last = qn_arena_new(arena, int, values);
    *count = 0;
    if (!loads || !first || !last)
        return false;
    find_lives(problem, first, last);
    add_loads(problem, first, last, loads);
    for (int i = QN_MOST_MOMENTS; i > 0; i--) {
        const int moment = heaviest(problem, loads, (double)i / QN_MOST_MOMENTS);
        if (!*count || moments[*count - 1] != moment)
            moments[(*count)++] = moment;
    }
    return true;
}
