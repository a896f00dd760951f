#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""graph.py PROGRAM ROOT: networks from graph files, printed, trained, resumed, evaluated, refused; the
example of the documentation."""
import json
import pathlib
import re
import sys
import time

from support import Bench

NETWORK = """input images u8 Bx1x8x8
input labels i32 B
x = normalize(images)
f = flatten(x)
fc1 = linear_activation(f) features=16 activation=relu
fc = linear(fc1) features=3
nll = softmax_cross_entropy(fc, labels)
objective = loss(nll)
output logits = fc
output loss = nll
"""
MODEL = 'name = mlp\nhidden1 = 64\nhidden2 = 0\n'
GRAPH = {MODEL: 'name = graph\npath = net.graph\n'}

# (text in its place, text of the network, exit code, what the line matches)
REFUSED = [
    ('relu\n', 'relu!\n', 1, r'net\.graph:5: fc1: activation: .relu!. is not'),
    ('flatten(x)', 'flatten(fc)', 1, r"net\.graph:4: f: 'fc' is not made yet, but in line 6: a line takes "
     r'what lines above it make'),
    ('flatten(x)', 'flatten(xx)', 1, r"net\.graph:4: f: no line above makes 'xx'"),
    ('= flatten', '= flaten', 1, r"net\.graph:4: f: 'flaten' is no operator; did you mean flatten\?"),
    ('labels i32 B', 'labels i32 Bx2', 1, r'net\.graph:7: nll: labels must be'),
    ('f = ', '\x1b[31mf = ', 1, r'net\.graph:4: has a byte that is no text: 27'),
    ('f = ', 'f\x85 = ', 1, r"net\.graph:4: 'f\\xc2\\x85' is no name"),
    ('features=3', 'features=2', 2, r'net\.graph: logits: 2 for a sample, but the data has 3 classes'),
    ('output loss = nll\n', '', 2, r'net\.graph: no output is called loss: output loss = ROWS'),
    ('Bx1x8x8', 'Bx1x8x9', 2, r'images: .*8, 9'),
    ('labels', 'classes', 2, r'classes: the data has no column for this input'),
    ('objective = loss(nll)\n', '', 2, r'loss'),
]


def check(bench, args, code, pattern):
    before = sorted(bench.folder.rglob('*'))
    got, _, error = bench.run(*args.split())
    lines = error.splitlines()
    name = f'quern {args}: {got}: {error.strip()}'
    bench.expect(got == code, f'{name}: not {code}')
    bench.expect(len(lines) == 1 and lines[0].startswith('quern: '), f'{name}: not one line')
    bench.expect(re.search(pattern, error), f'{name}: not {pattern}')
    bench.expect(not re.search(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]', error), f'{name}: is not escaped')
    bench.expect(sorted(bench.folder.rglob('*')) == before, f'{name}: leaves files')


def hash_of(bench, *args):
    return json.loads(bench.good('plan', *args, '--json'))['hash']


def summary(bench, name):
    return json.loads((bench.folder / name).read_text().splitlines()[-1])['summary']


def check_printed(bench):
    """What is printed of a model is the model, to the last bit of the training."""
    text = bench.good('model', 'r.ini')
    (bench.folder / 'net.graph').write_text(text)
    bench.recipe('g.ini', **GRAPH)
    bench.expect('# 4355 parameters, of which 0 are frozen' in text, text)
    bench.expect(hash_of(bench, 'r.ini') == hash_of(bench, 'g.ini'), 'another plan')
    for recipe in ('r', 'g'):
        bench.good('train', f'{recipe}.ini', '--quiet', '--metrics', f'{recipe}.json', '--out', recipe)
    a, b = summary(bench, 'r.json'), summary(bench, 'g.json')
    bench.expect(a['test_loss'] == b['test_loss'], f"{a['test_loss']} and {b['test_loss']}")
    (bench.folder / 'net.graph').unlink()
    images = 'data/t10k-images-idx3-ubyte'
    bench.expect(bench.good('predict', 'r', images, '--csv', '--top', '3') ==
                 bench.good('predict', 'g', images, '--csv', '--top', '3'), 'other predictions')
    facts = json.loads(bench.good('model', 'r.ini', '--json'))
    fc1 = next(node for node in facts['nodes'] if node['name'] == 'fc1')
    bench.expect(facts['parameters'] == 4355 and fc1['shape'] == [-1, 64] and fc1['bytes'] == 256 and
                 fc1['flops'] >= 2 * 64 * 64, f'{fc1}')


def check_checkpoints(bench):
    """The folder of the recipe, and checkpoints without the file."""
    (bench.folder / 'sub').mkdir()
    net = bench.folder / 'sub/net.graph'
    net.write_text(NETWORK)
    bench.recipe('sub/g.ini', **GRAPH, **{'cosine': 'constant'})
    bench.good('train', 'sub/g.ini', '--quiet', '--steps', '5', '--out', 'run')
    bench.good('train', 'sub/g.ini', '--quiet', '--steps', '9', '--metrics', 'whole.json')
    net.write_text('changed\n')
    bench.good('eval', 'run')
    net.unlink()
    bench.good('resume', 'run', '--set', 'train.steps=9', '--quiet', '--metrics', 'more.json')
    a, b = summary(bench, 'whole.json'), summary(bench, 'more.json')
    bench.expect(a['test_loss'] == b['test_loss'], f"{a['test_loss']} and {b['test_loss']}")
    check(bench, 'generate run --prompt a', 1, r'the model graph continues no text')
    check(bench, 'export run --out hf', 1, r'model\.name: of graph Hugging Face has no layout')
    check(bench, 'train sub/g.ini', 1, r'sub/net\.graph: No such file')


def check_refused(bench):
    bench.recipe('g.ini', **GRAPH)
    net = bench.folder / 'net.graph'
    for old, new, code, pattern in REFUSED:
        bench.expect(old in NETWORK, old)
        net.write_text(NETWORK.replace(old, new))
        check(bench, 'train g.ini --quiet --out new --metrics m.json', code, pattern)
    net.write_text(NETWORK)
    check(bench, 'train g.ini --set model.path=nowhere.graph', 1, r'nowhere\.graph: No such file')
    check(bench, 'train g.ini --set model.width=3', 2, r'model\.width: no such key; its keys: path, text')
    check(bench, 'train g.ini --set model.lora_rank=3', 2, r'model\.lora_rank: a graph file has its')
    check(bench, 'train g.ini --set data.mean=0.5', 2, r'--set: data\.mean: a graph file says it itself')
    bench.recipe('none.ini', **{MODEL: 'name = graph\n'})
    check(bench, 'train none.ini', 2, r'model\.path: missing: the file of the graph')
    net.write_text('input r0 f32 Bx4\n' + ''.join(f'r{i} = relu(r{i - 1})\n' for i in range(1, 150000)))
    before = time.monotonic()
    check(bench, 'plan g.ini', 1, r'net\.graph:100001: more than 100000 nodes')
    bench.expect(time.monotonic() - before < 20, 'many nodes take long to refuse')
    net.write_bytes(b'a\0b')
    check(bench, 'plan g.ini', 1, r'net\.graph: not a text file')


def check_example(bench, root):
    """That of the documentation is the one that ships, and trains on smaller images."""
    text = (root / 'examples/fashion.graph').read_text()
    page = (root / 'docs/graph-file.md').read_text()
    bench.expect(f'```\n{text}```\n' in page, 'docs/graph-file.md has another example')
    (bench.folder / 'net.graph').write_text(text.replace('28x28', '8x8').replace('=10', '=3'))
    bench.recipe('g.ini', **GRAPH, **{'lr = 0.1': 'lr = 0.05', 'batch = 24': 'batch = 32'})
    bench.good('train', 'g.ini', '--quiet', '--epochs', '6', '--metrics', 'm.json')
    accuracy = summary(bench, 'm.json')['test_accuracy']
    bench.expect(accuracy > 0.6, f'the example learns nothing: {accuracy}')
    (bench.folder / 'fashion.graph').write_text(text)
    (bench.folder / 'fashion.ini').write_text((root / 'examples/fashion.ini').read_text())
    bench.good('plan', 'fashion.ini')


def main():
    with Bench(sys.argv[1]) as bench:
        check_printed(bench)
        check_checkpoints(bench)
        check_refused(bench)
        check_example(bench, pathlib.Path(sys.argv[2]))
        bench.end()


if __name__ == '__main__':
    main()
