/* SPDX-License-Identifier: MIT
 *
 * Images mixed with others: what the bytes and the shares are, and how the random numbers are
 * distributed.
 */
#include <quern/data.h>

#include "base/random.h"

#include "../io/scratch.h"
#include "statistics.h"

#include <string.h>

enum { COUNT = 16, CHANNELS = 2, H = 20, W = 30, PLANE = H * W, IMAGE = CHANNELS * PLANE };

/* Every byte of an image is 15 times its number; its epoch is added to it. */
static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        ((int32_t *)rows[0])[i] = (int32_t)draws[i].sample;
        memset((uint8_t *)rows[1] + i * IMAGE, (int)(15 * draws[i].sample + draws[i].epoch % 2),
               IMAGE);
    }
    return QN_OK;
}

/* The columns are not in the order of the mixture's. */
static const qn_column columns[] = {
    {.name = "labels", .dtype = QN_I32, .classes = COUNT},
    {.name = "images", .dtype = QN_U8, .shape = {3, {CHANNELS, H, W}}},
    {.name = "more", .dtype = QN_I32},
};

static qn_dataset *make_whole(struct scratch *scratch, int n_columns)
{
    const qn_function_params params = {.log = scratch->log,
                                       .count = COUNT,
                                       .n_columns = n_columns,
                                       .columns = columns,
                                       .fn = make_rows};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_OK);
    return dataset;
}

static qn_dataset *make_mixture(struct scratch *scratch, const qn_dataset *whole, double mixup,
                                double cutmix)
{
    const qn_mix_params params = {scratch->log, whole, mixup, cutmix};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_mix(&dataset, &params), QN_OK);
    return dataset;
}

static qn_loader *open_loader(struct scratch *scratch, const qn_dataset *dataset, int64_t position)
{
    const qn_loader_params params = {
        .log = scratch->log, .seed = 9, .position = position, .max_samples = 64};
    qn_loader *loader = NULL;
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

/* What a mixed sample is. */
struct sample {
    const uint8_t *image;
    int32_t own, other;
    float share; /* of the other */
};

static struct sample sample_of(const qn_batch *batch, int64_t i)
{
    return (struct sample){(const uint8_t *)qn_batch_column(batch, "images")->data + i * IMAGE,
                           ((const int32_t *)qn_batch_column(batch, "labels")->data)[i],
                           ((const int32_t *)qn_batch_column(batch, "mixed_labels")->data)[i],
                           ((const float *)qn_batch_column(batch, "mixed_shares")->data)[i]};
}

enum { BATCH = 50, BATCHES = 400, SAMPLES = BATCH * BATCHES };
static double shares[SAMPLES];

/* Calls `look` with every sample of a mixture. */
static void look_at_all(struct scratch *scratch, double mixup, double cutmix,
                        void (*look)(const struct sample *sample, int i, int epoch))
{
    qn_dataset *whole = make_whole(scratch, 2),
               *mixture = make_mixture(scratch, whole, mixup, cutmix);
    qn_loader *loader = open_loader(scratch, mixture, 0);
    int partners[COUNT] = {0}, owns[COUNT] = {0};
    for (int b = 0; b < BATCHES; b++) {
        qn_batch batch;
        assert_int_equal(qn_loader_next(loader, BATCH, &batch), QN_OK);
        for (int i = 0; i < BATCH; i++) {
            const struct sample sample = sample_of(&batch, i);
            shares[b * BATCH + i] = (double)sample.share;
            partners[sample.other]++;
            owns[sample.own]++;
            look(&sample, b * BATCH + i, (b * BATCH + i) / COUNT);
        }
    }
    /* Chi-squared with 15 degrees of freedom stays below 48 with probability 0.99997. */
    double chi = 0, mean = (double)SAMPLES / COUNT;
    for (int i = 0; i < COUNT; i++) {
        chi += (partners[i] - mean) * (partners[i] - mean) / mean;
        assert_int_equal(owns[i], SAMPLES / COUNT);
    }
    assert_true(chi > 1 && chi < 48);
    qn_loader_close(&loader);
    qn_dataset_close(&mixture);
    qn_dataset_close(&whole);
}

static int byte_of(int32_t sample, int epoch)
{
    return 15 * sample + epoch % 2;
}

/* Every byte is the mean by the shares, rounded. */
static void is_blended(const struct sample *sample, int i, int epoch)
{
    const double mean = (1 - (double)sample->share) * byte_of(sample->own, epoch) +
                        (double)sample->share * byte_of(sample->other, epoch);
    (void)i;
    for (int at = 0; at < IMAGE; at += 7)
        assert_true(fabs(sample->image[at] - mean) <= 0.5001);
}

/* How often a rectangle could be told from its image, and had a pixel in a row, in a column. */
static int told, in_row[H], in_column[W];

/* The bytes of the other are a rectangle, the same in each channel, and the share is its. */
static void has_a_rectangle(const struct sample *sample, int i, int epoch)
{
    const int own = byte_of(sample->own, epoch), other = byte_of(sample->other, epoch);
    int least[2] = {H, W}, most[2] = {-1, -1}, count = 0;
    (void)i;
    if (own == other)
        return;
    told++;
    for (int at = 0; at < PLANE; at++) {
        assert_true(sample->image[at] == own || sample->image[at] == other);
        assert_int_equal(sample->image[at], sample->image[PLANE + at]);
        if (sample->image[at] == own)
            continue;
        count++;
        for (int axis = 0; axis < 2; axis++) {
            const int place = axis ? at % W : at / W;
            least[axis] = place < least[axis] ? place : least[axis];
            most[axis] = place > most[axis] ? place : most[axis];
        }
    }
    assert_true(fabs(count / (double)PLANE - (double)sample->share) < 1e-6);
    if (!count)
        return;
    assert_int_equal(count, (most[0] - least[0] + 1) * (most[1] - least[1] + 1));
    for (int y = least[0]; y <= most[0]; y++)
        in_row[y]++;
    for (int x = least[1]; x <= most[1]; x++)
        in_column[x]++;
}

/* Of beta(alpha, alpha), by Simpson's rule; below 1, t = s^(1 / alpha) takes away the pole at 0. */
static double beta_below(double x, double alpha)
{
    enum { PARTS = 200 };
    if (x > 0.5)
        return 1 - beta_below(1 - x, alpha);
    const bool pole = alpha < 1;
    const double width = (pole ? pow(x, alpha) : x) / PARTS;
    double sum = 0;
    for (int i = 0; i <= PARTS; i++) {
        const double t = pole ? pow(i * width, 1 / alpha) : i * width;
        const double value = pow(1 - t, alpha - 1) * (pole ? 1 / alpha : pow(t, alpha - 1));
        sum += value * (i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * width / 3 * tgamma(2 * alpha) / (tgamma(alpha) * tgamma(alpha));
}

static void beta_is_beta(void **state)
{
    static const double alphas[] = {0.2, 0.5, 1, 2, 7.5};
    (void)state;
    assert_true(fabs(beta_below(0.3, 2) - (3 * 0.09 - 2 * 0.027)) < 1e-6); /* in closed form */
    assert_true(fabs(beta_below(0.3, 0.5) - 2 / acos(-1) * asin(sqrt(0.3))) < 1e-6);
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        for (int i = 0; i < SAMPLES; i++)
            shares[i] = beta_below(qn_random_beta(4, 1, (uint64_t)i, alphas[a]), alphas[a]);
        assert_uniform(shares, SAMPLES, 0, 1);
    }
    /* Most of a small alpha is 0 or 1 in double. The mean of 4 x (1 - x), whose deviation is below
     * 0.25, is 2 alpha / (2 alpha + 1). */
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const double small = qn_random_beta(4, 2, (uint64_t)i, 0.05);
        const double tiny = qn_random_beta(4, 3, (uint64_t)i, 1e-4);
        const double large = qn_random_beta(4, 3, (uint64_t)i, 1000);
        sum += 4 * small * (1 - small);
        assert_true(tiny >= 0 && tiny <= 1 && large > 0.4 && large < 0.6);
    }
    assert_true(fabs(sum / SAMPLES - 0.1 / 1.1) < 4 * 0.25 / sqrt(SAMPLES));
}

static void mixup_blends_by_beta(void **state)
{
    look_at_all(*state, 0.4, 0, is_blended);
    for (int i = 0; i < SAMPLES; i++)
        shares[i] = beta_below(shares[i], 0.4);
    assert_uniform(shares, SAMPLES, 0, 1);
}

/* How likely CutMix has pixels in row `at` of an axis of `size`, where the side covers `part` of
 * it: every middle is as likely. */
static double covers(int at, int size, double part)
{
    const int half = (int)(part / 2 * size);
    int middles = 0;
    for (int middle = 0; middle < size; middle++)
        middles += at >= middle - half && at < middle + half;
    return (double)middles / size;
}

/* The paper's rectangle, cut off at the sides, of a share that is uniform as beta(1, 1) is: how
 * often each row and each column is in it, and how often it is empty. */
static void cutmix_puts_in_a_rectangle(void **state)
{
    enum { SHARES = 4000 };
    double rows[H] = {0}, across[W] = {0};
    int none = 0;
    look_at_all(*state, 0, 1, has_a_rectangle);
    for (int i = 0; i < SAMPLES; i++)
        none += shares[i] == 0;
    assert_share(none, SAMPLES, 4.0 / (H * H)); /* half a side of less than 1 */
    for (int i = 0; i < SHARES; i++) {
        const double part = sqrt((i + 0.5) / SHARES);
        const bool empty = (int)(part / 2 * H) == 0 || (int)(part / 2 * W) == 0;
        for (int y = 0; y < H && !empty; y++)
            rows[y] += covers(y, H, part) / SHARES;
        for (int x = 0; x < W && !empty; x++)
            across[x] += covers(x, W, part) / SHARES;
    }
    for (int y = 0; y < H; y++)
        assert_share(in_row[y], told, rows[y]);
    for (int x = 0; x < W; x++)
        assert_share(in_column[x], told, across[x]);
}

static int blended, cut_in;

static void is_one_or_the_other(const struct sample *sample, int i, int epoch)
{
    const int own = byte_of(sample->own, epoch), other = byte_of(sample->other, epoch);
    bool between = false, cut = false;
    for (int at = 0; at < PLANE; at++) {
        between |= sample->image[at] != own && sample->image[at] != other;
        cut |= sample->image[at] != sample->image[0];
    }
    assert_false(between && cut);
    (void)i;
    blended += between;
    cut_in += cut;
    if (cut || own == other)
        has_a_rectangle(sample, i, epoch);
    else if (between)
        is_blended(sample, i, epoch);
}

/* Of Beta(9, 9) nearly every mixture can be told. */
static void both_are_as_likely(void **state)
{
    blended = cut_in = 0;
    look_at_all(*state, 9, 9, is_one_or_the_other);
    assert_share(blended, blended + cut_in, 0.5);
    assert_true(blended + cut_in > SAMPLES * 9 / 10);
}

/* The same whatever the cycles, and wherever the loader began. */
static void cycles_change_no_sample(void **state)
{
    struct scratch *scratch = *state;
    enum { ALL = 60 };
    static uint8_t once[ALL][IMAGE];
    struct sample first[ALL];
    qn_dataset *whole = make_whole(scratch, 2), *mixture = make_mixture(scratch, whole, 1, 1);
    for (int64_t cycle = ALL; cycle > 0; cycle = cycle > 20 ? 13 : cycle - 4)
        for (int64_t from = 0; from < 20; from += 7) {
            qn_loader *loader = open_loader(scratch, mixture, from);
            for (int64_t at = from; at < ALL; at += cycle) {
                qn_batch batch;
                const int64_t count = ALL - at < cycle ? ALL - at : cycle;
                assert_int_equal(qn_loader_next(loader, count, &batch), QN_OK);
                for (int64_t i = 0; i < count; i++) {
                    const struct sample s = sample_of(&batch, i);
                    if (cycle == ALL && from == 0) {
                        first[at + i] = s;
                        memcpy(once[at + i], s.image, IMAGE);
                    }
                    assert_memory_equal(s.image, once[at + i], IMAGE);
                    assert_int_equal(s.other, first[at + i].other);
                    assert_true(s.share == first[at + i].share);
                }
            }
            qn_loader_close(&loader);
        }
    qn_dataset_close(&mixture);
    qn_dataset_close(&whole);
}

static void what_cannot_be_mixed_is_refused(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch, 2), *more = make_whole(scratch, 3), *made = NULL;
    qn_dataset *labels = make_whole(scratch, 1);
    const qn_mix_params wrong[] = {
        {.whole = NULL, .mixup = 1},     {.whole = whole},
        {.whole = whole, .mixup = -1},   {.whole = whole, .mixup = 1, .cutmix = 1e4},
        {.whole = whole, .cutmix = NAN}, {.whole = more, .mixup = 1},
        {.whole = labels, .mixup = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(qn_dataset_mix(&made, &wrong[i]), QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_mix(&made, NULL), QN_ERR_ARGUMENT);
    made = make_mixture(scratch, whole, 1, 0);
    assert_int_equal(qn_dataset_checksum(made), qn_dataset_checksum(whole));
    assert_int_equal(qn_dataset_column(made, "labels")->classes, COUNT);
    qn_dataset_close(&made);
    qn_dataset_close(&labels);
    qn_dataset_close(&more);
    qn_dataset_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beta_is_beta),           WITH_SCRATCH(mixup_blends_by_beta),
        WITH_SCRATCH(cutmix_puts_in_a_rectangle), WITH_SCRATCH(both_are_as_likely),
        WITH_SCRATCH(cycles_change_no_sample),    WITH_SCRATCH(what_cannot_be_mixed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
