/* SPDX-License-Identifier: MIT */
#include "text/vocab.h"
#include "base/room.h"

static bool widen(struct qn_vocab *vocab, int32_t size)
{
    if (size <= vocab->size)
        return true;
    if (!QN_ROOM(vocab->text_of, vocab->room_text, (size_t)size) ||
        !QN_ROOM(vocab->marks, vocab->room_marks, (size_t)size))
        return false;
    for (int32_t i = vocab->size; i < size; i++) {
        vocab->text_of[i] = -1;
        vocab->marks[i] = 0;
    }
    vocab->size = size;
    return true;
}

enum qn_vocab_added qn_vocab_add(struct qn_vocab *vocab, const char *text, size_t bytes, int32_t id)
{
    const int64_t known = qn_strings_find(&vocab->texts, text, bytes);
    if (known >= 0)
        return vocab->id[known] == id ? QN_VOCAB_SAME : QN_VOCAB_HAS_TEXT;
    if (id < vocab->size && vocab->text_of[id] >= 0)
        return QN_VOCAB_HAS_ID;
    if (!widen(vocab, id + 1) || !QN_ROOM(vocab->id, vocab->room_id, vocab->texts.count + 1))
        return QN_VOCAB_MEMORY;
    const int64_t number = qn_strings_add(&vocab->texts, text, bytes);
    if (number < 0)
        return QN_VOCAB_MEMORY;
    vocab->id[number] = id;
    vocab->text_of[id] = (int32_t)number;
    return QN_VOCAB_NEW;
}

int32_t qn_vocab_id(const struct qn_vocab *vocab, const char *text, size_t bytes)
{
    const int64_t number = qn_strings_find(&vocab->texts, text, bytes);
    return number < 0 ? -1 : vocab->id[number];
}

const char *qn_vocab_text(const struct qn_vocab *vocab, int32_t id, size_t *bytes)
{
    if (id < 0 || id >= vocab->size || vocab->text_of[id] < 0)
        return NULL;
    return qn_strings_at(&vocab->texts, vocab->text_of[id], bytes);
}

void qn_vocab_free(struct qn_vocab *vocab)
{
    qn_strings_free(&vocab->texts);
    free(vocab->id);
    free(vocab->text_of);
    free(vocab->marks);
    *vocab = (struct qn_vocab){0};
}
