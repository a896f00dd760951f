/* SPDX-License-Identifier: MIT
 *
 * A bump arena: many small allocations, freed together. One per object; no single frees.
 * Thread-safety: Unsafe.
 */
#ifndef QN_BASE_ARENA_H
#define QN_BASE_ARENA_H

#include <stddef.h>

struct qn_arena {
    struct qn_arena_block *last;
};

/* Zeroed memory for `count` items of `size` bytes, or NULL (out of memory, or the product does not
 * fit). Freed by qn_arena_free; a zeroed struct is an empty arena. */
void *qn_arena_alloc(struct qn_arena *arena, size_t count, size_t size);
char *qn_arena_strdup(struct qn_arena *arena, const char *text);
void *qn_arena_copy(struct qn_arena *arena, const void *bytes, size_t size);
void qn_arena_free(struct qn_arena *arena);

#define qn_arena_new(arena, type, count) ((type *)qn_arena_alloc((arena), (count), sizeof(type)))

#endif
