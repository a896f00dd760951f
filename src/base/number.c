/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if (isnan(value))
        return 0x7fc0u;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static uint16_t to_f16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000u : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00u;
    if (size >= 65520.0)
        return sign | 0x7c00u;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)nearbyint(size * 0x1p24));
    int exponent;
    double fraction = frexp(size, &exponent); /* in [0.5, 1) */
    uint32_t mantissa = (uint32_t)nearbyint(fraction * 2048.0);
    return (uint16_t)(sign | (uint16_t)(((uint32_t)(exponent + 13) << 10) + mantissa));
}

static double from_f16(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double size = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000u ? -size : size;
}

static uint32_t encode(qn_dtype dtype, double value)
{
    switch (dtype) {
    case QN_F32:
        return bits_of((float)value);
    case QN_F16:
        return to_f16(value);
    case QN_BF16:
        return to_bf16((float)value);
    case QN_U8:
    case QN_I32:
        return (uint32_t)(int32_t)value;
    case QN_DTYPE_NONE:
        break;
    }
    return 0;
}

static double decode(qn_dtype dtype, uint32_t bits)
{
    switch (dtype) {
    case QN_F32:
        return float_of(bits);
    case QN_F16:
        return from_f16((uint16_t)bits);
    case QN_BF16:
        return float_of(bits << 16);
    case QN_U8:
        return bits;
    case QN_I32:
        return (int32_t)bits;
    case QN_DTYPE_NONE:
        break;
    }
    return 0;
}

void qn_number_encode(qn_dtype dtype, const double *values, int64_t count, void *bytes)
{
    size_t size = (size_t)qn_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = encode(dtype, values[i]);
        memcpy((uint8_t *)bytes + (size_t)i * size, &bits, size);
    }
}

void qn_number_decode(qn_dtype dtype, const void *bytes, int64_t count, double *values)
{
    size_t size = (size_t)qn_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, (const uint8_t *)bytes + (size_t)i * size, size);
        values[i] = decode(dtype, bits);
    }
}

void qn_number_split(const float *values, int64_t count, void *bf16, uint8_t *code)
{
    for (int64_t i = 0; i < count; i++) {
        const uint16_t stored = to_bf16(values[i]);
        const uint32_t bits = isnan(values[i]) ? 0x7fc00000u : bits_of(values[i]);
        const int32_t whole = (int32_t)((bits + 0x7fu + ((bits >> 8) & 1u)) >> 8);
        const int32_t step = whole - stored * 256;
        memcpy((uint8_t *)bf16 + 2 * i, &stored, sizeof stored);
        code[i] = (uint8_t)(128 + (step < -127 ? -127 : step > 127 ? 127 : step));
    }
}

void qn_number_join(const void *bf16, const uint8_t *code, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t stored;
        memcpy(&stored, (const uint8_t *)bf16 + 2 * i, sizeof stored);
        values[i] = float_of(((uint32_t)stored << 16) + ((uint32_t)code[i] << 8) - 0x8000u);
    }
}

bool qn_number_is_float(qn_dtype dtype)
{
    return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16;
}
