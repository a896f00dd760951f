/* SPDX-License-Identifier: MIT */
#include "plan/search/flow.h"

#include <string.h>

enum { SOURCE, SINK };

bool qn_flow_open(struct qn_flow *flow, int nodes, int most_pipes, struct qn_arena *arena)
{
    const size_t n = (size_t)nodes;
    *flow = (struct qn_flow){
        .nodes = nodes,
        .pipes = qn_arena_new(arena, struct qn_pipe, 2 * (size_t)most_pipes + 1),
        .first = qn_arena_new(arena, int, n),
        .level = qn_arena_new(arena, int, n),
        .at = qn_arena_new(arena, int, n),
        .queue = qn_arena_new(arena, int, n),
    };
    return flow->pipes && flow->first && flow->level && flow->at && flow->queue;
}

void qn_flow_clear(struct qn_flow *flow)
{
    flow->n_pipes = 0;
    for (int node = 0; node < flow->nodes; node++)
        flow->first[node] = -1;
}

static void add_pipe(struct qn_flow *flow, int from, int to, int64_t room)
{
    flow->pipes[flow->n_pipes] = (struct qn_pipe){to, flow->first[from], room};
    flow->first[from] = flow->n_pipes++;
}

void qn_flow_add(struct qn_flow *flow, int from, int to, int64_t capacity)
{
    add_pipe(flow, from, to, capacity);
    add_pipe(flow, to, from, 0);
}

/* Fills in flow->level, breadth first. False when the sink is not reached. */
static bool find_levels(struct qn_flow *flow)
{
    int count = 0;
    for (int node = 0; node < flow->nodes; node++)
        flow->level[node] = -1;
    flow->level[SOURCE] = 0;
    flow->queue[count++] = SOURCE;
    for (int i = 0; i < count; i++) {
        const int node = flow->queue[i];
        for (int p = flow->first[node]; p >= 0; p = flow->pipes[p].next) {
            const int to = flow->pipes[p].to;
            if (flow->pipes[p].room > 0 && flow->level[to] < 0) {
                flow->level[to] = flow->level[node] + 1;
                flow->queue[count++] = to;
            }
        }
    }
    return flow->level[SINK] >= 0;
}

/* The next pipe of a node with room that leads to the next level; -1: none. */
static int next_pipe(struct qn_flow *flow, int node)
{
    int *at = &flow->at[node];
    while (*at >= 0 && (flow->pipes[*at].room <= 0 ||
                        flow->level[flow->pipes[*at].to] != flow->level[node] + 1))
        *at = flow->pipes[*at].next;
    return *at;
}

/* Sends the most that a path of pipes holds; gives the length of the path before its first full
 * pipe. */
static int fill(struct qn_flow *flow, const int *path, int length)
{
    int64_t room = INT64_MAX;
    int back = 0;
    for (int i = 0; i < length; i++)
        room = flow->pipes[path[i]].room < room ? flow->pipes[path[i]].room : room;
    for (int i = length - 1; i >= 0; i--) {
        flow->pipes[path[i]].room -= room;
        flow->pipes[path[i] ^ 1].room += room;
        back = flow->pipes[path[i]].room == 0 ? i : back;
    }
    return back;
}

/* Fills all shortest paths. `path` reuses the memory of flow->queue. */
static void fill_paths(struct qn_flow *flow)
{
    int *path = flow->queue;
    int length = 0;
    memcpy(flow->at, flow->first, (size_t)flow->nodes * sizeof *flow->at);
    for (;;) {
        const int node = length ? flow->pipes[path[length - 1]].to : SOURCE;
        const int pipe = node == SINK ? -1 : next_pipe(flow, node);
        if (node == SINK)
            length = fill(flow, path, length);
        else if (pipe >= 0)
            path[length++] = pipe;
        else if (!length)
            return;
        else
            flow->level[flow->pipes[path[--length]].to] = -1;
    }
}

void qn_flow_run(struct qn_flow *flow)
{
    while (find_levels(flow))
        fill_paths(flow);
}
