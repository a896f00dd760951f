/* SPDX-License-Identifier: MIT
 *
 * Whether the harness notices what is wrong with a descriptor. Bugs in kernels are planted by
 * tests/mutate/; those here lie on the host: shapes, phases, costs, launches. What `quern check
 * --small` runs must notice each of them, and say why a kernel was not launched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/check.h"

#include <stdio.h>
#include <string.h>

extern const struct qn_check_op qn_check_relu, qn_check_linear, qn_check_conv2d, qn_check_reshape,
    qn_check_bias, qn_check_gradient_norm;

/* An operator with one thing changed. The functions below call those of the original. */
static struct qn_op op;
static const struct qn_op *original;

static const struct qn_variant *variant_of(int group, const char *name)
{
    const struct qn_variant *v = original->groups[group].variant;
    while (strcmp(v->name, name) != 0)
        v++;
    return v;
}

/* --- shapes --- */

static qn_status lose_a_column(struct qn_shape_call *call)
{
    qn_status status = original->shape(call);
    if (status == QN_OK)
        call->out[0].shape.dim[call->out[0].shape.rank - 1]--;
    return status;
}

static qn_status give_f32(struct qn_shape_call *call)
{
    qn_status status = original->shape(call);
    call->out[0].dtype = QN_F32;
    return status;
}

static qn_status accept_all(struct qn_shape_call *call)
{
    if (original->shape(call) != QN_OK)
        call->out[0] = call->in[0];
    return QN_OK;
}

static void bad_size(void)
{
    op.shape = lose_a_column;
}

static void bad_type(void)
{
    op.shape = give_f32;
}

static void no_refusal(void)
{
    op.shape = accept_all;
}

/* --- phases and groups --- */

static void no_evaluation(void)
{
    op.groups[0].phase &= ~(unsigned)QN_PHASE_EVAL;
}

static void no_backward(void)
{
    memset(&op.groups[1], 0, sizeof op.groups[1]);
}

static void undeclared_read(void)
{
    memset(op.groups[0].read, 0, sizeof op.groups[0].read);
}

static void undeclared_write(void)
{
    memset(op.groups[0].write, 0, sizeof op.groups[0].write);
    op.groups[0].once = true;
}

/* --- costs --- */

static void few_flops(const struct qn_call *call, struct qn_cost *cost)
{
    original->groups[0].variant[0].cost(call, cost);
    cost->flops = 0;
}

static void inexact_flops(const struct qn_call *call, struct qn_cost *cost)
{
    original->groups[0].variant[0].cost(call, cost);
    cost->flops += 1;
}

static void few_bytes(const struct qn_call *call, struct qn_cost *cost)
{
    original->groups[0].variant[0].cost(call, cost);
    cost->bytes /= 2;
}

static void many_bytes(const struct qn_call *call, struct qn_cost *cost)
{
    original->groups[0].variant[0].cost(call, cost);
    cost->bytes *= 100;
}

static void one_launch_more(const struct qn_call *call, struct qn_cost *cost)
{
    original->groups[0].variant[0].cost(call, cost);
    cost->launches++;
}

static void small_product(const struct qn_call *call, struct qn_cost *cost)
{
    variant_of(0, "clblast")->cost(call, cost);
    cost->blas[0] = cost->blas[1] = cost->blas[2] = 1;
}

#define COST_BUG(wrong)                                                                            \
    static void bad_##wrong(void)                                                                  \
    {                                                                                              \
        for (int v = 0; v < QN_MAX_VARIANTS && op.groups[0].variant[v].name; v++)                  \
            op.groups[0].variant[v].cost = wrong;                                                  \
    }
COST_BUG(few_flops)
COST_BUG(inexact_flops)
COST_BUG(few_bytes)
COST_BUG(many_bytes)
COST_BUG(one_launch_more)

static void bad_product(void)
{
    op.groups[0].variant[variant_of(0, "clblast") - original->groups[0].variant].cost =
        small_product;
}

/* --- launches --- */

static qn_status twice(struct qn_emit *emit, const struct qn_call *call)
{
    qn_status status = original->groups[1].variant[0].emit(emit, call);
    return status == QN_OK ? original->groups[1].variant[0].emit(emit, call) : status;
}

static qn_status never(struct qn_emit *emit, const struct qn_call *call)
{
    (void)emit;
    (void)call;
    return QN_OK;
}

static qn_status launch_nothing(struct qn_emit *emit, const struct qn_call *call)
{
    struct qn_launch launch = {.program = "fill", .kernel = "no_such_kernel"};
    (void)call;
    return qn_emit_launch(emit, &launch);
}

static void added_twice(void)
{
    op.groups[1].variant[0].emit = twice;
}

static void nothing_done(void)
{
    op.groups[0].variant[0].emit = never;
}

static void no_kernel(void)
{
    op.groups[0].variant[0].emit = launch_nothing;
}

static const struct {
    const char *what;
    const struct qn_check_op *check;
    void (*plant)(void);
} bugs[] = {
    {"a column too few", &qn_check_conv2d, bad_size},
    {"a column too few, linear", &qn_check_linear, bad_size},
    {"a view of another size", &qn_check_reshape, bad_size},
    {"the wrong type", &qn_check_relu, bad_type},
    {"a view of another type", &qn_check_reshape, bad_type},
    {"what must be refused", &qn_check_bias, no_refusal},
    {"no evaluation", &qn_check_relu, no_evaluation},
    {"no backward group", &qn_check_relu, no_backward},
    {"a read that is not declared", &qn_check_relu, undeclared_read},
    {"a write that is not declared", &qn_check_relu, undeclared_write},
    {"no operations", &qn_check_relu, bad_few_flops},
    {"an operation too many", &qn_check_linear, bad_inexact_flops},
    {"too few bytes", &qn_check_relu, bad_few_bytes},
    {"too many bytes", &qn_check_relu, bad_many_bytes},
    {"a launch that is not there", &qn_check_gradient_norm, bad_one_launch_more},
    {"another product than the cost says", &qn_check_linear, bad_product},
    {"a gradient added twice", &qn_check_relu, added_twice},
    {"a group that does nothing", &qn_check_relu, nothing_done},
    {"a kernel that is not there", &qn_check_relu, no_kernel},
};

static char reason[512]; /* of the newest check that failed */

static void keep_reason(void *user, const qn_check_record *record)
{
    (void)user;
    if (record->outcome == QN_CHECK_FAILED)
        snprintf(reason, sizeof reason, "%s", record->reason);
}

static int failures(qn_device *device, const struct qn_check_op *check, void (*plant)(void))
{
    struct qn_check_op changed = *check;
    const qn_check_params params = {.small = true, .quick = true, .fn = keep_reason};
    qn_check_summary summary = {0};
    original = check->op;
    op = *original;
    if (plant)
        plant();
    changed.op = &op;
    qn_check_operator(device, &changed, &params, &summary);
    assert_true(summary.passed + summary.failed > 0);
    return summary.failed;
}

static void every_bug_is_noticed(void **state)
{
    qn_device *device = NULL;
    (void)state;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        if (bugs[i].plant == bad_product && !qn_device_facts(device)->blas)
            continue;
        assert_int_equal(failures(device, bugs[i].check, NULL), 0);
        if (!failures(device, bugs[i].check, bugs[i].plant))
            fail_msg("nobody noticed: %s", bugs[i].what);
    }
    qn_device_close(&device);
}

/* A call that failed gives the line that it logged. */
static void reasons_are_given(void **state)
{
    qn_device *device = NULL;
    (void)state;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    assert_true(failures(device, &qn_check_relu, no_kernel) > 0);
    if (!strstr(reason, "forward: QN_ERR_BUILD (") || !strstr(reason, "kernel no_such_kernel of"))
        fail_msg("the reason is: %s", reason);
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_bug_is_noticed),
                                       cmocka_unit_test(reasons_are_given)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
