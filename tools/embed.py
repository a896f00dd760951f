#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes every DIR/*.cl as a byte array into one C file.

Files named by #include "..." (paths from DIR) are inlined where they are first included, and #line
directives keep the file names and line numbers of compiler messages right. src/cl/source.c does the
same at run time: change both together.
"""
import argparse
import pathlib
import re

INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*"([^"]*)"')


def expand(folder, name, seen):
    """The text of one file with its includes inlined; `seen` collects the names of all files read."""
    seen.append(name)
    out = [f'#line 1 "{name}"\n']
    text = (folder / name).read_bytes().decode().removesuffix('\n')
    for number, line in enumerate(text.split('\n'), 1):
        include = INCLUDE.match(line)
        if not include:
            out.append(line + '\n')
        elif include[1] in seen:
            out.append('\n')
        else:
            out.append(expand(folder, include[1], seen))
            out.append(f'#line {number + 1} "{name}"\n')
    return ''.join(out)


def array(name, data):
    rows = [', '.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f'static const unsigned char {name}[] = {{\n    ' + ',\n    '.join(rows) + ',\n};\n\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--depfile', type=pathlib.Path)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('folder', type=pathlib.Path)
    args = parser.parse_args()

    # The folders too: a new file changes their time of modification.
    inputs = {args.folder, args.folder / 'lib'}
    arrays, entries = [], []
    for path in sorted(args.folder.glob('*.cl')):
        seen = []
        data = expand(args.folder, path.name, seen).encode()
        inputs.update(args.folder / name for name in seen)
        arrays.append(array('kernel_' + path.stem, data))
        entries.append(f'    {{"{path.stem}", kernel_{path.stem}, {len(data)}}},\n')

    args.out.write_text('/* Made by tools/embed.py. */\n#include "cl/source.h"\n\n' + ''.join(arrays) +
                        'const struct qn_embedded_kernel qn_embedded_kernels[] = {\n' +
                        ''.join(entries) + '    {0, 0, 0},\n};\n')
    if args.depfile:
        names = ' '.join(str(path).replace(' ', '\\ ') for path in sorted(inputs))
        args.depfile.write_text(f'{args.out}: {names}\n')


if __name__ == '__main__':
    main()
