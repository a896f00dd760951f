/* SPDX-License-Identifier: MIT
 *
 * The reader: line by line, each of which makes what it says by the public functions. A name stands
 * for a line above it, so that there is no recursion and no cycle.
 */
#include "base/log.h"
#include "form/reader.h"
#include "graph/error.h"
#include "io/file.h"

#include <quern/graph_file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool going_on(const struct qn_reader *r)
{
    return r->graph->status == QN_OK;
}

/* --- leaves --- */

static bool read_dtype(struct qn_reader *r, const char *name, const char *word, qn_dtype *dtype)
{
    static const qn_dtype all[] = {QN_F32, QN_F16, QN_BF16, QN_U8, QN_I32};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(qn_dtype_name(all[i]), word) == 0) {
            *dtype = all[i];
            return true;
        }
    return qn_reader_refuse(r, "%s: '%.40s' is no type: f32, f16, bf16, u8 or i32", name, word);
}

static bool read_shape(struct qn_reader *r, const char *name, const char *word, qn_shape *shape)
{
    return qn_form_shape(word, shape)
               ? true
               : qn_reader_refuse(r, "%s: '%.40s' is no shape: %s, of at most %d dimensions", name,
                                  word, "numbers with x between, as Bx3x28x28 with B for the batch",
                                  QN_MAX_DIMS);
}

static bool at_end(struct qn_reader *r, const char *name, char *at)
{
    const char *word = qn_reader_word(&at);
    return *word ? qn_reader_refuse(r, "%s: '%.40s' is more than the line has room for", name, word)
                 : true;
}

/* input NAME TYPE SHAPE */
static void read_input(struct qn_reader *r, char *name, char *at, bool cell)
{
    qn_dtype dtype = QN_DTYPE_NONE;
    qn_shape shape;
    if (read_dtype(r, name, qn_reader_word(&at), &dtype) &&
        read_shape(r, name, qn_reader_word(&at), &shape) && at_end(r, name, at))
        (cell ? qn_cell_input : qn_input)(r->graph, name, dtype, shape.rank, shape.dim);
}

static void read_free_input(struct qn_reader *r, char *name, char *at)
{
    read_input(r, name, at, false);
}

static void read_cell(struct qn_reader *r, char *name, char *at)
{
    read_input(r, name, at, true);
}

/* parameter NAME SHAPE init=INIT frozen=yes rate=FACTOR decay=FACTOR */
static void read_parameter(struct qn_reader *r, char *name, char *at)
{
    struct qn_form_held p = {.rate = 1, .decay = -1};
    qn_tensor tensor;
    qn_shape shape;
    const struct qn_tables tables = {.fields = {qn_form_held_fields}, .params = {&p}};
    if (!read_shape(r, name, qn_reader_word(&at), &shape) ||
        !qn_reader_attributes(r, &tables, name, "a parameter", at))
        return;
    if (p.init.kind == QN_FORM_INIT_NONE && shape.rank >= 2) {
        qn_reader_refuse(r,
                         "%s: init: is missing: a weight starts as zeros, ones, he, fan_in, "
                         "normal(0,0.02) or another rule says",
                         name);
        return;
    }
    const qn_init init = qn_form_init(&p.init, &shape);
    tensor = qn_parameter(r->graph, name, shape.rank, shape.dim, &init);
    if (!tensor.id)
        return;
    struct qn_node *node = &r->graph->nodes[r->graph->tensors[tensor.id].node];
    node->frozen = p.frozen;
    node->rate = (float)p.rate;
    node->decay = p.decay < 0 ? node->decay : (float)p.decay;
}

/* constant NAME NUMBER NUMBER ... */
static void read_constant(struct qn_reader *r, char *name, char *at)
{
    const char *wrong;
    int64_t count;
    const char *text = qn_reader_trim(at);
    float *values = qn_form_floats(text, r->graph->source.numbers, &r->arena, &count, &wrong);
    if (wrong)
        qn_reader_refuse(r, "%s: '%.*s' is no number, nor N*NUMBER for N of them", name,
                         (int)strcspn(wrong, QN_BLANKS) < 40 ? (int)strcspn(wrong, QN_BLANKS) : 40,
                         wrong);
    else if (!*text)
        qn_reader_refuse(r, "%s: a constant has at least one number", name);
    else if (!count)
        qn_form_refuse_numbers(r->graph, name);
    else if (!values)
        qn_graph_fail(r->graph, QN_ERR_MEMORY, "%s: out of host memory", name);
    else {
        r->graph->source.numbers -= count;
        const qn_tensor tensor = qn_constant(r->graph, name, values, count);
        if (tensor.id)
            qn_name(r->graph, tensor, name);
    }
}

/* output NAME, or output NAME = TENSOR */
static void read_output(struct qn_reader *r, char *name, char *at)
{
    char *equals = qn_reader_word(&at), *of = qn_reader_word(&at);
    qn_tensor tensor;
    if (!qn_form_is_name(name))
        qn_reader_refuse(r, "output '%.60s': is no name", name);
    else if (*equals && (strcmp(equals, "=") != 0 || !*of))
        qn_reader_refuse(r, "output %s: is no output NAME = TENSOR", name);
    else if (at_end(r, name, at) && qn_reader_tensor(r, "output", *of ? of : name, &tensor))
        qn_output(r->graph, tensor, name);
}

/* --- lines --- */

static const struct keyword {
    const char *name;
    void (*read)(struct qn_reader *r, char *name, char *at);
    bool makes; /* a node of that name */
} keywords[] = {{"input", read_free_input, true},
                {"cell", read_cell, true},
                {"parameter", read_parameter, true},
                {"constant", read_constant, true},
                {"output", read_output, false}};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

static void read_leaf(struct qn_reader *r, const char *word, char *at)
{
    char hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = word};
    for (int i = 0; i < KEYWORDS; i++) {
        if (strcmp(keywords[i].name, word) != 0) {
            qn_nearest_offer(&nearest, keywords[i].name);
            continue;
        }
        char *name = qn_reader_word(&at);
        if (!*name)
            qn_reader_refuse(r, "%s: a name is missing", word);
        else if (!keywords[i].makes || qn_reader_name(r, name))
            keywords[i].read(r, name, at);
        return;
    }
    qn_reader_refuse(
        r,
        "'%.60s' begins no line: NAME = OPERATOR(...), input, parameter, constant, cell or "
        "output%s",
        word, qn_nearest_hint(&nearest, hint));
}

static void read_line(struct qn_reader *r)
{
    char *at = r->line, *word = at + strspn(at, QN_BLANKS);
    at = word + strcspn(word, " \t\r=");
    char *next = at + strspn(at, QN_BLANKS);
    if (!*word)
        return;
    if (r->graph->n_nodes - r->first >= QN_GRAPH_FILE_NODES) {
        qn_reader_refuse(r, "more than %d nodes", QN_GRAPH_FILE_NODES);
        return;
    }
    const bool node = *next == '=';
    if (!node && *at)
        next = at + 1;
    *at = 0;
    if (!node)
        read_leaf(r, word, next);
    else if (qn_reader_name(r, word))
        qn_reader_node(r, word, next + 1);
}

/* Copies the next line without its comment; false: there is none, or it cannot be read. */
static bool next_line(struct qn_reader *r)
{
    if (!*r->at)
        return false;
    const size_t length = strcspn(r->at, "\n"), kept = strcspn(r->at, "#\n");
    const char *from = r->at;
    r->graph->source.line++;
    r->at += length + (r->at[length] == '\n');
    if (kept >= QN_GRAPH_FILE_LINE)
        return qn_reader_refuse(r, "the line is longer than %d bytes", QN_GRAPH_FILE_LINE - 1);
    memcpy(r->line, from, kept);
    r->line[kept] = 0;
    for (const char *c = r->line; *c; c++)
        if (((unsigned char)*c < ' ' && !strchr(QN_BLANKS, *c)) || *c == 127)
            return qn_reader_refuse(r, "has a byte that is no text: %d", (unsigned char)*c);
    return true;
}

static void read_all(struct qn_reader *r)
{
    while (going_on(r) && next_line(r)) {
        read_line(r);
        qn_arena_free(&r->arena);
    }
    if (going_on(r) && r->graph->n_nodes == r->first)
        qn_reader_refuse(r, "has no line that makes a node");
}

qn_status qn_graph_read(qn_graph *graph, const char *text, const char *name)
{
    QN_REQUIRE(NULL, graph && text);
    QN_TRY(qn_graph_status(graph));
    QN_REQUIRE(&graph->log, graph->n_nodes == 0 || *graph->scope.prefix);
    struct qn_reader r = {.graph = graph, .first = graph->n_nodes, .at = text};
    graph->source =
        (struct qn_source){.file = name ? name : "graph", .numbers = QN_GRAPH_FILE_NUMBERS};
    r.line = malloc(QN_GRAPH_FILE_LINE);
    if (!r.line)
        qn_graph_fail(graph, QN_ERR_MEMORY, "graph: out of host memory");
    else if (strnlen(text, QN_GRAPH_FILE_BYTES + 1) > QN_GRAPH_FILE_BYTES)
        qn_reader_refuse(&r, "more than %d bytes", QN_GRAPH_FILE_BYTES);
    else
        read_all(&r);
    free(r.line);
    graph->source = (struct qn_source){0};
    return graph->status;
}

qn_status qn_graph_load(qn_graph *graph, const char *path)
{
    QN_REQUIRE(NULL, graph && path);
    char *text;
    size_t size;
    QN_TRY(qn_graph_status(graph));
    const qn_status read = qn_file_read(path, QN_GRAPH_FILE_BYTES, &text, &size, &graph->log);
    if (read != QN_OK) {
        graph->status = read;
        snprintf(graph->error, sizeof graph->error, "%s", qn_last_error());
        return read;
    }
    graph->source = (struct qn_source){.file = path};
    if (strlen(text) != size)
        qn_graph_fail(graph, QN_ERR_FORMAT, "has a byte 0 and is no text");
    const qn_status status = graph->status ? graph->status : qn_graph_read(graph, text, path);
    graph->source = (struct qn_source){0};
    free(text);
    return status;
}
