/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <math.h>

static const double TWO_PI = 6.283185307179586476925286766559;

struct qn_philox qn_philox(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct qn_philox){{c[0], c[1], c[2], c[3]}};
}

static struct qn_philox draw(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return qn_philox(counter, key);
}

static uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t qn_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct qn_philox p = draw(seed, stream, index);
    return join(p.word[0], p.word[1]);
}

double qn_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return unit(qn_random_bits(seed, stream, index));
}

double qn_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct qn_philox p = draw(seed, stream, index);
    double radius = sqrt(-2.0 * log(1.0 - unit(join(p.word[0], p.word[1]))));
    return radius * cos(TWO_PI * unit(join(p.word[2], p.word[3])));
}

/* t of Student's distribution with 2 alpha degrees of freedom, by Bailey's polar method ("Polar
 * generation of random variates with the t-distribution", Math. Comp. 62, 1994), becomes 1/2 +
 * t / (2 sqrt(2 alpha + t^2)); 1/w stays in range where alpha is small. */
double qn_random_beta(uint64_t seed, uint64_t stream, uint64_t index, double alpha)
{
    struct qn_philox p = draw(seed, stream, index);
    const double u = 1.0 - unit(join(p.word[0], p.word[1]));
    const double across = cos(TWO_PI * unit(join(p.word[2], p.word[3])));
    const double inverse = 1 / expm1(-log(u) / alpha);
    return 0.5 + 0.5 * across / sqrt(inverse + across * across);
}
