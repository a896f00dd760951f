/* SPDX-License-Identifier: MIT
 *
 * Files of named tensors in the safetensors format: an 8-byte length, a JSON header, the data.
 * Every file is untrusted: what does not hold together is refused with one line, `FILE: tensor
 * NAME: reason`, and a file under way never stands under its final name.
 */
#ifndef QUERN_IO_H
#define QUERN_IO_H

#include <quern/log.h>
#include <quern/tensor.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a tensor stands in files of others. */
typedef enum qn_layout_kind {
    QN_LAYOUT_TRANSPOSED, /* of two dimensions, which are swapped there */
    QN_LAYOUT_FIRST_ROWS, /* a file may have more rows than the model: loading takes the first ones,
                             where the other dimensions agree */
    QN_LAYOUT_SKIPPED,    /* the model has none; a file may, of any type, and it is not read */
    QN_LAYOUT_TIED,       /* the model has one tensor, `tied`, for this and another: a file may have
                             both, which must be equal, or either */
} qn_layout_kind;

typedef struct qn_layout_rule {
    const char *pattern; /* of names: `*` is any characters, dots included, `?` is one */
    qn_layout_kind kind;
    const char *tied; /* of QN_LAYOUT_TIED: the name that the model has */
} qn_layout_rule;

/* How a model's tensors stand in files of others, as far as it is not as the model has them: data
 * that each model keeps beside itself (qn_model_layout). For a name the first rule that matches
 * holds. */
typedef struct qn_layout {
    const char *name;   /* "huggingface" */
    const char *prefix; /* of the model's names; a file without any name that begins so leaves it
                           out. Saving writes it. NULL: none */
    const qn_layout_rule *rules;
    int count;
    const char *added; /* in front of every name in a file, which the model's names lack. NULL:
                          nothing */
} qn_layout;

/* The folder for files that would be made again: QN_CACHE_DIR, else quern/ in the user's cache
 * folder; made with mode 0700 if it is missing. False: there is to be none (""), or it cannot be
 * used, since it is another user's or others may write to it, or its name is not below `room`
 * bytes. Thread-safety: Safe. */
QN_API bool qn_cache_folder(char *path, size_t room);

/* One tensor of a file. */
typedef struct qn_tensors_entry {
    const char *name;
    const char *type; /* as the file writes it: "F32", "I64" */
    qn_dtype
        dtype; /* QN_DTYPE_NONE: a type of the format that this library does not compute with */
    qn_shape shape; /* rank 0: a scalar; dimensions may be 0 */
    int64_t offset; /* of the first byte, from the start of the file */
    int64_t bytes;
} qn_tensors_entry;

/* An open file for reading: its header is in memory, its data is read when asked for.
 * Thread-safety: Safe for reading, from any number of threads.
 * Lifetime: until qn_tensors_close; entries and metadata are borrowed from it. */
typedef struct qn_tensors qn_tensors;

/* Opens a file and checks its whole header: well-formed, names unique, types known, shapes that
 * equal the bytes, data without gap, overlap or rest. At most QN_MAX_DIMS dimensions and 16 MiB of
 * header. A path that ends in ".index.json" is the index of tensors in several files of its folder,
 * as Hugging Face writes it ("weight_map"): all of them are opened and are one. It must name every
 * tensor that they have, in one file each. QN_ERR_IO: not readable; QN_ERR_FORMAT: not what it
 * should be. `log` may be NULL and is copied. */
QN_API qn_status qn_tensors_open(qn_tensors **tensors, const char *path, const qn_log *log);
/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_tensors_close(qn_tensors **tensors);

/* The number of tensors, and one of them, in the order of their data. NULL when `index` is outside.
 */
QN_API int64_t qn_tensors_count(const qn_tensors *tensors);
QN_API const qn_tensors_entry *qn_tensors_at(const qn_tensors *tensors, int64_t index);
/* NULL when there is none of that name. */
QN_API const qn_tensors_entry *qn_tensors_find(const qn_tensors *tensors, const char *name);
/* The value of a key of the file's metadata; NULL when there is none. */
QN_API const char *qn_tensors_metadata(const qn_tensors *tensors, const char *key);

/* Reads `size` bytes of a tensor of this file (an entry that it gave), starting `at` bytes into it.
 * Values are little-endian, packed, slowest dimension first. */
QN_API qn_status qn_tensors_read(const qn_tensors *tensors, const qn_tensors_entry *entry,
                                 int64_t at, void *bytes, int64_t size);

/* One tensor to be written. */
typedef struct qn_tensors_item {
    const char *name; /* UTF-8, unique, not "__metadata__" */
    qn_dtype dtype;
    qn_shape shape; /* concrete */
} qn_tensors_item;

typedef struct qn_tensors_pair {
    const char *key, *value; /* UTF-8; keys unique */
} qn_tensors_pair;

typedef struct qn_tensors_params {
    qn_log log;
    const qn_tensors_item *items;
    int64_t count;
    const qn_tensors_pair *metadata;
    int64_t metadata_count;
    const qn_layout *layout; /* of qn_tensors_save: what is transposed in the file; items and bytes
                                are given as the model has them. NULL: nothing */
} qn_tensors_params;

/* A file being written, under a temporary name in the folder of its path.
 * Thread-safety: Unsafe.
 * Lifetime: until qn_tensors_commit or qn_tensors_discard. */
typedef struct qn_tensors_writer qn_tensors_writer;

/* Starts a file and writes its header. Copies what `params` points to. The data is laid out by size
 * of element, largest first, so that every tensor is aligned to its own element. */
QN_API qn_status qn_tensors_create(qn_tensors_writer **writer, const char *path,
                                   const qn_tensors_params *params);
/* Adds the next `size` bytes of item `index`. The items may come in any order, each in as many
 * parts as suits; the bytes of one item come in their own order. */
QN_API qn_status qn_tensors_write(qn_tensors_writer *writer, int64_t index, const void *bytes,
                                  int64_t size);
/* Checks that every item is complete, brings the file to the disk and gives it its name, replacing
 * what had it. On failure nothing of it remains and an older file stays. Either way frees the
 * writer and sets it to NULL. `crc`, of the whole file (CRC-32 as zlib's), and `bytes`, its size,
 * may be NULL. */
QN_API qn_status qn_tensors_commit(qn_tensors_writer **writer, uint32_t *crc, int64_t *bytes);
/* Removes what was written, frees, sets to NULL; accepts a pointer to NULL. */
QN_API void qn_tensors_discard(qn_tensors_writer **writer);

/* Gives the `size` bytes of item `index` that start `at` bytes into it; asked for in order, in
 * parts of at most 1 MiB. Items that the layout transposes are held in host memory whole. Whatever
 * it returns but QN_OK ends the writing. */
typedef qn_status (*qn_tensors_source_fn)(void *user, int64_t index, int64_t at, void *bytes,
                                          int64_t size);

/* Writes a whole file: qn_tensors_create, _write and _commit with the bytes that `source` gives. */
QN_API qn_status qn_tensors_save(const char *path, const qn_tensors_params *params,
                                 qn_tensors_source_fn source, void *user, uint32_t *crc,
                                 int64_t *bytes);

/* Patterns of the names of low-rank adapters' parameters (model.h): of the linear layer NAME they
 * are A (rank, in), NAME.lora_A.weight, and B (out, rank), NAME.lora_B.weight. */
#define QN_ADAPTERS "*.lora_A.weight,*.lora_B.weight"

/* Writes a whole file of all tensors of `file` but adapters, of which the product B A, times
 * `scale` (alpha / rank), is added to NAME.weight (out, in): summed in double, rounded to the type
 * that the weight has. `params` as in qn_tensors_save, items apart; may be NULL. QN_ERR_FORMAT: an
 * adapter has no other half or no weight, or does not fit it. */
QN_API qn_status qn_tensors_merge(const char *path, const qn_tensors_params *params,
                                  const qn_tensors *file, double scale);

#ifdef __cplusplus
}
#endif
#endif
