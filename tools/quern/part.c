/* SPDX-License-Identifier: MIT */
#include "part.h"

qn_status part_open(struct part *part, const struct session *s, const qn_dataset *dataset,
                    const qn_group_part *of)
{
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .position = of->first,
                                     .max_samples = qn_plan_facts(session_running(s))->micro_batch,
                                     .sequential = true};
    part->first = of->first;
    return qn_loader_open(&part->loader, dataset, &params);
}

qn_status part_fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct part *part = user;
    const qn_status status =
        qn_loader_fetch(part->loader, input, part_sample(part, first), count, rows);
    part->batch = qn_loader_batch(part->loader);
    return status;
}

int64_t part_sample(const struct part *part, int64_t sample)
{
    return part->first + sample;
}

int64_t part_row(const struct part *part, int64_t sample)
{
    return part_sample(part, sample) - part->batch->position;
}

void part_close(struct part *part)
{
    qn_loader_close(&part->loader);
}
