/* SPDX-License-Identifier: MIT
 *
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). The same words as cl_kernels/lib/random.clh.
 * Thread-safety: Safe; there is no state.
 */
#ifndef QN_BASE_RANDOM_H
#define QN_BASE_RANDOM_H

#include <stdint.h>

struct qn_philox {
    uint32_t word[4];
};

struct qn_philox qn_philox(const uint32_t counter[4], const uint32_t key[2]);

/* Number `index` of the stream (seed, stream): 64 bits, a double in [0, 1), a standard normal. */
uint64_t qn_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
double qn_random_uniform(uint64_t seed, uint64_t stream, uint64_t index);
double qn_random_normal(uint64_t seed, uint64_t stream, uint64_t index);
/* From the beta distribution with both parameters `alpha`, which is above 0: in [0, 1]. */
double qn_random_beta(uint64_t seed, uint64_t stream, uint64_t index, double alpha);

#endif
