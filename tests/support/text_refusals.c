/* SPDX-License-Identifier: MIT
 *
 * Tokenizers are opened, used, also by a dataset of JSON lines, and made in spite of a refused
 * allocation, or QN_ERR_MEMORY says so in one line: run N refuses the Nth call of the library (see
 * refusals.c). The folder of the golden files is the argument. No device.
 */
#include "refuse.h"
#include <quern/data.h>
#include <quern/text.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "We'll cross the RIVER.\n\n  1987 \xff 12 [SEP] Gr\xc3\xb6\xc3\x9f"
                           "e";
static const char made[] = "quern-test-refused.json"; /* in the current folder */

/* Also there. */
static const char samples[] = "quern-test-refused.jsonl";
static const char json[] = "{\"text\": \"We'll cross\", \"kind\": \"b\"}\n"
                           "{\"text\": \"the RIVER.\", \"kind\": \"a\"}\n"
                           "{\"text\": \"1987\", \"kind\": \"b\"}\n";

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

static qn_status read_rows(const qn_dataset *dataset, uint64_t *sum)
{
    const qn_loader_params params = {.log = counting, .max_samples = 3, .sequential = true};
    qn_loader *loader = NULL;
    qn_batch batch;
    qn_status status = qn_loader_open(&loader, dataset, &params);
    if (status == QN_OK)
        status = qn_loader_next(loader, 3, &batch);
    if (status == QN_OK) {
        mix_ids(sum, qn_batch_column(&batch, "tokens")->data, 3 * 8);
        mix_ids(sum, qn_batch_column(&batch, "labels")->data, 3);
    }
    qn_loader_close(&loader);
    return status;
}

static qn_status read_lines(const qn_tokenizer *tokenizer, uint64_t *sum)
{
    const qn_json_line_params params = {
        .log = counting, .path = samples, .label = "kind", .tokenizer = tokenizer, .length = 8};
    qn_dataset *dataset = NULL;
    qn_status status = qn_dataset_open_json_lines(&dataset, &params);
    if (status == QN_OK)
        status = read_rows(dataset, sum);
    qn_dataset_close(&dataset);
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
    if (status == QN_OK)
        status = read_lines(tokenizer, sum);
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

static void put_samples(void)
{
    FILE *file = fopen(samples, "w");
    if (!file || fputs(json, file) < 0 || fclose(file) != 0)
        abort();
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    uint64_t first, sum;
    long passed = 0, failed = 0;
    put_samples();
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
    failed += unlink(made) != 0 || unlink(samples) != 0;
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
