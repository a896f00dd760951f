/* SPDX-License-Identifier: MIT */
#include "io/folder.h"
#include "scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool there(const struct scratch *scratch, const char *name)
{
    char path[768];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", scratch->folder, name);
    return lstat(path, &facts) == 0;
}

static int entries(const struct scratch *scratch)
{
    DIR *folder = opendir(scratch->folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count;
}

static void fill(const struct qn_folder *folder, const char *name)
{
    char *path = qn_path_join(folder->temp, name);
    assert_int_equal(qn_file_write(path, name, strlen(name), folder->log), QN_OK);
    free(path);
}

static void save(struct scratch *scratch, const char *name, const char *file)
{
    struct qn_folder folder = {0};
    assert_int_equal(qn_folder_create(&folder, scratch->folder, name, &scratch->log), QN_OK);
    fill(&folder, file);
    assert_int_equal(qn_folder_commit(&folder), QN_OK);
}

static void a_folder_appears_whole(void **state)
{
    struct scratch *scratch = *state;
    struct qn_folder folder = {0};
    assert_int_equal(qn_folder_create(&folder, scratch->folder, "step-1", &scratch->log), QN_OK);
    fill(&folder, "weights");
    char *deeper = qn_path_join(folder.temp, "deeper");
    assert_int_equal(mkdir(deeper, 0777), 0);
    free(deeper);
    fill(&folder, "deeper/more");
    assert_false(there(scratch, "step-1"));
    assert_int_equal(qn_folder_commit(&folder), QN_OK);
    assert_true(there(scratch, "step-1/weights") && there(scratch, "step-1/deeper/more"));
    assert_int_equal(entries(scratch), 1);
}

static void an_older_folder_stays(void **state)
{
    struct scratch *scratch = *state;
    struct qn_folder folder = {0};
    save(scratch, "step-1", "old");
    assert_int_equal(qn_folder_create(&folder, scratch->folder, "step-1", &scratch->log), QN_OK);
    fill(&folder, "new");
    assert_int_equal(qn_folder_commit(&folder), QN_ERR_IO);
    scratch_said(scratch, "step-1", "cannot rename to");
    assert_true(there(scratch, "step-1/old"));
    assert_int_equal(entries(scratch), 1);
}

static void a_discarded_folder_leaves_nothing(void **state)
{
    struct scratch *scratch = *state;
    struct qn_folder folder = {0};
    save(scratch, "step-1", "old");
    assert_int_equal(qn_folder_create(&folder, scratch->folder, "step-1", &scratch->log), QN_OK);
    fill(&folder, "new");
    qn_folder_discard(&folder);
    qn_folder_discard(&folder);
    assert_true(there(scratch, "step-1/old"));
    assert_int_equal(entries(scratch), 1);
}

static void a_file_in_the_way_stays(void **state)
{
    struct scratch *scratch = *state;
    struct qn_folder folder = {0};
    scratch_put(scratch, "step-1", "x", 1);
    assert_int_equal(qn_folder_create(&folder, scratch->folder, "step-1", &scratch->log), QN_OK);
    assert_int_equal(qn_folder_commit(&folder), QN_ERR_IO);
    scratch_said(scratch, "step-1", "cannot rename to");
    assert_int_equal(entries(scratch), 1);
    assert_int_equal(qn_folder_create(&folder, "/none/such", "a", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such/a", "No such file");
}

static void folders_above_are_made(void **state)
{
    struct scratch *scratch = *state;
    assert_int_equal(qn_folder_make(scratch_path(scratch, "a/b//c"), &scratch->log), QN_OK);
    assert_int_equal(qn_folder_make(scratch_path(scratch, "a/b/c/"), &scratch->log), QN_OK);
    assert_true(there(scratch, "a/b/c"));
    scratch_put(scratch, "file", "x", 1);
    assert_int_equal(qn_folder_make(scratch_path(scratch, "file"), &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/file", "File exists");
    assert_int_equal(qn_folder_make(scratch_path(scratch, "file/a"), &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/file/a", "Not a directory");
}

/* Where even root may make none; the folder that cannot be made is not the one that is missing. */
static void the_true_reason_is_said(void **state)
{
    struct scratch *scratch = *state;
    static const char *const paths[] = {"/sys/quern", "/sys/quern/a/b"};
    if (access("/sys/kernel", F_OK) != 0) /* not mounted */
        skip();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qn_folder_make(paths[i], &scratch->log), QN_ERR_IO);
        assert_null(strstr(scratch->heard, "No such file"));
        scratch_said(scratch, paths[i], "cannot make the folder: ");
    }
}

static void the_link_is_replaced(void **state)
{
    struct scratch *scratch = *state;
    const char *targets[] = {"step-1", "step-2", "step-2"};
    for (int i = 0; i < 3; i++) {
        char target[64] = "";
        assert_int_equal(qn_link_replace(scratch->folder, "last", targets[i], &scratch->log),
                         QN_OK);
        assert_int_equal(readlink(scratch_path(scratch, "last"), target, sizeof target - 1), 6);
        assert_string_equal(target, targets[i]);
    }
    assert_int_equal(entries(scratch), 1);
    scratch_put(scratch, "file", "x", 1);
    assert_int_equal(qn_link_replace(scratch->folder, "file", "a", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/file", "in the way");
    assert_int_equal(qn_link_replace("/none/such", "last", "a", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such/last", "No such file");
}

static void removal_follows_no_link(void **state)
{
    struct scratch *scratch = *state;
    save(scratch, "kept", "file");
    save(scratch, "gone", "file");
    char link[768], target[512];
    snprintf(link, sizeof link, "%s/gone/link", scratch->folder);
    snprintf(target, sizeof target, "%s/kept", scratch->folder);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(qn_tree_remove(scratch_path(scratch, "gone"), &scratch->log), QN_OK);
    assert_int_equal(qn_tree_remove(scratch_path(scratch, "gone"), &scratch->log), QN_OK);
    assert_false(there(scratch, "gone"));
    assert_true(there(scratch, "kept/file"));
}

/* A writer in another process that is killed while it holds a folder and a file. */
static void leave_things_behind(struct scratch *scratch)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t writer = fork();
    if (writer == 0) {
        struct qn_folder folder = {0};
        struct qn_file file = {0};
        qn_folder_create(&folder, scratch->folder, "step-9", NULL);
        fill(&folder, "half");
        qn_file_create(&file, scratch_path(scratch, "table"), NULL);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    int64_t count;
    assert_int_equal(qn_leftovers_remove(scratch->folder, &count, &scratch->log), QN_OK);
    assert_int_equal(count, 0);
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    close(ready[0]);
    close(ready[1]);
}

static qn_status count_one(void *user, const char *path, const struct qn_log *log)
{
    (void)log;
    assert_true(qn_path_is_temp(qn_path_name(path)));
    ++*(int *)user;
    return QN_OK;
}

static void leftovers_of_the_killed_are_removed(void **state)
{
    struct scratch *scratch = *state;
    int64_t count;
    int found = 0;
    save(scratch, "step-1", "old");
    scratch_put(scratch, ".hidden", "x", 1);
    leave_things_behind(scratch);
    assert_int_equal(symlink("step-9", scratch_path(scratch, ".last.tmp-1-0")), 0);
    struct qn_folder ours = {0};
    assert_int_equal(qn_folder_create(&ours, scratch->folder, "step-9", &scratch->log), QN_OK);
    fill(&ours, "whole");
    assert_int_equal(qn_leftovers_each(scratch->folder, count_one, &found, &scratch->log), QN_OK);
    assert_int_equal(found, 3);
    assert_int_equal(qn_leftovers_remove(scratch->folder, &count, &scratch->log), QN_OK);
    assert_int_equal(count, 3);
    assert_int_equal(qn_folder_commit(&ours), QN_OK);
    assert_true(there(scratch, "step-9/whole") && there(scratch, "step-1/old"));
    assert_int_equal(entries(scratch), 3);
    assert_int_equal(qn_leftovers_remove("/none/such", NULL, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such", "cannot list");
}

static void remove_others(struct scratch *scratch, const char *name)
{
    DIR *folder = opendir(scratch->folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, "step-", 5) == 0 && strcmp(entry->d_name, name) != 0)
            qn_tree_remove(scratch_path(scratch, entry->d_name), NULL);
    closedir(folder);
}

/* Saves folders, always with the same number in both files, and removes those before them. */
static void save_for_ever(struct scratch *scratch, int number)
{
    char text[32], name[32];
    snprintf(name, sizeof name, "step-%d", number);
    remove_others(scratch, name);
    for (;;) {
        struct qn_folder folder = {0};
        int length = snprintf(text, sizeof text, "%d", ++number);
        snprintf(name, sizeof name, "step-%d", number);
        qn_folder_create(&folder, scratch->folder, name, NULL);
        for (int i = 0; i < 2; i++) {
            char *path = qn_path_join(folder.temp, i ? "b" : "a");
            qn_file_write(path, text, (size_t)length, NULL);
            free(path);
        }
        if (qn_folder_commit(&folder) != QN_OK ||
            qn_link_replace(scratch->folder, "last", name, NULL) != QN_OK)
            _exit(1);
        remove_others(scratch, name);
    }
}

/* Gives the number in the folder that the link points to. */
static int read_last(struct scratch *scratch)
{
    char *text[2];
    size_t size;
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_path(scratch, i ? "last/b" : "last/a");
        assert_int_equal(qn_file_read(path, 32, &text[i], &size, &scratch->log), QN_OK);
    }
    assert_string_equal(text[0], text[1]);
    int number = atoi(text[0]);
    free(text[0]);
    free(text[1]);
    return number;
}

/* The first writer is left alone until there is something to read, for a minute at most. */
static void wait_for_last(struct scratch *scratch)
{
    enum { MILLISECOND = 1000, MOST_WAITS = 60000 };
    for (int i = 0; i < MOST_WAITS && access(scratch_path(scratch, "last/b"), F_OK) != 0; i++)
        usleep(MILLISECOND);
}

static void killed_at_any_moment_the_last_is_whole(void **state)
{
    struct scratch *scratch = *state;
    int number = 0;
    for (int i = 0; i < 40; i++) {
        pid_t writer = fork();
        if (writer == 0)
            save_for_ever(scratch, number);
        int status;
        if (i == 0)
            wait_for_last(scratch);
        usleep((useconds_t)(500 + i * 7919 % 9000));
        kill(writer, SIGKILL);
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(qn_leftovers_remove(scratch->folder, NULL, &scratch->log), QN_OK);
        int now = read_last(scratch);
        assert_true(now >= number);
        number = now;
        assert_true(entries(scratch) <= 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(a_folder_appears_whole),
        WITH_SCRATCH(an_older_folder_stays),
        WITH_SCRATCH(a_discarded_folder_leaves_nothing),
        WITH_SCRATCH(a_file_in_the_way_stays),
        WITH_SCRATCH(folders_above_are_made),
        WITH_SCRATCH(the_true_reason_is_said),
        WITH_SCRATCH(the_link_is_replaced),
        WITH_SCRATCH(removal_follows_no_link),
        WITH_SCRATCH(leftovers_of_the_killed_are_removed),
        WITH_SCRATCH(killed_at_any_moment_the_last_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
