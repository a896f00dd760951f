/* SPDX-License-Identifier: MIT
 *
 * What the lines of a graph file share when they are read: words, names, attributes, and refusals
 * with their line.
 */
#ifndef QN_FORM_READER_H
#define QN_FORM_READER_H

#include "form/forms.h"

struct qn_reader {
    qn_graph *graph;
    int first;             /* nodes before it are not the text's */
    const char *at;        /* the next line of the text */
    char *line;            /* a copy of the one that is read, cut into words */
    struct qn_arena arena; /* of lists of this line */
};

#define QN_BLANKS " \t\r"

/* Makes the reason stick to the graph, with file and line. Gives false. */
bool qn_reader_refuse(struct qn_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Cuts the word off that `*at` begins with; "" at the end of the line. */
char *qn_reader_word(char **at);
/* Cuts blanks off both ends. */
char *qn_reader_trim(char *text);

/* Whether a new node may have the name; else refuses it. */
bool qn_reader_name(struct qn_reader *r, const char *name);
/* The tensor of a name that `user` takes; false: no line above makes it, which is refused. */
bool qn_reader_tensor(struct qn_reader *r, const char *user, const char *name, qn_tensor *tensor);

/* Attributes that a line may have, and the structs that they fill in. */
enum { QN_TABLES = 3 };
struct qn_tables {
    const struct qn_field *fields[QN_TABLES]; /* NULL: none */
    void *params[QN_TABLES];
    const char
        *elsewhere[QN_TABLES]; /* why those of a table are not for this line; NULL: they are */
};

/* Reads what follows on the line of `user`, which is `what`, up to its end. */
bool qn_reader_attributes(struct qn_reader *r, const struct qn_tables *tables, const char *user,
                          const char *what, char *at);

/* NAME = OPERATOR(OPERAND, OPERAND) ATTRIBUTE=VALUE ..., from behind the = on. */
void qn_reader_node(struct qn_reader *r, const char *name, char *at);

#endif
