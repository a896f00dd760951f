/* SPDX-License-Identifier: MIT
 *
 * How old the banks of contrastive training are (contrastive.h): what they hold beside what their
 * samples are now, after the updates since.
 */
#ifndef QUERN_DRIFT_H
#define QUERN_DRIFT_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives one input of `count` samples, by the ids under which the banks hold them: `count` rows, one
 * after another, written to `rows`. Else as qn_fetch_fn. */
typedef qn_status (*qn_samples_fn)(void *user, const char *input, const int32_t *ids, int64_t count,
                                   void *rows);

enum { QN_DRIFT_AGES = 64 };

/* Zero means default. */
typedef struct qn_drift_params {
    int ages;         /* into which entries are divided, evenly; 0: 8; up to QN_DRIFT_AGES */
    int64_t entries;  /* of each that are looked at, the oldest among them; 0: 16 */
    double threshold; /* of mean cosines, up to 1; 0: 0.995 */
    bool cap;         /* what has drifted too far counts no more: see qn_drift_measure */
    int64_t least;    /* samples that count whatever happens; 0: those of the largest cycle */
    qn_samples_fn samples;
    void *user;
} qn_drift_params;

/* The age of an entry is how many samples were stored after it. */
typedef struct qn_drift_age {
    int64_t first, end; /* ages first .. end - 1 */
    int64_t entries;    /* looked at; 0: none, and the cosines are NAN */
    double queries;     /* mean cosine of those whose queries a bank holds; NAN: of none */
    double passages;    /* of all passages of the entries */
} qn_drift_age;

typedef struct qn_drift {
    qn_drift_age age[QN_DRIFT_AGES]; /* from the newest to the oldest */
    int ages;      /* that there are: fewer than asked for where there are fewer entries */
    double oldest; /* the smaller cosine of the oldest age that was looked at; NAN: none was */
    bool stale;    /* that is under the threshold, or no number */
    int64_t limit; /* samples that count from now on, as qn_trainer_cell_limit; 0: all */
} qn_drift;

/* Encodes samples of the banks again, by the run "encode" of a contrastive program with banks, and
 * compares: of each age so many entries, evenly apart, the same whenever it is asked. Changes no
 * number of the training. Evaluations have no dropout, so what it does to entries counts as drift.
 *
 * Where the oldest age is stale, and was not before, the log has a warning. With `cap`, the ring
 * "bank.ids" is limited (qn_trainer_limit_cell) to the largest age that is not, but not to less
 * than `least`: so no micro-step sees older entries. The limit only falls, unless the caller lifts
 * it, and is saved.
 *
 * Between two updates; waits. QN_ERR_ARGUMENT: params that cannot be, or no banks in the plan. What
 * `samples` returns but QN_OK is returned, too. */
QN_API qn_status qn_drift_measure(qn_trainer *trainer, const qn_drift_params *params,
                                  qn_drift *drift);

#ifdef __cplusplus
}
#endif
#endif
