/* SPDX-License-Identifier: MIT
 *
 * Files of tokens: unsigned numbers one after another, little-endian, with or without the header of
 * llm.c. Tokens are read where they lie, so that a file may be larger than memory; not through a
 * mapping, in which a file that another program shortens would end the process.
 */
#ifndef QN_IO_TOKENS_H
#define QN_IO_TOKENS_H

#include <quern/log.h>
#include <stdint.h>

/* An open file. A zeroed struct is none. Thread-safety: Safe once opened.
 * Lifetime: until qn_token_file_close. */
struct qn_token_file {
    int fd;
    char *path;     /* for messages */
    int64_t size;   /* of the file, in bytes */
    int64_t offset; /* of the first token, in bytes */
    int64_t count;  /* tokens, at least 1 */
    int64_t tokens; /* of the vocabulary that the header stands for; 0: there is no header */
    int bytes;      /* of a token: 1, 2 or 4 */
};

/* Opens a file, which messages call `name` (NULL: `path`), of tokens of `bytes` bytes; 0: the
 * header of llm.c says it: 256 numbers of 32 bits, of which the first three are a magic number, a
 * version and the count. QN_ERR_IO: not readable or no regular file; QN_ERR_FORMAT: empty, no whole
 * number of tokens, or another header. */
qn_status qn_token_file_open(struct qn_token_file *file, const char *path, const char *name,
                             int bytes, const struct qn_log *log);
/* Tokens first .. first + count - 1, which the file has; those from 2^31 on come out negative.
 * QN_ERR_FORMAT: the file has become shorter. */
qn_status qn_token_file_read(const struct qn_token_file *file, int64_t first, int64_t count,
                             int32_t *tokens, const struct qn_log *log);
void qn_token_file_close(struct qn_token_file *file);

#endif
