/* SPDX-License-Identifier: MIT
 *
 * Whole files: every tensor is read, into memory of just its size.
 */
#include "file.h"
#include "fuzz.h"

#include <quern/io.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    qn_tensors *file = NULL;
    if (qn_tensors_open(&file, fuzz_file(bytes, size), NULL) != QN_OK)
        return 0;
    for (int64_t i = 0; i < qn_tensors_count(file); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(file, i);
        unsigned char *data = malloc(entry->bytes > 0 ? (size_t)entry->bytes : 1);
        if (!data)
            abort(); /* no more than the file has */
        if (qn_tensors_read(file, entry, 0, data, entry->bytes) != QN_OK)
            abort();
        free(data);
    }
    qn_tensors_close(&file);
    return 0;
}
