#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""control.py PROGRAM: what follows from evaluations (the best checkpoint, a smaller learning rate, an
early end), which checkpoints stay, and what may change in a training that goes on."""
import json
import sys
import time
from xml.etree import ElementTree

from bad_input import check
from runs import digest, lines
from support import TEST, TRAIN, Bench, idx, images

UPDATES = 30
LR, PATIENCE, PLATEAU, FACTOR = 0.9, 7, 3, 0.5
CONTROL = {'lr = 0.1': f'lr = {LR}', 'schedule = cosine\n': f'eval_every = 1 update\nkeep = {2 * UPDATES}\n',
           'epochs = 2': f'steps = {UPDATES}'}
WATCHED = ('--set', 'train.best=loss', '--set', f'train.patience={PATIENCE}',
           '--set', f'train.plateau_patience={PLATEAU}', '--set', f'train.plateau_factor={FACTOR}')


def watch(losses):
    """The rate's factor behind each of the evaluations up to the last one, and the best of them."""
    best, waited, flat, scale, scales = None, 0, 0, 1.0, []
    for i, loss in enumerate(losses):
        better = best is None or loss < losses[best]
        best = i if better else best
        waited, flat = (0, 0) if better else (waited + 1, flat + 1)
        if flat == PLATEAU:
            scale, flat = scale * FACTOR, 0
        scales.append(scale)
        if waited == PATIENCE:
            break
    return scales, best


def checkpoints(bench, out):
    return sorted(path.name for path in (bench.folder / out).glob('update-*'))


def near(a, b):
    return abs(a - b) <= 1e-6 * abs(b)


def check_watch(bench):
    """The same decisions as those that follow from the evaluations in the metrics."""
    out = bench.good('train', 'w.ini', *WATCHED, '--out', 'w', '--metrics', 'w.json')
    told = lines(bench, 'w.json')
    losses = [line['evaluation']['test_loss'] for line in told if 'evaluation' in line]
    rates = [line['lr'] for line in told if 'step' in line]
    scales, best = watch(losses)
    bench.expect(len(losses) == len(scales) < UPDATES, f'{len(losses)} evaluations, not {len(scales)}')
    bench.expect(scales[-1] < 1 and len(set(scales)) > 2, f'the rate does not change: {scales}')
    bench.expect(all(near(rate, LR * scale) for rate, scale in zip(rates, [1.0, *scales])), f'{rates}')
    summary = told[-1]['summary']
    bench.expect(summary['ended_early'] and not summary['interrupted'], f'{summary}')
    bench.expect(f'ended early, after update {len(losses)}: {PATIENCE} evaluations' in out and
                 f'learning rate: x {FACTOR} after {PLATEAU} evaluations' in out, out)
    link = (bench.folder / 'w/best').resolve().name
    bench.expect(link == f'update-{best + 1:08d}', f'{link}: the best is {best + 1}')
    return len(losses)


def check_going_on(bench, updates):
    """Stopped and gone on with at any place it comes to the same end; then it has ended."""
    for stop in (2, updates - 3):
        name = f'g{stop}'
        bench.good('train', 'w.ini', *WATCHED, '--out', name, '--metrics', 'g.json', '--steps', stop, '--quiet')
        bench.good('resume', name, '--steps', UPDATES, '--metrics', 'g.json', '--quiet')
        bench.expect(digest(bench, name) == digest(bench, 'w'), f'stopped at {stop}: other weights')
        bench.expect((bench.folder / name / 'best').resolve().name ==
                     (bench.folder / 'w/best').resolve().name, f'stopped at {stop}: another best')
    out = bench.good('resume', 'w')
    bench.expect('ended early' in out and len(checkpoints(bench, 'w')) == updates + 1, out)
    bench.good('resume', 'w', '--set', 'train.patience=0', '--steps', updates + 2, '--quiet')
    bench.expect(checkpoints(bench, 'w')[-1] == f'update-{updates + 2:08d}', 'did not go on')


def check_best(bench):
    """Accuracy is what counts where nothing is said; each name is one of its figure."""
    for best in ('accuracy', 'loss'):
        bench.good('train', 'w.ini', '--out', best, '--metrics', 'b.json', '--set', f'train.best={best}', '--quiet')
        values = [line['evaluation'][f'test_{best}'] for line in lines(bench, 'b.json') if 'evaluation' in line]
        update = values.index((max if best == 'accuracy' else min)(values)) + 1
        link = (bench.folder / best / 'best').resolve().name
        bench.expect(link == f'update-{update:08d}', f'best by {best}: {link}, not {update}')


def check_keep(bench):
    for keep, want in ((0, 1), (1, 1), (3, 3)):
        name = f'k{keep}'
        bench.good('train', 'r.ini', '--out', name, '--quiet', '--set', f'train.keep={keep}',
                   '--set', 'train.save_every=2 updates', '--set', 'train.eval_every=0')
        whole = -(-2 * TRAIN // 24)
        saved = sorted({*range(2, whole + 1, 2), -(-TRAIN // 24), whole})
        bench.expect(checkpoints(bench, name)[-want:] == [f'update-{u:08d}' for u in saved[-want:]],
                     f'keep {keep}: {checkpoints(bench, name)}')
        bench.expect(len(checkpoints(bench, name)) <= want + 1, f'keep {keep}: {checkpoints(bench, name)}')


def check_seconds(bench):
    """Saved by the clock, within an epoch that takes longer."""
    copies = 200
    for name, code, shape, data in (('images', 8, (8, 8), images(TRAIN, 1)),
                                    ('labels', 8, (), [i % 3 for i in range(TRAIN)])):
        (bench.folder / name).write_bytes(idx(code, (copies * TRAIN, *shape), bytes(data) * copies))
    process = bench.start('train', 'r.ini', '--out', 's', '--quiet', '--batch', 1, '--set', 'train.keep=100',
                          '--set', 'train.save_every=1 second', '--set', 'train.eval_every=0',
                          '--set', 'data.images=images', '--set', 'data.labels=labels')
    began = time.monotonic()
    while len(checkpoints(bench, 's')) < 3 and process.poll() is None:
        time.sleep(0.05)
    seconds = time.monotonic() - began
    process.terminate()
    process.communicate()
    bench.expect(seconds > 1.5, f'three checkpoints in {seconds} s')


def check_changes(bench):
    bench.good('train', 'r.ini', '--out', 'c', '--steps', 3, '--quiet')
    bench.good('resume', 'c', '--steps', 5, '--set', 'train.lr=0.02', '--set', 'train.schedule=constant',
               '--metrics', 'c.json', '--quiet')
    told = lines(bench, 'c.json')
    changed = next(line['changed'] for line in told if 'changed' in line)
    bench.expect(changed == {'train.steps': '5', 'train.lr': '0.02', 'train.schedule': 'constant'}, f'{changed}')
    rates = [line['lr'] for line in told if 'step' in line]
    bench.expect(len(rates) == 2 and all(near(rate, 0.02) for rate in rates), f'{rates}')
    bench.good('resume', 'c', '--steps', 6, '--metrics', 'c.json', '--quiet')
    bench.expect(near(lines(bench, 'c.json')[-3]['lr'], 0.02), 'the change did not stay')
    for key in ('train.batch=8', 'model.hidden1=3', 'train.seed=2', 'memory.budget=1GiB', 'train.best=loss'):
        check(bench, f'resume c --steps 9 --set {key}', 2,
              rf"--set {key.split('=')[0]}: is settled when a training begins; learning rate")


def check_validation(bench):
    """A part of the training samples is evaluated in training; the test split by `eval`."""
    kept = TRAIN // 5
    args = ('--set', 'data.validation=0.2', '--set', 'train.eval_every=2 updates', '--set', 'train.schedule=constant')
    out = bench.good('train', 'r.ini', *args, '--out', 'v', '--metrics', 'v.json')
    told = lines(bench, 'v.json')
    evaluations = [line['evaluation'] for line in told if 'evaluation' in line]
    steps = sum('step' in line for line in told)
    bench.expect('validation accuracy' in out and 'test accuracy' not in out, out)
    bench.expect(steps == -(-2 * (TRAIN - kept) // 24), f'{steps} updates')
    bench.expect(all(e['validation'] and e['test_samples'] == kept for e in evaluations), f'{evaluations}')
    bench.good('train', 'r.ini', *args, '--out', 'v2', '--steps', 5, '--quiet')
    bench.good('resume', 'v2', '--steps', steps, '--quiet')
    bench.good('train', 'r.ini', *args, '--set', 'data.validation=0.3', '--out', 'v3', '--steps', steps, '--quiet')
    bench.expect(digest(bench, 'v') == digest(bench, 'v2') != digest(bench, 'v3'), 'other weights')
    told = json.loads(bench.good('eval', 'v', '--json'))
    bench.expect(told['test_samples'] == TEST and 'validation' not in told, f'{told}')
    (bench.folder / 'alone.ini').write_text((bench.folder / 'r.ini').read_text().replace(
        f"path = {bench.folder / 'data'}", 'images = data/train-images-idx3-ubyte\n'
        'labels = data/train-labels-idx1-ubyte\nvalidation = 0.2'))
    bench.good('train', 'alone.ini', '--out', 'alone', '--metrics', 'a.json', '--quiet')
    last = [line['evaluation'] for line in lines(bench, 'a.json') if 'evaluation' in line][-1]
    told = json.loads(bench.good('eval', 'alone', '--json'))
    bench.expect(all(told[key] == last[key] for key in last if key[:5] == 'test_') and told['validation'], f'{told}')
    check(bench, 'train r.ini --set data.validation=0.001', 2, r'0\.001 of 200 samples leaves one part without any')


def check_find_lr(bench):
    """Labels of which some are wrong let large rates diverge."""
    (bench.folder / 'noisy').write_bytes(idx(8, (TRAIN,), [i * i // 7 % 3 if i % 4 == 0 else i % 3
                                                           for i in range(TRAIN)]))
    text = (bench.folder / 'r.ini').read_text().replace(
        f"path = {bench.folder / 'data'}", 'images = data/train-images-idx3-ubyte\nlabels = noisy')
    (bench.folder / 'n.ini').write_text(text)
    args = ('find-lr', 'n.ini', '--updates', 40, '--from', '1e-4', '--to', 1000)
    told = json.loads(bench.good(*args, '--json', '--svg', 'lr.svg'))
    rates, losses, smoothed = told['lr'], told['loss'], told['smoothed']
    count = len(rates)
    bench.expect(3 <= count < 40 and count == len(losses) == len(smoothed), f'{count} rates')
    bench.expect(all(near(rate, 1e-4 * 1e7 ** (i / 39)) for i, rate in enumerate(rates)), f'{rates}')
    falls = [smoothed[i - 1] - smoothed[i + 1] for i in range(1, min(count - 1, smoothed.index(min(smoothed)) + 1))]
    bench.expect(told['suggestion'] == rates[1 + falls.index(max(falls))] < told['lowest'] ==
                 rates[smoothed.index(min(smoothed))], f'{told}')
    bench.good('train', 'n.ini', '--set', 'train.schedule=constant', '--set', f'train.lr={rates[0]}', '--steps', 1,
               '--metrics', 'first.json', '--quiet')
    bench.expect(lines(bench, 'first.json')[2]['loss'] == losses[0], 'it is another training')
    circles = ElementTree.parse(bench.folder / 'lr.svg').findall('{http://www.w3.org/2000/svg}circle')
    bench.expect(len(circles) == count, f'{len(circles)} dots')
    out = bench.good(*args)
    bench.expect(f"train.lr = {told['suggestion']:.2g}: there the loss falls fastest" in out and 'diverged' in out, out)
    check(bench, 'find-lr r.ini --from 1 --to 0.1', 2, r'--to: 0\.1 is not above --from, 1')
    check(bench, 'find-lr r.ini --from -1', 2, r"--from: '-1' is not above 0")
    check(bench, 'find-lr r.ini --updates 2', 2, r"--updates: '2' .*from 3 to 100000")
    check(bench, 'find-lr n.ini --from 1e4 --to 1e5', 1, r'n\.ini: the loss diverges at once; --from a smaller rate')
    check(bench, 'find-lr r.ini --updates 5 --svg nowhere/lr.svg', 1, r'nowhere/lr\.svg: ')


def check_refusals(bench):
    for key, pattern in (('best=mean_iou', r'train\.best: is not measured of this data'),
                         ('best=speed', r"train\.best: 'speed' .*accuracy, loss, mean_iou"),
                         ('patience=-1', r"train\.patience: '-1' "),
                         ('plateau_factor=1', r"train\.plateau_factor: '1' "),
                         ('save_every=3 epochs', r"save_every: '3 epochs' is not a number with a unit: "
                          r'updates, seconds, minutes'),
                         ('eval_every=3 minutes', r"eval_every: '3 minutes' is not a number with a unit: "
                          r'epochs, updates')):
        (bench.folder / 'bad.ini').write_text((bench.folder / 'r.ini').read_text()
                                              .replace('save_every = 5\n', '')
                                              .replace('[memory]', key.replace('=', ' = ') + '\n[memory]'))
        check(bench, 'train bad.ini', 2, pattern)


def main():
    with Bench(sys.argv[1]) as bench:
        bench.recipe('w.ini', **CONTROL)
        updates = check_watch(bench)
        check_going_on(bench, updates)
        check_best(bench)
        check_keep(bench)
        check_seconds(bench)
        check_changes(bench)
        check_validation(bench)
        check_find_lr(bench)
        check_refusals(bench)
        bench.end()


if __name__ == '__main__':
    main()
