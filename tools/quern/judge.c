/* SPDX-License-Identifier: MIT */
#include "judge.h"

int judge_check(const struct session *s)
{
    static const char *const keys[] = {"best", "patience", "plateau_patience"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct recipe_entry *entry = recipe_find(&s->recipe, "train", keys[i]);
        if (entry && !s->data.evaluated)
            return recipe_refuse(&s->recipe, entry, s->failure, "nothing is evaluated");
    }
    const int best = s->settings.train.best;
    return best < 0 || evaluation_has(s, (enum figure)best)
               ? CODE_DONE
               : recipe_refuse(&s->recipe, recipe_find(&s->recipe, "train", "best"), s->failure,
                               "is not measured of this data and model");
}

struct judge judge_open(const struct session *s)
{
    const struct train_settings *train = &s->settings.train;
    return (struct judge){train->best < 0 ? evaluation_default(s) : (enum figure)train->best,
                          train->improvement};
}

bool judge_take(struct judge *judge, const struct evaluation *evaluation, struct progress *progress)
{
    const double before = qn_improvement_scale(&judge->improvement);
    const bool better =
        qn_improvement_take(&judge->improvement, evaluation_score(evaluation, judge->figure));
    if (qn_improvement_scale(&judge->improvement) != before)
        progress_say(
            progress, "learning rate: x %.3g after %" PRId64 " evaluations without a better one",
            qn_improvement_scale(&judge->improvement), judge->improvement.plateau_patience);
    return better;
}

int judge_keep(const struct judge *judge, struct recipe *recipe, struct failure *failure)
{
    const qn_improvement *is = &judge->improvement;
    char text[128];
    snprintf(text, sizeof text, IMPROVEMENT_PRINT, is->seen, is->best, is->waited, is->flat,
             is->reductions);
    recipe_remove(recipe, "resume", "best_score");
    return recipe_put(recipe, "resume", "improvement", text, "", failure);
}
