/* SPDX-License-Identifier: MIT
 *
 * Each input twice: as it is, and as a PNG whose checksums are right, so that changes get past
 * them.
 */
#include "file.h"
#include "fuzz.h"
#include "io/image.h"

#include <string.h>
#include <zlib.h>

/* Every form in memory of just the size that was asked for. */
static void read_file(const char *path)
{
    static const enum qn_image_form forms[] = {QN_IMAGE_INDEX, QN_IMAGE_GREY, QN_IMAGE_RGB};
    struct qn_image_facts facts;
    if (qn_image_look(&facts, path, NULL) != QN_OK)
        return;
    for (int i = facts.indices ? 0 : 1; i < 3; i++) {
        uint8_t *pixels = malloc((size_t)qn_image_bytes(&facts, forms[i]));
        if (pixels)
            qn_image_read(pixels, path, &facts, forms[i], NULL);
        free(pixels);
    }
}

static size_t big_endian(const uint8_t *bytes)
{
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

/* Chunks are a length, a type, data, and the checksum of type and data. */
static void sign_chunks(uint8_t *bytes, size_t size)
{
    for (size_t at = 8; at + 12 <= size;) {
        size_t length = big_endian(bytes + at);
        if (length > size - at - 12)
            break;
        uLong sum = crc32(0, bytes + at + 4, (uInt)(length + 4));
        for (int i = 0; i < 4; i++)
            bytes[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    read_file(fuzz_file(bytes, size));
    if (copy && size > 8 && bytes[0] == 0x89) {
        memcpy(copy, bytes, size);
        sign_chunks(copy, size);
        read_file(fuzz_file(copy, size));
    }
    free(copy);
    return 0;
}
