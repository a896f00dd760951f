/* SPDX-License-Identifier: MIT */
#include "team.h"
#include "facts.h"
#include "file.h"
#include "members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- plans --- */

static int read_kind(struct team *team, int k, struct failure *failure)
{
    const struct team_kind *kind = &team->file.kinds[k];
    char path[4096];
    team_file_path(&team->file, kind->facts, path);
    TRY(facts_read(&team->facts[k], path, kind->match, failure));
    if (!kind->costs)
        return CODE_DONE;
    team_file_path(&team->file, kind->costs, path);
    return file_read(&team->costs[k], path, failure);
}

/* Whether a row's plans of as many samples are those of another: not with another part of the
 * optimizer, nor with cells of another cycle. */
static bool are_alike(const struct session *s, const struct team_row *a, const struct team_row *b)
{
    return s->settings.group.shard == SHARD_NONE && (a->batch == b->batch || !members_see_whole(s));
}

/* What another row planned for as many samples; NULL: nothing. */
static const qn_plan_info *find_plan(const struct team *team, const struct session *s, int k,
                                     const struct team_row *row)
{
    for (int r = 0; r < team->n_rows; r++)
        if (are_alike(s, &team->rows[r], row) &&
            team->rows[r].kinds[k].samples == row->kinds[k].samples)
            return &team->rows[r].kinds[k].plan;
    return NULL;
}

/* A member without samples has a plan all the same, as those of members.h. */
static int plan_kind(struct team *team, struct session *s, int k, struct team_row *row)
{
    struct team_member *member = &row->kinds[k];
    const struct team_kind *kind = &team->file.kinds[k];
    const qn_plan_info *known = find_plan(team, s, k, row);
    if (known) {
        member->plan = *known;
        return CODE_DONE;
    }
    s->settings.memory = kind->memory;
    s->planned_for = kind->name;
    qn_plan_params params = settings_plan(&s->settings);
    memset(params.batch, 0, sizeof params.batch);
    params.batch[0] = member->samples ? member->samples : team->unit;
    params.whole[0] = members_see_whole(s) ? row->batch : 0;
    params.tuning = team->costs[k];
    if (row->scaling.sharded) {
        params.members = row->members;
        params.member = member->number;
    }
    qn_plan_destroy(&s->plan);
    TRY(session_plan(s, &team->facts[k], &params));
    member->plan = *qn_plan_facts(s->plan);
    return CODE_DONE;
}

/* --- rows --- */

static void fill_shares(const struct team_file *file, int members, double *shares)
{
    for (int m = 0; m < members;)
        for (int k = 0; k < file->n_kinds; k++)
            for (int64_t i = 0; i < file->kinds[k].count; i++)
                shares[m++] = file->kinds[k].share;
}

/* Finds the member of each kind with the most samples. */
static void most_samples(const struct team_file *file, const int64_t *counts, struct team_row *row)
{
    for (int m = 0; m < row->members;)
        for (int k = 0; k < file->n_kinds; k++)
            for (int64_t i = 0; i < file->kinds[k].count; i++, m++)
                if (counts[m] > row->kinds[k].samples || (m < row->scaling.per_node && i == 0))
                    row->kinds[k] = (struct team_member){.samples = counts[m], .number = m};
}

static int split(const struct team *team, struct session *s, struct team_row *row)
{
    double shares[QN_MAX_GROUP];
    int64_t counts[QN_MAX_GROUP];
    fill_shares(&team->file, row->members, shares);
    failure_clear(s->failure);
    if (qn_group_split(row->batch, team->unit, shares, row->members, counts))
        return failure_set(s->failure, CODE_USAGE, "%s: %d members: %s", team->file.text.name,
                           row->members, qn_last_error());
    most_samples(&team->file, counts, row);
    return CODE_DONE;
}

/* All wait for the slowest. */
static void take_slowest(const struct team *team, struct team_row *row)
{
    struct scaling *scaling = &row->scaling;
    for (int k = 0; k < team->file.n_kinds; k++) {
        const struct team_kind *kind = &team->file.kinds[k];
        struct team_member *member = &row->kinds[k];
        member->seconds = member->samples ? member->plan.seconds / kind->speed : 0;
        if (!member->samples)
            continue;
        row->alone +=
            scaling->nodes * (double)kind->count * (double)member->samples / member->seconds;
        if (member->seconds <= scaling->compute)
            continue;
        scaling->compute = member->seconds;
        scaling->backward = member->plan.backward_seconds / kind->speed;
    }
}

/* Owners of sums send these; who has updated parameters sends them as they are stored. */
static double returned_share(const struct session *s, bool sharded)
{
    return sharded && s->settings.memory.parameter_storage != QN_F32 ? 0.5 : 1;
}

/* What members send one another of their samples: rounds last as long as the largest share. */
static void add_rows(const struct team *team, struct team_row *row)
{
    int64_t most = 0;
    for (int k = 0; k < team->file.n_kinds; k++)
        most = row->kinds[k].samples > most ? row->kinds[k].samples : most;
    row->scaling.row_cells = row->kinds[0].plan.row_cells;
    row->scaling.rows = (double)most * row->members * (double)row->kinds[0].plan.row_bytes;
}

static int predict_row(struct team *team, struct session *s, int nodes, int64_t batch)
{
    struct team_row *row = &team->rows[team->n_rows];
    const struct team_file *file = &team->file;
    struct scaling *scaling = &row->scaling;
    *scaling = (struct scaling){.nodes = nodes,
                                .per_node = team_file_per_node(file),
                                .inside = file->inside,
                                .between = file->between,
                                .sharded = s->settings.group.shard == SHARD_OPTIMIZER};
    row->members = nodes * scaling->per_node;
    row->batch = file->batch == BATCH_OF_MEMBER ? batch * row->members : batch;
    TRY(split(team, s, row));
    for (int k = 0; k < file->n_kinds; k++)
        TRY(plan_kind(team, s, k, row));
    take_slowest(team, row);
    add_rows(team, row);
    scaling->bytes = (double)row->kinds[0].plan.trained_parameters * sizeof(float);
    scaling->returned = scaling->bytes * returned_share(s, scaling->sharded);
    scaling->buckets = (int)ceil(scaling->bytes / QN_BUCKET_BYTES);
    for (int e = 0; e < EXCHANGES; e++)
        row->exchanges[e] = scaling_predict(scaling, (enum exchange)e);
    team->n_rows++;
    return CODE_DONE;
}

static int64_t largest_batch(const struct session *s)
{
    const qn_plan_params params = settings_plan(&s->settings);
    int64_t largest = 0;
    for (int b = 0; b < QN_MAX_BATCH_SIZES; b++)
        largest = params.batch[b] > largest ? params.batch[b] : largest;
    return largest;
}

/* Negatives of a micro-batch are those of the same one everywhere. */
static int check_micro_batches(const struct team *team, const struct session *s)
{
    for (int k = 0; k < team->file.n_kinds; k++)
        if (s->settings.contrastive.mode == CONTRASTIVE_ACCUMULATE &&
            team->file.kinds[k].memory.micro_batch != team->unit)
            return failure_set(
                s->failure, CODE_USAGE,
                "%s: device %s.micro_batch: negatives are those of a micro-batch: it "
                "is the same on all devices",
                team->file.text.name, team->file.kinds[k].name);
    return CODE_DONE;
}

int team_predict(struct team *team, struct session *s, const char *path)
{
    const int64_t batch = largest_batch(s);
    TRY(team_file_read(&team->file, path, &s->settings.memory, s->failure));
    team->unit = members_unit(s);
    TRY(check_micro_batches(team, s));
    for (int k = 0; k < team->file.n_kinds; k++)
        TRY(read_kind(team, k, s->failure));
    for (int i = 0; i < team->file.sizes.count; i++)
        TRY(predict_row(team, s, (int)team->file.sizes.nodes[i], batch));
    return CODE_DONE;
}

void team_close(struct team *team)
{
    for (int k = 0; k < TEAM_KINDS; k++)
        free(team->costs[k]);
}

/* --- what follows --- */

double team_rate(const struct team_row *row, enum exchange exchange)
{
    return (double)row->batch / row->exchanges[exchange].seconds;
}

double team_efficiency(const struct team_row *row, enum exchange exchange)
{
    return team_rate(row, exchange) / row->alone;
}
