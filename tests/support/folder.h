/* SPDX-License-Identifier: MIT
 *
 * A folder that a test makes and removes again.
 */
#ifndef QN_TESTS_SUPPORT_FOLDER_H
#define QN_TESTS_SUPPORT_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/tree.h"

enum { FOLDER_BYTES = 256 };

/* A new empty folder in TMPDIR or the system's own place. */
static inline void make_folder(char path[FOLDER_BYTES])
{
    const char *root = getenv("TMPDIR");
    snprintf(path, FOLDER_BYTES, "%s/quern-test-XXXXXX", root ? root : P_tmpdir);
    assert_non_null(mkdtemp(path));
}

/* With all that lies in it. */
static inline void remove_folder(const char *path)
{
    assert_int_equal(qn_tree_remove(path, NULL), QN_OK);
}

#endif
