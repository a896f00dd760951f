/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "cl/private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kept kept;
static char kernels[FOLDER_BYTES], cache[FOLDER_BYTES];

static int setup(void **state)
{
    (void)state;
    make_folder(kernels);
    make_folder(cache);
    write_text(kernels, "good.clh", "#define VALUE 7\n");
    write_text(
        kernels, "good.cl",
        "#include \"good.clh\"\n__kernel void good(__global int *x) { x[0] = VALUE + MORE; }\n");
    write_text(kernels, "bad.cl",
               "#include \"good.clh\"\n\n__kernel void bad(__global int *x) { x[0] = nothing; }\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_folder(kernels);
    remove_folder(cache);
    return 0;
}

static qn_device *open_with(const char *cache_dir)
{
    qn_device *device = NULL;
    const qn_device_params params = {
        .log = kept_log(&kept), .cache_dir = cache_dir, .kernel_dir = kernels};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    return device;
}

/* Runs the kernel and gives what it wrote. */
static int run_good(qn_device *device, const char *options)
{
    cl_kernel kernel = NULL;
    cl_int error, value = 0;
    assert_int_equal(qn_kernel_create(device, "good", options, "good", &kernel), QN_OK);
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, 4, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    clSetKernelArg(kernel, 0, sizeof memory, &memory);
    clEnqueueNDRangeKernel(device->queue, kernel, 1, NULL, (size_t[]){1}, (size_t[]){1}, 0, NULL,
                           NULL);
    clEnqueueReadBuffer(device->queue, memory, CL_TRUE, 0, 4, &value, 0, NULL, NULL);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    return value;
}

static void builds_each_once(void **state)
{
    (void)state;
    qn_device *device = open_with("");
    cl_program first = NULL, second = NULL, third = NULL;
    assert_int_equal(qn_program_get(device, "good", "-DMORE=1", &first), QN_OK);
    assert_int_equal(qn_program_get(device, "good", " -DMORE=1", &second), QN_OK);
    assert_int_equal(qn_program_get(device, "good", "-DMORE=2", &third), QN_OK);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, third);
    assert_int_equal(run_good(device, "-DMORE=2"), 9);
    qn_device_close(&device);
}

static void reports_what_does_not_build(void **state)
{
    (void)state;
    qn_device *device = open_with("");
    cl_program program = NULL;
    assert_int_equal(qn_program_get(device, "bad", "-DMORE=1", &program), QN_ERR_BUILD);
    assert_null(program);
    assert_non_null(
        strstr(kept.text, "kernel program bad with options \"-cl-std=CL1.2 -DMORE=1\""));
    /* One simulator heeds no #line: it names its input and counts the inlined lines. */
    assert_true(strstr(kept.text, "bad.cl:3:") || strstr(kept.text, "input.cl:6:"));
    assert_non_null(strstr(kept.text, "nothing"));
    assert_int_equal(qn_program_get(device, "absent", "", &program), QN_ERR_IO);
    assert_non_null(strstr(kept.text, "absent.cl"));
    qn_device_close(&device);

    device = open_device(&kept);
    assert_int_equal(qn_program_get(device, "absent", "", &program), QN_ERR_BUILD);
    assert_non_null(strstr(kept.text, "no kernel program \"absent\""));
    qn_device_close(&device);
}

static bool was_cached(void)
{
    bool cached = strstr(kept.text, "from the cache") != NULL;
    assert_true(cached || strstr(kept.text, ": built"));
    return cached;
}

/* On a device of its own, whose driver keeps programs by itself or does not. */
static int run_fresh(const char *options, bool own_cache)
{
    qn_device *device = open_with(cache);
    device->quirks &= ~(unsigned)QN_QUIRK_OWN_CACHE;
    if (own_cache)
        device->quirks |= QN_QUIRK_OWN_CACHE;
    int value = run_good(device, options);
    qn_device_close(&device);
    return value;
}

static void caches_on_disk(void **state)
{
    (void)state;
    assert_int_equal(run_fresh("-DMORE=1", false), 8);
    assert_false(was_cached());
    assert_int_equal(run_fresh("-DMORE=1", false), 8);
    assert_true(was_cached());
    assert_int_equal(run_fresh("-DMORE=2", false), 9);
    assert_false(was_cached());
    write_text(kernels, "good.clh", "#define VALUE 8\n");
    assert_int_equal(run_fresh("-DMORE=1", false), 9);
    assert_false(was_cached());
}

/* Writes the text into every file of the cache, and counts them. */
static int overwrite_all(const char *text)
{
    int count = 0;
    DIR *dir = opendir(cache);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            write_text(cache, entry->d_name, text);
            count++;
        }
    closedir(dir);
    return count;
}

/* A driver's own cache would have ours beside it; what tuning found is kept all the same. */
static void leaves_programs_to_the_driver(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_fresh("-DMORE=1", true), 8);
        assert_false(was_cached());
    }
    assert_int_equal(overwrite_all(""), 0);
    qn_device *device = open_with(cache);
    assert_int_equal(qn_device_store_text(device, "text", "kept"), QN_OK);
    char *text = qn_device_load_text(device, "text");
    assert_string_equal(text, "kept");
    free(text);
    qn_device_close(&device);
}

static void rebuilds_what_is_corrupt(void **state)
{
    (void)state;
    assert_int_equal(run_fresh("-DMORE=3", false), 10);
    assert_int_equal(overwrite_all("this is not a kernel"), 1);
    assert_int_equal(run_fresh("-DMORE=3", false), 10);
    assert_false(was_cached());
    assert_int_equal(run_fresh("-DMORE=3", false), 10);
    assert_true(was_cached());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(builds_each_once, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_what_does_not_build, setup, teardown),
        cmocka_unit_test_setup_teardown(caches_on_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_programs_to_the_driver, setup, teardown),
        cmocka_unit_test_setup_teardown(rebuilds_what_is_corrupt, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
