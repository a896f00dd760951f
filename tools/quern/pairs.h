/* SPDX-License-Identifier: MIT
 *
 * The data of a dual encoder: queries and passages, of which pairs are made, and hard negatives.
 */
#ifndef QUERN_TOOL_PAIRS_H
#define QUERN_TOOL_PAIRS_H

#include "data.h"

enum side { SIDE_QUERIES, SIDE_PASSAGES, SIDE_NEGATIVES, SIDES };

struct pairs {
    struct settings settings[SIDES]; /* as they are of each side alone */
    struct data side[SIDES];
    int negatives;              /* hard ones of each pair */
    qn_dataset *half[SIDES][2]; /* of each side's images, to train with and to test; NULL: whole */
    qn_dataset *all;            /* pairs before parts are kept for tests and validation */
    qn_dataset *rest;           /* without those for tests; NULL: files of their own are */
};

/* Opens all sides and fills in train, test, validation and evaluated. `data->model` is that of
 * queries, without classes. */
int pairs_open(struct data *data, const struct settings *settings, const struct recipe *recipe,
               struct failure *failure);
/* All pairs of the file or files that are trained with, by the numbers that are their ids. */
qn_dataset *pairs_all(const struct data *data);
const struct text *pairs_text(const struct pairs *pairs);
/* Frees and sets to NULL. */
void pairs_close(struct pairs **pairs);

#endif
