/* SPDX-License-Identifier: MIT
 *
 * The splits of a file of rows.
 */
#include "base/log.h"
#include "data/source.h"

#include <inttypes.h>

qn_status qn_divide(struct qn_division *d, const struct qn_log *log)
{
    const int64_t held = (int64_t)(d->held_out * (double)d->count);
    const bool test = d->split == QN_SPLIT_TEST;
    d->samples = test ? held : d->count - held;
    d->first = test ? d->count - held : 0;
    if (d->samples < 1)
        return qn_fail(log, QN_ERR_FORMAT, "%s: of %" PRId64 " %s none is held out", d->path,
                       d->count, d->rows);
    return d->samples <= UINT32_MAX
               ? QN_OK
               : qn_fail(log, QN_ERR_FORMAT, "%s: more than 2^32 - 1 %s", d->path, d->rows);
}
