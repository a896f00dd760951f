/* SPDX-License-Identifier: MIT
 *
 * CSV files: once with a column of names, once with one of zeros and ones.
 */
#include "file.h"
#include "fuzz.h"

#include <math.h>
#include <quern/data.h>

static void check_numbers(const qn_batch *batch, const char *name)
{
    const qn_column *column = qn_batch_column(batch, name);
    const float *value = column->data;
    const int64_t numbers = batch->samples * qn_column_bytes(column) / (int64_t)sizeof *value;
    for (int64_t i = 0; i < numbers; i++)
        if (!isfinite(value[i]) || (*name == 't' && value[i] != 0 && value[i] != 1))
            abort();
}

static void check_labels(const qn_batch *batch)
{
    const qn_column *column = qn_batch_column(batch, "labels");
    const int32_t *label = column->data;
    for (int64_t i = 0; i < batch->samples; i++)
        if (label[i] < 0 || label[i] >= column->classes || !*column->class_names[label[i]])
            abort();
}

static void read_all(const qn_dataset *dataset, bool labelled)
{
    const int64_t count = qn_dataset_describe(dataset)->count;
    const qn_loader_params params = {.max_samples = count, .sequential = true};
    const int64_t width = qn_dataset_column(dataset, "features")->shape.dim[0];
    qn_loader *loader;
    qn_batch batch;
    if (qn_loader_open(&loader, dataset, &params) != QN_OK ||
        qn_loader_next(loader, count, &batch) != QN_OK)
        abort();
    check_numbers(&batch, "features");
    if (labelled)
        check_labels(&batch);
    else
        check_numbers(&batch, "targets");
    qn_loader_close(&loader);
    if (!*qn_csv_feature(dataset, width - 1) || qn_csv_feature(dataset, width))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const targets[] = {"kind"};
    const char *path = fuzz_file(bytes, size);
    const qn_csv_params params[] = {
        {.path = path, .label = "kind"},
        {.path = path, .n_targets = 1, .targets = targets, .binary = true},
    };
    for (int i = 0; i < 2; i++) {
        qn_dataset *dataset = NULL;
        if (qn_dataset_open_csv(&dataset, &params[i]) != QN_OK)
            continue;
        read_all(dataset, params[i].label != NULL);
        qn_dataset_close(&dataset);
    }
    return 0;
}
