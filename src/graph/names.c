/* SPDX-License-Identifier: MIT
 *
 * Nodes by name: a table with open addressing, filled as it is asked. A node that was renamed
 * stands in it twice; the place of its old name no longer fits, and is passed over.
 */
#include "base/text.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static size_t first_slot(const struct qn_node_names *names, const char *name)
{
    return (size_t)qn_hash(QN_HASH_START, name, strlen(name)) & (names->room - 1);
}

static void put(struct qn_node_names *names, const char *name, uint32_t number)
{
    size_t slot = first_slot(names, name);
    while (names->slots[slot])
        slot = (slot + 1) & (names->room - 1);
    names->slots[slot] = number;
    names->used++;
}

/* At least half of the places stay free. */
static bool grow(qn_graph *graph)
{
    struct qn_node_names *names = &graph->names;
    if (names->room >= 2 * (size_t)(names->used + 1))
        return true;
    const size_t room = names->room ? names->room * 2 : 256;
    uint32_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    free(names->slots);
    *names = (struct qn_node_names){.slots = slots, .room = room, .known = names->known};
    for (int n = 0; n < names->known; n++)
        put(names, graph->nodes[n].name, (uint32_t)n + 1);
    return true;
}

static int search(const qn_graph *graph, const char *name)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (strcmp(graph->nodes[n].name, name) == 0)
            return n;
    return -1;
}

int qn_graph_named(qn_graph *graph, const char *name)
{
    struct qn_node_names *names = &graph->names;
    while (names->known < graph->n_nodes) {
        if (!grow(graph))
            return search(graph, name);
        put(names, graph->nodes[names->known].name, (uint32_t)names->known + 1);
        names->known++;
    }
    for (size_t slot = names->room ? first_slot(names, name) : 0; names->room && names->slots[slot];
         slot = (slot + 1) & (names->room - 1))
        if (strcmp(graph->nodes[names->slots[slot] - 1].name, name) == 0)
            return (int)names->slots[slot] - 1;
    return -1;
}

void qn_graph_renamed(qn_graph *graph, int number)
{
    if (number >= graph->names.known)
        return;
    if (grow(graph)) {
        put(&graph->names, graph->nodes[number].name, (uint32_t)number + 1);
        return;
    }
    free(graph->names.slots);
    graph->names = (struct qn_node_names){0};
}
