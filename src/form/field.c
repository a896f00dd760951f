/* SPDX-License-Identifier: MIT */
#include "form/field.h"

#include "op/chain.h"
#include "op/cross_entropy.h"
#include "op/elementwise.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a list of class weights, means or rates. */
enum { MOST_FLOATS = 1 << 20 };

static const char *refuse(char reason[QN_FIELD_REASON], const char *text, const char *what)
{
    snprintf(reason, QN_FIELD_REASON, "'%.40s' is not %.100s", text, what);
    return reason;
}

/* --- reading --- */

static bool whole(const struct qn_field *field, const char **at, double *value)
{
    return qn_form_number(*at, at, value) && *value == floor(*value) && *value >= field->least &&
           *value <= field->most;
}

static bool read_number(const struct qn_field *field, const char *text, void *to)
{
    double value;
    const char *at = text;
    if (field->kind == QN_FIELD_INT || field->kind == QN_FIELD_LONG) {
        if (!whole(field, &at, &value) || *at)
            return false;
        if (field->kind == QN_FIELD_INT)
            *(int *)to = (int)value;
        else
            *(int64_t *)to = (int64_t)value;
        return true;
    }
    if (!qn_form_number(text, &at, &value) || *at || value < field->least || value > field->most)
        return false;
    *(double *)to = value;
    return true;
}

static bool read_pair(const struct qn_field *field, const char *at, int to[2])
{
    double value;
    if (!whole(field, &at, &value))
        return false;
    to[0] = to[1] = (int)value;
    if (*at == ',') {
        at++;
        if (!whole(field, &at, &value))
            return false;
        to[1] = (int)value;
    }
    return !*at;
}

static bool read_switch(const char *text, bool *to)
{
    *to = strcmp(text, "yes") == 0;
    return *to || strcmp(text, "no") == 0;
}

static bool read_word(const struct qn_field *field, const char *text, int *to)
{
    for (*to = 0; field->words[*to]; ++*to)
        if (*text && strcmp(field->words[*to], text) == 0)
            return true;
    return false;
}

static bool read_axes(const char *at, struct qn_form_axes *to)
{
    static const struct qn_field axis = {.least = 0, .most = QN_MAX_DIMS - 1};
    double value;
    to->rank = 0;
    do {
        if (to->rank == QN_MAX_DIMS || !whole(&axis, &at, &value))
            return false;
        to->axis[to->rank++] = (int)value;
    } while (*at == ',' && *++at);
    return !*at && at[-1] != ',';
}

static bool read_ignore(const struct qn_field *field, const char *text, qn_cross_entropy_params *to)
{
    to->ignore = true;
    const struct qn_field label = {
        .kind = QN_FIELD_INT, .least = field->least, .most = field->most};
    return read_number(&label, text, &to->ignore_label);
}

/* --- chains: OPERATION:A, OPERATION:A:B, OPERATION:A:B:VALUE --- */

static bool chain_name(int op, char name[32])
{
    int i = 0;
    if (op < 0 || op >= QN_CHAIN_OPERATIONS)
        return false;
    for (const char *from = qn_chain_infos[op].name; *from && i < 31; from++)
        name[i++] = (char)tolower((unsigned char)*from);
    name[i] = 0;
    return true;
}

static bool read_step(const char **at, qn_chain_step *step)
{
    static const struct qn_field operand = {.least = 0, .most = QN_CHAIN_STEP + QN_CHAIN_STEPS};
    const size_t length = strcspn(*at, ":,");
    char name[32];
    double value;
    int op = 0;
    while (chain_name(op, name) && !(strlen(name) == length && strncmp(name, *at, length) == 0))
        op++;
    *at += length;
    if (op >= QN_CHAIN_OPERATIONS || *(*at)++ != ':' || !whole(&operand, at, &value))
        return false;
    *step = (qn_chain_step){.op = (qn_chain_op)op, .a = (int)value};
    if (**at != ':')
        return true;
    ++*at;
    if (!whole(&operand, at, &value))
        return false;
    step->b = (int)value;
    if (**at != ':')
        return true;
    ++*at;
    return qn_form_number(*at, at, &step->value);
}

static bool read_steps(const char *at, struct qn_form_steps *to)
{
    to->count = 0;
    do {
        if (to->count == QN_CHAIN_STEPS || !read_step(&at, &to->step[to->count++]))
            return false;
    } while (*at == ',' && *++at);
    return !*at && at[-1] != ',';
}

static void put_steps(struct qn_text *text, const struct qn_chain_attr *attr)
{
    char name[32];
    for (int k = 0; k < attr->count; k++) {
        const struct qn_chain_link *step = &attr->step[k];
        chain_name(step->op, name);
        qn_text_add(text, "%s%s:%d", k ? "," : "", name, step->a);
        if (step->b || step->value != 0)
            qn_text_add(text, ":%d", step->b);
        if (step->value != 0) {
            qn_text_add(text, ":");
            qn_form_put(text, (double)step->value, true);
        }
    }
}

/* --- first values: zeros, ones, he, fan_in(256), normal(0,0.02) --- */

static const char *const rules[] = {"zeros",  "ones",     "he",      "fan_in",
                                    "normal", "constant", "uniform", NULL};

/* The numbers in brackets behind a name, at most two; gives how many, -1: they are not sound. */
static int read_brackets(const char *at, double value[2])
{
    int count = 0;
    if (!*at)
        return 0;
    do {
        if (count == 2 || !qn_form_number(at + 1, &at, &value[count++]))
            return -1;
    } while (*at == ',');
    return strcmp(at, ")") == 0 ? count : -1;
}

static bool read_init(const char *text, struct qn_form_init *to)
{
    enum { ZEROS, ONES, HE, FAN_IN, NORMAL, CONSTANT, UNIFORM };
    static const qn_init_kind kinds[] = {
        [NORMAL] = QN_INIT_NORMAL, [CONSTANT] = QN_INIT_CONSTANT, [UNIFORM] = QN_INIT_UNIFORM};
    const size_t length = strcspn(text, "(");
    double value[2] = {0};
    int rule = 0;
    while (rules[rule] && !(strlen(rules[rule]) == length && !strncmp(rules[rule], text, length)))
        rule++;
    const int count = rules[rule] ? read_brackets(text + length, value) : -1;
    *to = (struct qn_form_init){.kind = QN_FORM_INIT_PLAIN};
    if (rule == ZEROS || rule == ONES) {
        to->plain = qn_init_constant(rule == ONES);
        return count == 0;
    }
    if (rule == HE || rule == FAN_IN) {
        to->kind = rule == HE ? QN_FORM_INIT_HE : QN_FORM_INIT_FAN_IN;
        to->count = (int64_t)(value[0] >= 1 && value[0] <= 0x1p40 ? value[0] : 0);
        return count == 0 || (count == 1 && to->count > 0 && (double)to->count == value[0]);
    }
    if (count != (rule == CONSTANT ? 1 : 2))
        return false;
    to->plain = (qn_init){kinds[rule], value[0], value[1]};
    return true;
}

/* --- all kinds --- */

void qn_field_range(const struct qn_field *field, char text[QN_FIELD_REASON])
{
    static const char *const kinds[] = {
        [QN_FIELD_SWITCH] = "yes or no",
        [QN_FIELD_SHAPE] = "a shape of at most 6 dimensions, as Bx3x28x28 with B for the batch",
        [QN_FIELD_AXES] = "numbers of dimensions with commas, as 0,2,1",
        [QN_FIELD_FLOATS] = "numbers with commas, as 0.5,0.25",
        [QN_FIELD_STEPS] = "steps of a chain, as add:0:5,gelu:8",
        [QN_FIELD_INIT] = "zeros, ones, he, he(N), fan_in, fan_in(N), normal(MEAN,DEVIATION), "
                          "uniform(FROM,TO) or constant(NUMBER)",
    };
    const bool real = field->kind == QN_FIELD_REAL || field->kind == QN_FIELD_DOUBLE;
    int length = 0;
    if (field->kind == QN_FIELD_WORD)
        for (int i = 0; field->words[i] && length < QN_FIELD_REASON; i++)
            length += snprintf(text + length, (size_t)(QN_FIELD_REASON - length), "%s%s",
                               length ? " or " : "", field->words[i]);
    else if (field->kind < sizeof kinds / sizeof *kinds && kinds[field->kind])
        snprintf(text, QN_FIELD_REASON, "%s", kinds[field->kind]);
    else
        snprintf(text, QN_FIELD_REASON, "%s from %.12g to %.12g%s",
                 real ? "a number" : "a whole number", field->least, field->most,
                 field->kind == QN_FIELD_PAIR ? ", or two: height,width" : "");
}

static bool read_text(const struct qn_field *field, char *text, void *to, struct qn_arena *arena)
{
    const char *wrong;
    switch (field->kind) {
    case QN_FIELD_SWITCH:
        return read_switch(text, to);
    case QN_FIELD_WORD:
        return read_word(field, text, to);
    case QN_FIELD_PAIR:
        return read_pair(field, text, to);
    case QN_FIELD_SHAPE:
        return qn_form_shape(text, to);
    case QN_FIELD_AXES:
        return read_axes(text, to);
    case QN_FIELD_FLOATS: {
        struct qn_form_floats *floats = to;
        floats->values = qn_form_floats(text, MOST_FLOATS, arena, &floats->count, &wrong);
        return floats->values != NULL;
    }
    case QN_FIELD_IGNORE:
        return read_ignore(field, text, to);
    case QN_FIELD_STEPS:
        return read_steps(text, to);
    case QN_FIELD_INIT:
        return read_init(text, to);
    default:
        return read_number(field, text, to);
    }
}

const char *qn_field_read(const struct qn_field *field, char *text, void *params,
                          struct qn_arena *arena, char reason[QN_FIELD_REASON])
{
    char range[QN_FIELD_REASON];
    if (read_text(field, text, (char *)params + field->in_params, arena))
        return NULL;
    qn_field_range(field, range);
    return refuse(reason, text, range);
}

/* --- writing --- */

static double number_of(const struct qn_field *field, const void *at)
{
    return field->kind == QN_FIELD_LONG     ? (double)*(const int64_t *)at
           : field->kind == QN_FIELD_REAL   ? (double)*(const float *)at
           : field->kind == QN_FIELD_DOUBLE ? *(const double *)at
                                            : *(const int *)at;
}

static bool same_number(const struct qn_field *field, const void *at, double number)
{
    return number_of(field, at) == (field->kind == QN_FIELD_REAL ? (double)(float)number : number);
}

static const struct qn_node *constant_of(const struct qn_field *field, const qn_graph *graph,
                                         const struct qn_node *node)
{
    const uint32_t tensor = node->in[field->in_node];
    return tensor ? &graph->nodes[graph->tensors[tensor].node] : NULL;
}

static bool all_are(const struct qn_node *constant, double value)
{
    for (int64_t i = 0; i < constant->leaf.shape.dim[0]; i++)
        if (constant->values[i] != (float)value)
            return false;
    return true;
}

static bool is_usual(const struct qn_field *field, const qn_graph *graph,
                     const struct qn_node *node, const void *at)
{
    if (field->usual)
        return field->usual(graph, node);
    switch (field->kind) {
    case QN_FIELD_FLOATS:
        return !constant_of(field, graph, node) ||
               all_are(constant_of(field, graph, node), field->standard);
    case QN_FIELD_PAIR:
        return ((const int *)at)[0] == field->standard && ((const int *)at)[1] == field->standard;
    case QN_FIELD_IGNORE:
        return !((const struct qn_cross_entropy_attr *)at)->ignore;
    case QN_FIELD_SHAPE:
    case QN_FIELD_AXES:
    case QN_FIELD_STEPS:
        return false;
    default:
        return same_number(field, at, field->standard);
    }
}

static void put_floats(struct qn_text *text, const struct qn_field *field,
                       const struct qn_node *constant)
{
    const bool one = field->spread && all_are(constant, (double)constant->values[0]);
    qn_form_put_floats(text, constant->values, one ? 1 : constant->leaf.shape.dim[0], ',');
}

static void put_list(struct qn_text *text, const int *values, int count)
{
    for (int i = 0; i < count; i++)
        qn_text_add(text, "%s%d", i ? "," : "", values[i]);
}

static void put_shape(struct qn_text *text, const struct qn_reshape_attr *attr)
{
    qn_shape shape = {.rank = attr->rank};
    memcpy(shape.dim, attr->dim, sizeof shape.dim);
    qn_form_put_shape(text, &shape);
}

void qn_field_write(struct qn_text *text, const struct qn_field *field, const qn_graph *graph,
                    const struct qn_node *node, const void *kept)
{
    if (field->in_node == QN_FIELD_UNKEPT)
        return;
    const void *at = field->kind == QN_FIELD_FLOATS ? NULL : (const char *)kept + field->in_node;
    if (is_usual(field, graph, node, at))
        return;
    qn_text_add(text, " %s=", field->name);
    switch (field->kind) {
    case QN_FIELD_SWITCH:
        qn_text_add(text, *(const int *)at ? "yes" : "no");
        break;
    case QN_FIELD_WORD:
        qn_text_add(text, "%s", field->words[*(const int *)at]);
        break;
    case QN_FIELD_PAIR:
        put_list(text, at, ((const int *)at)[0] == ((const int *)at)[1] ? 1 : 2);
        break;
    case QN_FIELD_SHAPE:
        put_shape(text, at);
        break;
    case QN_FIELD_AXES:
        put_list(text, ((const struct qn_transpose_attr *)at)->axis,
                 ((const struct qn_transpose_attr *)at)->rank);
        break;
    case QN_FIELD_FLOATS:
        put_floats(text, field, constant_of(field, graph, node));
        break;
    case QN_FIELD_IGNORE:
        qn_text_add(text, "%d", ((const struct qn_cross_entropy_attr *)at)->ignored_label);
        break;
    case QN_FIELD_STEPS:
        put_steps(text, at);
        break;
    case QN_FIELD_INT:
        qn_text_add(text, "%d", *(const int *)at);
        break;
    case QN_FIELD_LONG:
        qn_text_add(text, "%" PRId64, *(const int64_t *)at);
        break;
    default:
        qn_form_put(text, number_of(field, at), field->kind == QN_FIELD_REAL);
    }
}
