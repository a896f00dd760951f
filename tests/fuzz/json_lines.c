/* SPDX-License-Identifier: MIT
 *
 * JSON lines: what becomes a dataset has rows with a length and a label each, and the texts that it
 * is made of.
 */
#include "file.h"
#include "fuzz.h"

#include <quern/data.h>

enum { LENGTH = 8 };

static qn_status count_text(void *user, const char *text, size_t size)
{
    if (text[size])
        abort();
    ++*(int64_t *)user;
    return QN_OK;
}

static void check_batch(const qn_batch *batch, int64_t classes)
{
    const int32_t *tokens = qn_batch_column(batch, "tokens")->data;
    const int32_t *lengths = qn_batch_column(batch, "lengths")->data;
    const int32_t *labels = qn_batch_column(batch, "labels")->data;
    for (int64_t i = 0; i < batch->samples; i++) {
        if (lengths[i] < 1 || lengths[i] > LENGTH || labels[i] < 0 || labels[i] >= classes)
            abort();
        for (int64_t k = 0; k < LENGTH; k++)
            if ((tokens[i * LENGTH + k] == 0) != (k >= lengths[i]))
                abort();
    }
}

static void read_all(const qn_dataset *dataset, const char *path)
{
    const int64_t count = qn_dataset_describe(dataset)->count;
    const qn_loader_params params = {.max_samples = count, .sequential = true};
    int64_t texts = 0;
    qn_loader *loader;
    qn_batch batch;
    if (qn_loader_open(&loader, dataset, &params) != QN_OK ||
        qn_loader_next(loader, count, &batch) != QN_OK)
        abort();
    check_batch(&batch, qn_dataset_column(dataset, "labels")->classes);
    qn_loader_close(&loader);
    if (qn_json_lines_texts(path, "text", count_text, &texts, NULL) != QN_OK || texts != count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const qn_json_line_params params = {
        .path = fuzz_file(bytes, size), .label = "kind", .length = LENGTH};
    qn_dataset *dataset = NULL;
    if (qn_dataset_open_json_lines(&dataset, &params) != QN_OK)
        return 0;
    read_all(dataset, params.path);
    qn_dataset_close(&dataset);
    return 0;
}
