#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Images per second of the demonstration (recipe fashion-mnist, batch 256) beside PyTorch's for the same
network, on this machine, in turns:

    tools/bench/train.py [--program build/tools/quern/quern] [--budget 32MiB] [--rounds 3]
                         [--steps 12] [--threads 2]

PyTorch is Debian's python3-torch, if it is there (/usr/bin/python3 finds it where another python3
comes first). A figure is the batch divided by the median time of an update; the first updates, which
compile or warm up, do not count. The last line is the ratio of the medians over the rounds.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    torch = None

BATCH, WARM, WIDTH = 256, 3, 32


def quern(options, folder):
    metrics = pathlib.Path(folder) / 'metrics.json'
    env = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(options.threads)}
    command = [options.program, 'train', 'fashion-mnist', '--budget', options.budget, '--batch',
               str(BATCH), '--steps', str(options.steps), '--set', 'train.eval_every=0', '--quiet',
               '--metrics', str(metrics)]
    subprocess.run(command, check=True, env=env)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    seconds = [row['seconds'] for row in rows if 'step' in row][WARM:]
    return BATCH / statistics.median(seconds), rows[0]['plan'], rows[-1]['summary']


def network():
    """The recipe's network."""
    def block(inputs, outputs):
        return [torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
    w = WIDTH
    return torch.nn.Sequential(
        *block(1, w), *block(w, w), torch.nn.MaxPool2d(2), *block(w, 2 * w), *block(2 * w, 2 * w),
        torch.nn.MaxPool2d(2), *block(2 * w, 4 * w), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(4 * w, 10))


class Torch:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.net = network()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.006)
        self.images = torch.randint(0, 256, (BATCH, 1, 28, 28), dtype=torch.uint8)
        self.labels = torch.randint(0, 10, (BATCH,))

    def update(self):
        loss = torch.nn.functional.cross_entropy(self.net((self.images / 255 - 0.286) / 0.353),
                                                 self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def rate(self, steps):
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.update()
            seconds.append(time.perf_counter() - start)
        return BATCH / statistics.median(seconds[WARM:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument('--program', default=str(root / 'build/tools/quern/quern'))
    parser.add_argument('--budget', default='32MiB')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--threads', type=int, default=2)
    options = parser.parse_args()
    if options.steps <= WARM:
        parser.error(f'--steps must be above {WARM}')
    version = subprocess.run([options.program, '--version'], text=True, stdout=subprocess.PIPE,
                             check=True).stdout.strip()
    other = Torch(options.threads) if torch else None
    print(f'{version}; PyTorch {torch.__version__ if torch else "is not installed"}; '
          f'{platform.platform()}, {options.threads} threads')
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            rate, plan, summary = quern(options, folder)
            ours.append(rate)
            if other:
                theirs.append(other.rate(options.steps))
            if number == 0:
                print(f"{plan['device']}: {summary['peak_bytes_allocated']} of "
                      f"{summary['budget_bytes']} bytes, micro-batch {summary['micro_batch']}")
            print(f'round {number + 1}: Quern {rate:.0f} images/s' +
                  (f', PyTorch {theirs[-1]:.0f}' if other else ''), flush=True)
    rate = statistics.median(ours)
    print(f'median: Quern {rate:.0f} images/s' +
          (f', PyTorch {statistics.median(theirs):.0f}' if other else ''))
    if other:
        print(f'Quern / PyTorch: {rate / statistics.median(theirs):.2f}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
