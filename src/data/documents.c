/* SPDX-License-Identifier: MIT */
#include "data/documents.h"
#include "base/log.h"

#include <stdlib.h>

enum { READ = 1 << 14, FIRST_ROOM = 1024 };

struct finding {
    struct qn_documents *documents;
    const struct qn_token_file *file;
    const struct qn_document_range *range;
    const struct qn_log *log;
};

static qn_status make_room(const struct finding *f)
{
    struct qn_documents *d = f->documents;
    if (d->count == UINT32_MAX)
        return qn_fail(f->log, QN_ERR_FORMAT, "%s: more than 2^32 - 1 documents", f->file->path);
    if (d->count < d->room)
        return QN_OK;
    const int64_t room = d->room ? 2 * d->room : FIRST_ROOM;
    struct qn_piece *pieces = realloc(d->pieces, (size_t)room * sizeof *pieces);
    if (!pieces)
        return qn_fail(f->log, QN_ERR_MEMORY, "%s: no memory for %lld documents", f->file->path,
                       (long long)room);
    d->pieces = pieces;
    d->room = room;
    return QN_OK;
}

/* The document of tokens first .. end - 1, in parts. */
static qn_status add_document(const struct finding *f, int64_t first, int64_t end)
{
    struct qn_documents *d = f->documents;
    const int64_t longest = d->lengths[d->n_lengths - 1];
    for (; first < end; first += longest) {
        const int64_t count = end - first < longest ? end - first : longest;
        QN_TRY(make_room(f));
        d->pieces[d->count++] = (struct qn_piece){first, count};
    }
    return QN_OK;
}

/* What stands behind the last separator has no token behind it. */
static qn_status find_all(const struct finding *f)
{
    static const int64_t most = READ;
    int32_t tokens[READ];
    int64_t begin = f->range->first;
    for (int64_t at = begin; at < f->range->end; at += most) {
        const int64_t left = f->range->end - at, count = left < most ? left : most;
        QN_TRY(qn_token_file_read(f->file, at, count, tokens, f->log));
        for (int64_t i = 0; i < count; i++) {
            if (tokens[i] != f->range->separator)
                continue;
            QN_TRY(add_document(f, begin, at + i));
            begin = at + i + 1;
        }
    }
    return add_document(f, begin, f->range->end - f->range->behind);
}

qn_status qn_documents_find(struct qn_documents *documents, const struct qn_token_file *file,
                            const struct qn_document_range *range, const struct qn_log *log)
{
    return find_all(&(struct finding){documents, file, range, log});
}

int qn_documents_bucket(const struct qn_documents *documents, int64_t piece)
{
    int bucket = 0;
    while (bucket + 1 < documents->n_lengths &&
           documents->lengths[bucket] < documents->pieces[piece].count)
        bucket++;
    return bucket;
}

void qn_documents_free(struct qn_documents *documents)
{
    free(documents->pieces);
    documents->pieces = NULL;
    documents->count = documents->room = 0;
}
