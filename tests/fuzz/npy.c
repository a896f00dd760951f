/* SPDX-License-Identifier: MIT
 *
 * npy files: as samples alone, and as samples with themselves as labels or as zeros and ones.
 */
#include "file.h"
#include "fuzz.h"

#include <math.h>
#include <quern/data.h>

static void check_floats(const qn_column *column, int64_t count, bool binary)
{
    const float *value = column->data;
    const int64_t numbers = count * qn_column_bytes(column) / (int64_t)sizeof *value;
    for (int64_t i = 0; i < numbers; i++)
        if (!isfinite(value[i]) || (binary && value[i] != 0 && value[i] != 1))
            abort();
}

static void check_column(const qn_column *column, int64_t count)
{
    volatile uint8_t last = ((const uint8_t *)column->data)[count * qn_column_bytes(column) - 1];
    (void)last;
    if (column->dtype == QN_F32)
        check_floats(column, count, *column->name == 't');
    const int32_t *label = column->data;
    for (int64_t i = 0; column->dtype == QN_I32 && i < count; i++)
        if (label[i] < 0 || label[i] >= column->classes)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file(bytes, size);
    const qn_npy_params params[] = {
        {.features = path},
        {.features = path, .labels = path, .held_out = 0.5},
        {.features = path, .targets = path, .binary = true},
    };
    for (int i = 0; i < 3; i++) {
        qn_dataset *dataset = NULL;
        if (qn_dataset_open_npy(&dataset, &params[i]) != QN_OK)
            continue;
        const qn_dataset_facts *facts = qn_dataset_describe(dataset);
        for (int c = 0; c < facts->n_columns; c++)
            check_column(&facts->columns[c], facts->count);
        qn_dataset_close(&dataset);
    }
    return 0;
}
