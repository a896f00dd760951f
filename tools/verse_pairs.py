#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes pairs of verses, King James and World English Bible, for retrieval: two files, a verse a line.

Usage: verse_pairs.py FOLDER [--modules FIRST SECOND | --dumps FIRST SECOND]

Writes FOLDER/kjv.txt and FOLDER/web.txt: line i of both is the same verse. Verses that are missing
or empty in one of them are left out of both; the order is that of the first. The texts are what
`diatheke -b MODULE -f plain -k Gen-Rev` prints of the modules of Debian's packages sword-text-kjv
and sword-text-web, or two files with that (--dumps). There a verse begins with its place,
"I Samuel 1:2: ", and may go on in further lines. A title stands in a line before the place, and
from then on before every verse: such verses are indented. Other lines that begin with three blanks,
and the last one, which names the module, belong to no verse. Pilcrows are left out, too. Needs nothing but Python,
and diatheke unless there are dumps.
"""
import argparse
import pathlib
import re
import subprocess
import sys

MODULES = ('engKJV2006eb', 'engWEB2015eb')
FILES = ('kjv.txt', 'web.txt')
PLACE = re.compile(r'(\s*(?:<.*>)?)((?:[IV]+ )?[A-Z][A-Za-z]*(?: [A-Za-z]+)*(?: \(Greek\))? \d+:\d+): ?(.*)')
MODULE_NAME = re.compile(r'\(\w+\)')


def drop_title(lines):
    """Takes the last line with anything in it out of those of the verse before."""
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) > 1:
        lines.pop()


def read_verses(lines):
    """The text of each verse by its place, in the order of `lines`."""
    verses, verse = {}, []
    for line in lines:
        place = PLACE.match(line)
        if place:
            if place[1]:
                drop_title(verse)
            verse = verses[place[2]] = [place[3]]
        elif line.startswith('   ') and line.strip():
            verse = []
        elif not MODULE_NAME.fullmatch(line.strip()):
            verse.append(line)
    return {place: ' '.join(' '.join(verse).replace('¶', ' ').split()) for place, verse in verses.items()}


def dump(module):
    try:
        printed = subprocess.run(['diatheke', '-b', module, '-f', 'plain', '-k', 'Gen-Rev'], check=True,
                                 stdout=subprocess.PIPE)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f'verse_pairs.py: {error}; install the packages sword-text-kjv, sword-text-web and diatheke')
    return printed.stdout.decode()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('folder', type=pathlib.Path)
    both = parser.add_mutually_exclusive_group()
    both.add_argument('--modules', nargs=2, default=MODULES, metavar=('FIRST', 'SECOND'),
                      help=f'of diatheke ({" ".join(MODULES)})')
    both.add_argument('--dumps', nargs=2, type=pathlib.Path, metavar=('FIRST', 'SECOND'),
                      help='files with what diatheke printed')
    return parser.parse_args()


def main():
    options = read_options()
    try:
        texts = [path.read_text('utf-8') for path in options.dumps] if options.dumps else \
            [dump(module) for module in options.modules]
    except (OSError, UnicodeError) as error:
        sys.exit(f'verse_pairs.py: {error}')
    first, second = (read_verses(text.split('\n')) for text in texts)
    places = [place for place in first if first[place] and second.get(place)]
    if not places:
        sys.exit('verse_pairs.py: the two texts have no verse in common')
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, verses in zip(FILES, (first, second)):
        (options.folder / name).write_text(''.join(verses[place] + '\n' for place in places), 'utf-8')
    print(f'{len(places)} verses: {", ".join(str(options.folder / name) for name in FILES)}')


if __name__ == '__main__':
    main()
