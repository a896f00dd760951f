/* SPDX-License-Identifier: MIT
 *
 * Runs the operators' checks (src/check/) on a device:
 *
 *     OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd build/tests/check_ops [FILTER] [OPTION]...
 *
 *     FILTER          "relu", "add,relu", or one case of one operator: "relu/a tail"; none: all
 *     --small         only the cases marked as small
 *     --quick         with --small, of those as much as `quern check --small` takes
 *     --every-type    each case in every storage type; otherwise in f32 and by turns in f16 and
 *                     bf16, but for small cases without --small whose types have code of their own
 *     --stop          ends at the first failure
 *     --seed N        other random values
 *     --far N         one small case of each in f32, operands so many bytes into their buffers
 *     --kernels DIR   kernels from DIR rather than those built in: no rebuild after editing a .cl
 * file
 *     --device TEXT   another device than the first
 *     --variants A,B  these variants alone
 *     --all-variants  every variant of every operator must have run in some case
 *     --verbose       prints what passed and what does not apply, too
 *
 * To check an operator NAME: write src/ops/NAME.c, cl_kernels/NAME.cl and src/check/ops/NAME.c (see
 * src/check/check.h), add X(NAME) to src/op/list.h, build, run with NAME as the filter. Each
 * failure is one line: operator, case, storage type, variant, then the phase and what differs
 * first. A pass with "beta" is an accumulation; "alternative" and "in place" are the choices that a
 * group declares. All tolerances are in src/check/tolerance.c.
 *
 * Under oclgrind (without optimisation: its check for uninitialised memory crashes on what the
 * vectoriser makes; without binaries of other runs; its exit status says nothing, read the log):
 *
 *     QN_CACHE_DIR= oclgrind --uninitialized --data-races --log FILE \
 *         --build-options -cl-opt-disable build/tests/check_ops --small
 *
 * Ends with "N passed, N failed"; the exit status is 1 if anything failed or nothing ran.
 */
#include <quern/check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool verbose;

static void print_record(void *user, const qn_check_record *r)
{
    static const char *const words[] = {"passed", "FAILED", "not applicable"};
    (void)user;
    if (r->outcome == QN_CHECK_FAILED || verbose)
        printf("%s: %s, %s, %s, %s%s%s\n", words[r->outcome], r->op, r->item, r->storage,
               r->variant, *r->reason ? ": " : "", r->reason);
    fflush(stdout);
}

static void print_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

static int usage(const char *program)
{
    fprintf(
        stderr,
        "usage: %s [FILTER] [--small] [--quick] [--every-type] [--stop] [--seed N] [--kernels DIR] "
        "[--device TEXT] [--variants A,B] "
        "[--all-variants] [--far N] [--verbose]\n",
        program);
    return 2;
}

static bool parse(int argc, char **argv, qn_device_params *device, qn_check_params *check)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--small") == 0)
            check->small = true;
        else if (strcmp(argv[i], "--quick") == 0)
            check->quick = true;
        else if (strcmp(argv[i], "--every-type") == 0)
            check->every_type = true;
        else if (strcmp(argv[i], "--stop") == 0)
            check->stop = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--all-variants") == 0)
            check->all_variants = true;
        else if (strcmp(argv[i], "--seed") == 0 && next)
            check->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--far") == 0 && next)
            check->far = strtoll(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--kernels") == 0 && next)
            device->kernel_dir = argv[++i];
        else if (strcmp(argv[i], "--variants") == 0 && next)
            check->variants = argv[++i];
        else if (strcmp(argv[i], "--device") == 0 && next)
            device->match = argv[++i];
        else if (argv[i][0] != '-' && !check->filter)
            check->filter = argv[i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    qn_device_params params = {.log = {.fn = print_message}};
    qn_check_params check = {.fn = print_record};
    qn_check_summary summary = {0};
    qn_device *device = NULL;
    if (!parse(argc, argv, &params, &check))
        return usage(argv[0]);
    if (qn_device_open(&device, &params) != QN_OK)
        return 1;
    const qn_device_info *info = qn_device_describe(device);
    qn_status status = qn_check_run(device, &check, &summary);
    printf("%s (%s), seed %llu, %d not applicable\n", info->device, info->platform,
           (unsigned long long)summary.seed, summary.not_applicable);
    qn_device_close(&device);
    int failed = summary.failed + (status != QN_OK);
    printf("%d passed, %d failed\n", summary.passed, failed);
    return failed > 0 || summary.passed == 0;
}
