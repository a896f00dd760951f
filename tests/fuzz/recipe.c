/* SPDX-License-Identifier: MIT
 *
 * Recipes: INI text.
 */
#include "fuzz.h"
#include "recipe.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct failure failure;
    static struct recipe recipe;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = 0;
    recipe = (struct recipe){.count = 0};
    recipe_parse(&recipe, text, "fuzz", &failure);
    free(text);
    return 0;
}
