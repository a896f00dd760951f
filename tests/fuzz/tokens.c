/* SPDX-License-Identifier: MIT
 *
 * The same bytes as a file of tokens of every width: what can be opened can be read to its end.
 */
#include "file.h"
#include "fuzz.h"
#include "io/file.h"
#include "io/tokens.h"

static void read_all(const struct qn_token_file *file)
{
    volatile int32_t last = 0;
    int32_t *tokens = malloc((size_t)file->count * sizeof *tokens);
    if (!tokens || qn_token_file_read(file, 0, file->count, tokens, NULL) != QN_OK ||
        qn_token_file_read(file, file->count - 1, 1, tokens, NULL) != QN_OK)
        abort();
    last = tokens[file->count - 1];
    (void)last;
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int widths[] = {0, 1, 2, 4};
    const char *path = fuzz_file(bytes, size);
    for (int i = 0; i < 4; i++) {
        struct qn_token_file file;
        if (qn_token_file_open(&file, path, NULL, widths[i], NULL) != QN_OK)
            continue;
        read_all(&file);
        qn_file_pages_crc32(file.fd, file.path, file.size);
        qn_token_file_close(&file);
    }
    return 0;
}
