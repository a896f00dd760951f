#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""identity.py PROGRAM [UPDATES]: from the same weights and samples, the weights after some updates
are bit-identical whatever is recomputed and whatever the budget, at an equal micro-batch."""
import sys

from support import Bench


def check_micro_batch(bench, micro_batch, updates, *more):
    base = ['--micro-batch', micro_batch, '--steps', updates, *more]
    want, keep = bench.weights('--recompute', 'none', '--budget', '1GiB', *base)
    smallest = bench.train('--budget', 1000, *base).error
    smallest = max(int(word) for word in smallest.split() if word.isdigit())
    between = (smallest + keep.plan['peak_bytes_planned']) // 2
    for args in (['--recompute', 'all', '--budget', '1GiB'],
                 ['--recompute', 'auto', '--budget', smallest],
                 ['--recompute', 'auto', '--budget', between]):
        got, run = bench.weights(*args, *base)
        recomputed = run.summary['recomputed_steps'] if run.summary else 0
        bench.expect(recomputed > 0, f'{args} {base}: nothing is recomputed')
        bench.expect(got == want, f'{args} {base}: other weights')
        print(f'micro-batch {micro_batch}, {args}: {recomputed} steps recomputed', flush=True)


def main():
    bench = Bench(sys.argv[1])
    updates = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    check_micro_batch(bench, 64, updates)
    check_micro_batch(bench, 16, updates, '--set', 'model.dropout=0.25', '--batch', 100)
    bench.end()


if __name__ == '__main__':
    main()
