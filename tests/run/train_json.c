/* SPDX-License-Identifier: MIT
 *
 * train.json of a checkpoint that somebody else wrote.
 */
#include "run/checkpoint.h"

#include "io/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char message[512];

static void keep_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(message, sizeof message, "%s", text);
}

/* The seed of the fuzz program with `from` replaced by `to`. */
static qn_status parse(const char *from, const char *to)
{
    struct qn_checkpoint checkpoint = {.log = {keep_message, NULL, QN_LOG_ERROR}};
    char *seed, text[8192];
    size_t size;
    assert_int_equal(qn_file_read(TRAIN_SEED, sizeof text / 2, &seed, &size, NULL), QN_OK);
    const char *at = strstr(seed, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - seed), seed, to, at + strlen(from));
    free(seed);
    *message = 0;
    const qn_status status = qn_train_parse(&checkpoint, "train.json", text);
    qn_arena_free(&checkpoint.arena);
    return status;
}

static void takes_the_seed(void **state)
{
    (void)state;
    assert_int_equal(parse("{", "{"), QN_OK);
    assert_string_equal(message, "");
}

static void refuses_what_is_out_of_range(void **state)
{
    static const struct {
        const char *from, *to, *key;
    } cases[] = {
        {"\"loss_scale\": 1", "\"loss_scale\": 0", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": -8", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": 1e300", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": 1e999", "loss_scale"},
        {"\"applied\": 1", "\"applied\": 4294967296", "update"},
        {"\"position\": 24", "\"position\": -1", "update"},
        {"3,\n", "-3,\n", "ring_rows"},
        {"\"optimizer\": \"", "\"optimizer\": \"no ", "optimizer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "train.json: %s: is missing or not of its type",
                 cases[i].key);
        assert_int_equal(parse(cases[i].from, cases[i].to), QN_ERR_FORMAT);
        assert_string_equal(message, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_seed),
        cmocka_unit_test(refuses_what_is_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
