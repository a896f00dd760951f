/* SPDX-License-Identifier: MIT
 *
 * Every operator, case, storage type and variant in turn.
 */
#include <quern/check.h>

#include "base/log.h"
#include "check/cell.h"
#include "check/number.h"
#include "cl/device.h"
#include "op/list.h"
#include "op/tile.h"

#include <stdio.h>
#include <string.h>

#define DECLARE(name) extern const struct qn_check_op qn_check_##name;
QN_OP_LIST(DECLARE)
#undef DECLARE

static const struct qn_check_op *const all[] = {
#define ENTRY(name) &qn_check_##name,
    QN_OP_LIST(ENTRY)
#undef ENTRY
        NULL,
};

const struct qn_check_op *const *qn_check_all(void)
{
    return all;
}

struct run {
    qn_device *device;
    qn_check_params params;
    qn_check_summary summary;
    struct qn_facts facts, flipped; /* the device's; the same with `cpu` negated, so that the other
                                       shape of kernels fits, and with matrix units, which kernels
                                       can emulate */
    /* picks already checked for the running case and storage type */
    struct qn_picks done[2 * QN_MAX_NAMES];
    int n_done;
    bool ran[QN_MAX_GROUPS][QN_MAX_VARIANTS]; /* of the running operator */
    int twin, twin_of;                        /* of the running case: as in struct qn_subject */
    int first_turn; /* of the running operator; storages_of() says what a turn is */
    bool counting;  /* no kernel runs, and every check passes */
    int cells;      /* checks so far that run kernels */
    int total;      /* what `cells` will be in the end, which a counting run found */
};

static void report(struct run *run, const qn_check_record *what)
{
    qn_check_record record = *what;
    int *const counts[] = {[QN_CHECK_PASSED] = &run->summary.passed,
                           [QN_CHECK_FAILED] = &run->summary.failed,
                           [QN_CHECK_NOT_APPLICABLE] = &run->summary.not_applicable};
    ++*counts[record.outcome];
    record.number = run->cells;
    record.total = run->total;
    if (run->params.fn)
        run->params.fn(run->params.user, &record);
}

static void begin(struct run *run, qn_check_record record)
{
    record.number = ++run->cells;
    record.total = run->total;
    if (run->params.begin)
        run->params.begin(run->params.user, &record);
}

static void report_verdict(struct run *run, qn_check_record record,
                           const struct qn_verdict *verdict)
{
    record.outcome = verdict->failed ? QN_CHECK_FAILED : QN_CHECK_PASSED;
    record.reason = verdict->text;
    report(run, &record);
}

/* The first of *words, which are separated by commas, and what follows in *words; NULL: there is
 * none. A comma before a space is part of a case's name. */
static const char *next_word(const char **words, size_t *length)
{
    const char *word = *words;
    if (!word || !*word)
        return NULL;
    *length = strcspn(word, ",");
    while (word[*length] && word[*length + 1] == ' ')
        *length += 1 + strcspn(word + *length + 1, ",");
    *words = word + *length + (word[*length] == ',');
    return word;
}

/* Whether a word of the filter is "op" or "op/item". */
static bool word_matches(const char *word, size_t length, const char *op, const char *item)
{
    size_t n = strlen(op);
    if (length < n || strncmp(word, op, n) != 0)
        return false;
    return length == n || (word[n] == '/' && length == n + 1 + strlen(item) &&
                           strncmp(word + n + 1, item, strlen(item)) == 0);
}

static bool matches(const struct run *run, const char *op, const char *item)
{
    const char *words = run->params.filter, *word;
    size_t length;
    while ((word = next_word(&words, &length)))
        if (word_matches(word, length, op, item))
            return true;
    return !run->params.filter;
}

static bool word_names_one(const char *word, size_t length, const char *op,
                           const struct qn_check_case *item)
{
    for (; item && item->name; item++)
        if (word_matches(word, length, op, item->name))
            return true;
    return false;
}

/* Whether a word of the filter names any case. */
static bool is_known(const char *word, size_t length)
{
    for (const struct qn_check_op *const *check = all; *check; check++)
        if (word_names_one(word, length, (*check)->op->name, (*check)->cases) ||
            word_names_one(word, length, (*check)->op->name, (*check)->refused))
            return true;
    return false;
}

static bool is_variant(const char *word, size_t length, const char *variant)
{
    return strlen(variant) == length && strncmp(word, variant, length) == 0;
}

/* Whether qn_check_params.variants names the variant. */
static bool is_wanted(const struct run *run, const char *variant)
{
    const char *words = run->params.variants, *word;
    size_t length;
    while ((word = next_word(&words, &length)))
        if (is_variant(word, length, variant))
            return true;
    return !run->params.variants;
}

/* Whether an operator has the variant. */
static bool is_known_variant(const char *word, size_t length)
{
    for (const struct qn_check_op *const *check = all; *check; check++) {
        const char *names[QN_MAX_NAMES];
        const int count = qn_variant_names((*check)->op, names);
        for (int i = 0; i < count; i++)
            if (is_variant(word, length, names[i]))
                return true;
    }
    return false;
}

typedef bool known_fn(const char *word, size_t length);

static qn_status check_words(const struct run *run, const char *words, known_fn *known,
                             const char *what)
{
    const char *word;
    size_t length;
    while ((word = next_word(&words, &length)))
        if (!known(word, length))
            return qn_fail(qn_device_log(run->device), QN_ERR_ARGUMENT, "no %s is named %.*s", what,
                           (int)length, word);
    return QN_OK;
}

/* Whether the same picks were checked before; otherwise notes them. Two variant names may give the
 * same picks, since groups that lack a variant take another. */
static bool is_done(struct run *run, const struct qn_picks *picks)
{
    for (int i = 0; i < run->n_done; i++)
        if (qn_picks_equal(&run->done[i], picks))
            return true;
    if (run->n_done < (int)(sizeof run->done / sizeof *run->done))
        run->done[run->n_done++] = *picks;
    return false;
}

static void note_ran(struct run *run, const struct qn_op *op, const struct qn_picks *picks)
{
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS; v++)
            run->ran[g][v] |= picks->group[g].variant == &op->groups[g].variant[v];
}

static void check_cell(struct run *run, const struct qn_subject *subject,
                       const struct qn_picks *picks, qn_check_record record)
{
    struct qn_verdict verdict = {0};
    if (is_done(run, picks))
        return;
    for (int g = 0; g < QN_MAX_GROUPS && subject->check->op->groups[g].name; g++)
        if (!picks->group[g].variant)
            qn_verdict_fail(&verdict, "no variant of group %s fits",
                            subject->check->op->groups[g].name);
    if (!verdict.failed) {
        note_ran(run, subject->check->op, picks);
        begin(run, record);
    }
    if (!verdict.failed && !run->counting)
        qn_cell_check(subject, run->device, picks, &verdict);
    report_verdict(run, record, &verdict);
}

/* Whether a group has a variant that did not run in an earlier case of the operator. */
static bool is_new(const struct run *run, const struct qn_subject *subject,
                   const struct qn_picks *picks)
{
    const struct qn_group *groups = subject->check->op->groups;
    for (int g = 0; g < QN_MAX_GROUPS && groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS; v++)
            if (picks->group[g].variant == &groups[g].variant[v] && !run->ran[g][v])
                return true;
    return false;
}

/* Writes "cpu", or "cpu:8x2" if the variant has settings. */
static void label_variant(char label[48], const struct qn_op *op, const char *name, int setting)
{
    snprintf(label, 48, "%s", name);
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && op->groups[g].variant[v].name; v++) {
            const struct qn_variant *variant = &op->groups[g].variant[v];
            if (strcmp(variant->name, name) == 0 && variant->settings &&
                setting < qn_setting_count(variant))
                snprintf(label, 48, "%s:%s", name, qn_setting_name(variant, setting));
        }
}

/* Checks a variant with the facts of the device; if it does not fit them, or is of both shapes
 * ("any"), also with run->flipped. A short check takes variant "gpu" on a CPU device, and "cpu" on
 * a GPU, with run->flipped alone; a quick one takes run->flipped in f32, until each variant ran. */
static void check_variant(struct run *run, const struct qn_subject *subject, const char *name,
                          int setting, qn_check_record record)
{
    struct qn_picks here = {.facts = &run->facts}, there = {.facts = &run->flipped};
    const char *why = "no group has it";
    char label[48], flipped[64];
    label_variant(label, subject->check->op, name, setting);
    record.variant = label;
    const bool other = subject->brief && strcmp(name, run->flipped.cpu ? "cpu" : "gpu") == 0;
    const bool fits = !other && qn_pick_all(&here, subject, name, setting, &why);
    if (fits)
        check_cell(run, subject, &here, record);
    if (fits && strcmp(name, "any") != 0)
        return;
    snprintf(flipped, sizeof flipped, "%s as %s", label, run->flipped.cpu ? "cpu" : "gpu");
    if (qn_pick_all(&there, subject, name, setting, &why)) {
        record.variant = flipped;
        if (!run->params.quick || (subject->storage == QN_F32 && is_new(run, subject, &there)))
            check_cell(run, subject, &there, record);
        return;
    }
    record.outcome = QN_CHECK_NOT_APPLICABLE;
    record.reason = why;
    report(run, &record);
}

static bool is_over(const struct run *run)
{
    return run->params.stop && run->summary.failed > 0;
}

/* Settings, such as sizes of tiles, do not depend on the storage type: those other than the default
 * are checked in f32 alone. */
static int settings_of(const struct qn_subject *subject, const char *variant)
{
    return subject->storage == QN_F32 ? qn_variant_settings(subject->check->op, variant) : 1;
}

static void check_variants(struct run *run, const struct qn_subject *subject,
                           qn_check_record record)
{
    const char *names[QN_MAX_NAMES];
    const struct qn_op *op = subject->check->op;
    int count = qn_variant_names(op, names);
    run->n_done = 0;
    if (subject->brief && subject->item->only) {
        names[0] = subject->item->only;
        count = 1;
    }
    for (int i = 0; i < count; i++) {
        const int settings = is_wanted(run, names[i]) ? settings_of(subject, names[i]) : 0;
        for (int s = 0; s < settings && !is_over(run); s++)
            check_variant(run, subject, names[i], s, record);
    }
}

static void check_storage(struct run *run, const struct qn_check_op *check,
                          const struct qn_check_case *item, qn_dtype storage, bool parameters)
{
    char text[8], name[96];
    struct qn_verdict verdict = {0};
    struct qn_subject subject = {.check = check,
                                 .item = item,
                                 .storage = storage,
                                 .store_parameters = parameters,
                                 .brief = run->params.small,
                                 .twin = run->twin,
                                 .twin_of = run->twin_of,
                                 .far = run->params.far,
                                 .seed = qn_subject_seed(run->summary.seed, check, item)};
    snprintf(text, sizeof text, "%s%s", qn_dtype_name(storage), parameters ? "+" : "");
    snprintf(name, sizeof name, "%s", item->name);
    if (run->twin)
        snprintf(name, sizeof name, "%s, in %d as in %d", item->name, run->twin, run->twin_of);
    qn_check_record record = {check->op->name, name, text, "shape", .reason = ""};
    bool ok = run->counting ? qn_subject_describe(&subject, &verdict)
                            : qn_subject_open(&subject, &verdict);
    if (ok && check->reference)
        check_variants(run, &subject, record);
    else
        report_verdict(run, record, &verdict);
    qn_subject_close(&subject);
}

/* Whether the type of any operand of a case depends on the storage type. */
static bool is_stored(const struct qn_check_op *check, const struct qn_check_case *item)
{
    struct qn_call wide = {0}, narrow = {0};
    char reason[160];
    return qn_subject_shapes(check->op, item, QN_F32, false, &wide, reason) != QN_OK ||
           qn_subject_shapes(check->op, item, QN_F16, false, &narrow, reason) != QN_OK ||
           memcmp(&wide, &narrow, sizeof wide) != 0;
}

/* A storage type, and whether parameters have it, too. */
struct storage {
    qn_dtype dtype;
    bool parameters;
};

/* Fills types with what a case is checked in, f32 first, and returns their number: all five, or the
 * three that differ where nothing is a parameter. `turn`: 0, or f32 and one more: in odd turns f16
 * beside parameters of f32, in even ones bf16 with parameters of bf16. Either kind of 16 bits and
 * either kind of parameters is there, and few more kernels must be built. */
static int storages_of(const struct qn_check_op *check, const struct qn_check_case *item, int turn,
                       struct storage types[5])
{
    static const struct storage all_types[] = {
        {QN_F32, false}, {QN_F16, false}, {QN_F16, true}, {QN_BF16, false}, {QN_BF16, true}};
    const bool stored = is_stored(check, item);
    bool parameters = false;
    int count = 0;
    for (int i = 0; i < check->op->n_in; i++)
        parameters = parameters || item->in[i].role == QN_ROLE_PARAMETER;
    for (int i = 0; i < (stored ? 5 : 1); i++)
        if (parameters || !all_types[i].parameters)
            types[count++] = all_types[i];
    if (turn == 0 || count == 1)
        return count;
    types[1] = types[turn % 2 ? 1 : count - 1];
    return 2;
}

static void check_case(struct run *run, const struct qn_check_op *check,
                       const struct qn_check_case *item, bool f32_only, int turn)
{
    struct storage types[5];
    const int count = storages_of(check, item, turn, types);
    for (int i = 0; i < (f32_only ? 1 : count) && !is_over(run); i++)
        check_storage(run, check, item, types[i].dtype, types[i].parameters);
}

static void check_refused(struct run *run, const struct qn_check_op *check,
                          const struct qn_check_case *item)
{
    struct qn_verdict verdict = {0};
    struct qn_call call = {0};
    char reason[160] = "";
    qn_status status = qn_subject_shapes(check->op, item, QN_F32, false, &call, reason);
    if (status == QN_OK)
        qn_verdict_fail(&verdict, "the shape rule accepts what it must refuse");
    else if (reason[0] == '\0')
        qn_verdict_fail(&verdict, "the shape rule refuses without a reason");
    report_verdict(run,
                   (qn_check_record){check->op->name, item->name, "f32", "shape", .reason = ""},
                   &verdict);
}

static void check_coverage(struct run *run, const struct qn_op *op)
{
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && op->groups[g].variant[v].name; v++)
            if (!run->ran[g][v])
                report(run, &(qn_check_record){.op = op->name,
                                               .item = op->groups[g].name,
                                               .storage = "all",
                                               .variant = op->groups[g].variant[v].name,
                                               .outcome = QN_CHECK_FAILED,
                                               .reason = "never ran in any case"});
}

/* Whether two inputs of a case may be one tensor. */
static bool may_be_twins(const struct qn_check_case *item, int a, int b)
{
    const struct qn_check_input *x = &item->in[a], *y = &item->in[b];
    const bool integers = x->role == QN_ROLE_FIXED && !qn_number_is_float(x->dtype);
    return !integers && x->rank >= 0 && x->rank == y->rank && x->role == y->role &&
           x->dtype == y->dtype && memcmp(x->dim, y->dim, (size_t)x->rank * sizeof *x->dim) == 0;
}

/* The first case, a small one if there is any, in which inputs a and b may be one tensor. */
static const struct qn_check_case *case_of_twins(const struct qn_check_op *check, int a, int b)
{
    const struct qn_check_case *found = NULL;
    for (const struct qn_check_case *c = check->cases; c->name; c++)
        if (may_be_twins(c, a, b) && (!found || (c->small && !found->small)))
            found = c;
    return found;
}

/* Checks the operator with one tensor as two inputs, for every pair of inputs that may be one. */
static void check_twins(struct run *run, const struct qn_check_op *check)
{
    for (run->twin = 1; run->twin < check->op->n_in; run->twin++)
        for (run->twin_of = 0; run->twin_of < run->twin && !is_over(run); run->twin_of++) {
            const struct qn_check_case *c = case_of_twins(check, run->twin_of, run->twin);
            if (c && (c->small || !run->params.small) && matches(run, check->op->name, c->name))
                check_case(run, check, c, run->params.small, run->params.every_type ? 0 : 1);
        }
    run->twin = 0;
}

static void check_op(struct run *run, const struct qn_check_op *check)
{
    const char *name = check->op->name;
    int before = run->summary.passed + run->summary.failed, turn = run->first_turn;
    memset(run->ran, 0, sizeof run->ran);
    for (const struct qn_check_case *c = check->refused; c && c->name && !is_over(run); c++)
        if (matches(run, name, c->name) && !run->params.far)
            check_refused(run, check, c);
    for (const struct qn_check_case *c = check->cases; c->name && !is_over(run); c++) {
        if (!matches(run, name, c->name) || (!c->small && (run->params.small || run->params.far)))
            continue;
        const bool sparse =
            !run->params.every_type && (run->params.small || !c->small || c->f32_only);
        turn += sparse;
        check_case(run, check, c, run->params.far || (run->params.small && c->f32_only),
                   sparse ? turn : 0);
        if (run->params.far)
            break;
    }
    if (!run->params.far)
        check_twins(run, check);
    if (run->params.all_variants && run->summary.passed + run->summary.failed > before)
        check_coverage(run, check->op);
}

static struct qn_facts flip(const struct qn_facts *facts)
{
    struct qn_facts flipped = *facts;
    flipped.cpu = !facts->cpu;
    flipped.vector_width = flipped.cpu ? 8 : 4;
    flipped.matrix_units = qn_tile_layout(facts->matrix_layout)->types;
    if (facts->local_bytes < QN_STRIPS_BYTES + QN_STRIPS_COUNTED)
        flipped.matrix_units &= ~QN_MATRIX_STRIPS; /* which no kernel can emulate */
    return flipped;
}

/* Tiles that no core has are plain memory to the kernels. */
static void give_tiles(struct qn_facts *facts)
{
    facts->matrix_units |= facts->cpu ? QN_MATRIX_BF16_TILES : 0;
}

static struct run open_run(qn_device *device, const qn_check_params *params)
{
    struct run run = {.device = device, .facts = *qn_device_facts(device)};
    if (params)
        run.params = *params;
    if (run.params.far)
        run.facts.max_alloc_bytes = 2 * run.params.far;
    run.summary.seed = run.params.seed ? run.params.seed : 1;
    run.flipped = flip(&run.facts);
    /* work-groups of many teams take a minute a case on a slow device */
    if (run.params.small || (run.params.far && !run.params.filter))
        run.flipped.matrix_units = run.facts.matrix_units;
    give_tiles(&run.facts);
    give_tiles(&run.flipped);
    return run;
}

void qn_check_operator(qn_device *device, const struct qn_check_op *check,
                       const qn_check_params *params, qn_check_summary *summary)
{
    struct run run = open_run(device, params);
    check_op(&run, check);
    *summary = run.summary;
}

/* Whether the filter names any case of an operator. */
static bool names_any(const struct run *run, const char *op, const struct qn_check_case *item)
{
    for (; item && item->name; item++)
        if (matches(run, op, item->name))
            return true;
    return false;
}

/* Whether this run checks the operator, or another that shares the check. */
static bool takes(const struct run *run, const struct qn_check_op *check)
{
    const char *op = check->op->name;
    if (!names_any(run, op, check->cases) && !names_any(run, op, check->refused))
        return false;
    return !run->params.take || run->params.take(run->params.user, op);
}

static void check_all(struct run *run)
{
    for (const struct qn_check_op *const *check = all; *check; check++) {
        run->first_turn = run->params.quick ? (int)(check - all) % 2 : 0;
        if (takes(run, *check))
            check_op(run, *check);
    }
}

/* How many checks of the run will run kernels, unless a failure stops it. */
static int count_all(const struct run *run)
{
    struct run counting = *run;
    counting.counting = true;
    counting.params.stop = false;
    counting.params.fn = counting.params.begin = NULL;
    counting.params.take = NULL;
    check_all(&counting);
    return counting.cells;
}

qn_status qn_check_run(qn_device *device, const qn_check_params *params, qn_check_summary *summary)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), !params || (params->far >= 0 && params->far % 512 == 0));
    struct run run = open_run(device, params);
    QN_TRY(check_words(&run, run.params.filter, is_known, "operator or case"));
    QN_TRY(check_words(&run, run.params.variants, is_known_variant, "variant"));
    run.total = count_all(&run);
    check_all(&run);
    if (summary)
        *summary = run.summary;
    return QN_OK;
}
