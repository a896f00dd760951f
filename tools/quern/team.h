/* SPDX-License-Identifier: MIT
 *
 * Predictions for teams of many members that are not there: each member's plan is made from facts
 * of its device, and what the exchange adds is scaling.h's.
 */
#ifndef QUERN_TOOL_TEAM_H
#define QUERN_TOOL_TEAM_H

#include "session.h"
#include "team_file.h"

#include <cjson/cJSON.h>

/* What a member of a kind does; of its members the first of those with the most samples. */
struct team_member {
    int64_t samples;
    qn_plan_info plan; /* its texts are gone */
    int number;        /* of that member */
    double seconds;    /* of an update by itself */
};

/* One number of nodes. */
struct team_row {
    struct scaling scaling;
    int members;
    int64_t batch;
    struct team_member kinds[TEAM_KINDS];
    double alone; /* samples per second of all members without an exchange */
    struct scaled exchanges[EXCHANGES];
};

struct team {
    struct team_file file;
    qn_facts facts[TEAM_KINDS];
    char *costs[TEAM_KINDS]; /* texts for qn_plan_params.tuning; NULL: none */
    int64_t unit;            /* samples that a member has multiples of */
    struct team_row rows[TEAM_ROWS];
    int n_rows;
};

/* Reads the file and predicts all its rows; needs the graph. Also after a failure the team is
 * closed by the caller. */
int team_predict(struct team *team, struct session *session, const char *path);
void team_close(struct team *team);

double team_rate(const struct team_row *row, enum exchange exchange); /* samples per second */
/* Beside members that exchange nothing. */
double team_efficiency(const struct team_row *row, enum exchange exchange);

/* For people; as JSON, which the caller frees, NULL when out of memory; as a picture of samples per
 * second and efficiency over members (team_svg.c). */
void team_print(const struct team *team);
cJSON *team_json(const struct team *team);
int team_draw(const struct team *team, const char *path, struct failure *failure);

#endif
