# SPDX-License-Identifier: MIT
"""What members.py and gpu.py train: recipes on random data, and how much of it an update has."""
import array
import collections
import random
import struct

TRAIN = """[train]
optimizer = adamw
lr = 0.0001
steps = 1
eval_every = 0
"""

DEMONSTRATION = """[model]
name = cnn
width = 32
group = 16
[data]
images = {folder}/images
labels = {folder}/labels
mean = 0.2860
deviation = 0.3530
[train]
optimizer = adamw
lr = 0.001
steps = 1
eval_every = 0
[memory]
budget = 64MiB
tune = stored
"""

GPT = """[model]
name = gpt
layers = {layers}
heads = {heads}
width = {width}
logits = 0
[data]
kind = text
path = {folder}/text
length = {length}
held_out = 0
""" + TRAIN + """[memory]
budget = 2GiB
tune = stored
"""

# Of halves of the demonstration's images, and a loss of the whole batch.
PAIRS = """[contrastive]
mode = gradcache
dim = 256
[model]
name = mlp
hidden1 = {hidden}
hidden2 = {hidden}
[data]
images = {folder}/images
labels = {folder}/labels
pairs = halves
mean = 0.2860
deviation = 0.3530
""" + TRAIN + """[memory]
budget = 256MiB
tune = stored
"""

# Of three channels. `classes` as ImageNet's: the labels of write_data reach so far.
RESNET = """[model]
name = resnet
depth = {depth}
stem = {stem}
[data]
kind = npy
features = {folder}/pictures-{side}.npy
labels = {folder}/kinds-{side}.npy
held_out = 0
""" + TRAIN

TOKENS = """[model]
name = gpt
layers = {layers}
heads = {heads}
width = {width}
logits = 0
[data]
kind = tokens
type = u16
path = {folder}/tokens
tokens = {tokens}
length = {length}
held_out = 0
""" + TRAIN

# Samples of a member in an update, and at a time; for links, 16 times at a time. `size`: of the GPTs,
# whose tokens are bytes.
Work = collections.namedtuple('Work', 'name recipe samples micro size')

WORKS = {work.name: work for work in (
    Work('demonstration', DEMONSTRATION, 128, 64, {}),
    Work('gpt 6x384', GPT, 8, 2, {'layers': 6, 'heads': 6, 'width': 384, 'length': 256}))}
LINKED = {work.name: work for work in (
    Work('demonstration', DEMONSTRATION, 256, 16, {}),
    Work('gpt 4x128', GPT, 16, 1, {'layers': 4, 'heads': 4, 'width': 128, 'length': 128}))}

PAIRED = {work.name: work for work in (Work('pairs', PAIRS, 256, 32, {'hidden': 512}),)}

# Of gpu.py: without a budget, so that all of a GPU is used. `peer`: the case of peers.py, if it has it.
OnGpu = collections.namedtuple('OnGpu', 'name recipe samples size peer')


def on_gpu(name, recipe, samples, peer=None, **size):
    return OnGpu(name, recipe, samples, size, peer)


def resnet(depth, stem, side, samples):
    return on_gpu(f'ResNet-{depth}, {side} x {side}', RESNET, samples, depth=depth, stem=stem, side=side,
                  peer={'op': 'resnet', 'group': str(depth), 'size': [samples, side, stem]})


def of_demonstration(samples):
    return on_gpu('demonstration', DEMONSTRATION, samples,
                  {'op': 'update', 'group': 'demonstration', 'size': [samples]})


GPU = (of_demonstration(256), resnet(18, 7, 224, 64), resnet(50, 7, 224, 64),
       on_gpu('GPT-2 124M, 1024 tokens', TOKENS, 8, {'op': 'gpt2', 'size': [8, 1024]},
              layers=12, heads=12, width=768, tokens=50257, length=1024))
GPU_SMALL = (of_demonstration(16), resnet(18, 3, 32, 2),
             on_gpu('GPT, 32 tokens', TOKENS, 2, layers=1, heads=2, width=32, tokens=256, length=32))


def npy(kind, shape, data):
    """The bytes of a file as NumPy writes it."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += ' ' * (-(11 + len(head)) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data


def write_pictures(folder, side, samples):
    draw = random.Random(2)
    pixels = draw.randbytes(samples * 3 * side * side)
    labels = array.array('i', [*(draw.randrange(1000) for _ in range(samples - 1)), 999])
    (folder / f'pictures-{side}.npy').write_bytes(npy('|u1', (samples, 3, side, side), pixels))
    (folder / f'kinds-{side}.npy').write_bytes(npy('<i4', (samples,), labels.tobytes()))


def write_tokens(folder, tokens):
    draw = random.Random(3)
    numbers = array.array('H', (draw.randrange(tokens) for _ in range(1 << 16)))
    (folder / 'tokens').write_bytes(numbers.tobytes())


def write_data(folder):
    draw = random.Random(1)
    images = bytes(draw.getrandbits(8) for _ in range(2048 * 784))
    labels = bytes(draw.randrange(10) for _ in range(2048))
    (folder / 'images').write_bytes(struct.pack('>IIII', 0x803, 2048, 28, 28) + images)
    (folder / 'labels').write_bytes(struct.pack('>II', 0x801, 2048) + labels)
    (folder / 'text').write_bytes(array.array('B', (draw.randrange(256) for _ in range(1 << 18))).tobytes())


def write_recipe(folder, work):
    path = folder / f'{work.name.replace(" ", "-")}.ini'
    if not path.exists():  # a training that has begun may be reading it
        path.write_text(work.recipe.format(folder=folder, **work.size))
    return path
