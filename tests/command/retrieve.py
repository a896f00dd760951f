#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""retrieve.py PROGRAM: dual encoders of pictures and of texts in every mode, what they find, their vectors, and what is
wrong with pairs."""
import json
import random
import re
import struct
import sys

from bad_input import check
from support import Bench, idx
from text import digest
from weights import read_tensors

RECIPE = """[contrastive]
mode = contaccum
bank = 24
dim = 8
[model]
name = mlp
hidden1 = 24
hidden2 = 0
[data]
path = {data}
pairs = halves
[train]
batch = 24
steps = 80
optimizer = adamw
lr = 0.004
eval_every = 0
[memory]
micro_batch = 4
budget = 4MiB
tune = off
"""
LINES = """[contrastive]
mode = gradcache
dim = 16
tied = yes
[model]
name = bert
layers = 1
heads = 2
width = 16
dropout = 0
pooling = mean
[data]
kind = lines
path = one.txt
origin = told where from
vocabulary = 290
length = 24
held_out = 0.25
[passages]
path = two.txt
[train]
batch = 16
steps = 12
optimizer = adamw
lr = 0.003
[memory]
micro_batch = 4
budget = 8MiB
tune = off
"""
TRAIN, TEST = 100, 40


def write_pictures(bench):
    """The right half is the left one upside down and inverted, with some noise."""
    draw = random.Random(1)
    folder = bench.folder / 'halves'
    folder.mkdir()
    for name, count in (('train', TRAIN), ('t10k', TEST)):
        pixels = bytearray()
        for _ in range(count):
            left = [[draw.randrange(256) for _ in range(4)] for _ in range(8)]
            for y in range(8):
                pixels += bytes(left[y] + [255 - min(255, v + draw.randrange(9)) for v in left[7 - y]])
        (folder / f'{name}-images-idx3-ubyte').write_bytes(idx(8, (count, 8, 8), pixels))
        (folder / f'{name}-labels-idx1-ubyte').write_bytes(idx(8, (count,), [0] * count))
    (bench.folder / 'r.ini').write_text(RECIPE.format(data=folder))


def sets(*keys):
    return [part for key in keys for part in ('--set', key)]


def train(bench, *args, recipe='r.ini'):
    """Rows of the updates, and the summary."""
    bench.good('train', recipe, '--quiet', '--metrics', 'm.json', *args)
    rows = [json.loads(line) for line in (bench.folder / 'm.json').read_text().splitlines()]
    return [row for row in rows if 'step' in row], rows[-1]['summary']


def array(bench, name):
    """(shape, numbers) of an array of NumPy's."""
    data = (bench.folder / name).read_bytes()
    length = 10 + int.from_bytes(data[8:10], 'little')
    head = eval(data[10:length])  # pylint: disable=eval-used
    code = {'<f4': 'f', '<i4': 'i'}[head['descr']]
    count = (len(data) - length) // 4
    return head['shape'], struct.unpack(f'<{count}{code}', data[length:])


def figures(bench, folder):
    """MRR and recall at 10 by the arrays, in double."""
    (count, dim), queries = array(bench, f'{folder}/queries.npy')
    _, passages = array(bench, f'{folder}/passages.npy')
    ranks = []
    for i in range(count):
        query = queries[i * dim:(i + 1) * dim]
        scores = [sum(a * b for a, b in zip(query, passages[j * dim:(j + 1) * dim])) for j in range(count)]
        ranks.append(1 + sum(not s < scores[i] for j, s in enumerate(scores) if j != i))
    return sum(1 / r for r in ranks) / count, sum(r <= 10 for r in ranks) / count


def check_modes(bench):
    """Whole and gradcache are the same training; a bank of no use to others costs no bytes."""
    rows, sums = {}, {}
    for mode in ('whole', 'gradcache', 'accumulate', 'contaccum'):
        rows[mode], sums[mode] = train(bench, *sets(f'contrastive.mode={mode}'), '--out', mode)
        print(f"{mode}: loss {rows[mode][0]['loss']:.3f} -> {rows[mode][-1]['loss']:.3f}, MRR "
              f"{sums[mode]['test_mrr']:.3f}, {sums[mode]['peak_bytes_planned']} bytes")
    worst = max(abs(a['loss'] - b['loss']) for a, b in zip(rows['whole'], rows['gradcache']))
    bench.expect(worst < 1e-4, f'whole and gradcache: losses differ by {worst}')
    bench.expect(sums['whole']['micro_steps'] == 1 and sums['gradcache']['micro_batch'] == 4, 'micro-batches')
    bench.expect(all(s['test_mrr'] > 0.3 and s['test_samples'] == TEST for s in sums.values()), f'{sums}')
    bench.expect(all('test_recall_100' not in s and s['test_recall_10'] > s['test_recall_1']
                     for s in sums.values()), f'{sums}')
    bench.expect(all(abs(row['grad_norm_ratio'] - row['grad_norms']['passage.*'] / row['grad_norms']['query.*'])
                     < 1e-6 for row in rows['contaccum']), 'the ratio of norms')
    bench.expect(['local_loss' in rows[mode][5] for mode in rows] == [False, False, False, True], 'local losses')
    banks = sums['contaccum']['peak_bytes_planned'] - sums['accumulate']['peak_bytes_planned']
    bench.expect(0 < banks < 65536, f'banks of {banks} bytes')


def check_plans(bench):
    """Auto is whole where that fits, else gradcache, which a checkpoint then goes on with."""
    large = ('train.batch=96', 'model.hidden1=400')
    args = sets('contrastive.mode=auto', *large)
    plan = json.loads(bench.good('plan', 'r.ini', '--json', *args))
    least = json.loads(bench.good('plan', 'r.ini', '--json', *sets('contrastive.mode=gradcache', *large)))
    bench.expect(plan['micro_batch'] == 96 and least['micro_batch'] == 4, f'{plan} {least}')
    small = (plan['smallest_budget_bytes'] + least['smallest_budget_bytes']) // 2
    bench.expect(least['smallest_budget_bytes'] < plan['smallest_budget_bytes'], f'{small}')
    _, one = train(bench, *args, '--budget', small, '--steps', 4, '--out', 'auto')
    bench.expect(one['micro_batch'] == 4 and one['peak_bytes_allocated'] <= small, f'{one}')
    bench.good('resume', 'auto', '--quiet', '--steps', 6, '--budget', '4MiB')
    rows = [json.loads(line) for line in (bench.folder / 'auto/metrics.jsonl').read_text().splitlines()]
    bench.expect(rows[-1]['summary']['micro_batch'] == 4, f'{rows[-1]}')
    (bench.folder / 'b.ini').write_text((bench.folder / 'r.ini').read_text().replace(
        'mlp\nhidden1 = 24\nhidden2 = 0', 'cnn\nwidth = 8').replace('contaccum', 'auto'))
    code, out, error = bench.run('train', 'b.ini', '--budget', '64KiB')
    bench.expect(code == 3 and 'at micro-batch 24' in error and not out, f'batch norm: {code} {out} {error}')
    few = least['smallest_budget_bytes'] - 4096
    code, out, error = bench.run('train', 'r.ini', *args, '--budget', few)
    bench.expect(code == 3 and 'at micro-batch 4' in error and error.count('\n') == 1, f'{code} {out} {error}')


def check_resumed(bench):
    """Half a training and the other half are the whole one: banks and their positions are saved."""
    bench.good('train', 'r.ini', '--quiet', '--steps', 37, '--out', 'half')
    bench.good('resume', 'half', '--quiet', '--steps', 80)
    bench.expect(digest(bench, 'half') == digest(bench, 'contaccum'), 'resumed')
    _, other = train(bench, *sets('contrastive.forget=yes'), '--out', 'forget')
    bench.expect(digest(bench, 'forget') != digest(bench, 'contaccum') and other['test_mrr'] > 0.1, f'{other}')


def drifts(bench):
    rows = [json.loads(line) for line in (bench.folder / 'm.json').read_text().splitlines()]
    return [row['drift'] for row in rows if 'drift' in row]


def check_bank_sizes(bench):
    """A bank of fewer queries than passages: as many are the same, none are those of no bank; and it is saved."""
    plans = {size: json.loads(bench.good('plan', 'r.ini', '--json', *sets(f'contrastive.bank_queries={size}')))
             for size in (0, 9, 24)}
    banks = {size: plan['bytes_by_tag']['banks'] for size, plan in plans.items()}
    unit = min(banks[9] - banks[0], banks[24] - banks[9])
    bench.expect(unit > 0 and banks[24] - banks[0] >= 24 * 8 * 4, f'{banks}')
    for out, *args in (('all', 'contrastive.bank_queries=24'), ('none', 'contrastive.bank_queries=0'),
                       ('off', 'contrastive.query_bank=no'), ('few', 'contrastive.bank_queries=9')):
        train(bench, *sets(*args), '--out', out)
    have = {out: digest(bench, out) for out in ('contaccum', 'all', 'none', 'off', 'few')}
    bench.expect(have['all'] == have['contaccum'] and have['none'] == have['off'] and
                 len(set(have.values())) == 3, f'{have}')
    bench.good('train', 'r.ini', '--quiet', '--steps', 37, '--out', 'few-part', *sets('contrastive.bank_queries=9'))
    bench.good('resume', 'few-part', '--quiet', '--steps', 80)
    bench.expect(digest(bench, 'few-part') == have['few'], 'resumed')


def check_drift(bench):
    """What a bank holds grows old: that is told, a cap ends it, and looking changes nothing."""
    args = sets('contrastive.bank=72', 'contrastive.drift_every=10', 'contrastive.drift_ages=3', 'train.lr=0.01')
    code, _, error = bench.run('train', 'r.ini', '--quiet', '--metrics', 'm.json', '--out', 'old', *args)
    seen = drifts(bench)
    bench.expect(code == 0 and 'warning: drift: entries of 48 to 71 samples ago' in error and
                 [row['update'] for row in seen] == list(range(10, 81, 10)), f'{code} {error} {seen}')
    ages = seen[2]['ages']
    bench.expect([age['age'] for age in ages] == [0, 24, 48] and ages[0]['passages'] > ages[2]['passages'] and
                 seen[2]['oldest'] == min(ages[2]['queries'], ages[2]['passages']) and 'limit' not in seen[2],
                 f'{seen[2]}')
    bench.good('train', 'r.ini', '--quiet', '--out', 'unseen', *args[:-2], *sets('contrastive.drift_every=0',
                                                                               'train.lr=0.01'))
    bench.expect(digest(bench, 'old') == digest(bench, 'unseen'), 'looking at banks changed the training')
    code, _, error = bench.run('train', 'r.ini', '--quiet', '--metrics', 'm.json', '--out', 'capped', *args,
                               *sets('contrastive.cap=yes'))
    limits = [row.get('limit', 0) for row in drifts(bench)]
    bench.expect(code == 0 and f'warning: drift: from now on the newest {limits[-1]} samples' in error and limits[-1] in (24, 48),
                 f'{error} {limits}')
    for steps in ('train r.ini --steps 35 --out capped-part', 'resume capped-part --steps 80'):
        bench.run(*steps.split(), '--quiet', *(args + sets('contrastive.cap=yes') if 'train' in steps else ()))
    bench.expect(digest(bench, 'capped-part') == digest(bench, 'capped') != digest(bench, 'old'), 'a cap is saved')
    rows, _ = train(bench, *sets('contrastive.start=2', 'contrastive.mode=contaccum'), '--steps', 3)
    plain, _ = train(bench, *sets('contrastive.mode=accumulate'), '--steps', 3)
    bench.expect(rows[1]['loss'] == plain[1]['loss'] and rows[2]['loss'] != plain[2]['loss'], 'start')


def check_found(bench):
    """What eval tells, from the vectors that embed writes."""
    seen = json.loads(bench.good('eval', 'contaccum', '--json'))
    out = bench.good('embed', 'contaccum', '--out', 'vectors')
    bench.expect(out == f'{TEST} pairs, vectors of 8 numbers: vectors\n', out)
    mrr, recall = figures(bench, 'vectors')
    bench.expect(abs(mrr - seen['test_mrr']) < 1e-3 and recall == seen['test_recall_10'], f'{mrr} {recall} {seen}')
    shape, queries = array(bench, 'vectors/queries.npy')
    bench.expect(shape == (TEST, 8) and abs(sum(q * q for q in queries[:8]) - 1) < 1e-5, 'a length of 1')
    bench.expect(array(bench, 'vectors/ids.npy') == ((TEST,), tuple(range(TEST))), 'ids')
    text = bench.good('eval', 'contaccum')
    bench.expect(text.startswith(f"test MRR {100 * seen['test_mrr']:.2f} %  recall@1 "), text)
    bench.good('embed', 'r.ini', '--weights', 'contaccum', '--split', 'train', '--out', 'more', '--quiet')
    bench.expect(array(bench, 'more/passages.npy')[0] == (TRAIN, 8), 'the training split')
    bench.good('train', 'r.ini', '--quiet', *sets('contrastive.tied=yes'), '--steps', 1, '--out', 'tied')
    bench.good('embed', 'tied', '--out', 'tied/vectors', '--quiet')
    bench.expect(array(bench, 'tied/vectors/queries.npy') != array(bench, 'tied/vectors/passages.npy'),
                 'both sides are one half')
    _, kept = train(bench, *sets('data.validation=0.3', 'train.best=recall_10', 'train.eval_every=10 updates'),
                    '--out', 'kept')
    bench.expect(kept['validation'] and kept['test_samples'] == 30, f'{kept}')
    _, again = train(bench, *sets('train.weights=contaccum/last/weights.safetensors', 'train.lr=1e-6'),
                     '--steps', 1)
    bench.expect(abs(again['test_mrr'] - seen['test_mrr']) < 0.02, f'{again} after {seen}')


def write_lines(bench):
    draw = random.Random(2)
    pairs = [('red', 'crimson'), ('small', 'little'), ('house', 'dwelling'), ('road', 'way'), ('boy', 'lad'),
             ('glad', 'merry'), ('sea', 'ocean'), ('stone', 'rock'), ('wood', 'forest'), ('fast', 'swift')]
    chosen = [draw.sample(pairs, 4) for _ in range(80)]
    for name, side in (('one', 0), ('two', 1)):
        (bench.folder / f'{name}.txt').write_text(''.join(' '.join(p[side] for p in c) + '\n' for c in chosen))
    (bench.folder / 'pairs.jsonl').write_text(''.join(
        json.dumps({side: ' '.join(p[i] for p in c) for i, side in enumerate(('asked', 'told'))}) + '\n'
        for c in chosen))
    (bench.folder / 'l.ini').write_text(LINES)


def check_lines(bench):
    """Texts a line, two fields of JSON lines, and pictures that look for texts."""
    _, lines = train(bench, '--out', 'lines', recipe='l.ini')
    bench.expect(lines['test_samples'] == 20 and lines['test_mrr'] > 0.1, f'{lines}')
    bench.expect((bench.folder / 'lines/tokenizer.json').exists(), 'the vocabulary stays')
    text = LINES.replace('kind = lines', 'kind = jsonl').replace('path = one.txt', 'path = pairs.jsonl\nfield = asked')
    (bench.folder / 'j.ini').write_text(text.replace('path = two.txt', 'field = told'))
    _, objects = train(bench, '--out', 'objects', recipe='j.ini')
    bench.expect(objects['test_samples'] == 20, f'{objects}')
    bench.good('train', 'l.ini', '--quiet', '--steps', 6, '--out', 'part')
    bench.good('resume', 'part', '--quiet', '--steps', 12)
    bench.expect(digest(bench, 'part') == digest(bench, 'lines'), 'resumed')
    text = bench.good('model', 'l.ini')
    bench.expect(text.count('parameter bert.embeddings.word_embeddings.weight') == 1 and 'query.tokens' in text and
                 'passage.lengths' in text, 'tied towers')
    mixed = RECIPE.replace('pairs = halves\n', '').replace('[train]', '[passages]\nkind = lines\npath = hundred.txt\n'
                                                           'length = 12\n[passage_model]\nname = bert\nlayers = 1\n'
                                                           'heads = 1\nwidth = 8\ndropout = 0\n[train]')
    (bench.folder / 'hundred.txt').write_text(''.join(f'{i} is a number\n' for i in range(TRAIN)))
    (bench.folder / 'm.ini').write_text(mixed.format(data=bench.folder / 'halves'))
    _, both = train(bench, '--steps', 3, *sets('data.validation=0.2'), recipe='m.ini')
    bench.expect(both['test_samples'] == 19 and both['validation'], f'{both}')


def check_negatives(bench):
    """Hard negatives, two of each pair: passages of other pairs that share a word."""
    told = (bench.folder / 'two.txt').read_text().splitlines()
    hard = [told[(i + shift) % len(told)] for i in range(len(told)) for shift in (1, 2)]
    (bench.folder / 'hard.txt').write_text('\n'.join(hard) + '\n')
    (bench.folder / 'n.ini').write_text(LINES + '[negatives]\npath = hard.txt\n')
    rows, first = {}, {}
    for mode in ('whole', 'gradcache', 'accumulate', 'contaccum'):
        rows[mode], end = train(bench, *sets(f'contrastive.mode={mode}', 'contrastive.bank=8'), '--out', f'hard-{mode}',
                                recipe='n.ini')
        first[mode] = rows[mode][0]['loss']
        bench.expect(end['test_samples'] == 20 and end['test_mrr'] > 0.1, f'{mode}: {end}')
    easy, _ = train(bench, recipe='l.ini')
    print('hard negatives: first losses ' + ', '.join(f'{mode} {loss:.3f}' for mode, loss in first.items()) +
          f"; without {easy[0]['loss']:.3f}")
    worst = max(abs(a['loss'] - b['loss']) for a, b in zip(rows['whole'], rows['gradcache']))
    bench.expect(worst < 1e-4, f'hard negatives: whole and gradcache differ by {worst}')
    # Random towers know nothing: of 16 passages, 48 with the negatives, 12 in a micro-batch.
    bench.expect(easy[0]['loss'] + 0.6 < first['whole'] and first['accumulate'] < first['whole'] - 0.6, f'{first}')
    bench.good('embed', 'hard-whole', '--out', 'hard-vectors', '--quiet')
    bench.expect(array(bench, 'hard-vectors/passages.npy')[0] == (20, 16), 'own passages alone')
    seen = json.loads(bench.good('eval', 'hard-whole', '--json'))
    bench.expect(abs(figures(bench, 'hard-vectors')[0] - seen['test_mrr']) < 1e-3, f'{seen}')


def tower_text(bench, recipe, side, output='embedding'):
    """The tower of "query" or "passage" of a recipe as a graph file."""
    text = bench.good('model', recipe)
    at = text.index('\ninput passage.') + 1
    text = re.sub(rf'(?<![\w.]){side}\.|  +#.*', '', text[:at - 1] if side == 'query' else text[at:])
    tower, vectors = re.fullmatch(r'(.*)\nrms_norm_\d+ = rms_norm\((\S+), -\).*', text, re.DOTALL).groups()
    return f'{tower}\noutput {output} = {vectors}\n'


def write_tower(bench, recipe, output='embedding'):
    """The queries' tower of a recipe as the file t.graph, and g.ini, the recipe with that as its model."""
    (bench.folder / 't.graph').write_text(tower_text(bench, recipe, 'query', output))
    recipe = re.sub(r'\[model\][^[]*', '[model]\nname = graph\npath = t.graph\n', (bench.folder / recipe).read_text())
    (bench.folder / 'g.ini').write_text(recipe)


def check_graph_files(bench):
    """Towers of a graph file train as those of the model whose graph it is, tied and with hard negatives, too."""
    cases = (('r.ini', '--steps', 12), ('l.ini',), ('n.ini', *sets('contrastive.mode=whole')),
             ('r.ini', '--steps', 12, *sets('contrastive.tied=yes')))
    for i, (recipe, *args) in enumerate(cases):
        write_tower(bench, recipe.replace('n.ini', 'l.ini'))
        text = (bench.folder / 'g.ini').read_text()
        (bench.folder / 'g.ini').write_text(text + '[negatives]\npath = hard.txt\n' * (recipe == 'n.ini'))
        for name, out in ((recipe, f'model{i}'), ('g.ini', f'file{i}')):
            bench.good('train', name, '--quiet', '--out', out, *args)
        bench.expect(digest(bench, f'file{i}') == digest(bench, f'model{i}'), f'{recipe} {args}: trains otherwise')
    (bench.folder / 't.graph').rename(bench.folder / 'gone.graph')
    seen = [json.loads(bench.good('eval', out, '--json'))['test_mrr'] for out in ('file3', 'model3')]
    bench.expect(seen[0] == seen[1], f'without the file: {seen}')
    write_tower(bench, 'r.ini', output='vectors')
    check(bench, 'train g.ini', 2, r'embedding: no output has this name')
    write_tower(bench, 'r.ini')
    check(bench, 'train g.ini --set contrastive.dim=9', 2, r'model graph: the output embedding of a tower is \(batch, 9\)')
    (bench.folder / 't.graph').write_text('input images u8 Bx1x8x4\nx = nothing(images)\n')
    check(bench, 'train g.ini', 1, r't\.graph:2: x: .nothing. is no operator')


def check_two_graph_files(bench):
    """Passages may have a graph file of their own, beside a model that ships or another file; checkpoints keep both."""
    own = '[passage_model]\nname = mlp\nhidden1 = 16\nhidden2 = 0\n'
    (bench.folder / 'two.ini').write_text((bench.folder / 'r.ini').read_text() + own)
    write_tower(bench, 'two.ini')
    (bench.folder / 'p.graph').write_text(tower_text(bench, 'two.ini', 'passage'))
    for name, model in (('one', 'two.ini'), ('both', 'g.ini')):
        text = (bench.folder / model).read_text().replace(own, '')
        (bench.folder / f'{name}.ini').write_text(text + '[passage_model]\nname = graph\npath = p.graph\n')
        bench.good('train', f'{name}.ini', '--quiet', '--steps', 20, '--out', name)
        bench.good('train', f'{name}.ini', '--quiet', '--steps', 9, '--out', f'{name}-part')
    bench.good('train', 'two.ini', '--quiet', '--steps', 20, '--out', 'shipped')
    variants = 'compare one.ini --seeds 1,2 --steps 1 --out seeds --quiet'
    bench.good(*variants.split())
    whole = (bench.folder / 'p.graph').read_text()
    (bench.folder / 'p.graph').write_text(whole + '# Another one.\n')
    check(bench, variants, 2, 'was trained with another graph')
    for file in ('t.graph', 'p.graph'):
        (bench.folder / file).rename(bench.folder / f'gone-{file}')
    for name in ('one', 'both'):
        bench.good('resume', f'{name}-part', '--quiet', '--steps', 20)
        bench.expect(digest(bench, name) == digest(bench, f'{name}-part') == digest(bench, 'shipped'), name)
        bench.good('embed', name, '--out', f'{name}/vectors', '--quiet')
        bench.expect(array(bench, f'{name}/vectors/passages.npy')[0] == (TEST, 8), name)
    seen = [json.loads(bench.good('eval', out, '--json'))['test_mrr'] for out in ('one', 'both', 'shipped')]
    bench.expect(seen[0] == seen[1] == seen[2], f'without the files: {seen}')
    check(bench, 'train both.ini', 1, r'p\.graph|t\.graph')
    (bench.folder / 't.graph').write_text((bench.folder / 'gone-t.graph').read_text())
    (bench.folder / 'p.graph').write_text('input images u8 Bx1x8x4\nx = nothing(images)\n')
    check(bench, 'train both.ini', 1, r'p\.graph:2: x: .nothing. is no operator')
    (bench.folder / 'p.graph').write_text('input images u8 Bx1x8x4\npixels = normalize(images)\n'
                                          'x = reshape(pixels) shape=Bx32\ncell kept f32 8x32\n'
                                          'embedding = batch_matmul(x, kept) transpose_b=yes\noutput embedding\n')
    check(bench, 'train both.ini', 2, r'passage\.kept.*no cell of the plan')
    check(bench, 'train r.ini --set passage_model.name=graph', 2, r'model graph: passage_model\.path: missing')
    check(bench, 'train both.ini --set passages.mean=0.5', 2, r'passages\.mean: a graph file says it itself')


def check_pretrained(bench):
    """Both towers begin with an encoder in Hugging Face's layout."""
    masked = LINES[LINES.index('[model]'):].replace('kind = lines', 'kind = text').replace('pooling = mean\n', '')
    masked = masked.replace('[passages]\npath = two.txt\n', '').replace('length = 24', 'length = 24\nmlm_probability = 0.2')
    (bench.folder / 'b.ini').write_text(masked)
    bench.good('train', 'b.ini', '--quiet', '--steps', 2, '--out', 'masked')
    bench.good('export', 'masked', '--out', 'face')
    warm = LINES.replace('vocabulary = 290', 'tokenizer = masked/tokenizer.json\ntokens = 291')
    (bench.folder / 'w.ini').write_text(warm.replace('lr = 0.003', 'lr = 1e-9\nweights = face'))
    known = read_tensors(bench.folder / 'face/model.safetensors')
    for tied, scopes in (('no', ('query.', 'passage.')), ('yes', ('',))):
        out = bench.good('train', 'w.ini', '--steps', 1, '--out', f'tied-{tied}', *sets(f'contrastive.tied={tied}'))
        bench.expect(out.count('weights: ') >= len(scopes), out)
        have = read_tensors(bench.folder / f'tied-{tied}/last/weights.safetensors')
        for scope in scopes:
            for name in ('bert.encoder.layer.0.attention.self.query.weight', 'bert.embeddings.word_embeddings.weight'):
                one, two = (list(struct.iter_unpack('<f', data)) for data in (known[name][2], have[scope + name][2]))
                bench.expect(len(one) == len(two) and max(abs(a[0] - b[0]) for a, b in zip(one, two)) < 1e-7,
                             f'{scope}{name}')
    check(bench, 'train w.ini --set model.width=32', 1, r'config\.json|width')


BAD = [
    ('train r.ini --set contrastive.temperature=0', 2, r'contrastive\.temperature: .0. is too small; above 0'),
    ('train r.ini --set contrastive.bank=3', 2, r'contrastive\.bank: is smaller than memory\.micro_batch'),
    ('train r.ini --set contrastive.bank_queries=3', 2, r'contrastive\.bank_queries: is smaller than memory\.micro_batch'),
    ('train r.ini --set contrastive.bank_queries=25', 2, r'contrastive\.bank_queries: is larger than contrastive\.bank'),
    ('train r.ini --set contrastive.bank_queries=9 --set contrastive.query_bank=no', 2,
     r'contrastive\.bank_queries: goes without contrastive\.query_bank = no'),
    ('train r.ini --set contrastive.drift_ages=65', 2, r'contrastive\.drift_ages: .65. is too large; from 1 to 64'),
    ('train r.ini --set contrastive.mode=most', 2, r'contrastive\.mode: .most. is not one of them: none, auto, '),
    ('train r.ini --micro-batch auto', 2, r'memory\.micro_batch: missing: of accumulate and contaccum'),
    ('train r.ini --set data.pairs=passages', 2, r'passages: the section is missing'),
    ('train r.ini --set contrastive.dims=3', 2, r'contrastive\.dims: unknown key; did you mean dim\?'),
    ('train r.ini --set passages.kind=lines', 2, r'data\.pairs: halves go without \[passages\]'),
    ('train r.ini --set model.name=unet', 2, r'model unet: gives no vector for each sample'),
    ('train r.ini --set train.best=accuracy', 2, r'train\.best: is not measured of this data and model'),
    ('train r.ini --set train.batch=adaptive --set train.batch_min=8 --set train.batch_max=16', 2,
     r'train\.batch: adaptive is of losses that are means over samples'),
    ('train l.ini --set passages.path=three.txt', 2, r'l\.ini: dataset: 80 queries, but 79 passages'),
    ('train l.ini --set data.path=gone.txt', 1, r'gone\.txt: missing: told where from'),
    ('train l.ini --set passages.vocabulary=290', 2, r'passages\.vocabulary: one is made, of the queries. text'),
    ('train n.ini --set negatives.path=three.txt', 1, r'n\.ini: negatives: 79 samples, but there are 80 pairs'),
    ('train r.ini --set negatives.kind=lines', 2, r'data\.length: missing|halves go without'),
    ('train l.ini --set passages.stride=3', 2, r'passages\.stride: goes with passages\.kind = text, tokens or jsonl'),
    ('train l.ini --set passages.lenght=3', 2, r'passages\.lenght: unknown key; did you mean length'),
    ('train l.ini --set passage_model.name=mlp', 2, r'passage_model\.name: goes without contrastive\.tied'),
    ('train l.ini --set data.kind=text', 2, r'data\.kind: pairs are of idx, images, jsonl or lines'),
    ('train l.ini --set contrastive.mode=none', 2, r'needs contrastive\.mode'),
    ('predict contaccum r.ini', 2, r'contaccum: is of a dual encoder, which tells vectors: quern embed'),
    ('eval contaccum --report r.html', 2, r'--report: the model mlp tells pairs, no classes'),
    ('embed contaccum', 2, r'embed: --out: needs the name of a folder'),
    ('embed contaccum --out x --split all', 2, r'--split: .all. is neither test nor train'),
    ('embed plain --out x', 2, r'is of no dual encoder'),
]


def check_bad(bench):
    (bench.folder / 'three.txt').write_text('\n'.join((bench.folder / 'two.txt').read_text().splitlines()[:79]) + '\n')
    (bench.folder / 'p.ini').write_text(RECIPE[RECIPE.index('[model]'):].format(data=bench.folder / 'halves')
                                        .replace('pairs = halves\n', ''))
    bench.good('train', 'p.ini', '--quiet', '--steps', 1, '--out', 'plain')
    for line, code, pattern in BAD:
        check(bench, line, code, pattern)


def main():
    with Bench(sys.argv[1]) as bench:
        write_pictures(bench)
        write_lines(bench)
        check_modes(bench)
        check_plans(bench)
        check_resumed(bench)
        check_bank_sizes(bench)
        check_drift(bench)
        check_found(bench)
        check_lines(bench)
        check_negatives(bench)
        check_graph_files(bench)
        check_two_graph_files(bench)
        check_pretrained(bench)
        check_bad(bench)
        bench.end()


main()
