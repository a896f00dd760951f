/* SPDX-License-Identifier: MIT
 *
 * A folder that a test makes and removes again.
 */
#ifndef QN_TESTS_SUPPORT_FOLDER_H
#define QN_TESTS_SUPPORT_FOLDER_H

#include <dirent.h>
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

/* The path of the only file in the folder. */
static inline void only_file(const char *folder, char path[2 * FOLDER_BYTES])
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            snprintf(path, 2 * FOLDER_BYTES, "%s/%s", folder, entry->d_name);
            count++;
        }
    closedir(dir);
    assert_int_equal(count, 1);
}

/* With all that lies in it. */
static inline void remove_folder(const char *path)
{
    assert_int_equal(qn_tree_remove(path, NULL), QN_OK);
}

#endif
