#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memory.py PROGRAM CLCOUNT: the bytes of all OpenCL buffers, counted from outside, are those of the
plan and those that the program says it made, under every budget; and what happens when the device
refuses them."""
import sys

from support import MIB, Bench

BUDGETS = [8, 12, 16, 24, 32]


OBJECTS = ['alive', 'live_bytes', 'contexts', 'queues', 'programs', 'kernels', 'events']


def is_clean(counts):
    return not any(counts[name] for name in OBJECTS)


def check_bytes(bench, *args):
    run = bench.train('--steps', 2, *args)
    if not bench.expect(run.code == 0, f'{args}: {run.code}: {run.error.strip()}'):
        return None
    summary, counts = run.summary, run.counts
    figures = {'outside': counts['peak_bytes'], 'planned': summary['peak_bytes_planned'],
               'allocated': summary['peak_bytes_allocated']}
    bench.expect(len(set(figures.values())) == 1, f'{args}: {figures}')
    bench.expect(counts['peak_bytes'] <= summary['budget_bytes'], f'{args}: above the budget')
    bench.expect(is_clean(counts), f'{args}: {counts}')
    print(f"{' '.join(map(str, args))}: {figures['planned']} of {summary['budget_bytes']} bytes, "
          f"micro-batch {summary['micro_batch']}, {summary['recomputed_steps']} recomputed")
    return run


def check_budgets(bench):
    for budget in BUDGETS:
        check_bytes(bench, '--budget', f'{budget}MiB')
    for recipe in ('linear=clblast', 'linear=gpu,conv2d=gpu'):
        check_bytes(bench, '--budget', '16MiB', '--set', f'memory.variants={recipe}')


def check_tuning(bench):
    """Timing kernels stays inside the budget too, and what was found is used the next time."""
    cache = bench.folder / 'cache'
    cache.mkdir(mode=0o700)
    plans = []
    for _ in range(2):
        run = bench.train('--steps', 1, '--tune', 'quick', '--budget', '8MiB', QN_CACHE_DIR=cache)
        if not bench.expect(run.code == 0, f'tuning: {run.code}: {run.error.strip()}'):
            return
        bench.expect(run.counts['peak_bytes'] <= run.summary['budget_bytes'], f'{run.counts}')
        bench.expect(is_clean(run.counts), f'tuning: {run.counts}')
        plans.append(run.summary['plan_hash'])
    bench.expect(plans[0] == plans[1], f'tuned twice: {plans}')


def check_recompute(bench):
    """At one micro-batch: less memory, more steps that run again."""
    keep = check_bytes(bench, '--micro-batch', 64, '--recompute', 'none', '--budget', '1GiB')
    some = int(0.75 * keep.plan['peak_bytes_planned'])
    most = keep.plan['smallest_budget_bytes']
    every = bench.train('--steps', 1, '--micro-batch', 64, '--budget', some)
    least = check_bytes(bench, '--micro-batch', 64, '--budget', every.plan['smallest_budget_bytes'])
    steps = [run.summary['recomputed_steps'] for run in (keep, every, least)]
    bench.expect(steps[0] == 0 < steps[1] < steps[2], f'recomputed steps: {steps}, {most}')


def check_smallest(bench):
    for more in ([], ['--micro-batch', 64]):
        run = bench.train('--budget', 1000, *more)
        bench.expect(run.code == 3, f'budget of 1000 bytes: {run.code}')
        smallest = run.plan.get('smallest_budget_bytes') if run.plan else None
        said = [word for word in run.error.replace(',', ' ').split() if word.isdigit()]
        smallest = smallest or max(map(int, said), default=0)
        bench.expect(run.error.count('\n') == 1, f'not one line: {run.error}')
        bench.expect(str(smallest) in said, f'{smallest} is not said: {run.error.strip()}')
        check_bytes(bench, '--budget', smallest, *more)
        run = bench.train('--budget', smallest - 1, *more)
        bench.expect(run.code == 3, f'one byte less than {smallest}: {run.code}')


def check_refusals(bench):
    """Each buffer refused in turn, then all beyond a number of bytes: one line, status 1."""
    whole = bench.train('--steps', 1, '--budget', '8MiB')
    cases = [{'CLCOUNT_FAIL_AT': n + 1} for n in range(whole.counts['created'])]
    cases += [{'CLCOUNT_LIMIT': 4 * MIB}, {'CLCOUNT_LIMIT': 0}]
    for env in cases:
        out = bench.folder / 'refused'
        run = bench.train('--steps', 1, '--budget', '8MiB', '--out', out, **env)
        bench.expect(run.code == 1, f'{env}: {run.code}')
        bench.expect(run.error.count('\n') == 1 and 'budget' in run.error,
                     f'{env}: {run.error.strip()}')
        bench.expect(not out.exists() or not any(out.iterdir()), f'{env}: files are left')
        bench.expect(is_clean(run.counts), f'{env}: {run.counts}')


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    check_budgets(bench)
    check_tuning(bench)
    check_recompute(bench)
    check_smallest(bench)
    check_refusals(bench)
    bench.end()


if __name__ == '__main__':
    main()
