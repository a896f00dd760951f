#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a header with one number for the contents of source files: identity.py OUT FILE...

What the library stores on disk for itself is marked with it, so that another build asks anew.
"""
import hashlib
import pathlib
import sys


def main():
    digest = hashlib.sha256()
    for name in sys.argv[2:]:
        digest.update(pathlib.Path(name).read_bytes())
    pathlib.Path(sys.argv[1]).write_text('/* Made by tools/identity.py. */\n'
                                         f'#define QN_IDENTITY 0x{digest.hexdigest()[:16]}\n')


if __name__ == '__main__':
    main()
