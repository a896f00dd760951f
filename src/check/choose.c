/* SPDX-License-Identifier: MIT */
#include "check/choose.h"

#include <string.h>

/* The first setting at which the variant fits; -1: none. */
static int first_setting(const struct qn_variant *v, struct qn_call *call, const char **why)
{
    for (int setting = 0; setting < qn_setting_count(v); setting++)
        if (qn_call_fits(call, v, setting, why))
            return setting;
    return -1;
}

/* The variant `name` at that setting if it fits, otherwise the first variant that fits. */
static struct qn_pick pick(const struct qn_group *group, struct qn_call *call, const char *name,
                           int setting, const char **why)
{
    struct qn_pick first = {0};
    for (const struct qn_variant *v = group->variant;
         v < group->variant + QN_MAX_VARIANTS && v->name; v++) {
        const bool wanted = strcmp(v->name, name) == 0 && setting < qn_setting_count(v);
        const char *reason = "";
        if (wanted && qn_call_fits(call, v, setting, &reason))
            return (struct qn_pick){v, setting};
        *why = wanted ? reason : *why;
        const int other = first.variant ? -1 : first_setting(v, call, &reason);
        if (other >= 0)
            first = (struct qn_pick){v, other};
    }
    return first;
}

bool qn_pick_all(struct qn_picks *picks, const struct qn_subject *subject, const char *name,
                 int setting, const char **why)
{
    struct qn_call call = subject->call;
    bool used = false;
    call.facts = picks->facts;
    for (int g = 0; g < QN_MAX_GROUPS && subject->check->op->groups[g].name; g++) {
        struct qn_pick *one = &picks->group[g];
        *one = pick(&subject->check->op->groups[g], &call, name, setting, why);
        used = used ||
               (one->variant && strcmp(one->variant->name, name) == 0 && one->setting == setting);
    }
    return used;
}

bool qn_picks_equal(const struct qn_picks *a, const struct qn_picks *b)
{
    bool equal = a->facts == b->facts;
    for (int g = 0; g < QN_MAX_GROUPS; g++)
        equal = equal && a->group[g].variant == b->group[g].variant &&
                a->group[g].setting == b->group[g].setting;
    return equal;
}

static bool is_new(const char *name, const char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return false;
    return true;
}

int qn_variant_names(const struct qn_op *op, const char *names[QN_MAX_NAMES])
{
    int count = 0;
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && op->groups[g].variant[v].name; v++)
            if (is_new(op->groups[g].variant[v].name, names, count))
                names[count++] = op->groups[g].variant[v].name;
    return count;
}

int qn_variant_settings(const struct qn_op *op, const char *name)
{
    int most = 1;
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && op->groups[g].variant[v].name; v++) {
            const struct qn_variant *variant = &op->groups[g].variant[v];
            const int count = strcmp(variant->name, name) == 0 ? qn_setting_count(variant) : 0;
            most = count > most ? count : most;
        }
    return most;
}
