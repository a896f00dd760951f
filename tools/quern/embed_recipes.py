#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes recipes as C strings: embed_recipes.py OUT RECIPE..."""
import pathlib
import sys


def literal(text):
    lines = text.replace('\\', '\\\\').replace('"', '\\"').split('\n')
    return '\n'.join(f'        "{line}\\n"' for line in lines[:-1])


def entry(name, text):
    summary = text.split('\n')[0].removeprefix('; ')
    return f'    {{"{name}", "{summary}",\n{literal(text)}}},\n'


def main():
    out, recipes = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
    entries = [entry(path.stem, path.read_text()) for path in recipes]
    out.write_text('/* Made by embed_recipes.py. */\n#include "shipped.h"\n\n'
                   'const struct shipped_recipe shipped_recipes[] = {\n' + ''.join(entries) +
                   '    {0},\n};\n')


if __name__ == '__main__':
    main()
