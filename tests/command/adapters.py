#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""adapters.py PROGRAM GOLDEN: low-rank adapters on their way through recipes: PEFT's files that a
training begins with (train.adapters), merged and alone on export, and what is wrong with them: one
line with file and field, status 1, and nothing written. GOLDEN is a GPT-2 of transformers with adapters
of PEFT (tools/golden/lora.py)."""
import json
import pathlib
import shutil
import struct
import sys

from support import Bench
from weights import fails, read_tensors, write_tensors

RECIPE = """[model]
name = gpt
{model}[data]
kind = tokens
type = u16
path = t.bin
length = 12
tokens = 40
[train]
weights = gpt2
{train}steps = 1
batch = 2
optimizer = adamw
lr = 1e-30
[memory]
budget = 16MiB
tune = off
"""
ADAPTERS = 'train g.ini --out out --metrics m.json'
# (fields that are changed, None: removed; what the line matches)
CONFIG = [
    ({'peft_type': 'IA3'}, r'peft_type: is not LORA'),
    ({'peft_type': None}, r'peft_type: is not LORA'),
    ({'r': None}, r'r: is missing or no number'),
    ({'r': '3'}, r'r: is missing or no number'),
    ({'lora_alpha': None}, r'lora_alpha: is missing or no number'),
    ({'lora_dropout': 'x'}, r'lora_dropout: is missing or no number'),
    ({'use_dora': True}, r'use_dora: is on, and adapters here have nothing of it'),
    ({'use_rslora': True}, r'use_rslora: is on'),
    ({'rank_pattern': {'c_attn': 8}}, r'rank_pattern: is on'),
    ({'bias': 'all'}, r'bias: is on'),
    ({'new\n\x1b[2Jthing': 1}, r'new\\n\\x1b\[2Jthing: is on'),
    ({'target_modules': '.*attn'}, r'target_modules: is no list of names'),
    ({'target_modules': [1]}, r'target_modules: is no list of names'),
    ({'target_modules': ['a\nb']}, r'target_modules: is no list of names'),
    ({'target_modules': ['c_attn*']}, r'target_modules: is no list of names'),
]


def recipe(bench, model='', train='adapters = peft\n'):
    (bench.folder / 'g.ini').write_text(RECIPE.format(model=model, train=train))


def floats(tensor):
    return struct.unpack(f'<{len(tensor[2]) // 4}f', tensor[2])


def check_export(bench, golden):
    """At no learning rate the exported adapters are those of PEFT, and so are the merged weights."""
    recipe(bench)
    out = bench.good('train', 'g.ini', '--out', 'run')
    bench.expect('adapters: ' in out and ': 12 tensors' in out and 'frozen: ' in out, out)
    bench.good('export', 'run', '--adapters', '--out', 'alone')
    bench.good('export', 'run', '--out', 'merged')
    given = read_tensors(golden / 'adapter_model.safetensors')
    alone = bench.folder / 'alone'
    bench.expect(read_tensors(alone / 'adapter_model.safetensors') == given, 'adapters of export')
    config = json.loads((alone / 'adapter_config.json').read_text())
    original = json.loads((golden / 'adapter_config.json').read_text())
    for name in ('peft_type', 'r', 'lora_alpha', 'lora_dropout', 'bias', 'fan_in_fan_out', 'task_type',
                 'modules_to_save'):
        bench.expect(config[name] == original[name], f'{name}: {config[name]}')
    layers = {name[len('base_model.model.'):].rsplit('.', 2)[0] for name in given}
    bench.expect(set(config['target_modules']) == layers, f'{config["target_modules"]}')
    merged = read_tensors(bench.folder / 'merged/model.safetensors')
    bench.expect(merged.keys() == read_tensors(golden / 'model.safetensors').keys(), 'merged names')
    for name, wanted in read_tensors(golden / 'golden.safetensors').items():
        if not name.startswith('merged.'):
            continue
        got = merged[name[len('merged.'):]]
        far = max(abs(a - b) for a, b in zip(floats(got), floats(wanted)))
        bench.expect(got[1] == wanted[1] and far < 1e-6, f'{name}: {got[1]}, {far}')
    fails(bench, 'export run --adapters --out alone', 2, 'holds a model already', '--out: alone')
    shutil.rmtree(bench.folder / 'run')


def check_again(bench):
    """What was exported begins a training like what was read, layers that are trained whole too. An
    update at next to no rate still moves the zeros of B."""
    recipe(bench, train='adapters = alone\n')
    bench.good('plan', 'g.ini')
    recipe(bench, 'lora_rank = 2\nlora_targets = h.1.*\nlora_whole = ln_f\n', '')
    bench.good('train', 'g.ini', '--quiet', '--out', 'run')
    bench.good('resume', 'run', '--steps', '2', '--quiet')
    bench.good('eval', 'run')
    bench.good('export', 'run', '--adapters', '--out', 'whole')
    own = read_tensors(bench.folder / 'run/last/weights.safetensors')
    recipe(bench, train='adapters = whole\n')
    bench.good('train', 'g.ini', '--quiet', '--out', 'again')
    again = read_tensors(bench.folder / 'again/last/weights.safetensors')
    for name in own:
        far = max(abs(a - b) for a, b in zip(floats(again[name]), floats(own[name])))
        bench.expect(far < 1e-20, f'{name} of adapters that were exported: {far}')
    recipe(bench, train='')
    for name in ('run', 'again'):
        shutil.rmtree(bench.folder / name)
    bench.good('train', 'g.ini', '--quiet', '--out', 'run')
    fails(bench, 'export run --adapters --out out', 1, r'its model has no adapters', 'model.lora_rank')
    shutil.rmtree(bench.folder / 'run')


def check_files(bench, golden):
    path = bench.folder / 'peft/adapter_config.json'
    config = json.loads(path.read_text())
    recipe(bench, 'lora_rank = 4\n')
    fails(bench, ADAPTERS, 1, r'r: is 3, but model\.lora_rank of g\.ini is 4', 'peft/adapter_config.json')
    recipe(bench, 'lora_targets = c_fc\n')
    fails(bench, ADAPTERS, 1, r'tensor .*c_fc\.lora_A\.weight: is missing', 'adapter_model.safetensors: ')
    recipe(bench)
    for changes, pattern in CONFIG:
        changed = {name: value for name, value in {**config, **changes}.items() if value is not None}
        path.write_text(json.dumps(changed))
        fails(bench, ADAPTERS, 1, pattern, 'peft/adapter_config.json: ')
    for text in ('', '{} {}', '[]', '{"r": 2, ' + json.dumps(config)[1:]):
        path.write_text(text)
        fails(bench, ADAPTERS, 1, r'is no (well-formed JSON|JSON object)|r: is there twice', 'peft/adapter_config.json: ')
    path.unlink()
    fails(bench, ADAPTERS, 1, 'No such file', 'peft/adapter_config.json: ')
    shutil.copy(golden / 'adapter_config.json', path)
    path.write_text(json.dumps({**config, 'target_modules': ['score', *config['target_modules']],
                                'modules_to_save': ['classifier', 'score']}))
    bench.good('plan', 'g.ini')
    weights = bench.folder / 'peft/adapter_model.safetensors'
    given = read_tensors(weights)
    name = next(iter(given))
    dtype, shape, data = given[name]
    for tensors, pattern in (
            ({k: v for k, v in given.items() if k != name}, r'lora_A\.weight: is missing'),
            ({**given, 'base_model.model.x.lora_A.weight': given[name]},
             r'x\.lora_A\.weight: the model has none of that name'),
            ({**given, name: (dtype, shape[::-1], data)}, r'has shape \(')):
        write_tensors(weights, tensors)
        fails(bench, ADAPTERS, 1, pattern, 'adapter_model.safetensors: ')
    weights.unlink()
    fails(bench, ADAPTERS, 1, 'No such file', 'adapter_model.safetensors: ')


def main():
    golden = pathlib.Path(sys.argv[2])
    with Bench(sys.argv[1]) as bench:
        (bench.folder / 't.bin').write_bytes(struct.pack('<600H', *(i * i % 40 for i in range(600))))
        for folder, names in (('gpt2', ('model.safetensors', 'config.json')),
                              ('peft', ('adapter_model.safetensors', 'adapter_config.json'))):
            (bench.folder / folder).mkdir()
            for name in names:
                shutil.copy(golden / name, bench.folder / folder)
        check_export(bench, golden)
        check_again(bench)
        check_files(bench, golden)
        bench.end()


if __name__ == '__main__':
    main()
