/* SPDX-License-Identifier: MIT
 *
 * Texts that go on token by token, with a cache: the same logits as of whole rows without one,
 * however the tokens come, within the bytes of the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "counted.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 30, TOKENS = 41, CHUNK = 8, MOST = 1 << 14 };

/* Relative distance in the Euclidean norm. */
static const double NEAR = 1e-4;

struct network {
    const char *model;
    qn_dtype storage;
    qn_model_option options[8];
    int n_options;
};
static const struct network networks[] = {
    {"gpt", QN_F32, {{"layers", "2"}, {"heads", "3"}, {"width", "48"}}, 3},
    {"gpt", QN_F32, {{"layers", "1"}, {"heads", "1"}, {"width", "24"}, {"tied", "0"}}, 4},
    {"gpt", QN_BF16, {{"layers", "2"}, {"heads", "3"}, {"width", "48"}}, 3},
    {"llama",
     QN_F32,
     {{"layers", "3"}, {"heads", "4"}, {"kv_heads", "4"}, {"width", "32"}, {"inner", "40"}},
     5},
    {"llama",
     QN_F32,
     {{"layers", "2"}, {"heads", "6"}, {"kv_heads", "2"}, {"width", "96"}, {"inner", "40"}},
     5},
    {"llama",
     QN_F32,
     {{"layers", "2"},
      {"heads", "4"},
      {"kv_heads", "2"},
      {"width", "32"},
      {"inner", "40"},
      {"factor", "8"},
      {"original_positions", "20"}},
     7},
    {"llama",
     QN_BF16,
     {{"layers", "2"}, {"heads", "4"}, {"kv_heads", "1"}, {"width", "32"}, {"inner", "40"}},
     5},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

static const qn_model_data whole = {.channels = 1, .height = 1, .width = LENGTH, .tokens = TOKENS};

/* --- without a cache --- */

struct text {
    int32_t tokens[LENGTH];
    float logits[LENGTH][TOKENS]; /* of the token after each */
};

static qn_status fetch_text(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct text *text = user;
    (void)first;
    assert_int_equal(count, 1);
    if (strcmp(input, "tokens") == 0)
        memcpy(rows, text->tokens, sizeof text->tokens);
    return QN_OK;
}

static qn_status take_logits(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    struct text *text = user;
    (void)first;
    (void)count;
    if (strcmp(name, "logits") == 0)
        memcpy(text->logits, rows, sizeof text->logits);
    return QN_OK;
}

/* Weights that matter: those of a new network leave all tokens equally probable. */
static void draw_weights(qn_trainer *trainer)
{
    static float values[MOST];
    qn_shape shape;
    const char *name;
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, &shape)); i++) {
        int64_t count = 1;
        for (int d = 0; d < shape.rank; d++)
            count *= shape.dim[d];
        assert_true(count <= MOST);
        for (int64_t k = 0; k < count; k++)
            values[k] = (float)((shape.rank > 1 ? 0 : 1) +
                                0.3 * qn_random_normal(5, (uint64_t)i, (uint64_t)k));
        assert_int_equal(qn_trainer_write(trainer, name, values, count), QN_OK);
    }
}

static struct test_run open_whole(const struct network *network)
{
    const qn_graph_params how = {.log = test_log, .parameter_storage = network->storage};
    const qn_plan_params params = {.budget = 16 << 20, .batch = {1}};
    qn_graph *graph;
    struct test_run run;
    assert_int_equal(qn_graph_create(&graph, &how), QN_OK);
    assert_int_equal(
        qn_model_build(graph, network->model, &whole, network->options, network->n_options), QN_OK);
    const qn_run evaluation = {.graph = graph, .what = QN_RUN_EVALUATE};
    assert_int_equal(qn_plan_create_runs(&run.plan, &(qn_run_list){&evaluation, 1, NULL, 0},
                                         qn_device_facts(device), &params, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, NULL), QN_OK);
    qn_graph_destroy(&graph);
    draw_weights(run.trainer);
    return run;
}

static void draw_text(struct text *text, uint64_t seed)
{
    for (int i = 0; i < LENGTH; i++)
        text->tokens[i] = (int32_t)(qn_random_bits(seed, 0, (uint64_t)i) % TOKENS);
}

static void read_whole(const struct network *network, struct text *text)
{
    struct test_run run = open_whole(network);
    assert_int_equal(qn_trainer_evaluate(run.trainer, 1, fetch_text, take_logits, text), QN_OK);
    test_close(&run);
}

/* --- with a cache --- */

static qn_generator *open_generator(const struct network *network, const qn_plan_params *plan,
                                    int64_t *smallest)
{
    const qn_generator_params params = {.log = test_log,
                                        .model = network->model,
                                        .data = &whole,
                                        .options = network->options,
                                        .n_options = network->n_options,
                                        .storage = network->storage,
                                        .plan = plan};
    qn_generator *generator;
    if (largest_since)
        largest_since();
    const qn_status status = qn_generator_open(&generator, device, &params, smallest);
    assert_int_equal(status, generator ? QN_OK : QN_ERR_BUDGET);
    if (generator)
        draw_weights(qn_generator_trainer(generator));
    return generator;
}

static void assert_near(const struct network *network, const float *got, const float *want, int at)
{
    const double apart = test_distance(got, want, TOKENS);
    if (!(apart <= NEAR))
        fail_msg("%s %d: after token %d: %g", network->model, (int)(network - networks), at, apart);
}

/* A prompt of so many tokens, then one after another. */
static void follow(const struct network *network, qn_generator *generator, const struct text *text,
                   int prompt)
{
    float logits[TOKENS];
    assert_int_equal(qn_generator_clear(generator), QN_OK);
    assert_int_equal(qn_generator_feed(generator, text->tokens, prompt, logits), QN_OK);
    for (int i = prompt;; i++) {
        assert_int_equal(qn_generator_length(generator), i);
        assert_near(network, logits, text->logits[i - 1], i - 1);
        if (i == LENGTH)
            break;
        assert_int_equal(qn_generator_feed(generator, text->tokens + i, 1, logits), QN_OK);
    }
}

static void logits_are_those_of_whole_rows(void **state)
{
    (void)state;
    static const int prompts[] = {
        1, 2, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 2, 2 * CHUNK + 1, LENGTH - 1, LENGTH};
    const qn_plan_params plan = {.budget = 16 << 20, .batch = {CHUNK}};
    static struct text text;
    for (const struct network *network = networks; network < networks + N_NETWORKS; network++) {
        draw_text(&text, 1);
        read_whole(network, &text);
        qn_generator *generator = open_generator(network, &plan, NULL);
        for (size_t p = 0; p < sizeof prompts / sizeof *prompts; p++)
            follow(network, generator, &text, prompts[p]);
        qn_generator_close(&generator);
    }
}

/* Prompts in several parts, of which the second one begins where the first ended. */
static void a_text_comes_in_parts(void **state)
{
    (void)state;
    const struct network *network = &networks[4];
    const qn_plan_params plan = {.budget = 16 << 20, .batch = {CHUNK}};
    static struct text text;
    float logits[TOKENS];
    draw_text(&text, 2);
    read_whole(network, &text);
    qn_generator *generator = open_generator(network, &plan, NULL);
    for (int first = 0, count = 1; first < LENGTH; first += count, count = count % 11 + 3) {
        count = count < LENGTH - first ? count : LENGTH - first;
        assert_int_equal(qn_generator_feed(generator, text.tokens + first, count, logits), QN_OK);
        assert_near(network, logits, text.logits[first + count - 1], first + count - 1);
    }
    qn_generator_close(&generator);
}

/* How much larger the largest logit is than the second. */
static float lead_of(const float *logits, int best)
{
    float lead = INFINITY;
    for (int i = 0; i < TOKENS; i++)
        if (i != best && logits[best] - logits[i] < lead)
            lead = logits[best] - logits[i];
    return lead;
}

/* Each token is the best one after those before it: with whole rows, the same. */
static void greedy_tokens_are_the_same(void **state)
{
    (void)state;
    enum { PROMPT = 3 };
    const qn_plan_params plan = {.budget = 16 << 20};
    for (const struct network *network = networks; network < networks + N_NETWORKS; network++) {
        static struct text text;
        float logits[TOKENS];
        int32_t token;
        draw_text(&text, 3);
        qn_generator *generator = open_generator(network, &plan, NULL);
        struct test_run run = open_whole(network);
        assert_int_equal(qn_generator_feed(generator, text.tokens, PROMPT, logits), QN_OK);
        for (int i = PROMPT; i < LENGTH; i++) {
            assert_int_equal(qn_sample(&token, logits, TOKENS, NULL, 0), QN_OK);
            assert_int_equal(qn_trainer_evaluate(run.trainer, 1, fetch_text, take_logits, &text),
                             QN_OK);
            int32_t want;
            assert_int_equal(qn_sample(&want, text.logits[i - 1], TOKENS, NULL, 0), QN_OK);
            if (lead_of(text.logits[i - 1], want) > 1e-3f)
                assert_int_equal(token, want);
            text.tokens[i] = want;
            assert_int_equal(qn_generator_feed(generator, &want, 1, logits), QN_OK);
        }
        test_close(&run);
        qn_generator_close(&generator);
    }
}

static void what_has_no_room_changes_nothing(void **state)
{
    (void)state;
    static struct text text;
    float logits[TOKENS] = {7};
    draw_text(&text, 4);
    qn_generator *generator = open_generator(&networks[0], NULL, NULL);
    assert_int_equal(qn_generator_room(generator), LENGTH);
    assert_int_equal(qn_generator_feed(generator, text.tokens, 0, logits), QN_ERR_ARGUMENT);
    const int32_t wrong[] = {1, TOKENS}, negative = -1;
    assert_int_equal(qn_generator_feed(generator, wrong, 2, logits), QN_ERR_ARGUMENT);
    assert_int_equal(qn_generator_feed(generator, &negative, 1, logits), QN_ERR_ARGUMENT);
    assert_int_equal(qn_generator_feed(generator, text.tokens, LENGTH - 1, logits), QN_OK);
    assert_int_equal(qn_generator_feed(generator, text.tokens, 2, logits), QN_ERR_ARGUMENT);
    assert_int_equal(qn_generator_length(generator), LENGTH - 1);
    assert_int_equal(qn_generator_feed(generator, text.tokens, 1, logits), QN_OK);
    assert_int_equal(qn_generator_feed(generator, text.tokens, 1, logits), QN_ERR_ARGUMENT);
    assert_int_equal(qn_generator_length(generator), LENGTH);
    qn_generator_close(&generator);
}

/* With one byte less there is no plan; with all of them the logits are the same. */
static void the_smallest_budget_is_enough(void **state)
{
    (void)state;
    static struct text text;
    for (const struct network *network = networks; network < networks + N_NETWORKS; network++) {
        qn_plan_params plan = {.budget = 1, .batch = {CHUNK}};
        int64_t smallest;
        draw_text(&text, 5);
        read_whole(network, &text);
        assert_null(open_generator(network, &plan, &smallest));
        plan.budget = smallest - 1;
        assert_null(open_generator(network, &plan, NULL));
        plan.budget = smallest;
        qn_generator *generator = open_generator(network, &plan, NULL);
        assert_non_null(generator);
        const qn_trainer *trainer = qn_generator_trainer(generator);
        const qn_plan_info *info = qn_plan_facts(qn_trainer_plan(trainer));
        print_message("  %s: %" PRId64 " bytes, caches %" PRId64 ", parts of %" PRId64 "\n",
                      network->model, smallest, info->bytes_by_tag[QN_TAG_CACHES],
                      info->micro_batch);
        assert_int_equal(info->peak_bytes, smallest);
        assert_int_equal(qn_trainer_bytes(trainer), smallest);
        assert_int_equal(info->bytes_by_tag[QN_TAG_GRADIENTS], 0);
        assert_int_equal(info->bytes_by_tag[QN_TAG_OPTIMIZER], 0);
        if (largest_since)
            assert_int_equal(largest_since(), smallest);
        follow(network, generator, &text, 2 * CHUNK + 3);
        qn_generator_close(&generator);
    }
}

/* The prompt's part is as long as the budget allows, and only that. */
static void parts_follow_the_budget(void **state)
{
    (void)state;
    qn_plan_params plan = {.budget = 1, .batch = {CHUNK}};
    int64_t smallest, parts[2];
    assert_null(open_generator(&networks[4], &plan, &smallest));
    const int64_t budgets[] = {smallest, 16 << 20};
    for (int i = 0; i < 2; i++) {
        plan.budget = budgets[i];
        qn_generator *generator = open_generator(&networks[4], &plan, NULL);
        parts[i] = qn_plan_facts(qn_trainer_plan(qn_generator_trainer(generator)))->micro_batch;
        qn_generator_close(&generator);
    }
    assert_true(parts[0] < parts[1]);
    assert_int_equal(parts[1], CHUNK);
}

static void other_models_continue_nothing(void **state)
{
    (void)state;
    const struct network bert = {.model = "bert", .options = {{"layers", "1"}}, .n_options = 1};
    const qn_generator_params params = {.model = bert.model, .data = &whole};
    qn_generator *generator;
    assert_int_equal(qn_generator_open(&generator, device, &params, NULL), QN_ERR_ARGUMENT);
    assert_null(generator);
    assert_non_null(strstr(qn_last_error(), "bert: continues no text"));
    qn_model_data data = whole;
    data.cache = LENGTH + 1;
    const qn_generator_params more = {.model = "gpt", .data = &data};
    assert_int_equal(qn_generator_open(&generator, device, &more, NULL), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "as many tokens as a text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_whole_rows),
        cmocka_unit_test(a_text_comes_in_parts),
        cmocka_unit_test(greedy_tokens_are_the_same),
        cmocka_unit_test(what_has_no_room_changes_nothing),
        cmocka_unit_test(the_smallest_budget_is_enough),
        cmocka_unit_test(parts_follow_the_budget),
        cmocka_unit_test(other_models_continue_nothing),
    };
    return cmocka_run_group_tests_name("generate", tests, open_counted, close_device);
}
