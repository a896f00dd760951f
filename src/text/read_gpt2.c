/* SPDX-License-Identifier: MIT
 *
 * vocab.json and merges.txt, as GPT-2 came.
 */
#include "base/log.h"
#include "io/file.h"
#include "io/path.h"
#include "text/tokenizer.h"
#include "text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 26, WHERE_BYTES = 48 };

/* The lines "a b" of merges.txt; "#version: 0.2" may stand before them. */
static qn_status read_lines(struct qn_tokenizer *t, const char *path, const char *text, size_t size)
{
    int32_t rank = 0;
    int number = 1;
    for (const char *line = text, *end; line < text + size; line = end + 1, number++) {
        char where[WHERE_BYTES];
        end = memchr(line, '\n', (size_t)(text + size - line));
        end = end ? end : text + size;
        const char *last = end > line && end[-1] == '\r' ? end - 1 : end;
        const size_t length = (size_t)(last - line);
        if (length >= 8 && memcmp(line, "#version", 8) == 0)
            continue;
        const char *blank = memchr(line, ' ', length);
        snprintf(where, sizeof where, "line %d", number);
        if (!blank || memchr(blank + 1, ' ', (size_t)(last - blank - 1)))
            return qn_fail(&t->log, QN_ERR_FORMAT, "%s: %s: is not \"a b\"", path, where);
        QN_TRY(qn_read_merge(t, path, where, line, (size_t)(blank - line), blank + 1,
                             (size_t)(last - blank - 1), rank++));
    }
    return QN_OK;
}

static qn_status read_merges(struct qn_tokenizer *t, const char *path)
{
    char *text;
    size_t size;
    QN_TRY(qn_file_read(path, LARGEST_FILE, &text, &size, &t->log));
    const qn_status status = read_lines(t, path, text, size);
    free(text);
    return status;
}

/* merges.txt beside the file; the caller frees. NULL: out of memory. */
static char *beside(const char *path)
{
    char *folder = qn_path_folder(path);
    char *merges = folder ? qn_path_join(folder, "merges.txt") : NULL;
    free(folder);
    return merges;
}

qn_status qn_tokenizer_read_gpt2(struct qn_tokenizer *t, const struct qn_json *json)
{
    t->kind = QN_BPE;
    t->bpe.unknown = -1;
    QN_TRY(qn_read_vocab(t, json, json->root, "vocabulary"));
    QN_TRY(qn_read_special(t, "<|endoftext|>"));
    qn_bpe_bytes(&t->bpe, &t->vocab);
    char *merges = beside(json->path);
    const qn_status status = merges ? read_merges(t, merges) : qn_fail_memory(&t->log, t->path);
    free(merges);
    QN_TRY(status);
    return qn_pattern_open(&t->pattern, qn_pattern_gpt2, strlen(qn_pattern_gpt2), t->path,
                           "GPT-2's pattern", &t->log);
}
