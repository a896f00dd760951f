/* SPDX-License-Identifier: MIT
 *
 * Which tensors of a file and of a trainer belong together.
 */
#include "base/glob.h"
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"
#include "io/layout.h"
#include "io/tensors.h"
#include "run/checkpoint.h"

#include <stdio.h>
#include <string.h>

static const struct qn_weights_params everything;

enum { COMPARED = 1 << 16 }; /* bytes at a time */

/* A list of a trainer's tensors beside a file that they are to be loaded from. */
struct matching {
    const struct qn_weights_params *params;
    const struct qn_tensor_list *list;
    const qn_tensors *file; /* NULL: they are to be saved */
    bool exact;             /* of the trainer's own types alone */
    const char *path;
    const struct qn_log *log;
    struct qn_weights_record
        refused; /* the first that `params` do not allow; without a name: none */
    int taken;
};

/* --- what becomes of a tensor --- */

static bool is_chosen(const struct qn_weights_params *params, const char *name)
{
    const bool all = !params->include || !*params->include;
    return (all || qn_matches(params->include, name)) && !qn_matches(params->exclude, name);
}

/* What a name in the file means; NULL: nothing that the trainer has. */
static const struct qn_named *find_item(const struct qn_tensor_list *list, const char *in_file)
{
    for (int i = 0; i < list->count; i++)
        if (qn_layout_means(list->layout, list->bare, in_file, list->items[i].name))
            return &list->items[i];
    return NULL;
}

static const qn_tensors_entry *find_entry(const struct matching *m, const char *name)
{
    return qn_layout_find(m->list->layout, m->list->bare, m->file, name);
}

/* PyTorch's batch norm counts its batches in NAME.num_batches_tracked, beside NAME.running_mean. No
 * number of ours is made of it. */
static bool counts_batches(const struct qn_tensor_list *list, const char *name)
{
    char state[128];
    const char *last = strrchr(name, '.');
    if (!last || strcmp(last, ".num_batches_tracked") != 0)
        return false;
    int written = snprintf(state, sizeof state, "%.*s.running_mean", (int)(last - name), name);
    return written < (int)sizeof state && find_item(list, state);
}

static bool fits_type(const struct matching *m, qn_dtype have, qn_dtype want)
{
    return have == want || (!m->exact && qn_number_is_float(have) && qn_number_is_float(want));
}

/* Whether a file's tensor begins with what is wanted, and the layout says that this will do. */
static bool has_more_rows(const struct matching *m, const char *name, const qn_shape *have,
                          const qn_shape *want)
{
    qn_shape same = *have;
    if (!qn_layout_says(m->list->layout, name, QN_LAYOUT_FIRST_ROWS) || !same.rank)
        return false;
    same.dim[0] = want->dim[0];
    return have->dim[0] > want->dim[0] && qn_shape_equal(&same, want);
}

/* Of a tensor of the trainer. */
static qn_weights_fate fate_of_item(const struct matching *m, const struct qn_named *item)
{
    const qn_tensors_entry *entry = find_entry(m, item->name);
    const qn_shape want = qn_layout_shape(m->list->layout, item->name, item->shape);
    if (!is_chosen(m->params, item->name))
        return QN_WEIGHTS_LEFT_OUT;
    if (!m->file)
        return QN_WEIGHTS_TAKEN;
    if (!entry)
        return QN_WEIGHTS_NOT_IN_FILE;
    if (!fits_type(m, entry->dtype, item->dtype))
        return QN_WEIGHTS_OTHER_TYPE;
    if (has_more_rows(m, item->name, &entry->shape, &want))
        return QN_WEIGHTS_FIRST_ROWS;
    return qn_shape_equal(&entry->shape, &want) ? QN_WEIGHTS_TAKEN : QN_WEIGHTS_OTHER_SHAPE;
}

/* Whether the layout knows a tensor that the trainer does not have. */
static bool is_known(const qn_layout *layout, const char *name)
{
    const qn_layout_rule *rule = qn_layout_rule_of(layout, name);
    return rule && (rule->kind == QN_LAYOUT_SKIPPED || rule->kind == QN_LAYOUT_TIED);
}

/* Of a tensor that the file alone has. */
static qn_weights_fate fate_of_entry(const struct matching *m, const char *name)
{
    return is_chosen(m->params, name) && !counts_batches(m->list, name) &&
                   !is_known(m->list->layout, name)
               ? QN_WEIGHTS_NOT_IN_MODEL
               : QN_WEIGHTS_LEFT_OUT;
}

static bool is_taken(qn_weights_fate fate)
{
    return fate == QN_WEIGHTS_TAKEN || fate == QN_WEIGHTS_FIRST_ROWS;
}

static bool is_allowed(const struct qn_weights_params *params, qn_weights_fate fate)
{
    switch (fate) {
    case QN_WEIGHTS_TAKEN:
    case QN_WEIGHTS_FIRST_ROWS:
    case QN_WEIGHTS_LEFT_OUT:
        return true;
    case QN_WEIGHTS_NOT_IN_FILE:
    case QN_WEIGHTS_NOT_IN_MODEL:
        return params->partial;
    case QN_WEIGHTS_OTHER_SHAPE:
        return params->skip_other_shapes;
    case QN_WEIGHTS_OTHER_TYPE:
        break;
    }
    return false;
}

static qn_status refuse(const struct matching *m)
{
    char have[80], want[80];
    const struct qn_weights_record *r = &m->refused;
    qn_shape want_shape;
    switch (r->fate) {
    case QN_WEIGHTS_NOT_IN_FILE:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: is missing", m->path, r->name);
    case QN_WEIGHTS_NOT_IN_MODEL:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: the model has none of that name",
                       m->path, r->name);
    case QN_WEIGHTS_OTHER_TYPE:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: is %s, not %s", m->path, r->name,
                       find_entry(m, r->name)->type,
                       qn_tensors_type_of(find_item(m->list, r->name)->dtype)->name);
    default:
        want_shape = qn_layout_shape(m->list->layout, r->name, r->model);
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: has shape %s, not %s", m->path,
                       r->name, qn_shape_text(&r->file, have, sizeof have),
                       qn_shape_text(&want_shape, want, sizeof want));
    }
}

/* --- tensors that are one --- */

static qn_status compare(const struct matching *m, const qn_tensors_entry *a,
                         const qn_tensors_entry *b, bool *same)
{
    unsigned char have[COMPARED], want[COMPARED];
    *same = a->dtype == b->dtype && a->bytes == b->bytes && qn_shape_equal(&a->shape, &b->shape);
    for (int64_t at = 0; *same && at < a->bytes; at += COMPARED) {
        const int64_t size = a->bytes - at < COMPARED ? a->bytes - at : COMPARED;
        QN_TRY(qn_tensors_read(m->file, a, at, have, size));
        QN_TRY(qn_tensors_read(m->file, b, at, want, size));
        *same = memcmp(have, want, (size_t)size) == 0;
    }
    return QN_OK;
}

/* A tensor that the file alone has, and that the model means to be another of its own. */
static qn_status check_tied(const struct matching *m, const qn_tensors_entry *entry)
{
    const qn_layout_rule *rule = qn_layout_rule_of(m->list->layout, entry->name);
    if (!rule || rule->kind != QN_LAYOUT_TIED || !is_chosen(m->params, entry->name))
        return QN_OK;
    const qn_tensors_entry *other = find_entry(m, rule->tied);
    bool same = true;
    if (other)
        QN_TRY(compare(m, entry, other, &same));
    return same ? QN_OK
                : qn_fail(m->log, QN_ERR_FORMAT,
                          "%s: tensor %s: differs from %s, and the model has one for both", m->path,
                          entry->name, other->name);
}

/* --- all of them --- */

/* A pattern that matches nothing on either side is a slip of the pen. */
static qn_status check_patterns(const struct matching *m, const char *field, const char *patterns)
{
    size_t length;
    for (const char *pattern; (pattern = qn_glob_next(&patterns, &length));) {
        bool found = false;
        for (int i = 0; i < m->list->count && !found; i++)
            found = qn_glob(pattern, length, m->list->items[i].name);
        for (int64_t i = 0; i < qn_tensors_count(m->file) && !found; i++)
            found = qn_glob(pattern, length, qn_tensors_at(m->file, i)->name);
        if (!found)
            return qn_fail(m->log, QN_ERR_ARGUMENT, "%s: %s: no tensor is called '%.*s'", m->path,
                           field, (int)length, pattern);
    }
    return QN_OK;
}

static void tell(struct matching *m, const struct qn_weights_record *record)
{
    m->taken += is_taken(record->fate);
    if (!m->refused.name && !is_allowed(m->params, record->fate))
        m->refused = *record;
    if (m->params->fn)
        m->params->fn(m->params->user, record);
}

static qn_status match(struct matching *m)
{
    QN_TRY(check_patterns(m, "include", m->params->include));
    QN_TRY(check_patterns(m, "exclude", m->params->exclude));
    for (int i = 0; i < m->list->count; i++) {
        const struct qn_named *item = &m->list->items[i];
        const qn_tensors_entry *entry = find_entry(m, item->name);
        tell(m, &(struct qn_weights_record){.name = item->name,
                                            .fate = fate_of_item(m, item),
                                            .model = item->shape,
                                            .file = entry ? entry->shape : (qn_shape){0}});
    }
    for (int64_t i = 0; i < qn_tensors_count(m->file); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(m->file, i);
        if (!find_item(m->list, entry->name))
            tell(m, &(struct qn_weights_record){.name = entry->name,
                                                .fate = fate_of_entry(m, entry->name),
                                                .file = entry->shape});
    }
    if (m->refused.name)
        return refuse(m);
    if (!m->taken && m->list->count)
        return qn_fail(m->log, QN_ERR_ARGUMENT, "%s: no tensor at all is to be %s", m->path,
                       m->file ? "loaded" : "saved");
    for (int64_t i = 0; i < qn_tensors_count(m->file); i++)
        if (!find_item(m->list, qn_tensors_at(m->file, i)->name))
            QN_TRY(check_tied(m, qn_tensors_at(m->file, i)));
    return QN_OK;
}

qn_status qn_match_tensors(struct qn_tensor_list *list, const struct qn_weights_params *params,
                           const qn_tensors *file, const char *path, const struct qn_log *log)
{
    struct matching m = {.params = params ? params : &everything,
                         .list = list,
                         .file = file,
                         .exact = !params,
                         .path = path,
                         .log = log};
    int kept = 0;
    list->layout = m.params->layout;
    list->bare = qn_layout_is_bare(list->layout, file);
    QN_TRY(match(&m));
    for (int i = 0; i < list->count; i++) {
        if (!is_taken(fate_of_item(&m, &list->items[i])))
            continue;
        list->items[kept] = list->items[i];
        list->offsets[kept++] = list->offsets[i];
    }
    list->count = kept;
    return QN_OK;
}
