/* SPDX-License-Identifier: MIT */
#include "team_file.h"
#include "key.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* --- the keys --- */

static const char *key_rate(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_rate(text, to);
}

static const char *key_seconds(const struct key *key, const char *text, void *to)
{
    (void)key;
    return value_seconds(text, to);
}

static const char *key_nodes(const struct key *key, const char *text, void *to)
{
    struct team_sizes sizes;
    (void)key;
    if (value_reals(text, sizes.nodes, TEAM_ROWS, &sizes.count))
        return "are no numbers, at most 16, separated by commas";
    for (int i = 0; i < sizes.count; i++) {
        const double nodes = (double)sizes.nodes[i];
        const double before = i ? (double)sizes.nodes[i - 1] : 0;
        if (nodes != floor(nodes) || nodes <= before || nodes > QN_MAX_GROUP)
            return "are no rising whole numbers from 1 to 1024";
    }
    *(struct team_sizes *)to = sizes;
    return NULL;
}

static const char *const batches[] = {"update", "member", NULL};
static const char *const recomputes[] = {"auto", "none", "all", NULL};

/* Sections are those of a file without the names behind them. */
#define OF_FILE(member) offsetof(struct team_file, member)
#define OF_KIND(member) offsetof(struct team_kind, member)
#define OF_LINK(member) offsetof(struct link, member)
static const struct key keys[] = {
    {"members", "nodes", key_nodes, OF_FILE(sizes)},
    {"members", "batch", key_word, OF_FILE(batch), .words = batches},
    {"device", "facts", key_text, OF_KIND(facts)},
    {"device", "match", key_text, OF_KIND(match)},
    {"device", "costs", key_text, OF_KIND(costs)},
    {"device", "count", key_count, OF_KIND(count), 1, QN_MAX_GROUP},
    {"device", "budget", key_size, OF_KIND(memory.budget)},
    {"device", "micro_batch", key_micro_batch, OF_KIND(memory.micro_batch), 1, KEY_MOST_BATCH},
    {"device", "recompute", key_recompute, OF_KIND(memory), .words = recomputes},
    {"device", "share", key_within, OF_KIND(share), 0, 1e9},
    {"device", "speed", key_positive, OF_KIND(speed), 0, 1e9},
    {"link", "bandwidth", key_rate, OF_LINK(bandwidth)},
    {"link", "latency", key_seconds, OF_LINK(latency)},
    {"link", "overhead", key_seconds, OF_LINK(overhead)},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

/* --- reading --- */

static int refuse_section(const struct recipe *text, const struct recipe_entry *entry,
                          struct failure *failure)
{
    return recipe_refuse(text, entry, failure,
                         "no such section: there are members, device NAME, link inside and "
                         "link between");
}

static int refuse_key(const struct recipe *text, const struct recipe_entry *entry,
                      const char *section, struct failure *failure)
{
    qn_nearest key = {.text = entry->key};
    char hint[QN_NEAREST_BYTES];
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(keys[i].section, section) == 0)
            qn_nearest_offer(&key, keys[i].name);
    return recipe_refuse(text, entry, failure, "unknown key%s", qn_nearest_hint(&key, hint));
}

static int read_key(const struct recipe *text, const struct recipe_entry *entry,
                    const char *section, void *to, struct failure *failure)
{
    char range[KEY_RANGE_BYTES];
    for (int i = 0; i < N_KEYS; i++) {
        const struct key *key = &keys[i];
        if (strcmp(key->section, section) != 0 || strcmp(key->name, entry->key) != 0)
            continue;
        const char *reason = key->read(key, entry->value, (char *)to + key->offset);
        return reason ? recipe_refuse(text, entry, failure, "'%s' %s%s", entry->value, reason,
                                      key_range(key, range))
                      : CODE_DONE;
    }
    return refuse_key(text, entry, section, failure);
}

/* The kind of that name; a new one. NULL: there are too many. */
static struct team_kind *kind_of(struct team_file *file, const char *name,
                                 const struct memory_settings *memory)
{
    int k = 0;
    while (k < file->n_kinds && strcmp(file->kinds[k].name, name) != 0)
        k++;
    if (k == TEAM_KINDS)
        return NULL;
    if (k == file->n_kinds)
        file->kinds[file->n_kinds++] =
            (struct team_kind){.name = name, .count = 1, .memory = *memory, .share = 1, .speed = 1};
    return &file->kinds[k];
}

static int read_device(struct team_file *file, const struct recipe_entry *entry, const char *name,
                       const struct memory_settings *memory, struct failure *failure)
{
    struct team_kind *kind = kind_of(file, name, memory);
    return kind ? read_key(&file->text, entry, "device", kind, failure)
                : recipe_refuse(&file->text, entry, failure, "more than %d kinds of devices",
                                TEAM_KINDS);
}

static int read_entry(struct team_file *file, const struct recipe_entry *entry,
                      const struct memory_settings *memory, struct failure *failure)
{
    const char *section = entry->section;
    static const char device[] = "device ";
    if (strcmp(section, "members") == 0)
        return read_key(&file->text, entry, section, file, failure);
    if (strcmp(section, "link inside") == 0)
        return read_key(&file->text, entry, "link", &file->inside, failure);
    if (strcmp(section, "link between") == 0)
        return read_key(&file->text, entry, "link", &file->between, failure);
    if (strncmp(section, device, strlen(device)) == 0)
        return read_device(file, entry, section + strlen(device), memory, failure);
    return refuse_section(&file->text, entry, failure);
}

/* --- the whole --- */

int team_file_per_node(const struct team_file *file)
{
    int64_t members = 0;
    for (int k = 0; k < file->n_kinds; k++)
        members += file->kinds[k].count;
    return (int)members;
}

static int most_nodes(const struct team_file *file)
{
    double most = 0;
    for (int i = 0; i < file->sizes.count; i++)
        most = fmax(most, (double)file->sizes.nodes[i]);
    return (int)most;
}

static int refuse(const struct team_file *file, const char *section, const char *reason,
                  struct failure *failure)
{
    return failure_set(failure, CODE_USAGE, "%s: %s: %s", file->text.name, section, reason);
}

static int check_links(const struct team_file *file, struct failure *failure)
{
    const bool inside = team_file_per_node(file) > 1, between = most_nodes(file) > 1;
    if (inside && !(file->inside.bandwidth > 0))
        return refuse(file, "link inside", "bandwidth: missing: a node has several members",
                      failure);
    if (between && !(file->between.bandwidth > 0))
        return refuse(file, "link between", "bandwidth: missing: there are several nodes", failure);
    return CODE_DONE;
}

static int check(const struct team_file *file, struct failure *failure)
{
    char section[48];
    if (!file->n_kinds)
        return refuse(file, "device NAME", "no section says which devices there are", failure);
    for (int k = 0; k < file->n_kinds; k++) {
        snprintf(section, sizeof section, "device %s", file->kinds[k].name);
        if (!file->kinds[k].facts)
            return refuse(file, section,
                          "facts: missing: a file with what quern devices --json prints there",
                          failure);
    }
    if (most_nodes(file) * team_file_per_node(file) > QN_MAX_GROUP)
        return failure_set(failure, CODE_USAGE,
                           "%s: members: nodes: %d of %d members are more than %d", file->text.name,
                           most_nodes(file), team_file_per_node(file), QN_MAX_GROUP);
    return check_links(file, failure);
}

int team_file_read(struct team_file *file, const char *path, const struct memory_settings *memory,
                   struct failure *failure)
{
    memset(file, 0, sizeof *file);
    file->sizes = (struct team_sizes){{1}, 1};
    TRY(recipe_read_file(&file->text, path, failure));
    for (int i = 0; i < file->text.count; i++)
        TRY(read_entry(file, &file->text.entries[i], memory, failure));
    return check(file, failure);
}

void team_file_path(const struct team_file *file, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s%s", *name == '/' ? "" : file->text.folder, name);
}
