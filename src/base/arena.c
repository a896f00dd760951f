/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BLOCK_BYTES = 64 * 1024, ALIGN = 16 };

/* A piece of host memory from which allocations are cut one after another. */
struct qn_arena_block {
    struct qn_arena_block *previous;
    size_t used, capacity;
    _Alignas(ALIGN) unsigned char bytes[];
};

static struct qn_arena_block *arena_block_with_room(struct qn_arena *arena, size_t size)
{
    struct qn_arena_block *last = arena->last;
    if (last && last->capacity - last->used >= size)
        return last;
    size_t capacity = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
    struct qn_arena_block *block = calloc(1, sizeof *block + capacity);
    if (!block)
        return NULL;
    block->capacity = capacity;
    block->previous = last;
    arena->last = block;
    return block;
}

void *qn_arena_alloc(struct qn_arena *arena, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX / 2 - ALIGN) / size)
        return NULL;
    size_t bytes = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    struct qn_arena_block *block = arena_block_with_room(arena, bytes ? bytes : ALIGN);
    if (!block)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += bytes;
    return memory;
}

void *qn_arena_copy(struct qn_arena *arena, const void *bytes, size_t size)
{
    void *copy = qn_arena_alloc(arena, 1, size);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

char *qn_arena_strdup(struct qn_arena *arena, const char *text)
{
    return qn_arena_copy(arena, text, strlen(text) + 1);
}

void qn_arena_free(struct qn_arena *arena)
{
    while (arena->last) {
        struct qn_arena_block *block = arena->last;
        arena->last = block->previous;
        free(block);
    }
}
