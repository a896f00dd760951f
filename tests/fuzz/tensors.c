/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "io/tensors.h"

#include <stdlib.h>
#include <string.h>

/* The first byte says how much data stands behind the header, the rest is the header. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_tensors_header header = {0};
    if (size == 0)
        return 0;
    char *json = malloc(size);
    if (!json)
        return 0;
    memcpy(json, bytes + 1, size - 1);
    json[size - 1] = 0;
    qn_status status = qn_tensors_parse(&header, "fuzz", json, size - 1, bytes[0], NULL);
    free(json);
    for (int64_t i = 0; status == QN_OK && i < header.count; i++) {
        const struct qn_tensors_entry *entry = &header.entries[i];
        bool inside = entry->offset >= 0 && entry->offset + entry->bytes <= bytes[0];
        if (!inside || qn_tensors_look_up(&header, entry->name) != entry)
            abort();
    }
    qn_arena_free(&header.arena);
    return 0;
}
