/* SPDX-License-Identifier: MIT */
#include "line.h"
#include "team.h"
#include "value.h"

#include <inttypes.h>

/* --- for people --- */

static void print_link(const char *name, const struct link *link)
{
    if (link->bandwidth > 0)
        printf("%s: %.4g MB/s, latency %.4g us, overhead %.4g us\n", name, link->bandwidth / 1e6,
               link->latency * 1e6, link->overhead * 1e6);
}

static void print_rate(const struct team_row *row, enum exchange exchange)
{
    const double rate = team_rate(row, exchange);
    printf("  %12.*f/s %5.1f %%", rate < 100 ? 2 : 0, rate, 100 * team_efficiency(row, exchange));
}

static void print_rows(const qn_plan_info *plan)
{
    if (plan->row_cells)
        printf("rows of cells: %" PRId64 " bytes of each sample to all, before the loss\n",
               plan->row_bytes);
}

static void print_times(const struct team *team)
{
    printf("  %7s %6s %8s %10s", "members", "nodes", "batch", "compute");
    for (int e = 0; e < EXCHANGES; e++)
        printf("  %22s", exchange_names[e]);
    printf("  %10s\n", "sent each");
    for (int r = 0; r < team->n_rows; r++) {
        const struct team_row *row = &team->rows[r];
        char size[SIZE_TEXT_BYTES];
        printf("  %7d %6d %8" PRId64 " %8.3g s", row->members, row->scaling.nodes, row->batch,
               row->scaling.compute);
        for (int e = 0; e < EXCHANGES; e++)
            print_rate(row, (enum exchange)e);
        printf("  %10s\n", size_text((int64_t)row->exchanges[EXCHANGE_DIRECT].sent, size));
    }
}

static void print_member(const struct team *team, const struct team_row *row, int k)
{
    const struct team_member *member = &row->kinds[k];
    char peak[SIZE_TEXT_BYTES], budget[SIZE_TEXT_BYTES];
    printf("  %7d  %-24s %8" PRId64 " %11" PRId64 " %8.3g s  %10s  %10s\n", row->members,
           team->file.kinds[k].name, member->samples, member->plan.micro_batch, member->seconds,
           size_text(member->plan.peak_bytes, peak), size_text(member->plan.budget_bytes, budget));
}

/* What does not change with the number of members is told once. */
static bool is_told(const struct team *team, int r, int k)
{
    const struct team_member *member = &team->rows[r].kinds[k];
    const struct team_member *before = r ? &team->rows[r - 1].kinds[k] : NULL;
    return before && before->samples == member->samples &&
           before->plan.peak_bytes == member->plan.peak_bytes;
}

void team_print(const struct team *team)
{
    for (int k = 0; k < team->file.n_kinds; k++)
        line_print(stdout, "device %s: %" PRId64 " of a node, %s, share %g, %.0f %% measured",
                   team->file.kinds[k].name, team->file.kinds[k].count, team->facts[k].name,
                   team->file.kinds[k].share, 100 * team->rows[0].kinds[k].plan.measured_share);
    print_link("link inside a node", &team->file.inside);
    print_link("link between nodes", &team->file.between);
    printf("gradients: %.0f bytes in buckets: %d; optimizer: %s\n", team->rows[0].scaling.bytes,
           team->rows[0].scaling.buckets,
           team->rows[0].scaling.sharded ? "each its part" : "each all of it");
    print_rows(&team->rows[0].kinds[0].plan);
    print_times(team);
    printf("  %7s  %-24s %8s %11s %10s  %10s  %10s\n", "members", "device", "samples",
           "micro-batch", "update", "peak", "budget");
    for (int r = 0; r < team->n_rows; r++)
        for (int k = 0; k < team->file.n_kinds; k++)
            if (!is_told(team, r, k))
                print_member(team, &team->rows[r], k);
}

/* --- for machines --- */

static void add_exchanges(cJSON *object, const struct team_row *row)
{
    for (int e = 0; e < EXCHANGES; e++) {
        const struct scaled *of = &row->exchanges[e];
        cJSON *exchange = cJSON_AddObjectToObject(object, exchange_names[e]);
        cJSON_AddNumberToObject(exchange, "seconds", of->seconds);
        cJSON_AddNumberToObject(exchange, "exposed_seconds", of->exposed);
        cJSON_AddNumberToObject(exchange, "samples_per_second", team_rate(row, (enum exchange)e));
        cJSON_AddNumberToObject(exchange, "efficiency", team_efficiency(row, (enum exchange)e));
        cJSON_AddNumberToObject(exchange, "bytes_sent", of->sent);
        cJSON_AddNumberToObject(exchange, "bytes_between_nodes", of->crossing);
    }
}

static void add_devices(cJSON *list, const struct team *team, const struct team_row *row)
{
    for (int k = 0; k < team->file.n_kinds; k++) {
        const struct team_member *member = &row->kinds[k];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", team->file.kinds[k].name);
        cJSON_AddStringToObject(object, "device", team->facts[k].name);
        cJSON_AddNumberToObject(object, "samples", (double)member->samples);
        cJSON_AddNumberToObject(object, "micro_batch", (double)member->plan.micro_batch);
        cJSON_AddNumberToObject(object, "seconds", member->seconds);
        cJSON_AddNumberToObject(object, "measured_share", member->plan.measured_share);
        cJSON_AddNumberToObject(object, "peak_bytes_planned", (double)member->plan.peak_bytes);
        cJSON_AddNumberToObject(object, "optimizer_bytes",
                                (double)member->plan.bytes_by_tag[QN_TAG_OPTIMIZER]);
        cJSON_AddNumberToObject(object, "budget_bytes", (double)member->plan.budget_bytes);
        cJSON_AddItemToArray(list, object);
    }
}

cJSON *team_json(const struct team *team)
{
    cJSON *object = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(object, "teams");
    cJSON_AddNumberToObject(object, "gradient_bytes", team->rows[0].scaling.bytes);
    cJSON_AddNumberToObject(object, "row_bytes", (double)team->rows[0].kinds[0].plan.row_bytes);
    for (int r = 0; r < team->n_rows; r++) {
        const struct team_row *row = &team->rows[r];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "members", row->members);
        cJSON_AddNumberToObject(one, "nodes", row->scaling.nodes);
        cJSON_AddNumberToObject(one, "batch", (double)row->batch);
        cJSON_AddNumberToObject(one, "compute_seconds", row->scaling.compute);
        cJSON_AddNumberToObject(one, "backward_seconds", row->scaling.backward);
        add_exchanges(cJSON_AddObjectToObject(one, "exchanges"), row);
        add_devices(cJSON_AddArrayToObject(one, "devices"), team, row);
        cJSON_AddItemToArray(rows, one);
    }
    return object;
}
