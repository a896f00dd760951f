#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill.py PROGRAM MOMENTS: a training that is killed with SIGKILL at random moments and resumed, some
of them inside a save, ends with the last and the best weights of one that was never stopped."""
import random
import signal
import sys
import time

from support import Bench, digest

STEPS = 24


def arguments(out):
    return ['--tune', 'off', '--budget', '8MiB', '--batch', 48, '--steps', STEPS, '--set',
            'train.save_every=1', '--set', 'train.eval_every=1 update', '--quiet', '--out', out]


def is_saving(out):
    """A folder under way has a name of its own until it is complete."""
    return out.exists() and any(not path.name.startswith(('update-', 'last', 'best'))
                                for path in out.iterdir())


def stop_inside_save(process, out):
    """Holds the process while it saves, so that it cannot end the save before it is killed."""
    patience = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < patience:
        if is_saving(out):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.01)
            if is_saving(out):
                return
            process.send_signal(signal.SIGCONT)


def wait_for_moment(process, out, inside_save, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.001)
    if inside_save:
        stop_inside_save(process, out)


def digests(out):
    return [digest(out / name / 'weights.safetensors') for name in ('last', 'best')]


def main():
    bench = Bench(sys.argv[1])
    moments = int(sys.argv[2])
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    data = ['--set', f'data.path={bench.folder / "data"}']
    start = time.monotonic()
    process = bench.start('train', 'fashion-mnist', *data, *arguments(bench.folder / 'whole'))
    _, error = process.communicate()
    bench.expect(process.returncode == 0, f'train: {error}')
    seconds = time.monotonic() - start
    want = digests(bench.folder / 'whole')
    out = bench.folder / 'killed'
    kills = saves = 0
    while kills < moments:
        if not (out / 'last').exists():
            process = bench.start('train', 'fashion-mnist', *data, *arguments(out))
        else:
            process = bench.start('resume', out, '--quiet')
        wait_for_moment(process, out, kills % 3 == 1, chance.uniform(0.02, 0.4) * seconds)
        process.send_signal(signal.SIGKILL)
        _, error = process.communicate()
        if process.returncode == 0:
            bench.expect(digests(out) == want, 'other weights')
            for path in out.iterdir():
                path.is_symlink() and path.unlink()
            continue
        bench.expect(process.returncode == -signal.SIGKILL, f'{process.returncode}: {error}')
        kills, saves = kills + 1, saves + is_saving(out)
    process = bench.start('resume', out, '--quiet') if (out / 'last').exists() else \
        bench.start('train', 'fashion-mnist', *data, *arguments(out))
    _, error = process.communicate()
    bench.expect(process.returncode == 0, f'the last run: {error}')
    bench.expect(digests(out) == want, 'other weights at the end')
    bench.expect(saves > 0, 'no kill landed inside a save')
    print(f'killed at {kills} moments, {saves} of them inside a save')
    bench.end()


if __name__ == '__main__':
    main()
