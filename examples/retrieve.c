/* SPDX-License-Identifier: MIT
 *
 * Contrastive training: two networks learn to find the right half of a picture by its left half,
 * among the right halves of all test pictures of Fashion-MNIST. What is given to them at a time are
 * 8 pairs; what they see of others is what the modes differ in.
 *
 *     retrieve whole|gradcache|accumulate|contaccum [BANK [EPOCHS [SEED]]]
 *
 * A bank of -N has no queries. QN_DATA_DIR names the folder of the pictures, else those of the
 * distribution's package are taken.
 */
#include <quern/quern.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO = 8, STEPS = 16, BATCH = MICRO * STEPS, CODE = 64 };
enum { HEIGHT = 28, WIDTH = 14 };

static const char *const modes[] = {"whole", "gradcache", "accumulate", "contaccum"};

struct choice {
    qn_contrastive_mode mode;
    int64_t bank, epochs, seed;
    bool no_queries;
};

struct program {
    struct choice choice;
    qn_dataset *whole[2], *left[2], *right[2], *pairs[2]; /* to train with, to test */
    qn_device *device;
    qn_contrastive *contrastive;
    qn_plan *plan;
    qn_trainer *trainer;
    float *codes[2]; /* of all test pictures: left halves, right halves */
    double ratio;    /* the largest, of the towers' gradient norms */
};

static void print_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "quern: %s\n", text);
}

static const qn_log to_stderr = {.fn = print_message};

/* --- data --- */

static qn_status open_pairs(struct program *p, int part)
{
    const qn_dataset_params all = {
        .log = to_stderr, .name = "fashion-mnist", .split = part ? QN_SPLIT_TEST : QN_SPLIT_TRAIN};
    qn_status status = qn_dataset_open(&p->whole[part], &all);
    qn_half_params half = {.log = to_stderr, .whole = p->whole[part]};
    if (status == QN_OK)
        status = qn_dataset_halve(&p->left[part], &half);
    half.right = true;
    if (status == QN_OK)
        status = qn_dataset_halve(&p->right[part], &half);
    const qn_pair_params pair = {
        .log = to_stderr, .queries = p->left[part], .passages = p->right[part]};
    return status == QN_OK ? qn_dataset_pair(&p->pairs[part], &pair) : status;
}

/* --- networks --- */

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *tower, const char *name,
                       int64_t in, int64_t out)
{
    char weight[64], bias[64];
    const qn_init init = qn_init_fan_in(in);
    snprintf(weight, sizeof weight, "%s.%s.weight", tower, name);
    snprintf(bias, sizeof bias, "%s.%s.bias", tower, name);
    return qn_linear(graph, x, qn_parameter(graph, weight, 2, (int64_t[]){out, in}, &init),
                     qn_parameter(graph, bias, 1, (int64_t[]){out}, &init));
}

/* Vectors of length 1, so that scores are cosines. */
static qn_tensor tower(qn_graph *graph, const char *name)
{
    static const float mean = 0.286F, deviation = 0.353F; /* of Fashion-MNIST's pixels */
    char images[64];
    snprintf(images, sizeof images, "%s.images", name);
    qn_tensor x = qn_input(graph, images, QN_U8, 4, (int64_t[]){QN_BATCH, 1, HEIGHT, WIDTH});
    x = qn_flatten(graph, qn_normalize(graph, x, &mean, &deviation));
    x = qn_relu(graph, dense(graph, x, name, "fc1", HEIGHT * WIDTH, 256));
    x = qn_relu(graph, dense(graph, x, name, "fc2", 256, 256));
    x = dense(graph, x, name, "fc3", 256, CODE);
    return qn_scale(graph, qn_rms_norm(graph, x, (qn_tensor){0}, NULL), 1 / sqrt(CODE));
}

static qn_status towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    (void)user;
    *queries = tower(graph, "query");
    *passages = tower(graph, "passage");
    return qn_graph_status(graph);
}

static qn_status open_training(struct program *p)
{
    const struct choice *choice = &p->choice;
    const qn_contrastive_params how = {.graph = {.log = to_stderr},
                                       .mode = choice->mode,
                                       .towers = towers,
                                       .temperature = 0.05,
                                       .bank = choice->bank,
                                       .no_query_bank = choice->no_queries};
    const qn_plan_params share = {.budget = 64 << 20,
                                  .batch = {BATCH},
                                  .micro_batch = choice->mode == QN_CONTRASTIVE_WHOLE ? 0 : MICRO,
                                  .norm_groups = "query.*,passage.*",
                                  .optimizer = {.name = "adamw"}};
    const qn_trainer_params trainer = {.seed = (uint64_t)choice->seed, .clip = 2};
    qn_status status = qn_device_open(&p->device, &(qn_device_params){.log = to_stderr});
    if (status == QN_OK)
        status = qn_contrastive_create(&p->contrastive, &how);
    if (status == QN_OK)
        status = qn_plan_create_runs(&p->plan, qn_contrastive_program(p->contrastive),
                                     qn_device_facts(p->device), &share, NULL);
    return status == QN_OK ? qn_trainer_open(&p->trainer, p->device, p->plan, &trainer) : status;
}

/* --- training --- */

static void note_norms(struct program *p)
{
    double norms[2];
    if (qn_trainer_grad_norms(p->trainer, norms, 2) == 2 && norms[1] / norms[0] > p->ratio)
        p->ratio = norms[1] / norms[0];
}

static qn_status train_on(struct program *p, qn_loader *loader, int64_t updates)
{
    const qn_lr_schedule schedule = {
        .kind = QN_LR_LINEAR, .lr = 0.001, .warmup = 0.05, .total = updates};
    qn_status status = QN_OK;
    for (int64_t u = 0; u < updates && status == QN_OK; u++) {
        qn_batch batch;
        qn_metrics last;
        status = qn_loader_next(loader, BATCH, &batch);
        const qn_cycle cycle = {.samples = BATCH,
                                .lr = qn_schedule_lr(&schedule, u),
                                .fetch = qn_batch_fetch,
                                .user = &batch};
        if (status == QN_OK)
            status = qn_contrastive_begin(p->contrastive, p->trainer);
        if (status == QN_OK)
            status = qn_trainer_step(p->trainer, &cycle, &last);
        if (status == QN_OK && last.valid)
            note_norms(p);
    }
    return status == QN_OK ? qn_trainer_finish(p->trainer, NULL) : status;
}

static qn_status train(struct program *p)
{
    const int64_t samples = qn_dataset_describe(p->pairs[0])->count;
    const qn_loader_params params = {
        .log = to_stderr, .seed = (uint64_t)p->choice.seed, .max_samples = BATCH};
    qn_loader *loader = NULL;
    qn_status status = qn_loader_open(&loader, p->pairs[0], &params);
    if (status == QN_OK)
        status = train_on(p, loader, p->choice.epochs * samples / BATCH);
    qn_loader_close(&loader);
    return status;
}

/* --- drift --- */

/* How far the bank's oldest entries are from what their pictures are now. */
static qn_status look_at_bank(struct program *p)
{
    const qn_drift_params params = {.samples = qn_dataset_gather, .user = p->pairs[0]};
    qn_drift drift;
    if (p->choice.bank == 0)
        return QN_OK;
    const qn_status status = qn_drift_measure(p->trainer, &params, &drift);
    if (status == QN_OK && drift.ages)
        printf("oldest entries of the bank: cosine %.4f with what they would be now\n",
               drift.oldest);
    return status;
}

/* --- search --- */

static qn_status keep_codes(void *user, const char *name, int64_t first, int64_t count,
                            const void *rows)
{
    struct program *p = user;
    float *codes = p->codes[strcmp(name, "passages") == 0];
    memcpy(codes + first * CODE, rows, (size_t)count * CODE * sizeof *codes);
    return QN_OK;
}

struct both {
    struct program *program;
    qn_loader *loader;
};

static qn_status fetch_test(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_loader_fetch(((struct both *)user)->loader, input, first, count, rows);
}

static qn_status keep_test(void *user, const char *name, int64_t first, int64_t count,
                           const void *rows)
{
    return keep_codes(((struct both *)user)->program, name, first, count, rows);
}

static qn_status encode_test(struct program *p, int64_t samples)
{
    const qn_loader_params params = {.log = to_stderr, .max_samples = 512, .sequential = true};
    struct both both = {.program = p};
    qn_status status = qn_loader_open(&both.loader, p->pairs[1], &params);
    if (status == QN_OK)
        status =
            qn_trainer_evaluate_run(p->trainer, "encode", samples, fetch_test, keep_test, &both);
    qn_loader_close(&both.loader);
    return status;
}

static qn_status search(struct program *p)
{
    const int64_t samples = qn_dataset_describe(p->pairs[1])->count;
    qn_retrieval found;
    for (int i = 0; i < 2; i++)
        if (!(p->codes[i] = malloc((size_t)samples * CODE * sizeof **p->codes)))
            return QN_ERR_MEMORY;
    const qn_retrieval_params params = {.log = to_stderr,
                                        .n_queries = samples,
                                        .n_candidates = samples,
                                        .dim = CODE,
                                        .queries = p->codes[0],
                                        .candidates = p->codes[1]};
    qn_status status = encode_test(p, samples);
    if (status == QN_OK)
        status = qn_retrieval_measure(&found, &params, NULL, NULL);
    if (status == QN_OK)
        printf("%s, bank %lld%s, seed %lld: MRR %.1f %%, recall at 1 %.1f %%, at 10 %.1f %%; "
               "largest ratio of gradient norms %.1f; %lld bytes\n",
               modes[p->choice.mode], (long long)p->choice.bank,
               p->choice.no_queries ? " without queries" : "", (long long)p->choice.seed,
               100 * found.mrr, 100 * found.recall_1, 100 * found.recall_10, p->ratio,
               (long long)qn_trainer_bytes(p->trainer));
    return status;
}

/* --- all of it --- */

static int parse(int argc, char **argv, struct choice *choice)
{
    *choice = (struct choice){.epochs = 5, .seed = 1};
    if (argc < 2 || argc > 5)
        return 0;
    while (choice->mode < 4 && strcmp(argv[1], modes[choice->mode]) != 0)
        choice->mode++;
    if (argc > 2)
        choice->bank = llabs(atoll(argv[2]));
    choice->no_queries = argc > 2 && atoll(argv[2]) < 0;
    if (argc > 3)
        choice->epochs = atoll(argv[3]);
    if (argc > 4)
        choice->seed = atoll(argv[4]);
    return choice->mode < 4 && choice->epochs > 0;
}

static void close_program(struct program *p)
{
    qn_trainer_close(&p->trainer);
    qn_plan_destroy(&p->plan);
    qn_contrastive_destroy(&p->contrastive);
    qn_device_close(&p->device);
    for (int i = 0; i < 2; i++) {
        free(p->codes[i]);
        qn_dataset_close(&p->pairs[i]);
        qn_dataset_close(&p->left[i]);
        qn_dataset_close(&p->right[i]);
        qn_dataset_close(&p->whole[i]);
    }
}

int main(int argc, char **argv)
{
    struct program p = {0};
    if (!parse(argc, argv, &p.choice)) {
        fprintf(stderr, "retrieve whole|gradcache|accumulate|contaccum [BANK [EPOCHS [SEED]]]\n");
        return 2;
    }
    qn_status status = open_pairs(&p, 0);
    if (status == QN_OK)
        status = open_pairs(&p, 1);
    if (status == QN_OK)
        status = open_training(&p);
    if (status == QN_OK)
        status = train(&p);
    if (status == QN_OK)
        status = look_at_bank(&p);
    if (status == QN_OK)
        status = search(&p);
    close_program(&p);
    if (status != QN_OK)
        fprintf(stderr, "retrieve: %s\n", qn_status_text(status));
    return status != QN_OK;
}
