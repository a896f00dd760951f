/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char key[] = "format 1\nprogram relu\n", other[] = "format 1\nprogram gelu\n";
static char folder[FOLDER_BYTES];

static int setup(void **state)
{
    (void)state;
    make_folder(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

static bool loads(int cache, const char *text, const char *bytes)
{
    struct qn_binary binary;
    if (!qn_cache_load(cache, text, strlen(text), &binary))
        return false;
    bool same = binary.size == strlen(bytes) && memcmp(binary.bytes, bytes, binary.size) == 0;
    free(binary.bytes);
    return same;
}

static void store(int cache, const char *text, const char *bytes)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", bytes);
    const struct qn_binary binary = {(unsigned char *)copy, strlen(copy)};
    qn_cache_store(cache, text, strlen(text), &binary);
}

static void gives_back_what_was_stored(void **state)
{
    (void)state;
    int cache = qn_cache_open(folder, NULL);
    assert_true(cache >= 0);
    assert_false(loads(cache, key, "binary"));
    store(cache, key, "binary");
    assert_true(loads(cache, key, "binary"));
    assert_false(loads(cache, other, "binary"));
    store(cache, key, "another");
    assert_true(loads(cache, key, "another"));
    char path[512];
    only_file(folder, path);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    qn_cache_close(cache);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void refuses_any_changed_byte(void **state)
{
    (void)state;
    int cache = qn_cache_open(folder, NULL);
    store(cache, key, "binary");
    char path[512];
    struct stat info;
    only_file(folder, path);
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < info.st_size; at++) {
        change_byte(path, at);
        assert_false(loads(cache, key, "binary"));
        change_byte(path, at);
    }
    assert_true(loads(cache, key, "binary"));
    qn_cache_close(cache);
}

static void refuses_any_other_length(void **state)
{
    (void)state;
    int cache = qn_cache_open(folder, NULL);
    char path[512];
    struct stat info;
    store(cache, key, "binary");
    only_file(folder, path);
    assert_int_equal(stat(path, &info), 0);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    fputc('x', file);
    fclose(file);
    assert_false(loads(cache, key, "binary"));
    for (long size = info.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        assert_false(loads(cache, key, "binary"));
    }
    store(cache, key, "binary");
    assert_true(loads(cache, key, "binary"));
    qn_cache_close(cache);
}

static void refuses_what_others_may_write(void **state)
{
    (void)state;
    int cache = qn_cache_open(folder, NULL);
    char path[512];
    store(cache, key, "binary");
    only_file(folder, path);
    chmod(path, 0666);
    assert_false(loads(cache, key, "binary"));
    qn_cache_close(cache);

    static struct kept kept;
    const qn_log log = kept_log(&kept);
    chmod(folder, 0777);
    assert_int_equal(qn_cache_open(folder, &log), -1);
    assert_non_null(strstr(kept.text, "other users may write to it"));
    chmod(folder, 0700);
}

static void refuses_links(void **state)
{
    (void)state;
    int cache = qn_cache_open(folder, NULL);
    char path[512], moved[] = "moved";
    store(cache, key, "binary");
    only_file(folder, path);
    assert_int_equal(renameat(AT_FDCWD, path, cache, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_false(loads(cache, key, "binary"));
    store(cache, key, "binary");
    assert_true(loads(cache, key, "binary"));
    qn_cache_close(cache);
}

static void put(int cache, const char *name)
{
    int file = openat(cache, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, "half", 4), 4);
    close(file);
}

static bool there(int cache, const char *name)
{
    struct stat info;
    return fstatat(cache, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What a writer that was killed left is removed; what one is writing, or is not ours, stays. */
static void removes_what_no_writer_holds(void **state)
{
    (void)state;
    static const char *const others[] = {"tmp.txt", "tmp.1", "tmp.1.x", "tmp.1.2.bin", "atmp.1.2"};
    enum { OTHERS = sizeof others / sizeof *others };
    int cache = qn_cache_open(folder, NULL);
    for (int i = 0; i < OTHERS; i++)
        put(cache, others[i]);
    put(cache, "tmp.1.0");
    put(cache, "tmp.4194303.7f12ab34");
    put(cache, "tmp.2.0");
    assert_int_equal(symlinkat("tmp.txt", cache, "tmp.3.0"), 0);
    assert_int_equal(mkdirat(cache, "tmp.4.0", 0700), 0);
    int held = openat(cache, "tmp.2.0", O_WRONLY);
    assert_int_equal(flock(held, LOCK_EX), 0);
    int again = qn_cache_open(folder, NULL);
    assert_false(there(cache, "tmp.1.0") || there(cache, "tmp.4194303.7f12ab34"));
    assert_true(there(cache, "tmp.2.0") && there(cache, "tmp.3.0") && there(cache, "tmp.4.0"));
    for (int i = 0; i < OTHERS; i++)
        assert_true(there(cache, others[i]));
    close(held);
    qn_cache_close(again);
    again = qn_cache_open(folder, NULL);
    assert_false(there(cache, "tmp.2.0"));
    store(again, key, "binary");
    assert_true(loads(again, key, "binary"));
    qn_cache_close(again);
    qn_cache_close(cache);
}

/* A writer that stands in the middle of a file, until it is killed. */
static void keeps_what_another_process_writes(void **state)
{
    (void)state;
    enum { BYTES = 1 << 25 };
    char path[512];
    pid_t writer = fork();
    if (writer == 0) {
        const struct qn_binary binary = {calloc(BYTES, 1), BYTES};
        int cache = qn_cache_open(folder, NULL);
        for (;;)
            qn_cache_store(cache, key, strlen(key), &binary);
    }
    bool seen = false;
    for (int i = 0; i < 2000 && !seen; i++) {
        int cache = qn_cache_open(folder, NULL);
        snprintf(path, sizeof path, "tmp.%ld.0", (long)writer);
        seen = there(cache, path);
        qn_cache_close(cache);
        usleep(1000);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(seen);
    qn_cache_close(qn_cache_open(folder, NULL));
    int cache = qn_cache_open(folder, NULL);
    assert_false(there(cache, path));
    qn_cache_close(cache);
}

static void makes_its_folder_private(void **state)
{
    (void)state;
    char path[FOLDER_BYTES + sizeof "/a/b"];
    struct stat info;
    snprintf(path, sizeof path, "%s/a/b", folder);
    int cache = qn_cache_open(path, NULL);
    assert_true(cache >= 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    qn_cache_close(cache);
    rmdir(path);
    snprintf(path, sizeof path, "%s/a", folder);
    rmdir(path);
}

static void takes_the_environment(void **state)
{
    (void)state;
    const char *before = getenv("QN_CACHE_DIR");
    char *old = before ? strdup(before) : NULL;
    setenv("QN_CACHE_DIR", "", 1);
    assert_int_equal(qn_cache_open(NULL, NULL), -1);
    setenv("QN_CACHE_DIR", folder, 1);
    int cache = qn_cache_open(NULL, NULL);
    assert_true(cache >= 0);
    store(cache, key, "binary");
    qn_cache_close(cache);
    char path[512];
    only_file(folder, path);
    unsetenv("QN_CACHE_DIR");
    if (old)
        setenv("QN_CACHE_DIR", old, 1);
    free(old);
    assert_int_equal(qn_cache_open("", NULL), -1);
    assert_int_equal(qn_cache_open("/dev/null/none", NULL), -1);
    assert_false(loads(-1, key, "binary"));
    store(-1, key, "binary");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_back_what_was_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_any_changed_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_any_other_length, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_others_may_write, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_links, setup, teardown),
        cmocka_unit_test_setup_teardown(removes_what_no_writer_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_what_another_process_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(makes_its_folder_private, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_the_environment, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
