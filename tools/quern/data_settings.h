/* SPDX-License-Identifier: MIT
 *
 * The keys of [data] among each other: which of them a kind of data has and needs.
 */
#ifndef QUERN_TOOL_DATA_SETTINGS_H
#define QUERN_TOOL_DATA_SETTINGS_H

#include "settings.h"

/* By enum data_kind, ended by NULL. */
extern const char *const data_kinds[];

/* Refuses keys that do not go with the kind, and kinds that lack a key. */
int data_settings_check(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure);
/* The same of one side of pairs, whose keys are in this section or inherited. */
int data_settings_check_side(const struct data_settings *data, const char *section,
                             const struct recipe *recipe, struct failure *failure);
/* Whether the token that masks is one that no text has. */
bool data_settings_own_mask(const struct data_settings *data);
/* Whether images of the training are mixed with others. */
bool data_settings_mixes(const struct data_settings *data);
/* Whether something about images of the training is random. */
bool data_settings_augments(const struct data_settings *data);
/* Fills in what follows from other keys, or is the default of the kind. */
void data_settings_complete(struct data_settings *data);

#endif
