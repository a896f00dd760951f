/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/image_file.h"

#include <math.h>

enum { W = 6, H = 5, PIXELS = W * H };

/* Image `seed` in the folder; its pixels are value_of. */
static uint8_t value_of(int seed, int i)
{
    return (uint8_t)(i * 17 + seed * 101 + i * i * seed);
}

static void put_sized(struct scratch *scratch, const char *name, int seed, int height, int width,
                      int type)
{
    uint8_t rows[3 * 4096];
    for (int i = 0; i < 3 * height * width; i++)
        rows[i] = value_of(seed, i);
    png_put(scratch, name, width, height, &(struct png_form){.type = type}, rows);
}

static void put(struct scratch *scratch, const char *name, int seed)
{
    put_sized(scratch, name, seed, H, W, PNG_COLOR_TYPE_RGB);
}

static void put_folder(struct scratch *scratch, const char *name)
{
    assert_int_equal(mkdir(scratch_path(scratch, name), 0777), 0);
}

/* Three classes of 1, 3 and 2 images, and things that are none. */
static void put_classes(struct scratch *scratch)
{
    static const char *const folders[] = {"owl", "Bee", "cat", ".thumbs"};
    static const char *const names[] = {"Bee/z.png", "cat/1.PNG", "cat/10.jpeg",
                                        "cat/2.jpg", "owl/a.png", "owl/b.png"};
    for (int i = 0; i < 4; i++)
        put_folder(scratch, folders[i]);
    for (int i = 0; i < 6; i++)
        put(scratch, names[i], i); /* what they are is not in the name */
    scratch_put(scratch, "README", "text", 4);
    scratch_put(scratch, "cat/list.txt", "text", 4);
    scratch_put(scratch, "cat/.hidden.png", "text", 4);
}

static qn_dataset *open_images(struct scratch *scratch, qn_image_params params)
{
    qn_dataset *dataset = NULL;
    params.log = scratch->log;
    params.path = scratch->folder;
    if (qn_dataset_open_images(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return dataset;
}

static void refuse(struct scratch *scratch, qn_image_params params, const char *one,
                   const char *other)
{
    qn_dataset *dataset = NULL;
    params.log = scratch->log;
    params.path = scratch->folder;
    assert_int_equal(qn_dataset_open_images(&dataset, &params), QN_ERR_FORMAT);
    assert_null(dataset);
    scratch_said(scratch, one, other);
}

static qn_loader *open_loader(struct scratch *scratch, const qn_dataset *dataset, uint64_t seed,
                              int64_t position, int64_t most, bool sequential)
{
    qn_loader *loader = NULL;
    const qn_loader_params params = {.log = scratch->log,
                                     .seed = seed,
                                     .position = position,
                                     .max_samples = most,
                                     .sequential = sequential};
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

static int64_t bytes_of(const qn_dataset *dataset, const char *name)
{
    return qn_column_bytes(qn_dataset_column(dataset, name));
}

static const uint8_t *rows_of(const qn_batch *batch, const char *name)
{
    return qn_batch_column(batch, name)->data;
}

static void classes_are_folders(void **state)
{
    struct scratch *scratch = *state;
    static const int32_t labels[] = {0, 1, 1, 1, 2, 2};
    put_classes(scratch);
    qn_dataset *dataset = open_images(scratch, (qn_image_params){0});
    const qn_column *image = qn_dataset_column(dataset, "images");
    const qn_column *label = qn_dataset_column(dataset, "labels");
    assert_int_equal(qn_dataset_describe(dataset)->count, 6);
    assert_int_equal(qn_dataset_describe(dataset)->n_columns, 2);
    assert_int_equal(image->dtype, QN_U8);
    assert_int_equal(image->shape.rank, 3);
    assert_int_equal(image->shape.dim[0], 3);
    assert_int_equal(image->shape.dim[1], H);
    assert_int_equal(image->shape.dim[2], W);
    assert_null(image->data);
    assert_int_equal(label->dtype, QN_I32);
    assert_int_equal(label->shape.rank, 0);
    assert_int_equal(label->classes, 3);
    assert_memory_equal(label->data, labels, sizeof labels);
    assert_string_equal(label->class_names[0], "Bee");
    assert_string_equal(label->class_names[1], "cat");
    assert_string_equal(label->class_names[2], "owl");
    qn_batch batch;
    qn_loader *loader = open_loader(scratch, dataset, 1, 0, 9, true);
    assert_int_equal(qn_loader_next(loader, 9, &batch), QN_OK);
    for (int i = 0; i < 9; i++) {
        const uint8_t *pixels = rows_of(&batch, "images") + i * 3 * PIXELS;
        assert_memory_equal(rows_of(&batch, "labels") + 4 * i, &labels[i % 6], 4);
        for (int j = 0; j < 3 * PIXELS; j++)
            assert_int_equal(pixels[j % 3 * PIXELS + j / 3], value_of(i % 6, j));
    }
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void the_checksum_tells_folders_apart(void **state)
{
    struct scratch *scratch = *state;
    char from[512];
    put_classes(scratch);
    uint32_t sum[4];
    for (int i = 0; i < 4; i++) {
        qn_dataset *dataset = open_images(scratch, (qn_image_params){0});
        sum[i] = qn_dataset_checksum(dataset);
        qn_dataset_close(&dataset);
        snprintf(from, sizeof from, "%s", scratch_path(scratch, "owl/a.png"));
        if (i == 1) /* the names stay in their order */
            assert_int_equal(rename(from, scratch_path(scratch, "cat/a.png")), 0);
        if (i == 2)
            put_sized(scratch, "owl/b.png", 9, H, W, PNG_COLOR_TYPE_GRAY);
    }
    assert_int_equal(sum[0], sum[1]);
    assert_int_not_equal(sum[1], sum[2]);
    assert_int_not_equal(sum[2], sum[3]);
}

/* Images of `count` samples from `position` on, in cycles of `cycle`. */
static void collect(struct scratch *scratch, const qn_dataset *dataset, uint64_t seed,
                    int64_t position, int64_t count, int64_t cycle, uint8_t *images)
{
    int64_t bytes = bytes_of(dataset, "images");
    qn_loader *loader = open_loader(scratch, dataset, seed, position, cycle, false);
    for (int64_t done = 0; done < count; done += cycle) {
        qn_batch batch;
        int64_t samples = count - done < cycle ? count - done : cycle;
        assert_int_equal(qn_loader_next(loader, samples, &batch), QN_OK);
        memcpy(images + done * bytes, rows_of(&batch, "images"), (size_t)(samples * bytes));
    }
    qn_loader_close(&loader);
}

/* A sample of an epoch looks the same whatever the cycles and wherever the loader began. */
static void cycles_change_no_sample(void **state)
{
    struct scratch *scratch = *state;
    enum { COUNT = 60, IMAGE = 3 * 2 * 4 };
    static uint8_t once[COUNT * IMAGE], again[COUNT * IMAGE];
    put_classes(scratch);
    for (int resized = 0; resized < 2; resized++) {
        qn_dataset *dataset = open_images(scratch, (qn_image_params){.size = {4, 6},
                                                                     .crop = {2, 4},
                                                                     .random_crop = !resized,
                                                                     .random_resized_crop = resized,
                                                                     .flip = true,
                                                                     .degrees = resized ? 90 : 0,
                                                                     .brightness = 0.3 * resized,
                                                                     .hue = 0.2 * resized});
        assert_int_equal(bytes_of(dataset, "images"), IMAGE);
        collect(scratch, dataset, 5, 0, COUNT, COUNT, once);
        for (int64_t cycle = 1; cycle < 20; cycle += 3) {
            collect(scratch, dataset, 5, 0, COUNT, cycle, again);
            assert_memory_equal(once, again, sizeof once);
        }
        collect(scratch, dataset, 5, 13, COUNT - 13, 7, again);
        assert_memory_equal(once + 13 * IMAGE, again, (COUNT - 13) * IMAGE);
        collect(scratch, dataset, 6, 0, COUNT, COUNT, again);
        assert_memory_not_equal(once, again, sizeof once);
        qn_dataset_close(&dataset);
    }
}

/* Pixels of two images of one folder: each with what one key alone changes. */
static void every_change_is_made(void **state)
{
    struct scratch *scratch = *state;
    enum { COUNT = 12, IMAGE = 3 * 4 * 4 };
    static uint8_t plain[COUNT * IMAGE], changed[COUNT * IMAGE];
    static const qn_image_params changes[] = {
        {.crop = {4, 4}, .random_crop = true},         {.crop = {4, 4}, .flip = true},
        {.crop = {4, 4}, .random_resized_crop = true}, {.crop = {4, 4}, .degrees = 40},
        {.crop = {4, 4}, .brightness = 0.5},           {.crop = {4, 4}, .contrast = 0.5},
        {.crop = {4, 4}, .saturation = 0.5},           {.crop = {4, 4}, .hue = 0.5},
    };
    enum { CHANGES = sizeof changes / sizeof *changes };
    uint32_t sums[CHANGES];
    put_classes(scratch);
    qn_dataset *dataset = open_images(scratch, (qn_image_params){.crop = {4, 4}});
    collect(scratch, dataset, 5, 0, COUNT, COUNT, plain);
    qn_dataset_close(&dataset);
    for (int i = 0; i < CHANGES; i++) {
        dataset = open_images(scratch, changes[i]);
        collect(scratch, dataset, 5, 0, COUNT, COUNT, changed);
        assert_memory_not_equal(changed, plain, sizeof plain);
        sums[i] = (uint32_t)crc32(0, changed, sizeof changed);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(sums[i], sums[j]);
        qn_dataset_close(&dataset);
    }
}

/* A part of an image is what the image cut there would be, and it is resized to the crop: here the
 * only part that fits is the middle. */
static void parts_are_resized(void **state)
{
    struct scratch *scratch = *state;
    enum { SIDE = 8, WIDE = 40, LEFT = (WIDE - SIDE) / 2 };
    static uint8_t wide[SIDE * WIDE], middle[SIDE * SIDE], classes[SIDE * WIDE];
    qn_batch batch[2];
    qn_loader *loader[2];
    qn_dataset *dataset[2];
    qn_image_params params = {.channels = 1, .mask = "_m", .classes = 256};
    for (int i = 0; i < SIDE * WIDE; i++) {
        wide[i] = value_of(3, i);
        classes[i] = value_of(4, i);
    }
    put_folder(scratch, "wide");
    put_folder(scratch, "middle");
    for (int mask = 0; mask < 2; mask++) {
        for (int i = 0; i < SIDE * SIDE; i++)
            middle[i] = (mask ? classes : wide)[i / SIDE * WIDE + LEFT + i % SIDE];
        png_put(scratch, mask ? "wide/a_m.png" : "wide/a.png", WIDE, SIDE, &(struct png_form){0},
                mask ? classes : wide);
        png_put(scratch, mask ? "middle/a_m.png" : "middle/a.png", SIDE, SIDE,
                &(struct png_form){0}, middle);
    }
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s", scratch_path(scratch, i ? "middle" : "wide"));
        params.path = path;
        params.log = scratch->log;
        params.random_resized_crop = !i;
        params.crop[0] = i ? 0 : 5;
        params.crop[1] = i ? 0 : 6;
        params.size[0] = i ? 5 : 0;
        params.size[1] = i ? 6 : 0;
        params.scale[0] = params.scale[1] = i ? 0 : 1;
        params.ratio[0] = params.ratio[1] = i ? 0 : 1;
        assert_int_equal(qn_dataset_open_images(&dataset[i], &params), QN_OK);
        loader[i] = open_loader(scratch, dataset[i], 1, 0, 1, true);
        assert_int_equal(qn_loader_next(loader[i], 1, &batch[i]), QN_OK);
    }
    assert_memory_equal(rows_of(&batch[0], "images"), rows_of(&batch[1], "images"), 30);
    assert_memory_equal(rows_of(&batch[0], "labels"), rows_of(&batch[1], "labels"), 30);
    for (int i = 0; i < 2; i++) {
        qn_loader_close(&loader[i]);
        qn_dataset_close(&dataset[i]);
    }
}

/* With one sample every position is an epoch: its looks change from one to the next. */
static void epochs_differ(void **state)
{
    struct scratch *scratch = *state;
    enum { COUNT = 40, IMAGE = 3 * 3 * 3 };
    static uint8_t images[COUNT * IMAGE];
    const uint8_t mask[PIXELS] = {0};
    put(scratch, "x.png", 1);
    png_put(scratch, "x_m.png", W, H, &(struct png_form){0}, mask);
    qn_dataset *dataset = open_images(
        scratch,
        (qn_image_params){
            .crop = {3, 3}, .random_crop = true, .flip = true, .mask = "_m", .classes = 1});
    collect(scratch, dataset, 5, 0, COUNT, 8, images);
    int equal = 0;
    for (int i = 1; i < COUNT; i++)
        equal += memcmp(images, images + i * IMAGE, IMAGE) == 0;
    assert_in_range(equal, 0, 8); /* 24 looks, as likely as each other */
    qn_dataset_close(&dataset);
}

/* Masks go where their images go: the grey of a pixel is ten times its class. */
static void masks_follow_their_images(void **state)
{
    struct scratch *scratch = *state;
    /* As they are, resized, turned by any angle, in parts. */
    enum { PLAIN, RESIZED, TURNED, PARTS, WAYS };
    static const int sizes[WAYS][2] = {[RESIZED] = {15, 18}, [TURNED] = {15, 18}};
    uint8_t mask[PIXELS], grey[PIXELS];
    for (int n = 0; n < 5; n++) {
        char name[32];
        for (int i = 0; i < PIXELS; i++) {
            mask[i] = value_of(n, i) % 7;
            grey[i] = (uint8_t)(10 * mask[i]);
        }
        snprintf(name, sizeof name, "%d.jpg", n);
        png_put(scratch, name, W, H, &(struct png_form){0}, grey);
        snprintf(name, sizeof name, "%d_mask.png", n);
        png_put(scratch, name, W, H, &(struct png_form){0}, mask);
    }
    for (int s = 0; s < WAYS; s++) {
        qn_batch batch;
        qn_image_params params = {.channels = 1,
                                  .random_crop = s != PARTS,
                                  .random_resized_crop = s == PARTS,
                                  .flip = true,
                                  .degrees = s == TURNED ? 180 : 0,
                                  .mask = "_mask",
                                  .classes = 7};
        memcpy(params.size, sizes[s], sizeof params.size);
        params.crop[0] = params.crop[1] = s ? 9 : 3;
        int64_t plane = params.crop[0] * params.crop[1];
        qn_dataset *dataset = open_images(scratch, params);
        const qn_column *labels = qn_dataset_column(dataset, "labels");
        assert_int_equal(qn_dataset_describe(dataset)->count, 5);
        assert_int_equal(labels->dtype, QN_U8);
        assert_int_equal(labels->shape.rank, 2);
        assert_int_equal(qn_column_bytes(labels), plane);
        assert_int_equal(labels->classes, 7);
        assert_null(labels->data);
        assert_null(labels->class_names);
        qn_loader *loader = open_loader(scratch, dataset, 2, 0, 50, false);
        assert_int_equal(qn_loader_next(loader, 50, &batch), QN_OK);
        const uint8_t *greys = rows_of(&batch, "images"), *masks = rows_of(&batch, "labels");
        int far = 0;
        for (int64_t i = 0; i < 50 * plane; i++)
            far += abs(greys[i] - 10 * masks[i]) > (s == PLAIN ? 0 : 20);
        assert_in_range(far, 0, s ? 50 * plane / 6 : 0); /* a third of them blurred by the size */
        qn_loader_close(&loader);
        qn_dataset_close(&dataset);
    }
}

/* Twice as large and back each pixel is itself; what was cut off is 0. */
static void masks_go_back_to_their_pictures(void **state)
{
    struct scratch *scratch = *state;
    uint8_t mask[PIXELS], back[PIXELS];
    qn_image_params params = {.channels = 1, .size = {2 * H, 2 * W}, .mask = "_mask", .classes = 8};
    int size[2] = {0, 0};
    qn_batch batch;
    for (int i = 0; i < PIXELS; i++)
        mask[i] = (uint8_t)(1 + value_of(3, i) % 7);
    png_put(scratch, "0.png", W, H, &(struct png_form){0}, mask);
    png_put(scratch, "0_mask.png", W, H, &(struct png_form){0}, mask);
    for (int cut = 0; cut < 2; cut++) {
        params.crop[0] = cut * 6;
        params.crop[1] = cut * 8;
        qn_dataset *dataset = open_images(scratch, params);
        qn_loader *loader = open_loader(scratch, dataset, 1, 0, 1, true);
        assert_int_equal(qn_loader_next(loader, 1, &batch), QN_OK);
        assert_true(qn_image_size(dataset, 0, size));
        assert_int_equal(size[0], H);
        assert_int_equal(size[1], W);
        assert_int_equal(qn_image_restore_mask(dataset, 0, rows_of(&batch, "labels"), back, NULL),
                         QN_OK);
        for (int i = 0; i < PIXELS; i++) {
            const bool outside =
                cut && (i / W == 0 || i / W == H - 1 || i % W == 0 || i % W == W - 1);
            assert_int_equal(back[i], outside ? 0 : mask[i]);
        }
        assert_false(qn_image_size(dataset, 1, size));
        assert_int_equal(qn_image_restore_mask(dataset, -1, mask, back, NULL), QN_ERR_ARGUMENT);
        qn_loader_close(&loader);
        qn_dataset_close(&dataset);
    }
    params.flip = true;
    qn_dataset *random = open_images(scratch, params);
    assert_int_equal(qn_image_restore_mask(random, 0, mask, back, &scratch->log), QN_ERR_ARGUMENT);
    scratch_said(scratch, "not true: ", "flip");
    qn_dataset_close(&random);
}

/* Of a camera that was held upright, image and mask: rows are 3 x 2 in the files, 2 x 3 here. The
 * mask lies otherwise than the image, and both fit. */
static void pictures_are_upright(void **state)
{
    struct scratch *scratch = *state;
    static const uint8_t grey[] = {0, 40, 80, 120, 160, 200}, mask[] = {2, 5, 1, 4, 0, 3};
    qn_batch batch;
    png_put(scratch, "a.png", 3, 2, &(struct png_form){0}, grey);
    png_add_exif(scratch, "a.png", 6, false);
    png_put(scratch, "a_m.png", 2, 3, &(struct png_form){0}, mask);
    png_add_exif(scratch, "a_m.png", 4, true);
    qn_dataset *dataset =
        open_images(scratch, (qn_image_params){.channels = 1, .mask = "_m", .classes = 6});
    qn_loader *loader = open_loader(scratch, dataset, 1, 0, 1, true);
    assert_int_equal(qn_loader_next(loader, 1, &batch), QN_OK);
    assert_memory_equal(rows_of(&batch, "images"), ((const uint8_t[]){120, 0, 160, 40, 200, 80}),
                        6);
    assert_memory_equal(rows_of(&batch, "labels"), ((const uint8_t[]){0, 3, 1, 4, 2, 5}), 6);
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void folders_that_do_not_fit_are_refused(void **state)
{
    struct scratch *scratch = *state;
    const qn_image_params plain = {0};
    refuse(scratch, plain, scratch->folder, "holds no folder of a class");
    put_folder(scratch, "a");
    refuse(scratch, plain, "/a: ", "holds no image (.png, .jpg, .jpeg)");
    put(scratch, "a/1.png", 1);
    refuse(scratch, plain, scratch->folder, "holds the folder of one class alone: a");
    put_folder(scratch, "b");
    scratch_put(scratch, "b/text.png", "a text", 6);
    refuse(scratch, plain, "/b/text.png: ", "neither a PNG nor a JPEG file");
    put_sized(scratch, "b/text.png", 1, H + 1, W, PNG_COLOR_TYPE_RGB);
    refuse(scratch, plain, "/b/text.png: is 6 high and 6 wide, but ",
           "/a/1.png 5 high and 6 wide: set data.size or data.crop");
    refuse(scratch, (qn_image_params){.crop = {6, 6}}, "/a/1.png: is 5 high and 6 wide",
           "less than the crop of 6,6");
    qn_dataset *dataset = open_images(scratch, (qn_image_params){.size = {2, 2}});
    qn_dataset_close(&dataset);
    put_folder(scratch, "b/more");
    refuse(scratch, plain, "/b/more: ", "a folder among images");
    assert_int_equal(rmdir(scratch_path(scratch, "b/more")), 0);
    put(scratch, "c.png", 1);
    refuse(scratch, plain, "/c.png: ", "an image outside the folders of classes");
}

static void masks_that_do_not_fit_are_refused(void **state)
{
    struct scratch *scratch = *state;
    const qn_image_params params = {.mask = "_m", .classes = 3};
    qn_dataset *dataset = NULL;
    refuse(scratch, params, scratch->folder, "holds no image");
    put(scratch, "x.png", 1);
    qn_image_params missing = params;
    missing.log = scratch->log;
    missing.path = scratch->folder;
    assert_int_equal(qn_dataset_open_images(&dataset, &missing), QN_ERR_IO);
    scratch_said(scratch, "/x_m.png: ", "No such file");
    put_sized(scratch, "x_m.png", 1, H, W - 1, PNG_COLOR_TYPE_GRAY);
    refuse(scratch, params, "/x_m.png: is 5 high and 5 wide", "but its image is 5 high and 6 wide");
    put(scratch, "x_m.png", 1);
    refuse(scratch, params, "/x_m.png: ", "a mask is a PNG, grey or of a palette");
    put_folder(scratch, "more");
    refuse(scratch, params, "/more: ", "a folder among images");
}

/* Files and folders in the order in which they are named, files of a folder by their names, masks
 * left out; parts name the files of the whole. */
static void images_without_labels_have_names(void **state)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {"/owl/b.png",   "/Bee/z.png",     "/cat/1.PNG",
                                        "/cat/10.jpeg", "/cat/2.jpg",     "/owl/a.png",
                                        "/owl/b.png",   "/owl/deep/x.png"};
    static const int seeds[] = {5, 0, 1, 2, 3, 4, 5, 7};
    enum { COUNT = sizeof seeds / sizeof *seeds };
    char file[512];
    const char *const files[] = {file, scratch->folder};
    put_classes(scratch);
    put_folder(scratch, "owl/deep");
    put(scratch, "owl/deep/x.png", 7);
    put(scratch, "owl/deep/x_m.png", 8);
    snprintf(file, sizeof file, "%s%s", scratch->folder, names[0]);
    qn_dataset *dataset = NULL;
    const qn_image_params params = {
        .log = scratch->log, .files = files, .n_files = 2, .mask = "_m"};
    assert_int_equal(qn_dataset_open_images(&dataset, &params), QN_OK);
    assert_int_equal(qn_dataset_describe(dataset)->count, COUNT);
    assert_int_equal(qn_dataset_describe(dataset)->n_columns, 1);
    qn_loader *loader = open_loader(scratch, dataset, 1, 0, COUNT, true);
    qn_batch batch;
    assert_int_equal(qn_loader_next(loader, COUNT, &batch), QN_OK);
    for (int i = 0; i < COUNT; i++) {
        const char *path = qn_dataset_sample_name(dataset, i);
        assert_string_equal(path + strlen(scratch->folder), names[i]);
        assert_int_equal(rows_of(&batch, "images")[i * 3 * PIXELS + 1], value_of(seeds[i], 3));
    }
    assert_null(qn_dataset_sample_name(dataset, COUNT));
    assert_null(qn_dataset_sample_name(dataset, -1));
    qn_loader_close(&loader);
    qn_dataset *part = NULL;
    const qn_part_params parts = {
        .whole = dataset, .fraction = 0.5, .seed = 1, .split = QN_SPLIT_TEST};
    assert_int_equal(qn_dataset_part(&part, &parts), QN_OK);
    int found = 0;
    for (int i = 0; i < COUNT; i++)
        found += qn_dataset_sample_name(dataset, i) == qn_dataset_sample_name(part, found);
    assert_int_equal(found, COUNT / 2);
    qn_dataset_close(&part);
    qn_dataset_close(&dataset);
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    struct scratch *scratch = *state;
    char file[512];
    const char *const files[] = {file};
    qn_image_params params = {.log = scratch->log, .files = files, .n_files = 1};
    qn_dataset *dataset = NULL;
    snprintf(file, sizeof file, "%s/none.png", scratch->folder);
    assert_int_equal(qn_dataset_open_images(&dataset, &params), QN_ERR_IO);
    scratch_said(scratch, "/none.png: ", "No such file");
    put_folder(scratch, "empty");
    snprintf(file, sizeof file, "%s/empty", scratch->folder);
    assert_int_equal(qn_dataset_open_images(&dataset, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "/empty: ", "holds no image");
    put(scratch, "empty/x.png", 1);
    assert_int_equal(symlink(".", scratch_path(scratch, "empty/again")), 0);
    assert_int_equal(qn_dataset_open_images(&dataset, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "/empty/again/again", "folders within folders, more than 32 deep");
    assert_null(dataset);
}

/* What is found while loading is told in the cycle that it belongs to, again and again. */
static void files_that_break_are_told(void **state)
{
    struct scratch *scratch = *state;
    uint8_t masks[3][PIXELS] = {0};
    qn_batch batch;
    masks[2][2 * W + 3] = 9;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.png", i);
        put(scratch, name, i);
        snprintf(name, sizeof name, "%d_m.png", i);
        png_put(scratch, name, W, H, &(struct png_form){0}, masks[i]);
    }
    qn_dataset *dataset = open_images(scratch, (qn_image_params){.mask = "_m", .classes = 9});
    qn_loader *loader = open_loader(scratch, dataset, 1, 0, 1, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qn_loader_next(loader, 1, &batch), QN_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qn_loader_next(loader, 1, &batch), QN_ERR_FORMAT);
        scratch_said(scratch, "/2_m.png: ", "class 9 in row 2, column 3, but there are 9 classes");
        assert_non_null(strstr(qn_last_error(), "class 9 in row 2")); /* not on the worker alone */
        assert_int_equal(qn_loader_position(loader), 2);
    }
    qn_loader_close(&loader);
    assert_int_equal(truncate(scratch_path(scratch, "0.png"), 60), 0);
    loader = open_loader(scratch, dataset, 1, 0, 3, true);
    assert_int_equal(qn_loader_next(loader, 3, &batch), QN_ERR_FORMAT);
    scratch_said(scratch, "/0.png: ", "");
    assert_int_equal(unlink(scratch_path(scratch, "0.png")), 0);
    assert_int_equal(qn_loader_next(loader, 1, &batch), QN_ERR_IO);
    scratch_said(scratch, "/0.png: ", "No such file");
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void arguments_are_checked(void **state)
{
    struct scratch *scratch = *state;
    const qn_image_params wrong[] = {
        {.path = NULL},
        {.path = "x", .channels = 2},
        {.path = "x", .size = {0, 3}},
        {.path = "x", .size = {-1, 3}},
        {.path = "x", .crop = {3, 0}},
        {.path = "x", .crop = {1 << 30, 3}},
        {.path = "x", .random_resized_crop = true},
        {.path = "x", .crop = {3, 3}, .random_resized_crop = true, .random_crop = true},
        {.path = "x", .scale = {0.5, 1.5}},
        {.path = "x", .scale = {0, 0.5}},
        {.path = "x", .ratio = {2, 1}},
        {.path = "x", .degrees = -1},
        {.path = "x", .degrees = NAN},
        {.path = "x", .contrast = INFINITY},
        {.path = "x", .hue = 0.6},
        {.path = "x", .mask = "_m"},
        {.files = (const char *const[]){"x"}},
        {.path = "x", .files = (const char *const[]){"x"}, .n_files = 1},
        {.path = "x", .mask = "_m", .classes = 257},
    };
    qn_dataset *dataset = NULL;
    (void)scratch;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(qn_dataset_open_images(&dataset, &wrong[i]), QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_open_images(NULL, &wrong[1]), QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_open_images(&dataset, NULL), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(classes_are_folders),
        WITH_SCRATCH(the_checksum_tells_folders_apart),
        WITH_SCRATCH(cycles_change_no_sample),
        WITH_SCRATCH(every_change_is_made),
        WITH_SCRATCH(parts_are_resized),
        WITH_SCRATCH(epochs_differ),
        WITH_SCRATCH(masks_follow_their_images),
        WITH_SCRATCH(masks_go_back_to_their_pictures),
        WITH_SCRATCH(pictures_are_upright),
        WITH_SCRATCH(folders_that_do_not_fit_are_refused),
        WITH_SCRATCH(masks_that_do_not_fit_are_refused),
        WITH_SCRATCH(images_without_labels_have_names),
        WITH_SCRATCH(lists_that_do_not_fit_are_refused),
        WITH_SCRATCH(files_that_break_are_told),
        WITH_SCRATCH(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
