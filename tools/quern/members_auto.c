/* SPDX-License-Identifier: MIT
 *
 * Shares that are measured: before the training begins the members time their micro-steps side by
 * side, and the samples are split so that all would be ready at the same time.
 */
#include "members.h"
#include "ranks.h"
#include "signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cycles that are timed go on until they took so many seconds, or are so many. Shares are settled
 * where no member's part takes longer than this beside the shortest, or after so many rounds: other
 * shares have other plans. */
static const double timed_seconds = 1, near = 1.03;
enum { TIMED_CYCLES = 8, ROUNDS = 3 };

/* Seconds of the members for a cycle, summed over several; the first one only warms up. All ranks
 * see the same seconds, and end at the same cycle. */
static int time_cycles(struct session *s, const qn_cycle *cycle, double sum[MAX_ALL_MEMBERS])
{
    const struct members *members = s->members;
    double spent = 0, seconds[MAX_ALL_MEMBERS];
    struct turn turn = {.signal = 0};
    memset(sum, 0, MAX_ALL_MEMBERS * sizeof *sum);
    for (int i = 0; i <= TIMED_CYCLES && spent < timed_seconds; i++) {
        double longest = 0;
        TRY(ranks_turn(&turn, s->failure));
        if (turn.signal)
            return signals_code(s->failure);
        const qn_status status = qn_group_time(members->group, cycle, seconds);
        if (status != QN_OK)
            return failure_status(s->failure, status);
        for (int m = 0; i && m < members->all; m++) {
            sum[m] += seconds[m];
            longest = seconds[m] > longest ? seconds[m] : longest;
        }
        spent += longest;
    }
    return CODE_DONE;
}

/* From the samples in `counts` and their seconds to shares by speed, and the samples that follow
 * from them; a member that is too slow for one unit gets none. */
static int share_by_speed(struct session *s, int64_t samples, const double seconds[MAX_ALL_MEMBERS],
                          int64_t counts[MAX_ALL_MEMBERS])
{
    const struct members *members = s->members;
    double sum = 0;
    for (int m = 0; m < members->all; m++)
        sum += seconds[m] > 0 ? (double)counts[m] / seconds[m] : 0;
    for (int m = 0; m < members->all; m++) {
        const double share = seconds[m] > 0 ? (double)counts[m] / seconds[m] / sum : 0;
        s->members->share[m] = share * (double)samples < (double)members->unit ? 0 : share;
    }
    return members_split(s, samples, counts);
}

/* Writes them down, "171:85", so that a checkpoint has them. */
static int put_shares(struct session *s, const int64_t counts[MAX_ALL_MEMBERS])
{
    char text[MAX_ALL_MEMBERS * 24] = "";
    for (int m = 0; m < s->members->all; m++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%" PRId64, m ? ":" : "", counts[m]);
    }
    TRY(recipe_put(&s->recipe, "group", "share", text, "--share auto", s->failure));
    return members_share(s, text);
}

static bool is_even(const struct members *members, const double seconds[MAX_ALL_MEMBERS])
{
    double least = 0, most = 0;
    for (int m = 0; m < members->all; m++) {
        if (seconds[m] <= 0)
            continue;
        least = least == 0 || seconds[m] < least ? seconds[m] : least;
        most = seconds[m] > most ? seconds[m] : most;
    }
    return most <= near * least;
}

/* Times the present shares; where they are uneven, makes others and the plans for them. */
static int settle_round(struct session *s, const qn_cycle *cycle, enum tune_mode mode, bool *even)
{
    double seconds[MAX_ALL_MEMBERS];
    int64_t counts[MAX_ALL_MEMBERS];
    TRY(ranks_agree(members_trainers(s), s->failure));
    int code = time_cycles(s, cycle, seconds);
    members_close_trainers(s);
    TRY(code);
    *even = is_even(s->members, seconds);
    TRY(members_split(s, cycle->samples, counts));
    if (!*even)
        TRY(share_by_speed(s, cycle->samples, seconds, counts));
    TRY(put_shares(s, counts));
    return *even ? CODE_DONE : members_plan(s, mode);
}

static int next(struct session *s, qn_loader *loader, int64_t samples, qn_batch *batch)
{
    TRY_LIBRARY(s->failure, NULL, qn_loader_next(loader, samples, batch));
    return CODE_DONE;
}

static int settle(struct session *s, qn_loader *loader, int64_t samples, enum tune_mode mode)
{
    qn_batch batch;
    bool even = false;
    TRY(ranks_agree(next(s, loader, samples, &batch), s->failure));
    const qn_cycle cycle = {
        .samples = samples, .fetch = qn_batch_fetch, .user = &batch, .choose = qn_batch_choose};
    for (int round = 0; round < ROUNDS && !even; round++)
        TRY(settle_round(s, &cycle, mode, &even));
    return CODE_DONE;
}

int members_settle(struct session *s, enum tune_mode mode)
{
    if (!s->members || !s->members->measured)
        return CODE_DONE;
    const qn_plan_params plan = settings_plan(&s->settings);
    const qn_loader_params params = {.log = failure_log(s->failure),
                                     .seed = (uint64_t)s->settings.train.seed,
                                     .max_samples = plan.batch[0]};
    qn_loader *loader = NULL;
    failure_clear(s->failure);
    const qn_status status = qn_loader_open(&loader, s->data.train, &params);
    int code = status ? failure_library(s->failure, status, NULL) : CODE_DONE;
    code = ranks_agree(code, s->failure);
    if (!code)
        code = settle(s, loader, plan.batch[0], mode);
    qn_loader_close(&loader);
    return code;
}
