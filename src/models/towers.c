/* SPDX-License-Identifier: MIT
 *
 * Networks that ship as the towers of a dual encoder.
 */
#include <quern/contrastive.h>

#include <math.h>

static const double LEAST = 1e-24; /* mean square of a vector that gets the length 1 */

/* So that dot products are cosines. */
static qn_tensor to_length_1(qn_graph *graph, qn_tensor x)
{
    const qn_rms_norm_params params = {.eps = LEAST};
    const int64_t features = qn_shape_of(graph, x).dim[1];
    x = qn_rms_norm(graph, x, (qn_tensor){0}, &params);
    return qn_scale(graph, x, 1 / sqrt((double)features));
}

/* Models that come as text may give anything. */
static void check_vectors(qn_graph *graph, const qn_tower *tower, qn_tensor x, int64_t each)
{
    const qn_shape shape = qn_shape_of(graph, x);
    if (qn_graph_status(graph) == QN_OK && (shape.rank != 2 || shape.dim[0] != each * QN_BATCH ||
                                            shape.dim[1] != tower->data.embedding))
        qn_graph_refuse(graph, "model %s: the output embedding of a tower is (batch, %d)",
                        tower->model, tower->data.embedding);
}

static qn_tensor put_tower(qn_graph *graph, const qn_tower *tower, const char *prefix, int64_t each,
                           const qn_towers *towers)
{
    const qn_scope scope = {prefix, towers->tied ? "" : NULL, each};
    qn_graph_begin_scope(graph, &scope);
    if (qn_graph_status(graph) == QN_OK)
        qn_model_build(graph, tower->model, &tower->data, tower->options, tower->n_options);
    const qn_tensor x = qn_graph_take_output(graph, "embedding");
    qn_graph_end_scope(graph);
    check_vectors(graph, tower, x, each);
    if (qn_graph_status(graph) != QN_OK)
        return (qn_tensor){0};
    return towers->dot ? x : to_length_1(graph, x);
}

qn_status qn_towers_build(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    const qn_towers *towers = user;
    if (!graph || !towers || !queries || !passages)
        return QN_ERR_ARGUMENT;
    if (towers->query.data.embedding < 1 ||
        towers->query.data.embedding != towers->passage.data.embedding)
        return qn_graph_refuse(graph, "towers: give vectors of one size, at least 1");
    if (towers->negatives < 0)
        return qn_graph_refuse(graph, "towers: %d negatives", towers->negatives);
    *queries = put_tower(graph, &towers->query, "query.", 1, towers);
    *passages = put_tower(graph, &towers->passage, "passage.", 1 + towers->negatives, towers);
    return qn_graph_status(graph);
}
