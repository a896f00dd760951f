/* SPDX-License-Identifier: MIT
 *
 * A learned vocabulary as tokenizer.json.
 */
#include "base/log.h"
#include "base/text.h"
#include "io/file.h"
#include "io/path.h"
#include "text/alphabet.h"
#include "text/train.h"

#include <stdlib.h>

/* Everything before the vocabulary and behind the merges. */
static const char head[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
    "\"added_tokens\": [{\"id\": 0, \"content\": \"<|endoftext|>\", \"single_word\": false, "
    "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}],\n"
    "\"normalizer\": null,\n"
    "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
    "\"trim_offsets\": true, \"use_regex\": true},\n"
    "\"post_processor\": null,\n"
    "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
    "\"use_regex\": true},\n"
    "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
    "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, "
    "\"byte_fallback\": false, \"ignore_merges\": false,\n\"vocab\": {";

/* A token in the characters that stand for its bytes, quoted. */
static void put_token(struct qn_text *text, const struct qn_strings *tokens, int64_t id)
{
    struct qn_bytes written = {0};
    size_t size;
    const char *bytes = qn_strings_at(tokens, id, &size);
    if (qn_alphabet_write(&written, bytes, size) && qn_bytes_put(&written, "", 1))
        qn_text_json(text, written.at);
    else
        text->failed = true;
    qn_bytes_free(&written);
}

static void put_merges(struct qn_text *text, const struct qn_learned *learned)
{
    const char *between = "";
    for (size_t i = 0; i < learned->count; i++) {
        if (learned->merge[i].left < 0)
            continue;
        qn_text_add(text, "%s[", between);
        put_token(text, &learned->tokens, learned->merge[i].left);
        qn_text_add(text, ", ");
        put_token(text, &learned->tokens, learned->merge[i].right);
        qn_text_add(text, "]");
        between = ",\n";
    }
}

qn_status qn_learned_write(const struct qn_learned *learned,
                           const qn_tokenizer_train_params *params)
{
    struct qn_text text = {0};
    qn_text_add(&text, "%s", head);
    for (size_t i = 0; i < learned->tokens.count; i++) {
        qn_text_add(&text, "%s", i ? ",\n" : "");
        put_token(&text, &learned->tokens, (int64_t)i);
        qn_text_add(&text, ": %zu", i);
    }
    qn_text_add(&text, "},\n\"merges\": [");
    put_merges(&text, learned);
    qn_text_add(&text, "]}}\n");
    const size_t size = text.length;
    char *bytes = qn_text_take(&text);
    const qn_status status = bytes ? qn_file_write(params->path, bytes, size, &params->log)
                                   : qn_fail_memory(&params->log, params->path);
    free(bytes);
    return status;
}
