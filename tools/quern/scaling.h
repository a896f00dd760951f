/* SPDX-License-Identifier: MIT
 *
 * What an update of many members takes, by what it takes a single one and what links carry. Nothing
 * is measured here.
 *
 * The gradient is cut into buckets, which are on their way one after another: sums are made of the
 * parts that members send, each part by its owner, and what results goes from the owners to all. A
 * bucket begins when the backward pass has made it, so what one link carries meanwhile costs
 * nothing; the last bucket can only follow. Where members share the optimizer the second half
 * begins after the update.
 *
 * Where every member computes a loss of all samples, rows of all of them go to all before that, the
 * way in which results go, and nothing is computed meanwhile.
 */
#ifndef QUERN_TOOL_SCALING_H
#define QUERN_TOOL_SCALING_H

#include <stdbool.h>
#include <stdint.h>

/* One direction of it. */
struct link {
    double bandwidth; /* bytes per second */
    double latency;   /* seconds until a message is there */
    double overhead;  /* seconds of the sender for each message, besides its bytes */
};

struct scaling {
    int nodes, per_node; /* members of each */
    struct link inside;  /* of a member to the others of its node; with per_node = 1: none */
    struct link between; /* of a node to the others, which its members share; of one node: none */
    double compute;      /* seconds of a whole update of the slowest member by itself */
    double backward;     /* of these: of the last micro-step's backward pass */
    double bytes;        /* of the gradients in f32 */
    double returned;     /* of what goes from owners to all: as many, of the sums; or parameters */
    int buckets;
    double rows;   /* bytes of rows, if all members had as many samples as the one with the most */
    int row_cells; /* cells that have them, one after another; 0: there are none */
    bool sharded;  /* the optimizer: each member updates what it owns and sends that */
};

enum exchange {
    EXCHANGE_DIRECT,       /* every member sends each owner its part (group.h) */
    EXCHANGE_RING,         /* parts go from member to member, once around */
    EXCHANGE_HIERARCHICAL, /* first within nodes, then between members of the same place in them */
    EXCHANGES,
};
extern const char *const exchange_names[EXCHANGES];

struct scaled {
    double seconds;  /* of an update */
    double exposed;  /* of these: added by the exchange */
    double sent;     /* bytes that a member sends in an update */
    double crossing; /* bytes that leave a node in an update */
};

struct scaled scaling_predict(const struct scaling *team, enum exchange exchange);

#endif
