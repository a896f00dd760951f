/* SPDX-License-Identifier: MIT
 *
 * merges.txt, beside a vocab.json of four tokens.
 */
#include "fuzz.h"

#include <quern/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[4096], vocab[4128], merges[4128];

static void put(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static void remove_folder(void)
{
    unlink(vocab);
    unlink(merges);
    rmdir(folder);
}

static void make_folder(void)
{
    static const char tokens[] = "{\"a\": 0, \"b\": 1, \"ab\": 2, \"aab\": 3}";
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/quern-fuzz-XXXXXX", root ? root : P_tmpdir);
    if (!mkdtemp(folder) || atexit(remove_folder) != 0)
        abort();
    snprintf(vocab, sizeof vocab, "%s/vocab.json", folder);
    snprintf(merges, sizeof merges, "%s/merges.txt", folder);
    put(vocab, tokens, sizeof tokens - 1);
}

/* At least one id, and no more than letters. */
static qn_status take(void *user, const int32_t *ids, int64_t count)
{
    (void)user;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] > 3)
            abort();
    return count > 6 ? QN_ERR_INTERNAL : QN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const qn_encode_params params = {.fn = take};
    qn_tokenizer *tokenizer;
    if (!*folder)
        make_folder();
    put(merges, bytes, size);
    if (qn_tokenizer_open(&tokenizer, folder, NULL) != QN_OK)
        return 0;
    if (qn_tokenizer_encode(tokenizer, "aababb", 6, &params) != QN_OK)
        abort();
    qn_tokenizer_close(&tokenizer);
    return 0;
}
