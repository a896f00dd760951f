/* SPDX-License-Identifier: MIT */
#include "member_list.h"

#include <stdio.h>
#include <string.h>

static const char BLANKS[] = " \t\r\n";

/* --- from the command line --- */

static int check_word(const char *option, const char *value, const char *unwanted,
                      struct failure *failure)
{
    return value[strcspn(value, unwanted)]
               ? failure_set(failure, CODE_USAGE,
                             "%s: '%s': of several devices none of '%s' may stand there", option,
                             value, unwanted)
               : CODE_DONE;
}

static int add_key(char text[RECIPE_VALUE_BYTES], const char *option, const char *key,
                   const char *value, struct failure *failure)
{
    const size_t length = strlen(text);
    if (!value)
        return CODE_DONE;
    TRY(check_word(option, value, "| ", failure));
    return snprintf(text + length, RECIPE_VALUE_BYTES - length, " %s=%s", key, value) <
                   (int)(RECIPE_VALUE_BYTES - length)
               ? CODE_DONE
               : failure_set(failure, CODE_USAGE, "%s: is too long", option);
}

static int add_device(char text[RECIPE_VALUE_BYTES], const struct device_options *device,
                      struct failure *failure)
{
    const size_t length = strlen(text);
    TRY(check_word("--device", device->name, "|=", failure));
    if (snprintf(text + length, RECIPE_VALUE_BYTES - length, "%s%s", length ? " | " : "",
                 device->name) >= (int)(RECIPE_VALUE_BYTES - length))
        return failure_set(failure, CODE_USAGE, "--device: is too long");
    TRY(add_key(text, "--budget", "budget", device->budget, failure));
    TRY(add_key(text, "--micro-batch", "micro_batch", device->micro_batch, failure));
    return add_key(text, "--recompute", "recompute", device->recompute, failure);
}

int member_list_override(const struct arguments *a, struct recipe *recipe, struct failure *failure)
{
    char text[RECIPE_VALUE_BYTES] = "";
    if (a->n_devices < 2 && a->value[OPTION_DEVICE]) {
        recipe_remove(recipe, "group", "devices");
        if (!a->value[OPTION_SHARE])
            recipe_remove(recipe, "group", "share");
    }
    if (a->n_devices < 2)
        return CODE_DONE;
    for (int i = 0; i < a->n_devices; i++)
        TRY(add_device(text, &a->devices[i], failure));
    return recipe_put(recipe, "group", "devices", text, "--device", failure);
}

/* --- from the recipe --- */

static const struct recipe_entry *find(const struct recipe *recipe)
{
    return recipe_find(recipe, "group", "devices");
}

int member_list_count(const struct recipe *recipe)
{
    const struct recipe_entry *entry = find(recipe);
    int count = entry != NULL;
    for (const char *at = entry ? entry->value : ""; *at; at++)
        count += *at == '|';
    return count;
}

static void add_name(char device[MEMBER_DEVICE_BYTES], const char *word)
{
    const size_t length = strlen(device);
    snprintf(device + length, MEMBER_DEVICE_BYTES - length, "%s%s", length ? " " : "", word);
}

static int take_key(struct recipe *own, char *word, struct failure *failure)
{
    static const char *const keys[] = {"budget", "micro_batch", "recompute"};
    char *value = strchr(word, '=');
    *value++ = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(word, keys[i]) == 0)
            return recipe_put(own, "memory", word, value, "group.devices", failure);
    return recipe_refuse(own, find(own), failure,
                         "'%s' is said of no device; budget, micro_batch and recompute are", word);
}

/* Words up to the first KEY=VALUE are the text that the device matches. */
int member_list_take(struct recipe *own, int member, char device[MEMBER_DEVICE_BYTES],
                     struct failure *failure)
{
    char text[RECIPE_VALUE_BYTES], *rest = NULL;
    const char *from = find(own)->value;
    for (; member > 0; member--)
        from += strcspn(from, "|") + 1;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(from, "|"), from);
    *device = 0;
    for (char *word = strtok_r(text, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest))
        if (strchr(word, '='))
            TRY(take_key(own, word, failure));
        else
            add_name(device, word);
    return CODE_DONE;
}
