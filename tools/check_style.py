#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the form of the text files of the tree: check_style.py [ROOT]

Blanks, line ends, invisible characters, the licence line, the length of lines and of functions,
names of scripts, links from Markdown to files of the tree, the work-group that each kernel requires.
What clang-format would do is not checked: its answer changes from version to version.
"""
import argparse
import re
import sys
import unicodedata
from pathlib import Path

FOLDERS = ["src", "include", "cl_kernels", "tools", "examples", "tests", "recipes", "docs", ".ci",
           ".github"]
TOP = ["meson.build", "meson_options.txt", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE",
       ".clang-format", ".gitignore"]
CODE = {".c", ".h", ".cl", ".clh"}
SCRIPT = {".py", ".sh", ".yml"}
TEXT = CODE | SCRIPT | {".md", ".build", ".map", ".list", ".ini", ".txt", ".json"}
SPDX = "SPDX-License-Identifier: MIT"
WIDTH = 100
LONGEST_FUNCTION = 80
# Files whose bytes are data: seeds of the fuzz tests, expected texts.
DATA = ("tests/fuzz/seeds/", "tests/golden/")
INVISIBLE = {"Cf", "Co", "Cn", "Cs"}


def files(root):
    for name in TOP:
        if (root / name).is_file():
            yield root / name
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            place = path.relative_to(root).as_posix()
            if "__pycache__" in place or place.startswith(DATA) or not path.is_file():
                continue
            if path.suffix in TEXT or (not path.suffix and folder in ("tools", ".ci")):
                yield path


def invisible(character):
    if character in "\n\t":
        return False
    return unicodedata.category(character) in INVISIBLE | {"Cc", "Zl", "Zp"} \
        or (unicodedata.category(character) == "Zs" and character != " ")


def check_lines(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end"
        if any(map(invisible, line)):
            yield number, "an invisible character"
        if path.suffix in CODE and len(line) > WIDTH:
            yield number, f"{len(line)} columns, at most {WIDTH}"


def check_whole(path, text):
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield text.count("\n"), "must end with one newline"
    head = text[:300]
    if path.suffix in CODE and not head.startswith("/* " + SPDX):
        yield 1, f'must begin with "/* {SPDX}"'
    if path.suffix in SCRIPT and SPDX not in head:
        yield 1, f'"{SPDX}" is missing'
    if path.suffix == ".py" and path.stem in sys.stdlib_module_names:
        yield 1, "a script beside it that imports Python's module of this name runs this one"


def check_functions(path, text):
    """Functions start at a brace alone in column 0 and end at the next."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > LONGEST_FUNCTION:
                yield start, f"a function of {number - start - 1} lines"
            start = None


def check_kernels(text):
    """A compiler spreads registers by the work-group that a kernel requires; of one that requires
    none, drivers have refused the size it is launched with."""
    size = r"__attribute__\(\(reqd_work_group_size\([^;{}#]*?\)\)\)"
    code = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.S)
    for kernel in re.finditer(r"__kernel\b", code):
        before, after = code[:kernel.start()], code[kernel.end():]
        if not re.match(rf"\s*{size}", after) and not re.search(rf"{size}\s*$", before):
            yield before.count("\n") + 1, "a kernel without reqd_work_group_size"


def check_links(path, text):
    """[text](place), relative to the file; nothing is looked up outside the tree."""
    for number, line in enumerate(text.split("\n"), 1):
        for place in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
            if "://" not in place and not (path.parent / place).exists():
                yield number, f"a link to {place}, which is not there"


def check(path):
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return [(1, f"not UTF-8: {error}")]
    wrong = [*check_lines(path, text), *check_whole(path, text)]
    if path.suffix in CODE:
        wrong += check_functions(path, text)
    if path.suffix in (".cl", ".clh"):
        wrong += check_kernels(text)
    if path.suffix == ".md":
        wrong += check_links(path, text)
    return wrong


def check_guards(root):
    """Every header outside include/ has the guard that its path gives."""
    for path in sorted((root / "src").rglob("*.h")):
        if path.name == "list.h":
            continue
        folder = path.parent.name.upper()
        guard = f"QN_{folder}_{re.sub(r'[^A-Z0-9]', '_', path.name.upper())}"
        if f"#ifndef {guard}\n#define {guard}\n" not in path.read_text():
            yield f"{path.relative_to(root)}: include guard {guard} is missing"


def check_version(root):
    meson = re.search(r"version: '([^']+)'", (root / "meson.build").read_text())[1]
    header = (root / "include/quern/abi.h").read_text()
    text = re.search(r'QN_VERSION "([^"]+)"', header)[1]
    numbers = ".".join(re.findall(r"QN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    if not meson == text == numbers:
        yield f"meson.build has version {meson}, include/quern/abi.h {text} and {numbers}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path("."))
    root = parser.parse_args().root
    wrong = [f"{path.relative_to(root)}:{number}: {what}"
             for path in files(root) for number, what in check(path)]
    wrong += [*check_guards(root), *check_version(root)]
    print("\n".join(wrong) if wrong else "style: nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
