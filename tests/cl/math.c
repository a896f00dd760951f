/* SPDX-License-Identifier: MIT
 *
 * The errors of the functions in cl_kernels/lib/math.clh, over all magnitudes, through the kernels
 * of the elementwise operators.
 */
#include "support.h"

#include "cl/recording.h"
#include "cl/slab.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

static struct kept kept;

static double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * acos(-1));
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-sqrt(0.5) * x);
}

static double gelu_slope(double x)
{
    return 0.5 * erfc(-sqrt(0.5) * x) + x * normal_density(x);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * logistic(x);
}

static double silu_slope(double x)
{
    return logistic(x) + x * logistic(x) * logistic(-x);
}

static double gelu_tanh(double x)
{
    return x * logistic(2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

static double gelu_tanh_slope(double x)
{
    const double factor = 2 * sqrt(2 / acos(-1)), z = factor * (x + 0.044715 * x * x * x);
    return logistic(z) + x * logistic(z) * logistic(-z) * factor * (1 + 3 * 0.044715 * x * x);
}

/* Forward: relative errors, while results are not among the smallest numbers. Slopes cross 0, so
 * theirs are relative to 1. The exponent of the form with tanh is a product of three, of up to 90:
 * its rounding is that of the result. */
static const struct {
    const char *kernel;
    double (*function)(double);
    bool slope;
    double bound;
} table[] = {
    {"gelu_forward", gelu, false, 5e-7},
    {"gelu_tanh_forward", gelu_tanh, false, 1.2e-5},
    {"silu_forward", silu, false, 4e-7},
    {"gelu_gradient", gelu_slope, true, 3e-7},
    {"gelu_tanh_gradient", gelu_tanh_slope, true, 5e-7},
    {"silu_gradient", silu_slope, true, 3e-7},
};
static const double smallest = 3e-35;

/* Both signs, 256 steps between two powers of 2, from 2^-126 on; then what is no finite number. */
enum { STEPS = 256, POWERS = 254, FINITE = 2 * STEPS * POWERS, COUNT = FINITE + 16 };
static float values[COUNT], results[COUNT];

static void fill_values(void)
{
    for (int i = 0; i < FINITE / 2; i++) {
        /* odd steps, so that the last bits of a number are used */
        float v = ldexpf(1 + (float)(i % STEPS) * 0.00390614f, i / STEPS - 126);
        values[2 * i] = v;
        values[2 * i + 1] = -v;
    }
    static const float specials[4] = {NAN, INFINITY, -INFINITY, 0};
    for (int i = FINITE; i < COUNT; i++)
        values[i] = specials[i % 4];
}

static void launch(qn_device *device, int row, int width)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    const int64_t bytes[] = {sizeof values, sizeof values, sizeof values};
    const struct qn_operand x = {QN_F32, {1, {COUNT}}, 0, 0}, ones = {QN_F32, {1, {COUNT}}, 1, 0},
                            y = {QN_F32, {1, {COUNT}}, 2, 0};
    struct qn_launch launch = {
        .program = "unary",
        .kernel = table[row].kernel,
        .args = {QN_BUF(&x), QN_BUF(&y), QN_LONG(COUNT), QN_FLOAT(0)},
        .global = {COUNT / width},
        .local = {64},
    };
    if (table[row].slope) {
        const struct qn_arg args[] = {QN_BUF(&ones),  QN_BUF(&x),  QN_BUF(&y),
                                      QN_LONG(COUNT), QN_FLOAT(0), QN_FLOAT(0)};
        memcpy(launch.args, args, sizeof args);
        qn_launch_option(&launch, "QN_GRADIENT", 1);
        qn_launch_type(&launch, "DY", &ones);
        qn_launch_type(&launch, "V", &x);
        qn_launch_type(&launch, "DX", &y);
    } else {
        qn_launch_type(&launch, "X", &x);
        qn_launch_type(&launch, "Y", &y);
    }
    qn_launch_option(&launch, "QN_V", width);
    const float one = 1;
    uint32_t bits;
    memcpy(&bits, &one, sizeof bits);
    assert_int_equal(qn_slab_open(&slab, device, bytes, 3), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, values, sizeof values, NULL), QN_OK);
    assert_int_equal(qn_slab_fill(slab, 1, 0, sizeof values, bits), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    assert_int_equal(qn_emit_launch(qn_recording_emit(recording, "math"), &launch), QN_OK);
    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    assert_int_equal(qn_slab_read(slab, 2, 0, results, sizeof results, NULL), QN_OK);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

static void check_finite(int row)
{
    double worst = 0, at = 0;
    for (int i = 0; i < FINITE; i++) {
        double want = table[row].function((double)values[i]);
        double scale = table[row].slope ? 1 : fabs(want) + smallest / table[row].bound;
        double error = fabs((double)results[i] - want) / scale;
        if (!(error <= worst)) {
            worst = error;
            at = (double)values[i];
        }
    }
    print_message("%s: at most %.2g, at %.9g\n", table[row].kernel, worst, at);
    if (!(worst <= table[row].bound))
        fail_msg("%s is wrong by %g at %.9g", table[row].kernel, worst, at);
}

/* NaN goes through; what lies to the far left is nothing, to the far right x, with slope 1. */
static void check_limits(int row)
{
    for (int i = FINITE; i < COUNT; i++)
        if (isnan(values[i]))
            assert_true(isnan(results[i]));
        else if (values[i] > 0)
            assert_true(results[i] == (table[row].slope ? 1 : values[i]));
        else if (values[i] < 0)
            assert_true(fabs((double)results[i]) <= smallest);
        else
            assert_true(results[i] == (table[row].slope ? 0.5f : 0));
}

static void is_accurate(void **state)
{
    (void)state;
    qn_device *device = open_device(&kept);
    fill_values();
    for (int row = 0; row < (int)(sizeof table / sizeof *table); row++) {
        launch(device, row, 16);
        check_finite(row);
        check_limits(row);
    }
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
