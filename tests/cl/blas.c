/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/random.h"
#include "cl/private.h"
#include "cl/recording.h"
#include "op/blas.h"
#include "op/op.h"

#include <clblast_c.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 11 };
static struct kept kept;

static int setup(void **state)
{
    *state = open_device(&kept);
    return 0;
}

static int teardown(void **state)
{
    qn_device *device = *state;
    qn_device_close(&device);
    return 0;
}

struct product {
    int m, n, k;
    bool trans_a, trans_b;
    float beta;
    int64_t at[3]; /* offsets of a, b, c in elements */
};

/* `count` normal numbers at `at`, NaN before and behind. */
static float *make_matrix(int64_t count, int64_t at, uint64_t stream)
{
    float *all = malloc((size_t)(count + at + 8) * sizeof *all);
    assert_non_null(all);
    for (int64_t i = 0; i < count + at + 8; i++)
        all[i] =
            i < at || i >= at + count ? NAN : (float)qn_random_normal(SEED, stream, (uint64_t)i);
    return all;
}

static double naive(const struct product *p, const float *a, const float *b, int row, int column)
{
    double sum = 0;
    for (int i = 0; i < p->k; i++)
        sum += (double)a[p->trans_a ? i * p->m + row : row * p->k + i] *
               (double)b[p->trans_b ? column * p->k + i : i * p->n + column];
    return sum;
}

static void compare(const struct product *p, float *const *matrix, const float *got)
{
    const float *old = matrix[2];
    const int step = p->m * p->n / 5000 + 1; /* all elements of a small product */
    for (int i = 0; i < p->m * p->n; i += step) {
        double want = naive(p, matrix[0] + p->at[0], matrix[1] + p->at[1], i / p->n, i % p->n);
        if (p->beta != 0)
            want += (double)p->beta * (double)old[p->at[2] + i];
        if (!(fabs((double)got[p->at[2] + i] - want) <= 1e-4 * sqrt(p->k)))
            fail_msg("%d x %d x %d, %d %d, beta %g: element %d is %g, not %g", p->m, p->n, p->k,
                     p->trans_a, p->trans_b, (double)p->beta, i, (double)got[p->at[2] + i], want);
    }
    for (int64_t i = 0; i < p->at[2]; i++)
        assert_true(isnan(got[i]));
    for (int64_t i = p->at[2] + p->m * p->n; i < p->at[2] + p->m * p->n + 8; i++)
        assert_true(isnan(got[i]));
}

static void multiply(qn_device *device, const struct product *p)
{
    const int64_t counts[] = {p->m * p->k, p->k * p->n, p->m * p->n};
    const int64_t temporary = qn_blas_bytes(qn_device_facts(device), p->m, p->n, p->k);
    assert_true(temporary > 0);
    int64_t bytes[4] = {[3] = temporary};
    float *matrix[3];
    struct qn_operand operand[3];
    for (int i = 0; i < 3; i++) {
        matrix[i] = make_matrix(counts[i], p->at[i], (uint64_t)i);
        bytes[i] = (counts[i] + p->at[i] + 8) * 4;
        operand[i] = (struct qn_operand){QN_F32, {1, {counts[i]}}, i, p->at[i]};
    }
    if (p->beta == 0)
        for (int64_t i = 0; i < counts[2]; i++)
            matrix[2][p->at[2] + i] = NAN;

    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    assert_int_equal(qn_slab_open(&slab, device, bytes, 4), QN_OK);
    assert_int_equal(qn_slab_fill(slab, 3, 0, temporary / 4 * 4, 0x7fc00000), QN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(qn_slab_write(slab, i, 0, matrix[i], bytes[i], NULL), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    qn_recording_set_blas_buffer(recording, 3);
    const struct qn_gemm gemm = {p->m,        p->n,        p->k,        p->trans_a, p->trans_b,
                                 &operand[0], &operand[1], &operand[2], p->beta};
    assert_int_equal(qn_emit_gemm(qn_recording_emit(recording, "product"), &gemm), QN_OK);
    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    float *got = malloc((size_t)bytes[2]);
    assert_non_null(got);
    assert_int_equal(qn_slab_read(slab, 2, 0, got, bytes[2], NULL), QN_OK);
    compare(p, matrix, got);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
    free(got);
    for (int i = 0; i < 3; i++)
        free(matrix[i]);
}

static void multiplies(void **state)
{
    static const int sizes[][3] = {{1, 1, 1}, {17, 5, 29}, {64, 64, 64}, {200, 130, 70}};
    static const float betas[] = {0, 1, 0.5f};
    for (int size = 0; size < 4; size++)
        for (int transposed = 0; transposed < 4; transposed++)
            for (int beta = 0; beta < 3; beta++) {
                const struct product p = {
                    sizes[size][0],
                    sizes[size][1],
                    sizes[size][2],
                    (transposed & 1) != 0,
                    (transposed & 2) != 0,
                    betas[beta],
                    {7 * beta, 3 + beta, beta == 1 ? 0 : 11},
                };
                multiply(*state, &p);
            }
}

/* Large enough for CLBlast's kernels that copy into the temporary buffer, unless it knows the
 * device well. */
static void multiplies_through_the_temporary_buffer(void **state)
{
    for (int transposed = 0; transposed < 4; transposed++) {
        const struct product p = {1030,
                                  1025,
                                  1027,
                                  (transposed & 1) != 0,
                                  (transposed & 2) != 0,
                                  0.5f * (float)(transposed % 3),
                                  {1, 3, 5}};
        multiply(*state, &p);
    }
}

static void *multiply_in_a_thread(void *user)
{
    const struct product p = {33, 21, 40, false, true, 0, {1, 2, 3}};
    multiply(user, &p);
    return NULL;
}

/* New contexts, for which CLBlast has to build its kernels. */
static void multiplies_in_two_threads(void **state)
{
    (void)state;
    static struct kept logs[2];
    qn_device *devices[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        devices[i] = open_device(&logs[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply_in_a_thread, devices[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        qn_device_close(&devices[i]);
}

/* While another device goes on to use CLBlast. */
static void lets_go_of_a_closed_context(void **state)
{
    static struct kept log;
    struct qn_device *other = *state;
    const struct product p = {33, 21, 40, false, true, 0, {1, 2, 3}};
    cl_uint references = 0;
    cl_context context = clCreateContext(NULL, 1, &other->found.id, NULL, NULL, NULL);
    const qn_device_params params = {.log = kept_log(&log),
                                     .cl_context = context,
                                     .cl_device_id = other->found.id,
                                     .cache_dir = ""};
    qn_device *device = NULL;
    multiply(other, &p);
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    multiply(device, &p);
    qn_device_close(&device);
    clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL);
    assert_int_equal(references, 1);
    clReleaseContext(context);
    multiply(other, &p);
}

/* Equal at every size, whole tiles and one more or less among them. */
static void assert_rule(qn_device *device, uint64_t seed)
{
    const struct qn_facts *facts = qn_device_facts(device);
    assert_true(facts->blas);
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t size[3];
        for (uint64_t d = 0; d < 3; d++) {
            const uint64_t bits = qn_random_bits(seed, i, d), range = UINT64_C(1) << bits % 14;
            size[d] = 1 + (int64_t)((bits >> 8) % range);
            if (i % 4 == 0)
                size[d] = (size[d] + 63) / 64 * 64 + (int64_t)(bits >> 32) % 2;
        }
        const int64_t asked = qn_blas_ask(device, size[0], size[1], size[2]);
        const int64_t wanted = asked > QN_BLAS_LEAST ? asked : QN_BLAS_LEAST;
        assert_int_equal(qn_blas_bytes(facts, size[0], size[1], size[2]), wanted);
    }
}

/* Of the device as it is, and as others are tuned. */
static void the_facts_say_what_the_temporary_buffer_takes(void **state)
{
    static const char *const names[] = {"GEMMK", "KREG",  "KWG",   "KWI", "MDIMA", "MDIMC",
                                        "MWG",   "NDIMB", "NDIMC", "NWG", "SA",    "SB",
                                        "STRM",  "STRN",  "VWM",   "VWN"};
    static const size_t others[][16] = {{0, 1, 16, 2, 8, 8, 64, 16, 16, 128, 1, 1, 0, 0, 4, 2},
                                        {1, 4, 1, 1, 8, 8, 32, 8, 8, 16, 0, 0, 0, 0, 4, 2}};
    static const char *const routine[] = {"XGEMM_MIN_INDIRECT_SIZE"};
    static const size_t sides[] = {1, 217};
    static struct kept log;
    const struct qn_device *device = *state;
    assert_rule(*state, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(CLBlastOverrideParameters(device->found.id, "Xgemm",
                                                   CLBlastPrecisionSingle, 16, (const char **)names,
                                                   others[i]),
                         CLBlastSuccess);
        assert_int_equal(CLBlastOverrideParameters(device->found.id, "GemmRoutine",
                                                   CLBlastPrecisionSingle, 1,
                                                   (const char **)routine, &sides[i]),
                         CLBlastSuccess);
        qn_device *tuned = open_device(&log);
        const struct qn_facts *facts = qn_device_facts(tuned);
        assert_int_equal(facts->blas_rows, others[i][6]);
        assert_int_equal(facts->blas_columns, others[i][9]);
        assert_int_equal(facts->blas_terms, others[i][2] * others[i][1]);
        assert_int_equal(facts->blas_side, sides[i]);
        assert_rule(tuned, 2);
        qn_device_close(&tuned);
    }
}

static void refuses_a_missing_buffer(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    const struct qn_operand matrix = {QN_F32, {2, {4, 4}}, 0, 0};
    const struct qn_gemm gemm = {4, 4, 4, false, false, &matrix, &matrix, &matrix, 0};
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){64, 4}, 2), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    struct qn_emit *emit = qn_recording_emit(recording, "product");
    assert_int_equal(qn_emit_gemm(emit, &gemm), QN_ERR_ARGUMENT);
    qn_recording_set_blas_buffer(recording, 1);
    assert_int_equal(qn_emit_gemm(emit, &gemm), QN_ERR_ARGUMENT);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplies),
        cmocka_unit_test(multiplies_through_the_temporary_buffer),
        cmocka_unit_test(multiplies_in_two_threads),
        cmocka_unit_test(lets_go_of_a_closed_context),
        cmocka_unit_test(refuses_a_missing_buffer),
        cmocka_unit_test(the_facts_say_what_the_temporary_buffer_takes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
