/* SPDX-License-Identifier: MIT
 *
 * A plan as text for people, and as JSON for programs.
 */
#include "base/text.h"
#include "plan/plan.h"
#include "plan/showing/launches.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_NAMED = 24 }; /* recomputed tasks named at most */

static void add_size(struct qn_text *text, const char *label, int64_t bytes)
{
    char size[32];
    qn_text_add(text, "  %-24s %12" PRId64 "  %s\n", label, bytes,
                qn_size_text(bytes, size, sizeof size));
}

static void add_split(struct qn_text *text, const struct qn_plan *plan)
{
    for (int i = 0; i < plan->program.n_cycles; i++) {
        const struct qn_cycle_plan *cycle = &plan->program.cycles[i];
        qn_text_add(text, "batch %" PRId64 " = ", cycle->batch);
        if (cycle->micro_steps)
            qn_text_add(text, "%" PRId64 " x %" PRId64, cycle->micro_steps, plan->info.micro_batch);
        if (cycle->remainder)
            qn_text_add(text, "%s%" PRId64, cycle->micro_steps ? " + " : "", cycle->remainder);
        qn_text_add(text, "\n");
    }
}

/* Of programs that have runs which go backward alone. */
static void add_again(struct qn_text *text, const struct qn_plan *plan)
{
    const int64_t again = plan->info.micro_steps_again;
    int kept = 0;
    for (int r = 0; r < plan->runs.n_runs; r++)
        kept +=
            plan->runs.run[r].what == QN_RUN_BACKWARD && plan->program.cycles[0].runs[r].kept >= 0;
    if (!again && !kept)
        return;
    qn_text_add(text, "forward again: %" PRId64 " of %" PRId64 " micro-step%s%s\n", again,
                again + kept, again + kept == 1 ? "" : "s",
                kept ? "; what the last one makes is kept" : "");
}

/* Number of recomputed steps of the task from step `first` on. */
static int recomputed_runs(const struct qn_phase_run *micro, int task, int first)
{
    int count = 0;
    for (int i = first; i < micro->n_steps; i++)
        count += micro->steps[i].task == task && micro->steps[i].recomputed;
    return count;
}

/* The recomputed tasks, each once with its number of recomputed steps; MOST_NAMED at most. */
static void add_recomputed(struct qn_text *text, const struct qn_plan *plan)
{
    const struct qn_phase_run *micro = qn_program_main(&plan->program);
    int named = 0, left = micro->recomputed;
    qn_text_add(text, "recomputed: %d of %d steps", micro->recomputed, micro->n_steps);
    for (int i = 0; i < micro->n_steps && named < MOST_NAMED; i++) {
        const int task = micro->steps[i].task, runs = recomputed_runs(micro, task, i);
        if (!micro->steps[i].recomputed || recomputed_runs(micro, task, 0) > runs)
            continue;
        qn_text_add(text, "%s%s", named++ ? ", " : ": ", micro->problem->tasks[task].name);
        if (runs > 1)
            qn_text_add(text, " x %d", runs);
        left -= runs;
    }
    if (named && left)
        qn_text_add(text, " and %d more", left);
    qn_text_add(text, "\n");
}

/* Steps of a micro-step whose seconds were measured at this micro-batch. */
static int measured_steps(const struct qn_plan *plan)
{
    const struct qn_phase_run *micro = qn_program_main(&plan->program);
    int count = 0;
    for (int i = 0; i < micro->n_steps; i++)
        count += micro->problem->tasks[micro->steps[i].task].measured;
    return count;
}

static int count_fetches(const struct qn_phase_run *phase)
{
    int count = 0;
    for (int i = 0; i < phase->n_steps; i++)
        count += phase->problem->tasks[phase->steps[i].task].kind == QN_TASK_FETCH;
    return count;
}

static void add_parked(struct qn_text *text, const struct qn_plan *plan)
{
    char size[32];
    const int fetches = count_fetches(qn_program_main(&plan->program));
    qn_text_add(text,
                "parked: %s of host memory, fetched in %d step%s; transfers take %.3g s an "
                "update\n",
                qn_size_text(plan->info.parked_bytes, size, sizeof size), fetches,
                fetches == 1 ? "" : "s", plan->info.parked_seconds);
}

static void add_frozen(struct qn_text *text, const struct qn_plan_info *info)
{
    char size[32];
    qn_text_add(text,
                "frozen: %" PRId64
                " parameters in %d tensor%s, saves %s of gradients and optimizer "
                "state\n",
                info->frozen_parameters, info->frozen_tensors, info->frozen_tensors == 1 ? "" : "s",
                qn_size_text(info->frozen_bytes, size, sizeof size));
}

static void add_costs(struct qn_text *text, const struct qn_plan *plan)
{
    const int measured = measured_steps(plan);
    if (measured)
        qn_text_add(text, "costs measured for %d of %d steps, %.0f %% of the time", measured,
                    qn_program_main(&plan->program)->n_steps, 100 * plan->info.measured_share);
    else
        qn_text_add(text, "costs estimated");
}

char *qn_plan_text(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    char device[4 * sizeof plan->facts.name];
    struct qn_text text = {0};
    const struct qn_plan_info *info = &plan->info;
    add_split(&text, plan);
    add_again(&text, plan);
    add_recomputed(&text, plan);
    if (info->frozen_tensors)
        add_frozen(&text, info);
    if (info->early_updates)
        qn_text_add(&text, "updates as gradients complete\n");
    if (info->parked_bytes)
        add_parked(&text, plan);
    qn_text_add(&text, "predicted: %.3g s an update, %+.1f %% against keeping everything\n",
                info->seconds, 100 * (info->seconds / info->keep_all_seconds - 1));
    qn_launches_text(&text, &plan->program);
    qn_text_add(&text, "bytes at the peak:\n");
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        if (info->bytes_by_tag[tag])
            add_size(&text, qn_tag_name(tag), info->bytes_by_tag[tag]);
    add_size(&text, "gaps of the placement", info->peak_bytes - info->live_bytes);
    add_size(&text, "planned peak", info->peak_bytes);
    add_size(&text, "budget", info->budget_bytes);
    add_size(&text, "smallest budget", info->smallest_budget);
    if (info->next_budget)
        add_size(&text, "next faster plan from", info->next_budget);
    if (plan->program.blas_temp)
        add_size(&text, "of it, for CLBlast", plan->program.blas_temp);
    qn_escape(device, sizeof device, plan->facts.name);
    qn_text_add(&text, "device: %s; %d pool%s; ", device, info->pools, info->pools == 1 ? "" : "s");
    add_costs(&text, plan);
    qn_text_add(&text, "; plan %016" PRIx64 "\n", info->hash);
    return qn_text_take(&text);
}

static void add_tags_json(struct qn_text *text, const struct qn_plan_info *info)
{
    qn_text_add(text, "\"bytes_by_tag\": {");
    for (int tag = 0; tag < QN_TAG_COUNT; tag++) {
        qn_text_add(text, "%s", tag ? ", " : "");
        qn_text_json(text, qn_tag_name(tag));
        qn_text_add(text, ": %" PRId64, info->bytes_by_tag[tag]);
    }
    qn_text_add(text, "}");
}

static void add_pools_json(struct qn_text *text, const struct qn_plan *plan)
{
    qn_text_add(text, "\"pools\": [");
    for (int i = 0; i < plan->placement.n_pools; i++)
        qn_text_add(text, "%s%" PRId64, i ? ", " : "", plan->placement.pool_bytes[i]);
    qn_text_add(text, "], \"clblast_bytes\": %" PRId64, plan->program.blas_temp);
}

static void add_seconds(struct qn_text *text, const char *key, double seconds)
{
    qn_text_add(text, ", \"%s\": ", key);
    qn_text_number(text, 9, seconds);
}

static void add_steps_json(struct qn_text *text, const struct qn_phase_run *phase)
{
    qn_text_add(text, "{\"name\": ");
    qn_text_json(text, phase->name);
    qn_text_add(text, ", \"batch\": %" PRId64, phase->problem->batch);
    add_seconds(text, "seconds", phase->seconds);
    qn_text_add(text, ", ");
    qn_launches_json(text, phase);
    qn_text_add(text, ", \"steps\": [");
    for (int i = 0; i < phase->n_steps; i++) {
        const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
        qn_text_add(text, "%s[", i ? ", " : "");
        qn_text_json(text, task->name);
        qn_text_add(text, ", ");
        qn_text_json(text, qn_task_does(task));
        qn_text_add(text, "%s]", phase->steps[i].recomputed ? ", \"recomputed\"" : "");
    }
    qn_text_add(text, "]}");
}

static void add_norm_groups(struct qn_text *text, const struct qn_plan *plan)
{
    const char *name;
    for (int i = 0; (name = qn_plan_norm_group(plan, i)); i++) {
        qn_text_add(text, "%s", i ? ", " : ", \"norm_groups\": [");
        qn_text_json(text, name);
    }
    qn_text_add(text, "%s", plan->persist.groups.count ? "]" : "");
}

char *qn_plan_json(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    struct qn_text text = {0};
    const struct qn_plan_info *info = &plan->info;
    qn_text_add(&text, "{\"hash\": \"%016" PRIx64 "\", \"device\": ", info->hash);
    qn_text_json(&text, plan->facts.name);
    qn_text_add(&text,
                ", \"budget_bytes\": %" PRId64 ", \"peak_bytes_planned\": %" PRId64
                ", \"live_bytes\": %" PRId64 ", \"smallest_budget_bytes\": %" PRId64
                ", \"next_budget_bytes\": %" PRId64 ", \"batch\": %" PRId64
                ", \"micro_batch\": %" PRId64 ", \"micro_steps\": %" PRId64
                ", \"remainder\": %" PRId64 ", \"steps\": %d, \"recomputed_steps\": %d"
                ", \"micro_steps_again\": %" PRId64
                ", \"early_updates\": %s, \"parked_bytes\": %" PRId64
                ", \"trained_parameters\": %" PRId64 ", \"frozen_tensors\": %d"
                ", \"frozen_parameters\": %" PRId64 ", \"frozen_bytes\": %" PRId64
                ", \"row_bytes\": %" PRId64 ", \"row_cells\": %d",
                info->budget_bytes, info->peak_bytes, info->live_bytes, info->smallest_budget,
                info->next_budget, plan->program.cycles[0].batch, info->micro_batch,
                info->micro_steps, info->remainder, info->steps, info->recomputed_steps,
                info->micro_steps_again, info->early_updates ? "true" : "false", info->parked_bytes,
                info->trained_parameters, info->frozen_tensors, info->frozen_parameters,
                info->frozen_bytes, info->row_bytes, info->row_cells);
    add_seconds(&text, "parked_seconds", info->parked_seconds);
    add_seconds(&text, "predicted_seconds", info->seconds);
    add_seconds(&text, "keep_all_seconds", info->keep_all_seconds);
    add_seconds(&text, "backward_seconds", info->backward_seconds);
    add_seconds(&text, "update_seconds", info->update_seconds);
    add_seconds(&text, "measured_share", info->measured_share);
    qn_text_add(&text, ", \"measured_steps\": %d, \"optimizer\": \"%s\", ", measured_steps(plan),
                info->optimizer);
    add_tags_json(&text, info);
    qn_text_add(&text, ", ");
    add_pools_json(&text, plan);
    add_norm_groups(&text, plan);
    qn_text_add(&text, ", \"phases\": [");
    for (int p = 0; p < plan->program.n_phases; p++) {
        qn_text_add(&text, "%s", p ? ", " : "");
        add_steps_json(&text, &plan->program.phases[p]);
    }
    qn_text_add(&text, "]}");
    return qn_text_take(&text);
}

static bool ran_before(const struct qn_phase_run *phase, int step)
{
    for (int i = 0; i < step; i++)
        if (phase->steps[i].task == phase->steps[step].task)
            return true;
    return false;
}

char *qn_plan_variants_json(const qn_plan *plan)
{
    if (!plan)
        return NULL;
    struct qn_text text = {0};
    int shown = 0;
    qn_text_add(&text, "[");
    for (int p = 0; p < plan->program.n_phases; p++) {
        const struct qn_phase_run *phase = &plan->program.phases[p];
        for (int i = 0; i < phase->n_steps; i++) {
            const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
            if (!task->group || ran_before(phase, i))
                continue;
            qn_text_add(&text, "%s[", shown++ ? ",\n " : "");
            qn_text_json(&text, phase->name);
            qn_text_add(&text, ", ");
            qn_text_json(&text, task->name);
            const struct qn_variant *variant = &task->group->variant[task->variant];
            qn_text_add(&text, ", \"%s\", \"%s\", \"%s\", \"%s\"]", task->op->name,
                        task->group->name, variant->name, qn_setting_name(variant, task->setting));
        }
    }
    qn_text_add(&text, "]");
    return qn_text_take(&text);
}
