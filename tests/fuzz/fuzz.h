/* SPDX-License-Identifier: MIT
 *
 * What a fuzz program defines: built with clang -fsanitize=fuzzer, or linked with main.c. Any input
 * is a success unless the program crashes, a sanitizer speaks, or it runs out of memory or time.
 */
#ifndef QN_TESTS_FUZZ_FUZZ_H
#define QN_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A text of the bytes, ended by 0; freed by the caller, NULL without memory. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return NULL;
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
