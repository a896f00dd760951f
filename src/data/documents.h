/* SPDX-License-Identifier: MIT
 *
 * Documents of a file of tokens as samples of different length: where a separator stands, one ends.
 */
#ifndef QN_DATA_DOCUMENTS_H
#define QN_DATA_DOCUMENTS_H

#include "io/tokens.h"

#include <quern/data.h>

/* The tokens of a document, or of a part of one. */
struct qn_piece {
    int64_t first, count;
};

/* A zeroed struct is none. Thread-safety: Safe once found. Lifetime: until qn_documents_free. */
struct qn_documents {
    struct qn_piece *pieces;
    int64_t count, room;
    int64_t lengths[QN_MAX_LENGTHS]; /* rising */
    int n_lengths;
};

/* Which tokens of a file are meant. */
struct qn_document_range {
    int64_t first, end;
    int64_t separator;
    int64_t behind; /* tokens behind a sample that are its labels: 0 or 1, within the range */
};

/* Reads the range once and lists its documents, those longer than the last length in parts, of
 * which each begins where the one before ended. Documents without a token are none. QN_ERR_FORMAT:
 * the file has become shorter, or has more than 2^32 - 1 of them; QN_ERR_MEMORY. */
qn_status qn_documents_find(struct qn_documents *documents, const struct qn_token_file *file,
                            const struct qn_document_range *range, const struct qn_log *log);
/* The number of the shortest length that holds a piece; without lengths 0. */
int qn_documents_bucket(const struct qn_documents *documents, int64_t piece);
void qn_documents_free(struct qn_documents *documents);

#endif
