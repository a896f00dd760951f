/* SPDX-License-Identifier: MIT
 *
 * adapter_config.json of PEFT: what a recipe takes from it stands in the note of a checkpoint,
 * which gives the same recipe again.
 */
#include "adapters.h"
#include "fuzz.h"
#include "note.h"

#include <stdlib.h>
#include <string.h>

static void check_note(const struct recipe *recipe)
{
    static struct recipe again;
    struct failure failure = FAILURE_NONE;
    char *note = note_text(recipe, NULL, NULL);
    if (!note || note_read(&again, note, "fuzz", &failure) != CODE_DONE)
        abort();
    for (int i = 0; i < recipe->count; i++) {
        const struct recipe_entry *entry = &recipe->entries[i];
        const struct recipe_entry *found = recipe_find(&again, entry->section, entry->key);
        if (!found || strcmp(found->value, entry->value) != 0)
            abort();
    }
    free(note);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct recipe recipe;
    struct failure failure = FAILURE_NONE;
    char *text = fuzz_text(bytes, size);
    if (!text)
        return 0;
    recipe.count = 0;
    if (adapters_give(text, NULL, &recipe, "fuzz", &failure) == CODE_DONE)
        check_note(&recipe);
    free(text);
    return 0;
}
