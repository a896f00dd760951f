/* SPDX-License-Identifier: MIT */
#include "scaling.h"

#include <math.h>

const char *const exchange_names[EXCHANGES] = {"direct", "ring", "hierarchical"};

/* One half of an exchange: parts to owners, or results to all. */
struct half {
    double flow;           /* seconds that the busiest link has to do */
    double bucket;         /* seconds of the last bucket alone */
    double latency;        /* seconds from the last byte sent until the last one is there */
    double sent, crossing; /* bytes: by a member within its node and beyond; by a node */
};

/* Seconds in which a member sends messages of so many bytes each in every bucket, where `sharing`
 * members use the link together. */
static double busy(const struct scaling *team, const struct link *link, double messages,
                   double bytes, int sharing)
{
    return messages > 0
               ? messages * (team->buckets * link->overhead + bytes * sharing / link->bandwidth)
               : 0;
}

static double slower(const struct scaling *team, double inside, double between)
{
    return fmax(team->per_node > 1 ? inside : 0, team->nodes > 1 ? between : 0);
}

static struct half direct(const struct scaling *team, double bytes)
{
    const int near = team->per_node - 1, far = (team->nodes - 1) * team->per_node;
    const double part = bytes / (near + far + 1);
    const double flow = fmax(busy(team, &team->inside, near, part, 1),
                             busy(team, &team->between, far, part, team->per_node));
    return (struct half){.flow = flow,
                         .bucket = flow / team->buckets,
                         .latency = slower(team, team->inside.latency, team->between.latency),
                         .sent = part * (near + far),
                         .crossing = part * far * team->per_node};
}

/* Every member sends to one other, one of each node to the next node. Of the steps that follow one
 * another as many are between nodes as there are nodes. */
static struct half ring(const struct scaling *team, double bytes)
{
    const int steps = team->nodes * team->per_node - 1;
    const int crossing = team->nodes == 1 ? 0 : team->nodes < steps ? team->nodes : steps;
    const double part = bytes / (steps + 1);
    const double flow = slower(team, busy(team, &team->inside, steps, part, 1),
                               busy(team, &team->between, steps, part, 1));
    return (struct half){.flow = flow,
                         .bucket = flow / team->buckets,
                         .latency = (steps - crossing) * team->inside.latency +
                                    crossing * team->between.latency,
                         .sent = part * steps,
                         .crossing = crossing ? part * steps : 0};
}

/* A bucket is within nodes first, then between them; meanwhile others are where it was. */
static struct half hierarchical(const struct scaling *team, double bytes)
{
    const int near = team->per_node - 1, far = team->nodes - 1;
    const double part = bytes / team->per_node, smaller = part / team->nodes;
    const double inside = busy(team, &team->inside, near, part, 1);
    const double between = busy(team, &team->between, far, smaller, team->per_node);
    return (struct half){.flow = fmax(inside, between),
                         .bucket = (inside + between) / team->buckets,
                         .latency =
                             (near ? team->inside.latency : 0) + (far ? team->between.latency : 0),
                         .sent = part * near + smaller * far,
                         .crossing = smaller * far * team->per_node};
}

static struct half half_of(const struct scaling *team, enum exchange exchange, double bytes)
{
    return exchange == EXCHANGE_RING           ? ring(team, bytes)
           : exchange == EXCHANGE_HIERARCHICAL ? hierarchical(team, bytes)
                                               : direct(team, bytes);
}

/* Of which all buckets are on their way at the same time. */
static struct half both(const struct half *parts, const struct half *results)
{
    return (struct half){.flow = parts->flow + results->flow,
                         .bucket = parts->bucket + results->bucket,
                         .latency = parts->latency + results->latency,
                         .sent = parts->sent + results->sent,
                         .crossing = parts->crossing + results->crossing};
}

/* Numbers that members tell all others: loss weights before the first backward pass; with a sharded
 * optimizer the norms of what each owns. */
static double told(const struct scaling *team)
{
    const int near = team->per_node - 1, far = (team->nodes - 1) * team->per_node;
    return slower(team, team->inside.latency, team->between.latency) +
           near * team->inside.overhead + far * team->between.overhead;
}

/* By itself: the busiest link carries all buckets, and the last one has to arrive. */
static double whole(const struct scaling *team, const struct half *half)
{
    return half->flow * (1 - 1.0 / team->buckets) + half->bucket;
}

/* What is left when the backward pass is over, which made the first bucket after its part of the
 * time: the last bucket at least. */
static double behind_backward(const struct scaling *team, const struct half *half)
{
    const double beside = team->backward * (1 - 1.0 / team->buckets);
    return fmax(whole(team, half) - beside, half->bucket) + half->latency;
}

/* Of the rows: each cell is what a bucket is of gradients, and the next one waits for it. */
static struct half half_of_rows(const struct scaling *team, enum exchange exchange)
{
    struct scaling rows = *team;
    rows.buckets = team->row_cells;
    return team->row_cells ? half_of(&rows, exchange, team->rows) : (struct half){0};
}

struct scaled scaling_predict(const struct scaling *team, enum exchange exchange)
{
    if (team->nodes * team->per_node < 2)
        return (struct scaled){.seconds = team->compute};
    const struct half parts = half_of(team, exchange, team->bytes);
    const struct half results = half_of(team, exchange, team->returned);
    const struct half rows = half_of_rows(team, exchange);
    const struct half all = both(&parts, &results);
    const double before = team->row_cells * (rows.bucket + rows.latency);
    const double after = team->sharded ? 2 * told(team) + behind_backward(team, &parts) +
                                             whole(team, &results) + results.latency
                                       : told(team) + behind_backward(team, &all);
    return (struct scaled){.seconds = team->compute + before + after,
                           .exposed = before + after,
                           .sent = all.sent + rows.sent,
                           .crossing = all.crossing + rows.crossing};
}
