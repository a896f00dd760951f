/* SPDX-License-Identifier: MIT
 *
 * Recipes: INI text, and what its keys mean. A checkpoint keeps them as they are.
 */
#include "fuzz.h"
#include "note.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

/* The same keys and values come back. */
static void check_note(const struct recipe *recipe)
{
    static struct recipe again;
    struct failure failure = FAILURE_NONE;
    char *text = note_text(recipe, NULL, NULL);
    if (!text || note_read(&again, text, "fuzz", &failure) != CODE_DONE ||
        again.count != recipe->count)
        abort();
    for (int i = 0; i < recipe->count; i++) {
        const struct recipe_entry *entry = &recipe->entries[i];
        const struct recipe_entry *other = recipe_find(&again, entry->section, entry->key);
        if (!other || strcmp(other->value, entry->value) != 0)
            abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct recipe recipe;
    struct failure failure = FAILURE_NONE;
    struct settings settings;
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    if (recipe_parse(&recipe, text, "fuzz", &failure) == CODE_DONE) {
        check_note(&recipe);
        settings_read(&settings, &recipe, &failure);
    }
    free(text);
    return 0;
}
