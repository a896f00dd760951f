#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memory.py PROGRAM CLCOUNT: the bytes of all OpenCL buffers, counted from outside, are those of the
plan and those that the program says it made, under every budget; and what happens when the device
refuses them."""
import json
import sys
import time

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


def losses_of(run):
    return [update['loss'] for update in run.updates]


def check_budget_file(bench):
    """Another budget after every three updates: other plans, the same losses, never more bytes."""
    sizes = [8, 64, 12, 7, 40, 10, 24, 9, 16, 100]
    file, metrics = bench.folder / 'budget', bench.folder / 'metrics.json'
    file.write_text('20MiB\n')
    out = bench.train('--steps', 36, '--budget', '20MiB')
    metrics.unlink()
    process = bench.start('train', 'fashion-mnist', '--set', f'data.path={bench.folder / "data"}',
                          '--tune', 'off', '--steps', 36, '--metrics', metrics, '--budget-file',
                          file)
    while process.poll() is None and sizes:
        time.sleep(0.01)
        if metrics.exists() and metrics.read_text().count('"step"') >= 3 * (11 - len(sizes)):
            file.write_text(f'{sizes.pop(0)}MiB\n')
    process.communicate(timeout=900)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    plans = [row['plan'] for row in rows if 'plan' in row]
    other = [row['loss'] for row in rows if 'step' in row]
    counts = json.loads((bench.folder / 'counts.json').read_text())
    bench.expect(process.returncode == 0 and len(other) == 36, f'{process.returncode}: {rows[-1]}')
    bench.expect(len({plan['hash'] for plan in plans}) > 5, 'the plans are the same')
    bench.expect(len({plan['micro_batch'] for plan in plans}) > 2, 'the micro-batches are the same')
    bench.expect(all(plan['peak_bytes_planned'] <= plan['budget_bytes'] for plan in plans), 'peaks')
    bench.expect(counts['peak_bytes'] == max(plan['peak_bytes_planned'] for plan in plans),
                 f'{counts}')
    bench.expect(all(abs(a - b) <= 2e-3 * b for a, b in zip(other, losses_of(out))),
                 f'{other} {losses_of(out)}')
    bench.expect(is_clean(counts), f'budget file: {counts}')


def check_bad_budget_file(bench):
    """What is no size, or too small, is a warning; the first time it is refused."""
    file = bench.folder / 'budget'
    for text, said in (('lots', "'lots' is not a size"), ('', 'is not a size')):
        file.write_text(text)
        run = bench.train('--budget-file', file)
        bench.expect(run.code == 2 and said in run.error, f'{text}: {run.code}: {run.error}')
    run = bench.train('--budget-file', bench.folder / 'nowhere')
    bench.expect(run.code == 2 and 'No such file' in run.error, f'{run.code}: {run.error}')
    run = bench.train('--budget-file', file, '--budget', '1MiB')
    bench.expect(run.code == 2 and 'exclude each other' in run.error, f'{run.code}: {run.error}')
    file.write_text('20MiB')
    process = bench.start('train', 'fashion-mnist', '--set', f'data.path={bench.folder / "data"}',
                          '--tune', 'off', '--steps', 40, '--budget-file', file)
    for text in ('1KiB', 'lots'):
        time.sleep(3)
        file.write_text(text)
    _, error = process.communicate(timeout=900)
    bench.expect(process.returncode == 0, f'{process.returncode}: {error}')
    bench.expect(error.count('; the old plan goes on') == error.count('\n') > 0, error)


def check_trials(bench):
    """The buffers in which a device's matrix units are tried when it is opened: refused, they are
    not used. Gives their number."""
    bench.run('plan', 'fashion-mlp')
    trials = json.loads((bench.folder / 'counts.json').read_text())['created']
    for n in range(trials):
        run = bench.train('--steps', 1, '--budget', '8MiB', CLCOUNT_FAIL_AT=n + 1)
        bench.expect(run.code == 0 and not run.error, f'trial {n}: {run.code}: {run.error.strip()}')
        bench.expect(is_clean(run.counts), f'trial {n}: {run.counts}')
    return trials


def check_refusals(bench):
    """Each buffer refused in turn, then all beyond a number of bytes: one line, status 1."""
    trials = check_trials(bench)
    whole = bench.train('--steps', 1, '--budget', '8MiB')
    cases = [{'CLCOUNT_FAIL_AT': n + 1} for n in range(trials, whole.counts['created'])]
    bench.expect(cases, 'a training makes no buffers')
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
    check_budget_file(bench)
    check_bad_budget_file(bench)
    check_refusals(bench)
    bench.end()


if __name__ == '__main__':
    main()
