/* SPDX-License-Identifier: MIT
 *
 * Outputs of an evaluation: each under its own name, whole, for every sample once; and a U-Net that
 * gives its images of the training the masks it learned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "support.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 5, IN = 3, OUT = 2, OUTPUTS = 3 };

static const char *const names[OUTPUTS] = {"rows", "same", "view"};

/* What is asked, and what came back by name and sample. */
struct probe {
    struct test_data data; /* first, for test_fetch */
    float value[OUTPUTS][SAMPLES][OUT];
    int seen[OUTPUTS][SAMPLES];
};

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct probe *probe = user;
    int output = 0;
    while (output < OUTPUTS && strcmp(names[output], name) != 0)
        output++;
    assert_true(output < OUTPUTS && first + count <= SAMPLES);
    memcpy(probe->value[output][first], rows, (size_t)count * sizeof probe->value[0][0]);
    for (int64_t i = first; i < first + count; i++)
        probe->seen[output][i]++;
    return QN_OK;
}

static qn_graph *make_graph(void)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(IN);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, IN});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){OUT, IN}, &init);
    qn_tensor y = qn_linear(graph, x, w, (qn_tensor){0});
    qn_output(graph, y, names[0]);
    qn_output(graph, y, names[1]);
    qn_output(graph, qn_reshape(graph, y, 3, (int64_t[]){QN_BATCH, 1, OUT}), names[2]);
    qn_loss(graph, qn_mean(graph, y, 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void every_output_has_its_name(void **state)
{
    (void)state;
    struct probe probe = {0};
    float w[OUT][IN];
    qn_device *device = test_device();
    qn_graph *graph = make_graph();
    const qn_plan_params params = {.budget = 1 << 20, .batch = {SAMPLES}, .micro_batch = 2};
    struct test_run run = test_open(device, graph, &params, NULL);
    test_data_make(&probe.data, SAMPLES, IN);
    assert_int_equal(qn_trainer_read(run.trainer, "w", w[0], OUT * IN), QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, SAMPLES, test_fetch, receive, &probe), QN_OK);
    for (int i = 0; i < OUTPUTS * SAMPLES * OUT; i++) {
        int output = i / OUT / SAMPLES, sample = i / OUT % SAMPLES, column = i % OUT;
        float sum = 0;
        for (int k = 0; k < IN; k++)
            sum += w[column][k] * probe.data.x[sample * IN + k];
        assert_int_equal(probe.seen[output][sample], 1);
        assert_true(fabsf(probe.value[output][sample][column] - sum) < 1e-5f);
    }
    test_data_free(&probe.data);
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

/* --- a network of pixels --- */

enum { IMAGES = 8, SIDE = 16, PIXELS = SIDE * SIDE, BLOCK = 4 };

/* Blocks that are brighter than what is around them in each image; but every image has a brightness
 * and a contrast of its own, so that no pixel by itself tells. */
struct album {
    uint8_t image[IMAGES][PIXELS], mask[IMAGES][PIXELS];
    double loss; /* of all pixels evaluated so far */
};

static void fill_album(struct album *album)
{
    for (int i = 0; i < IMAGES; i++)
        for (int p = 0; p < PIXELS; p++) {
            const int block = p / SIDE / BLOCK * (SIDE / BLOCK) + p % SIDE / BLOCK;
            const bool bright = qn_random_bits(3, (uint64_t)i, (uint64_t)block) % 2;
            album->mask[i][p] = bright;
            album->image[i][p] = (uint8_t)(20 + 25 * i + (bright ? 6 + 3 * (i % 3) : 0));
        }
}

static qn_status turn_page(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct album *album = user;
    const uint8_t(*from)[PIXELS] = strcmp(input, "images") == 0 ? album->image : album->mask;
    memcpy(rows, from[first], (size_t)count * sizeof *from);
    return QN_OK;
}

static qn_status add_losses(void *user, const char *name, int64_t first, int64_t count,
                            const void *rows)
{
    struct album *album = user;
    const float *loss = rows;
    (void)first;
    for (int64_t i = 0; strcmp(name, "loss") == 0 && i < count * PIXELS; i++)
        album->loss += (double)loss[i];
    return QN_OK;
}

static void pixels_are_evaluated_as_they_were_trained(void **state)
{
    (void)state;
    struct album album = {.loss = 0};
    qn_metrics last;
    const qn_model_data data = {1, SIDE, SIDE, 2, {0.5f}, {0.25f}, .masks = true};
    const qn_model_option options[] = {{"depth", "2"}, {"width", "8"}};
    const qn_plan_params params = {
        .budget = 64 << 20, .batch = {IMAGES}, .optimizer = {.name = "adamw"}};
    const qn_cycle cycle = {IMAGES, 0.01, turn_page, &album};
    qn_device *device = test_device();
    qn_graph *graph = test_graph(QN_F32);
    fill_album(&album);
    assert_int_equal(qn_model_build(graph, "unet", &data, options, 2), QN_OK);
    struct test_run run = test_open(device, graph, &params, NULL);
    for (int i = 0; i < 60; i++)
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &last), QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, IMAGES, turn_page, add_losses, &album),
                     QN_OK);
    album.loss /= IMAGES * PIXELS;
    print_message("  loss %.3f, evaluated %.3f\n", last.loss, album.loss);
    assert_true(last.loss < 0.3 && album.loss < 1.1 * last.loss);
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_has_its_name),
        cmocka_unit_test(pixels_are_evaluated_as_they_were_trained),
    };
    return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
