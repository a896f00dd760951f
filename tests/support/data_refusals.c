/* SPDX-License-Identifier: MIT
 *
 * Folders of images, halves of them as pairs, and documents of a text are read in spite of a
 * refused allocation, or QN_ERR_MEMORY says so in one line: run N refuses the Nth call of the
 * library (see refusals.c), in opening and in the loader's thread. No device.
 */
#include "io/tree.h"
#include "refuse.h"
#include <quern/data.h>

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { W = 7, H = 6, SAMPLES = 4 };

static int lines;
static char folder[256];

static void count_line(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)text;
    lines += level == QN_LOG_ERROR;
}

static void path_of(char path[300], const char *name)
{
    snprintf(path, 300, "%s/%s", folder, name);
}

static void put(const char *name, uint8_t value)
{
    char path[300];
    uint8_t pixels[W * H];
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = PNG_FORMAT_GRAY};
    for (int i = 0; i < W * H; i++)
        pixels[i] = (uint8_t)(value * (i + 1));
    path_of(path, name);
    if (!png_image_write_to_file(&image, path, 0, pixels, 0, NULL))
        abort();
}

static void put_text(const char *name)
{
    char path[300];
    path_of(path, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs("in\nthe beginning\nwas\na mill\n", file) < 0 || fclose(file))
        abort();
}

/* Two classes, two images with masks, and a text. */
static void make_folders(void)
{
    static const char *const folders[] = {"classes", "classes/a", "classes/b", "scenes"};
    static const char *const images[] = {"classes/a/1.png", "classes/a/2.png", "classes/b/1.png",
                                         "scenes/1.png", "scenes/2.png"};
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/quern-test-XXXXXX", root ? root : P_tmpdir);
    if (!mkdtemp(folder))
        abort();
    for (int i = 0; i < 4; i++) {
        char path[300];
        path_of(path, folders[i]);
        if (mkdir(path, 0700) != 0)
            abort();
    }
    for (int i = 0; i < 5; i++)
        put(images[i], (uint8_t)(i + 3));
    put("scenes/1_m.png", 0);
    put("scenes/2_m.png", 1);
    put_text("text");
}

static uint64_t mix(uint64_t sum, const void *bytes, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static qn_status read_samples(const qn_dataset *dataset, const qn_log *log, uint64_t *sum)
{
    const qn_loader_params params = {.log = *log, .seed = 1, .max_samples = SAMPLES};
    qn_loader *loader = NULL;
    qn_batch batch;
    qn_status status = qn_loader_open(&loader, dataset, &params);
    for (int i = 0; status == QN_OK && i < 2; i++) {
        status = qn_loader_next(loader, SAMPLES, &batch);
        if (status != QN_OK)
            break;
        for (int c = 0; c < batch.n_columns; c++)
            *sum = mix(*sum, batch.columns[c].data, SAMPLES * qn_column_bytes(&batch.columns[c]));
    }
    qn_loader_close(&loader);
    return status;
}

/* Left halves and right ones as pairs, the right ones once more as negatives. */
static qn_status read_halves(const qn_dataset *whole, const qn_log *log, uint64_t *sum)
{
    qn_dataset *left = NULL, *right = NULL, *pairs = NULL;
    qn_status status = qn_dataset_halve(&left, &(qn_half_params){*log, whole, false});
    if (status == QN_OK)
        status = qn_dataset_halve(&right, &(qn_half_params){*log, whole, true});
    if (status == QN_OK)
        status = qn_dataset_pair(&pairs, &(qn_pair_params){*log, left, right, right, 0, NULL});
    if (status == QN_OK)
        status = read_samples(pairs, log, sum);
    qn_dataset_close(&pairs);
    qn_dataset_close(&right);
    qn_dataset_close(&left);
    return status;
}

static qn_status read_folder(const char *name, const char *mask, uint64_t *sum)
{
    char path[300];
    path_of(path, name);
    const qn_image_params params = {.log = {count_line, NULL, QN_LOG_ERROR},
                                    .path = path,
                                    .size = {5, 9},
                                    .crop = {4, 4},
                                    .random_crop = true,
                                    .flip = true,
                                    .mask = mask,
                                    .classes = 256};
    qn_dataset *dataset = NULL;
    qn_status status = qn_dataset_open_images(&dataset, &params);
    if (status == QN_OK)
        status = read_samples(dataset, &params.log, sum);
    if (status == QN_OK)
        status = read_halves(dataset, &params.log, sum);
    qn_dataset_close(&dataset);
    return status;
}

static qn_status read_documents(const char *name, uint64_t *sum)
{
    static const int64_t lengths[] = {2, 5};
    char path[300];
    path_of(path, name);
    const qn_token_params params = {.log = {count_line, NULL, QN_LOG_ERROR},
                                    .path = path,
                                    .type = QN_TOKEN_U8,
                                    .length = 5,
                                    .separate = true,
                                    .separator = '\n',
                                    .n_lengths = 2,
                                    .lengths = lengths};
    qn_dataset *dataset = NULL;
    qn_status status = qn_dataset_open_tokens(&dataset, &params);
    if (status == QN_OK)
        status = read_samples(dataset, &params.log, sum);
    qn_dataset_close(&dataset);
    return status;
}

static qn_status read_all(uint64_t *sum)
{
    *sum = 1;
    lines = 0;
    qn_status status = read_folder("classes", NULL, sum);
    if (status == QN_OK)
        status = read_folder("scenes", "_m", sum);
    return status == QN_OK ? read_documents("text", sum) : status;
}

int main(void)
{
    uint64_t first, sum;
    long passed = 0, failed = 0;
    make_folders();
    refuse_call(0);
    failed += read_all(&first) != QN_OK;
    for (long n = 1, total = calls_made(); n <= total; n++) {
        refuse_call(n);
        qn_status status = read_all(&sum);
        bool good = status == QN_OK ? sum == first : status == QN_ERR_MEMORY && lines == 1;
        if (!good)
            printf("call %ld refused: %s, %d lines\n", n, qn_status_name(status), lines);
        passed += good;
        failed += !good;
    }
    refuse_call(0);
    failed += qn_tree_remove(folder, NULL) != QN_OK;
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
