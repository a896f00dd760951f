/* SPDX-License-Identifier: MIT */
#include "text/sink.h"

qn_status qn_sink_flush(struct qn_sink *sink)
{
    const int count = sink->count;
    sink->count = 0;
    return count ? sink->fn(sink->user, sink->ids, count) : QN_OK;
}

qn_status qn_sink_put(struct qn_sink *sink, int32_t id)
{
    sink->full = sink->left == 0;
    if (sink->full)
        return QN_ERR_INTERNAL;
    sink->left--;
    sink->ids[sink->count++] = id;
    const bool full = sink->count == sizeof sink->ids / sizeof *sink->ids;
    return full ? qn_sink_flush(sink) : QN_OK;
}
