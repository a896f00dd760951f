#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weights.py PROGRAM GPT2 NETWORKS: a training that begins with weights (train.weights), what config.json
says about a recipe, and what is wrong with either: one line with file and field, status 1, and nothing
written. GPT2 and NETWORKS are folders of small
networks of transformers."""
import json
import pathlib
import random
import re
import shutil
import struct
import sys

from support import Bench

GPT = """[model]
{model}[data]
kind = tokens
path = .
length = {length}
{data}[train]
weights = {weights}
steps = 1
batch = 2
optimizer = adamw
[memory]
budget = 16MiB
tune = off
"""
# (fields that are changed, None: removed; what the line matches)
CONFIG = [
    ({'model_type': 'llama4'}, r"model_type: 'llama4' is no model that ships"),
    ({'model_type': None}, r'model_type: is missing or no text'),
    ({'model_type': 2}, r'model_type: is missing or no text'),
    ({'n_layer': None}, r'n_layer: is missing'),
    ({'n_layer': 2.5}, r'n_layer: is no whole number'),
    ({'n_head': '3'}, r'n_head: is no whole number'),
    ({'n_head': 5}, r'n_embd: is not a multiple of n_head'),
    ({'n_embd': 0}, r'n_embd: is no whole number from 1'),
    ({'n_inner': 95}, r'n_inner: is not 4 n_embd'),
    ({'n_ctx': 17}, r'n_ctx: is not n_positions'),
    ({'n_positions': 15}, r'n_positions: is 15, but a sample has 16 tokens'),
    ({'vocab_size': 1 << 40}, r'vocab_size: is no whole number'),
    ({'tie_word_embeddings': 1}, r'tie_word_embeddings: is neither true nor false'),
    ({'activation_function': 'relu'}, r'activation_function: is "relu"; the model has "gelu_new"'),
    ({'layer_norm_epsilon': 1e-6}, r'layer_norm_epsilon: is 1e-06; the model has 1e-05'),
    ({'scale_attn_weights': False}, r'scale_attn_weights: is false; the model has true'),
    ({'scale_attn_by_inverse_layer_idx': True}, r'inverse_layer_idx: is true; the model has false'),
    ({'add_cross_attention': True}, r'add_cross_attention: is true'),
    ({'resid_pdrop': 1}, r'resid_pdrop: is no fraction'),
    ({'rope\n\x1b[2Jtheta': 1}, r'rope\\n\\x1b\[2Jtheta: is not known'),
]
LLAMA3 = {'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
          'original_max_position_embeddings': 8192}
LLAMA = [
    ({'num_attention_heads': 5}, r'hidden_size: is not a multiple of num_attention_heads'),
    ({'num_key_value_heads': 3}, r'num_attention_heads: is not a multiple of num_key_value_heads'),
    ({'head_dim': 16}, r'head_dim: is not the width over num_attention_heads'),
    ({'rms_norm_eps': 0}, r'rms_norm_eps: is no number above 0'),
    ({'rope_parameters': {'rope_type': 'yarn'}}, r'rope_parameters: rope_type: the model has "default"'),
    ({'rope_parameters': {'factor': 8.0}}, r'rope_parameters: factor: is not known'),
    ({'rope_parameters': {'rope_theta': 0}}, r'rope_parameters: rope_theta: is no number above 0'),
    ({'rope_scaling': {'type': 'dynamic', 'factor': 2.0}}, r'rope_scaling: type: the model has "default"'),
    ({'rope_scaling': {'type': 'linear'}}, r'rope_scaling: factor: is missing'),
    ({'rope_scaling': {'type': 'linear', 'factor': 0.5}}, r'rope_scaling: factor: is no number from 1'),
    ({'rope_scaling': {'rope_type': 'llama3', 'factor': 8.0}}, r'rope_scaling: low_freq_factor: is missing'),
    ({'rope_scaling': {**LLAMA3, 'low_freq_factor': 4.0}},
     r'rope_scaling\.high_freq_factor: is not above rope_scaling\.low_freq_factor'),
    ({'rope_scaling': {**LLAMA3, 'original_max_position_embeddings': 8192.5}},
     r'original_max_position_embeddings: is no whole number'),
    ({'rope_scaling': LLAMA3, 'rope_parameters': LLAMA3}, r'scales positions that are scaled already'),
    ({'rope_scaling': 8.0}, r'rope_scaling: is neither null nor an object'),
    ({'rope_scaling.factor': 8.0}, r'rope_scaling\.factor: is not known'),
    ({'attention_bias': True}, r'attention_bias: is true; the model has false'),
    ({'intermediate_size': None}, r'intermediate_size: is missing'),
]
BERT = [
    ({'attention_probs_dropout_prob': 0.5},
     r'attention_probs_dropout_prob: is not hidden_dropout_prob'),
    ({'type_vocab_size': 1}, r'type_vocab_size: is 1; the model has 2'),
    ({'hidden_act': 'relu'}, r'hidden_act: is "relu"; the model has "gelu"'),
    ({'id2label': []}, r'id2label: is no object with a name for each class'),
    ({'num_labels': 0}, r'num_labels: is no whole number'),
]
TOKENS = """[data]
kind = tokens
type = u16
path = tokens
length = 12
held_out = 0
{data}[train]
weights = {name}
steps = 1
batch = 2
optimizer = adamw
lr = 1e-30
weight_decay = 0
[memory]
budget = 16MiB
tune = off
"""
# (keys of [model], of [data], what the line matches)
RECIPES = [
    ('layers = 3\n', '', r'n_layer: is 2, but model\.layers of g\.ini is 3'),
    ('width = 24.5\n', '', r'n_embd: is 24, but model\.width of g\.ini is 24\.5'),
    ('tied = 0\n', '', r'tie_word_embeddings: is 1, but model\.tied of g\.ini is 0'),
    ('name = mlp\n', '', r'model_type: is gpt2, the model gpt, but model\.name of g\.ini is mlp'),
    ('', 'tokens = 65\n', r'vocab_size: is 64, but data\.tokens of g\.ini is 65'),
]


def fails(bench, args, code, pattern, path=''):
    """One line that names the path and has the pattern; no folder `out`, no file `m.json`."""
    status, _, error = bench.run(*args.split())
    lines = error.strip().splitlines()
    fits = len(lines) == 1 and re.search(pattern, lines[0]) and path in lines[0]
    left = [name for name in ('out', 'm.json') if (bench.folder / name).exists()]
    bench.expect(status == code and fits and not left,
                 f'{args}: {status}, {left}: {error.strip()}: not {pattern}')


def read_tensors(path):
    whole = pathlib.Path(path).read_bytes()
    length = struct.unpack('<Q', whole[:8])[0]
    header = json.loads(whole[8:8 + length])
    header.pop('__metadata__', None)
    return {name: (entry['dtype'], entry['shape'],
                   whole[8 + length + entry['data_offsets'][0]:8 + length + entry['data_offsets'][1]])
            for name, entry in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text +
                     b''.join(data for _, _, data in tensors.values()))


def gpt(bench, model='', data='', weights='gpt2', length=16):
    (bench.folder / 'g.ini').write_text(
        GPT.format(model=model, data=data, weights=weights, length=length))


def check_config(bench, golden):
    path = bench.folder / 'gpt2/config.json'
    config = json.loads(path.read_text())
    gpt(bench)
    given = bench.good('plan', 'g.ini')
    gpt(bench, 'name = gpt\nlayers = 2\nheads = 3\nwidth = 24.0\ntied = 1\n', 'tokens = 64\n')
    bench.expect(bench.good('plan', 'g.ini') == given, 'a recipe that says what config.json does')
    gpt(bench, weights='gpt2/model.safetensors')
    bench.expect(bench.good('plan', 'g.ini') == given, 'a file beside config.json')
    gpt(bench, length=8)
    bench.good('plan', 'g.ini')
    for model, data, pattern in RECIPES:
        gpt(bench, model, data)
        fails(bench, 'plan g.ini', 1, pattern, 'gpt2/config.json: ')
    gpt(bench)
    for changes, pattern in CONFIG:
        changed = {name: value for name, value in {**config, **changes}.items() if value is not None}
        path.write_text(json.dumps(changed))
        fails(bench, 'train g.ini --out out --metrics m.json'
              if 'n_positions' not in changes else 'plan g.ini', 1, pattern, 'gpt2/config.json: ')
    for text, pattern in ((json.dumps(config)[:-9], 'is no well-formed JSON'), ('[]', 'no JSON object'),
                          ('{"n_layer": 2, ' + json.dumps(config)[1:], 'n_layer: is there twice'),
                          ('', 'is no well-formed JSON'), ('{} {}', 'is no well-formed JSON')):
        path.write_text(text)
        fails(bench, 'plan g.ini', 1, pattern, 'gpt2/config.json: ')
    path.unlink()
    fails(bench, 'plan g.ini', 1, 'No such file', 'gpt2/config.json: ')
    shutil.copy(golden / 'config.json', path)


def train(bench, weights, *more):
    return bench.run('train', 'r.ini', '--set', f'train.weights={weights}', '--steps', '1', '--set',
                     'train.lr=1e-30', '--set', 'train.save_every=0', '--out', 'out', *more)


def check_training(bench):
    """At no learning rate the weights of the file are those of the training."""
    bench.good('train', 'r.ini', '--quiet', '--out', 'run')
    shutil.copy(bench.folder / 'run/last/weights.safetensors', bench.folder / 'w.safetensors')
    first = read_tensors(bench.folder / 'w.safetensors')
    code, out, error = train(bench, 'w.safetensors')
    bench.expect(code == 0 and not error, error)
    bench.expect(f'weights: {bench.folder}/w.safetensors: {len(first)} tensors' in out, out)
    now = read_tensors(bench.folder / 'out/last/weights.safetensors')
    bench.expect(now == first, 'weights that a training began with')
    (bench.folder / 'w.safetensors').unlink()
    bench.good('resume', 'out', '--steps', '2', '--quiet')
    bench.good('eval', 'out')
    shutil.rmtree(bench.folder / 'out')
    return first


def check_files(bench, first):
    path = bench.folder / 'w.safetensors'
    name = next(name for name, (_, shape, _) in first.items() if len(shape) == 2)
    dtype, shape, data = first[name]
    cases = [
        ({k: v for k, v in first.items() if k != name}, f'tensor {name}: is missing'),
        ({**first, 'extra': ('I64', [], bytes(8))}, 'tensor extra: the model has none of that name'),
        ({**first, name: (dtype, [2 * shape[0], shape[1] // 2], data)},
         rf'tensor {name}: has shape \('),
        ({**first, name: ('I32', shape, data)}, f'tensor {name}: is I32, not F32'),
    ]
    for tensors, pattern in cases:
        write_tensors(path, tensors)
        fails(bench, 'train r.ini --set train.weights=w.safetensors --out out --metrics m.json', 1,
              pattern, 'w.safetensors: ')
    whole = path.read_bytes()
    for text, pattern in ((whole[:-1], 'data_offsets end outside the file'),
                          (whole + b'1', 'bytes behind the data'), (b'', 'file ends before it')):
        path.write_bytes(text)
        fails(bench, 'train r.ini --set train.weights=w.safetensors --out out --metrics m.json', 1,
              pattern, 'w.safetensors: ')
    path.unlink()
    fails(bench, 'train r.ini --set train.weights=w.safetensors --out out --metrics m.json', 1,
          'No such file', 'w.safetensors: ')
    half = bytes(b for i in range(0, len(data), 4) for b in data[i + 2:i + 4])
    write_tensors(path, {**first, name: ('BF16', shape, half)})
    code, _, error = train(bench, 'w.safetensors', '--quiet')
    bench.expect(code == 0 and not error, error)
    shutil.rmtree(bench.folder / 'out')


def check_parts(bench, first):
    """An index and the files that it names."""
    names = list(first)
    for part, some in (('a', names[:1]), ('b', names[1:])):
        write_tensors(bench.folder / part, {name: first[name] for name in some})
    places = {name: 'a' if name == names[0] else 'b' for name in names}
    (bench.folder / 'w.index.json').write_text(json.dumps({'weight_map': places}))
    code, _, error = train(bench, 'w.index.json', '--quiet')
    bench.expect(code == 0 and not error, error)
    now = read_tensors(bench.folder / 'out/last/weights.safetensors')
    bench.expect(now == first, 'weights of several files')
    shutil.rmtree(bench.folder / 'out')
    (bench.folder / 'a').unlink()
    fails(bench, 'train r.ini --set train.weights=w.index.json --out out', 1, 'No such file', '/a: ')


def check_family(bench, networks, name, data, cases):
    """Weights and config.json go through a training and come back."""
    folder, recipe = bench.folder / name, bench.folder / f'{name}.ini'
    folder.mkdir()
    shutil.copy(networks / f'{name}.safetensors', folder / 'model.safetensors')
    config = json.loads((networks / f'{name}.json').read_text())
    recipe.write_text(TOKENS.format(name=name, data=data))
    for changes, pattern in cases:
        changed = {key: value for key, value in {**config, **changes}.items() if value is not None}
        (folder / 'config.json').write_text(json.dumps(changed))
        fails(bench, f'plan {name}.ini', 1, pattern, f'{name}/config.json: ')
    shutil.copy(networks / f'{name}.json', folder / 'config.json')
    bench.good('train', recipe.name, '--quiet', '--out', f'{name}-run')
    bench.good('export', f'{name}-run', '--out', f'{name}-out')
    bench.expect(read_tensors(bench.folder / f'{name}-out/model.safetensors') ==
                 read_tensors(folder / 'model.safetensors'), f'{name}: other weights')
    written = json.loads((bench.folder / f'{name}-out/config.json').read_text())
    if 'rope_parameters' in config:
        rope = config['rope_parameters']
        config['rope_theta'] = rope.pop('rope_theta')
        config['rope_scaling'] = rope if rope['rope_type'] != 'default' else None
    other = {key: (config[key], written[key]) for key in config.keys() & written.keys()
             if config[key] != written[key] and key not in ('head_dim', 'bos_token_id', 'eos_token_id')}
    bench.expect(not other and len(config.keys() & written.keys()) > 12, f'{name}: {other}')
    recipe.write_text(TOKENS.format(name=f'{name}-out', data=data))
    bench.good('plan', recipe.name)


def check_families(bench, networks):
    draw = random.Random(1)
    (bench.folder / 'tokens').write_bytes(struct.pack('<200H', *(draw.randrange(40)
                                                                for _ in range(200))))
    check_family(bench, networks, 'llama', '', LLAMA)
    check_family(bench, networks, 'llama3', '', [])
    gpt(bench, 'factor = 8\n', weights='llama3', length=12)
    fails(bench, 'plan g.ini', 1, r'rope_scaling\.factor: is 4, but model\.factor of g\.ini is 8')
    check_family(bench, networks, 'masked', 'mlm_probability = 0.15\nmask_token = 3\n', BERT)
    (bench.folder / 'classes').mkdir()
    shutil.copy(networks / 'classify.safetensors', bench.folder / 'classes/model.safetensors')
    shutil.copy(networks / 'classify.json', bench.folder / 'classes/config.json')
    lines = TOKENS.replace('tokens\ntype = u16', 'jsonl').format(name='classes', data='label = l\n{}')
    (bench.folder / 'c.ini').write_text(lines.format('classes = 4\n'))
    fails(bench, 'plan c.ini', 1, r'id2label: is 5, but data\.classes of c\.ini is 4')
    (bench.folder / 'c.ini').write_text(lines.format('') + '[model]\ntypes = 1\n')
    plan = bench.good('plan', 'c.ini', '--explain', 'classifier.weight')
    bench.expect('f32 5 x 16' in plan, plan)


def check_export(bench):
    fails(bench, 'export run', 2, r'export: --out: needs the name of a folder')
    fails(bench, 'export run --out=', 2, r'--out: needs the name of a folder')
    fails(bench, 'export data --out out', 1, r'holds no checkpoint')
    fails(bench, 'export none --out out', 1, r'none: no such folder')
    fails(bench, 'export run --out out', 1,
          r'model\.name: of mlp Hugging Face has no layout that is known')


def main():
    golden = pathlib.Path(sys.argv[2])
    with Bench(sys.argv[1]) as bench:
        shutil.copytree(golden, bench.folder / 'gpt2')
        check_config(bench, golden)
        first = check_training(bench)
        check_parts(bench, first)
        check_files(bench, first)
        check_families(bench, pathlib.Path(sys.argv[3]))
        check_export(bench)
        bench.end()


if __name__ == '__main__':
    main()
