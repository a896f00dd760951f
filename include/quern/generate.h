/* SPDX-License-Identifier: MIT
 *
 * Continuing a text, token by token, with a model that has a cache of keys and values (model.h).
 *
 *     qn_generator_open(&generator, device, &params, NULL);
 *     qn_weights_load(qn_generator_trainer(generator), "weights.safetensors");
 *     qn_generator_feed(generator, prompt, count, logits);
 *     qn_sample(&token, logits, classes, &sampling, 0);
 *     qn_generator_feed(generator, &token, 1, logits);
 */
#ifndef QUERN_GENERATE_H
#define QUERN_GENERATE_H

#include <quern/model.h>
#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the next token is chosen. Zero means default. */
typedef struct qn_sampling {
    double temperature; /* logits are divided by it; 0: the token of the largest logit, of equal
                           ones the first */
    int64_t top_k;      /* only the so many most probable tokens; 0: all */
    double top_p;       /* only the most probable ones that have this much together, at least one
                           (Holtzman et al., "The curious case of neural text degeneration", 2020),
                           after top_k; 0 and 1: all */
    uint64_t seed;
} qn_sampling;

/* Chooses a token by the `count` logits. `number` counts the tokens chosen so far: the same seed
 * and number draw the same random number. Of tokens that are equally probable top_k and top_p take
 * the first. QN_ERR_ARGUMENT: something is out of range, or a logit is not finite; QN_ERR_MEMORY.
 * Thread-safety: Safe. */
QN_API qn_status qn_sample(int32_t *token, const float *logits, int64_t count,
                           const qn_sampling *sampling, uint64_t number);

/* A model on a device, and the text that it has seen.
 * Thread-safety: Unsafe. Lifetime: until qn_generator_close; the device must outlive it. */
typedef struct qn_generator qn_generator;

typedef struct qn_generator_params {
    qn_log log;
    const char *model; /* qn_model_name */
    /* The longest text and the number of tokens, as the model was trained; its `cache` is how many
     * tokens the text here can have, 0: `width`. */
    const qn_model_data *data;
    const qn_model_option *options;
    int n_options;
    qn_dtype storage; /* of parameters of rank 2 or more: QN_F32 (default), QN_F16 or QN_BF16; all
                         else is f32 */
    /* Budget, tuning, variants and cache folder are taken, the rest as zero. A prompt goes through
     * the network in parts of batch[0] tokens (0: 64) or, where the budget wants it, fewer. NULL:
     * all default. */
    const qn_plan_params *plan;
} qn_generator_params;

/* Makes a plan of two runs, "prompt" for several tokens at a time and "token" for one, which share
 * parameters and caches, and opens a trainer of it. Parameters are random until they are loaded
 * into qn_generator_trainer. Errors and *smallest as of qn_model_build, qn_plan_create_runs and
 * qn_trainer_open. */
QN_API qn_status qn_generator_open(qn_generator **generator, qn_device *device,
                                   const qn_generator_params *params, int64_t *smallest);
/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_generator_close(qn_generator **generator);

/* The text goes on with `count` tokens; `logits` (classes) receives those of the token after them.
 * Waits. QN_ERR_ARGUMENT: no tokens, a number that is no token, or more than there is room for:
 * then nothing changed. */
QN_API qn_status qn_generator_feed(qn_generator *generator, const int32_t *tokens, int64_t count,
                                   float *logits);
/* Tokens of the text so far, and how many it can have. */
QN_API int64_t qn_generator_length(const qn_generator *generator);
QN_API int64_t qn_generator_room(const qn_generator *generator);
/* Forgets the text. */
QN_API qn_status qn_generator_clear(qn_generator *generator);

/* Holds the parameters; borrowed. */
QN_API qn_trainer *qn_generator_trainer(qn_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
