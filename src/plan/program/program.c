/* SPDX-License-Identifier: MIT
 *
 * The exact simulator.
 */
#include "plan/program/program.h"

#include "base/log.h"
#include "base/shape.h"

int qn_program_add(struct qn_program *program, struct qn_arena *arena, const char *name,
                   enum qn_phase_kind kind, const struct qn_problem *problem, bool first,
                   const struct qn_steps *steps)
{
    struct qn_phase_run *phase = &program->phases[program->n_phases];
    *phase = (struct qn_phase_run){
        .name = name,
        .kind = kind,
        .problem = problem,
        .first = first,
        .before = -1,
        .next = -1,
        .repeats = kind == QN_MICRO_PHASE && !first,
        .n_steps = steps->count,
        .start = program->length,
        .seconds = steps->seconds,
        .recomputed = steps->recomputed,
        .steps = qn_arena_new(arena, struct qn_step, (size_t)steps->count + 1)};
    if (!phase->steps)
        return -1;
    for (int i = 0; i < steps->count; i++) {
        phase->steps[i].task = steps->task[i];
        if (problem->tasks[steps->task[i]].blas_temp > program->blas_temp)
            program->blas_temp = problem->tasks[steps->task[i]].blas_temp;
    }
    program->length += steps->count;
    return program->n_phases++;
}

void qn_program_join(struct qn_program *program, int before, int next)
{
    program->phases[before].next = next;
    program->phases[next].before = before;
    program->phases[before].repeats = program->phases[next].repeats = false;
}

/* One life of a value inside a phase, or in two that are joined: from a write that does not add to
 * the last use before the next such write. */
struct life {
    int value, start, end;
    int storage;
    bool recomputed;
};

struct simulation {
    struct qn_program *program;
    struct qn_phase_run *phase; /* the one at hand */
    const struct qn_problem *problem;
    struct life *lives;
    int n_lives;
    int *current; /* by value: its present life; -1 */
    bool *ran;    /* by task */
    int64_t alignment;
};

static bool micro_life(const struct simulation *s, int value)
{
    return s->problem->values[value].life == QN_LIFE_MICRO;
}

/* Extends the present life of the value (its block) to `at` and gives its number, which step->read
 * and step->write hold until bind_steps() puts storages there; -1: none, or a persistent value. */
static int use_life(struct simulation *s, int value, int at)
{
    int root = qn_value_root(s->problem, value);
    if (!micro_life(s, root))
        return -1;
    int life = s->current[root];
    if (life >= 0)
        s->lives[life].end = at;
    return life;
}

static int open_life(struct simulation *s, int value, int at, bool recomputed)
{
    int root = qn_value_root(s->problem, value);
    if (!micro_life(s, root))
        return -1;
    s->lives[s->n_lives] = (struct life){root, at, at, -1, recomputed};
    s->current[root] = s->n_lives;
    return s->n_lives++;
}

static bool read_lives(struct simulation *s, struct qn_step *step, int at)
{
    const struct qn_task *task = &s->problem->tasks[step->task];
    for (int i = 0; i < task->n_reads; i++) {
        step->read[i] = use_life(s, task->reads[i].value, at);
        if (step->read[i] < 0 && micro_life(s, qn_value_root(s->problem, task->reads[i].value)))
            return false;
    }
    return true;
}

static bool write_lives(struct simulation *s, struct qn_step *step, int at)
{
    const struct qn_task *task = &s->problem->tasks[step->task];
    for (int i = 0; i < task->n_writes; i++) {
        const struct qn_output_use *write = &task->writes[i];
        step->write[i] = write->accumulates ? use_life(s, write->value, at)
                                            : open_life(s, write->value, at, step->recomputed);
        if (step->write[i] < 0 && micro_life(s, qn_value_root(s->problem, write->value)))
            return false;
    }
    return true;
}

/* False: a step reads a value that no earlier step has written; the planner is wrong. */
static bool find_lives(struct simulation *s)
{
    for (int i = 0; i < s->phase->n_steps; i++) {
        struct qn_step *step = &s->phase->steps[i];
        int at = s->phase->start + i;
        step->recomputed =
            s->ran[step->task] && s->problem->tasks[step->task].kind == QN_TASK_GROUP;
        s->ran[step->task] = true;
        if (!read_lives(s, step, at) || !write_lives(s, step, at))
            return false;
    }
    return true;
}

static int add_storage(struct qn_program *program, const struct qn_value *value, int64_t alignment,
                       int start, int end)
{
    program->storages[program->n_storages] =
        (struct qn_storage){.bytes = qn_round_up(value->bytes, alignment),
                            .start = start,
                            .end = end,
                            .tag = value->tag,
                            .name = value->name,
                            .pool = -1,
                            .host_bytes = value->host_bytes};
    return program->n_storages++;
}

/* The life whose bytes a write takes over: that of its in_place value, if it ends at this step and
 * no earlier write of the step took its bytes; -1: none. */
static int life_to_take(const struct simulation *s, const struct qn_step *step, int write, int at)
{
    const struct qn_task *task = &s->problem->tasks[step->task];
    int over = task->writes[write].in_place;
    if (over < 0)
        return -1;
    for (int i = 0; i < task->n_reads; i++) {
        if (task->reads[i].value != over)
            continue;
        const struct life *life = &s->lives[step->read[i]];
        bool taken = false;
        for (int w = 0; w < write; w++)
            taken |= step->write[w] >= 0 && s->lives[step->write[w]].storage == life->storage;
        return life->end == at && !taken ? step->read[i] : -1;
    }
    return -1;
}

static void store_writes(struct simulation *s, struct qn_step *step, int at)
{
    const struct qn_task *task = &s->problem->tasks[step->task];
    for (int w = 0; w < task->n_writes; w++) {
        struct life *life = step->write[w] >= 0 ? &s->lives[step->write[w]] : NULL;
        if (!life || life->storage >= 0)
            continue;
        int taken = life_to_take(s, step, w, at);
        if (taken >= 0) {
            life->storage = s->lives[taken].storage;
            s->program->storages[life->storage].end = life->end;
            continue;
        }
        life->storage = add_storage(s->program, &s->problem->values[life->value], s->alignment,
                                    life->start, life->end);
        if (life->recomputed)
            s->program->storages[life->storage].tag = QN_TAG_RECOMPUTED;
    }
}

static int storage_of(const struct simulation *s, int life, int value)
{
    return life >= 0 ? s->lives[life].storage
                     : s->program->persistent[qn_value_root(s->problem, value)];
}

/* Replaces lives by storages in every step. */
static void bind_steps(struct simulation *s)
{
    for (int i = 0; i < s->phase->n_steps; i++) {
        struct qn_step *step = &s->phase->steps[i];
        const struct qn_task *task = &s->problem->tasks[step->task];
        for (int r = 0; r < task->n_reads; r++)
            step->read[r] = storage_of(s, step->read[r], task->reads[r].value);
        for (int w = 0; w < task->n_writes; w++)
            step->write[w] = storage_of(s, step->write[w], task->writes[w].value);
    }
}

static void store_scratch(struct simulation *s, struct qn_step *step, int at)
{
    const struct qn_task *task = &s->problem->tasks[step->task];
    const struct qn_value scratch = {
        .name = task->name, .bytes = task->scratch, .tag = QN_TAG_SCRATCH};
    step->scratch = task->scratch ? add_storage(s->program, &scratch, s->alignment, at, at) : -1;
}

static int count_writes(const struct qn_phase_run *phase)
{
    int count = 0;
    for (int i = 0; i < phase->n_steps; i++)
        count += phase->problem->tasks[phase->steps[i].task].n_writes;
    return count;
}

/* Places copies in host memory side by side: those stored in the forward pass stay until the
 * backward pass. Phases share the memory, since only one runs at a time. */
static void place_copies(struct qn_program *program, const struct qn_phase_run *phase)
{
    const int64_t unit = 64;
    int64_t top = 0;
    for (int i = 0; i < phase->n_storages; i++) {
        struct qn_storage *copy = &program->storages[phase->first_storage + i];
        if (!copy->host_bytes)
            continue;
        copy->offset = top;
        top += qn_round_up(copy->host_bytes, unit);
    }
    if (top > program->host_bytes)
        program->host_bytes = top;
}

static void store_phase(struct simulation *s)
{
    struct qn_phase_run *phase = s->phase;
    phase->first_storage = s->program->n_storages;
    for (int i = 0; i < phase->n_steps; i++) {
        store_writes(s, &phase->steps[i], phase->start + i);
        store_scratch(s, &phase->steps[i], phase->start + i);
    }
    phase->n_storages = s->program->n_storages - phase->first_storage;
    place_copies(s->program, phase);
}

/* The phase that goes on with the one at hand; NULL: none does. */
static struct qn_phase_run *next_of(const struct simulation *s)
{
    return s->phase->next < 0 ? NULL : &s->program->phases[s->phase->next];
}

/* The phase and the one that goes on with it. */
static qn_status simulate_phase(struct qn_program *program, struct qn_phase_run *phase,
                                const struct qn_lowering *how)
{
    const struct qn_problem *problem = phase->problem;
    struct simulation s = {
        .program = program, .phase = phase, .problem = problem, .alignment = how->facts->alignment};
    const int writes = count_writes(phase) + (next_of(&s) ? count_writes(next_of(&s)) : 0);
    s.lives = qn_arena_new(how->arena, struct life, (size_t)writes + 1);
    s.current = qn_arena_new(how->arena, int, (size_t)problem->n_values + 1);
    s.ran = qn_arena_new(how->arena, bool, (size_t)problem->n_tasks + 1);
    if (!s.lives || !s.current || !s.ran)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (int v = 0; v < problem->n_values; v++)
        s.current[v] = -1;
    for (s.phase = phase; s.phase; s.phase = next_of(&s))
        if (!find_lives(&s))
            return qn_fail(how->log, QN_ERR_INTERNAL, "plan: a step reads what nobody has written");
    for (s.phase = phase; s.phase; s.phase = next_of(&s))
        store_phase(&s);
    for (s.phase = phase; s.phase; s.phase = next_of(&s))
        bind_steps(&s);
    return QN_OK;
}

/* --- values that outlive a phase --- */

static bool uses(const struct qn_phase_run *phase, int step, int value)
{
    const struct qn_task *task = &phase->problem->tasks[phase->steps[step].task];
    bool any = false;
    for (int r = 0; r < task->n_reads; r++)
        any |= qn_value_root(phase->problem, task->reads[r].value) == value;
    for (int w = 0; w < task->n_writes; w++)
        any |= qn_value_root(phase->problem, task->writes[w].value) == value;
    return any;
}

/* The closed interval of timeline positions at which the phase uses a value or block of the cycle;
 * the whole phase if it repeats, since the value passes from one repetition to the next. False: the
 * phase does not use it. */
static bool find_use(const struct qn_phase_run *phase, int value, int *start, int *end)
{
    *start = *end = -1;
    for (int i = 0; i < phase->n_steps; i++) {
        if (!uses(phase, i, value))
            continue;
        *start = *start < 0 ? phase->start + i : *start;
        *end = phase->start + i;
    }
    if (*start >= 0 && phase->repeats) {
        *start = phase->start;
        *end = phase->start + phase->n_steps - 1;
    }
    return *start >= 0;
}

/* Whether the phases are of two runs that are alternatives: their repetitions follow one another in
 * any order. */
static bool take_turns(const struct qn_phase_run *a, const struct qn_phase_run *b)
{
    const struct qn_run_set *runs = &a->problem->persist->runs;
    const int x = a->problem->run, y = b->problem->run;
    return x >= 0 && y >= 0 && x != y && runs->run[x].pass >= 0 &&
           runs->run[x].pass == runs->run[y].pass;
}

/* As find_use(); a value that an alternative of the phase uses is alive during the whole phase. */
static bool find_stay(const struct qn_program *program, int number, int value, int *start, int *end)
{
    const struct qn_phase_run *phase = &program->phases[number];
    for (int p = 0; p < program->n_phases; p++) {
        if (!take_turns(phase, &program->phases[p]) ||
            !find_use(&program->phases[p], value, start, end))
            continue;
        *start = phase->start;
        *end = phase->start + phase->n_steps - 1;
        return true;
    }
    return find_use(phase, value, start, end);
}

/* From the first use in any phase to the last. */
static void find_span(const struct qn_program *program, int value, int *start, int *end)
{
    *start = *end = -1;
    for (int p = 0; p < program->n_phases; p++) {
        int from, to;
        if (!find_stay(program, p, value, &from, &to))
            continue;
        *start = *start < 0 ? from : *start;
        *end = to;
    }
    *start = *start < 0 ? 0 : *start;
}

static bool is_cell(const struct qn_run_set *runs, int value)
{
    for (int c = 0; c < runs->n_cells; c++)
        if (runs->cell[c].value == value || runs->cell[c].gradient == value)
            return true;
    return false;
}

/* Storages of the persistent values. Values of life QN_LIFE_CYCLE are alive from their first use to
 * the end of the update, cells to their last use; all others during the whole timeline. */
static void store_persistent(struct qn_program *program, const struct qn_persist *persist,
                             bool alone, int64_t alignment)
{
    const int last = program->length - 1;
    int cycle_end = -1;
    if (program->update >= 0)
        cycle_end =
            program->phases[program->update].start + program->phases[program->update].n_steps - 1;
    cycle_end = cycle_end < 0 ? last : cycle_end;
    for (int v = 0; v < persist->n_values; v++) {
        const struct qn_value *value = &persist->values[v];
        int start = 0, end = last;
        program->persistent[v] = -1;
        if (alone || value->block >= 0 || value->life == QN_LIFE_MICRO)
            continue;
        if (value->life == QN_LIFE_CYCLE) {
            find_span(program, v, &start, &end);
            end = is_cell(&persist->runs, v) ? end : cycle_end;
        }
        program->persistent[v] = add_storage(program, value, alignment, start, end);
    }
}

static void sum_live(struct qn_program *program)
{
    for (int i = 0; i < program->n_storages; i++) {
        program->live[program->storages[i].start] += program->storages[i].bytes;
        program->live[program->storages[i].end + 1] -= program->storages[i].bytes;
    }
    program->live_peak = 0;
    for (int t = 0; t < program->length; t++) {
        if (t)
            program->live[t] += program->live[t - 1];
        if (program->live[t] > program->live_peak) {
            program->live_peak = program->live[t];
            program->peak_at = t;
        }
    }
}

qn_status qn_program_simulate(struct qn_program *program, const struct qn_persist *persist,
                              bool alone, const struct qn_lowering *how)
{
    size_t most = (size_t)persist->n_values;
    for (int p = 0; p < program->n_phases; p++)
        most += (size_t)count_writes(&program->phases[p]) + (size_t)program->phases[p].n_steps;
    program->storages = qn_arena_new(how->arena, struct qn_storage, most + 1);
    program->persistent = qn_arena_new(how->arena, int, (size_t)persist->n_values + 1);
    program->live = qn_arena_new(how->arena, int64_t, (size_t)program->length + 2);
    if (!program->storages || !program->persistent || !program->live)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    store_persistent(program, persist, alone, how->facts->alignment);
    for (int p = 0; p < program->n_phases; p++)
        if (program->phases[p].before < 0)
            QN_TRY(simulate_phase(program, &program->phases[p], how));
    sum_live(program);
    return QN_OK;
}
