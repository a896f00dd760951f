#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vocabulary.py PROGRAM GOLDEN: training straight from text with a tokenizer, which is there or is
made of the text: the same numbers as from a file of tokens, bits per byte, and what is kept."""
import json
import math
import os
import pathlib
import struct
import sys
import tempfile

from bad_input import check
from support import Bench
from text import RECIPE, digest, near, train, write_text

LENGTH = 24


def kept(bench):
    """Files of tokens in the cache folder, with the time of their making."""
    return {path: path.stat().st_mtime_ns for path in pathlib.Path(os.environ['QN_CACHE_DIR']).glob('*.u16')}


def check_made(bench):
    """A vocabulary of the text, beside the same one made by hand."""
    made = ('--set', 'data.vocabulary=300')
    _, summary = train(bench, *made, '--out', 'made')
    bench.good('tokenize', 'text', '--train', 300, '--out', 'hand.json')
    bench.expect((bench.folder / 'made/tokenizer.json').read_bytes() ==
                 (bench.folder / 'hand.json').read_bytes(), 'another vocabulary than by hand')
    files = kept(bench)
    bench.expect(len(files) == 1, f'{files}')
    bench.good('tokenize', 'text', '--tokenizer', 'hand.json', '--out', 'hand.u16')
    bench.expect(next(iter(files)).read_bytes() == (bench.folder / 'hand.u16').read_bytes(),
                 'other tokens than by hand')
    _, tokens = train(bench, '--out', 'tokens', '--data', 'hand.u16', '--set', 'data.kind=tokens',
                      '--set', 'data.type=u16', '--set', 'data.tokens=300')
    bench.expect(digest(bench, 'tokens') == digest(bench, 'made'), 'other weights than of tokens')
    check_bits(bench, summary)
    train(bench, *made, '--steps', 1)
    train(bench, '--set', 'data.tokenizer=hand.json', '--steps', 1, '--out', 'there')
    bench.expect(kept(bench) == files, 'tokens were made twice')
    bench.expect(not (bench.folder / 'there/tokenizer.json').exists(), 'a copy that nobody needs')


def check_bits(bench, summary):
    """Bits over the bytes of the very tokens that were learned for."""
    count = (bench.folder / 'hand.u16').stat().st_size // 2
    ids = struct.unpack(f'<{count}H', (bench.folder / 'hand.u16').read_bytes())
    held = int(0.1 * count)
    first = count - held + 1
    labels = ids[first:first + (held - 1) // LENGTH * LENGTH]
    (bench.folder / 'labels').write_bytes(struct.pack(f'<{len(labels)}H', *labels))
    text = bench.good('tokenize', 'labels', '--tokenizer', 'hand.json', '--decode')
    per_token = len(text) / len(labels)
    print(f"{per_token:.4f} bytes per token, {summary['test_bits_per_byte']:.4f} bits per byte")
    bench.expect(1.5 < per_token < 20 and
                 near(summary['test_bits_per_byte'] * per_token, summary['test_loss'] / math.log(2)),
                 f'{per_token}: {summary}')


def check_resumed(bench):
    """From the tokenizer that was kept, whatever became of cache and recipe."""
    args = ('train', 't.ini', '--quiet', '--set', 'train.schedule=constant', '--set',
            'data.vocabulary=300', '--set', 'data.tokens=320')
    bench.good(*args, '--steps', 6, '--out', 'whole')
    bench.good(*args, '--steps', 3, '--out', 'half', QN_CACHE_DIR='')
    bench.expect(not list(pathlib.Path(os.environ['TMPDIR']).iterdir()), 'left behind without a cache')
    bench.good('resume', 'half', '--quiet', '--steps', 6)
    bench.expect(digest(bench, 'half') == digest(bench, 'whole'), 'resumed with other weights')
    bench.good('eval', 'half', '--data', 'head', '--set', 'data.held_out=0.2')
    text = (bench.folder / 'text').read_bytes()
    (bench.folder / 'text').write_bytes(text.replace(b'quern', b'Quern'))
    check(bench, 'resume half --steps 8', 1, 'half: data: not the samples this training began with')
    (bench.folder / 'text').write_bytes(text)


def check_tokenizers(bench, golden):
    """Those of other projects, with vocabularies of any size; a plan needs no text for them."""
    for name in ('gpt2.json', 'gpt2', 'llama3.json', 'bert.json'):
        place = golden / name
        before = len(kept(bench))
        _, summary = train(bench, '--steps', 2, '--set', f'data.tokenizer={place}')
        bench.expect(summary['test_bits_per_byte'] > 0, f'{name}: {summary}')
        bench.expect(len(kept(bench)) == before + 1, f'{name}: tokens of another tokenizer')
        bench.good('plan', 't.ini', '--data', 'nowhere', '--set', f'data.tokenizer={place}')
    plan = bench.good('plan', 't.ini', '--data', 'nowhere', '--set', 'data.vocabulary=9999',
                      '--explain', 'transformer.wte.weight')
    bench.expect('f32 9999 x 16' in plan, plan)


def check_bytes(bench):
    """Text that is not UTF-8 is taken as bytes."""
    (bench.folder / 'noise').write_bytes(bytes(i * i * 7 % 251 for i in range(8000)))
    _, summary = train(bench, '--steps', 1, '--data', 'noise', '--set', 'data.vocabulary=260')
    bench.expect(summary['test_bits_per_byte'] > 0, f'{summary}')


def check_gpt2(bench):
    """The recipe as it ships fits 2.5 GiB without its text; a smaller one trains."""
    plan = json.loads(bench.good('plan', 'gpt2-124m', '--data', 'nowhere', '--json'))
    bench.expect(2e9 < plan['peak_bytes_planned'] <= 2.5 * 2**30 and plan['micro_batch'] >= 1, f'{plan}')
    table = bench.good('plan', 'gpt2-124m', '--data', 'nowhere', '--explain',
                       'transformer.wte.weight')
    bench.expect('f32 50257 x 768' in table, table.splitlines()[0])
    small = ['model.layers=2', 'model.width=32', 'model.heads=2', 'data.length=24', 'memory.tune=off',
             'data.held_out=0.1']
    code, _, error = bench.run('train', 'gpt2-124m', '--data', 'text', '--quiet', '--steps', 1,
                               '--batch', 4, '--out', 'gpt2',
                               *(part for key in small for part in ('--set', key)))
    bench.expect(code == 0 and 'tokens for lack of pairs' in error, f'{code}: {error}')
    bench.expect((bench.folder / 'gpt2/tokenizer.json').exists(), 'the tokenizer is not kept')
    bench.good('eval', 'gpt2')


def check_bad(bench):
    (bench.folder / 'empty').write_bytes(b'')
    (bench.folder / 'cut.json').write_bytes((bench.folder / 'hand.json').read_bytes()[:900])
    hand = '--set data.tokenizer=hand.json'
    check(bench, f'train t.ini {hand} --set data.tokens=299', 2,
          r'data\.tokens: 299 tokens, but the tokenizer has 300')
    check(bench, f'plan t.ini {hand} --set data.tokens=299', 2, 'the tokenizer has 300')
    check(bench, 'train t.ini --set data.tokenizer=none.json', 1, r'none\.json: cannot read: No such')
    check(bench, 'train t.ini --set data.tokenizer=cut.json', 1, r'cut\.json: is not JSON')
    check(bench, 'train t.ini --set data.vocabulary=256', 2, r'data\.vocabulary: .256. is too small')
    check(bench, f'train t.ini --data empty {hand}', 1, 'empty: is empty')
    check(bench, 'train t.ini --data empty --set data.vocabulary=300', 1, 'empty: is empty')
    check(bench, f'train t.ini --data nowhere {hand}', 1, 'nowhere: cannot read: No such file')
    check(bench, f'train t.ini --data . {hand}', 1, 'not a regular file')
    check(bench, f'train t.ini {hand} --set data.held_out=0.003', 1,
          r'/text: \d tokens are held out, too few')
    check(bench, f'train t.ini {hand} --set data.kind=tokens', 2,
          r'data\.tokenizer: goes with data\.kind = text')
    bench.recipe('both.ini', RECIPE.replace('length', 'tokenizer = a\nvocabulary = 300\nlength'))
    check(bench, 'train both.ini', 2, r'data\.vocabulary: and data\.tokenizer exclude each other')


def main():
    golden = pathlib.Path(sys.argv[2]).resolve()
    with Bench(sys.argv[1]) as bench, tempfile.TemporaryDirectory() as cache, \
            tempfile.TemporaryDirectory() as temporary:
        os.environ.update(QN_CACHE_DIR=cache, TMPDIR=temporary)
        bench.recipe('t.ini', RECIPE)
        write_text(bench)
        check_made(bench)
        check_resumed(bench)
        check_tokenizers(bench, golden)
        check_bytes(bench)
        check_gpt2(bench)
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
