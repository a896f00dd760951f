/* SPDX-License-Identifier: MIT
 *
 * The samples of an evaluation that one member sees, in their order, micro-batch by micro-batch.
 */
#ifndef QUERN_TOOL_PART_H
#define QUERN_TOOL_PART_H

#include "session.h"

struct part {
    qn_loader *loader;
    int64_t first;         /* of the samples, as qn_group_part has it */
    const qn_batch *batch; /* the present micro-batch, borrowed from the loader */
};

/* `session`: that of the member. May be called on a thread of its own. */
qn_status part_open(struct part *part, const struct session *session, const qn_dataset *dataset,
                    const qn_group_part *of);
/* A qn_fetch_fn whose user is a part. */
qn_status part_fetch(void *part, const char *input, int64_t first, int64_t count, void *rows);
/* Where a sample, as a qn_result_fn numbers it, stands in the dataset and in the micro-batch. */
int64_t part_sample(const struct part *part, int64_t sample);
int64_t part_row(const struct part *part, int64_t sample);
void part_close(struct part *part);

#endif
