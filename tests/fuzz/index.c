/* SPDX-License-Identifier: MIT
 *
 * The index of tensors in several files: what it names are files of its own folder.
 */
#include "fuzz.h"
#include "io/tensors_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_tensors_index index = {0};
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    qn_status status = qn_tensors_index_parse(&index, "fuzz", text, NULL);
    for (int64_t i = 0; status == QN_OK && i < index.count; i++)
        if (!index.names[i] || strchr(index.files[i], '/') || !*index.files[i])
            abort();
    qn_arena_free(&index.arena);
    free(text);
    return 0;
}
