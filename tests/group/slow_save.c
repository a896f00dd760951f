/* SPDX-License-Identifier: MIT
 *
 * A checkpoint whose files take longer to write than members wait for one who is silent: those who
 * wait hear that the writer is at work; one who is silent is noticed all the same.
 */
#include "../support/folder.h"
#include "team.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 16, WIDTH = 64 };

/* Seconds: that members wait, that the disk takes for a file. */
enum { TIMEOUT = 3, WRITE = 7 };

static struct test_data data;
static char folder[FOLDER_BYTES];
static bool slow;

/* In the place of libc's: the disk takes long for the next file. */
int fsync(int fd)
{
    (void)fd;
    nanosleep(&(struct timespec){.tv_sec = slow ? WRITE : 0}, NULL);
    slow = false;
    return 0;
}

/* A group of one member of two, as each of two processes has one. */
struct side {
    qn_graph *graph;
    qn_device *device;
    qn_plan *plan;
    qn_group *group;
    qn_transport transport;
    bool silent; /* while the other saves */
    qn_status status;
    char line[256];
};

static void open_side(struct side *s, qn_hub *hub, int member)
{
    qn_plan_params params = plan_of(SAMPLES / 2, UNIT, QN_RECOMPUTE_NONE);
    params.members = 2;
    params.member = member;
    s->graph = test_mlp(WIDTH, true);
    s->device = test_device();
    assert_int_equal(qn_hub_transport(hub, member, &s->transport), QN_OK);
    assert_int_equal(qn_plan_create(&s->plan, s->graph, qn_device_facts(s->device), &params, NULL),
                     QN_OK);
}

static void close_side(struct side *s)
{
    qn_group_close(&s->group);
    qn_plan_destroy(&s->plan);
    qn_device_close(&s->device);
    qn_graph_destroy(&s->graph);
}

static qn_status train_and_save(struct side *s)
{
    static const double shares[] = {1, 1};
    const qn_group_params params = {.unit = UNIT, .transports = &s->transport, .shares = shares};
    const qn_group_member member = {s->device, s->plan, 1};
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 0.01, .fetch = fetch_beside, .user = &data};
    qn_status status = qn_group_open(&s->group, &member, 1, &params);
    if (status == QN_OK)
        status = qn_group_step(s->group, &cycle, NULL);
    if (status == QN_OK)
        status = qn_group_finish(s->group, NULL);
    if (status == QN_OK && !s->silent)
        status = qn_group_save(s->group, folder, NULL);
    return status;
}

static void *run_side(void *user)
{
    struct side *s = user;
    s->status = train_and_save(s);
    snprintf(s->line, sizeof s->line, "%s", qn_last_error());
    return NULL;
}

/* Both sides train and save; member 0 tells that it is at work if its transport knows how long the
 * others wait. */
static void run_both(struct side sides[2], bool tells, bool silent)
{
    pthread_t threads[2];
    qn_hub *hub;
    make_folder(folder);
    slow = true;
    assert_int_equal(qn_hub_open(&hub, 2, TIMEOUT), QN_OK);
    for (int m = 0; m < 2; m++) {
        sides[m] = (struct side){.silent = m == 1 && silent};
        open_side(&sides[m], hub, m);
        sides[m].transport.timeout *= tells;
    }
    for (int m = 0; m < 2; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, run_side, &sides[m]), 0);
    for (int m = 0; m < 2; m++)
        pthread_join(threads[m], NULL);
    for (int m = 0; m < 2; m++)
        close_side(&sides[m]);
    qn_hub_close(&hub);
}

static void who_writes_is_waited_for(void **state)
{
    (void)state;
    struct side sides[2];
    qn_checkpoint *checkpoint;
    run_both(sides, true, false);
    for (int m = 0; m < 2; m++)
        assert_int_equal(sides[m].status, QN_OK);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, &test_log), QN_OK);
    assert_int_equal(qn_checkpoint_describe(checkpoint)->update, 1);
    qn_checkpoint_close(&checkpoint);
    remove_folder(folder);
}

static void who_is_silent_is_not(void **state)
{
    (void)state;
    struct side sides[2];
    run_both(sides, false, false);
    assert_int_equal(sides[0].status, QN_ERR_MEMBER);
    assert_int_equal(sides[1].status, QN_ERR_MEMBER);
    assert_non_null(strstr(sides[1].line, "nothing from member 0 for 3 seconds"));
    remove_folder(folder);
    run_both(sides, true, true);
    assert_int_equal(sides[0].status, QN_ERR_MEMBER);
    assert_non_null(strstr(sides[0].line, "nothing from member 1 for 3 seconds"));
    remove_folder(folder);
}

static int make_data(void **state)
{
    (void)state;
    test_data_make(&data, SAMPLES, WIDTH);
    return 0;
}

static int free_data(void **state)
{
    (void)state;
    test_data_free(&data);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_writes_is_waited_for),
        cmocka_unit_test(who_is_silent_is_not),
    };
    return cmocka_run_group_tests_name("slow save", tests, make_data, free_data);
}
