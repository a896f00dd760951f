/* SPDX-License-Identifier: MIT
 *
 * Lines of text of which a model of tokens is asked for one token each: for the one that follows
 * them, or for those that masks stand for.
 */
#ifndef QUERN_TOOL_PROMPTS_H
#define QUERN_TOOL_PROMPTS_H

#include "session.h"

/* A token that is asked for, and those that the model looks at. */
struct asked {
    int64_t line;  /* from 0 */
    int64_t first; /* of its tokens, in `ids` */
    int32_t width; /* how many there are */
    int32_t place; /* among them: the last one, or the mask */
    int32_t mask;  /* its number in the line, from 1; 0: the token that follows is asked for */
};

/* A zeroed struct is none. */
struct prompts {
    struct asked *asked; /* (count) */
    size_t count, room;
    int32_t *ids; /* (n_ids) of all lines, one after another */
    size_t n_ids, ids_room;
    int64_t n_lines, first; /* where those of the last line begin */
    int64_t width;          /* the largest of all asked */
};

/* What masks are written as: the tokenizer's own text, "<mask>", where it has a special token for
 * them, else "[MASK]". Borrowed from the tokenizer. */
const char *prompts_mark(const struct session *session);

/* Reads a file with a text in each line, or of JSON lines under data.field. Of lines that are
 * longer than the samples of the training the model looks at the last tokens, or at those around
 * the mask, and a warning says so. CODE_FAILED names file and line: it is empty, becomes no token
 * or one that the model has not, or has no mask. */
int prompts_open(struct prompts *prompts, const struct session *session, const char *path);
void prompts_close(struct prompts *prompts);

/* Makes session->data.model one that is asked for a token of each sample, which is `width` wide. */
void prompts_describe(const struct prompts *prompts, struct session *session);
/* A sample for each token that is asked for, with columns for the inputs of that model. Borrows the
 * prompts. */
int prompts_dataset(struct prompts *prompts, const struct session *session, qn_dataset **dataset);

#endif
