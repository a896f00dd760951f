/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <quern/schedule.h>

bool qn_improvement_take(qn_improvement *improvement, double figure)
{
    if (!improvement)
        return false;
    const bool better = isfinite(figure) && (!improvement->seen || figure > improvement->best);
    improvement->seen = improvement->seen || better;
    improvement->best = better ? figure : improvement->best;
    improvement->waited = better ? 0 : improvement->waited + 1;
    improvement->flat = better ? 0 : improvement->flat + 1;
    if (improvement->plateau_patience > 0 && improvement->flat >= improvement->plateau_patience) {
        improvement->reductions++;
        improvement->flat = 0;
    }
    return better;
}

bool qn_improvement_ends(const qn_improvement *improvement)
{
    return improvement && improvement->patience > 0 && improvement->waited >= improvement->patience;
}

double qn_improvement_scale(const qn_improvement *improvement)
{
    const double factor =
        improvement && improvement->plateau_factor != 0 ? improvement->plateau_factor : 0.1;
    return improvement ? pow(factor, (double)improvement->reductions) : 1;
}
