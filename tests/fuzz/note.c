/* SPDX-License-Identifier: MIT
 *
 * The note of a checkpoint: a recipe as JSON, with a section more, whose state is gone on from.
 */
#include "note.h"
#include "fuzz.h"
#include "settings.h"

#include <math.h>
#include <stdlib.h>

static void check_features(const char *text)
{
    struct failure failure = FAILURE_NONE;
    struct features features;
    if (note_features(&features, text, "fuzz", &failure) == CODE_DONE)
        for (int64_t i = 0; i < features.count; i++)
            if (!*features.name[i] || !isfinite(features.mean[i]) || !(features.deviation[i] > 0))
                abort();
    features_free(&features);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct recipe recipe = {.resumed = true};
    struct failure failure = FAILURE_NONE;
    struct settings settings;
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    if (note_read(&recipe, text, "fuzz", &failure) == CODE_DONE &&
        settings_read(&settings, &recipe, &failure) == CODE_DONE) {
        struct adaptive *state = &settings.train.adaptive;
        if (qn_batch_adapt(&state->batch, &state->kept) < 0)
            abort();
    }
    check_features(text);
    free(text);
    return 0;
}
