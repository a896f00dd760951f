/* SPDX-License-Identifier: MIT
 *
 * An INI file that says which devices and links a team of many members has: quern plan --members.
 */
#ifndef QUERN_TOOL_TEAM_FILE_H
#define QUERN_TOOL_TEAM_FILE_H

#include "recipe.h"
#include "scaling.h"
#include "settings.h"

#include <quern/group.h>

enum { TEAM_KINDS = 8, TEAM_ROWS = 16 };

/* A kind of device, [device NAME], of which every node has `count`. */
struct team_kind {
    const char *name; /* borrowed from the file, as all texts */
    const char *facts, *match,
        *costs; /* files, and text in the name of the device; NULL: not said */
    int64_t count;
    struct memory_settings memory; /* what is not said is as in the recipe */
    double share;                  /* of the samples, beside those of the other members */
    double speed;                  /* beside what facts and costs say */
};

enum team_batch { BATCH_OF_UPDATE, BATCH_OF_MEMBER };

/* [members] */
struct team_sizes {
    float nodes[TEAM_ROWS]; /* rising whole numbers: a team for each */
    int count;
};
struct team_file {
    struct recipe text;
    struct team_kind kinds[TEAM_KINDS];
    int n_kinds;
    struct team_sizes sizes;
    enum team_batch batch;       /* what the recipe's is of */
    struct link inside, between; /* [link inside], [link between]; without bandwidth: not there */
};

/* Reads and checks a file; `memory` is the recipe's. */
int team_file_read(struct team_file *file, const char *path, const struct memory_settings *memory,
                   struct failure *failure);
/* Members of a node. */
int team_file_per_node(const struct team_file *file);
/* The path of a file that this one names, which begins in its folder. */
void team_file_path(const struct team_file *file, const char *name, char path[4096]);

#endif
