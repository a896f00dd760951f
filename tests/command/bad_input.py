#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bad_input.py PROGRAM [CLCOUNT]: whatever is wrong gives one line that names it, the right exit
code, and leaves nothing behind. CLCOUNT is the library that can refuse buffers."""
import json
import os
import pathlib
import re
import shutil
import sys
import zlib

from support import Bench, idx

# (arguments, exit code, what the line matches)
COMMAND_LINE = [
    ('frobnicate', 2, r'frobnicate: no such command; see quern help'),
    ('trian r.ini', 2, r'no such command; see quern help; did you mean train\?'),
    ('help frobnicate', 2, r'frobnicate: no such command; see'),
    ('help chekc', 2, r'no such command; see quern help; did you mean check\?'),
    ('train', 2, r'train: needs a RECIPE'),
    ('train r.ini more', 2, r'more: one argument too many'),
    ('devices r.ini', 2, r'r\.ini: one argument too many'),
    ('train r.ini --bogus', 2, r'train: --bogus: unknown option; see quern help train'),
    ('train r.ini --epoch=3', 2, r'see quern help train; did you mean --epochs\?'),
    ('train r.ini --js', 2, r'--js: unknown option'),
    ('train r.ini --budget', 2, r'--budget: needs a value \(SIZE\)'),
    ('train r.ini --quiet=1', 2, r'--quiet takes no value'),
    ('train r.ini --steps 1 --epochs 1', 2, r'--steps and --epochs exclude each other'),
    ('train r.ini --budget 0', 2, r'--budget: memory\.budget: .0. is no size above nothing'),
    ('train r.ini --budget -1MiB', 2, r'memory\.budget: .-1MiB. is no size above nothing'),
    ('train r.ini --budget much', 2, r'memory\.budget: .much. is not a size'),
    ('train r.ini --budget=', 2, r'memory\.budget: has no value'),
    ('train r.ini --batch 0', 2, r'--batch: train\.batch: .0. is too small; from 1 to 16777216'),
    ('train r.ini --batch 1x', 2, r'train\.batch: .1x. is not a whole number'),
    ('train r.ini --micro-batch 0', 2, r'memory\.micro_batch: .0. is too small'),
    ('train r.ini --steps 0', 2, r'train\.steps: .0. is too small'),
    ('train r.ini --set train.momentum=1', 2, r'is too large; from 0, below 1'),
    ('train r.ini --set train.freeze=fc1.weigth', 2, r'--set: train\.freeze: no parameter is called '
     r'.fc1\.weigth.; did you mean fc1\.weight\?'),
    ('train r.ini --set train.freeze=*', 2, r'train\.freeze: leaves nothing to be trained'),
    ('train r.ini --set train.rates=fc*:2,head*:3', 2, r'train\.rates: no parameter is called '
     r'.head\*.; the first is fc1\.weight'),
    ('train r.ini --set train.decays=fc*:x', 2, r'train\.decays: .fc\*:x. is not PATTERN:FACTOR'),
    ('train r.ini --set train.lr=0', 2, r'is too small; above 0, below 1000000'),
    ('train r.ini --seed -1', 2, r'train\.seed: .-1. is too small'),
    ('train r.ini --storage f64', 2, r'memory\.storage: .f64. is not one of them: f32, f16, bf16'),
    ('train r.ini --recompute some', 2, r'no node is called some'),
    ('train r.ini --set lr=1', 2, r'--set: .lr. is not section\.key'),
    ('train r.ini --set train.lr', 2, r'--set: .train\.lr. is not section\.key=value'),
    ('train r.ini --set train.rate=1', 2, r'--set: train\.rate: unknown key'),
    ('train r.ini --set train.warm_up=1', 2, r'train\.warm_up: unknown key; did you mean warmup\?'),
    ('train r.ini --set train.beta=0.9', 2, r'unknown key; did you mean beta1 or beta2\?'),
    ('train r.ini --set trains.lr=1', 2, r'--set: trains\.lr: unknown section; did you mean train\?'),
    ('train r.ini --set train.lr=fast', 2, r'train\.lr: .fast. is not a number'),
    ('train r.ini --set model.name=gpt9', 2, r'--set: model\.name: .gpt9. is no model that ships '
     r'\(bert, .*, vgg\); did you mean gpt\?'),
    ('train r.ini --set model.depth=1', 2, r'--set: model\.depth: no such key; its keys: '
     r'hidden1, hidden2, dropout, label_smoothing'),
    ('train r.ini --set model.hidden=1', 2, r'no such key; did you mean hidden1 or hidden2\?'),
    ('train r.ini --set model.hidden1=-1', 2, r'--set: model\.hidden1: .-1. is not'),
    ('train r.ini --set data.classes=2', 2, r'data\.classes: 2 classes, but the labels reach 2'),
    ('train r.ini --set data.shape=1,9,8', 2, r'data\.shape: the images are 1,8,8'),
    ('train r.ini --set data.mean=0.1,0.2', 2, r'data\.mean: 2 values, but .* 1 channel'),
    ('train r.ini --device nonesuch', 4, r'--device: .*nonesuch'),
    ('train fashion-mnits', 2, r'none that ships \(.*\); did you mean fashion-mnist\?'),
    ('train nonesuch', 2, r'nonesuch: recipe: no file of that name, and none that ships'),
    ('train ./nonesuch.ini', 2, r'\./nonesuch\.ini: No such file'),
    ('train data', 2, r'data: Is a directory'),
    ('train r.ini --set data.path=nowhere', 1, r'nowhere/train-images-idx3-ubyte: missing'),
    ('train r.ini --out r.ini', 1, r'r\.ini: '),
    ('train r.ini --metrics nowhere/m.json', 1, r'nowhere/m\.json: metrics: No such file'),
    ('train cnn.ini --micro-batch 24', 2, r'micro-batch 24 is not a multiple of batch norm.s'),
    ('train r.ini --budget 1KiB', 3, r'the smallest budget is \d+ bytes'),
    ('plan r.ini --facts nowhere.json', 1, r'nowhere\.json: No such file'),
    ('plan r.ini --facts r.ini', 1, r'r\.ini: facts: not JSON'),
    ('plan r.ini --svg nowhere/p.svg', 1, r'nowhere/p\.svg.*: No such file'),
    ('eval r.ini', 2, r'eval: --weights: missing'),
    ('eval r.ini --weights nowhere', 1, r'nowhere: '),
    ('eval r.ini --weights r.ini', 1, r'r\.ini: '),
    ('eval cnn.ini --weights run/last/weights.safetensors', 1,
     r'weights\.safetensors: tensor \S+: '),
    ('eval r.ini --weights run/last/weights.safetensors --set model.hidden1=17', 1,
     r'weights\.safetensors: tensor \S+: '),
    ('eval run --weights run/last', 2, r'eval: --weights: run has its own'),
    ('resume nowhere', 1, r'nowhere: '),
    ('resume data', 1, r'data: holds no checkpoint'),
    ('resume run --budget 1KiB', 3, r'the smallest budget is \d+ bytes'),
    ('resume run --set train.seed=1', 2, r'--set train\.seed: is settled when a training begins'),
    ('resume alone/copy', 2, r'alone/copy: .* --out'),
    ('train r.ini --out=', 2, r'--out: needs the name of a folder'),
    ('resume run --out=', 2, r'--out: needs the name of a folder'),
    ('train r.ini --out run', 2, r'--out: run: holds a training already'),
    ('train r.ini --tune much', 2, r'memory\.tune: .much. is not one of them: quick, stored, off'),
    ('tune', 2, r'tune: needs a RECIPE'),
    ('tune r.ini --seconds soon', 2, r'--seconds: .soon. is not a number'),
    ('tune r.ini --seconds -1', 2, r'--seconds: is below 0'),
    ('place', 2, r'place: needs a FILE\.csv'),
    ('place nowhere.csv', 1, r'nowhere\.csv: No such file'),
    ('place nowhere.csv --capacity many', 2, r'--capacity: .many. is not a size'),
    ('bench --only nonesuch', 2, r'--only: no benchmark is named nonesuch'),
    ('bench r.ini --only linear', 2, r"bench: --only: of a RECIPE only 'update'"),
    ('bench --batch 7', 2, r'--batch: goes with a RECIPE'),
    ('check --op nonesuch', 2, r'--op: .*nonesuch'),
    ('check --device nonesuch', 4, r'--device: .*nonesuch'),
]


def check(bench, args, code, pattern, **env):
    before = sorted(bench.folder.rglob('*'))
    got, _, error = bench.run(*args.split(), **env)
    lines = error.splitlines()
    name = f'quern {args}: {got}: {error.strip()}'
    bench.expect(got == code, f'{name}: not {code}')
    bench.expect(len(lines) == 1 and lines[0].startswith('quern: '), f'{name}: not one line')
    bench.expect(re.search(pattern, error), f'{name}: not {pattern}')
    left = [str(path) for path in sorted(bench.folder.rglob('*')) if path not in before]
    bench.expect(not left, f'{name}: leaves {left}')


def check_columns(bench):
    """A model of tokens finds images instead."""
    check(bench, 'train gpt.ini', 2, r'gpt\.ini: model gpt: a sample is a row of tokens: data of one '
          'channel and height 1')


def check_data(bench):
    """Each file of the data damaged in turn."""
    images = bench.folder / 'data/train-images-idx3-ubyte'
    labels = bench.folder / 'data/t10k-labels-idx1-ubyte'
    whole, names = images.read_bytes(), labels.read_bytes()
    for bad in (b'', whole[:10], whole[:-1], whole + b'x', b'\1' + whole[1:], b'\x1f\x8b' + whole):
        images.write_bytes(bad)
        check(bench, 'train r.ini', 1, r'train-images-idx3-ubyte: ')
    images.write_bytes(idx(8, (200, 4, 16), whole[16:]))
    check(bench, 'train r.ini', 1, r'the test images are 1,8,8, those of training 1,4,16')
    images.write_bytes(whole)
    labels.write_bytes(names[:8] + b'\7' + names[9:])
    check(bench, 'train r.ini', 1, r'the test labels reach 7, but there are 3 classes')
    labels.write_bytes(names[:-1])
    check(bench, 'train r.ini', 1, r't10k-labels-idx1-ubyte: ')
    labels.unlink()
    check(bench, 'train r.ini', 1, r't10k-labels-idx1-ubyte: missing')
    labels.write_bytes(names)


TABLES = [
    ('a,0,2,3\nb,1,2,4\n', 3, r'no offsets fit 6 bytes; 7 live at the same time'),
    ('a,0,2\n', 1, r't\.csv: line 2: size: is missing'),
    ('a,0,2,3\nb,1,1,3\n', 1, r't\.csv: line 3: upper: is not above lower'),
    ('a,0,2,-3\n', 1, r't\.csv: line 2: size: is too small'),
    ('a,0,x,3\n', 1, r't\.csv: line 2: upper: is not a whole number'),
    ('a,0,2,3,4\n', 1, r't\.csv: line 2: 4: one column too many'),
    ('a,0,2,9000000000000000000\nb,0,2,9000000000000000000\n', 1, r't\.csv: line 3: size: the sizes so far have no sum'),
]


def check_tables(bench):
    """Lifetime tables of quern place."""
    table = bench.folder / 't.csv'
    for rows, code, pattern in TABLES:
        table.write_text('id,lower,upper,size\n' + rows)
        check(bench, 'place t.csv --capacity 6', code, pattern)
    table.write_text('id,lower,upper\n')
    check(bench, 'place t.csv', 1, r"t\.csv: line 1: is not 'id,lower,upper,size'")
    table.write_text('id,lower,upper,size\nb,1,2,4\na,0,2,3\n')
    bench.expect(bench.good('place', 't.csv') ==
                 'id,lower,upper,size,offset\nb,1,2,4,3\na,0,2,3,0\n', 'place: another table')


def check_checkpoint(bench):
    """Each file of a checkpoint damaged in turn."""
    folder = (bench.folder / 'run/last').resolve()
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1:]
        for bad in (b'', whole[:-2], flipped):
            path.write_bytes(bad)
            check(bench, 'resume run', 1, rf'run/\S+: ')
            check(bench, 'eval run', 1, rf'run/\S+: ')
        path.unlink()
        check(bench, 'resume run', 1, rf'run\S*: ')
        path.write_bytes(whole)


BAD_FACTS = [
    ('bytes_per_second', 1e-300, r'1e-300 is not from 1 to 1e\+24'),
    ('bytes_per_second', -1, r'-1 is not from 1 to'),
    ('launch_seconds', 1e308, r'1e\+308 is not from 1e-12 to 1000'),
    ('flops', 'much', r'is not a number'),
    ('compute_units', 2.5, r'2\.5 is not a whole number from 1 to 1048576'),
    ('vector_width', 32, r'32 is not a whole number from 4 to 16'),
    ('vector_width', 6, r'6 is none of 4, 8, 16'),
    ('blas', 1, r'is not true or false'),
]


def check_facts(bench):
    """Facts that no plan can be made from, in a file and in a checkpoint that is whole."""
    facts = json.loads(bench.good('devices', '--json'))['devices'][0]['facts']
    for key, value, pattern in BAD_FACTS:
        (bench.folder / 'f.json').write_text(json.dumps(dict(facts, **{key: value})))
        check(bench, 'plan r.ini --facts f.json', 1, rf'f\.json: {key}: {pattern}')
    (bench.folder / 'f.json').unlink()
    folder = (bench.folder / 'run/last').resolve()
    train, sums = (folder / name for name in ('train.json', 'checksums.txt'))
    kept = train.read_bytes(), sums.read_bytes()
    whole = json.loads(kept[0])

    def change(facts):
        train.write_text(json.dumps(dict(whole, facts=facts)))
        text = train.read_bytes()
        sums.write_text(re.sub(r'\w+ \d+ train\.json',
                               f'{zlib.crc32(text):08x} {len(text)} train.json', kept[1].decode()))

    for key, value, pattern in BAD_FACTS[:3]:
        change(dict(whole['facts'], **{key: value}))
        check(bench, 'resume run', 1, rf'train\.json: {key}: {pattern}')
    # Checkpoints of before say nothing of CLBlast's tiles.
    change({key: value for key, value in whole['facts'].items() if 'blas_' not in key})
    bench.good('eval', 'run')
    train.write_bytes(kept[0])
    sums.write_bytes(kept[1])


def check_files_kept(bench):
    """A run that never starts keeps the figures of the one before."""
    metrics = bench.folder / 'old.json'
    metrics.write_text('{"old": 1}\n')
    for args in ('r.ini --budget 0', 'r.ini --set model.depth=1', 'r.ini --device nonesuch',
                 'r.ini --set data.path=nowhere'):
        bench.run('train', *args.split(), '--metrics', 'old.json')
        bench.expect(metrics.read_text() == '{"old": 1}\n', f'{args}: the metrics are gone')


def check_refusal(bench, clcount):
    """A device that refuses memory although the plan fits: all, or what is more than a trial of its
    matrix units takes. The library that refuses is named without its folder: the loader would split
    a path at blanks."""
    folder, name = os.path.split(os.path.abspath(clcount))
    for limit in ({'CLCOUNT_LIMIT': '4096'}, {'CLCOUNT_LIMIT': '65536'}):
        check(bench, 'train r.ini --quiet --out refused', 1,
              r'the device refused memory: \d+ bytes asked .* \d+ obtained', LD_PRELOAD=name,
              LD_LIBRARY_PATH=folder, CLCOUNT_FILE='/dev/null', **limit)


def main():
    with Bench(sys.argv[1]) as bench:
        bench.recipe('cnn.ini', **{'name = mlp': 'name = cnn\nwidth = 2',
                                   'hidden1 = 64': 'group = 16', 'hidden2 = 0\n': '',
                                   'batch = 24': 'batch = 64'})
        bench.recipe('gpt.ini', **{'name = mlp': 'name = gpt', 'hidden1 = 64\nhidden2 = 0\n': ''})
        bench.good('train', 'r.ini', '--quiet', '--out', 'run')
        shutil.copytree(bench.folder / 'run/last', bench.folder / 'alone/copy')
        for args, code, pattern in COMMAND_LINE:
            check(bench, args, code, pattern)
        check(bench, 'train r.ini', 4, r'no OpenCL device', OCL_ICD_VENDORS='/nonesuch',
              OCL_ICD_FILENAMES='')
        if 'Portable Computing Language' in bench.good('devices'):
            check(bench, 'resume run', 1, r'run/\S+: made on .*this is .*; --replan makes a new one',
                  POCL_MAX_WORK_GROUP_SIZE='16')
        check_columns(bench)
        check_data(bench)
        check_tables(bench)
        check_checkpoint(bench)
        check_facts(bench)
        check_files_kept(bench)
        if len(sys.argv) > 2:
            check_refusal(bench, str(pathlib.Path(sys.argv[2]).resolve()))
        bench.good('resume', 'run', '--quiet')
        shutil.rmtree(bench.folder / 'run')
        bench.end()


if __name__ == '__main__':
    main()
