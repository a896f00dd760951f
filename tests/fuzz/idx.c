/* SPDX-License-Identifier: MIT */
#include "file.h"
#include "fuzz.h"
#include "io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_idx idx;
    volatile uint8_t last = 0;
    if (qn_idx_read(&idx, fuzz_file(bytes, size), NULL) == QN_OK && idx.bytes > 0)
        last = ((const uint8_t *)idx.data)[idx.bytes - 1];
    (void)last;
    qn_idx_free(&idx);
    return 0;
}
