/* SPDX-License-Identifier: MIT
 *
 * Tokenizers are opened, used and made in spite of a refused allocation, or QN_ERR_MEMORY says so
 * in one line: run N refuses the Nth call of the library (see refusals.c). The folder of the golden
 * files is the argument. No device.
 */
#include "refuse.h"
#include <quern/text.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "We'll cross the RIVER.\n\n  1987 \xff 12 [SEP] Gr\xc3\xb6\xc3\x9f"
                           "e";
static const char made[] = "quern-test-refused.json"; /* in the current folder */

static int lines;

static void count_line(void *user, qn_log_level level, const char *line)
{
    (void)user;
    (void)line;
    lines += level == QN_LOG_ERROR;
}

static const qn_log counting = {count_line, NULL, QN_LOG_ERROR};

static qn_status mix_ids(void *user, const int32_t *ids, int64_t count)
{
    uint64_t *sum = user;
    for (int64_t i = 0; i < count; i++)
        *sum = (*sum ^ (uint32_t)ids[i]) * UINT64_C(0x100000001b3);
    return QN_OK;
}

static qn_status use(const qn_tokenizer *tokenizer, uint64_t *sum)
{
    const qn_encode_params params = {.frame = true, .fn = mix_ids, .user = sum};
    const int32_t ids[] = {1, 5, 7};
    char *decoded = NULL;
    size_t size = 0;
    qn_status status = qn_tokenizer_encode(tokenizer, text, sizeof text - 1, &params);
    if (status == QN_OK)
        status = qn_tokenizer_decode(tokenizer, ids, 3, &decoded, &size);
    for (size_t i = 0; i < size; i++)
        mix_ids(sum, &(int32_t){decoded[i]}, 1);
    qn_free(decoded);
    return status;
}

static qn_status open_and_use(const char *folder, const char *name, uint64_t *sum)
{
    char path[512];
    qn_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    qn_status status = qn_tokenizer_open(&tokenizer, path, &counting);
    if (status == QN_OK)
        status = use(tokenizer, sum);
    qn_tokenizer_close(&tokenizer);
    return status;
}

static qn_status do_all(const char *folder, uint64_t *sum)
{
    static const char *const names[] = {"llama3.json", "bert.json", "gpt2"};
    const qn_tokenizer_train_params params = {
        .log = counting, .path = made, .text = text, .size = sizeof text - 1, .vocabulary = 270};
    qn_status status = QN_OK;
    *sum = 1;
    lines = 0;
    for (int i = 0; i < 3 && status == QN_OK; i++)
        status = open_and_use(folder, names[i], sum);
    return status == QN_OK ? qn_tokenizer_train(&params, NULL) : status;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    uint64_t first, sum;
    long passed = 0, failed = 0;
    refuse_call(0);
    failed += do_all(folder, &first) != QN_OK;
    for (long n = 1, total = calls_made(); n <= total; n++) {
        refuse_call(n);
        qn_status status = do_all(folder, &sum);
        bool good = status == QN_OK ? sum == first : status == QN_ERR_MEMORY && lines == 1;
        if (!good)
            printf("call %ld refused: %s, %d lines: %s\n", n, qn_status_name(status), lines,
                   qn_last_error());
        passed += good;
        failed += !good;
    }
    refuse_call(0);
    failed += unlink(made) != 0;
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
