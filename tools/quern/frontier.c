/* SPDX-License-Identifier: MIT */
#include "frontier.h"

#include <inttypes.h>
#include <stdlib.h>

int frontier_read(struct frontier *f, const qn_plan *plan, struct failure *failure)
{
    f->count = qn_plan_frontier(plan, NULL, 0);
    f->points = calloc((size_t)f->count, sizeof *f->points);
    if (!f->points)
        return failure_set(failure, CODE_FAILED, "out of memory");
    qn_plan_frontier(plan, f->points, f->count);
    return CODE_DONE;
}

bool frontier_is_at(const struct frontier *f, int point, int64_t budget)
{
    return f->points[point].bytes <= budget &&
           (point + 1 == f->count || f->points[point + 1].bytes > budget);
}

void frontier_json(FILE *out, const struct frontier *f)
{
    for (int i = 0; i < f->count; i++)
        fprintf(out,
                "%s{\"bytes\": %" PRId64 ", \"seconds\": %.9g, \"micro_batch\": %" PRId64
                ", \"recomputed_steps\": %d, \"early_updates\": %s, \"parked_bytes\": %" PRId64
                "}%s",
                i ? " " : "[", f->points[i].bytes, f->points[i].seconds, f->points[i].micro_batch,
                f->points[i].recomputed_steps, f->points[i].early_updates ? "true" : "false",
                f->points[i].parked_bytes, i + 1 < f->count ? ",\n" : "]");
}
