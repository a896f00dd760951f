/* SPDX-License-Identifier: MIT
 *
 * What a model that was trained on rows of numbers looks at: names of columns, and by what they are
 * standardised.
 */
#ifndef QUERN_TOOL_FEATURE_LIST_H
#define QUERN_TOOL_FEATURE_LIST_H

#include "failure.h"

#include <quern/data.h>

/* A zeroed struct is none. */
struct features {
    int64_t count;
    char **name;             /* (count) */
    float *mean, *deviation; /* (count) both; of features that are not standardised 0 and 1 */
};

/* Room for so many, without names, not standardised. */
int features_make(struct features *features, int64_t count, struct failure *failure);
/* The column "features" of a dataset; numbers from 0 on where the file has no names. */
int features_copy(struct features *features, const qn_dataset *dataset, struct failure *failure);
void features_free(struct features *features);

#endif
