/* SPDX-License-Identifier: MIT
 *
 * For tests with files: a folder that is removed again, and a log that keeps the last line.
 */
#ifndef QN_TESTS_IO_SCRATCH_H
#define QN_TESTS_IO_SCRATCH_H

#include "io/file.h"
#include "io/path.h"
#include "io/tree.h"
#include "support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct scratch {
    char folder[FOLDER_BYTES];
    char path[512]; /* of scratch_path */
    char heard[4096];
    int lines;
    struct qn_log log;
};

static inline void scratch_hear(void *user, qn_log_level level, const char *text)
{
    struct scratch *scratch = user;
    (void)level;
    scratch->lines++;
    snprintf(scratch->heard, sizeof scratch->heard, "%s", text);
    assert_null(strchr(text, '\n'));
}

static inline int scratch_open(void **state)
{
    struct scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    make_folder(scratch->folder);
    scratch->log = (struct qn_log){scratch_hear, scratch, QN_LOG_DEBUG};
    *state = scratch;
    return 0;
}

static inline int scratch_close(void **state)
{
    struct scratch *scratch = *state;
    int failed =
        qn_tree_remove(scratch->folder, NULL) != QN_OK || access(scratch->folder, F_OK) == 0;
    free(scratch);
    return failed;
}

/* The path of a name in the folder; valid until the next call. */
static inline const char *scratch_path(struct scratch *scratch, const char *name)
{
    snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->folder, name);
    return scratch->path;
}

static inline const char *scratch_put(struct scratch *scratch, const char *name, const void *bytes,
                                      size_t size)
{
    const char *path = scratch_path(scratch, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* One line was logged, and it says both. */
static inline void scratch_said(struct scratch *scratch, const char *one, const char *other)
{
    if (scratch->lines != 1 || !strstr(scratch->heard, one) || !strstr(scratch->heard, other))
        fail_msg("%d lines, \"%s\" and \"%s\" expected: %s", scratch->lines, one, other,
                 scratch->heard);
    scratch->lines = 0;
    scratch->heard[0] = 0;
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_open, scratch_close)

#endif
