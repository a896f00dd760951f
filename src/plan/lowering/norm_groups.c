/* SPDX-License-Identifier: MIT
 *
 * Groups of parameters of whose gradients the norms are told: by patterns of names, or by layers.
 */
#include "base/glob.h"
#include "base/log.h"
#include "plan/lowering/persist.h"

#include <string.h>

/* --- by patterns --- */

/* A copy of the first `length` bytes; NULL when out of memory. */
static const char *part_of(const struct qn_lowering *how, const char *text, size_t length)
{
    char *part = qn_arena_new(how->arena, char, length + 1);
    if (part)
        memcpy(part, text, length);
    return part;
}

/* Gives the trained parameters that the pattern matches, and that no group has yet, to a new group;
 * gives their number. */
static int add_matching(struct qn_persist *persist, const char *pattern, size_t length)
{
    struct qn_norm_groups *groups = &persist->groups;
    int found = 0;
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        if (!parameter->trainable || groups->of[p] >= 0 ||
            !qn_glob(pattern, length, parameter->node->name))
            continue;
        groups->of[p] = groups->count;
        found++;
    }
    groups->count++;
    return found;
}

static qn_status refuse(const struct qn_lowering *how, const struct qn_persist *persist,
                        const char *pattern)
{
    bool taken = false;
    for (int p = 0; p < persist->n_parameters; p++)
        taken |= persist->parameters[p].trainable &&
                 qn_glob(pattern, strlen(pattern), persist->parameters[p].node->name);
    return qn_fail(how->log, QN_ERR_ARGUMENT,
                   "plan: norm_groups: '%s' matches no trained parameter%s", pattern,
                   taken ? " that no pattern before it matches" : "");
}

static qn_status group_by_patterns(const struct qn_lowering *how, struct qn_persist *persist)
{
    struct qn_norm_groups *groups = &persist->groups;
    const char *at = how->params->norm_groups;
    size_t length;
    for (const char *pattern; (pattern = qn_glob_next(&at, &length));) {
        if (groups->count == QN_MAX_NORM_GROUPS)
            return qn_fail(how->log, QN_ERR_ARGUMENT, "plan: norm_groups: more than %d patterns",
                           QN_MAX_NORM_GROUPS);
        if (length > QN_GRAPH_MAX_NAME)
            return qn_fail(how->log, QN_ERR_ARGUMENT,
                           "plan: norm_groups: a pattern is longer than the %d bytes of a name",
                           QN_GRAPH_MAX_NAME);
        const char *name = part_of(how, pattern, length);
        if (!name)
            return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
        groups->name[groups->count] = name;
        if (!add_matching(persist, pattern, length))
            return refuse(how, persist, name);
    }
    return QN_OK;
}

/* --- by layers --- */

static bool is_number(const char *name, size_t length)
{
    return length && strspn(name, "0123456789") >= length;
}

/* Length of the part of a parameter's name that is its layer's: up to the first number between
 * dots, else up to the last dot. */
static size_t layer_length(const char *name)
{
    const char *last = strrchr(name, '.');
    for (const char *at = name; *at;) {
        const size_t length = strcspn(at, ".");
        if (is_number(at, length))
            return (size_t)(at - name) + length;
        at += length + (at[length] == '.');
    }
    return last ? (size_t)(last - name) : strlen(name);
}

/* The same without its last `cut` components, of which one stays. */
static size_t coarse_length(const char *name, int cut)
{
    size_t length = layer_length(name);
    for (size_t at = length; cut && at > 0; at--)
        if (name[at - 1] == '.') {
            length = at - 1;
            cut--;
        }
    return length;
}

static int find_group(const struct qn_norm_groups *groups, const char *name, size_t length)
{
    for (int g = 0; g < groups->count; g++)
        if (strlen(groups->name[g]) == length && strncmp(groups->name[g], name, length) == 0)
            return g;
    return -1;
}

/* Gives each trained parameter to the group of its name's part. *fits: there are not too many. */
static qn_status group_by_parts(const struct qn_lowering *how, struct qn_persist *persist, int cut,
                                bool *fits)
{
    struct qn_norm_groups *groups = &persist->groups;
    groups->count = 0;
    *fits = true;
    for (int p = 0; p < persist->n_parameters; p++) {
        const char *name = persist->parameters[p].node->name;
        const size_t length = coarse_length(name, cut);
        if (!persist->parameters[p].trainable)
            continue;
        groups->of[p] = find_group(groups, name, length);
        if (groups->of[p] >= 0)
            continue;
        *fits = groups->count < QN_MAX_NORM_GROUPS;
        if (!*fits)
            return QN_OK;
        groups->of[p] = groups->count;
        groups->name[groups->count] = part_of(how, name, length);
        if (!groups->name[groups->count++])
            return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    }
    return QN_OK;
}

static void no_groups(struct qn_persist *persist)
{
    persist->groups.count = 0;
    for (int p = 0; p < persist->n_parameters; p++)
        persist->groups.of[p] = -1;
}

/* Components of the longest name. */
static int most_components(const struct qn_persist *persist)
{
    int most = 0;
    for (int p = 0; p < persist->n_parameters; p++) {
        int count = 1;
        for (const char *at = persist->parameters[p].node->name; *at; at++)
            count += *at == '.';
        most = count > most ? count : most;
    }
    return most;
}

static qn_status group_by_layers(const struct qn_lowering *how, struct qn_persist *persist)
{
    const int most = most_components(persist);
    bool fits = false;
    for (int cut = 0; !fits && cut < most; cut++)
        QN_TRY(group_by_parts(how, persist, cut, &fits));
    if (fits)
        return QN_OK;
    no_groups(persist);
    persist->groups.name[0] = "*";
    add_matching(persist, "*", 1);
    return QN_OK;
}

/* --- both --- */

static bool allocate(const struct qn_lowering *how, struct qn_persist *persist)
{
    struct qn_norm_groups *groups = &persist->groups;
    groups->name = qn_arena_new(how->arena, const char *, QN_MAX_NORM_GROUPS);
    groups->of = qn_arena_new(how->arena, int, (size_t)persist->n_parameters + 1);
    if (!groups->name || !groups->of)
        return false;
    no_groups(persist);
    return true;
}

static qn_status add_values(const struct qn_lowering *how, struct qn_persist *persist)
{
    struct qn_norm_groups *groups = &persist->groups;
    struct qn_norm_groups_attr *attr = qn_arena_new(how->arena, struct qn_norm_groups_attr, 1);
    if (!attr)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    attr->groups = groups->count;
    groups->attr = attr;
    groups->table = qn_persist_add_array(persist, "groups of chunks", QN_I32, persist->n_chunks,
                                         QN_TAG_STATE, QN_LIFE_TRAINING);
    groups->norms = qn_persist_add_array(persist, "gradient norms of groups", QN_F32, groups->count,
                                         QN_TAG_STATE, QN_LIFE_TRAINING);
    return QN_OK;
}

qn_status qn_persist_lay_norm_groups(const struct qn_lowering *how, struct qn_persist *persist)
{
    const char *asked = how->params->norm_groups;
    persist->groups = (struct qn_norm_groups){.table = -1, .norms = -1};
    if (!asked || !*asked || !qn_runs_train(&persist->runs))
        return QN_OK;
    if (!allocate(how, persist))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    if (strcmp(asked, "auto") != 0)
        QN_TRY(group_by_patterns(how, persist));
    else if (persist->n_chunks)
        QN_TRY(group_by_layers(how, persist));
    return persist->groups.count ? add_values(how, persist) : QN_OK;
}

void qn_norm_groups_table(const struct qn_persist *persist, int32_t *table)
{
    for (int p = 0; p < persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &persist->parameters[p];
        for (int c = 0; parameter->block >= 0 && c < parameter->chunks; c++)
            table[parameter->first_chunk + c] = persist->groups.of[p];
    }
}
