/* SPDX-License-Identifier: MIT
 *
 * Names of classes, in the order of their bytes, each with the number that it has where it was
 * first met.
 */
#ifndef QN_DATA_CLASS_NAMES_H
#define QN_DATA_CLASS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QN_MOST_CLASS_NAMES = 1 << 16 };

struct qn_class_name {
    char *text;
    int32_t number; /* from 0 on */
};

/* A zeroed struct is none. Thread-safety: Unsafe. Lifetime: until qn_class_names_free. */
struct qn_class_names {
    struct qn_class_name *name; /* (count), sorted */
    size_t count, room;
};

/* The name; NULL: it is not there. */
const struct qn_class_name *qn_class_names_find(const struct qn_class_names *names,
                                                const char *text);
/* The same, added where it is not there, as a copy; NULL: out of memory. */
const struct qn_class_name *qn_class_names_add(struct qn_class_names *names, const char *text);
/* The classes that names become: as they are numbered where a caller gave them (`given`), else in
 * the order of their bytes. Gives the names by class, borrowed, and the class of each number; both
 * have room for `count`. */
void qn_class_names_order(const struct qn_class_names *names, bool given, const char **texts,
                          int32_t *classes);
void qn_class_names_free(struct qn_class_names *names);

#endif
