/* SPDX-License-Identifier: MIT */
#include "form/reader.h"

#include "graph/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool qn_reader_refuse(struct qn_reader *r, const char *format, ...)
{
    char reason[400];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    qn_graph_fail(r->graph, QN_ERR_FORMAT, "%s", reason);
    return false;
}

/* --- words --- */

char *qn_reader_word(char **at)
{
    char *word = *at + strspn(*at, QN_BLANKS), *end = word + strcspn(word, QN_BLANKS);
    *at = end + (*end != 0);
    *end = 0;
    return word;
}

char *qn_reader_trim(char *text)
{
    text += strspn(text, QN_BLANKS);
    for (size_t length = strlen(text); length && strchr(QN_BLANKS, text[length - 1]); length--)
        text[length - 1] = 0;
    return text;
}

/* --- names --- */

/* The number of the line that names something, from the text `from` on; 0: none does. */
static int line_that_names(const char *from, int number, const char *name)
{
    static const char *const leaves[] = {"input", "cell", "parameter", "constant"};
    const size_t length = strlen(name);
    for (; *from; from += strcspn(from, "\n"), from += *from == '\n', number++) {
        const char *word = from + strspn(from, QN_BLANKS);
        for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
            const size_t leaf = strlen(leaves[i]);
            if (strncmp(word, leaves[i], leaf) == 0 && strchr(QN_BLANKS, word[leaf])) {
                word += leaf;
                word += strspn(word, QN_BLANKS);
                break;
            }
        }
        if (strncmp(word, name, length) == 0 && word[length] && strchr(" \t=", word[length]))
            return number;
    }
    return 0;
}

/* As the text calls a node. */
static const char *name_in_text(const struct qn_reader *r, int node)
{
    const char *name = r->graph->nodes[node].name, *prefix = r->graph->scope.prefix;
    const size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : name;
}

static bool refuse_unknown(struct qn_reader *r, const char *user, const char *name)
{
    char hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = name};
    const int later = line_that_names(r->at, r->graph->source.line + 1, name);
    if (later)
        return qn_reader_refuse(
            r,
            "%s: '%.60s' is not made yet, but in line %d: a line takes what lines above "
            "it make",
            user, name, later);
    if (strcmp(user, name) == 0)
        return qn_reader_refuse(r, "%s: takes itself: a line takes what lines above it make", user);
    for (int n = r->first; n < r->graph->n_nodes; n++)
        qn_nearest_offer(&nearest, name_in_text(r, n));
    return qn_reader_refuse(r, "%s: no line above makes '%.60s'%s", user, name,
                            qn_nearest_hint(&nearest, hint));
}

bool qn_reader_tensor(struct qn_reader *r, const char *user, const char *name, qn_tensor *tensor)
{
    *tensor = qn_graph_scoped_tensor(r->graph, name);
    return tensor->id ? true : refuse_unknown(r, user, name);
}

/* A parameter that an earlier network of the graph has may be taken again. */
static bool is_taken(const struct qn_reader *r, const char *name)
{
    const qn_tensor tensor = qn_graph_scoped_tensor(r->graph, name);
    return tensor.id && (int)r->graph->tensors[tensor.id].node >= r->first;
}

bool qn_reader_name(struct qn_reader *r, const char *name)
{
    char scoped[QN_SCOPED_BYTES];
    if (!*name || strcmp(name, "-") == 0)
        return qn_reader_refuse(r, "a name is missing");
    if (strlen(qn_graph_scoped(r->graph, name, scoped)) > QN_GRAPH_MAX_NAME)
        return qn_reader_refuse(r, "%.40s...: the name is longer than %d bytes", name,
                                QN_GRAPH_MAX_NAME);
    if (!qn_form_is_name(name))
        return qn_reader_refuse(
            r, "'%.60s' is no name: it has one of ( ) , = \" or what is no text", name);
    if (is_taken(r, name))
        return qn_reader_refuse(r, "%s: the name is already taken", name);
    return true;
}

/* --- attributes --- */

static void offer_fields(const struct qn_tables *tables, qn_nearest *nearest)
{
    for (int t = 0; t < QN_TABLES; t++)
        for (const struct qn_field *f = tables->fields[t]; f && f->name; f++)
            if (!tables->elsewhere[t])
                qn_nearest_offer(nearest, f->name);
}

static bool refuse_field(struct qn_reader *r, const struct qn_tables *tables, const char *user,
                         const char *what, const char *key)
{
    char hint[QN_NEAREST_BYTES], names[200] = "";
    qn_nearest nearest = {.text = key};
    offer_fields(tables, &nearest);
    qn_nearest_hint(&nearest, hint);
    for (int t = 0; t < QN_TABLES && !*hint; t++)
        for (const struct qn_field *f = tables->fields[t]; f && f->name; f++)
            if (!tables->elsewhere[t])
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                         *names ? ", " : "; it has ", f->name);
    return qn_reader_refuse(r, "%s: '%.40s' is no attribute of %s%s%s", user, key, what, hint,
                            names);
}

/* Of a list that was read as numbers there are values, unless memory ended. */
static const struct qn_form_floats *list_of(const struct qn_field *field, const void *params)
{
    return (const void *)((const char *)params + field->in_params);
}

/* The attribute of that name, and its table; NULL: there is none. */
static const struct qn_field *find_field(const struct qn_tables *tables, const char *name,
                                         int *table)
{
    for (*table = 0; *table < QN_TABLES; ++*table)
        for (const struct qn_field *f = tables->fields[*table]; f && f->name; f++)
            if (strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

static bool read_attribute(struct qn_reader *r, const struct qn_tables *tables, const char *user,
                           const char *what, char *word, unsigned seen[QN_TABLES])
{
    char reason[QN_FIELD_REASON];
    char *value = strchr(word, '=');
    int t;
    if (!value)
        return qn_reader_refuse(r, "%s: '%.40s' is no attribute: NAME=VALUE, without blanks", user,
                                word);
    *value++ = 0;
    const struct qn_field *field = find_field(tables, word, &t);
    if (!field)
        return refuse_field(r, tables, user, what, word);
    const unsigned bit = 1u << (field - tables->fields[t]);
    if (tables->elsewhere[t])
        return qn_reader_refuse(r, "%s: %s: %s", user, word, tables->elsewhere[t]);
    if (seen[t] & bit)
        return qn_reader_refuse(r, "%s: %s: is given twice", user, word);
    seen[t] |= bit;
    const char *wrong = qn_field_read(field, value, tables->params[t], &r->arena, reason);
    if (wrong && field->kind == QN_FIELD_FLOATS && list_of(field, tables->params[t])->count)
        qn_graph_fail(r->graph, QN_ERR_MEMORY, "%s: out of host memory", user);
    return wrong ? qn_reader_refuse(r, "%s: %s: %s", user, word, wrong) : true;
}

bool qn_reader_attributes(struct qn_reader *r, const struct qn_tables *tables, const char *user,
                          const char *what, char *at)
{
    unsigned seen[QN_TABLES] = {0};
    for (char *word; *(word = qn_reader_word(&at));)
        if (!read_attribute(r, tables, user, what, word, seen))
            return false;
    return true;
}
