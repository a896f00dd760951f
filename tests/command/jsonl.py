#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""jsonl.py PROGRAM GOLDEN KJV_LINES: a small BERT learns the class of each line of a file of JSON lines, a small
GPT their texts, and what is wrong with such files. KJV_LINES makes those of a recipe that ships."""
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from bad_input import check
from support import Bench
from text import digest, near, train

CLASSES = {'grain': 'wheat rye barley oats maize'.split(), 'mill': 'stone sail hopper gear shaft'.split(),
           'river': 'bank weir flood ford eddy'.split()}
BOTH = 'the of and a near with quern'.split()
LINES = 240

RECIPE = """[model]
name = bert
layers = 1
heads = 2
width = 16
dropout = 0
[data]
kind = jsonl
path = lines.jsonl
label = kind
length = 24
held_out = 0.2
[train]
batch = 8
steps = 60
optimizer = adamw
lr = 0.01
[memory]
budget = 16MiB
tune = off
"""
TEXTS = """[model]
name = gpt
layers = 1
heads = 2
width = 16
[data]
kind = jsonl
path = lines.jsonl
separator = 10
length = 24
held_out = 0.1
[train]
batch = 8
steps = 4
optimizer = adamw
lr = 0.02
[memory]
budget = 16MiB
tune = off
"""


def sets(*pairs):
    return [part for pair in pairs for part in ('--set', pair)]


def write_lines(bench, name, lines):
    text = b''.join(json.dumps(line).encode() + b'\n' for line in lines)
    (bench.folder / name).write_bytes(text)


def make_lines():
    """Texts of 5 to 12 words, of which some tell the class."""
    draw = random.Random(3)
    for _ in range(LINES):
        kind = draw.choice(list(CLASSES))
        words = [draw.choice(CLASSES[kind] if draw.random() < 0.4 else BOTH) for _ in range(draw.randrange(4, 12))]
        yield {'id': 1, 'text': ' '.join([draw.choice(CLASSES[kind]), *words]), 'kind': kind}


def check_classes(bench, lines):
    """The loss falls and the classes are told apart: tokens of the text, bytes, another tokenizer."""
    for name, more in (('words', ['data.vocabulary=300']), ('bytes', ['data.length=64', 'train.steps=120']),
                       ('gpt2', [f'data.tokenizer={bench.golden}/gpt2.json'])):
        losses, summary = train(bench, '--out', name, *sets(*more))
        print(f"{name}: loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {summary['test_accuracy']:.3f}")
        bench.expect(0.8 < losses[0] < 1.5 and losses[-1] < 0.5, f'{name}: {losses}')
        bench.expect(summary['test_accuracy'] > 0.8 and summary['test_samples'] == LINES // 5 and
                     'test_perplexity' not in summary, f'{name}: {summary}')
    seen = json.loads(bench.good('eval', 'words', '--json'))
    held = [line['kind'] for line in lines[-LINES // 5:]]
    bench.expect([(c['name'], c['labels']) for c in seen['test_classes']] ==
                 [(name, held.count(name)) for name in sorted(CLASSES)], f'{seen}')
    bench.expect((bench.folder / 'words/tokenizer.json').exists() and
                 not (bench.folder / 'gpt2/tokenizer.json').exists(), 'tokenizers that are kept')


def check_numbers(bench, lines):
    """Numbers in the order of the names are the same classes; so is another file for evaluation."""
    names = sorted(CLASSES)
    write_lines(bench, 'numbers.jsonl', [{'label': names.index(line['kind']), 'body': line['text']} for line in lines])
    write_lines(bench, 'first.jsonl', lines[:LINES * 4 // 5])
    write_lines(bench, 'rest.jsonl', lines[LINES * 4 // 5:])
    few = ('--steps', 5)
    _, summary = train(bench, *few, '--out', 'named')
    _, other = train(bench, *few, '--out', 'numbered', '--data', 'numbers.jsonl',
                     *sets('data.label=label', 'data.field=body'))
    bench.expect(digest(bench, 'numbered') == digest(bench, 'named') and
                 other['test_loss'] == summary['test_loss'], f'{other} {summary}')
    _, other = train(bench, *few, '--out', 'parted', '--data', 'first.jsonl', *sets('data.test_path=rest.jsonl'))
    bench.expect(digest(bench, 'parted') == digest(bench, 'named') and
                 other['test_loss'] == summary['test_loss'], f'{other} {summary}')


def check_lengths(bench, lines):
    """What stands behind a text is not seen: more room changes rounding alone."""
    short, _ = train(bench, '--steps', 4, *sets('data.vocabulary=300'))
    moved, _ = train(bench, '--steps', 4, '--micro-batch', 2, *sets('data.vocabulary=300'))
    bench.expect(all(near(a, b) or abs(a - b) < 1e-4 for a, b in zip(short, moved)), f'{short} {moved}')
    first, _ = train(bench, '--steps', 1, *sets('data.length=90'))
    padded = [dict(line, text=line['text'] + ' ' * 40) for line in lines]
    write_lines(bench, 'padded.jsonl', padded)
    other, _ = train(bench, '--steps', 1, '--data', 'padded.jsonl', *sets('data.length=90'))
    bench.expect(first[0] != other[0], 'blanks are padding')


def check_resumed(bench):
    steady = ('--quiet', '--set', 'data.vocabulary=300')
    bench.good('train', 't.ini', *steady, '--steps', 6, '--out', 'whole')
    bench.good('train', 't.ini', *steady, '--steps', 3, '--out', 'half')
    bench.good('resume', 'half', '--quiet', '--steps', 6)
    bench.expect(digest(bench, 'half') == digest(bench, 'whole'), 'resumed')
    path = bench.folder / 'lines.jsonl'
    text = path.read_bytes()
    path.write_bytes(text.replace(b'quern', b'Quern'))
    check(bench, 'resume half --steps 8', 1, 'half: data: not the samples this training began with')
    path.write_bytes(text)


def check_export(bench):
    bench.good('export', 'words', '--out', 'face')
    config = json.loads((bench.folder / 'face/config.json').read_text())
    bench.expect(config['architectures'] == ['BertForSequenceClassification'] and config['num_labels'] == 3 and
                 config['vocab_size'] == 300, f'{config}')
    tokenizer = bench.folder / 'words/tokenizer.json'
    losses, _ = train(bench, '--steps', 1, *sets('train.weights=face', f'data.tokenizer={tokenizer}', 'train.lr=1e-9'))
    bench.expect(losses[0] < 0.6, f'{losses}: other weights than were saved')


def check_encoder(bench):
    """A classifier begins with a masked language model of the same lines, which has no such head."""
    bench.recipe('m.ini', RECIPE, **{'label = kind\n': 'separator = 0\nmlm_probability = 0.15\nvocabulary = 300\n'})
    train(bench, '--steps', 2, '--out', 'masked', recipe='m.ini')
    bench.good('export', 'masked', '--out', 'encoder')
    told = bench.good('train', 't.ini', '--steps', 1, *sets(
        'train.weights=encoder', f"data.tokenizer={bench.folder / 'masked/tokenizer.json'}"))
    bench.expect('not there, and so random: classifier.*,*pooler.dense.*' in told and
                 'skipped by rule: cls.predictions.' in told, told)


def check_plans(bench):
    """No plan needs the file where the recipe says what is in it."""
    known = sets('data.path=nowhere', 'data.classes=7', 'data.vocabulary=9999')
    plan = bench.good('plan', 't.ini', *known, '--explain', 'classifier.weight')
    bench.expect('f32 7 x 16' in plan, plan)
    plan = bench.good('plan', 't.ini', *known, '--explain', 'bert.embeddings.word_embeddings.weight')
    bench.expect('f32 9999 x 16' in plan, plan)
    plan = bench.good('plan', 't.ini', *sets('data.vocabulary=9999'), '--explain', 'classifier.weight')
    bench.expect('f32 3 x 16' in plan, plan)
    check(bench, 'plan t.ini --data nowhere', 1, 'nowhere: cannot read: No such file')


def check_texts(bench, lines):
    """Without a label the texts are one, with the separator behind each: as of a file of them."""
    joined = b''.join(line['text'].encode() + b'\n' for line in lines)
    (bench.folder / 'joined').write_bytes(joined)
    _, summary = train(bench, '--out', 'lines-out', *sets(), recipe='g.ini')
    _, other = train(bench, '--out', 'text-out', '--data', 'joined', *sets('data.kind=text'), recipe='g.ini')
    bench.expect(digest(bench, 'text-out') == digest(bench, 'lines-out') and
                 other['test_bits_per_byte'] == summary['test_bits_per_byte'], f'{summary} {other}')
    _, summary = train(bench, *sets('data.vocabulary=300', 'data.separator=0'), recipe='g.ini')
    bench.expect(summary['test_bits_per_byte'] > 0, f'{summary}')
    tokens = max(pathlib.Path(os.environ['QN_CACHE_DIR']).glob('*.u16'), key=lambda path: path.stat().st_mtime_ns)
    ids = struct.unpack(f'<{tokens.stat().st_size // 2}H', tokens.read_bytes())
    bench.expect(ids.count(0) == LINES and ids[-1] == 0, f'{ids.count(0)} separators')


def good_anywhere(bench, *args):
    """What the command says where the recipe's own budget may be more than the machine has."""
    code, out, error = bench.run(*args)
    rest = re.sub(r'\S*warning: the budget of .* is more than the memory of .*\n', '', error)
    bench.expect(code == 0 and not rest, f'{args}: {code}: {error.strip()}')
    return out


def check_recipe(bench, script):
    """BERT-large as it ships fits 5.8 GB without its text; a smaller one trains on passages."""
    plan = json.loads(good_anywhere(bench, 'plan', 'bert-large-accumulation', '--data', 'nowhere', '--json'))
    bench.expect(plan['peak_bytes_planned'] <= 5.8e9 and (plan['batch'], plan['micro_batch']) == (4, 1), f'{plan}')
    check(bench, 'train bert-large-accumulation', 1, r'kjv\.jsonl: missing: install the package bible-kjv, then: ')
    draw = random.Random(5)
    verses = ''.join(f"{book}1:{number} {' '.join(draw.choices(words.split(), k=9))}\n"
                     for book, words in (('Ge', 'earth day waters light'), ('Isa', 'woe vision burden fire'),
                                         ('3Jn', 'beloved truth grace'))
                     for number in range(1, 241))
    lines = subprocess.run([sys.executable, script, '--words', '20'], input=verses, check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    (bench.folder / 'kjv.jsonl').write_text(lines)
    kinds = [json.loads(line)['kind'] for line in lines.splitlines()]
    bench.expect([kinds.count(kind) for kind in ('law', 'prophets', 'letters')] == [80] * 3 and
                 kinds != sorted(kinds), f'{kinds}')
    small = sets('model.layers=1', 'model.heads=2', 'model.width=16', 'data.length=32', 'data.held_out=0.1',
                 'train.lr=0.01', 'memory.tune=off', 'train.epochs=2', 'data.vocabulary=300', 'data.tokens=320')
    out = good_anywhere(bench, 'train', 'bert-large-accumulation', '--data', 'kjv.jsonl', '--out', 'bible', *small)
    bench.expect('batch 4 = 4 x 1' in out, out)
    seen = json.loads(good_anywhere(bench, 'eval', 'bible', '--json'))
    print(f"bible: accuracy {seen['test_accuracy']:.3f}")
    bench.expect(seen['test_accuracy'] > 0.7, f'{seen}')


def check_bad(bench):
    good = b'{"text": "a stone", "kind": "mill"}\n' * 9
    for name, lines, pattern in (
            ('empty', b'', 'empty: is empty'),
            ('cut', good + b'{"text": "a sto', 'cut: line 10: is not a JSON object'),
            ('blank', good + b'\n' + good, 'blank: line 10: is not a JSON object'),
            ('lacks', good + b'{"kind": "mill"}\n', 'lacks: line 10: text: is missing'),
            ('number', good + b'{"text": "a", "kind": 1}', 'number: line 10: kind: is a number, but other'),
            ('fraction', b'{"text": "a", "kind": 1.5}', 'fraction: line 1: kind: 1.5 is not a whole number from 0'),
            ('zero', good + b'{"text": "a\\u0000", "kind": "mill"}', 'zero: line 10: has a character 0')):
        (bench.folder / name).write_bytes(lines)
        check(bench, f'train t.ini --data {name} --out out', 1, pattern)
    (bench.folder / 'a\x1b[31m').write_bytes(good + b'{}')
    check(bench, 'train t.ini --data a\x1b[31m', 1, r'a\\x1b\[31m: line 10: text: is missing')
    (bench.folder / 'name').write_bytes(b'{"text": "a", "kind": "x\\u001b[2J"}\n' * 9)
    check(bench, 'train t.ini --set data.test_path=name', 1,
          r"name: line 1: kind: 'x\\x1b\[2J' is none of the 3 names")
    check(bench, 'train t.ini --set data.held_out=0.001', 1, 'of 240 lines none is held out')
    check(bench, 'train t.ini --set data.classes=2', 2, r'data\.classes: 2 classes, but the labels reach 2')
    check(bench, 'train t.ini --set data.test_path=numbers.jsonl --set data.label=label', 1,
          'lines.jsonl: line 1: label: is missing')
    check(bench, 'train t.ini --set model.name=llama', 2, 'model llama: learns the tokens of whole rows')
    check(bench, 'train t.ini --set data.mlm_probability=0.15', 2, r'data\.mlm_probability: goes without data\.label')
    check(bench, f'train t.ini --set data.tokenizer={bench.golden}/bert.json --set data.length=1', 2,
          'puts 2 tokens around a text, of which 1 can be')
    check(bench, 'train g.ini --set data.separator=256', 2, r'data\.separator: is none of the 256 tokens')
    check(bench, 'train g.ini --set data.field=body', 1, 'lines.jsonl: line 1: body: is missing')
    check(bench, 'train g.ini --set data.vocabulary=300 --set data.field=body', 1, 'line 1: body: is missing')
    left = [path.name for ending in ('tokenizer.json', 'u8', 'u16')
            for path in pathlib.Path(os.environ['QN_CACHE_DIR']).glob(f'*.{ending}.*')]
    bench.expect(not left, f'parts of files are left: {left}')


def main():
    with Bench(sys.argv[1]) as bench, tempfile.TemporaryDirectory() as cache:
        os.environ.update(QN_CACHE_DIR=cache)
        bench.golden = pathlib.Path(sys.argv[2]).resolve()
        bench.recipe('t.ini', RECIPE)
        bench.recipe('g.ini', TEXTS)
        lines = list(make_lines())
        write_lines(bench, 'lines.jsonl', lines)
        check_classes(bench, lines)
        check_numbers(bench, lines)
        check_lengths(bench, lines)
        check_resumed(bench)
        check_export(bench)
        check_encoder(bench)
        check_plans(bench)
        check_texts(bench, lines)
        check_recipe(bench, sys.argv[3])
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
