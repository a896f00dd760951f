/* SPDX-License-Identifier: MIT */
#include <quern/status.h>

#include <stddef.h>

static const struct {
    const char *name, *text;
} statuses[] = {
#define ENTRY(name, text) {"QN_" #name, text},
    QN_STATUS_MAP(ENTRY)
#undef ENTRY
};

static size_t place(qn_status status)
{
    size_t index = (size_t)status;
    return index < sizeof statuses / sizeof *statuses ? index : QN_ERR_INTERNAL;
}

const char *qn_status_name(qn_status status)
{
    return statuses[place(status)].name;
}

const char *qn_status_text(qn_status status)
{
    return statuses[place(status)].text;
}
