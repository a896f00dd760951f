/* SPDX-License-Identifier: MIT
 *
 * Tables for `quern place`: each buffer lives for a time, and the sizes have a sum.
 */
#include "lifetimes.h"
#include "file.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct failure failure = FAILURE_NONE;
    struct lifetimes table;
    int64_t sum = 0;
    const int code = lifetimes_read(&table, fuzz_file(bytes, size), &failure);
    for (int i = 0; code == CODE_DONE && i < table.count; i++) {
        const qn_lifetime *buffer = &table.buffers[i];
        if (buffer->lower < 0 || buffer->lower >= buffer->upper || buffer->size < 0 ||
            buffer->size > INT64_MAX - sum || strchr(table.names[i], ','))
            abort();
        sum += buffer->size;
    }
    lifetimes_free(&table);
    return 0;
}
