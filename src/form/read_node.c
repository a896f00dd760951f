/* SPDX-License-Identifier: MIT
 *
 * Lines that make a node of an operator, with parameters of their own where they name none.
 */
#include "form/reader.h"

#include <stdio.h>
#include <string.h>

/* "x, weight, bias" of "x weight bias?" */
static const char *list_operands(const struct qn_form *form, char text[120])
{
    size_t length = 0;
    for (const char *c = form->operands; *c && length < 117; c++) {
        if (*c == ' ')
            text[length++] = ',';
        if (*c != '?')
            text[length++] = *c;
    }
    text[length] = 0;
    return text;
}

static bool is_optional(const struct qn_form *form, int i)
{
    const char *word = form->operands;
    for (; i > 0; i--)
        word = strchr(word, ' ') + 1;
    const char *end = word + strcspn(word, " ");
    return end[-1] == '?';
}

/* The next operand, up to a comma: none, or a tensor. */
static bool read_operand(struct qn_reader *r, const struct qn_form *form, const char *name, int i,
                         const char *operand, qn_tensor *tensor)
{
    char known[120];
    if (!*operand)
        return qn_reader_refuse(r, "%s: an operand is missing; - stands for none", name);
    if (strcmp(operand, "-") != 0)
        return qn_reader_tensor(r, name, operand, tensor);
    return is_optional(form, i) ? true
                                : qn_reader_refuse(r, "%s: %s needs %s", name, form->name,
                                                   list_operands(form, known));
}

/* What stands in the brackets; `*count` operands. */
static bool read_operands(struct qn_reader *r, const struct qn_form *form, const char *name,
                          char *at, qn_tensor in[QN_FORM_OPERANDS], int *count)
{
    char known[120];
    int required;
    const int most = qn_form_operands(form, &required);
    bool fits = true;
    *count = 0;
    for (bool more = *qn_reader_trim(at); more && fits; ++*count) {
        char *end = at + strcspn(at, ",");
        more = *end == ',';
        *end = 0;
        fits = *count < most;
        if (fits && !read_operand(r, form, name, *count, qn_reader_trim(at), &in[*count]))
            return false;
        at = end + 1;
    }
    for (int i = *count; i < most && !(form->layer && *count == 1); i++)
        fits = fits && is_optional(form, i);
    return fits ? true
                : qn_reader_refuse(r, "%s: %s takes %s", name, form->name,
                                   list_operands(form, known));
}

static bool make_parameters(struct qn_reader *r, const struct qn_form *form, const char *name,
                            const void *params, const struct qn_form_sizes *sizes, qn_tensor *in)
{
    char full[2 * QN_GRAPH_MAX_NAME];
    struct qn_form_parameter made[2];
    for (const struct qn_field *f = form->layer->fields; f->name; f++) {
        const void *at = (const char *)sizes + f->in_params;
        if ((f->kind == QN_FIELD_LONG && *(const int64_t *)at == 0) ||
            (f->kind == QN_FIELD_PAIR && *(const int *)at == 0))
            return qn_reader_refuse(r, "%s: %s: is missing, and so is the weight", name, f->name);
    }
    const qn_shape x = qn_shape_of(r->graph, in[0]);
    const int count = form->layer->parameters(&x, params, sizes, made);
    for (int i = 0; i < count; i++) {
        snprintf(full, sizeof full, "%s.%s", name, made[i].what);
        if (!qn_reader_name(r, full))
            return false;
        in[1 + i] = qn_parameter(r->graph, full, made[i].rank, made[i].dim, &made[i].init);
    }
    return r->graph->status == QN_OK;
}

static void make_node(struct qn_reader *r, const struct qn_form *form, const char *name,
                      qn_tensor *in, int count, char *attributes)
{
    union {
        char bytes[QN_FORM_PARAMS];
        double aligned;
    } params = {{0}};
    struct qn_form_sizes sizes = {.bias = true};
    bool recompute = false;
    const bool makes = form->layer && count == 1;
    const struct qn_tables tables = {
        .fields = {form->fields, form->layer ? form->layer->fields : NULL, qn_form_node_fields},
        .params = {&params, &sizes, &recompute},
        .elsewhere = {NULL, makes ? NULL : "is of lines that make the weight themselves", NULL}};
    if (!qn_reader_attributes(r, &tables, name, form->name, attributes) ||
        (makes && !make_parameters(r, form, name, &params, &sizes, in)))
        return;
    r->graph->source.name = name;
    const qn_tensor made = form->make(r->graph, in, &params);
    r->graph->source.name = NULL;
    if (made.id && recompute)
        qn_recompute(r->graph, made);
}

static bool refuse_operator(struct qn_reader *r, const char *name, const char *op)
{
    char hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = op};
    for (const struct qn_form *form = qn_forms; form->name; form++)
        qn_nearest_offer(&nearest, form->name);
    return qn_reader_refuse(r, "%s: '%.60s' is no operator%s", name, op,
                            qn_nearest_hint(&nearest, hint));
}

void qn_reader_node(struct qn_reader *r, const char *name, char *at)
{
    qn_tensor in[QN_FORM_OPERANDS] = {{0}};
    char *open = strchr(at, '('), *close = open ? strchr(open, ')') : NULL;
    if (!close) {
        qn_reader_refuse(r, "%s: is no NAME = OPERATOR(OPERANDS) ATTRIBUTE=VALUE ...", name);
        return;
    }
    *open = *close = 0;
    const char *op = qn_reader_trim(at);
    const struct qn_form *form = qn_form_find(op);
    if (!form) {
        refuse_operator(r, name, op);
        return;
    }
    if (close[1] && !strchr(QN_BLANKS, close[1])) {
        qn_reader_refuse(r, "%s: a blank is missing behind )", name);
        return;
    }
    int count;
    if (read_operands(r, form, name, open + 1, in, &count))
        make_node(r, form, name, in, count, close + 1);
}
