#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""next_token.py PROGRAM GOLDEN [tokenizers]: the tokens that language models predict are those of
transformers, of `quern generate` and of the evaluation's loss; behind a text and in the place of
masks, with bytes and with tokenizers; all forms of output, and what is refused. GOLDEN is
tests/golden."""
import array
import csv
import io
import json
import math
import pathlib
import shutil
import struct
import sys

from bad_input import check
from support import Bench
from text import RECIPE, train, write_text

NEAR = 1e-4
BYTES = """[model]
name = {model}
{keys}
[data]
kind = text
path = {path}
length = {length}
tokens = {tokens}
{data}
[train]
batch = 2
steps = 1
optimizer = adamw
lr = 1e-30
{train}
[memory]
tune = off
"""
LLAMA = 'layers = 2\nheads = 4\nkv_heads = 2\nwidth = 32\ninner = 24'
MASKED = 'layers = 2\nheads = 2\nwidth = 16\ninner = 24\ndropout = 0'


def read_tensors(path):
    """{name: (shape, numbers)} of a safetensors file with numbers of four bytes."""
    whole = path.read_bytes()
    size = struct.unpack('<Q', whole[:8])[0]
    out = {}
    for name, entry in json.loads(whole[8:8 + size]).items():
        if name != '__metadata__':
            first, end = entry['data_offsets']
            kind = {'F32': 'f', 'I32': 'i'}[entry['dtype']]
            out[name] = entry['shape'], array.array(kind, whole[8 + size + first:8 + size + end])
    return out


def read_npy(path):
    """(rows, columns, numbers) of an array of f32."""
    whole = path.read_bytes()
    size = struct.unpack('<H', whole[8:10])[0]
    header = eval(whole[10:10 + size], {})  # pylint: disable=eval-used
    return *header['shape'], array.array('f', whole[10 + size:])


def softmax(logits):
    most = max(logits)
    shares = [math.exp(logit - most) for logit in logits]
    return [share / sum(shares) for share in shares]


def write_prompts(bench, name, prompts):
    """Tokens are bytes below 128, which JSON says as characters."""
    lines = (json.dumps({'text': p if isinstance(p, str) else bytes(p).decode()}) for p in prompts)
    (bench.folder / name).write_text('\n'.join(lines) + '\n')


def distributions(bench, *args):
    """A row of probabilities for each answer."""
    bench.good('predict', *args, '--out', 'all.npy')
    rows, columns, numbers = read_npy(bench.folder / 'all.npy')
    return [numbers[columns * i:columns * (i + 1)] for i in range(rows)]


def predict(bench, *args):
    return [json.loads(line) for line in bench.good('predict', *args, '--json').splitlines()]


def expect_near(bench, got, want, name, near=NEAR):
    bench.expect(len(got) == len(want), f'{name}: {len(got)} answers, not {len(want)}')
    gap = max((abs(a - b) for g, w in zip(got, want) for a, b in zip(g, w)), default=1)
    bench.expect(gap < near, f'{name}: {gap}')


class Golden:
    """Tokens and logits of a batch that transformers made."""

    def __init__(self, path):
        tensors = read_tensors(path)
        (self.samples, self.length), self.tokens = tensors['tokens']
        self.classes, self.logits = tensors['logits'][0][2], tensors['logits'][1]

    def row(self, sample):
        return list(self.tokens[self.length * sample:self.length * (sample + 1)])

    def answer(self, sample, place):
        first = (self.length * sample + place) * self.classes
        return softmax(self.logits[first:first + self.classes])

    def prefixes(self):
        """(prompt, what follows) of all beginnings without a token 0, which no text can hold."""
        for sample in range(self.samples):
            row = self.row(sample)
            for place in range(self.length):
                if 0 not in row[:place + 1]:
                    yield row[:place + 1], self.answer(sample, place)


def check_llama(bench, folder):
    """Every beginning of a text: what transformers says of its last token."""
    golden = Golden(folder / 'language/llama-golden.safetensors')
    prompts, want = zip(*golden.prefixes())
    bench.recipe('llama.ini', BYTES.format(model='llama', keys=LLAMA, path='none', length=12,
                                           tokens=40, data='', train=''))
    write_prompts(bench, 'llama.jsonl', prompts)
    args = ['llama.ini', 'llama.jsonl', '--weights', folder / 'language/llama.safetensors']
    expect_near(bench, distributions(bench, *args), want, 'llama')
    bench.expect(len(want) == 36, f'llama: {len(want)}')
    expect_near(bench, distributions(bench, *args, '--micro-batch', 5), want, 'llama, split')
    half = distributions(bench, *args, '--set', 'memory.storage=bf16')
    expect_near(bench, half, want, 'llama in bf16', 0.05)


def check_gpt2(bench, folder):
    """The same of GPT-2, and each token that transformers adds greedily is the most probable."""
    golden = Golden(folder / 'gpt2/golden.safetensors')
    prompts, want = zip(*golden.prefixes())
    (bench.folder / 'bytes').write_bytes(bytes(range(1, 64)) * 2)
    (bench.folder / 'steps.ini').write_text(BYTES.format(
        model='gpt', keys='', path='bytes', length=16, tokens=64, data='held_out = 0',
        train=f'weights = {folder}/gpt2'))
    bench.good('train', 'steps.ini', '--quiet', '--out', 'gpt2')
    write_prompts(bench, 'gpt2.jsonl', prompts)
    expect_near(bench, distributions(bench, 'gpt2', 'gpt2.jsonl'), want, 'gpt2')
    steps = distributions(bench, 'gpt2', 'gpt2.jsonl', '--set', 'model.fused=0')
    expect_near(bench, steps, want, 'gpt2 in steps')
    cases = json.loads((folder / 'gpt2/greedy.json').read_text())
    greedy = [(case['prompt'] + case['tokens'][:i], token) for case in cases
              for i, token in enumerate(case['tokens'])]
    write_prompts(bench, 'greedy.jsonl', [prompt for prompt, _ in greedy])
    told = [t['predictions'][0]['id'] for t in predict(bench, 'gpt2', 'greedy.jsonl')]
    bench.expect(told == [token for _, token in greedy] and len(told) == 48, f'greedy: {told}')


def check_masked(bench, folder):
    """Whatever the token of the mask, what transformers says of its places, and of no other."""
    golden = Golden(folder / 'language/masked-golden.safetensors')
    bench.recipe('masked.ini', BYTES.format(model='bert', keys=MASKED, path='none', length=12,
                                            tokens=40, data='mlm_probability = 0.15', train=''))
    for mask in golden.row(0)[:3] + golden.row(1)[4:7] + golden.row(2)[-3:]:
        asked = [(s, p) for s in range(3) for p in range(12) if golden.row(s)[p] == mask]
        rows = [golden.row(s) for s in sorted({s for s, _ in asked})]
        write_prompts(bench, 'm.jsonl', [''.join('[MASK]' if t == mask else chr(t) for t in row)
                                         for row in rows])
        args = ['masked.ini', 'm.jsonl', '--weights', folder / 'language/masked.safetensors',
                '--set', f'data.mask_token={mask}']
        expect_near(bench, distributions(bench, *args), [golden.answer(*a) for a in asked],
                    f'mask {mask}')
        numbers = [(int(t['file'].split(':')[1]), t['mask']) for t in predict(bench, *args)]
        want = [(1 + sorted({s for s, _ in asked}).index(s),
                 1 + sum(a[0] == s and a[1] < p for a in asked)) for s, p in asked]
        bench.expect(numbers == want, f'mask {mask}: {numbers}, not {want}')


def check_generate(bench):
    """Ten prompts: the next token is the one that generate takes."""
    train(bench, '--out', 'gpt')
    text = (bench.folder / 'text').read_text()
    prompts = [text[40 * i:40 * i + 2 * i + 1].replace('\n', ' ') for i in range(1, 11)]
    (bench.folder / 'ten.txt').write_text('\r\n'.join(prompts))
    told = predict(bench, 'gpt', 'ten.txt', '--top', 300)
    bench.expect([t['file'] for t in told] == [f'ten.txt:{i}' for i in range(1, 11)], 'files')
    for prompt, one in zip(prompts, told):
        added = bench.good('generate', 'gpt', '--prompt', prompt, '--max-tokens', 1,
                           '--temperature', 0)
        bench.expect(one['predictions'][0]['token'] == added, f'{prompt}: {one["predictions"][0]}')
        shares = [p['probability'] for p in one['predictions']]
        bench.expect(len(shares) == 256 and shares == sorted(shares, reverse=True) and
                     abs(sum(shares) - 1) < 1e-6, f'{prompt}: {sum(shares)}')
    alone = [distributions(bench, 'gpt', name)[0] for name in write_alone(bench, prompts)]
    expect_near(bench, distributions(bench, 'gpt', 'ten.txt'), alone, 'longer lines beside', 1e-6)


def write_alone(bench, prompts):
    for i, prompt in enumerate(prompts):
        (bench.folder / f'alone{i}.txt').write_text(prompt)
        yield f'alone{i}.txt'


def check_loss(bench):
    """The evaluation's loss is the mean of -log of the probabilities of what follows."""
    loss = json.loads(bench.good('eval', 'gpt', '--json'))['test_loss']
    text = (bench.folder / 'text').read_bytes()
    held, length = text[-600:], 24
    prompts, labels = [], []
    for first in range(0, len(held) - length, length):
        for place in range(length):
            prompts.append(held[first:first + place + 1])
            labels.append(held[first + place + 1])
    write_prompts(bench, 'held.jsonl', prompts)
    rows = distributions(bench, 'gpt', 'held.jsonl')
    mean = sum(-math.log(row[label]) for row, label in zip(rows, labels)) / len(labels)
    print(f'{len(labels)} tokens: loss {loss:.6f} of the evaluation, {mean:.6f} of predictions')
    bench.expect(abs(mean - loss) < 1e-5 and len(labels) == 576, f'{mean}, not {loss}')


def check_forms(bench):
    """Table, CSV and lines of JSON say the same; a newline does not break a line."""
    (bench.folder / 'few.txt').write_text('quern grin\nwith\n')
    args = ['gpt', 'few.txt', '--top', 4]
    told = [(t['file'], p) for t in predict(bench, *args) for p in t['predictions']]
    table = bench.good('predict', *args).splitlines()
    rows = list(csv.DictReader(io.StringIO(bench.good('predict', *args, '--csv'))))
    bench.expect(table[0].split() == ['probability', 'token', 'file'] and len(table) == 9, f'{table}')
    for i, (file, p) in enumerate(told):
        shown = p['token'].replace('\n', '\\n')
        bench.expect(table[i + 1] == f'{100 * p["probability"]:9.2f} %  ' +
                     f'"{shown}"'.ljust(16) + f'  {file}', f'table: {table[i + 1]}')
        bench.expect(list(rows[i].values())[:4] == [file, str(i % 4 + 1), shown, str(p['id'])] and
                     abs(float(rows[i]['probability']) - p['probability']) < 1e-8, f'{rows[i]}')
    write_prompts(bench, 'all.jsonl', ['a', 'quern\n'])
    names = {p['id']: p['token'] for p in predict(bench, 'gpt', 'all.jsonl', '--top', 256)[0]['predictions']}
    bench.expect((names[0], names[10], names[65], names[0xe2]) == ('\ufffd', '\n', 'A', '\ufffd'), 'names')
    shown = bench.good('predict', 'gpt', 'all.jsonl', '--top', 256)
    bench.expect(all(f'"{byte}"' in shown for byte in ('\\x00', '\\n', '\\xe2', ' ')), 'escapes')


def check_budget(bench):
    args = ['predict', 'gpt', 'few.txt', '--json']
    code, _, error = bench.run(*args, '--budget', '1KiB')
    smallest = int(error.rsplit('smallest budget is ', 1)[1].split()[0].strip('(B,;')) if code == 3 else 0
    bench.expect(code == 3 and bench.run(*args, '--budget', smallest - 1)[0] == 3, f'{code}: {error}')
    whole, least = bench.good(*args), bench.good(*args, '--budget', smallest)
    tops = [[json.loads(line)['predictions'][0] for line in out.splitlines()] for out in (whole, least)]
    bench.expect(all(a['id'] == b['id'] and abs(a['probability'] - b['probability']) < 1e-5
                     for a, b in zip(*tops)), f'{tops}')


def check_long(bench):
    """The last tokens count, and one line says so."""
    text = 'with what strength there is anywhere'
    (bench.folder / 'long.txt').write_text(f'quern\n{text}\n{text[-24:]}\n{text}\n')
    code, out, error = bench.run('predict', 'gpt', 'long.txt', '--json')
    told = [json.loads(line)['predictions'] for line in out.splitlines()]
    bench.expect(code == 0 and told[1] == told[2] == told[3] != told[0], f'{code}: {told}')
    bench.expect(error == 'quern: warning: long.txt: line 2 and 1 more: longer than the 24 tokens that '
                 'the model looks at; the last ones are taken\n', error)


def check_bert(bench):
    """Bytes with a mask of their own; the loss of its training is not asked for here."""
    (bench.folder / 'bert.ini').write_text(
        RECIPE.replace('gpt', 'bert').replace('logits = 0', 'dropout = 0').replace(
            'held_out', 'mlm_probability = 0.15\nheld_out'))
    train(bench, '--out', 'bert', recipe='bert.ini')
    (bench.folder / 'masks.txt').write_text('que[MASK]n gr[MASK][MASK]ds\n[MASK]\n')
    told = predict(bench, 'bert', 'masks.txt', '--top', 257)
    bench.expect([(t['file'], t['mask']) for t in told] ==
                 [('masks.txt:1', 1), ('masks.txt:1', 2), ('masks.txt:1', 3), ('masks.txt:2', 1)],
                 f'{told}'[:200])
    bench.expect({p['token'] for p in told[0]['predictions'] if p['id'] == 256} == {'[MASK]'}, '256')
    rows = list(csv.DictReader(io.StringIO(bench.good('predict', 'bert', 'masks.txt', '--csv'))))
    bench.expect([row['mask'] for row in rows] == ['1', '2', '3', '1'], f'{rows}')
    table = bench.good('predict', 'bert', 'masks.txt').splitlines()
    bench.expect(table[3].endswith('  masks.txt:1, mask 3') and len(table) == 5, f'{table}')
    (bench.folder / 'alone.txt').write_text('[MASK]')
    both, alone = distributions(bench, 'bert', 'masks.txt'), distributions(bench, 'bert', 'alone.txt')
    expect_near(bench, both[3:], alone, 'padding is seen', 1e-6)
    gap = max(abs(a - b) for a, b in zip(both[0], both[3]))
    bench.expect(gap > 1e-5, f'the text around a mask is not seen: {gap}')
    check_windows(bench)


def check_windows(bench):
    """Of a long line a mask sees what is around it, at the ends less of one side."""
    (bench.folder / 'around.txt').write_text(
        '[MASK]uern grinds kernels anywhere, [MASK]ith what strength there is [MASK]here is')
    code, out, error = bench.run('predict', 'bert', 'around.txt', '--json', '--top', 257)
    bench.expect(code == 0 and error == 'quern: warning: around.txt: line 1: longer than the 24 tokens '
                 'that the model looks at; those around each mask are taken\n', f'{code}: {error}')
    told = [json.loads(line)['predictions'] for line in out.splitlines()]
    whole = '~uern grinds kernels anywhere, ~ith what strength there is ~here is'
    parts = [whole[:24], whole[31 - 12:31 + 12], whole[-24:]]
    (bench.folder / 'parts.txt').write_text('\n'.join(parts).replace('~', '[MASK]'))
    same = [t['predictions'] for t in predict(bench, 'bert', 'parts.txt', '--top', 257)]
    bench.expect([part.count('~') for part in parts] == [1, 1, 1] and told == same, 'windows')


def check_bad(bench):
    folder = bench.folder
    (folder / 'empty.txt').write_text('')
    (folder / 'gap.txt').write_text('abc\n\nabc\n')
    (folder / 'none.txt').write_text('a[MASK]c\nabc\n')
    (folder / 'odd.jsonl').write_text('{"text": "a"}\n{"words": "a"}\n')
    (folder / 'blank.jsonl').write_text('{"text": "a"}\n{"text": ""}\n')
    for args, code, pattern in [
            ('gpt empty.txt', 1, r'empty\.txt: .*empty'),
            ('gpt gap.txt', 1, r'gap\.txt: line 2: text: is empty'),
            ('gpt blank.jsonl', 1, r'blank\.jsonl: line 2: text: is empty'),
            ('gpt odd.jsonl', 1, r'odd\.jsonl: line 2: text: is missing'),
            ('gpt nowhere.txt', 1, r'nowhere\.txt: '),
            ('gpt few.txt gap.txt', 2, r'gap\.txt: one file too many'),
            ('gpt few.txt --top 0', 2, r"--top: '0' "),
            ('gpt few.txt --out folder', 2, r'--out: folder: needs a name that ends with \.npy'),
            ('gpt few.txt --tokenizer nowhere.json', 1, r'nowhere\.json'),
            ('gpt few.txt --set data.tokens=64', 1,
             r'few\.txt: line 1: text: has the token \d+, but the model has 64'),
            ('bert none.txt', 1, r'none\.txt: line 2: text: has no \[MASK\], which stands for the '
             r'token that is asked for'),
            ('bert masks.txt --set model.pooling=mean', 2, r'gives embeddings, and so tells no tokens')]:
        check(bench, f'predict {args}', code, pattern)
    code, out, error = bench.run('predict', 'gpt', 'none.txt')
    bench.expect(code == 0 and len(out.splitlines()) == 3 and not error, f'a mask is text: {error}')
    (folder / 'bytes.txt').write_bytes(b'\xff\xfe\n\x00a\n')
    bench.expect(len(predict(bench, 'gpt', 'bytes.txt')) == 2, 'bytes that are no UTF-8')
    (folder / 'graph.txt').write_text(bench.good('model', 't.ini'))
    (folder / 'graph.ini').write_text('[model]\nname = graph\npath = graph.txt\n' +
                                      RECIPE[RECIPE.index('[data]'):])
    check(bench, 'predict graph.ini few.txt --weights gpt', 2,
          r'model graph: a graph file does not say where tokens are asked for')


def check_tokens(bench):
    """A model of a file of tokens needs a tokenizer."""
    bench.good('tokenize', 'text', '--train', 300, '--out', 'own.json')
    bench.good('tokenize', 'text', '--tokenizer', 'own.json', '--out', 'own.u16')
    train(bench, '--data', 'own.u16', '--set', 'data.kind=tokens', '--set', 'data.type=u16',
          '--set', 'data.tokens=300', '--out', 'tokens')
    train(bench, '--set', 'data.vocabulary=300', '--out', 'made')
    (bench.folder / 'own.u16').unlink()
    check_size(bench)
    check(bench, 'predict tokens few.txt', 2, r'predict: --tokenizer: missing; the model gpt was '
          r'trained with tokens, not with text')
    args = ['few.txt', '--top', 3]
    told = predict(bench, 'tokens', *args, '--tokenizer', 'own.json')
    bench.expect(any(len(p['token']) > 1 for t in told for p in t['predictions']), f'{told}')
    (bench.folder / 'made').rename(bench.folder / 'moved')
    bench.expect(predict(bench, 'moved', *args) == told, 'the tokenizer beside the weights')
    added = [json.loads(bench.good('generate', 'moved', '--prompt', line, '--max-tokens', 1,
                                   '--temperature', 0, '--json'))['tokens']
             for line in ('quern grin', 'with')]
    bench.expect(added == [[t['predictions'][0]['id']] for t in told], f'{added}: {told}')
    shutil.copy(bench.folder / 'own.json', bench.folder / 'tokens/tokenizer.json')
    bench.expect(predict(bench, 'tokens', *args) == told, 'the tokenizer that was put there')


def check_size(bench):
    """The size of GPT-2's vocabulary stays when the file of tokens is gone; many have no text."""
    shutil.copy(bench.folder / 'llm.bin', bench.folder / 'gone.bin')
    train(bench, '--data', 'gone.bin', '--set', 'data.kind=tokens', '--steps', 1, '--out', 'large')
    (bench.folder / 'gone.bin').unlink()
    told = predict(bench, 'large', 'few.txt', '--tokenizer', 'own.json', '--top', 60000)
    names = {p['id']: p['token'] for p in told[1]['predictions']}
    bench.expect(len(names) == 50257 and names[50256] == '<50256>' and names[0] == '<|endoftext|>',
                 f'{len(names)} tokens')


def check_wordpiece(bench, folder):
    """[MASK] of the tokenizer, with its frame: as where [CLS] and [SEP] are written by hand."""
    shutil.copy(folder / 'text/bert.json', bench.folder / 'bert.json')
    shutil.copy(folder / 'text/text.txt', bench.folder / 'river')
    plain = json.loads((bench.folder / 'bert.json').read_text())
    plain['post_processor'] = None
    (bench.folder / 'plain.json').write_text(json.dumps(plain))
    train(bench, '--data', 'river', '--set', 'data.tokenizer=bert.json', '--steps', 10, '--out', 'piece',
          recipe='bert.ini')
    line = 'the river [MASK] early in the mountain[MASK]'
    (bench.folder / 'river.txt').write_text(line)
    (bench.folder / 'framed.txt').write_text(f'[CLS] {line} [SEP]')
    told = predict(bench, 'piece', 'river.txt', '--top', 700)
    same = predict(bench, 'piece', 'framed.txt', '--top', 700, '--tokenizer', 'plain.json')
    bench.expect([t['predictions'] for t in told] == [t['predictions'] for t in same] and
                 len(told) == 2, 'the frame')
    names = {p['id']: p['token'] for p in told[0]['predictions']}
    bench.expect(names[4] == '[MASK]' and any(name.startswith('##') for name in names.values()),
                 'pieces')
    plain['added_tokens'][4]['content'] = '<mask>'
    plain['model']['vocab'] = {('<mask>' if text == '[MASK]' else text): number
                               for text, number in plain['model']['vocab'].items()}
    (bench.folder / 'other.json').write_text(json.dumps(plain))
    (bench.folder / 'other.txt').write_text(f'[CLS] {line} [SEP]'.replace('[MASK]', '<mask>'))
    args = ['--tokenizer', 'other.json', '--set', 'data.mask_token=4']
    other = predict(bench, 'piece', 'other.txt', '--top', 700, *args)
    bench.expect([[p['probability'] for p in t['predictions']] for t in other] ==
                 [[p['probability'] for p in t['predictions']] for t in told], '<mask>')
    check(bench, f'predict piece river.txt {" ".join(args)}', 1, r'has no <mask>, which stands')


def main():
    golden = pathlib.Path(sys.argv[2]).resolve()
    with Bench(sys.argv[1]) as bench:
        bench.recipe('t.ini', RECIPE)
        write_text(bench)
        check_llama(bench, golden)
        check_gpt2(bench, golden)
        check_masked(bench, golden)
        check_generate(bench)
        check_loss(bench)
        check_forms(bench)
        check_budget(bench)
        check_long(bench)
        check_bert(bench)
        check_bad(bench)
        if 'tokenizers' in sys.argv[3:]:
            check_tokens(bench)
            check_wordpiece(bench, golden)
        bench.end()


if __name__ == '__main__':
    main()
