/* SPDX-License-Identifier: MIT
 *
 * Stands in for the fuzzing engine where there is none: tries the files that are named, and for
 * `-runs=N` N changes of each, drawn from a fixed seed.
 */
#include "base/random.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20 };

static uint8_t original[ROOM], changed[ROOM];

static size_t read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t size = fread(original, 1, ROOM, file);
    fclose(file);
    return size;
}

/* Changes up to eight bytes, and now and then the length. */
static size_t change(size_t size, uint64_t run)
{
    uint64_t changes = 1 + qn_random_bits(1, run, 0) % 8;
    memcpy(changed, original, size);
    for (uint64_t i = 1; i <= changes && size; i++) {
        uint64_t bits = qn_random_bits(1, run, i);
        changed[(bits >> 8) % size] = (uint8_t)bits;
    }
    uint64_t cut = qn_random_bits(1, run, 9);
    return cut % 4 == 0 && size ? (cut >> 2) % size : size;
}

int main(int argc, char **argv)
{
    uint64_t runs = 0, tried = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0) {
            runs = strtoull(argv[i] + 6, NULL, 10);
            continue;
        }
        size_t size = read_file(argv[i]);
        LLVMFuzzerTestOneInput(original, size);
        for (uint64_t run = 0; run < runs; run++)
            LLVMFuzzerTestOneInput(changed, change(size, run));
        tried += 1 + runs;
    }
    printf("%llu inputs\n", (unsigned long long)tried);
    return tried ? 0 : 2;
}
