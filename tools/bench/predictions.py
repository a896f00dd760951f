#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether plans keep their word: predicted and measured time of an update, through `quern bench`.

    tools/bench/predictions.py [--only demonstration,resnet18,unet,gpt] [--rounds 3]
    tools/bench/predictions.py --starts 10 [--load 2] [--only demonstration]

The first form times the updates of four networks, each first with an empty cache, as a first training
on a machine is, then warm, in turns with the others. Measured is the fastest update of all rounds;
the aim is a prediction within 15 % of it. The second form starts again and again with an empty cache,
beside as many busy processes as --load says, and tells whether micro-batch and plan are the same each
time. Exit status: 0 if all is as it should be, else 1.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORKS = ('demonstration', 'resnet18', 'unet', 'gpt')
WITHIN = 0.15   # of the measured time
MEASURED = 0.95  # share of the predicted time that has to be measured on the device
BUSY = 'while True: pass'

HEAD = (f"{'network':34}{'':6}{'predicted':>11}{'fastest':>11}{'median':>11}{'gap':>9}"
        f"{'measured':>10}{'micro-batch':>13}  plan")


def bench(options, network, cache):
    """The update of a network, as `quern bench --json` tells of it."""
    env = {**os.environ, 'QN_CACHE_DIR': cache}
    out = subprocess.run([options.program, 'bench', '--only', f'update {network}', '--json'],
                         check=True, env=env, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)['results'][0]


def merge(runs):
    """Of several runs with one cache the last, with the fastest and the median of all."""
    return {**runs[-1], 'fastest_seconds': min(r['fastest_seconds'] for r in runs),
            'seconds': statistics.median(r['seconds'] for r in runs)}


def gap(run):
    return run['predicted_seconds'] / run['fastest_seconds'] - 1


def row(label, run):
    print(f"{run['work']:34}{label:6}{1e3 * run['predicted_seconds']:8.1f} ms"
          f"{1e3 * run['fastest_seconds']:8.1f} ms{1e3 * run['seconds']:8.1f} ms"
          f"{100 * gap(run):+7.1f} %{100 * run['measured_share']:8.1f} %"
          f"{run['micro_batch']:13}  {run['plan']}", flush=True)


def keeps_word(run):
    return abs(gap(run)) <= WITHIN and run['measured_share'] >= MEASURED


def predictions(options, networks):
    good = True
    with tempfile.TemporaryDirectory(prefix='quern-predictions-') as folder:
        caches = {network: f'{folder}/{network}' for network in networks}
        for cache in caches.values():
            os.mkdir(cache, 0o700)
        cold = {network: bench(options, network, caches[network]) for network in networks}
        warm = collections.defaultdict(list)
        for _ in range(options.rounds):
            for network in networks:
                warm[network].append(bench(options, network, caches[network]))
    print(HEAD)
    for network in networks:
        again = merge(warm[network])
        row('cold', cold[network])
        row('warm', again)
        if cold[network]['plan'] != again['plan']:
            print('  the second run has another plan')
        good = good and keeps_word(cold[network]) and keeps_word(again) \
            and cold[network]['plan'] == again['plan']
    print(f"within {100 * WITHIN:.0f} %, {100 * MEASURED:.0f} % measured, one plan: "
          f"{'MET' if good else 'MISSED'}")
    return good


def cold_starts(options, network):
    runs = []
    print(f'{options.starts} cold starts beside {options.load} busy processes\n{HEAD}')
    busy = [subprocess.Popen([sys.executable, '-c', BUSY]) for _ in range(options.load)]
    try:
        for number in range(options.starts):
            with tempfile.TemporaryDirectory(prefix='quern-start-') as cache:
                runs.append(bench(options, network, cache))
            row(str(number + 1), runs[-1])
    finally:
        for process in busy:
            process.kill()
            process.wait()
    sizes = collections.Counter(run['micro_batch'] for run in runs)
    plans = collections.Counter(run['plan'] for run in runs)
    print('micro-batches: ' + ', '.join(f'{size} in {n}' for size, n in sizes.most_common())
          + f'; {len(plans)} plans')
    return len(sizes) == 1 and all(run['measured_share'] >= MEASURED for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(NETWORKS))
    parser.add_argument('--rounds', type=int, default=3, help='with a warm cache')
    parser.add_argument('--starts', type=int, help='so many cold starts instead of the table')
    parser.add_argument('--load', type=int, default=0, help='busy processes beside cold starts')
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    options = parser.parse_args()
    networks = options.only.split(',')
    for network in networks:
        if network not in NETWORKS:
            parser.error(f'--only: {network} is none of {", ".join(NETWORKS)}')
    if options.starts:
        good = [cold_starts(options, network) for network in networks]
    else:
        good = [predictions(options, networks)]
    sys.exit(0 if all(good) else 1)


if __name__ == '__main__':
    main()
