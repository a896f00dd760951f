#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokens per second of `quern generate`, beside transformers on PyTorch in f32 with its cache on:

    tools/bench/generate.py --python PYTHON [--rounds 5] [--threads 2] [--tokens 64] [--layers 12]
                            [--program build/tools/quern/quern]

GPT-2 124M (fewer layers: a smaller one) with random weights, batch 1, greedy, after a prompt of 64
tokens. Sides take turns; the first token of each round, which waits for the prompt, does not count.
PYTHON has PyTorch and transformers, and makes the weights. Of the rounds the fastest and the median
are told, marked with (!) where the third fastest is more than 1.3 times the fastest, and the share of
the memory's speed: bytes of the weights times tokens per second, over the bytes per second at which
PyTorch sums a large array.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT, SPREAD = 64, 1.3


def prompt():
    return [(7919 * i) % 50257 for i in range(PROMPT)]


def serve(options):
    """The other side, in PYTHON: makes the weights, then answers each line with a round's figure."""
    import torch
    import transformers
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=options.layers, bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(options.serve)
    wide = torch.ones(1 << 28)
    begin = time.perf_counter()
    wide.sum()
    print(json.dumps({'weights': sum(p.numel() for p in model.parameters()),
                      'memory': 4 * len(wide) / (time.perf_counter() - begin),
                      'version': f'transformers {transformers.__version__}, '
                                 f'PyTorch {torch.__version__}'}), flush=True)
    del wide
    for _ in sys.stdin:
        with torch.no_grad():
            made, cache, begin = torch.tensor([prompt()]), None, 0
            for count in range(options.tokens):
                out = model(made, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, made = out.past_key_values, out.logits[:, -1:].argmax(-1)
                made.item()
                begin = begin or time.perf_counter()
            seconds = time.perf_counter() - begin
        print((options.tokens - 1) / seconds, flush=True)


class Transformers:
    name, width = 'transformers, f32', 4

    def __init__(self, options, folder):
        self.process = subprocess.Popen(
            [options.python, __file__, '--serve', folder, '--threads', str(options.threads),
             '--tokens', str(options.tokens), '--layers', str(options.layers)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f'{options.python}: has no PyTorch and transformers, or no memory')
        self.facts = json.loads(line)

    def round(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Quern:
    def __init__(self, options, folder, storage):
        self.name, self.width = f'quern, {storage}', 4 if storage == 'f32' else 2
        self.environment = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(options.threads)}
        self.command = [options.program, 'generate', folder, '--json', '--temperature', '0',
                        '--max-tokens', str(options.tokens), '--storage', storage, '--tokens',
                        ','.join(map(str, prompt()))]

    def round(self):
        done = subprocess.run(self.command, env=self.environment, text=True, capture_output=True)
        if done.returncode:
            sys.exit(done.stderr)
        return json.loads(done.stdout)['tokens_per_second']


def report(sides, rounds, facts):
    other = max(rounds[sides[0].name])
    print(f'{"":20} {"fastest":>9} {"median":>9} {"ratio":>7} {"of memory":>10}')
    for side in sides:
        speeds = sorted(rounds[side.name], reverse=True)
        share = facts['weights'] * side.width * speeds[0] / facts['memory']
        mark = ' (!)' if speeds[0] > SPREAD * speeds[:3][-1] else ''
        print(f'{side.name:20} {speeds[0]:9.2f} {statistics.median(speeds):9.2f} '
              f'{speeds[0] / other:7.2f} {share:10.2f}{mark}')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--tokens', type=int, default=64)
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--serve', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    with tempfile.TemporaryDirectory(prefix='quern-bench-') as folder:
        first = Transformers(options, folder)
        print(f'GPT-2, {options.layers} layers, {options.tokens} tokens after {PROMPT}, '
              f'{options.threads} threads; {first.facts["version"]}; memory '
              f'{first.facts["memory"] / 1e9:.1f} GB/s')
        sides = [first] + [Quern(options, folder, storage) for storage in ('f32', 'bf16')]
        rounds = {side.name: [] for side in sides}
        for _ in range(options.rounds):
            for side in sides:
                rounds[side.name].append(side.round())
        report(sides, rounds, first.facts)


main()
