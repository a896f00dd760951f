/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "cl/private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void lists_devices(void **state)
{
    (void)state;
    qn_device_info info[8];
    int count = -1, again = -1;
    assert_int_equal(qn_device_list(info, 8, &count, NULL), QN_OK);
    assert_in_range(count, 1, 64);
    assert_true(strlen(info[0].device) > 0 && strlen(info[0].platform) > 0);
    assert_int_equal(qn_device_list(NULL, 0, &again, NULL), QN_OK);
    assert_int_equal(again, count);
    assert_int_equal(qn_device_list(NULL, 1, &again, NULL), QN_ERR_ARGUMENT);
}

static void chooses_by_text(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *any = open_device(&kept), *same = NULL;
    char text[96] = "";
    snprintf(text, sizeof text, "%s", qn_device_describe(any)->device);
    for (char *c = text; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    const qn_device_params by_name = {.log = kept_log(&kept), .match = text, .cache_dir = ""};
    assert_int_equal(qn_device_open(&same, &by_name), QN_OK);
    assert_string_equal(qn_device_describe(same)->device, qn_device_describe(any)->device);
    qn_device_close(&same);
    qn_device_close(&any);
}

static void refuses_what_is_not_there(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = NULL;
    const qn_device_params params = {.log = kept_log(&kept), .match = "no such device"};
    assert_int_equal(qn_device_open(&device, &params), QN_ERR_NO_DEVICE);
    assert_null(device);
    assert_non_null(
        strstr(kept.text, "no usable OpenCL device matches \"no such device\"; found: "));
}

static void takes_the_environment(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = NULL;
    const char *before = getenv("QN_DEVICE");
    char *old = before ? strdup(before) : NULL;
    setenv("QN_DEVICE", "no such device", 1);
    const qn_device_params params = {.log = kept_log(&kept), .cache_dir = ""};
    assert_int_equal(qn_device_open(&device, &params), QN_ERR_NO_DEVICE);
    setenv("QN_DEVICE", "", 1);
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    qn_device_close(&device);
    unsetenv("QN_DEVICE");
    if (old)
        setenv("QN_DEVICE", old, 1);
    free(old);
}

static void takes_no_device_twice(void **state)
{
    (void)state;
    static struct kept kept;
    enum { MOST = 16 };
    const qn_device *taken[MOST];
    qn_device *open[MOST];
    int count = 0;
    qn_status status = QN_OK;
    for (; count < MOST; count++) {
        const qn_device_params params = {
            .log = kept_log(&kept), .cache_dir = "", .others = taken, .n_others = count};
        if ((status = qn_device_open(&open[count], &params)) != QN_OK)
            break;
        for (int i = 0; i < count; i++)
            assert_ptr_not_equal(open[i]->found.id, open[count]->found.id);
        taken[count] = open[count];
    }
    assert_true(count > 0);
    assert_int_equal(status, QN_ERR_NO_DEVICE);
    assert_non_null(strstr(kept.text, " is taken already, and no other device is there"));
    while (count > 0)
        qn_device_close(&open[--count]);
}

/* The place of a device among all is the same, whichever way it was opened. */
static void passes_over(void **state)
{
    (void)state;
    static struct kept kept;
    static qn_device_info infos[64];
    int all = 0, count = 0, first = -1;
    assert_int_equal(qn_device_list(infos, 64, &all, NULL), QN_OK);
    for (int i = 0; i < all; i++)
        count += infos[i].usable;
    for (int skip = 0; skip <= count; skip++) {
        qn_device *device;
        const qn_device_params params = {.log = kept_log(&kept), .cache_dir = "", .skip = skip};
        assert_int_equal(qn_device_open(&device, &params), QN_OK);
        const int number = qn_device_describe(device)->number;
        assert_in_range(number, 0, all - 1);
        first = skip == 0 ? number : first;
        assert_int_equal(number == first, skip % count == 0);
        qn_device_close(&device);
    }
    const qn_device_params below = {.log = kept_log(&kept), .skip = -1};
    qn_device *device;
    assert_int_equal(qn_device_open(&device, &below), QN_ERR_ARGUMENT);
}

static void gives_facts(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = open_device(&kept);
    const qn_facts *facts = qn_device_facts(device);
    assert_true(facts->vector_width == 4 || facts->vector_width == 8 || facts->vector_width == 16);
    assert_true(facts->compute_units > 0 && facts->max_work_group > 0);
    assert_int_equal(facts->alignment, 512);
    assert_true(facts->max_alloc_bytes <= INT64_C(1) << 30);
    assert_int_equal(facts->max_alloc_bytes & (facts->max_alloc_bytes - 1), 0);
    assert_true(facts->max_alloc_bytes <= qn_device_describe(device)->max_alloc_bytes);
    assert_true(facts->flops > 0 && facts->bytes_per_second > 0 && facts->launch_seconds > 0);
    qn_device_close(&device);

    const qn_device_params params = {.cache_dir = "", .max_alloc_bytes = 3 << 20};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    assert_int_equal(qn_device_facts(device)->max_alloc_bytes, 3 << 20);
    qn_device_close(&device);
}

static void closes_nothing(void **state)
{
    (void)state;
    qn_device *none = NULL;
    qn_device_close(&none);
    qn_device_close(NULL);
    assert_null(qn_device_facts(NULL));
    assert_null(qn_device_describe(NULL));
}

/* A context of the caller, made without the library. */
struct own {
    cl_context context;
    cl_device_id id;
    cl_command_queue queue;
};

static void make_own(struct own *own, cl_command_queue_properties properties)
{
    struct qn_found found;
    assert_int_equal(qn_choose_device(&found, NULL, &(qn_device_params){0}), QN_OK);
    cl_int error;
    own->id = found.id;
    own->context = clCreateContext(NULL, 1, &own->id, NULL, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    own->queue = clCreateCommandQueue(own->context, own->id, properties, &error);
    if (error != CL_SUCCESS)
        own->queue = NULL;
}

static cl_uint references(cl_context context)
{
    cl_uint count = 0;
    clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL);
    return count;
}

static void free_own(struct own *own)
{
    if (own->queue)
        clReleaseCommandQueue(own->queue);
    clReleaseContext(own->context);
}

static void wraps_the_callers_context(void **state)
{
    (void)state;
    static struct kept kept;
    struct own own;
    make_own(&own, 0);
    cl_uint before = references(own.context);
    qn_device *device = NULL;
    const qn_device_params two = {
        .log = kept_log(&kept), .cl_context = own.context, .cl_device_id = own.id, .cache_dir = ""};
    assert_int_equal(qn_device_open(&device, &two), QN_OK);
    assert_ptr_equal(device->context, own.context);
    assert_int_equal(qn_device_finish(device), QN_OK);
    qn_device_close(&device);

    qn_device_params three = two;
    three.cl_queue = own.queue;
    assert_int_equal(qn_device_open(&device, &three), QN_OK);
    assert_ptr_equal(device->queue, own.queue);
    qn_device_close(&device);
    assert_int_equal(clFinish(own.queue), CL_SUCCESS);
    assert_int_equal(references(own.context), before);
    free_own(&own);
}

static void refuses_half_a_context(void **state)
{
    (void)state;
    static struct kept kept;
    struct own own, other;
    make_own(&own, 0);
    make_own(&other, 0);
    qn_device *device = NULL;
    const qn_device_params half = {.log = kept_log(&kept), .cl_context = own.context};
    assert_int_equal(qn_device_open(&device, &half), QN_ERR_ARGUMENT);
    const qn_device_params mixed = {.log = kept_log(&kept),
                                    .cl_context = own.context,
                                    .cl_device_id = own.id,
                                    .cl_queue = other.queue};
    assert_int_equal(qn_device_open(&device, &mixed), QN_ERR_ARGUMENT);
    assert_null(device);
    free_own(&other);
    free_own(&own);
}

static void refuses_an_out_of_order_queue(void **state)
{
    (void)state;
    static struct kept kept;
    struct own own;
    make_own(&own, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (own.queue) {
        qn_device *device = NULL;
        const qn_device_params params = {.log = kept_log(&kept),
                                         .cl_context = own.context,
                                         .cl_device_id = own.id,
                                         .cl_queue = own.queue};
        assert_int_equal(qn_device_open(&device, &params), QN_ERR_ARGUMENT);
        assert_non_null(strstr(kept.text, "out of order"));
    }
    free_own(&own);
}

static void reports_late_errors(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = open_device(&kept);
    cl_event event = clCreateUserEvent(device->context, NULL);
    assert_non_null(event);
    qn_device_mark(device, event);
    assert_int_equal(qn_device_finish(device), QN_OK);
    event = clCreateUserEvent(device->context, NULL);
    clSetUserEventStatus(event, CL_OUT_OF_RESOURCES);
    qn_device_mark(device, event);
    assert_int_equal(qn_device_finish(device), QN_ERR_DEVICE);
    assert_non_null(strstr(kept.text, "CL_OUT_OF_RESOURCES"));
    assert_int_equal(qn_device_finish(device), QN_ERR_DEVICE);
    qn_device_close(&device);
}

static void *fail_later(void *event)
{
    usleep(50000);
    clSetUserEventStatus(event, CL_OUT_OF_RESOURCES);
    return NULL;
}

/* The oldest mark still runs when its place is needed, and then fails. */
static void loses_no_late_error(void **state)
{
    (void)state;
    static struct kept kept;
    qn_device *device = open_device(&kept);
    cl_event oldest = clCreateUserEvent(device->context, NULL);
    pthread_t thread;
    clRetainEvent(oldest);
    qn_device_mark(device, oldest);
    assert_int_equal(pthread_create(&thread, NULL, fail_later, oldest), 0);
    for (int i = 0; i < QN_MAX_MARKS; i++) {
        cl_event event = clCreateUserEvent(device->context, NULL);
        clSetUserEventStatus(event, CL_COMPLETE);
        qn_device_mark(device, event);
    }
    assert_int_equal(qn_device_finish(device), QN_ERR_DEVICE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    clReleaseEvent(oldest);
    qn_device_close(&device);
}

static void names_errors(void **state)
{
    (void)state;
    assert_string_equal(qn_cl_error_name(CL_SUCCESS), "CL_SUCCESS");
    assert_string_equal(qn_cl_error_name(CL_INVALID_WORK_GROUP_SIZE), "CL_INVALID_WORK_GROUP_SIZE");
    assert_non_null(qn_cl_error_name(-12345));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_devices),
        cmocka_unit_test(chooses_by_text),
        cmocka_unit_test(refuses_what_is_not_there),
        cmocka_unit_test(takes_the_environment),
        cmocka_unit_test(takes_no_device_twice),
        cmocka_unit_test(passes_over),
        cmocka_unit_test(gives_facts),
        cmocka_unit_test(closes_nothing),
        cmocka_unit_test(wraps_the_callers_context),
        cmocka_unit_test(refuses_half_a_context),
        cmocka_unit_test(refuses_an_out_of_order_queue),
        cmocka_unit_test(reports_late_errors),
        cmocka_unit_test(loses_no_late_error),
        cmocka_unit_test(names_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
