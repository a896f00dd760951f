/* SPDX-License-Identifier: MIT
 *
 * Which device is taken.
 */
#include "base/text.h"
#include "cl/private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; strlen(text) >= length; text++)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

static bool matches(const struct qn_device_info *info, const char *match)
{
    return !match || contains(info->platform, match) || contains(info->device, match) ||
           contains(info->version, match);
}

static int type_rank(const char *type)
{
    static const char *const order[] = {"other", "cpu", "accelerator", "gpu"};
    int rank = 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(type, order[i]) == 0)
            rank = i;
    return rank;
}

static bool is_better(const struct qn_device_info *a, const struct qn_device_info *b)
{
    int rank_a = type_rank(a->type), rank_b = type_rank(b->type);
    return rank_a != rank_b ? rank_a > rank_b : a->compute_units > b->compute_units;
}

static qn_status none_found(const char *match, const struct qn_device_info *infos, int count,
                            const struct qn_log *log)
{
    if (count == 0)
        return qn_fail(log, QN_ERR_NO_DEVICE, "no OpenCL device: no platform has one");
    struct qn_text list = {0};
    for (int i = 0; i < count; i++)
        qn_text_add(&list, "%s%s (%s%s)", i ? "; " : "", infos[i].device, infos[i].platform,
                    infos[i].usable ? "" : "; not usable");
    char *text = qn_text_take(&list);
    qn_status status =
        match ? qn_fail(log, QN_ERR_NO_DEVICE, "no usable OpenCL device matches \"%s\"; found: %s",
                        match, text ? text : "")
              : qn_fail(log, QN_ERR_NO_DEVICE, "no usable OpenCL device; found: %s",
                        text ? text : "");
    free(text);
    return status;
}

static bool is_taken(const struct qn_found *found, const struct qn_device_params *params)
{
    for (int i = 0; i < params->n_others; i++)
        if (params->others[i]->found.id == found->id)
            return true;
    return false;
}

/* How many of these are better than number `i`, or as good and come before it. */
static int place_of(int i, const struct qn_device_info *infos, const int *fits, int n)
{
    int place = 0;
    for (int f = 0; f < n; f++)
        place += is_better(&infos[fits[f]], &infos[i]) ||
                 (fits[f] < i && !is_better(&infos[i], &infos[fits[f]]));
    return place;
}

qn_status qn_choose_device(struct qn_found *found, const char *match,
                           const struct qn_device_params *params)
{
    const struct qn_log *log = &params->log;
    struct qn_found all[QN_MAX_DEVICES];
    struct qn_device_info infos[QN_MAX_DEVICES];
    int count = qn_find_devices(all, QN_MAX_DEVICES, log), taken = -1, fits[QN_MAX_DEVICES], n = 0;
    for (int i = 0; i < count; i++) {
        qn_describe_device(&all[i], &infos[i]);
        if (!infos[i].usable || !matches(&infos[i], match))
            continue;
        if (is_taken(&all[i], params))
            taken = i;
        else
            fits[n++] = i;
    }
    if (!n && taken >= 0)
        return qn_fail(log, QN_ERR_NO_DEVICE, "%s is taken already, and no other device %s",
                       infos[taken].device, match ? "matches" : "is there");
    if (!n)
        return none_found(match, infos, count, log);
    int f = 0;
    while (place_of(fits[f], infos, fits, n) != params->skip % n)
        f++;
    *found = all[fits[f]];
    return QN_OK;
}
