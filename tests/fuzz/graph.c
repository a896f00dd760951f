/* SPDX-License-Identifier: MIT
 *
 * Graph files: what is read is written, and read again as the same.
 */
#include "fuzz.h"

#include <quern/graph_file.h>

static qn_graph *read_text(const char *text)
{
    qn_graph *graph = NULL;
    if (qn_graph_create(&graph, NULL) != QN_OK)
        abort();
    qn_graph_read(graph, text, "fuzz");
    return graph;
}

/* What is said of nodes ends, and the text of the text is the same. Constants and chains may be too
 * long for a line. */
static void check_again(const qn_graph *graph)
{
    int count;
    qn_free(qn_graph_nodes(graph, &count));
    char *text = qn_graph_write(graph, NULL);
    if (!text)
        return;
    qn_graph *again = read_text(text);
    char *second = qn_graph_write(again, NULL);
    if (!second || strcmp(text, second) != 0)
        abort();
    qn_graph_destroy(&again);
    qn_free(text);
    qn_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    qn_graph *graph = read_text(text);
    if (qn_graph_status(graph) == QN_OK)
        check_again(graph);
    else if (!*qn_graph_error(graph))
        abort();
    qn_graph_destroy(&graph);
    free(text);
    return 0;
}
