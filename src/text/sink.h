/* SPDX-License-Identifier: MIT
 *
 * Ids on their way to the caller of an encoding, collected to parts of some thousand.
 */
#ifndef QN_TEXT_SINK_H
#define QN_TEXT_SINK_H

#include <quern/text.h>

struct qn_sink {
    qn_ids_fn fn;
    void *user;
    const struct qn_log *log;
    const char *path; /* of the tokenizer, for messages */
    int64_t left;     /* ids that are still taken */
    bool full;        /* there were more */
    int count;
    int32_t ids[4096];
};

/* QN_ERR_INTERNAL, without a line in the log: the sink is full. */
qn_status qn_sink_put(struct qn_sink *sink, int32_t id);
/* Hands over what is collected. */
qn_status qn_sink_flush(struct qn_sink *sink);

#endif
