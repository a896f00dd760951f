/* SPDX-License-Identifier: MIT */
#include "members.h"
#include "dual.h"
#include "ranks.h"
#include "tuning.h"
#include "value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t DEFAULT_TIMEOUT = 600; /* seconds */

/* --- reading --- */

static int refuse(struct session *s, const char *key, const char *text)
{
    return failure_set(s->failure, CODE_USAGE, "%s: %s: %s", s->recipe.name, key, text);
}

/* Pairs of the whole batch meet in a loss that each member computes, or those of a micro-batch,
 * of which shares are multiples. */
static int check_contrastive(struct session *s)
{
    const enum contrastive_mode mode = s->settings.contrastive.mode;
    if (mode == CONTRASTIVE_CONTACCUM)
        return refuse(s, "contrastive.mode",
                      "contaccum: banks take pairs in the order of one device's micro-steps");
    if (mode == CONTRASTIVE_WHOLE || (mode == CONTRASTIVE_AUTO && !dual_falls_back(s)))
        return refuse(s, "contrastive.mode",
                      "the whole batch in one piece trains on one device; gradcache has the same "
                      "gradient on several");
    return CODE_DONE;
}

int64_t members_unit(const struct session *s)
{
    return s->settings.contrastive.mode == CONTRASTIVE_ACCUMULATE ? s->settings.memory.micro_batch
                                                                  : qn_graph_batch_group(s->graph);
}

/* The micro-batch that is part of the method is that of all. */
static int check_micro_batches(struct session *s)
{
    const struct members *members = s->members;
    for (int m = 0; m < members->count; m++)
        if (s->settings.contrastive.mode == CONTRASTIVE_ACCUMULATE &&
            members->member[m].session->settings.memory.micro_batch != members->unit)
            return refuse(s, "memory.micro_batch",
                          "negatives are those of a micro-batch: it is the same on all devices");
    return CODE_DONE;
}

int members_check(struct session *s)
{
    if (s->contrastive)
        TRY(check_contrastive(s));
    if (!s->settings.train.batches.count)
        return refuse(s, "train.batch", "adaptive is measured on one device");
    return s->settings.memory.early_updates
               ? refuse(s, "memory.early_updates", "does not wait for other devices")
               : CODE_DONE;
}

/* What the list says of it; without one, what is said of the only device. */
static int take_device(const struct session *s, struct member *member, int number,
                       const struct arguments *a)
{
    const char *only = a->value[OPTION_DEVICE];
    if (member_list_count(&s->recipe) > 1)
        return member_list_take(member->recipe, number, member->device, s->failure);
    if (only && strlen(only) >= MEMBER_DEVICE_BYTES)
        return failure_set(s->failure, CODE_USAGE, "--device: is too long");
    snprintf(member->device, MEMBER_DEVICE_BYTES, "%s", only ? only : "");
    return CODE_DONE;
}

static int read_member(struct session *s, struct member *member, int number,
                       const struct arguments *a)
{
    const char *file = a->n_devices ? a->devices[number].budget_file : NULL;
    member->recipe = malloc(sizeof *member->recipe);
    member->session = number ? calloc(1, sizeof *s) : s;
    if (!member->recipe || !member->session)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    *member->recipe = s->recipe;
    struct settings own;
    TRY(take_device(s, member, number, a));
    TRY(settings_read(&own, member->recipe, s->failure));
    if (number) {
        *member->session = *s;
        member->session->quiet = true;
        member->session->member = number;
    }
    member->session->settings.memory = own.memory;
    return file ? budget_file_open(&member->session->budget_file, file,
                                   &member->session->settings.memory.budget, s->failure)
                : CODE_DONE;
}

/* Whether what a device has of a key is said of it alone. */
static bool is_own(const struct member *member, const char *key)
{
    const struct recipe_entry *entry = recipe_find(member->recipe, "memory", key);
    return entry && strcmp(entry->option, "group.devices") == 0;
}

/* An option that stands behind no device is of all that say nothing else. */
static int check_common(struct session *s, const struct arguments *a)
{
    bool used = !a->value[OPTION_BUDGET];
    if (a->value[OPTION_BUDGET_FILE])
        return refuse(s, "--budget-file", "of several devices it stands behind the --device");
    for (int m = 0; m < s->members->count; m++)
        used |= !is_own(&s->members->member[m], "budget");
    return used ? CODE_DONE : refuse(s, "--budget", "every device has one of its own");
}

static int refuse_share(struct session *s, const char *text, const char *reason)
{
    const struct recipe_entry *entry = recipe_find(&s->recipe, "group", "share");
    return recipe_refuse(&s->recipe, entry, s->failure, "'%s' %s", text, reason);
}

static int read_share(struct session *s, const char *text, double *share)
{
    const char *reason = value_real(text, share);
    return reason       ? refuse_share(s, text, reason)
           : *share < 0 ? refuse_share(s, text, "is below 0")
                        : CODE_DONE;
}

static int count_shares(const char *text)
{
    int count = 1;
    for (; *text; text++)
        count += *text == ':';
    return count;
}

/* "3:1", for each member one. */
int members_share(struct session *s, const char *said)
{
    struct members *members = s->members;
    char text[RECIPE_VALUE_BYTES], *rest = text;
    double sum = 0;
    if (said && count_shares(said) != members->all)
        return refuse_share(s, said, "has another number of shares than there are devices");
    snprintf(text, sizeof text, "%s", said ? said : "");
    for (int m = 0; m < members->all; m++) {
        double *share = &members->share[m];
        *share = 1;
        if (said)
            TRY(read_share(s, strsep(&rest, ":"), share));
        sum += *share;
    }
    return sum > 0 ? CODE_DONE : refuse_share(s, said, "gives the samples to nobody");
}

/* A training goes on with any number of members: shares that it had say nothing of others. */
static bool is_outdated(const struct session *s, const char *said)
{
    const struct recipe_entry *entry = recipe_find(&s->recipe, "group", "share");
    return s->recipe.resumed && !*entry->option && count_shares(said) != s->members->all;
}

/* Those that are measured begin as equal ones. */
static int read_shares(struct session *s)
{
    const char *said = s->settings.group.share;
    s->members->measured = said && strcmp(said, "auto") == 0;
    if (!said || s->members->measured || !is_outdated(s, said))
        return members_share(s, s->members->measured ? NULL : said);
    if (ranks_first())
        say("warning: the training had shares of %d devices; those of %d are equal",
            count_shares(said), s->members->all);
    return members_share(s, NULL);
}

bool members_see_whole(const struct session *s)
{
    return s->settings.contrastive.mode == CONTRASTIVE_GRADCACHE;
}

int members_split(struct session *s, int64_t samples, int64_t counts[MAX_ALL_MEMBERS])
{
    const struct members *members = s->members;
    if (qn_group_split(samples, members->unit, members->share, members->all, counts) == QN_OK)
        return CODE_DONE;
    return failure_set(s->failure, CODE_USAGE, "group.%s", qn_last_error());
}

/* Whether what it reads of all samples is more than members give each other: their ids. */
static bool reads_whole(const struct session *s)
{
    return members_see_whole(s) && s->settings.contrastive.duplicates;
}

void members_range(const struct session *s, int64_t samples, int64_t *first, int64_t *count)
{
    const struct members *members = s->members;
    int64_t counts[MAX_ALL_MEMBERS];
    *first = 0;
    *count = samples;
    if (!members || reads_whole(s) ||
        qn_group_split(samples, members->unit, members->share, members->all, counts) != QN_OK)
        return;
    *count = 0;
    for (int m = 0; m < members->first + members->count; m++)
        *(m < members->first ? first : count) += counts[m];
}

/* Nobody goes without samples unless a share of 0 says so. */
static int check_ranges(struct session *s)
{
    const qn_plan_params plan = settings_plan(&s->settings);
    int64_t counts[MAX_ALL_MEMBERS];
    for (int b = 0; b < QN_MAX_BATCH_SIZES && plan.batch[b]; b++)
        TRY(members_split(s, plan.batch[b], counts));
    return CODE_DONE;
}

/* The list of devices, or, of a rank that has one, that. */
static int count_members(const struct session *s)
{
    const int named = member_list_count(&s->recipe);
    return named > 1 ? named : ranks_count() > 1 ? 1 : 0;
}

/* Shares of members that there are no more are those of a training that goes on with one. */
static int check_single(struct session *s)
{
    const struct recipe_entry *entry = recipe_find(&s->recipe, "group", "share");
    const bool outdated = entry && s->recipe.resumed && !*entry->option;
    return entry && !outdated ? refuse_share(s, entry->value, "is of several devices") : CODE_DONE;
}

int members_read(struct session *s, const struct arguments *a)
{
    const int count = count_members(s);
    if (count > MAX_MEMBERS)
        return failure_set(s->failure, CODE_USAGE, "%s: group.devices: more than %d are named",
                           s->recipe.name, MAX_MEMBERS);
    if (!count)
        return check_single(s);
    s->members = calloc(1, sizeof *s->members);
    if (!s->members)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    s->members->count = count;
    TRY(members_check(s));
    s->members->unit = members_unit(s);
    for (int m = 0; m < count; m++)
        TRY(read_member(s, &s->members->member[m], m, a));
    if (count > 1)
        TRY(check_common(s, a));
    return check_micro_batches(s);
}

int members_join(struct session *s)
{
    struct members *members = s->members;
    const int64_t timeout = s->settings.group.timeout;
    if (!members)
        return CODE_DONE;
    TRY(ranks_members(members->count, (double)(timeout ? timeout : DEFAULT_TIMEOUT),
                      members->transports, &members->first, &members->all, s->failure));
    if (members->all > MAX_ALL_MEMBERS)
        return failure_set(s->failure, CODE_USAGE, "%s: %d devices, and at most %d train together",
                           s->recipe.name, members->all, MAX_ALL_MEMBERS);
    TRY(read_shares(s));
    return check_ranges(s);
}

int members_number(const struct session *s)
{
    return s->members ? s->members->first + s->member : 0;
}

const char *members_name(const struct session *s, char name[MEMBERS_NAME_BYTES])
{
    snprintf(name, MEMBERS_NAME_BYTES, "member %d", members_number(s));
    return s->members ? name : NULL;
}

static void close_member(struct member *member, bool borrows)
{
    struct session *s = member->session;
    if (borrows && s) {
        qn_plan_destroy(&s->plan);
        free(s->tuning);
        qn_device_close(&s->device);
        free(s);
    }
    free(member->recipe);
}

void members_close_trainers(struct session *s)
{
    struct session *one;
    qn_group_close(&s->members->group);
    for (int m = 0; (one = members_session(s, m)); m++)
        one->trainer = NULL; /* it was the group's */
}

void members_close(struct session *s)
{
    struct members *members = s->members;
    if (!members)
        return;
    members_close_trainers(s);
    for (int m = 0; m < members->count; m++)
        close_member(&members->member[m], m > 0);
    cJSON_Delete(members->told);
    free(members);
    s->members = NULL;
}

/* --- opening --- */

/* Adds a share of a cycle of `whole` samples that is not there yet; 0: of any cycle. */
static void add_size(qn_plan_params *params, int64_t size, int64_t whole)
{
    int b = 0;
    while (params->batch[b] && (params->batch[b] != size || params->whole[b] != whole))
        b++;
    params->batch[b] = size;
    params->whole[b] = whole;
}

static int64_t largest_size(const qn_plan_params *params)
{
    int64_t largest = 0;
    for (int b = 0; b < QN_MAX_BATCH_SIZES; b++)
        largest = params->batch[b] > largest ? params->batch[b] : largest;
    return largest;
}

int members_plan_params(struct session *s, qn_plan_params *params)
{
    *params = settings_plan(&s->settings);
    if (!s->members)
        return CODE_DONE;
    const qn_plan_params whole = *params;
    memset(params->batch, 0, sizeof params->batch);
    for (int b = 0; b < QN_MAX_BATCH_SIZES && whole.batch[b]; b++) {
        int64_t counts[MAX_ALL_MEMBERS];
        TRY(members_split(s, whole.batch[b], counts));
        if (counts[members_number(s)])
            add_size(params, counts[members_number(s)], members_see_whole(s) ? whole.batch[b] : 0);
    }
    if (!params->batch[0]) /* it has no samples, and goes along with the updates of the others */
        params->batch[0] = s->members->unit;
    if (s->settings.group.shard == SHARD_OPTIMIZER) {
        params->members = s->members->all;
        params->member = members_number(s);
    }
    const int64_t largest = largest_size(params);
    params->micro_batch = params->micro_batch < largest ? params->micro_batch : largest;
    return CODE_DONE;
}

static int plan_one(struct session *s, enum tune_mode mode)
{
    qn_plan_params params;
    TRY(members_plan_params(s, &params));
    return tuning_plan(s, &params, mode);
}

static int plan_own(struct session *s, enum tune_mode mode)
{
    struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++) {
        const int code = plan_one(one, mode);
        s->smallest_budget = one->smallest_budget;
        if (code)
            return code;
    }
    return CODE_DONE;
}

int members_plan(struct session *s, enum tune_mode mode)
{
    const int rounds = s->members && mode == TUNE_QUICK ? s->members->rounds : 1;
    for (int r = 0; r < rounds; r++) {
        const bool own = rounds == 1 || r == s->members->round;
        TRY(ranks_agree(own ? plan_own(s, mode) : CODE_DONE, s->failure));
    }
    return CODE_DONE;
}

int members_trainers(struct session *s)
{
    const struct members *members = s->members;
    if (!members)
        return session_trainer(s);
    qn_group_member given[MAX_MEMBERS];
    for (int m = 0; m < members->count; m++)
        given[m] = (qn_group_member){.device = members->member[m].session->device,
                                     .plan = members->member[m].session->plan,
                                     .share = members->share[members->first + m]};
    const qn_group_params params = {.trainer = session_trainer_params(s),
                                    .unit = members->unit,
                                    .transports = ranks_count() > 1 ? members->transports : NULL,
                                    .shares = members->share,
                                    .timeout = (double)s->settings.group.timeout,
                                    .log = failure_log(s->failure)};
    const qn_status status = qn_group_open(&s->members->group, given, members->count, &params);
    if (status != QN_OK)
        return failure_status(s->failure, status);
    for (int m = 0; m < members->count; m++)
        members->member[m].session->trainer = qn_group_trainer(members->group, m);
    return CODE_DONE;
}

int members_weights(struct session *s)
{
    struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++)
        TRY(session_weights(one));
    return CODE_DONE;
}

int members_restore(struct session *s, const qn_checkpoint *checkpoint)
{
    struct session *one;
    for (int m = 0; (one = members_session(s, m)); m++)
        TRY_LIBRARY(s->failure, NULL, qn_checkpoint_restore(checkpoint, one->trainer));
    return CODE_DONE;
}

struct session *members_session(struct session *s, int member)
{
    const struct members *members = s->members;
    if (!members)
        return member == 0 ? s : NULL;
    return member < members->count ? members->member[member].session : NULL;
}

/* --- the training --- */

int members_save(struct session *s, const char *dir, const qn_save_params *params)
{
    failure_clear(s->failure);
    const qn_status status = s->members ? qn_group_save(s->members->group, dir, params)
                                        : qn_checkpoint_save(s->trainer, dir, params);
    return status == QN_OK ? CODE_DONE : failure_library(s->failure, status, NULL);
}

int members_show_averages(struct session *s, bool shown)
{
    if (!s->members)
        return CODE_DONE;
    failure_clear(s->failure);
    const qn_status status = qn_group_show_averages(s->members->group, shown);
    return status ? failure_status(s->failure, status) : CODE_DONE;
}

int members_step(struct session *s, const qn_cycle *cycle, qn_metrics *previous)
{
    if (!s->members) {
        TRY_LIBRARY(s->failure, NULL, qn_trainer_step(s->trainer, cycle, previous));
        return CODE_DONE;
    }
    const qn_status status = qn_group_step(s->members->group, cycle, previous);
    return status ? failure_status(s->failure, status) : CODE_DONE;
}

int members_evaluate(struct session *s, int64_t samples, qn_part_fn fn, void *user)
{
    const qn_group_part all = {.trainer = s->trainer, .count = samples};
    TRY_LIBRARY(s->failure, NULL,
                s->members ? qn_group_evaluate(s->members->group, samples, fn, user)
                           : fn(user, &all));
    return CODE_DONE;
}

int members_finish(struct session *s, qn_metrics *last)
{
    if (!s->members) {
        TRY_LIBRARY(s->failure, NULL, qn_trainer_finish(s->trainer, last));
        return CODE_DONE;
    }
    const qn_status status = qn_group_finish(s->members->group, last);
    return status ? failure_status(s->failure, status) : CODE_DONE;
}
