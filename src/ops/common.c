/* SPDX-License-Identifier: MIT */
#include "ops/common.h"

#include "base/shape.h"

enum { ELEMENTS_PER_TEAM = 4096, ELEMENTS_PER_WORK_ITEM = 16, MOST_ROWS = 32768 };
enum { VECTOR_BYTES = 16 }; /* GPUs: of a load at most */

bool qn_fits_cpu(const struct qn_call *call, const char **why)
{
    *why = "made for CPUs: one work-item per work-group";
    return call->facts->cpu;
}

bool qn_fits_row_group(const struct qn_call *call, const char **why)
{
    *why = "the device's work-groups are too small";
    return call->facts->max_work_group >= QN_ROW_GROUP;
}

int64_t qn_vector_width(const struct qn_facts *facts)
{
    return facts->cpu ? facts->vector_width : 4;
}

static bool has_halves(const struct qn_operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        if (operands[i].dtype == QN_F16 || operands[i].dtype == QN_BF16)
            return true;
    return false;
}

/* On GPUs. */
static int64_t wide_vector_of(const struct qn_call *call)
{
    const bool halves = has_halves(call->in, QN_MAX_IN) || has_halves(call->out, QN_MAX_OUT) ||
                        has_halves(call->dout, QN_MAX_OUT);
    return VECTOR_BYTES / (halves ? 2 : 4);
}

int64_t qn_vector_of(const struct qn_call *call)
{
    return call->facts->cpu ? call->facts->vector_width : wide_vector_of(call);
}

void qn_launch_aligned(struct qn_launch *launch, const struct qn_call *call, int64_t width,
                       int64_t n)
{
    bool aligned = !call->cpu && n % width == 0;
    for (int i = 0; i < QN_MAX_ARGS && launch->args[i].kind != QN_ARG_END; i++)
        if (launch->args[i].kind == QN_ARG_BUFFER)
            aligned = aligned && launch->args[i].operand->offset % width == 0;
    if (aligned)
        qn_launch_option(launch, "QN_ALIGNED", 1);
}

void qn_launch_vectors(struct qn_launch *launch, const struct qn_call *call, int64_t n)
{
    const int64_t width = qn_vector_of(call);
    qn_launch_option(launch, "QN_V", width);
    qn_launch_aligned(launch, call, width, n);
}

struct qn_walk qn_walk_rows(const struct qn_call *call, int64_t n)
{
    struct qn_walk walk = {1, call->facts->vector_width, 1};
    if (call->cpu)
        return walk;
    walk = (struct qn_walk){QN_ROW_GROUP, wide_vector_of(call), 1};
    while (walk.lanes < walk.group && walk.lanes * walk.vector < n)
        walk.lanes *= 2;
    return walk;
}

void qn_walk_options(struct qn_launch *launch, const struct qn_walk *walk)
{
    qn_launch_option(launch, "QN_WG", walk->group);
    qn_launch_option(launch, "QN_V", walk->vector);
}

int64_t qn_rows_per_team(const struct qn_walk *walk, int64_t n, int64_t rows)
{
    int64_t share = walk->group == 1 ? ELEMENTS_PER_TEAM : ELEMENTS_PER_WORK_ITEM * walk->lanes;
    int64_t each = n < share ? share / n : 1;
    return each < rows ? each : rows;
}

int64_t qn_row_range(int64_t rows)
{
    return rows < MOST_ROWS ? rows : MOST_ROWS;
}

static double bytes_of(const struct qn_call *call, struct qn_ref ref)
{
    struct qn_operand *operand = qn_call_operand((struct qn_call *)call, ref);
    return operand ? (double)qn_operand_bytes(operand) : 0;
}

double qn_group_bytes(const struct qn_call *call, int group)
{
    const struct qn_group *g = &call->op->groups[group];
    double bytes = 0;
    for (int i = 0; i < QN_MAX_READS; i++)
        bytes += bytes_of(call, g->read[i].ref);
    for (int i = 0; i < QN_MAX_WRITES; i++)
        bytes += bytes_of(call, g->write[i].ref);
    return bytes;
}

void qn_launch_cost(const struct qn_call *call, int group, double flops,
                    const struct qn_operand *operand, struct qn_cost *cost)
{
    cost->flops = flops * (double)qn_operand_count(operand);
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = 1;
}

int64_t qn_rows_per_sample(const struct qn_operand *x, int64_t batch)
{
    int64_t rows = x->shape.dim[0];
    return rows < batch ? 1 : rows / batch;
}

bool qn_is_float(const struct qn_operand *operand)
{
    return operand->dtype == QN_F32 || operand->dtype == QN_F16 || operand->dtype == QN_BF16;
}

bool qn_is_row_of(const struct qn_operand *operand, int64_t count)
{
    return qn_is_float(operand) && operand->shape.rank == 1 && operand->shape.dim[0] == count;
}
