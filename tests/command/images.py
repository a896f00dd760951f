#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""images.py PROGRAM: training from folders of PNG files, and what is wrong with them."""
import hashlib
import json
import random
import shutil
import struct
import sys
import zlib

from bad_input import check
from support import Bench

RECIPE = """[model]
name = cnn
width = 8
group = 8
[data]
kind = images
path = pictures/train
test_path = pictures/test
size = 14
crop = 12
random_crop = yes
flip = yes
mean = 0.5
deviation = 0.25, 0.25, 0.25
[train]
batch = 16
epochs = 8
optimizer = adamw
lr = 0.01
[memory]
budget = 16MiB
tune = off
"""
CHANGES = ('random_resized_crop=yes', 'scale=0.5,1', 'degrees=10', 'brightness=0.3', 'contrast=0.3',
           'saturation=0.3', 'hue=0.1')
MIXED = ('--set', 'data.mixup=0.4', '--set', 'data.cutmix=1')
CLASSES, TRAIN, TEST = ('across', 'along'), 40, 12


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def write_png(path, height, width, channels, pixel):
    """`pixel(y, x)` gives the bytes of one."""
    rows = b''.join(b'\0' + b''.join(bytes(pixel(y, x)) for x in range(width))
                    for y in range(height))
    header = struct.pack('>IIBBBBB', width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) +
                     chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def stripes(draw, along):
    """Stripes in one of two directions, somewhere, of some colour, with noise."""
    period, phase = draw.uniform(5, 8), draw.uniform(0, 8)
    colour = [draw.randrange(120, 256) for _ in range(3)]

    def pixel(y, x):
        bright = ((x if along else y) + phase) % period < period / 2
        return [draw.randrange(40) + (value - 40 if bright else 0) for value in colour]
    return pixel


def write_pictures(folder):
    draw = random.Random(1)
    for split, count in (('train', TRAIN), ('test', TEST)):
        for along, name in enumerate(CLASSES):
            for i in range(count):
                write_png(folder / split / name / f'{i}.png', draw.randrange(16, 25),
                          draw.randrange(16, 25), 3, stripes(draw, along))


def lines(bench, name):
    return [json.loads(line) for line in (bench.folder / name).read_text().splitlines()]


def digest(bench, out):
    return hashlib.sha256((bench.folder / out / 'last/weights.safetensors').read_bytes()).digest()


def check_training(bench):
    bench.good('train', 'i.ini', '--quiet', '--out', 'whole', '--metrics', 'm.json')
    _, *rows, summary = lines(bench, 'm.json')
    updates = [row for row in rows if 'step' in row]
    first = sum(u['loss'] for u in updates[:5])
    last = sum(u['loss'] for u in updates[-5:])
    bench.expect(last < 0.4 * first, f'the loss goes from {first / 5} to {last / 5}')
    accuracy = summary['summary']['test_accuracy']
    bench.expect(accuracy > 0.9, f'test accuracy {accuracy}')
    evaluation = json.loads(bench.good('eval', 'whole', '--json'))
    bench.expect(evaluation['test_samples'] == 2 * TEST and
                 evaluation['test_accuracy'] == accuracy, f'eval: {evaluation}')
    bench.expect([(c['name'], c['labels']) for c in evaluation['test_classes']] ==
                 [(name, TEST) for name in sorted(CLASSES)], f'classes: {evaluation}')
    rows = bench.good('eval', 'whole').splitlines()[2:]
    bench.expect([row.split()[-1] for row in rows] == sorted(CLASSES), f'names: {rows}')


def check_plans(bench):
    """The same samples whatever the micro-batch, and after a stop."""
    losses = []
    changes = [part for change in CHANGES for part in ('--set', f'data.{change}')]
    for size in (8, 16):
        bench.good('train', 'i.ini', '--quiet', '--steps', 6, '--micro-batch', size, '--metrics',
                   f'{size}.json', *changes)
        losses.append([row['loss'] for row in lines(bench, f'{size}.json') if 'step' in row])
    bench.expect(all(abs(a - b) < 1e-3 for a, b in zip(*losses)), f'micro-batches: {losses}')
    bench.good('train', 'i.ini', '--quiet', '--epochs', 3, '--out', 'parts')
    bench.good('resume', 'parts', '--quiet', '--epochs', 8)
    bench.expect(digest(bench, 'parts') == digest(bench, 'whole'), 'resume gives other weights')


def check_mixing(bench):
    """Images mixed with others: it learns; the same whatever the micro-batch, and after a stop."""
    losses = []
    for size in (8, 16):
        bench.good('train', 'i.ini', '--quiet', '--steps', 8, '--micro-batch', size, '--metrics', 'x.json', *MIXED)
        losses.append([row['loss'] for row in lines(bench, 'x.json') if 'step' in row])
    bench.expect(all(abs(a - b) < 1e-3 for a, b in zip(*losses)), f'micro-batches: {losses}')
    bench.good('train', 'i.ini', '--quiet', '--out', 'mixed', '--set', 'train.epochs=12', *MIXED)
    bench.good('train', 'i.ini', '--quiet', '--out', 'mixed-parts', '--set', 'train.epochs=5', *MIXED)
    bench.good('resume', 'mixed-parts', '--quiet', '--epochs', 12)
    bench.expect(digest(bench, 'mixed-parts') == digest(bench, 'mixed'), 'mixed: resume gives other weights')
    told = json.loads(bench.good('eval', 'mixed', '--json'))
    bench.expect(told['test_accuracy'] > 0.9, f'mixed: {told}')
    bench.good('plan', 'i.ini', *MIXED)


def check_validation(bench):
    """What is kept for validation is not augmented: an image that was flipped would be of the other class."""
    for right, name in enumerate(('left', 'right')):
        for i in range(TRAIN):
            write_png(bench.folder / 'sides' / name / f'{i}.png', 14, 14, 3,
                      lambda y, x: [200 - 3 * i if (x > 6) == right else 0] * 3)
    text = (bench.folder / 'i.ini').read_text().replace('test_path = pictures/test\n', 'validation = 0.5\n')
    (bench.folder / 'sides.ini').write_text(text.replace('pictures/train', 'sides'))
    bench.good('train', 'sides.ini', '--quiet', '--out', 'sides-out', '--set', 'data.flip=no')
    losses = set()
    for change in ('flip=no', 'flip=yes', 'degrees=180', 'random_resized_crop=yes', 'brightness=1', 'contrast=1',
                   'saturation=1', 'hue=0.5', 'random_crop=yes'):
        told = json.loads(bench.good('eval', 'sides-out', '--json', '--set', 'data.random_crop=no', '--set',
                                     'data.flip=no', '--set', f'data.{change}'))
        bench.expect(told['test_accuracy'] == 1 and told['test_samples'] == TRAIN and told['validation'],
                     f'{change}: {told}')
        losses.add(told['test_loss'])
    bench.expect(len(losses) == 1, f'losses differ: {losses}')


def check_wrong_recipes(bench):
    wrong = [
        ('data.kind=image', 2, r"data\.kind: 'image' is not one of them: idx, images"),
        ('data.kind=idx', 2, r'data\.\w+: goes with data\.kind = images'),
        ('data.name=fashion-mnist', 2, r'data\.name: goes with data\.kind = idx'),
        ('data.channels=2', 2, r"data\.channels: '2' is not one of them: 3, 1"),
        ('data.size=0', 2, r"data\.size: '0' has a number"),
        ('data.size=4,5,6', 2, r"data\.size: '4,5,6' is neither height,width nor one number"),
        ('data.crop=1.5', 2, r"data\.crop: '1\.5' has a number that is not whole"),
        ('data.crop=15', 1, r'/0\.png: is 14 high and \d+ wide, less than the crop of 15,15'),
        ('data.scale=0.5,1', 2, r'data\.scale, data\.ratio: go with data\.random_resized_crop = yes'),
        ('data.scale=0.5', 2, r"data\.scale: '0\.5' is not a least and a most"),
        ('data.ratio=2,1', 2, r"data\.ratio: '2,1' is not a least and a most"),
        ('data.degrees=-1', 2, r"data\.degrees: '-1' is too small; from 0 to 360"),
        ('data.mixup=-1', 2, r"data\.mixup: '-1' is too small; from 0 to 1000"),
        ('data.hue=0.6', 2, r"data\.hue: '0\.6' is too large; from 0 to 0\.5"),
        ('data.mask=_m', 2, r'data\.mask: needs data\.classes'),
        ('data.mean=1,2', 2, r'data\.mean: 2 values, but the images have 3 channels'),
        ('data.classes=1', 2, r'data\.classes: 1 classes, but the labels reach 1'),
        ('data.path=nowhere', 1, r'nowhere: cannot list: No such file'),
        ('data.test_path=pictures', 1, r'pictures/test/across: a folder among images'),
    ]
    for change, code, pattern in wrong:
        check(bench, f'train i.ini --set {change}', code, pattern)
    bench.recipe('both.ini', RECIPE.replace('random_crop = yes', 'random_crop = yes\nrandom_resized_crop = yes'))
    check(bench, 'train both.ini', 2, r'data\.random_resized_crop: and data\.random_crop exclude each other')
    bench.recipe('nocrop.ini', RECIPE.replace('crop = 12\n', '', 1))
    check(bench, 'train nocrop.ini', 2, r'data\.random_crop: needs data\.crop')
    bench.recipe('notest.ini', RECIPE.replace('test_path', ';test_path'))
    check(bench, 'eval notest.ini --weights whole/last', 2, r'data\.test_path: missing')


def check_wrong_folders(bench):
    train, test = bench.folder / 'pictures/train', bench.folder / 'pictures/test'
    text = train / 'along/text.png'
    text.write_text('a text')
    check(bench, 'train i.ini', 1, r'along/text\.png: neither a PNG nor a JPEG file')
    text.unlink()
    whole = (train / 'along/7.png').read_bytes()
    (train / 'along/7.png').write_bytes(whole[:-80])
    check(bench, 'train i.ini --quiet', 1, r'along/7\.png: the file ends early')
    (train / 'along/7.png').write_bytes(whole[:-14] + b'xx' + whole[-12:])
    check(bench, 'train i.ini --quiet', 1, r'along/7\.png: IDAT: CRC error')
    (train / 'along/7.png').write_bytes(whole)
    (test / 'along/3.png').rename(bench.folder / 'kept')
    (test / 'along/3.png').write_bytes(whole[:-80])
    check(bench, 'train i.ini --quiet', 1, r'test/along/3\.png: the file ends early')
    (bench.folder / 'kept').rename(test / 'along/3.png')
    (test / 'along').rename(test / 'zigzag')
    check(bench, 'train i.ini', 1, r'class 1 is zigzag in test_path, along in path')
    (test / 'zigzag').rename(test / 'along')
    (train / 'along/7.png').rename(train / 'along/07.png')
    check(bench, 'resume whole --epochs 9', 1, r'not the samples this training began with')
    (bench.folder / 'empty').mkdir()
    check(bench, 'train i.ini --set data.path=empty', 1, r'empty: holds no folder of a class')
    shutil.copytree(train / 'along', bench.folder / 'empty/only')
    check(bench, 'train i.ini --set data.path=empty', 1,
          r'empty: holds the folder of one class alone: only')


def check_masks(bench):
    """Masks are read; a model that learns classes of images refuses them."""
    folder = bench.folder / 'scenes'
    write_png(folder / 'a.png', 16, 16, 3, lambda y, x: (y, x, 0))
    write_png(folder / 'a_mask.png', 16, 15, 1, lambda y, x: (x // 8,))
    bench.recipe('s.ini', RECIPE.replace('pictures/train', 'scenes').replace('test_path', ';')
                 .replace('flip = yes', 'flip = yes\nmask = _mask\nclasses = 2'))
    check(bench, 'train s.ini', 1,
          r'a_mask\.png: is 16 high and 15 wide, but its image is 16 high and 16 wide')
    write_png(folder / 'a_mask.png', 16, 16, 1, lambda y, x: (x // 8,))
    check(bench, 'train s.ini --set data.mixup=1', 2, r'data\.mixup, data\.cutmix: go without data\.mask')
    check(bench, 'train s.ini', 2, r'model cnn: learns a class for each sample, not from data\.mask')


def main():
    with Bench(sys.argv[1]) as bench:
        write_pictures(bench.folder / 'pictures')
        bench.recipe('i.ini', RECIPE)
        check_training(bench)
        check_plans(bench)
        check_mixing(bench)
        check_validation(bench)
        check_wrong_recipes(bench)
        check_masks(bench)
        check_wrong_folders(bench)
        bench.end()


if __name__ == '__main__':
    main()
