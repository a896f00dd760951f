/* SPDX-License-Identifier: MIT */
#include "tune/watch.h"

#include <stddef.h>

bool qn_watch_stops(struct qn_watch *watch)
{
    watch->stopped = watch->stopped || (watch->stop && watch->stop(watch->user));
    return watch->stopped;
}
