/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include <quern/group.h>

qn_status qn_transport_error(qn_status status, const char *line)
{
    return qn_fail(NULL, status, "%s", line ? line : "");
}
