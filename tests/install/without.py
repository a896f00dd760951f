#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""without.py ROOT: builds the tree without what is optional (libpng, libjpeg, CLBlast, PCRE2,
utf8proc, MPI), and what the build then does: some tests of the host, training, and one line about an
image or a tokenizer that it cannot read."""
import json
import pathlib
import re
import sys

from support import Place

MISSING = ['png', 'jpeg', 'clblast', 'pcre2', 'utf8proc', 'mpi']
TESTS = ['plan/hash', 'io/folder', 'data/dataset', 'graph/graph']
COMMAND = 'build/tools/quern/quern'
# What an image begins with, and what is said of it.
IMAGES = {'a.png': (b'\x89PNG\r\n\x1a\n', 'this libquern has no libpng'),
          'a.jpg': (b'\xff\xd8\xff\xe0', 'this libquern has no libjpeg')}
TOKENIZERS = {'gpt2.json': 'this libquern has no PCRE2', 'gpt2': 'this libquern has no PCRE2',
              'bert.json': 'this libquern has no utf8proc'}
RECIPE = """[model]
name = mlp
[data]
kind = images
path = {}
[train]
epochs = 1
"""


def build(place, root):
    programs = [f'tests/test_{name.replace("/", "_")}' for name in TESTS]
    place.good('meson', 'setup', 'build', root, '-Dbuildtype=plain', '-Dtests=enabled',
               *[f'-D{name}=disabled' for name in MISSING])
    place.good('ninja', '-C', 'build', 'tools/quern/quern', 'examples/embed', *programs)
    needed = place.good('ldd', 'build/src/libquern.so')
    place.expect(not any(name in needed for name in MISSING), f'libquern needs {needed}')


def check_images(place):
    for name, (mark, words) in IMAGES.items():
        folder = place.folder / pathlib.Path(name).suffix[1:]
        for label in 'xy':
            (folder / label).mkdir(parents=True)
            (folder / label / name).write_bytes(mark)
        (place.folder / 'r.ini').write_text(RECIPE.format(folder))
        done = place.run(COMMAND, 'train', 'r.ini')
        place.expect(done.returncode == 1 and done.stderr.count('\n') == 1 and
                     words in done.stderr and f'x/{name}: ' in done.stderr,
                     f'{name}: {done.returncode}: {done.stderr}')


def check_tokenizers(place, root):
    for name, words in TOKENIZERS.items():
        done = place.run(COMMAND, 'tokenize', 'r.ini', '--tokenizer',
                         f'{root}/tests/golden/text/{name}')
        place.expect(done.returncode == 1 and done.stderr.count('\n') == 1 and
                     words in done.stderr, f'{name}: {done.returncode}: {done.stderr}')


def check_products(place):
    device, *_ = json.loads(place.good(COMMAND, 'devices', '--json'))['devices']
    place.expect(device['facts']['blas'] is False, f'{device}')
    plan = json.loads(place.good(COMMAND, 'plan', 'fashion-mlp', '--plan-effort', 'instant', '--json',
                                 '--set', 'memory.variants=linear=clblast'))
    place.expect(plan['clblast_bytes'] == 0, f'{plan}')
    said = place.good('build/examples/embed')
    place.expect(re.search(r'51\d of 512 points right', said), f'the example says {said}')


def main():
    place = Place(QN_CACHE_DIR='')
    build(place, sys.argv[1])
    for name in TESTS:
        place.good(f'build/tests/test_{name.replace("/", "_")}')
    check_images(place)
    check_tokenizers(place, sys.argv[1])
    check_products(place)
    return place.end()


if __name__ == '__main__':
    sys.exit(main())
