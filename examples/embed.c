/* SPDX-License-Identifier: MIT
 *
 * Training inside a program that already uses OpenCL: on its own context, device and queue, with
 * its own data in its own buffer, in its own loop, and with a share of the device's memory that it
 * grants. A small network learns to tell two interleaved spirals apart.
 *
 *     cc embed.c $(pkg-config --cflags --libs quern OpenCL) -lm -o embed
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <quern/quern.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 512, BATCH = 128, EPOCHS = 150, HIDDEN = 48 };

/* What the program has of its own. */
struct program {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_mem points; /* POINTS rows of x and y, on the device */
    cl_int label[POINTS];
    int order[POINTS];
    int first;           /* of the cycle that runs, in the order */
    qn_metric *accuracy; /* of the evaluation */
};

static void print_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "quern: %s\n", text);
}

/* The first device of the first platform that has one. */
static int find_device(cl_device_id *device)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < count && i < 16; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, device, NULL) == CL_SUCCESS)
            return 1;
    return 0;
}

/* Two spirals, one for each label. */
static void draw_points(struct program *p, float (*points)[2])
{
    for (int i = 0; i < POINTS; i++) {
        double turn = 2.5 * 3.14159265 * sqrt((i / 2 + 1.0) / (POINTS / 2));
        p->label[i] = i % 2;
        p->order[i] = i;
        points[i][0] = (float)(cos(turn + 3.14159265 * p->label[i]) * turn / 8);
        points[i][1] = (float)(sin(turn + 3.14159265 * p->label[i]) * turn / 8);
    }
}

static int open_program(struct program *p)
{
    static float points[POINTS][2];
    cl_int error;
    if (!find_device(&p->device))
        return 0;
    p->context = clCreateContext(NULL, 1, &p->device, NULL, NULL, &error);
    if (p->context)
        p->queue = clCreateCommandQueue(p->context, p->device, 0, &error);
    draw_points(p, points);
    if (p->queue)
        p->points = clCreateBuffer(p->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                   sizeof points, points, &error);
    return p->points != NULL;
}

static void close_program(struct program *p)
{
    if (p->points)
        clReleaseMemObject(p->points);
    if (p->queue)
        clReleaseCommandQueue(p->queue);
    if (p->context)
        clReleaseContext(p->context);
}

static void shuffle(struct program *p)
{
    for (int i = POINTS - 1; i > 0; i--) {
        int j = rand() % (i + 1), kept = p->order[i];
        p->order[i] = p->order[j];
        p->order[j] = kept;
    }
}

/* Quern asks for samples first .. first + count - 1 of the cycle, input by input. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct program *p = user;
    for (int64_t i = 0; i < count; i++) {
        int sample = p->order[p->first + first + i];
        if (strcmp(input, "labels") == 0)
            memcpy((cl_int *)rows + i, &p->label[sample], sizeof *p->label);
        else if (clEnqueueReadBuffer(p->queue, p->points, CL_TRUE, (size_t)sample * 8, 8,
                                     (char *)rows + i * 8, 0, NULL, NULL) != CL_SUCCESS)
            return QN_ERR_DEVICE;
    }
    return QN_OK;
}

/* Evaluation gives the results back in the same way; the labels that go with them are a column. */
static qn_status count_right(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    struct program *p = user;
    const qn_column labels = {.name = "labels", .dtype = QN_I32, .data = p->label};
    const qn_batch batch = {.samples = POINTS, .n_columns = 1, .columns = &labels};
    return qn_metric_update(p->accuracy, name, first, count, rows, &batch);
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    char weight[32], bias[32];
    qn_init init = qn_init_fan_in(in);
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return qn_linear(graph, x, qn_parameter(graph, weight, 2, (int64_t[]){out, in}, &init),
                     qn_parameter(graph, bias, 1, (int64_t[]){out}, &init));
}

static qn_status build(qn_graph *graph)
{
    qn_tensor x = qn_input(graph, "points", QN_F32, 2, (int64_t[]){QN_BATCH, 2});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = qn_tanh(graph, dense(graph, x, "fc1", 2, HIDDEN));
    x = qn_tanh(graph, dense(graph, x, "fc2", HIDDEN, HIDDEN));
    x = dense(graph, x, "fc3", HIDDEN, 2);
    qn_output(graph, x, "logits");
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, NULL), "loss", NULL);
    return qn_graph_status(graph);
}

static qn_status train(struct program *p, qn_trainer *trainer)
{
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.01, .fetch = fetch, .user = p};
    qn_metrics last = {0};
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        shuffle(p);
        for (p->first = 0; p->first < POINTS; p->first += BATCH) {
            qn_status status = qn_trainer_step(trainer, &cycle, &last);
            if (status != QN_OK)
                return status;
        }
        if (epoch % 50 == 49)
            printf("epoch %d: loss %.4f\n", epoch + 1, last.loss);
    }
    return qn_trainer_finish(trainer, NULL);
}

static qn_status evaluate(struct program *p, qn_trainer *trainer)
{
    const qn_metric_params params = {.log = {.fn = print_message},
                                     .kind = QN_METRIC_ACCURACY,
                                     .output = "logits",
                                     .shape = {2, {QN_BATCH, 2}},
                                     .labels = "labels"};
    for (int i = 0; i < POINTS; i++)
        p->order[i] = i;
    p->first = 0;
    qn_status status = qn_metric_create(&p->accuracy, &params);
    return status == QN_OK ? qn_trainer_evaluate(trainer, POINTS, fetch, count_right, p) : status;
}

/* Everything of Quern's, from opening to closing. */
static qn_status use_quern(struct program *p)
{
    const qn_log log = {.fn = print_message};
    const qn_device_params own = {
        .log = log, .cl_context = p->context, .cl_device_id = p->device, .cl_queue = p->queue};
    const qn_plan_params share = {
        .budget = 256 << 10, .batch = {BATCH}, .optimizer = {.name = "adamw"}};
    qn_device *device = NULL;
    qn_graph *graph = NULL;
    qn_plan *plan = NULL;
    qn_trainer *trainer = NULL;
    qn_status status = qn_device_open(&device, &own);
    if (status == QN_OK)
        status = qn_graph_create(&graph, &(qn_graph_params){.log = log});
    if (status == QN_OK)
        status = build(graph);
    if (status == QN_OK)
        status = qn_plan_create(&plan, graph, qn_device_facts(device), &share, NULL);
    if (status == QN_OK)
        status = qn_trainer_open(&trainer, device, plan, &(qn_trainer_params){.seed = 1});
    if (status == QN_OK)
        status = train(p, trainer);
    if (status == QN_OK)
        status = evaluate(p, trainer);
    if (status == QN_OK)
        printf("%.0f of %d points right, %lld of %lld bytes\n",
               POINTS * qn_metric_result(p->accuracy), POINTS, (long long)qn_trainer_bytes(trainer),
               (long long)share.budget);
    qn_trainer_close(&trainer);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
    return status;
}

int main(void)
{
    struct program p = {0};
    if (!open_program(&p)) {
        fprintf(stderr, "embed: no OpenCL device, or it makes no context, queue or buffer\n");
        close_program(&p);
        return 1;
    }
    qn_status status = use_quern(&p);
    double accuracy = qn_metric_result(p.accuracy);
    qn_metric_destroy(&p.accuracy);
    close_program(&p);
    if (status != QN_OK)
        fprintf(stderr, "embed: %s\n", qn_status_text(status));
    return status != QN_OK || accuracy < 0.9;
}
