#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes passages of the Bible, each with the kind of its book, as JSON lines for classification.

Usage: kjv_lines.py [TEXT] [--words N] [--seed N]

Reads the verses that `bible -f gen1:1-rev22:21` of Debian's package bible-kjv prints (TEXT, or
standard input) and writes lines of {"book": "Ge", "kind": "law", "text": "In the beginning ..."}.
A passage is made of neighbouring verses of one book, without their numbers, of at least N words
(default 400); what is left at the end of a book is a passage if it has half as many. The lines are
shuffled, so that the last of them may be held out. The same arguments give the same lines. Needs
nothing but Python.
"""
import argparse
import json
import random
import re
import sys

KINDS = {
    'law': 'Ge Exo Lev Num Deu',
    'history': 'Josh Jdgs Ruth 1Sm 2Sm 1Ki 2Ki 1Chr 2Chr Ezra Neh Est Acts',
    'poetry': 'Job Psa Prv Eccl SSol',
    'prophets': 'Isa Jer Lam Eze Dan Hos Joel Amos Obad Jonah Mic Nahum Hab Zep Hag Zec Mal Rev',
    'gospels': 'Mat Mark Luke John',
    'letters': 'Rom 1Cor 2Cor Gal Eph Phi Col 1Th 2Th 1Tim 2Tim Titus Phmn Heb Jas 1Pet 2Pet 1Jn 2Jn '
               '3Jn Jude',
}
KIND_OF = {book: kind for kind, books in KINDS.items() for book in books.split()}
VERSE = re.compile(r'(\d?[A-Za-z]+)\d+:\d+ (.*)')


def passages(verses, words):
    """(book, text) of each."""
    book, taken = None, []
    for name, text in verses:
        if name != book:
            if len(taken) >= words / 2:
                yield book, ' '.join(taken)
            book, taken = name, []
        taken += text.split()
        if len(taken) >= words:
            yield book, ' '.join(taken)
            taken = []
    if len(taken) >= words / 2:
        yield book, ' '.join(taken)


def read_verses(file):
    for number, line in enumerate(file, 1):
        verse = VERSE.match(line)
        if not verse or verse[1] not in KIND_OF:
            sys.exit(f'kjv_lines.py: line {number} is no verse of a known book: {line[:40]!r}')
        yield verse.groups()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('text', nargs='?', type=argparse.FileType('r', encoding='utf-8'), default=sys.stdin)
    parser.add_argument('--words', type=int, default=400)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    lines = [{'book': book, 'kind': KIND_OF[book], 'text': text}
             for book, text in passages(read_verses(options.text), options.words)]
    random.Random(options.seed).shuffle(lines)
    for line in lines:
        print(json.dumps(line))


if __name__ == '__main__':
    main()
