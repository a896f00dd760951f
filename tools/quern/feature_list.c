/* SPDX-License-Identifier: MIT */
#include "feature_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int features_make(struct features *features, int64_t count, struct failure *failure)
{
    const size_t room = (size_t)count + 1;
    *features = (struct features){.count = count,
                                  .name = calloc(room, sizeof *features->name),
                                  .mean = calloc(room, sizeof(float)),
                                  .deviation = calloc(room, sizeof(float))};
    if (!features->name || !features->mean || !features->deviation) {
        features_free(features);
        return failure_set(failure, CODE_FAILED, "out of memory");
    }
    for (int64_t i = 0; i < count; i++)
        features->deviation[i] = 1;
    return CODE_DONE;
}

int features_copy(struct features *features, const qn_dataset *dataset, struct failure *failure)
{
    TRY(features_make(features, qn_dataset_column(dataset, "features")->shape.dim[0], failure));
    for (int64_t i = 0; i < features->count; i++) {
        char number[24];
        const char *name = qn_csv_feature(dataset, i);
        snprintf(number, sizeof number, "%lld", (long long)i);
        features->name[i] = strdup(name ? name : number);
        if (!features->name[i])
            return failure_set(failure, CODE_FAILED, "out of memory");
    }
    return CODE_DONE;
}

void features_free(struct features *features)
{
    for (int64_t i = 0; features->name && i < features->count; i++)
        free(features->name[i]);
    free(features->name);
    free(features->mean);
    free(features->deviation);
    *features = (struct features){0};
}
