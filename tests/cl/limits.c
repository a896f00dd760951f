/* SPDX-License-Identifier: MIT
 *
 * What is made of a driver that counts the local memory of kernels in its own way, of one that ends
 * loops early, and of one whose fma() is slow.
 */
#include "support.h"

#include "cl/limits.h"
#include "op/op.h"
#include "support/local_said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_ulong times, more; /* of what a kernel declares; bytes beyond it */
static int answers;          /* that were changed */

static cl_ulong local_said(cl_kernel kernel, cl_device_id device, cl_ulong bytes)
{
    (void)kernel;
    (void)device;
    answers++;
    return times * bytes + more;
}

static bool hides_fma; /* that the device has it */

cl_int __real_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value,
                              size_t *size);
cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value,
                              size_t *size);

cl_int __wrap_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value,
                              size_t *size)
{
    const cl_int error = __real_clGetDeviceInfo(device, what, room, value, size);
    if (error == CL_SUCCESS && what == CL_DEVICE_SINGLE_FP_CONFIG && hides_fma)
        *(cl_device_fp_config *)value &= ~(cl_device_fp_config)CL_FP_FMA;
    return error;
}

static qn_device *open_saying(struct kept *kept, cl_ulong multiple, cl_ulong beyond)
{
    times = multiple;
    more = beyond;
    answers = 0;
    qn_device *device = open_device(kept);
    assert_true(answers > 0);
    return device;
}

/* A kernel that declares so many bytes. */
static qn_status launch(qn_device *device, int64_t bytes)
{
    enum { GROUP = 64 };
    static const int64_t buffer = GROUP * sizeof(uint32_t);
    const struct qn_operand sums = {QN_I32, {1, {GROUP}}, 0, 0};
    struct qn_launch launch = {.program = "limits",
                               .kernel = "local_words",
                               .args = {QN_BUF(&sums)},
                               .global = {GROUP},
                               .local = {GROUP}};
    struct qn_slab *slab = NULL;
    qn_launch_option(&launch, "WORDS", bytes / 4);
    qn_launch_option(&launch, "GROUP", GROUP);
    assert_int_equal(qn_slab_open(&slab, device, &buffer, 1), QN_OK);
    const qn_status status = qn_trial_launch(slab, "limits", &launch);
    qn_slab_close(&slab);
    return status;
}

static int64_t local_of_device(const qn_device *device)
{
    cl_ulong bytes = 0;
    clGetDeviceInfo(device->found.id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    return (int64_t)bytes;
}

/* Of each, what may be declared is launched, and what is more is refused. */
static void a_multiple_leaves_a_part(void **state)
{
    (void)state;
    static struct kept kept;
    for (int multiple = 1; multiple <= 3; multiple++) {
        qn_device *device = open_saying(&kept, (cl_ulong)multiple, 0);
        const int64_t most = qn_device_facts(device)->local_bytes;
        assert_int_equal(most, local_of_device(device) / multiple);
        assert_int_equal(strstr(kept.text, "the driver counts the local memory") != NULL,
                         multiple > 1);
        assert_int_equal(launch(device, most / 256 * 256), QN_OK);
        assert_int_equal(launch(device, most / 256 * 256 + 1024), QN_ERR_BUILD);
        qn_device_close(&device);
    }
}

static void a_little_more_leaves_all(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = open_saying(&kept, 1, 1024);
    assert_int_equal(qn_device_facts(device)->local_bytes, local_of_device(device));
    qn_device_close(&device);
}

/* A device with `now` in the place of `old` in its trials. */
static qn_device *open_other(struct kept *kept, const char *old, const char *now,
                             char dir[FOLDER_BYTES])
{
    char *text = kernel_text("limits"), *other = swapped(text, "", old, now);
    qn_device *device = open_with_kernel(kept, "limits.cl", other, dir);
    free(other);
    free(text);
    return device;
}

/* Its loop makes `most` steps at most. */
static qn_device *open_ending(struct kept *kept, int most, char dir[FOLDER_BYTES])
{
    char condition[64];
    snprintf(condition, sizeof condition, "i < min(steps, %du)", most);
    return open_other(kept, "i < steps", condition, dir);
}

static void short_loops_are_for_kernels_of_gpus(void **state)
{
    (void)state;
    static struct kept kept;
    char folder[FOLDER_BYTES];
    qn_device *device = open_saying(&kept, 1, 0);
    const bool cpu = qn_device_facts(device)->cpu;
    assert_null(strstr(kept.text, "ends long loops"));
    qn_device_close(&device);
    for (int early = 0; early < 2; early++) {
        device = open_ending(&kept, early ? 65535 : 1 << 20, folder);
        assert_int_equal(qn_device_facts(device)->cpu, early ? false : cpu);
        assert_int_equal(strstr(kept.text, "ends long loops") != NULL, early);
        close_with_kernel(device, &kept, folder);
    }
}

/* Its fma() takes 100 times as long. */
static qn_device *open_slow(struct kept *kept, char dir[FOLDER_BYTES])
{
    return open_other(kept, "HALVE(halve_fused, fma(",
                      "float8 slow(float8 v, float8 a, float8 b)\n"
                      "{\n"
                      "    for (int i = 0; i < 100; i++)\n"
                      "        v = fma(v, a, b);\n"
                      "    return v;\n"
                      "}\n"
                      "HALVE(halve_fused, slow(",
                      dir);
}

/* Without a word of the driver fma() is timed; what the driver says of it is believed. */
static void a_slow_fma_is_not_called(void **state)
{
    (void)state;
    static struct kept kept;
    char folder[FOLDER_BYTES];
    hides_fma = true;
    qn_device *device = open_saying(&kept, 1, 0);
    assert_false(device->multiplies_apart);
    qn_device_close(&device);
    for (int hidden = 0; hidden < 2; hidden++) {
        hides_fma = hidden;
        device = open_slow(&kept, folder);
        assert_int_equal(device->multiplies_apart, hidden);
        assert_int_equal(strstr(kept.text, "a function in software") != NULL, hidden);
        close_with_kernel(device, &kept, folder);
    }
    hides_fma = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_multiple_leaves_a_part),
        cmocka_unit_test(a_little_more_leaves_all),
        cmocka_unit_test(short_loops_are_for_kernels_of_gpus),
        cmocka_unit_test(a_slow_fma_is_not_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
