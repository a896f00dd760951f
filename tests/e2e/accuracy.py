#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""accuracy.py PROGRAM: the demonstration on the whole of Fashion-MNIST: 2 epochs give at least 90 %,
6 epochs at least 92 % of the test images; 2 epochs take 10 minutes at most."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

# epochs, accuracy, minutes
GOALS = [(2, 0.90, 10), (6, 0.92, 30)]


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix='quern-e2e-') as folder:
        metrics = pathlib.Path(folder) / 'metrics.json'
        for epochs, goal, most in GOALS:
            start = time.monotonic()
            subprocess.run([sys.argv[1], 'train', 'fashion-mnist', '--budget', '32MiB', '--epochs',
                            str(epochs), '--metrics', metrics], check=True,
                           stdout=subprocess.DEVNULL)
            summary = json.loads(metrics.read_text().splitlines()[-1])['summary']
            minutes = (time.monotonic() - start) / 60
            good = summary['test_accuracy'] >= goal and minutes <= most
            passed, failed = passed + good, failed + (not good)
            print(f"{epochs} epochs: {summary['test_accuracy']:.4f}, at least {goal}; "
                  f"{minutes:.1f} minutes, at most {most}", flush=True)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
