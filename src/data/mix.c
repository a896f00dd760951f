/* SPDX-License-Identifier: MIT
 *
 * Datasets whose images are mixed with others of another dataset: mixup and CutMix.
 */
#include "base/log.h"
#include "base/shape.h"
#include "data/draw.h"
#include "data/source.h"

#include <math.h>
#include <string.h>

/* The same as in the whole, then those that are added. */
enum column { IMAGES, LABELS, MIXED_LABELS, MIXED_SHARES, COLUMNS };
enum { WHOLE_COLUMNS = MIXED_LABELS };
static const char *const names[COLUMNS] = {"images", "labels", "mixed_labels", "mixed_shares"};

/* What is drawn for a sample: the other one, which way they are mixed, by how much, and where the
 * middle of the rectangle is. */
enum number { PARTNER, WAY, SHARE, MIDDLE_ROW, MIDDLE_COLUMN, NUMBERS };
static const struct qn_stream stream = {UINT64_C(0x6d69786500000000), NUMBERS};

static const double MOST_ALPHA = 1000;

struct mixture {
    struct qn_dataset base;
    const struct qn_dataset *whole;
    double mixup, cutmix;      /* 0: not this way */
    int column[WHOLE_COLUMNS]; /* of the whole */
};

static const qn_shape *shape_of_images(const struct mixture *mixture)
{
    return &mixture->base.facts.columns[IMAGES].shape;
}

/* --- mixing one image with another --- */

/* Every byte; the share of the other is drawn. */
static double blend(uint8_t *image, const uint8_t *other, int64_t bytes, double own)
{
    for (int64_t i = 0; i < bytes; i++)
        image[i] = (uint8_t)(own * image[i] + (1 - own) * other[i] + 0.5);
    return 1 - own;
}

/* First and last + 1 of a stretch about `middle`, within an axis of `size`; it covers `part` of
 * the axis, unless an end cuts it off. */
static void stretch(int64_t ends[2], int64_t middle, int64_t size, double part)
{
    const int64_t half = (int64_t)(0.5 * part * (double)size);
    ends[0] = middle < half ? 0 : middle - half;
    ends[1] = middle + half > size ? size : middle + half;
}

/* A rectangle, which may be empty; the share of the other is what is seen of it. */
static double put_in(uint8_t *image, const uint8_t *other, const qn_shape *shape,
                     const struct qn_draw *draw, double own)
{
    const int64_t height = shape->dim[1], width = shape->dim[2];
    int64_t rows[2], columns[2];
    stretch(rows, qn_draw_upto(draw, &stream, MIDDLE_ROW, (int)height - 1), height, sqrt(1 - own));
    stretch(columns, qn_draw_upto(draw, &stream, MIDDLE_COLUMN, (int)width - 1), width,
            sqrt(1 - own));
    const int64_t across = columns[1] - columns[0];
    for (int64_t c = 0; c < shape->dim[0]; c++)
        for (int64_t y = rows[0]; y < rows[1]; y++) {
            const int64_t at = (c * height + y) * width + columns[0];
            memcpy(image + at, other + at, (size_t)across);
        }
    return (double)((rows[1] - rows[0]) * across) / (double)(height * width);
}

/* The share of the other. */
static double mix(const struct mixture *mixture, const struct qn_draw *draw, uint8_t *image,
                  const uint8_t *other)
{
    const qn_shape *shape = shape_of_images(mixture);
    const bool both = mixture->mixup > 0 && mixture->cutmix > 0;
    const bool cuts = both ? qn_draw_bits(draw, &stream, WAY) % 2 : mixture->cutmix > 0;
    const double own = qn_draw_beta(draw, &stream, SHARE, cuts ? mixture->cutmix : mixture->mixup);
    return cuts ? put_in(image, other, shape, draw, own)
                : blend(image, other, qn_shape_span(shape, 0, shape->rank), own);
}

/* --- samples --- */

static qn_status read_whole(const struct mixture *mixture, const struct qn_draw *draws,
                            int64_t count, void *const rows[WHOLE_COLUMNS], struct qn_rooms *rooms,
                            const struct qn_log *log)
{
    void *at[WHOLE_COLUMNS];
    for (int c = 0; c < WHOLE_COLUMNS; c++)
        at[mixture->column[c]] = rows[c];
    return mixture->whole->source->read(mixture->whole, draws, count, at, rooms, log);
}

/* Any sample of the whole, as it looks in the same epoch. */
static struct qn_draw draw_partner(const struct mixture *mixture, const struct qn_draw *draw)
{
    struct qn_draw partner = *draw;
    const uint64_t bits = qn_draw_bits(draw, &stream, PARTNER);
    partner.sample = (int64_t)(bits % (uint64_t)mixture->base.facts.count);
    return partner;
}

static qn_status mix_sample(const struct mixture *mixture, const struct qn_draw *draw,
                            void *const rows[COLUMNS], struct qn_rooms *rooms,
                            const struct qn_log *log)
{
    const int64_t bytes = qn_column_bytes(&mixture->base.facts.columns[IMAGES]);
    const struct qn_draw partner = draw_partner(mixture, draw);
    uint8_t *other = qn_room_take(&rooms->partner, bytes);
    if (!other)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    QN_TRY(
        read_whole(mixture, &partner, 1, (void *const[]){other, rows[MIXED_LABELS]}, rooms, log));
    const float share = (float)mix(mixture, draw, rows[IMAGES], other);
    memcpy(rows[MIXED_SHARES], &share, sizeof share);
    return QN_OK;
}

static qn_status read_rows(const struct qn_dataset *dataset, const struct qn_draw *draws,
                           int64_t count, void *const *rows, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct mixture *mixture = (const struct mixture *)dataset;
    void *at[COLUMNS];
    QN_TRY(read_whole(mixture, draws, count, rows, rooms, log));
    for (int64_t i = 0; i < count; i++) {
        for (int c = 0; c < COLUMNS; c++)
            at[c] = (char *)rows[c] + i * qn_column_bytes(&dataset->facts.columns[c]);
        QN_TRY(mix_sample(mixture, &draws[i], at, rooms, log));
    }
    return QN_OK;
}

/* The samples are the same ones. */
static uint32_t checksum(const struct qn_dataset *dataset)
{
    return qn_dataset_checksum(((const struct mixture *)dataset)->whole);
}

static const char *name(const struct qn_dataset *dataset, int64_t sample)
{
    return qn_dataset_sample_name(((const struct mixture *)dataset)->whole, sample);
}

static const struct qn_source source = {read_rows, checksum, .name = name};

/* --- opening --- */

static bool is_column(const qn_column *column, int which)
{
    return strcmp(column->name, names[which]) == 0 &&
           (which == IMAGES ? column->dtype == QN_U8 && column->shape.rank == 3
                            : column->dtype == QN_I32 && column->shape.rank == 0);
}

/* Finds the columns of the whole. */
static bool find_columns(struct mixture *mixture)
{
    const struct qn_dataset_facts *whole = &mixture->whole->facts;
    int found = 0;
    for (int c = 0; c < whole->n_columns; c++)
        for (int which = 0; which < WHOLE_COLUMNS; which++)
            if (is_column(&whole->columns[c], which)) {
                mixture->column[which] = c;
                found++;
            }
    return found == WHOLE_COLUMNS && whole->n_columns == WHOLE_COLUMNS;
}

static qn_status make(struct mixture *mixture, const qn_mix_params *params)
{
    mixture->whole = params->whole;
    mixture->mixup = params->mixup;
    mixture->cutmix = params->cutmix;
    if (!find_columns(mixture))
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "dataset: only images with a class each can be mixed");
    const struct qn_dataset_facts *whole = &params->whole->facts;
    struct qn_column columns[COLUMNS] = {
        [IMAGES] = whole->columns[mixture->column[IMAGES]],
        [LABELS] = whole->columns[mixture->column[LABELS]],
        [MIXED_LABELS] = whole->columns[mixture->column[LABELS]],
        [MIXED_SHARES] = {.dtype = QN_F32},
    };
    for (int c = 0; c < COLUMNS; c++) {
        columns[c].name = names[c];
        columns[c].data = NULL;
    }
    const qn_dataset_facts facts = {whole->count, COLUMNS, columns};
    return qn_dataset_set(&mixture->base, &facts, &params->log);
}

static bool is_alpha(double alpha)
{
    return alpha >= 0 && alpha <= MOST_ALPHA;
}

qn_status qn_dataset_mix(qn_dataset **dataset, const qn_mix_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params && params->whole);
    QN_REQUIRE(log, is_alpha(params->mixup) && is_alpha(params->cutmix));
    QN_REQUIRE(log, params->mixup > 0 || params->cutmix > 0);
    *dataset = NULL;
    struct mixture *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, make(made, params));
}
