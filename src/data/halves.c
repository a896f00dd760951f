/* SPDX-License-Identifier: MIT
 *
 * Datasets whose images are one half of another's.
 */
#include "base/log.h"
#include "base/shape.h"
#include "data/aside.h"
#include "data/source.h"

#include <string.h>
#include <zlib.h>

struct halves {
    struct qn_dataset base;
    const struct qn_dataset *whole;
    int column; /* of the whole's images */
    bool right;
};

static const qn_column *images_of(const struct halves *halves)
{
    return &halves->whole->facts.columns[halves->column];
}

/* One half of each line of pixels; `lines` of `width`, of all channels and samples. */
static void cut(uint8_t *half, const uint8_t *whole, int64_t lines, int64_t width, bool right)
{
    const int64_t each = width / 2;
    for (int64_t y = 0; y < lines; y++)
        memcpy(half + y * each, whole + y * width + (right ? each : 0), (size_t)each);
}

static qn_status read_rows(const struct qn_dataset *dataset, const struct qn_draw *draws,
                           int64_t count, void *const *rows, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct halves *halves = (const struct halves *)dataset;
    const qn_shape *shape = &images_of(halves)->shape;
    void *at[QN_MAX_COLUMNS] = {NULL};
    uint8_t *whole = qn_room_take(&rooms->whole, qn_mul(qn_column_bytes(images_of(halves)), count));
    if (!whole)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    at[halves->column] = whole;
    QN_TRY(qn_read_wanted(halves->whole, draws, count, at, rooms, log));
    cut(rows[0], whole, count * shape->dim[0] * shape->dim[1], shape->dim[2], halves->right);
    return QN_OK;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct halves *halves = (const struct halves *)dataset;
    const uint8_t side = halves->right;
    return (uint32_t)crc32_z(qn_dataset_checksum(halves->whole), &side, sizeof side);
}

static const char *name(const struct qn_dataset *dataset, int64_t sample)
{
    return qn_dataset_sample_name(((const struct halves *)dataset)->whole, sample);
}

static const struct qn_source source = {read_rows, checksum, .name = name};

static qn_status make(struct halves *halves, const qn_half_params *params)
{
    const struct qn_log *log = &params->log;
    const qn_column *images = qn_dataset_column(params->whole, "images");
    if (!images || images->dtype != QN_U8 || images->shape.rank != 3)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "dataset: no images of u8 (channels, height, width) to take halves of");
    if (images->shape.dim[2] % 2)
        return qn_fail(log, QN_ERR_ARGUMENT, "dataset: images: a width of %lld has no halves",
                       (long long)images->shape.dim[2]);
    halves->whole = params->whole;
    halves->column = (int)(images - params->whole->facts.columns);
    halves->right = params->right;
    struct qn_column column = {.name = "images", .dtype = QN_U8, .shape = images->shape};
    column.shape.dim[2] /= 2;
    return qn_dataset_set(&halves->base,
                          &(qn_dataset_facts){params->whole->facts.count, 1, &column}, log);
}

qn_status qn_dataset_halve(qn_dataset **dataset, const qn_half_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params && params->whole);
    *dataset = NULL;
    struct halves *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, make(made, params));
}
