/* SPDX-License-Identifier: MIT
 *
 * A key of recipes: its place in the settings and how its value is read.
 */
#ifndef QUERN_TOOL_KEY_H
#define QUERN_TOOL_KEY_H

#include <stddef.h>
#include <stdint.h>

struct key;

/* Reads the value `text` to its place; gives NULL, or the reason why it is none. */
typedef const char *key_read(const struct key *key, const char *text, void *to);

struct key {
    const char *section, *name;
    key_read *read;
    size_t offset;            /* of its place in the settings */
    double least, most;       /* of a number; `most` 0: without a range */
    const char *const *words; /* of a word, or the units of a number; ended by NULL */
    const char *help;
};

/* The most updates, and the largest batch, that a recipe may name. */
#define KEY_MOST_UPDATES (INT64_C(1) << 40)
#define KEY_MOST_BATCH (1 << 24)

/* What a key may take, each with the type of its place. */
key_read key_text;        /* const char * */
key_read key_count;       /* int64_t: a whole number in [least, most] */
key_read key_size;        /* int64_t: bytes */
key_read key_switch;      /* bool */
key_read key_real;        /* double: in [least, most) as f32, which it becomes on the device */
key_read key_positive;    /* double: above 0 and below `most` */
key_read key_within;      /* double: in [least, most] */
key_read key_span;        /* double[2]: a least and a most above `least`, up to `most` */
key_read key_end;         /* double, of a schedule, where 0 is the default: a 0 becomes -1 */
key_read key_warmup;      /* double: a fraction, or a whole number of updates; 0 as in key_end */
key_read key_optimizer;   /* const char *: the name of an optimizer */
key_read key_word;        /* an enum as large as an int: the index of the word is its value */
key_read key_channels;    /* struct channel_values */
key_read key_deviation;   /* struct channel_values, each above 0 */
key_read key_shape;       /* int64_t[3]: channels, height, width */
key_read key_lengths;     /* struct lengths */
key_read key_side;        /* int[2]: height and width, or the shorter side and 0 */
key_read key_square;      /* int[2]: height and width; one number is both */
key_read key_batch;       /* qn_batch_schedule: one size, or without steps for "adaptive" */
key_read key_batches;     /* qn_batch_schedule */
key_read key_adaptive;    /* struct adaptive: the state that a checkpoint keeps */
key_read key_improvement; /* qn_improvement: the same */
key_read key_best_score;  /* qn_improvement: its best alone, as older checkpoints have it */
key_read key_factors;     /* const char *: a list for value_factor */
key_read key_interval; /* struct interval; the first of the words is the unit where none is given */
key_read key_micro_batch; /* int64_t: 0 for "auto" */
key_read key_recompute;   /* struct memory_settings: its `recompute` and `chosen` */
key_read key_storage;     /* qn_dtype */

/* What follows the reason of a refused value: the words of the key, or the range of its numbers. */
enum { KEY_RANGE_BYTES = 128 };
const char *key_range(const struct key *key, char text[KEY_RANGE_BYTES]);

/* Appends the names of all optimizers, separated by commas, to a text in `room` bytes. */
void key_add_optimizers(char *text, size_t room);

#endif
