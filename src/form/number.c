/* SPDX-License-Identifier: MIT
 *
 * Numbers, lists of them, shapes and first values as text.
 */
#include "base/shape.h"
#include "form/field.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 64 };

/* strtod wants the point of the locale. */
static char point_of_locale(void)
{
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    return half[1];
}

bool qn_form_number(const char *text, const char **end, double *value)
{
    char copy[NUMBER_BYTES], *last;
    const size_t length = strspn(text, "0123456789+-.eE");
    if (!length || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    char *point = strchr(copy, '.');
    if (point)
        *point = point_of_locale();
    *value = strtod(copy, &last);
    *end = text + length;
    return last == copy + length && isfinite(*value);
}

void qn_form_put(struct qn_text *text, double value, bool single)
{
    char copy[NUMBER_BYTES];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(copy, sizeof copy, "%.*g", digits, value);
        const double again = strtod(copy, NULL);
        if (single ? (float)again == (float)value : again == value)
            break;
    }
    const double size = fabs(value);
    for (int places = 1; size < 1e7 && size >= pow(10, places); places++)
        digits = digits > places + 1 ? digits : places + 1;
    qn_text_number(text, digits, value);
}

/* --- shapes --- */

/* "3", "B" or "2B"; false: neither, or it does not fit. */
static bool read_dimension(const char **at, int64_t *dim)
{
    char *end = (char *)*at;
    int64_t value = 1;
    if (**at >= '0' && **at <= '9') {
        errno = 0;
        value = strtoll(*at, &end, 10);
        if (errno)
            return false;
    }
    const bool batch = *end == 'B';
    if (!batch && end == *at)
        return false;
    *at = end + batch;
    *dim = batch ? value * QN_BATCH : value;
    return !batch || value > 0;
}

bool qn_form_shape(const char *text, qn_shape *shape)
{
    *shape = (qn_shape){0};
    if (strcmp(text, "scalar") == 0)
        return true;
    do {
        if (shape->rank == QN_MAX_DIMS || !read_dimension(&text, &shape->dim[shape->rank++]))
            return false;
    } while (*text == 'x' && *++text);
    return !*text && text[-1] != 'x';
}

void qn_form_put_shape(struct qn_text *text, const qn_shape *shape)
{
    if (!shape->rank)
        qn_text_add(text, "scalar");
    for (int i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dim[i];
        qn_text_add(text, i ? "x" : "");
        if (dim >= 0 || dim < QN_BATCH)
            qn_text_add(text, "%" PRId64, dim < 0 ? -dim : dim);
        qn_text_add(text, dim < 0 ? "B" : "");
    }
}

/* --- lists --- */

static const char BETWEEN[] = " \t,";

/* "0.5" or "3*0.5", and what stands behind it. */
static bool read_run(const char **at, int64_t *times, double *value)
{
    const char *end;
    *times = 1;
    if (!qn_form_number(*at, &end, value))
        return false;
    if (*end == '*') {
        if (!(*value >= 1 && *value <= 0x1p40 && *value == floor(*value)))
            return false;
        *times = (int64_t)*value;
        if (!qn_form_number(end + 1, &end, value))
            return false;
    }
    *at = end;
    return fabs(*value) <= 3.5e38 && isfinite((float)*value);
}

/* How many numbers the list has, 0: more than `most`, or with `*wrong` something else. */
static int64_t count_numbers(const char *text, int64_t most, const char **wrong)
{
    int64_t count = 0, times;
    double value;
    for (const char *at = text; *at; at += strspn(at, BETWEEN)) {
        *wrong = at;
        if (!read_run(&at, &times, &value) || (*at && !strchr(BETWEEN, *at)))
            return 0;
        *wrong = NULL;
        if (times > most - count)
            return 0;
        count += times;
    }
    return count;
}

float *qn_form_floats(const char *text, int64_t most, struct qn_arena *arena, int64_t *count,
                      const char **wrong)
{
    int64_t times;
    double value;
    *wrong = NULL;
    *count = count_numbers(text, most, wrong);
    float *values = *count ? qn_arena_new(arena, float, (size_t)*count) : NULL, *to = values;
    for (const char *at = text; values && *at; at += strspn(at, BETWEEN))
        for (read_run(&at, &times, &value); times > 0; times--)
            *to++ = (float)value;
    return values;
}

void qn_form_put_floats(struct qn_text *text, const float *values, int64_t count, char between)
{
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && memcmp(&values[next], &values[i], sizeof *values) == 0;)
            next++;
        if (i)
            qn_text_add(text, "%c", between);
        if (next - i > 2)
            qn_text_add(text, "%" PRId64 "*", next - i);
        else
            next = i + 1;
        qn_form_put(text, (double)values[i], true);
    }
}

/* --- first values --- */

static int64_t fan_in_of(const qn_shape *shape)
{
    const int64_t count = qn_shape_span(shape, 1, shape->rank);
    return count > 0 ? count : 1;
}

qn_init qn_form_init(const struct qn_form_init *init, const qn_shape *shape)
{
    const int64_t count = init->count ? init->count : fan_in_of(shape);
    if (init->kind == QN_FORM_INIT_HE)
        return qn_init_he(count);
    if (init->kind == QN_FORM_INIT_FAN_IN)
        return qn_init_fan_in(count);
    return init->plain;
}

static bool same_init(const qn_init *a, qn_init b)
{
    return a->kind == b.kind && a->a == b.a && a->b == b.b;
}

/* Whether somebody wrote the number rather than worked it out. */
static bool is_round(double value)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL) == value;
}

/* "he" or "he(9)", if the rule gives this first value for what the shape says, or for `about`. */
static bool put_rule(struct qn_text *text, const qn_init *init, const qn_shape *shape,
                     const char *name, qn_init (*rule)(int64_t fan_in), double about)
{
    if (same_init(init, rule(fan_in_of(shape)))) {
        qn_text_add(text, "%s", name);
        return true;
    }
    if (is_round(init->b) || !(about >= 1 && about <= 0x1p40) ||
        !same_init(init, rule((int64_t)round(about))))
        return false;
    qn_text_add(text, "%s(%.0f)", name, round(about));
    return true;
}

static void put_plain(struct qn_text *text, const qn_init *init)
{
    static const char *const names[] = {[QN_INIT_CONSTANT] = "constant",
                                        [QN_INIT_UNIFORM] = "uniform",
                                        [QN_INIT_NORMAL] = "normal"};
    qn_text_add(text, "%s(", names[init->kind]);
    qn_form_put(text, init->a, false);
    if (init->kind != QN_INIT_CONSTANT) {
        qn_text_add(text, ",");
        qn_form_put(text, init->b, false);
    }
    qn_text_add(text, ")");
}

void qn_form_put_init(struct qn_text *text, const qn_init *init, const qn_shape *shape)
{
    if (init->kind == QN_INIT_CONSTANT && (init->a == 0 || init->a == 1) && !signbit(init->a))
        qn_text_add(text, init->a == 0 ? "zeros" : "ones");
    else if (init->kind == QN_INIT_NORMAL && init->b > 0 &&
             put_rule(text, init, shape, "he", qn_init_he, 2 / (init->b * init->b)))
        return;
    else if (init->kind == QN_INIT_UNIFORM && init->b > 0 &&
             put_rule(text, init, shape, "fan_in", qn_init_fan_in, 1 / (init->b * init->b)))
        return;
    else
        put_plain(text, init);
}
