/* SPDX-License-Identifier: MIT
 *
 * Writes a file of tensors for another program to read, or lists one that another program wrote.
 * Usage: tensors_sample write|print FILE
 */
#include "io/file.h"
#include <quern/io.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const qn_tensors_item items[] = {
    {"images", QN_U8, {4, {2, 1, 3, 5}}}, {"layer.weight", QN_F32, {2, {300, 1000}}},
    {"layer.bias", QN_F32, {1, {300}}},   {"half \"quoted\" \xc3\xa9", QN_F16, {1, {7}}},
    {"brain", QN_BF16, {3, {2, 2, 2}}},   {"ids", QN_I32, {1, {5}}},
    {"scalar", QN_F32, {0, {0}}},         {"empty", QN_F32, {2, {0, 3}}},
};
static const qn_tensors_pair metadata[] = {{"format", "pt"}, {"note", "two\nlines"}};

/* Byte `at` of item `index` is (index * 50 + at * 7) mod 256 divided by 4, so that no float is a
 * NaN. */
static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    (void)user;
    for (int64_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)((index * 50 + (at + i) * 7) % 256 / 4);
    return QN_OK;
}

static void hear(void *user, qn_log_level level, const char *text)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", text);
}

static const qn_log heard = {hear, NULL, QN_LOG_INFO};

static int write_sample(const char *path)
{
    const qn_tensors_params params = {heard, items, sizeof items / sizeof *items, metadata, 2};
    uint32_t crc;
    int64_t bytes;
    if (qn_tensors_save(path, &params, give, NULL, &crc, &bytes) != QN_OK)
        return 1;
    printf("%" PRId64 " %08" PRIx32 "\n", bytes, crc);
    return 0;
}

static int print_entry(const qn_tensors *tensors, const qn_tensors_entry *entry)
{
    unsigned char *bytes = malloc((size_t)entry->bytes + 1);
    if (!bytes || qn_tensors_read(tensors, entry, 0, bytes, entry->bytes) != QN_OK) {
        free(bytes);
        return 1;
    }
    printf("%s %s", entry->name, entry->type);
    for (int i = 0; i < entry->shape.rank; i++)
        printf(" %" PRId64, entry->shape.dim[i]);
    printf(" %08lx\n", crc32(crc32(0, NULL, 0), bytes, (uInt)entry->bytes));
    free(bytes);
    return 0;
}

static int print_file(const char *path)
{
    qn_tensors *tensors = NULL;
    int failed = 0;
    if (qn_tensors_open(&tensors, path, &heard) != QN_OK)
        return 1;
    for (int64_t i = 0; i < qn_tensors_count(tensors) && !failed; i++)
        failed = print_entry(tensors, qn_tensors_at(tensors, i));
    qn_tensors_close(&tensors);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_sample(argv[2]);
    if (argc == 3 && strcmp(argv[1], "print") == 0)
        return print_file(argv[2]);
    fprintf(stderr, "usage: %s write|print FILE\n", argv[0]);
    return 2;
}
