/* SPDX-License-Identifier: MIT */
#include "plan/cost/seconds.h"

#include "base/median.h"

double qn_seconds_estimated(const struct qn_facts *facts, const struct qn_cost *cost)
{
    const double compute = cost->flops / facts->flops;
    const double move = cost->bytes / facts->bytes_per_second;
    return (compute > move ? compute : move) + cost->launches * facts->launch_seconds;
}

/* Bytes per second of PCI Express 3.0 with 16 lanes, the slowest bus in common use. A CPU device
 * copies within host memory instead. */
static const double BUS = 12e9;

double qn_seconds_parked(const struct qn_facts *facts, int64_t bytes)
{
    const double own = facts->bytes_per_second / 2, rate = facts->cpu || own < BUS ? own : BUS;
    return (double)bytes / rate + facts->launch_seconds;
}

double qn_seconds_transfer(const struct qn_transfers *measured, int64_t bytes, bool to_device)
{
    const double rate = to_device ? measured->to_device : measured->to_host;
    return rate > 0 ? (double)bytes / rate + measured->begin : 0;
}

static double estimated_then(const struct qn_tuned *run, const struct qn_facts *facts)
{
    const struct qn_cost cost = {
        .flops = run->flops, .bytes = run->bytes, .launches = run->launches};
    return run->seconds > 0 ? qn_seconds_estimated(facts, &cost) : 0;
}

double qn_seconds_measured(const struct qn_tuning *tuning, const struct qn_facts *facts,
                           const struct qn_tuned *like, const struct qn_cost *cost)
{
    const struct qn_tuned *run = qn_tuning_find_timed(tuning, like);
    const double then = run ? estimated_then(run, facts) : 0;
    if (then <= 0)
        return 0;
    return run->batch == like->batch ? run->seconds
                                     : run->seconds * qn_seconds_estimated(facts, cost) / then;
}

/* Factors of guesses: of seconds timed at another batch, and of estimates. */
static const double other_batch = 1.1, never_timed = 1.25;

double qn_seconds_guess(double calibration, int64_t kept, int64_t batch)
{
    if (calibration <= 0)
        return 1;
    return kept && kept != batch ? never_timed * calibration : calibration;
}

struct qn_seconds qn_seconds_counted(const struct qn_tuning *tuning, const struct qn_facts *facts,
                                     double guess, const struct qn_tuned *like,
                                     const struct qn_cost *cost)
{
    const double timed = tuning ? qn_seconds_measured(tuning, facts, like, cost) : 0;
    if (timed <= 0)
        return (struct qn_seconds){guess * qn_seconds_estimated(facts, cost), false};
    const bool measured = qn_tuning_find_timed(tuning, like)->batch == like->batch;
    return (struct qn_seconds){measured ? timed : other_batch * timed, measured};
}

/* must_gain = least_gain * spread; above `most_spread` the timings are too noisy to compare
 * micro-batches, and only sure_gain counts, a gain that no disturbance explains. */
static const double least_gain = 1.1, most_spread = 1.3, sure_gain = 10;

bool qn_seconds_must_gain(const struct qn_tuning *tuning, struct qn_arena *arena, double *times)
{
    double *spreads = qn_arena_new(arena, double, (size_t)tuning->n_choices + 1);
    int count = 0;
    for (int i = 0; spreads && i < tuning->n_choices; i++)
        if (tuning->choices[i].spread > 0)
            spreads[count++] = tuning->choices[i].spread;
    const double spread = count ? qn_median(spreads, count) : 1;
    *times = spread > most_spread ? sure_gain : least_gain * spread;
    return spreads;
}

bool qn_seconds_calibrate(const struct qn_tuning *tuning, const struct qn_facts *facts,
                          struct qn_arena *arena, double *calibration)
{
    double *ratios = qn_arena_new(arena, double, (size_t)tuning->n_choices + 1);
    int count = 0;
    for (int i = 0; ratios && i < tuning->n_choices; i++) {
        const double then = estimated_then(&tuning->choices[i], facts);
        if (then > 0)
            ratios[count++] = tuning->choices[i].seconds / then;
    }
    *calibration = count ? qn_median(ratios, count) : 0;
    return ratios;
}
