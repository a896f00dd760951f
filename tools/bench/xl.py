#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GPT-2 XL, 1.5 billion parameters, all of them trained on this machine, inside a budget:

    tools/bench/xl.py [--only early,accumulated] [--updates 10] [--program build/tools/quern/quern]

early: 1 x 256 tokens, each parameter updated as soon as its gradient is complete. accumulated: two
micro-steps of 1 x 256 tokens, gradients summed in f32 and clipped. Weights start at random, tokens are
drawn; parameters are bf16 and updated by OPTIMIZER without masters in f32.

Prints the planned bytes of the device, the most that the process had in memory, the seconds of an
update and the losses, and whether the bytes keep the gate and the aim.
"""
import argparse
import array
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES, LENGTH, SAMPLES, GB = 50257, 256, 64, 1e9
OPTIMIZER = 'adamw8'
# Samples of an update, keys of its own, gate and aim in bytes.
GIB = 1 << 30
WORKS = {'early': (1, 'memory.early_updates=yes', 11 * GIB, 9 * GIB),
         'accumulated': (2, 'train.clip=1', 16 * GIB, int(14.5 * GIB))}

RECIPE = f"""[model]
name = gpt
layers = 48
heads = 25
width = 1600
logits = 0
[data]
kind = tokens
type = u16
path = tokens
tokens = {CLASSES}
length = {LENGTH}
held_out = 0
[train]
optimizer = {OPTIMIZER}
no_master = yes
lr = 0.0001
[memory]
micro_batch = 1
parameter_storage = bf16
"""


def write(folder):
    draw = random.Random(1)
    tokens = array.array('H', (draw.randrange(CLASSES) for _ in range(SAMPLES * LENGTH + 1)))
    (folder / 'tokens').write_bytes(tokens.tobytes())
    (folder / 'xl.ini').write_text(RECIPE)


def train(options, folder, name):
    batch, key, gate, aim = WORKS[name]
    figures = folder / f'{name}.jsonl'
    command = [options.program, 'train', folder / 'xl.ini', '--batch', str(batch), '--budget', str(gate),
               '--steps', str(options.updates), '--metrics', figures, '--quiet', '--set', key]
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f'{name}: the training ended with status {os.waitstatus_to_exitcode(status)}')
    return [json.loads(line) for line in figures.read_text().splitlines()], used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(WORKS))
    parser.add_argument('--updates', type=int, default=10)
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder))
        for name in options.only.split(','):
            lines, resident = train(options, pathlib.Path(folder), name)
            _, _, gate, aim = WORKS[name]
            peak = lines[0]['plan']['peak_bytes_planned']
            updates = [line for line in lines if 'loss' in line]
            losses = ' '.join(f"{update['loss']:.4f}" for update in updates)
            print(f"{name}: {peak / GIB:.2f} GiB planned (gate {gate / GIB:g}: MET; aim {aim / GIB:g}: "
                  f"{'met' if peak <= aim else 'missed'}), {resident / GIB:.2f} GiB resident, "
                  f"{statistics.median(update['seconds'] for update in updates):.1f} s an update, "
                  f'losses {losses}', flush=True)


if __name__ == '__main__':
    main()
