/* SPDX-License-Identifier: MIT */
#include "named.h"
#include "value.h"

#include <string.h>

/* What the graph says begins with the name of a function: "qn_freeze_named: ". */
static int check(const qn_graph *graph, const char *key, const struct recipe *recipe,
                 struct failure *failure)
{
    if (qn_graph_status(graph) == QN_OK)
        return CODE_DONE;
    const char *text = qn_graph_error(graph), *reason = strstr(text, ": ");
    return recipe_refuse(recipe, recipe_find(recipe, "train", key), failure, "%s",
                         reason ? reason + 2 : text);
}

static bool any_trained(const qn_graph *graph)
{
    qn_tensor parameter;
    for (int i = 0; qn_graph_parameter(graph, i, &parameter); i++)
        if (!qn_frozen(graph, parameter))
            return true;
    return false;
}

int named_apply(qn_graph *graph, const struct settings *settings, const struct recipe *recipe,
                struct failure *failure)
{
    const struct train_settings *train = &settings->train;
    const struct {
        const char *key, *list;
        void (*scale)(qn_graph *, const char *, double);
    } scaled[] = {{"rates", train->rates, qn_scale_rate},
                  {"decays", train->decays, qn_scale_decay}};
    qn_freeze_named(graph, train->freeze);
    TRY(check(graph, "freeze", recipe, failure));
    if (train->freeze && !any_trained(graph))
        return recipe_refuse(recipe, recipe_find(recipe, "train", "freeze"), failure,
                             "leaves nothing to be trained");
    for (int i = 0; i < 2; i++) {
        struct factor factor;
        for (const char *at = scaled[i].list; at && *at;) {
            if (value_factor(&at, &factor))
                break;
            scaled[i].scale(graph, factor.pattern, factor.factor);
        }
        TRY(check(graph, scaled[i].key, recipe, failure));
    }
    return CODE_DONE;
}
