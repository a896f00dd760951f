/* SPDX-License-Identifier: MIT */
#include "prompts.h"
#include "family.h"
#include "file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char MARK[] = "[MASK]";

/* A file as it is read. */
struct reading {
    struct prompts *prompts;
    const struct session *session;
    struct failure *failure;
    const char *path;
    const qn_tokenizer *tokenizer; /* NULL: bytes are tokens */
    int64_t length;                /* tokens that the model looks at */
    int64_t mask;                  /* token; below 0: what follows is asked for */
    const char *mark;              /* NULL: the tokenizer finds the masks */
    int64_t n_long, first_long;    /* lines that are longer; the first of them, from 1 */
};

/* Refuses the line that is read. */
__attribute__((format(printf, 2, 3))) static int refuse(struct reading *r, const char *format, ...)
{
    char reason[FAILURE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return failure_set(r->failure, CODE_FAILED, "%s: line %" PRId64 ": %s", r->path,
                       r->prompts->n_lines, reason);
}

/* Room for `count` elements, twice as many as there were; false: out of memory. */
static bool grow(void **memory, size_t *room, size_t count, size_t size)
{
    const size_t wanted = count > 2 * *room ? count : 2 * *room;
    void *more = count > *room ? realloc(*memory, wanted * size) : *memory;
    if (!more)
        return false;
    *room = count > *room ? wanted : *room;
    *memory = more;
    return true;
}

/* --- tokens of a line --- */

static qn_status take_ids(void *user, const int32_t *ids, int64_t count)
{
    struct prompts *p = ((struct reading *)user)->prompts;
    void *memory = p->ids;
    if (!grow(&memory, &p->ids_room, p->n_ids + (size_t)count, sizeof *ids))
        return QN_ERR_MEMORY;
    p->ids = memory;
    memcpy(p->ids + p->n_ids, ids, (size_t)count * sizeof *ids);
    p->n_ids += (size_t)count;
    return QN_OK;
}

static qn_status take_bytes(struct reading *r, const char *text, size_t size)
{
    qn_status status = QN_OK;
    for (size_t i = 0; i < size && status == QN_OK; i++)
        status = take_ids(r, &(int32_t){(uint8_t)text[i]}, 1);
    return status;
}

static int take_text(struct reading *r, const char *text, size_t size, bool frame)
{
    const qn_log log = failure_log(r->failure);
    const qn_encode_params params = {.frame = frame, .log = &log, .fn = take_ids, .user = r};
    failure_clear(r->failure);
    const qn_status status = r->tokenizer ? qn_tokenizer_encode(r->tokenizer, text, size, &params)
                                          : take_bytes(r, text, size);
    return status == QN_OK
               ? CODE_DONE
               : refuse(r, "%s", *r->failure->logged ? r->failure->logged : qn_status_text(status));
}

/* Bytes before the next mark, or all. */
static size_t before_mark(const char *text, size_t size, const char *mark)
{
    const size_t length = strlen(mark);
    size_t at = 0;
    while (at < size && (size - at < length || memcmp(text + at, mark, length) != 0))
        at++;
    return at;
}

/* A mask that no text becomes: the text between marks has no frame, as in the training. */
static int take_marked(struct reading *r, const char *text, size_t size)
{
    const int32_t mask = (int32_t)r->mask;
    for (size_t at = 0, length; at < size; at += length + strlen(r->mark)) {
        length = before_mark(text + at, size - at, r->mark);
        TRY(take_text(r, text + at, length, false));
        if (at + length < size && take_ids(r, &mask, 1) != QN_OK)
            return refuse(r, "out of memory");
    }
    return CODE_DONE;
}

/* --- what is asked --- */

/* Asks for one of `count` tokens of the line, or for the one that follows them. The model looks at
 * the last ones then, else at those around it. */
static int ask(struct reading *r, int64_t count, int64_t token, int32_t mask)
{
    struct prompts *p = r->prompts;
    const int64_t width = count < r->length ? count : r->length;
    const int64_t begin = mask ? token - width / 2 : token;
    const int64_t first = begin < 0 ? 0 : begin > count - width ? count - width : begin;
    void *memory = p->asked;
    if (!grow(&memory, &p->room, p->count + 1, sizeof *p->asked))
        return refuse(r, "out of memory");
    p->asked = memory;
    p->asked[p->count++] = (struct asked){.line = p->n_lines - 1,
                                          .first = p->first + first,
                                          .width = (int32_t)width,
                                          .place = (int32_t)(token - first),
                                          .mask = mask};
    p->width = p->width < width ? width : p->width;
    return CODE_DONE;
}

static int ask_masks(struct reading *r, const int32_t *ids, int64_t count)
{
    int32_t masks = 0;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == r->mask)
            TRY(ask(r, count, i, ++masks));
    return masks ? CODE_DONE
                 : refuse(r, "text: has no %s, which stands for the token that is asked for",
                          prompts_mark(r->session));
}

static int check_ids(struct reading *r, const int32_t *ids, int64_t count)
{
    const int tokens = r->session->data.model.tokens;
    if (!count)
        return refuse(r, "text: becomes no token");
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= tokens)
            return refuse(r, "text: has the token %" PRId32 ", but the model has %d", ids[i],
                          tokens);
    return CODE_DONE;
}

static int add_line(struct reading *r, const char *text, size_t size)
{
    struct prompts *p = r->prompts;
    p->n_lines++;
    p->first = (int64_t)p->n_ids;
    if (!size)
        return refuse(r, "text: is empty");
    TRY(r->mark ? take_marked(r, text, size) : take_text(r, text, size, true));
    const int32_t *ids = p->ids + p->first;
    const int64_t count = (int64_t)p->n_ids - p->first;
    TRY(check_ids(r, ids, count));
    if (count > r->length && !r->n_long++)
        r->first_long = p->n_lines;
    return r->mask < 0 ? ask(r, count, count - 1, 0) : ask_masks(r, ids, count);
}

/* --- lines of a file --- */

static int take_lines(struct reading *r, const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length + 1) {
        const char *newline = memchr(text + at, '\n', size - at);
        length = newline ? (size_t)(newline - text) - at : size - at;
        const bool ended = length && text[at + length - 1] == '\r';
        TRY(add_line(r, text + at, length - ended));
    }
    return CODE_DONE;
}

static int read_lines(struct reading *r)
{
    const void *text;
    size_t size;
    TRY(file_map(&text, &size, r->path, r->failure));
    const int code = take_lines(r, text, size);
    file_unmap(text, size);
    return code;
}

static qn_status take_json(void *user, const char *text, size_t size)
{
    return add_line(user, text, size) ? QN_ERR_FORMAT : QN_OK;
}

static int read_json(struct reading *r)
{
    const char *field = r->session->settings.data.field;
    const qn_log log = failure_log(r->failure);
    TRY_LIBRARY(r->failure, NULL, qn_json_lines_texts(r->path, field, take_json, r, &log));
    return CODE_DONE;
}

static bool is_json(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".json") == 0);
}

static void warn_of_long(const struct reading *r)
{
    char others[48] = "";
    if (r->n_long > 1)
        snprintf(others, sizeof others, " and %" PRId64 " more", r->n_long - 1);
    if (r->n_long)
        say("warning: %s: line %" PRId64 "%s: longer than the %" PRId64
            " tokens that the model looks at; %s are taken",
            r->path, r->first_long, others, r->length,
            r->mask < 0 ? "the last ones" : "those around each mask");
}

static bool tokenizer_has(const struct session *s, int64_t mask)
{
    return s->data.text.tokenizer && qn_tokenizer_is_special(s->data.text.tokenizer, (int32_t)mask);
}

const char *prompts_mark(const struct session *s)
{
    const int64_t mask = data_mask_token(&s->data, &s->settings);
    return tokenizer_has(s, mask) ? qn_tokenizer_text(s->data.text.tokenizer, (int32_t)mask) : MARK;
}

/* Without a tokenizer bytes are tokens, unless there are other tokens than bytes. */
static int check_tokenizer(const struct session *s)
{
    const bool bytes = s->settings.data.kind != DATA_TOKENS || s->data.model.tokens == 256;
    return s->data.text.tokenizer || bytes
               ? CODE_DONE
               : failure_set(s->failure, CODE_USAGE,
                             "predict: --tokenizer: missing; the model %s was trained with tokens, "
                             "not with text",
                             s->settings.model);
}

int prompts_open(struct prompts *prompts, const struct session *s, const char *path)
{
    const int64_t mask = data_mask_token(&s->data, &s->settings);
    struct reading reading = {.prompts = prompts,
                              .session = s,
                              .failure = s->failure,
                              .path = path,
                              .tokenizer = s->data.text.tokenizer,
                              .length = s->data.model.width,
                              .mask = mask,
                              .mark = mask >= 0 && !tokenizer_has(s, mask) ? MARK : NULL};
    *prompts = (struct prompts){0};
    TRY(check_tokenizer(s));
    TRY((is_json(path) ? read_json : read_lines)(&reading));
    warn_of_long(&reading);
    return CODE_DONE;
}

void prompts_close(struct prompts *p)
{
    free(p->asked);
    free(p->ids);
    *p = (struct prompts){0};
}

/* --- as samples --- */

enum column { TOKENS, LENGTHS, ASKED, COLUMNS };

static qn_status fill_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    const struct prompts *p = user;
    int32_t *tokens = rows[TOKENS], *lengths = rows[LENGTHS];
    float *places = rows[ASKED];
    memset(tokens, 0, (size_t)(count * p->width) * sizeof *tokens);
    memset(places, 0, (size_t)(count * p->width) * sizeof *places);
    for (int64_t i = 0; i < count; i++) {
        const struct asked *asked = &p->asked[draws[i].sample];
        lengths[i] = asked->width;
        memcpy(tokens + i * p->width, p->ids + asked->first, (size_t)asked->width * sizeof *tokens);
        places[i * p->width + asked->place] = 1;
    }
    return QN_OK;
}

void prompts_describe(const struct prompts *p, struct session *s)
{
    const struct family *family = family_of_model(s->settings.model);
    qn_model_data *model = &s->data.model;
    model->longest = model->width;
    model->width = (int)p->width;
    model->lengths = !family || !family->continues;
    model->predict = model->asked = true;
    s->settings.data.lengths = (struct lengths){0};
}

int prompts_dataset(struct prompts *p, const struct session *s, qn_dataset **dataset)
{
    const qn_model_data *model = &s->data.model;
    char name[32] = "tokens";
    if (model->width < model->longest)
        snprintf(name, sizeof name, "tokens.%d", model->width);
    const qn_column columns[COLUMNS] = {
        [TOKENS] = {.name = name,
                    .dtype = QN_I32,
                    .shape = {1, {p->width}},
                    .classes = model->tokens},
        [LENGTHS] = {.name = "lengths", .dtype = QN_I32},
        [ASKED] = {.name = "asked", .dtype = QN_F32, .shape = {2, {1, p->width}}},
    };
    const qn_function_params params = {.log = failure_log(s->failure),
                                       .count = (int64_t)p->count,
                                       .n_columns = COLUMNS,
                                       .columns = columns,
                                       .fn = fill_rows,
                                       .user = p};
    TRY_LIBRARY(s->failure, NULL, qn_dataset_from_function(dataset, &params));
    return CODE_DONE;
}
