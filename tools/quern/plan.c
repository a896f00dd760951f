/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "facts.h"
#include "file.h"
#include "frontier.h"
#include "line.h"
#include "members.h"
#include "metrics.h"
#include "plan_page.h"
#include "plan_team.h"
#include "ranks.h"
#include "ranks_compare.h"
#include "tuning.h"
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Facts from the file, else from the device, else those of a CPU nobody has looked at. */
static int find_facts(struct session *s, const struct arguments *a, qn_facts *facts)
{
    const char *path = a->value[OPTION_FACTS];
    if (path)
        return facts_read(facts, path, a->value[OPTION_DEVICE], s->failure);
    const qn_device_params params = {.log = failure_log(s->failure),
                                     .match = a->value[OPTION_DEVICE]};
    failure_clear(s->failure);
    qn_status status = qn_device_open(&s->device, &params);
    if (status == QN_OK) {
        *facts = *qn_device_facts(s->device);
        return CODE_DONE;
    }
    if (status != QN_ERR_NO_DEVICE || params.match || getenv("QN_DEVICE"))
        return failure_library(s->failure, status, params.match ? "--device" : NULL);
    say("warning: %s: the plan is for a CPU with default facts", s->failure->logged);
    qn_facts_default(facts, true);
    facts->blas = false;
    return CODE_DONE;
}

/* Takes `text`. */
static int print_text(struct session *s, char *text)
{
    if (!text)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    printf("%s", text);
    free(text);
    return CODE_DONE;
}

/* Takes `object`. */
static int print_object(struct session *s, cJSON *object)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    TRY(print_text(s, text));
    printf("\n");
    return CODE_DONE;
}

static int print_json(struct session *s)
{
    if (s->members) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToObject(object, "members", members_plans(s));
        return print_object(s, object);
    }
    TRY(print_text(s, qn_plan_json(s->plan)));
    printf("\n");
    return CODE_DONE;
}

static int draw(struct session *s, const char *path)
{
    char *text = qn_plan_svg(s->plan);
    int code = text ? file_replace(path, text, s->failure)
                    : failure_set(s->failure, CODE_FAILED, "out of memory");
    free(text);
    return code;
}

static void print_points(const struct frontier *f, int64_t budget)
{
    char size[SIZE_TEXT_BYTES];
    const double best = f->points[f->count - 1].seconds;
    printf("  %14s  %10s  %11s  %10s  %9s  %s\n", "from bytes", "", "micro-batch", "recomputed",
           "seconds", "against the fastest");
    for (int i = 0; i < f->count; i++) {
        const qn_plan_point *p = &f->points[i];
        printf("%c %14" PRId64 "  %10s  %11" PRId64 "  %10d  %9.3g  %+.1f %%%s%s\n",
               frontier_is_at(f, i, budget) ? '*' : ' ', p->bytes, size_text(p->bytes, size),
               p->micro_batch, p->recomputed_steps, p->seconds, 100 * (p->seconds / best - 1),
               p->early_updates ? ", early updates" : "", p->parked_bytes ? ", parked" : "");
    }
}

static int print_frontier(struct session *s, bool json)
{
    struct frontier frontier;
    TRY(frontier_read(&frontier, s->plan, s->failure));
    if (json)
        frontier_json(stdout, &frontier);
    else
        print_points(&frontier, qn_plan_facts(s->plan)->budget_bytes);
    printf("%s", json ? "\n" : "");
    free(frontier.points);
    return CODE_DONE;
}

static int explain(struct session *s, const char *name)
{
    char *text;
    TRY_LIBRARY(s->failure, "--explain", qn_plan_explain(s->plan, name, &text));
    return print_text(s, text);
}

static int print_plan(struct session *s, const struct arguments *a)
{
    char size[SIZE_TEXT_BYTES];
    if (a->value[OPTION_SVG])
        TRY(draw(s, a->value[OPTION_SVG]));
    if (a->value[OPTION_HTML])
        TRY(plan_page_write(s->plan, s->recipe.name, a->value[OPTION_HTML], s->failure));
    if (a->value[OPTION_EXPLAIN])
        return explain(s, a->value[OPTION_EXPLAIN]);
    if (a->value[OPTION_FRONTIER])
        return print_frontier(s, a->value[OPTION_JSON]);
    if (a->value[OPTION_JSON])
        return print_json(s);
    line_print(stdout, "recipe: %s", s->recipe.name);
    if (s->members) {
        members_print(s);
        return CODE_DONE;
    }
    printf("budget: %s (%s)\n", size_text(qn_plan_facts(s->plan)->budget_bytes, size),
           session_budget_origin(s));
    return print_text(s, qn_plan_text(s->plan));
}

/* What several devices have no single answer to. */
static int check_members(struct session *s, const struct arguments *a)
{
    static const struct {
        enum option option;
        const char *name;
    } single[] = {{OPTION_SVG, "--svg"},
                  {OPTION_HTML, "--html"},
                  {OPTION_FRONTIER, "--frontier"},
                  {OPTION_EXPLAIN, "--explain"},
                  {OPTION_FACTS, "--facts"}};
    for (size_t i = 0; s->members && i < sizeof single / sizeof *single; i++)
        if (a->value[single[i].option])
            return failure_set(s->failure, CODE_USAGE, "plan: %s: is of one device",
                               single[i].name);
    return CODE_DONE;
}

/* With what was timed on the device, if there is one. */
static int make(struct session *s, const qn_facts *facts)
{
    const qn_plan_params params = settings_plan(&s->settings);
    const enum tune_mode mode = s->settings.memory.tune;
    if (s->device)
        return members_plan(s, mode == TUNE_QUICK ? TUNE_STORED : mode);
    return session_plan(s, facts, &params);
}

/* All that needs neither a device nor other ranks. */
static int prepare(struct session *s, const struct arguments *a)
{
    TRY(session_recipe(s, a->operand, a));
    TRY(data_look(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    TRY(members_read(s, a));
    return check_members(s, a);
}

static int plan(struct session *s, const struct arguments *a)
{
    qn_facts facts;
    TRY(ranks_agree(prepare(s, a), s->failure));
    TRY(ranks_compare(s));
    TRY(ranks_agree(members_join(s), s->failure));
    TRY(ranks_agree(s->members ? members_devices(s, a) : find_facts(s, a, &facts), s->failure));
    int code = ranks_agree(make(s, &facts), s->failure);
    if (!code)
        code = members_tell(s);
    if (code == CODE_NO_PLAN && a->value[OPTION_JSON] && *s->failure->text)
        print_object(s, refusal_json(s));
    return code ? code : print_plan(s, a);
}

/* Of devices that are not here: rank 0 needs no others. */
static int predict(struct session *s, const struct arguments *a)
{
    return ranks_agree(ranks_first() ? plan_team(s, a) : CODE_DONE, s->failure);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    int code = a->value[OPTION_MEMBERS] ? predict(session, a) : plan(session, a);
    session_close(session);
    free(session);
    return code;
}

const struct command command_plan = {
    "plan",
    "RECIPE",
    "shows how a training would use the device's memory",
    "Makes the plan that `quern train` with the same options would run, and prints it. No kernel\n"
    "is timed: before a first training costs are estimated. With --facts the plan is made for\n"
    "another device, from what `quern devices --json` printed there; with --members what updates\n"
    "of many such devices take, and what their links carry.",
    true,
    run,
    {OPTION_DATA,   OPTION_BUDGET,  OPTION_BATCH,   OPTION_MICRO_BATCH, OPTION_RECOMPUTE,
     OPTION_EFFORT, OPTION_STEPS,   OPTION_EPOCHS,  OPTION_SEED,        OPTION_DEVICE,
     OPTION_SHARE,  OPTION_SHARD,   OPTION_TIMEOUT, OPTION_STORAGE,     OPTION_SET,
     OPTION_JSON,   OPTION_SVG,     OPTION_HTML,    OPTION_FRONTIER,    OPTION_EXPLAIN,
     OPTION_FACTS,  OPTION_MEMBERS, OPTION_COUNT},
};
