/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: a restored run goes on bit for bit; whatever is damaged is refused and nothing
 * changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bed.h"
#include "run/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[200], folder[256]; /* of all tests, of the one that runs */

static const qn_plan_params plan_params = {.budget = 64 << 20,
                                           .batch = {BED_SAMPLES},
                                           .micro_batch = 16,
                                           .variants = "",
                                           .optimizer = {.name = "adamw"}};
static const qn_trainer_params trainer_params = {
    .seed = UINT64_C(0xfedcba9876543210), .weight_decay = 0.01, .clip = 1};

static struct test_run open_run(const qn_graph *of)
{
    return test_open(device, of, &plan_params, &trainer_params);
}

static void path_in(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", folder, name);
}

static void save(struct test_run *run, bool best)
{
    const qn_save_params params = {
        .position = 123456, .best = best, .note = "[model]\nname = \"x\"\n"};
    assert_int_equal(qn_checkpoint_save(run->trainer, folder, &params), QN_OK);
}

static void assert_same_weights(qn_trainer *a, qn_trainer *b)
{
    float *x, *y;
    int64_t count = test_weights(a, &x);
    assert_int_equal(test_weights(b, &y), count);
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
    free(x);
    free(y);
}

static void goes_on_bit_for_bit(void **state)
{
    (void)state;
    struct test_run whole = open_run(graph);
    test_train(whole.trainer, &data, BED_SAMPLES, 3);
    save(&whole, false);
    test_train(whole.trainer, &data, BED_SAMPLES, 4);

    qn_checkpoint *checkpoint;
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    const qn_checkpoint_info *info = qn_checkpoint_describe(checkpoint);
    assert_int_equal(info->update, 3);
    assert_int_equal(info->position, 123456);
    assert_string_equal(info->note, "[model]\nname = \"x\"\n");
    assert_true(info->trainer.seed == trainer_params.seed);
    assert_true(info->plan_hash == qn_plan_facts(whole.plan)->hash);
    struct test_run second = test_restore(device, graph, checkpoint);
    assert_int_equal(qn_trainer_updates(second.trainer), 3);
    test_train(second.trainer, &data, BED_SAMPLES, 4);
    assert_same_weights(whole.trainer, second.trainer);

    qn_checkpoint_close(&checkpoint);
    test_close(&whole);
    test_close(&second);
}

/* What is saved is the plan that runs. */
static void goes_on_after_another_budget(void **state)
{
    (void)state;
    struct test_run whole = open_run(graph);
    const int64_t least = qn_plan_facts(whole.plan)->smallest_budget;
    qn_checkpoint *checkpoint;
    test_train(whole.trainer, &data, BED_SAMPLES, 2);
    assert_int_equal(qn_trainer_set_budget(whole.trainer, least), QN_OK);
    save(&whole, false);
    test_train(whole.trainer, &data, BED_SAMPLES, 2);

    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    struct test_run second = test_restore(device, graph, checkpoint);
    assert_int_equal(qn_plan_facts(second.plan)->peak_bytes, least);
    test_train(second.trainer, &data, BED_SAMPLES, 2);
    assert_same_weights(whole.trainer, second.trainer);

    qn_checkpoint_close(&checkpoint);
    test_close(&whole);
    test_close(&second);
}

/* The device never began the update that failed, and nobody may hear of it. */
static void a_failed_step_leaves_no_metrics(void **state)
{
    (void)state;
    struct test_run run = open_run(graph);
    const qn_cycle cycle = {BED_SAMPLES, 0.05, test_fetch, &data};
    qn_checkpoint *checkpoint;
    qn_metrics metrics;
    test_train(run.trainer, &data, BED_SAMPLES, 3);
    save(&run, false);
    test_train(run.trainer, &data, BED_SAMPLES, 1);
    data.fail_at = data.fetched + 4;
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_IO);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, run.trainer), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
    assert_false(metrics.valid);
    qn_checkpoint_close(&checkpoint);
    test_close(&run);
}

static int folders(void)
{
    char command[600], line[32];
    snprintf(command, sizeof command, "ls -A '%s' | grep -c update-", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(line, sizeof line, pipe));
    pclose(pipe);
    return atoi(line);
}

static bool there(const char *name)
{
    char path[512];
    path_in(path, name);
    return access(path, F_OK) == 0;
}

static void keeps_last_and_best(void **state)
{
    (void)state;
    struct test_run run = open_run(graph);
    for (int i = 1; i <= 4; i++) {
        test_train(run.trainer, &data, BED_SAMPLES, 1);
        save(&run, i == 2);
        save(&run, i == 2); /* the same update twice */
    }
    assert_int_equal(folders(), 2);
    assert_true(there("update-00000004-1") && !there("update-00000004")); /* none is replaced */
    char path[512];
    qn_checkpoint *checkpoint;
    path_in(path, "best");
    assert_int_equal(qn_checkpoint_open(&checkpoint, path, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_describe(checkpoint)->update, 2);
    qn_checkpoint_close(&checkpoint);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_describe(checkpoint)->update, 4);
    struct test_run other = open_run(graph);
    assert_int_equal(qn_weights_load(other.trainer, qn_checkpoint_describe(checkpoint)->weights),
                     QN_OK);
    assert_same_weights(run.trainer, other.trainer);
    qn_checkpoint_close(&checkpoint);
    test_close(&run);
    test_close(&other);
}

static int64_t update_of(const char *link)
{
    char path[512];
    qn_checkpoint *checkpoint;
    path_in(path, link);
    assert_int_equal(qn_checkpoint_open(&checkpoint, path, NULL), QN_OK);
    int64_t update = qn_checkpoint_describe(checkpoint)->update;
    qn_checkpoint_close(&checkpoint);
    return update;
}

/* What could not be read again is not written, and the checkpoint before it stays. */
static void refuses_to_save_what_is_too_long(void **state)
{
    (void)state;
    char *note = malloc(QN_TRAIN_BYTES + 1);
    assert_non_null(note);
    memset(note, 'x', QN_TRAIN_BYTES);
    note[QN_TRAIN_BYTES] = 0;
    const qn_save_params params = {.note = note};
    struct test_run run = open_run(graph);
    save(&run, false);
    assert_int_equal(qn_checkpoint_save(run.trainer, folder, &params), QN_ERR_ARGUMENT);
    assert_int_equal(update_of("last"), 0);
    assert_int_equal(folders(), 1);
    free(note);
    test_close(&run);
}

/* The last checkpoint knows the best accuracy: so the best one must stand before the last does. A
 * folder in the place of `last` ends the save between the two. */
static void killed_between_the_links_keeps_the_best(void **state)
{
    (void)state;
    char last[512], aside[512];
    const qn_save_params params = {.best = true};
    struct test_run run = open_run(graph);
    test_train(run.trainer, &data, BED_SAMPLES, 1);
    save(&run, true);
    path_in(last, "last");
    path_in(aside, "aside");
    assert_int_equal(rename(last, aside), 0);
    assert_int_equal(mkdir(last, 0700), 0);
    test_train(run.trainer, &data, BED_SAMPLES, 1);
    assert_int_equal(qn_checkpoint_save(run.trainer, folder, &params), QN_ERR_IO);
    assert_int_equal(rmdir(last), 0);
    assert_int_equal(rename(aside, last), 0);
    assert_int_equal(update_of("best"), 2);
    assert_int_equal(update_of("last"), 1);
    save(&run, true); /* as the resumed training does */
    assert_int_equal(update_of("best"), 2);
    assert_int_equal(update_of("last"), 2);
    assert_int_equal(folders(), 1);
    test_close(&run);
}

static void make_folder(const char *name)
{
    char path[512];
    path_in(path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_file(const char *name)
{
    char path[512];
    path_in(path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void removes_only_what_it_made(void **state)
{
    (void)state;
    static const char *const others[] = {"update-notes",     "update-log.txt",
                                         "update-00000007",  "update-1234567",
                                         "update-00000008-", "update-00000009.old"};
    struct test_run run = open_run(graph);
    save(&run, false);
    make_folder("update-notes");
    make_file("update-notes/checksums.txt");
    make_file("update-log.txt");
    make_folder("update-00000007");
    make_file("update-00000007/thoughts");
    make_folder("update-1234567");
    make_file("update-1234567/checksums.txt");
    make_folder("update-00000008-");
    make_file("update-00000008-/checksums.txt");
    make_folder("update-00000009.old");
    make_file("update-00000009.old/checksums.txt");
    make_folder("update-00000003-2");
    make_file("update-00000003-2/checksums.txt");
    test_train(run.trainer, &data, BED_SAMPLES, 1);
    save(&run, false);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(there(others[i]));
    assert_false(there("update-00000000"));
    assert_false(there("update-00000003-2"));
    test_close(&run);
}

/* Folders nested as deeply as no checkpoint is. */
static void what_cannot_be_removed_is_no_failure(void **state)
{
    (void)state;
    char deep[128] = "update-00000000";
    struct test_run run = open_run(graph);
    make_folder(deep);
    make_file("update-00000000/checksums.txt");
    for (int i = 0; i < 20; i++)
        make_folder(strcat(deep, "/d"));
    test_train(run.trainer, &data, BED_SAMPLES, 1);
    save(&run, false);
    assert_true(there(deep) && there("last/weights.safetensors"));
    test_close(&run);
}

/* --- damage --- */

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

static void refuses_what_is_damaged(void **state)
{
    (void)state;
    static const char *const files[] = {"last/weights.safetensors", "last/optimizer.safetensors",
                                        "last/train.json", "last/checksums.txt"};
    struct test_run run = open_run(graph);
    for (int f = 0; f < 4; f++)
        for (int damage = 0; damage < 4; damage++) {
            char path[512];
            qn_checkpoint *checkpoint;
            save(&run, false);
            path_in(path, files[f]);
            if (damage == 0)
                assert_int_equal(unlink(path), 0);
            if (damage == 1)
                assert_int_equal(truncate(path, 20), 0);
            if (damage == 2)
                flip_byte(path, 3);
            if (damage == 3)
                flip_byte(path, -9);
            assert_int_not_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
            assert_null(checkpoint);
        }
    test_close(&run);
}

/* Weights that are loaded by themselves are checked where the list of checksums lies beside them.
 */
static void refuses_damaged_weights(void **state)
{
    (void)state;
    char path[512], list[512];
    struct test_run run = open_run(graph);
    save(&run, false);
    path_in(path, "last/weights.safetensors");
    path_in(list, "last/checksums.txt");
    assert_int_equal(qn_weights_load(run.trainer, path), QN_OK);
    flip_byte(path, -9);
    assert_int_equal(qn_weights_load(run.trainer, path), QN_ERR_FORMAT);
    assert_int_equal(unlink(list), 0);
    assert_int_equal(qn_weights_load(run.trainer, path), QN_OK);
    test_close(&run);
}

static void refuses_another_graph(void **state)
{
    (void)state;
    qn_graph *other = test_mlp(64, false);
    struct test_run run = open_run(graph), stranger = open_run(other);
    save(&run, false);
    qn_checkpoint *checkpoint;
    qn_plan *plan;
    float *before, *after;
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_plan(checkpoint, other, device, &plan), QN_ERR_FORMAT);
    assert_null(plan);
    int64_t count = test_weights(stranger.trainer, &before);
    assert_int_equal(qn_checkpoint_restore(checkpoint, stranger.trainer), QN_ERR_FORMAT);
    test_weights(stranger.trainer, &after);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    free(before);
    free(after);
    qn_checkpoint_close(&checkpoint);
    test_close(&run);
    test_close(&stranger);
    qn_graph_destroy(&other);
}

/* The weights fit, the optimizer's file does not: nothing is written. */
static void refuses_another_optimizer(void **state)
{
    (void)state;
    qn_plan_params sgd = plan_params;
    sgd.optimizer = (qn_optimizer){.name = "sgd", .momentum = 0.9};
    struct test_run run = open_run(graph);
    struct test_run other = test_open(device, graph, &sgd, &trainer_params);
    qn_checkpoint *checkpoint;
    float *before, *after;
    test_train(run.trainer, &data, BED_SAMPLES, 2);
    save(&run, false);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    const qn_cycle cycle = {BED_SAMPLES, 0.05, test_fetch, &data};
    assert_int_equal(qn_trainer_step(other.trainer, &cycle, NULL), QN_OK);
    int64_t count = test_weights(other.trainer, &before);
    assert_int_equal(qn_checkpoint_restore(checkpoint, other.trainer), QN_ERR_FORMAT);
    test_weights(other.trainer, &after);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    qn_metrics last;
    assert_int_equal(qn_trainer_updates(other.trainer), 1);
    assert_int_equal(qn_trainer_finish(other.trainer, &last), QN_OK);
    assert_true(last.valid && last.update == 0);
    free(before);
    free(after);
    qn_checkpoint_close(&checkpoint);
    test_close(&run);
    test_close(&other);
}

/* The plan of a checkpoint on the device as it is now. */
static qn_status plan_again(const qn_checkpoint *checkpoint)
{
    qn_plan *plan;
    qn_status status = qn_checkpoint_plan(checkpoint, graph, device, &plan);
    assert_int_equal(plan != NULL, status == QN_OK);
    qn_plan_destroy(&plan);
    return status;
}

static void count_warnings(void *user, qn_log_level level, const char *text)
{
    assert_int_equal(level == QN_LOG_WARNING, strstr(text, "new plan") == NULL);
    assert_non_null(strstr(text, "made on "));
    *(int *)user += level == QN_LOG_WARNING;
}

static void refuses_a_lesser_device(void **state)
{
    (void)state;
    int warnings = 0;
    const qn_log log = {count_warnings, &warnings, QN_LOG_WARNING};
    struct test_run run = open_run(graph);
    qn_facts *facts = (qn_facts *)(uintptr_t)qn_device_facts(device);
    const qn_facts real = *facts;
    qn_checkpoint *checkpoint;
    save(&run, false);
    test_close(&run);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, &log), QN_OK);
    facts->cpu = !real.cpu;
    assert_int_equal(plan_again(checkpoint), QN_ERR_FORMAT);
    *facts = real;
    facts->max_work_group = 1;
    assert_int_equal(plan_again(checkpoint), QN_ERR_FORMAT);
    *facts = real;
    facts->local_bytes = 1;
    assert_int_equal(plan_again(checkpoint), QN_ERR_FORMAT);
    *facts = real;
    facts->max_alloc_bytes = 1;
    assert_int_equal(plan_again(checkpoint), QN_ERR_FORMAT);
    facts->max_alloc_bytes = 1 << 26; /* enough, and drivers report what is free just now */
    facts->global_bytes = 1 << 28;
    assert_int_equal(plan_again(checkpoint), QN_OK);
    assert_int_equal(warnings, 0);
    facts->name[0] ^= 1;
    assert_int_equal(plan_again(checkpoint), QN_OK);
    assert_int_equal(warnings, 1);
    *facts = real;
    qn_checkpoint_close(&checkpoint);
}

static void one_at_a_time_has_the_lock(void **state)
{
    (void)state;
    char path[512];
    int first, second;
    path_in(path, "new/deeper");
    assert_int_equal(qn_checkpoint_lock(path, &first, NULL), QN_OK);
    assert_true(there("new/deeper"));
    assert_int_equal(qn_checkpoint_lock(path, &second, NULL), QN_ERR_IO);
    assert_int_equal(second, -1);
    close(first);
    assert_int_equal(qn_checkpoint_lock(path, &second, NULL), QN_OK);
    close(second);
}

static void refuses_what_is_not_there(void **state)
{
    (void)state;
    qn_checkpoint *checkpoint;
    char path[512];
    path_in(path, "nothing");
    assert_int_equal(qn_checkpoint_open(&checkpoint, path, NULL), QN_ERR_IO);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(qn_checkpoint_open(&checkpoint, path, NULL), QN_ERR_IO);
    assert_int_equal(qn_checkpoint_open(&checkpoint, NULL, NULL), QN_ERR_ARGUMENT);
}

static int open_all(void **state)
{
    open_bed(state);
    const char *temp = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/quern-checkpoint-%d", temp ? temp : "/tmp", getpid());
    return mkdir(base, 0700);
}

static int close_all(void **state)
{
    char command[300];
    close_bed(state);
    snprintf(command, sizeof command, "rm -r '%s'", base);
    return system(command);
}

/* A new folder for each test. */
static int next_folder(void **state)
{
    (void)state;
    static int number;
    snprintf(folder, sizeof folder, "%s/%d", base, number++);
    return mkdir(folder, 0700);
}

#define CASE(name) cmocka_unit_test_setup(name, next_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(goes_on_bit_for_bit),
        CASE(goes_on_after_another_budget),
        CASE(a_failed_step_leaves_no_metrics),
        CASE(keeps_last_and_best),
        CASE(refuses_to_save_what_is_too_long),
        CASE(killed_between_the_links_keeps_the_best),
        CASE(removes_only_what_it_made),
        CASE(what_cannot_be_removed_is_no_failure),
        CASE(refuses_what_is_damaged),
        CASE(refuses_damaged_weights),
        CASE(refuses_another_graph),
        CASE(refuses_another_optimizer),
        CASE(refuses_a_lesser_device),
        CASE(one_at_a_time_has_the_lock),
        CASE(refuses_what_is_not_there),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, open_all, close_all);
}
