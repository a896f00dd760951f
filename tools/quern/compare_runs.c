/* SPDX-License-Identifier: MIT */
#include "compare_runs.h"
#include "commands.h"
#include "file.h"
#include "note.h"
#include "session.h"
#include "signals.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char RECIPE_FILE[] = "recipe.json";

static int out_of_memory(struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "out of memory");
}

/* The failure of a run; after a signal there is no reason to tell. */
static int pass_on(const struct compare_run *run, const struct failure *own,
                   struct failure *failure)
{
    return *own->text ? failure_set(failure, own->code, "%s: %s", run->name, own->text)
                      : signals_code(failure);
}

static void join(char path[PATH_MAX], const struct compare_run *run, const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", run->folder, name);
}

static bool has(const struct compare_run *run, const char *name)
{
    char path[PATH_MAX];
    join(path, run, name);
    return access(path, F_OK) == 0;
}

/* --- what a folder holds --- */

/* The first entry that `others` lacks or has otherwise. */
static const struct recipe_entry *find_change(const struct recipe *recipe,
                                              const struct recipe *others)
{
    const struct recipe_entry *entry;
    for (int i = 0; (entry = recipe_next(recipe, &i));) {
        const struct recipe_entry *other = recipe_find(others, entry->section, entry->key);
        if (!other || strcmp(entry->value, other->value) != 0)
            return entry;
    }
    return NULL;
}

static bool same_graphs(const struct recipe *a, const struct recipe *b)
{
    bool same = true;
    for (int i = 0; i < RECIPE_GRAPHS; i++)
        same &= a->graph[i] && b->graph[i] ? strcmp(a->graph[i], b->graph[i]) == 0
                                           : a->graph[i] == b->graph[i];
    return same;
}

static int compare_recipes(const struct compare_run *run, const struct recipe *then,
                           const struct recipe *now, struct failure *failure)
{
    static const char advice[] = "name another folder with --out";
    const struct recipe_entry *changed = find_change(now, then);
    if (!changed)
        changed = find_change(then, now);
    if (!changed)
        return same_graphs(then, now)
                   ? CODE_DONE
                   : failure_set(failure, CODE_USAGE, "%s: was trained with another graph; %s",
                                 run->folder, advice);
    const struct recipe_entry *old = recipe_find(then, changed->section, changed->key);
    const struct recipe_entry *new = recipe_find(now, changed->section, changed->key);
    return failure_set(failure, CODE_USAGE, "%s: was trained %s %s.%s%s%s%s%s; %s", run->folder,
                       old ? "with" : "without", changed->section, changed->key, old ? " = " : "",
                       old ? old->value : "", old && new ? ", not " : "",
                       old && new ? new->value : "", advice);
}

/* The recipe of what was trained in the folder. */
static int check_recipe(const struct compare_run *run, const struct recipe *now,
                        struct failure *failure)
{
    char path[PATH_MAX], *text;
    struct recipe *then = calloc(1, sizeof *then);
    if (!then)
        return out_of_memory(failure);
    join(path, run, RECIPE_FILE);
    int code = file_read(&text, path, failure);
    if (!code) {
        code = note_read(then, text, path, failure);
        free(text);
    }
    if (!code)
        code = compare_recipes(run, then, now, failure);
    recipe_free_graphs(then);
    free(then);
    return code;
}

static bool is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* What cannot be read of the metrics is written again by what is still to be done. */
static void look(struct compare_run *run, struct reported *t)
{
    struct failure ignored = FAILURE_NONE;
    reported_free(t);
    const int code = reported_read(t, run->name, run->folder, &ignored);
    const cJSON *summary = t->history.summary;
    if (!code && summary && !*reported_text(summary, "error") && !is_true(summary, "interrupted"))
        run->state = RUN_DONE;
    else if (has(run, "last"))
        run->state = RUN_BEGUN;
    else
        run->state = !code && summary ? RUN_NO_PLAN : RUN_NEW;
    if (code)
        reported_free(t);
    t->name = run->name;
}

static int check_folder(struct compare_run *run, struct reported *t, const struct recipe *now,
                        struct failure *failure)
{
    run->recipe = note_text(now, NULL, NULL);
    if (!run->recipe)
        return out_of_memory(failure);
    t->name = run->name;
    if (!has(run, "last") && !has(run, HISTORY_FILE))
        return CODE_DONE;
    if (!has(run, RECIPE_FILE))
        return failure_set(failure, CODE_USAGE,
                           "%s: holds a training that no comparison began; name another folder "
                           "with --out",
                           run->folder);
    look(run, t);
    return run->state == RUN_BEGUN || run->state == RUN_DONE ? check_recipe(run, now, failure)
                                                             : CODE_DONE;
}

/* --- opening --- */

static struct session *open_session(struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        out_of_memory(failure);
        return NULL;
    }
    session->failure = failure;
    session->quiet = session->data.text.quiet = true;
    return session;
}

static void close_session(struct session *session)
{
    session_close(session);
    free(session);
}

static int read_recipe(const struct comparison *c, int run, struct session *s)
{
    struct arguments a = *c->arguments;
    TRY(variants_arguments(&c->variants, run, &a, s->failure));
    return session_recipe(s, a.operand, &a);
}

static int build_network(struct session *s)
{
    TRY(data_look(&s->data, &s->settings, &s->recipe, s->failure));
    return session_graph(s);
}

/* No seed changes the network. */
static int check_run(struct comparison *c, int index, struct session *s)
{
    TRY(read_recipe(c, index, s));
    if (index % c->variants.n_seeds == 0)
        TRY(build_network(s));
    return check_folder(&c->runs[index], &c->report.trainings[index], &s->recipe, s->failure);
}

static int check(struct comparison *c, int index, struct failure *failure)
{
    struct session *session = open_session(failure);
    if (!session)
        return failure->code;
    const int code = check_run(c, index, session);
    close_session(session);
    return code;
}

static int name_run(struct comparison *c, int index, const char *folder, struct failure *failure)
{
    struct compare_run *run = &c->runs[index];
    char name[RUN_FOLDER_BYTES];
    run->variant = index / c->variants.n_seeds;
    run->name = variants_run_name(&c->variants, index);
    const size_t room = strlen(folder) + RUN_FOLDER_BYTES + 1;
    run->folder = malloc(room);
    if (!run->name || !run->folder)
        return out_of_memory(failure);
    variants_folder(run->name, name);
    snprintf(run->folder, room, "%s/%s", folder, name);
    return room + 32 < PATH_MAX ? CODE_DONE
                                : failure_set(failure, CODE_USAGE, "--out: the path is too long");
}

static int name_all(struct comparison *c, const char *folder, struct failure *failure)
{
    for (int i = 0; i < c->variants.n_variants; i++)
        if (!(c->variant_names[i] = variants_name(&c->variants, i)))
            return out_of_memory(failure);
    for (int i = 0; i < c->variants.n_runs; i++)
        TRY(name_run(c, i, folder, failure));
    return CODE_DONE;
}

int comparison_open(struct comparison *c, const char *folder, const struct arguments *a,
                    struct failure *failure)
{
    c->arguments = a;
    TRY(variants_read(&c->variants, a, failure));
    const size_t n = (size_t)c->variants.n_runs;
    c->variant_names = calloc(n, sizeof *c->variant_names);
    c->runs = calloc(n, sizeof *c->runs);
    c->report.trainings = calloc(n, sizeof *c->report.trainings);
    if (!c->variant_names || !c->runs || !c->report.trainings)
        return out_of_memory(failure);
    c->report.count = c->variants.n_runs;
    TRY(name_all(c, folder, failure));
    for (int i = 0; i < c->variants.n_runs; i++)
        TRY(check(c, i, failure));
    return CODE_DONE;
}

void comparison_free(struct comparison *c)
{
    for (int i = 0; i < c->report.count; i++) {
        free(c->runs[i].name);
        free(c->runs[i].folder);
        free(c->runs[i].recipe);
        reported_free(&c->report.trainings[i]);
        free(c->variant_names[i]);
    }
    free(c->variant_names);
    free(c->runs);
    free(c->report.trainings);
    variants_free(&c->variants);
    *c = (struct comparison){0};
}

/* --- plans --- */

/* Its budget is warned of when it is trained. */
static int plan(const struct comparison *c, int run, const qn_facts *facts, struct session *s)
{
    TRY(read_recipe(c, run, s));
    TRY(build_network(s));
    qn_plan_params params = settings_plan(&s->settings);
    params.effort = QN_EFFORT_INSTANT;
    s->large_budget = s->settings.memory.budget;
    return session_plan(s, facts, &params);
}

static int check_plan(const struct comparison *c, int run, const qn_facts *facts,
                      struct failure *failure)
{
    struct failure own = FAILURE_NONE;
    struct session *session = open_session(failure);
    if (!session)
        return failure->code;
    session->failure = &own;
    const int code = plan(c, run, facts, session);
    close_session(session);
    return code && code != CODE_NO_PLAN ? pass_on(&c->runs[run], &own, failure) : CODE_DONE;
}

static int check_plans(const struct comparison *c, struct session *s)
{
    TRY(session_device(s, c->arguments));
    for (int r = 0; r < c->variants.n_runs; r += c->variants.n_seeds)
        if (c->runs[r].state != RUN_DONE)
            TRY(check_plan(c, r, qn_device_facts(s->device), s->failure));
    return CODE_DONE;
}

int comparison_plan(const struct comparison *c, struct failure *failure)
{
    bool done = true;
    for (int r = 0; r < c->variants.n_runs; r++)
        done &= c->runs[r].state == RUN_DONE;
    struct session *session = done ? NULL : open_session(failure);
    if (!session)
        return failure->code;
    const int code = check_plans(c, session);
    close_session(session);
    return code;
}

/* --- training --- */

static int make_folder(const struct compare_run *run, struct failure *failure)
{
    char path[PATH_MAX];
    if (mkdir(run->folder, 0777) != 0 && errno != EEXIST)
        return failure_set(failure, CODE_FAILED, "%s: %s", run->folder, strerror(errno));
    join(path, run, RECIPE_FILE);
    return file_replace(path, run->recipe, failure);
}

/* Goes on with what a checkpoint says alone. */
static int resume(const struct compare_run *run, const struct arguments *common,
                  struct failure *failure)
{
    struct arguments a = {.operand = run->folder, .n_operands = 1};
    a.value[OPTION_DEVICE] = common->value[OPTION_DEVICE];
    a.value[OPTION_QUIET] = "";
    return command_resume.run(&a, failure);
}

/* With the file of figures named: it tells, too, that no plan fits. */
static int train(const struct comparison *c, int index, struct failure *failure)
{
    const struct compare_run *run = &c->runs[index];
    struct arguments a = *c->arguments;
    char metrics[PATH_MAX];
    join(metrics, run, HISTORY_FILE);
    a.value[OPTION_OUT] = run->folder;
    a.value[OPTION_METRICS] = metrics;
    a.value[OPTION_QUIET] = "";
    TRY(variants_arguments(&c->variants, index, &a, failure));
    return command_train.run(&a, failure);
}

int comparison_train(struct comparison *c, int index, struct failure *failure)
{
    struct compare_run *run = &c->runs[index];
    struct failure own = FAILURE_NONE;
    TRY(make_folder(run, failure));
    const int code =
        run->state == RUN_BEGUN ? resume(run, c->arguments, &own) : train(c, index, &own);
    look(run, &c->report.trainings[index]);
    return code && code != CODE_NO_PLAN ? pass_on(run, &own, failure) : CODE_DONE;
}
