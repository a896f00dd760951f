/* SPDX-License-Identifier: MIT
 *
 * Data as named columns: datasets from files, from arrays and from a function of the caller's, and
 * the loader that puts their samples in a seeded random order and has the next cycles ready.
 *
 *     const qn_column columns[] = {{.name = "x", .dtype = QN_F32, .shape = {1, {2}}, .data = x},
 *                                  {.name = "y", .dtype = QN_I32, .data = y, .classes = 2}};
 *     const qn_array_params arrays = {.count = 512, .n_columns = 2, .columns = columns};
 *     qn_dataset_from_arrays(&dataset, &arrays);
 *     qn_loader_open(&loader, dataset, &(qn_loader_params){.seed = 1, .max_samples = 64});
 *     for (...) {
 *         qn_loader_next(loader, 64, &batch);
 *         qn_cycle cycle = {.samples = 64, .lr = 0.1, .fetch = qn_batch_fetch, .user = &batch};
 *         qn_trainer_step(trainer, &cycle, NULL);
 *     }
 */
#ifndef QUERN_DATA_H
#define QUERN_DATA_H

#include <quern/graph.h>
#include <quern/text.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- columns --- */

enum { QN_MAX_COLUMNS = 16 };

/* What is known of every sample under one name: its image, its label, its tokens. */
typedef struct qn_column {
    const char *name; /* "images": the input of a graph that the column fills; 1 to 100 bytes */
    qn_dtype dtype;
    qn_shape shape;                 /* of one row: {3, {3, 32, 32}}; zeroed: one number */
    int64_t classes;                /* rows are numbers of classes below this; 0: they are not */
    const char *const *class_names; /* (classes); NULL: they have none */
    const void *data;               /* (samples, shape); NULL: rows are read when they are due */
} qn_column;

/* Bytes of one row; 0 for NULL. */
QN_API int64_t qn_column_bytes(const qn_column *column);

/* --- datasets --- */

/* Samples under numbers from 0 on, each a row of every column.
 * Thread-safety: Safe; nothing changes after opening.
 * Lifetime: until qn_dataset_close; must outlive its loaders. */
typedef struct qn_dataset qn_dataset;

/* What is in a dataset. All of it is borrowed from the dataset. */
typedef struct qn_dataset_facts {
    int64_t count; /* samples, at least 1 */
    int n_columns;
    const qn_column *columns; /* (n_columns) */
} qn_dataset_facts;

/* Borrowed, valid while the dataset is open; a column that is not there: NULL. */
QN_API const qn_dataset_facts *qn_dataset_describe(const qn_dataset *dataset);
QN_API const qn_column *qn_dataset_column(const qn_dataset *dataset, const char *name);
/* The file of a sample that has one of its own, as an image has; NULL: it has none. Borrowed. */
QN_API const char *qn_dataset_sample_name(const qn_dataset *dataset, int64_t sample);
/* Whether every input of the graph has a column of its name, type and sizes (those of 1 aside; n
 * times the batch is a size n of the row). QN_ERR_SHAPE: the log names the first that has not.
 * `log` may be NULL. */
QN_API qn_status qn_dataset_fits(const qn_dataset *dataset, const qn_graph *graph,
                                 const qn_log *log);
/* Rows of the column that has the input's name, of samples in any order, such as by the "ids" of
 * pairs: a qn_samples_fn (drift.h) whose user is a dataset. What is random about them is drawn with
 * the seed 0, in epoch 0. QN_ERR_ARGUMENT: there is no such column or sample. */
QN_API qn_status qn_dataset_gather(void *dataset, const char *input, const int32_t *samples,
                                   int64_t count, void *rows);
/* CRC-32 of all data, column after column; of a part, of that of the whole and the samples'
 * numbers; of pairs, of those of both and of the negatives; of folders, of the names and sizes of
 * files and the labels; of tokens, of the file's size, of 64 pages of 4096 bytes spread over it,
 * and of what becomes samples; of a function, of the count and the columns' names, types and
 * shapes: tells two datasets apart. */
QN_API uint32_t qn_dataset_checksum(const qn_dataset *dataset);
/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_dataset_close(qn_dataset **dataset);

/* Rows in host memory. */
typedef struct qn_array_params {
    qn_log log;
    int64_t count;
    int n_columns; /* 1 to QN_MAX_COLUMNS */
    const qn_column *columns;
} qn_array_params;

/* Borrows the columns' data, which must stay as it is until qn_dataset_close; copies the rest.
 * QN_ERR_ARGUMENT: a column has no data, its type or shape cannot be, two have one name. */
QN_API qn_status qn_dataset_from_arrays(qn_dataset **dataset, const qn_array_params *params);

/* One sample as it is wanted. What is random about its rows (crops, noise) is a function of these
 * three numbers, so that neither cycles nor threads change it. */
typedef struct qn_draw {
    uint64_t seed;         /* of the loader */
    int64_t epoch, sample; /* from 0 */
} qn_draw;

/* Writes the rows of samples draws[0] .. draws[count - 1] for every column: those of column c one
 * after another to rows[c]. Whatever it returns but QN_OK is what qn_loader_next gives.
 * Thread-safety: called on the thread of a loader, one call at a time for each loader; the loaders
 * of one dataset call it at the same time. */
typedef qn_status (*qn_rows_fn)(void *user, const qn_draw *draws, int64_t count, void *const *rows);

/* Rows that a function makes. */
typedef struct qn_function_params {
    qn_log log;
    int64_t count;
    int n_columns;            /* 1 to QN_MAX_COLUMNS */
    const qn_column *columns; /* without data */
    qn_rows_fn fn;
    void *user;
} qn_function_params;

/* Copies the columns. `user` must stay until qn_dataset_close. QN_ERR_ARGUMENT as above. */
QN_API qn_status qn_dataset_from_function(qn_dataset **dataset, const qn_function_params *params);

typedef enum qn_split {
    QN_SPLIT_TRAIN,
    QN_SPLIT_TEST,
} qn_split;

/* Some of the samples of another dataset, drawn at random: a part to evaluate that the training
 * does not see (random_split of PyTorch). */
typedef struct qn_part_params {
    qn_log log;
    const qn_dataset *whole; /* borrowed: must outlive the part */
    double fraction; /* above 0, below 1: of the samples, to the nearest, in the test split */
    uint64_t seed;   /* the same one gives the same parts */
    qn_split split;  /* the fraction, or all else */
} qn_part_params;

/* Samples keep their order and, in what is random about their rows, their numbers in the whole.
 * QN_ERR_ARGUMENT: a part would have no sample, or the fraction is out of range. */
QN_API qn_status qn_dataset_part(qn_dataset **dataset, const qn_part_params *params);

/* Images that are mixed with others, and labels with them: mixup (Zhang et al., "mixup: beyond
 * empirical risk minimization", ICLR 2018) and CutMix (Yun et al., ICCV 2019). */
typedef struct qn_mix_params {
    qn_log log;
    const qn_dataset *whole; /* borrowed: must outlive the mixture. Has "images" u8 (channels,
                                height, width) and "labels" i32, and no other columns */
    /* Above 0, up to 1000: the image becomes a share of its own and the rest of another image, */
    double mixup;
    /* or a rectangle of the other is put into it. The shares are from Beta(mixup, mixup) or
     * Beta(cutmix, cutmix). Both: one or the other, as likely. One of them is above 0. */
    double cutmix;
} qn_mix_params;

/* Every sample is mixed, with a share of its own, and the other one is any of the dataset, as it
 * looks in the same epoch: all of it is drawn (see qn_draw). Columns: "images" as mixed, "labels",
 * and of the other image "mixed_labels" i32 and "mixed_shares" f32, in [0, 1]: of a rectangle its
 * share of the pixels. The loss is (1 - share) times that of the label and share times that of the
 * other (qn_model_data.mixed). Two samples are read for each. QN_ERR_ARGUMENT: other columns, or a
 * number is out of range. */
QN_API qn_status qn_dataset_mix(qn_dataset **dataset, const qn_mix_params *params);

/* One half of the width of another dataset's images. */
typedef struct qn_half_params {
    qn_log log;
    const qn_dataset *whole; /* borrowed: must outlive the halves. Has "images" u8 (channels,
                                height, width), the width even */
    bool right;              /* the right halves; false: the left ones */
} qn_half_params;

/* The one column is "images" u8 (channels, height, width / 2), of the samples in their order. What
 * is random about an image is drawn for the whole of it, so that both halves fit together.
 * QN_ERR_ARGUMENT: there are no such images, or their width is odd. */
QN_API qn_status qn_dataset_halve(qn_dataset **dataset, const qn_half_params *params);

/* Samples of two datasets that belong together by their numbers, such as questions and answers:
 * what dual encoders learn to find for one another. All of them are borrowed and must outlive the
 * pairs; some may be one and the same. */
typedef struct qn_pair_params {
    qn_log log;
    const qn_dataset *queries, *passages; /* of as many samples, at most 2^31 - 1 */
    /* Passages that do not answer, though they look like it (hard negatives): samples i h to
     * i h + h - 1 are those of pair i, where h is how many times as many as pairs there are. Their
     * columns have the types and shapes of the passages' columns of the same names; NULL: none. */
    const qn_dataset *negatives;
    int n_columns;
    const char *const *columns; /* (n_columns) that are wanted, by their names among the pairs, such
                                   as "query.images"; NULL: all of them */
} qn_pair_params;

/* Column NAME of the queries becomes "query.NAME", of the passages "passage.NAME"; with negatives
 * such a row has one dimension more, of 1 + h: the passage that belongs to the query, then the
 * negatives. "ids" i32 is the number of the pair, which stays the same in every order and in parts
 * (qn_dataset_part). Both sides are drawn with the same numbers (see qn_draw), so that they match
 * where they are made of one image. Files of lines are best paired whole and divided as pairs:
 * files of different length then do not match. A sample's file is the query's. QN_ERR_ARGUMENT: the
 * numbers of samples do not match, the negatives do not fit, none has a column that is wanted, or
 * there are more than QN_MAX_COLUMNS; the log says which. */
QN_API qn_status qn_dataset_pair(qn_dataset **dataset, const qn_pair_params *params);

/* IDX files, the format of the MNIST family. */
typedef struct qn_dataset_params {
    qn_log log;
    const char *name;   /* "fashion-mnist": read from QN_DATA_DIR, else from the folder of the
                           distribution's package. Ignored when one of the following is set, save in
                           messages */
    const char *path;   /* a folder of IDX files under their usual names, such as
                           train-images-idx3-ubyte, t10k-labels-idx1-ubyte, with or without .gz */
    const char *images; /* or one pair of IDX files, both named here; `split` then says nothing */
    const char *labels;
    qn_split split;
    bool no_labels; /* `images` is all that is read: there is no column "labels" */
} qn_dataset_params;

/* Reads a pair of IDX files whole into host memory. Columns: "images" u8 (channels, height, width),
 * from a file of u8 of 3 dimensions (one channel) or 4 (samples, channels, height, width); "labels"
 * i32, from one of u8 or i32 of 1 dimension, whose classes are the largest label + 1. QN_ERR_IO: a
 * file is missing or not readable; QN_ERR_FORMAT: it is not what it should be, or the counts
 * differ. */
QN_API qn_status qn_dataset_open(qn_dataset **dataset, const qn_dataset_params *params);

/* How the PNG and JPEG files of a folder become images of one size. Pairs are height and width. */
typedef struct qn_image_params {
    qn_log log;
    const char *path; /* holds a folder of images for each class, or, with masks, the images */
    int channels;     /* 3: red, green, blue; 1: grey; 0: 3 */
    int size[2];      /* images are resized to it; width 0: the shorter side becomes the height, the
                         other follows in proportion; both 0: they stay as they are */
    int crop[2];      /* then this much is cut out; both 0: nothing is cut off */
    bool random_crop; /* anywhere, rather than from the middle */
    bool flip;        /* left and right change places, or do not */
    /* In the place of `size` and random_crop: a part of the image becomes as large as `crop`, which
     * it needs. `scale`, of the image's pixels, and `ratio`, of its width to its height, are the
     * least and the most. */
    bool random_resized_crop;
    double scale[2], ratio[2]; /* both 0: 0.08 to 1, and 3/4 to 4/3 */
    double degrees;            /* turned by an angle in [-degrees, degrees], at most 360 */
    /* Colours: factors in [max(0, 1 - x), 1 + x], the hue moves by [-hue, hue] of its circle, at
     * most 0.5. */
    double brightness, contrast, saturation, hue;
    const char *mask; /* "_mask": the file NAME_mask.png beside NAME.jpg holds the class of each of
                         its pixels, grey or as the index in a palette; NULL: no masks */
    int64_t classes;  /* with masks: how many there are, 1 to 256 */
    const char *const *files; /* (n_files) in place of `path`: files of images without labels, and
                                 folders of them however deep, where masks are left out */
    int64_t n_files;
} qn_image_params;

/* Opens a folder of images: files whose names end with .png, .jpg or .jpeg. Columns: "images" u8
 * (channels, height, width), "labels" i32 with the classes' names, or with masks u8 (height,
 * width); with `files` images alone, in the order of `files` and of the names in a folder. Classes
 * are the folders, counted from 0 in the order of their names' bytes. The header of every file is
 * read here, the rest by loaders. Images are resized bilinearly, over all pixels that one covers
 * where they shrink (as Pillow's BILINEAR, bit for bit), masks to the nearest pixel; the middle is
 * torchvision's. Then an image may be flipped, turned and change its colours, in this order.
 * Turning is bilinear, of masks to the nearest pixel, and what comes from outside is black, of
 * class 0. What is random is as torchvision's RandomCrop, RandomResizedCrop, RandomHorizontalFlip,
 * RandomRotation and ColorJitter have it, uniform in its range (the logarithm of `ratio`), and
 * drawn for each sample (see qn_draw). QN_ERR_IO: a file is not readable; QN_ERR_FORMAT: it is not
 * what it should be, or the images have different sizes in the end. */
QN_API qn_status qn_dataset_open_images(qn_dataset **dataset, const qn_image_params *params);
/* Height and width of the picture that a sample is made of, upright. False: there is none, or the
 * dataset is not one of qn_dataset_open_images. */
QN_API bool qn_image_size(const qn_dataset *dataset, int64_t sample, int size[2]);
/* A mask of a sample as the column "images" has it (height, width) becomes one of its picture
 * (qn_image_size): each pixel there is the nearest one's, and 0 outside of what was cut out.
 * QN_ERR_ARGUMENT: there is no picture, or what is cut out is random. */
QN_API qn_status qn_image_restore_mask(const qn_dataset *dataset, int64_t sample,
                                       const uint8_t *mask, uint8_t *restored, const qn_log *log);

/* What a file of tokens is. Numbers are unsigned and little-endian. */
typedef enum qn_token_type {
    QN_TOKEN_LLM_C, /* llm.c's .bin, whose header says the rest: u16 of GPT-2, u32 of Llama 3 */
    QN_TOKEN_U8,    /* every byte is a token: any file, such as text */
    QN_TOKEN_U16,   /* without a header */
    QN_TOKEN_U32,   /* the same */
} qn_token_type;

/* The label of a token that none is learned for: losses and metrics are told to ignore it. */
enum { QN_IGNORED_LABEL = -100 };

/* Lengths that the samples of one dataset may have. */
enum { QN_MAX_LENGTHS = 7 };

/* How a file of tokens becomes samples, of one length or of several. */
typedef struct qn_token_params {
    qn_log log;
    const char *path;
    const char *name; /* what messages call it; NULL: path */
    qn_token_type type;
    int64_t length;  /* tokens of a sample, at least 1 */
    int64_t stride;  /* tokens from one sample's first to the next one's; 0: length */
    int64_t tokens;  /* size of the vocabulary, below 2^31; 0: 256 of U8, of LLM_C 50257 (GPT-2) or
                        128256 (Llama 3); the others need it */
    double held_out; /* in [0, 1): this fraction of the tokens, the file's last, is the test split,
                        what comes before the training split; 0: that is the whole file */
    qn_split split;
    bool separate;     /* documents are learned apart: where a token is `separator`, which stands
                          between two, its label is QN_IGNORED_LABEL. What came before a separator
                          stays in view of attention */
    int64_t separator; /* a token */
    double mlm_probability; /* in [0, 1]; above 0: masked language modelling. Labels are not the
                               tokens that follow: each token but separators is chosen with this
                               probability (BERT: 0.15), its label is the token itself, all others
                               are QN_IGNORED_LABEL. In eight of ten cases the column "tokens" has
                               `mask_token` in its place, in one any token, in one the token. What
                               is chosen is drawn (see qn_draw) */
    int64_t mask_token;     /* a token */
    /* Samples of different length: with `n_lengths` lengths, which rise up to `length`, each
     * document is a sample, padded at its end to the shortest of them that holds it; what is longer
     * than all comes in parts. Needs `separate`, and no stride. */
    int n_lengths; /* 1 to QN_MAX_LENGTHS; 0: samples of one length */
    const int64_t *lengths;
} qn_token_params;

/* Opens a file of tokens of any size: a sample is read when it is due. Columns: "tokens" i32
 * (length) and "labels" i32 (length), the tokens that follow each of them; classes of both are the
 * vocabulary, labels may be QN_IGNORED_LABEL, too. A sample lies in its split with its last label
 * (of masked language modelling, its last token);
 * what is left at the end of a split for no whole sample is not used. Padding is the separator,
 * with QN_IGNORED_LABEL. Where samples have different lengths, there are the columns "lengths" i32,
 * tokens of a sample that are no padding, and "bucket" i32, the number of the length that holds
 * them, from 0; and, for every length but the last, such as 64, "tokens.64" and "labels.64" i32
 * (64), the beginnings of the same rows; the file is read once here. A token outside the
 * vocabulary is found when it is read: then the loader gives QN_ERR_FORMAT. QN_ERR_ARGUMENT: the
 * vocabulary's size is missing, the separator or the mask is not in it, or lengths do not rise;
 * QN_ERR_IO: the file is not readable; QN_ERR_FORMAT: it is not what it should be, or a split is
 * shorter than a sample. */
QN_API qn_status qn_dataset_open_tokens(qn_dataset **dataset, const qn_token_params *params);

/* How lines of JSON become samples of one length. */
typedef struct qn_json_line_params {
    qn_log log;
    const char *path;
    const char *text;              /* the field of a sample's text; NULL: "text" */
    const char *label;             /* the field of its class; NULL: nobody asks for it */
    const qn_tokenizer *tokenizer; /* borrowed until qn_dataset_close; NULL: bytes are tokens */
    int64_t length;                /* tokens of a row, at least 1 */
    double held_out;               /* in [0, 1): this fraction of the lines, the file's last, is the
                                      test split, what comes before the training split; 0: that is
                                      the whole file */
    qn_split split;
    int64_t classes;                /* of class_names */
    const char *const *class_names; /* (classes) that labels may name; NULL: those of the file */
    bool plain;                     /* lines are no JSON but the texts themselves, without labels */
} qn_json_line_params;

/* Opens a file of JSON lines, each an object with a text and a class, for models that tell the
 * class of a text. Labels are numbers from 0 on, or names of classes; these are counted in the
 * order of their bytes, over both splits. Columns: "tokens" i32 (length), whose classes are the
 * tokens that there are: what the text becomes with the tokenizer's frame, cut off at its end or
 * padded with zeros; "lengths" i32, the tokens that are no padding; with `label` "labels" i32 with
 * the classes' names, if they have any. All lines are looked at here and read again by loaders;
 * each takes 16 bytes of memory in between. QN_ERR_IO: the file is not readable; QN_ERR_FORMAT: as
 * of qn_json_lines_texts, a text is empty, a label is missing or no such, or a split is empty. A
 * text that becomes no token is found when it is read: then the loader gives QN_ERR_FORMAT. */
QN_API qn_status qn_dataset_open_json_lines(qn_dataset **dataset,
                                            const qn_json_line_params *params);

/* How a file of comma-separated values (RFC 4180) becomes samples. Columns are told by the names in
 * its first line, each of which is there once. */
typedef struct qn_csv_params {
    qn_log log;
    const char *path;
    int64_t n_features;
    const char *const *features; /* (n_features); NULL: all columns but the following */
    int64_t n_targets;           /* 0: none */
    const char *const *targets;  /* (n_targets) numbers that a model is to tell */
    bool binary;                 /* targets are 0 or 1: which of several classes a sample has */
    const char *label;           /* the class of a sample, in place of targets; NULL: none */
    double held_out;             /* in [0, 1): this fraction of the rows, the file's last, is the
                                    test split, what comes before the training split; 0: that is
                                    the whole file */
    qn_split split;
    int64_t classes;                /* of class_names */
    const char *const *class_names; /* (classes) that labels may be; NULL: those of the file */
    /* Features become (x - mean) / deviation. Both need `features`; NULL: they stay. */
    const float *mean, *deviation; /* (n_features), deviations above 0 */
} qn_csv_params;

/* Reads a CSV file into memory: features and targets as f32, wherever they are in a row. Columns:
 * "features" f32 (n_features) and, if they are asked for, "targets" f32 (n_targets), or "labels"
 * i32 with the classes' names, counted in the order of their bytes over both splits. Numbers have a
 * point, whatever the locale; blanks may be around them and the columns' names. Empty lines are
 * passed over. QN_ERR_IO: the file is not readable; QN_ERR_FORMAT: a row has more or fewer cells
 * than the first, a cell that is asked for is empty or no finite number, a quote does not end, two
 * columns have one name or none has one that is asked for, or a split is empty: the log says
 * `FILE: line 3: COLUMN: reason`. */
QN_API qn_status qn_dataset_open_csv(qn_dataset **dataset, const qn_csv_params *params);
/* The name of the column in the file behind each number of "features"; NULL: there is none, or the
 * dataset is not from such a file. Borrowed. */
QN_API const char *qn_csv_feature(const qn_dataset *dataset, int64_t index);

/* How arrays of NumPy's (.npy) become samples, of which the first dimension counts the samples. */
typedef struct qn_npy_params {
    qn_log log;
    const char *features; /* a file: (samples), (samples, numbers), or images (samples, height,
                             width) or (samples, channels, height, width) */
    const char *targets;  /* one of (samples) or (samples, targets): what a model is to tell, or */
    const char *labels;   /* one of (samples): classes from 0 on; both NULL: neither */
    bool binary;          /* targets are 0 or 1: which of several classes a sample has */
    double held_out;      /* in [0, 1): this fraction of the samples, the files' last, is the test
                             split, what comes before the training split; 0: that is the whole */
    qn_split split;
    int64_t n_features; /* numbers of a row; 0: as the file has them, which may be images */
    /* Rows become (x - mean) / deviation. Both need `n_features`; NULL: they stay. */
    const float *mean, *deviation; /* (n_features), deviations above 0 */
} qn_npy_params;

/* Reads npy files (versions 1.0 to 3.0, little-endian, rows first) into memory. Columns: "features"
 * f32 (numbers), or "images" (channels, height, width), u8 of a file of bytes, else f32; with
 * `targets` "targets" f32 (targets), with `labels` "labels" i32, whose classes are the largest
 * label of both splits + 1, at most 2^24. Files may be of f2, f4, f8, i1 to i8, u1 to u8 or b1,
 * those of labels not of floats. QN_ERR_IO: a file is not readable; QN_ERR_FORMAT: it is not what
 * it should be (Python's objects, big-endian, columns first, another length than its header says),
 * a number is not finite as f32, a label is no class, the files have different counts, or a split
 * is empty: the log says `FILE: field: reason`. */
QN_API qn_status qn_dataset_open_npy(qn_dataset **dataset, const qn_npy_params *params);

/* Mean and standard deviation of each number of a column of f32 over all samples, to standardise
 * them; both have room for a row. The deviation is that of these samples (not n - 1 of n), and 1
 * where they are all equal. QN_ERR_ARGUMENT: there is no such column. */
QN_API qn_status qn_dataset_moments(const qn_dataset *dataset, const char *column, float *mean,
                                    float *deviation, const qn_log *log);

/* --- batches --- */

/* The samples of one cycle; a caller with data of its own may fill one in. */
typedef struct qn_batch {
    int64_t position; /* of the first sample in the loader's stream */
    int64_t samples;
    int n_columns;
    const qn_column *columns; /* (n_columns), with data: `samples` rows each */
    int64_t before, after; /* so many of the first and of the last rows are there as room alone: a
                              loader with a range did not read them */
} qn_batch;

/* Whether the rows of samples first .. first + count - 1 are there. */
QN_API bool qn_batch_has(const qn_batch *batch, int64_t first, int64_t count);

/* NULL: the batch has no such column. */
QN_API const qn_column *qn_batch_column(const qn_batch *batch, const char *name);
/* A qn_fetch_fn whose user is a qn_batch: copies rows of the column that has the input's name.
 * QN_ERR_ARGUMENT: there is none, or not so many samples. The bytes of a row are the column's: that
 * they are the input's is what qn_dataset_fits tells. */
QN_API qn_status qn_batch_fetch(void *batch, const char *input, int64_t first, int64_t count,
                                void *rows);

/* A qn_cycle.choose whose user is a qn_batch, for programs with a graph for each length, the
 * shortest first: the largest number in the column "bucket" of these samples, so that the graph
 * holds all of them. 0 without such a column of i32; below 0: there are not so many samples. */
QN_API int qn_batch_choose(void *batch, int64_t first, int64_t count);

/* --- loaders --- */

/* Tells which of the `samples` samples of a cycle are to be read: *count, which may be 0, from
 * *first on. Called on the loader's thread, for cycles in any order. */
typedef void (*qn_range_fn)(void *user, int64_t samples, int64_t *first, int64_t *count);

typedef struct qn_loader_params {
    qn_log log;
    uint64_t seed;
    int64_t position;    /* samples already taken since the start of training */
    int64_t max_samples; /* of the largest cycle, at least 1; the first is prepared in this size */
    int cycles;          /* kept in memory, the one in use included: 2 to 64; 0: 2 */
    bool sequential;     /* every epoch in the order of the dataset rather than shuffled */
    /* Of a process that computes a part of each cycle: the others are not read. Order, and what is
     * random about rows, are those of the whole cycle. NULL: all are read. */
    qn_range_fn range;
    void *user; /* of `range` */
} qn_loader_params;

/* An endless stream of samples: epoch after epoch, each a permutation drawn from (seed, epoch),
 * without regard to where cycles end; within a cycle samples of different length come by their
 * bucket, the shortest first. What comes depends on dataset, seed, position and samples alone. A
 * thread gathers the next cycles while the last one is in use; all memory is made by
 * qn_loader_open, except what decoding a file takes. Thread-safety: Unsafe; one thread at a time.
 * Lifetime: until qn_loader_close. */
typedef struct qn_loader qn_loader;

/* Borrows `dataset`. */
QN_API qn_status qn_loader_open(qn_loader **loader, const qn_dataset *dataset,
                                const qn_loader_params *params);
/* The next `samples` samples, 1 to max_samples; waits until they are there. The rows are borrowed
 * until the next call or qn_loader_close. Cycles of one size are prepared ahead; a call with
 * another size waits for its own. QN_ERR_IO, QN_ERR_FORMAT, or what a qn_rows_fn returned: a sample
 * of this cycle cannot be read; QN_ERR_ARGUMENT: `range` gives samples that are none of it. The
 * position stays before it then. */
QN_API qn_status qn_loader_next(qn_loader *loader, int64_t samples, qn_batch *batch);
/* The position of the sample that comes next: what resuming needs. */
QN_API int64_t qn_loader_position(const qn_loader *loader);
/* The batch that qn_loader_next gave last, borrowed; NULL: there is none. */
QN_API const qn_batch *qn_loader_batch(const qn_loader *loader);
/* A qn_fetch_fn whose user is a loader and whose samples are numbered by its positions, for
 * qn_trainer_evaluate: where `first` is the loader's position, the next `count` samples become its
 * batch. A qn_result_fn finds the rows that belong to its own in qn_loader_batch, from first -
 * position on. */
QN_API qn_status qn_loader_fetch(void *loader, const char *input, int64_t first, int64_t count,
                                 void *rows);
/* Ends the thread, frees, sets to NULL; accepts a pointer to NULL. */
QN_API void qn_loader_close(qn_loader **loader);

#ifdef __cplusplus
}
#endif
#endif
