/* SPDX-License-Identifier: MIT */
#include "plan_team.h"
#include "line.h"
#include "members.h"
#include "team.h"

#include <stdlib.h>

/* What asks for one plan, or for devices that are here. */
static int check_options(struct session *s, const struct arguments *a)
{
    static const struct {
        enum option option;
        const char *name;
    } others[] = {{OPTION_HTML, "--html"},       {OPTION_FRONTIER, "--frontier"},
                  {OPTION_EXPLAIN, "--explain"}, {OPTION_FACTS, "--facts"},
                  {OPTION_DEVICE, "--device"},   {OPTION_SHARE, "--share"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (a->value[others[i].option])
            return failure_set(s->failure, CODE_USAGE, "plan: %s: does not go with --members",
                               others[i].name);
    return CODE_DONE;
}

static int print_json(const struct team *team, struct failure *failure)
{
    cJSON *object = team_json(team);
    char *text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    if (!text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static int show(struct session *s, struct team *team, const struct arguments *a)
{
    TRY(team_predict(team, s, a->value[OPTION_MEMBERS]));
    if (a->value[OPTION_SVG])
        TRY(team_draw(team, a->value[OPTION_SVG], s->failure));
    if (a->value[OPTION_JSON])
        return print_json(team, s->failure);
    line_print(stdout, "recipe: %s", s->recipe.name);
    team_print(team);
    return CODE_DONE;
}

int plan_team(struct session *s, const struct arguments *a)
{
    TRY(check_options(s, a));
    TRY(session_recipe(s, a->operand, a));
    TRY(data_look(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    TRY(members_check(s));
    struct team *team = calloc(1, sizeof *team);
    if (!team)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    const int code = show(s, team, a);
    team_close(team);
    free(team);
    return code;
}
