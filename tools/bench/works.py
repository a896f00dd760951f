# SPDX-License-Identifier: MIT
"""What members.py trains: recipes on random data, and how much of it one member has."""
import array
import collections
import random
import struct

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
[train]
optimizer = adamw
lr = 0.0001
steps = 1
eval_every = 0
[memory]
budget = 2GiB
tune = stored
"""

# Samples of a member in an update, and at a time; for links, 16 times at a time. `size`: of the GPTs,
# whose tokens are bytes.
Work = collections.namedtuple('Work', 'name recipe samples micro size')

WORKS = {work.name: work for work in (
    Work('demonstration', DEMONSTRATION, 128, 64, {}),
    Work('gpt 6x384', GPT, 8, 2, {'layers': 6, 'heads': 6, 'width': 384, 'length': 256}))}
LINKED = {work.name: work for work in (
    Work('demonstration', DEMONSTRATION, 256, 16, {}),
    Work('gpt 4x128', GPT, 16, 1, {'layers': 4, 'heads': 4, 'width': 128, 'length': 128}))}


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
