#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quern generate: texts of a model that it trained, and of GPT-2 in Hugging Face's layout.

generate.py QUERN GOLDEN, the folder tests/golden/gpt2
"""
import json
import shutil
import signal
import sys

from support import Bench

RECIPE = """[model]
name = {model}
layers = 1
heads = 2
width = 32
logits = 0
{more}
[data]
kind = text
path = {path}
length = 32
held_out = 0.2
[train]
batch = 8
steps = 60
optimizer = adamw
lr = 0.01
[memory]
budget = 64MiB
tune = off
"""
ALPHABET = 'abcdefghijklmnopqrstuvwxyz\n'
GREEDY = ('--temperature', '0')


def train(bench, model, more=''):
    text = bench.folder / 'text.txt'
    text.write_text(ALPHABET * 200)
    (bench.folder / 'r.ini').write_text(RECIPE.format(model=model, more=more, path=text))
    bench.good('train', 'r.ini', '--out', model, '--quiet')


def texts(bench, model):
    """The model has learned what comes after what, so that every wrong position shows."""
    run = lambda *more: bench.good('generate', model, *more)
    bench.expect(run('--prompt', 'abc', '--max-tokens', '12', *GREEDY) == 'defghijklmno', model)
    bench.expect(run('--prompt', 'k', '--max-tokens', '3', *GREEDY) == 'lmn', f'{model}: one byte')
    long = run('--prompt', 'fghijklmnopqrstuvwxyz\nabc', '--max-tokens', '99', *GREEDY)
    bench.expect(long == 'defghij', f'{model}: ends with the positions: {long!r}')
    stop = run('--prompt', 'abc', '--stop', 'zz', '--stop', 'jk', '--stop', 'ghx', *GREEDY)
    bench.expect(stop == 'defghi', f'{model}: stop text: {stop!r}')
    half = run('--prompt', 'abc', '--max-tokens', '5', '--storage', 'bf16', *GREEDY)
    bench.expect(half == 'defgh', f'{model}: bf16: {half!r}')
    (bench.folder / 'prompt').write_text('xyz')
    bench.expect(run('--prompt-file', 'prompt', '--max-tokens', '3', *GREEDY) == '\nab', 'file')
    bench.expect(run('--tokens', '97,98', '--max-tokens', '2', *GREEDY) == 'cd', 'tokens')


def facts(bench):
    args = ('generate', 'gpt', '--prompt', 'abc', '--json', '--max-tokens', '6')
    first = json.loads(bench.good(*args, '--temperature', '3', '--seed', '7'))
    again = json.loads(bench.good(*args, '--temperature', '3', '--seed', '7'))
    other = json.loads(bench.good(*args, '--temperature', '3', '--seed', '8'))
    best = json.loads(bench.good(*args, '--temperature', '9', '--top-k', '1'))
    bench.expect(first['tokens'] == again['tokens'] != other['tokens'], 'the seed says which')
    bench.expect(best['text'] == 'defghi' and best['end'] == 'tokens', f'top-k 1: {best}')
    bench.expect(bytes(best['tokens']) == b'defghi' and best['prompt_tokens'] == 3, 'tokens')
    bench.expect(best['tokens_per_second'] > 0, 'speed')
    bench.expect(best['peak_bytes_planned'] == best['peak_bytes_allocated'], 'bytes')


def budgets(bench):
    args = ('generate', 'gpt', '--prompt', 'abcdefghij', '--max-tokens', '4', *GREEDY)
    code, out, error = bench.run(*args, '--budget', '1KiB', '--json')
    smallest = json.loads(out)['smallest_budget_bytes']
    bench.expect(code == 3 and str(smallest) in error, f'{code}: {error}')
    bench.expect(bench.run(*args, '--budget', smallest - 1)[0] == 3, 'a byte less')
    facts = json.loads(bench.good(*args, '--budget', smallest, '--json'))
    bench.expect(facts['text'] == 'klmn', f'smallest budget: {facts}')
    bench.expect(facts['peak_bytes_allocated'] == facts['budget_bytes'] == smallest, f'{facts}')


def refused(bench):
    for code, reason, args in (
            (2, 'needs one of', ()),
            (2, 'needs one of', ('--prompt', 'a', '--tokens', '1')),
            (1, 'prompt is empty', ('--prompt', '')),
            (1, 'more tokens than the 32 positions', ('--prompt', 'a' * 33)),
            (1, "'256' is no token from 0 to 255", ('--tokens', '1,256')),
            (1, 'is no token', ('--tokens', '1;2')),
            (2, '--temperature', ('--prompt', 'a', '--temperature', '-1')),
            (2, '--top-p', ('--prompt', 'a', '--top-p', '1.5')),
            (2, '--top-k', ('--prompt', 'a', '--top-k', '0')),
            (2, '--stop', ('--prompt', 'a', '--stop', '')),
            (2, '--storage', ('--prompt', 'a', '--storage', 'f64')),
            (1, 'no-such-file', ('--prompt-file', 'no-such-file'))):
        got, out, error = bench.run('generate', 'gpt', *args)
        good = got == code and not out and reason in error and error.count('\n') == 1
        bench.expect(good, f'{args}: {got}: {error}')
    got, _, error = bench.run('generate', 'no-such-folder', '--prompt', 'a')
    bench.expect(got == 1 and error.count('\n') == 1, f'no folder: {got}: {error}')


def interrupted(bench):
    """A long text ends with the signal's status, behind whole characters."""
    text = RECIPE.replace('length = 32', 'length = 4096').replace('steps = 60', 'steps = 1')
    text = text.replace('batch = 8', 'batch = 1').replace('width = 32', 'width = 64')
    (bench.folder / 'long.txt').write_text(ALPHABET * 1000)
    path = bench.folder / 'long.txt'
    (bench.folder / 'l.ini').write_text(text.format(model='gpt', more='', path=path))
    bench.good('train', 'l.ini', '--out', 'long', '--quiet')
    process = bench.start('generate', 'long', '--prompt', 'a', '--max-tokens', '4000')
    process.stdout.buffer.read(1)
    process.send_signal(signal.SIGINT)
    rest, error = process.stdout.buffer.read(), process.stderr.read()
    code = process.wait(300)
    bench.expect(code == 130 and not error, f'SIGINT: {code}: {error}')
    bench.expect(len(rest) < 3900, f'{len(rest)} bytes after the signal')


def huggingface(bench, golden):
    shutil.copytree(golden, bench.folder / 'hf')
    args = ('generate', 'hf', '--tokens', '1,2,3', '--max-tokens', '5')
    numbers = bench.good(*args, *GREEDY)
    facts = json.loads(bench.good(*args, *GREEDY, '--json'))
    bench.expect([int(n) for n in numbers.split()] == facts['tokens'], 'numbers')
    for case in json.loads((bench.folder / 'hf' / 'greedy.json').read_text()):
        prompt = ','.join(map(str, case['prompt']))
        out = bench.good('generate', 'hf', '--tokens', prompt, *GREEDY)
        bench.expect(case['lead'] > 1e-3 and [int(n) for n in out.split()] == case['tokens'],
                     f'as transformers: {case}: {out}')
    code, _, error = bench.run('generate', 'hf', '--prompt', 'abc')
    bench.expect(code == 2 and '--tokenizer' in error, f'no tokenizer: {code}: {error}')


def main():
    with Bench(sys.argv[1]) as bench:
        train(bench, 'gpt')
        texts(bench, 'gpt')
        facts(bench)
        budgets(bench)
        refused(bench)
        train(bench, 'llama', 'kv_heads = 1\ninner = 64')
        texts(bench, 'llama')
        huggingface(bench, sys.argv[2])
        interrupted(bench)
        bench.end()


main()
