/* SPDX-License-Identifier: MIT */
#include "data/class_names.h"
#include "base/room.h"

#include <string.h>

/* The place of a name, or where it would stand. */
static size_t place_of(const struct qn_class_names *names, const char *text)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(names->name[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct qn_class_name *at(const struct qn_class_names *names, size_t place,
                                      const char *text)
{
    return place < names->count && strcmp(names->name[place].text, text) == 0 ? &names->name[place]
                                                                              : NULL;
}

const struct qn_class_name *qn_class_names_find(const struct qn_class_names *names,
                                                const char *text)
{
    return at(names, place_of(names, text), text);
}

const struct qn_class_name *qn_class_names_add(struct qn_class_names *names, const char *text)
{
    const size_t place = place_of(names, text);
    if (at(names, place, text))
        return &names->name[place];
    char *copy = strdup(text);
    if (!copy || !QN_ROOM(names->name, names->room, names->count + 1)) {
        free(copy);
        return NULL;
    }
    struct qn_class_name *name = names->name + place;
    memmove(name + 1, name, (names->count - place) * sizeof *name);
    *name = (struct qn_class_name){copy, (int32_t)names->count++};
    return name;
}

void qn_class_names_order(const struct qn_class_names *names, bool given, const char **texts,
                          int32_t *classes)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct qn_class_name *name = &names->name[i];
        const size_t class = given ? (size_t)name->number : i;
        classes[name->number] = (int32_t) class;
        texts[class] = name->text;
    }
}

void qn_class_names_free(struct qn_class_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i].text);
    free(names->name);
    *names = (struct qn_class_names){0};
}
