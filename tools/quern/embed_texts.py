#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files as C arrays with a NUL behind them, page.css as page_css: embed_texts.py OUT FILE..."""
import pathlib
import sys


def array(path):
    data = path.read_text().encode('ascii') + b'\0'
    rows = [', '.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f'const char {path.name.replace(".", "_")}[] = {{\n    ' + ',\n    '.join(rows) + ',\n};\n'


def main():
    out, paths = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
    out.write_text('/* Made by embed_texts.py. */\n#include "embedded.h"\n\n' +
                   '\n'.join(map(array, paths)))


if __name__ == '__main__':
    main()
