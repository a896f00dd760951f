#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill.py PROGRAM MOMENTS: a training that is killed with SIGKILL at random moments and resumed, some
of them inside a save, ends with the weights of one that was never stopped."""
import random
import signal
import sys
import time

from support import Bench, digest

STEPS = 24


def arguments(out):
    return ['--budget', '8MiB', '--batch', 48, '--steps', STEPS, '--set', 'train.save_every=1',
            '--set', 'train.eval_every=0', '--quiet', '--out', out]


def is_saving(out):
    """A folder under way has a name of its own until it is complete."""
    return out.exists() and any(not path.name.startswith(('update-', 'last', 'best'))
                                for path in out.iterdir())


def wait_for_moment(process, out, inside_save, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.001)
    patience = time.monotonic() + 20
    while inside_save and process.poll() is None and time.monotonic() < patience:
        if is_saving(out):
            return True
    return False


def main():
    bench = Bench(sys.argv[1])
    moments = int(sys.argv[2])
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    data = ['--set', f'data.path={bench.folder / "data"}']
    start = time.monotonic()
    want, _ = bench.weights(*arguments(bench.folder / 'whole')[:-2])
    seconds = time.monotonic() - start
    out = bench.folder / 'killed'
    kills = saves = 0
    while kills < moments:
        if not (out / 'last').exists():
            process = bench.start('train', 'fashion-mnist', *data, *arguments(out))
        else:
            process = bench.start('resume', out, '--quiet')
        inside = wait_for_moment(process, out, kills % 3 == 1, chance.uniform(0.02, 0.4) * seconds)
        process.send_signal(signal.SIGKILL)
        _, error = process.communicate()
        if process.returncode == 0:
            bench.expect(digest(out / 'last/weights.safetensors') == want, 'other weights')
            for path in out.iterdir():
                path.is_symlink() and path.unlink()
            continue
        bench.expect(process.returncode == -signal.SIGKILL, f'{process.returncode}: {error}')
        kills, saves = kills + 1, saves + inside
    process = bench.start('resume', out, '--quiet') if (out / 'last').exists() else \
        bench.start('train', 'fashion-mnist', *data, *arguments(out))
    _, error = process.communicate()
    bench.expect(process.returncode == 0, f'the last run: {error}')
    bench.expect(digest(out / 'last/weights.safetensors') == want, 'other weights at the end')
    print(f'killed at {kills} moments, {saves} of them inside a save')
    bench.end()


if __name__ == '__main__':
    main()
