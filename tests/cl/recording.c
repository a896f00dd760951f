/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "cl/device.h"
#include "cl/recording.h"
#include "op/op.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct kept kept;
static char folder[FOLDER_BYTES];

static const char kernels[] =
    "#include \"type.clh\"\n"
    "__kernel void axpy(__global TYPE(X) *x, ulong x_at, __global float *y, ulong y_at, int n,\n"
    "                   float factor)\n"
    "{\n"
    "    const int i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        y[y_at + i] += factor * (float)x[x_at + i];\n"
    "}\n"
    "__kernel void turn(__global float *x, ulong x_at, long shift)\n"
    "{\n"
    "    __local float part[8];\n"
    "    const int i = get_local_id(0), n = get_local_size(0);\n"
    "    part[i] = x[x_at + get_global_id(0)];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    x[x_at + get_global_id(0)] = part[(i + (int)(shift >> 32)) % n];\n"
    "}\n"
    "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void fixed(__global float *x,\n"
    "                                                                   ulong x_at)\n"
    "{\n"
    "    x[x_at] = 1.0f;\n"
    "}\n";

static int setup(void **state)
{
    qn_device *device = NULL;
    make_folder(folder);
    add_own_kernels(folder);
    write_text(folder, "type.clh",
               "typedef float qn_f32;\n#define PASTE(a, b) a##b\n#define TYPE_(t) PASTE(qn_, t)\n"
               "#define TYPE(X) TYPE_(X##_TYPE)\n");
    write_text(folder, "trivial.cl", kernels);
    const qn_device_params params = {.log = kept_log(&kept), .cache_dir = "", .kernel_dir = folder};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    *state = device;
    return 0;
}

static int teardown(void **state)
{
    qn_device *device = *state;
    qn_device_close(&device);
    remove_folder(folder);
    return 0;
}

static struct qn_operand floats(int buffer, int64_t offset, int64_t count)
{
    return (struct qn_operand){QN_F32, {1, {count}}, buffer, offset};
}

static qn_status axpy(struct qn_emit *emit, const struct qn_operand *x, const struct qn_operand *y,
                      int64_t n, float factor)
{
    struct qn_launch launch = {
        .program = "trivial",
        .kernel = "axpy",
        .args = {QN_BUF(x), QN_BUF(y), QN_INT(n), QN_FLOAT(factor)},
        .global = {n},
        .local = {16},
    };
    qn_launch_type(&launch, "X", x);
    return qn_emit_launch(emit, &launch);
}

static void replays_launches(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    float x[37], y[64], got[64];
    for (int i = 0; i < 37; i++)
        x[i] = (float)(i + 1);
    for (int i = 0; i < 64; i++)
        y[i] = 100;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){512, 512}, 2), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 5 * 4, x, sizeof x, NULL), QN_OK);
    assert_int_equal(qn_slab_write(slab, 1, 0, y, sizeof y, NULL), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);

    const struct qn_operand from = floats(0, 5, 37), to = floats(1, 3, 37);
    struct qn_emit *emit = qn_recording_emit(recording, "node");
    assert_int_equal(axpy(emit, &from, &to, 37, 2), QN_OK);
    assert_int_equal(axpy(emit, &from, &to, 37, -1), QN_OK);
    assert_int_equal(qn_recording_count(recording), 2);

    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    assert_int_equal(qn_recording_run(recording, 1, 2), QN_OK);
    assert_int_equal(qn_recording_run(recording, 1, 1), QN_OK);
    assert_int_equal(qn_recording_run(recording, 1, 3), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_read(slab, 1, 0, got, sizeof got, NULL), QN_OK);
    for (int i = 0; i < 64; i++)
        assert_true(got[i] == 100);
    assert_int_equal(qn_recording_run(recording, 0, 1), QN_OK);
    assert_int_equal(qn_slab_read(slab, 1, 0, got, sizeof got, NULL), QN_OK);
    for (int i = 0; i < 64; i++)
        assert_true(got[i] == (i >= 3 && i < 40 ? 100 + 2 * x[i - 3] : 100));
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

static void replays_many(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    float one = 1, sum = 0;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){4, 4}, 2), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, &one, 4, NULL), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    const struct qn_operand from = floats(0, 0, 1), to = floats(1, 0, 1);
    for (int i = 0; i < 600; i++)
        assert_int_equal(axpy(qn_recording_emit(recording, "many"), &from, &to, 1, 1), QN_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    assert_int_equal(qn_device_finish(*state), QN_OK);
    assert_int_equal(qn_slab_read(slab, 1, 0, &sum, 4, NULL), QN_OK);
    assert_true(sum == 6000);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

static void passes_longs(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    float x[16];
    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){sizeof x}, 1), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, x, sizeof x, NULL), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    const struct qn_operand all = floats(0, 0, 16);
    struct qn_launch launch = {
        .program = "trivial",
        .kernel = "turn",
        .options = "-DX_TYPE=f32",
        .args = {QN_BUF(&all), QN_LONG(INT64_C(3) << 32)},
        .global = {16},
        .local = {8},
    };
    assert_int_equal(qn_emit_launch(qn_recording_emit(recording, "turn"), &launch), QN_OK);
    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    assert_int_equal(qn_slab_read(slab, 0, 0, x, sizeof x, NULL), QN_OK);
    for (int i = 0; i < 16; i++)
        assert_true(x[i] == (float)(i / 8 * 8 + (i + 3) % 8));
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

/* A launch that is wrong in one way, and what the log must say of it. */
struct wrong {
    struct qn_launch launch;
    qn_status status;
    const char *text;
};

static void refuses_wrong_launches(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    const int most = qn_device_facts(*state)->max_work_group;
    const struct qn_operand in = floats(0, 0, 4), out = floats(0, 100, 29), none = {0};
    const struct wrong cases[] = {
        {{"trivial", "fixed", "-DX_TYPE=f32", {QN_BUF(&out)}, {8}, {8}}, QN_ERR_INTERNAL, "lie in"},
        {{"trivial", "fixed", "-DX_TYPE=f32", {QN_BUF(&in)}, {8}, {4}},
         QN_ERR_INTERNAL,
         "work-group"},
        {{"trivial", "fixed", "-DX_TYPE=f32", {QN_BUF(&in), QN_INT(1)}, {8}, {8}},
         QN_ERR_DEVICE,
         "CL_INVALID_ARG_INDEX"},
        {{"trivial", "turn", "-DX_TYPE=f32", {QN_BUF(&in)}, {8}, {8}}, QN_ERR_INTERNAL, "number"},
        {{"trivial", "turn", "-DX_TYPE=f32", {QN_BUF(&none), QN_LONG(0)}, {1}, {2 * most}},
         QN_ERR_BUILD,
         "work-group of"},
        {{"trivial", "nothing", "-DX_TYPE=f32", {QN_BUF(&in)}, {1}, {1}},
         QN_ERR_BUILD,
         "kernel nothing of program trivial"},
        {{"missing", "nothing", "", {QN_BUF(&in)}, {1}, {1}}, QN_ERR_IO, "missing.cl"},
    };
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){512}, 1), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kept.text[0] = 0;
        qn_status status = qn_emit_launch(qn_recording_emit(recording, "here"), &cases[i].launch);
        if (status != cases[i].status || !strstr(kept.text, cases[i].text))
            fail_msg("case %zu: %s: %s", i, qn_status_name(status), kept.text);
    }
    assert_int_equal(qn_recording_count(recording), 0);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

/* --- several devices --- */

enum { NARROW = 1 << 16, LAUNCHES = 96, WIDE = NARROW + 16 * LAUNCHES, ROUNDS = 4 };

/* A device that runs one kernel over and over, in a thread of its own. */
struct runner {
    qn_device *device;
    struct qn_recording *recording;
    struct qn_slab *slab;
    qn_status status;
};

/* Every launch is over a grid that is wider by `growth` than that of the one before. */
static void open_runner(struct runner *runner, qn_device *device, int growth)
{
    *runner = (struct runner){.device = device};
    assert_int_equal(qn_slab_open(&runner->slab, device, (int64_t[]){WIDE * 4, WIDE * 4}, 2),
                     QN_OK);
    assert_int_equal(qn_slab_fill(runner->slab, 0, 0, WIDE * 4, 0x3f800000), QN_OK);
    assert_int_equal(qn_slab_fill(runner->slab, 1, 0, WIDE * 4, 0), QN_OK);
    assert_int_equal(qn_recording_open(&runner->recording, runner->slab), QN_OK);
    for (int i = 0; i < LAUNCHES; i++) {
        const int64_t width = NARROW + i * growth;
        const struct qn_operand from = floats(0, 0, width), to = floats(1, 0, width);
        assert_int_equal(axpy(qn_recording_emit(runner->recording, "runner"), &from, &to, width, 1),
                         QN_OK);
    }
}

static void *run_often(void *user)
{
    struct runner *runner = user;
    for (int i = 0; i < ROUNDS && runner->status == QN_OK; i++) {
        runner->status = qn_recording_run(runner->recording, 0, -1);
        if (runner->status == QN_OK)
            runner->status = qn_device_finish(runner->device);
    }
    return NULL;
}

static void close_runner(struct runner *runner)
{
    float first = 0;
    assert_int_equal(runner->status, QN_OK);
    assert_int_equal(qn_slab_read(runner->slab, 1, 0, &first, 4, NULL), QN_OK);
    assert_true(first == LAUNCHES * ROUNDS);
    qn_recording_close(&runner->recording);
    qn_slab_close(&runner->slab);
}

/* A device whose kernels run on the thread that enqueues them, if the driver has such. */
static qn_device *open_simple(const qn_device *taken)
{
    const qn_device_params params = {.log = kept_log(&kept),
                                     .cache_dir = "",
                                     .kernel_dir = folder,
                                     .match = "basic",
                                     .others = &taken,
                                     .n_others = taken != NULL};
    qn_device_params any = params;
    qn_device *device = NULL;
    any.match = "";
    any.n_others = 0;
    if (qn_device_open(&device, &params) != QN_OK)
        assert_int_equal(qn_device_open(&device, &any), QN_OK);
    return device;
}

/* The same kernel on two devices at the same time: PoCL loads it anew for a grid that is wider than
 * all before, and then may take one device's use of it for the other's. */
static void devices_do_not_share_programs(void **state)
{
    (void)state;
    qn_device *one = open_simple(NULL), *other = open_simple(one);
    struct runner wide, narrow;
    pthread_t thread;
    open_runner(&narrow, one, 0);
    open_runner(&wide, other, 16);
    assert_int_equal(pthread_create(&thread, NULL, run_often, &wide), 0);
    run_often(&narrow);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_runner(&wide);
    close_runner(&narrow);
    qn_device_close(&other);
    qn_device_close(&one);
}

int main(void)
{
    setenv("POCL_DEVICES", "pthread basic basic", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_launches),
        cmocka_unit_test(replays_many),
        cmocka_unit_test(passes_longs),
        cmocka_unit_test(refuses_wrong_launches),
        cmocka_unit_test(devices_do_not_share_programs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
