/* SPDX-License-Identifier: MIT
 *
 * config.json of Hugging Face: what is read can be put into a recipe, and written and read again.
 */
#include "config.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const struct config *config)
{
    struct failure failure = FAILURE_NONE;
    struct config again = {0};
    char *text = config_text(config);
    if (!text || config_read(&again, text, "fuzz", &failure) != CODE_DONE ||
        strcmp(again.model, config->model) != 0)
        abort();
    const double *read = &again.layers, *was = &config->layers;
    for (; read <= &again.eps; read++, was++)
        if (*read != *was)
            abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct recipe recipe;
    struct failure failure = FAILURE_NONE;
    struct config config;
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    if (config_read(&config, text, "fuzz", &failure) == CODE_DONE) {
        check_text(&config);
        recipe.count = 0;
        if (config_give(&config, &recipe, "fuzz", &failure) != CODE_DONE)
            abort();
    }
    free(text);
    return 0;
}
