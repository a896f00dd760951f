#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sizes and layouts of the public structs, and the values of the enumerators, as the compiler
sees them, are those of abi.txt, so that nobody changes the ABI unawares; and QN_STRUCT_LIST in
include/quern/abi.h has every struct with a checksum of its layout: abi.py ROOT; abi.py ROOT --write
remakes both after a change.
"""
import difflib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

TEXT = Path(__file__).with_name("abi.txt")
HEADER = "include/quern/abi.h"
STRUCT = re.compile(r"typedef struct (qn_\w+) \{([^}]*)\} \1;")
ENUM = re.compile(r"enum(?: qn_\w+)? \{([^}]*)\}")
LIST = re.compile(r"(?<=#define QN_STRUCT_LIST\(X\))(?:.*\\\n)+.*")
PROGRAM = """#include <quern/quern.h>
#include <stddef.h>
#include <stdio.h>
#define STRUCT(name) printf("%s %zu\\n", #name, sizeof(name));
#define FIELD(name, field, text) \\
    printf("    %zu %zu %s\\n", offsetof(name, field), sizeof(((name *)0)->field), text);
#define ENUMERATOR(name) printf("%s %lld\\n", #name, (long long)name);
int main(void)
{
@LINES@
}
"""


def soversion(root):
    text = (root / "meson.build").read_text()
    major, minor = re.search(r"version: '(\d+)\.(\d+)", text).groups()
    return f"0.{minor}" if major == "0" else major


def preprocessed(include):
    text = subprocess.run(["cc", "-E", "-P", "-I", include, "-"], text=True, check=True,
                          input="#include <quern/quern.h>\n", stdout=subprocess.PIPE).stdout
    return re.sub(r"\b_Bool\b", "bool", text)


def fields(body):
    """(name, declaration) of each; `double a, b` declares two."""
    for declaration in body.split(";")[:-1]:
        declaration = " ".join(declaration.split())
        function = re.search(r"\(\*(\w+)\)", declaration)
        if function:
            yield function[1], declaration
            continue
        kind, rest = re.fullmatch(r"(.*?)(\**\w+(?:\[\w+\])*(?:, .*)?)", declaration).groups()
        for declarator in rest.split(", "):
            yield re.search(r"\w+", declarator)[0], kind + declarator


def enumerators(text):
    for body in ENUM.findall(text):
        for item in body.split(","):
            name = item.split("=")[0].strip()
            if name.startswith("QN_"):
                yield name


def program(text):
    lines = []
    for name, body in sorted(STRUCT.findall(text)):
        lines.append(f"STRUCT({name})")
        lines += [f'FIELD({name}, {field}, "{declaration}")' for field, declaration in fields(body)]
    lines += [f"ENUMERATOR({name})" for name in enumerators(text)]
    return PROGRAM.replace("@LINES@", "\n".join(lines))


def answers(root):
    """What the compiler makes of the headers: each struct with its fields, then enumerators. The
    list is left out, which may name a struct that is no more."""
    with tempfile.TemporaryDirectory() as folder:
        include, binary = Path(folder) / "include", Path(folder) / "abi"
        shutil.copytree(root / "include", include)
        header = Path(folder) / HEADER
        header.write_text(LIST.sub("", header.read_text()))
        subprocess.run(["cc", "-x", "c", "-std=c11", "-I", include, "-", "-o", binary],
                       input=program(preprocessed(include)), text=True, check=True)
        return subprocess.run([binary], check=True, text=True, stdout=subprocess.PIPE).stdout


def struct_list(now):
    """The body of QN_STRUCT_LIST."""
    structs = re.findall(r"^((qn_\w+) \d+\n(?:    .*\n)+)", now, re.MULTILINE)
    items = [f"    X({name}, 0x{zlib.crc32(lines.encode()):08x})" for lines, name in structs]
    head = "#define QN_STRUCT_LIST(X)"
    return " " * (99 - len(head)) + "\\\n" + "\\\n".join(f"{item:99}" for item in items).rstrip()


def differences(root, now):
    if now != TEXT.read_text():
        yield from difflib.unified_diff(TEXT.read_text().split("\n"), now.split("\n"), TEXT.name,
                                        "include/quern", n=2, lineterm="")
    if LIST.search((root / HEADER).read_text())[0] != struct_list(now):
        yield f"{HEADER}: QN_STRUCT_LIST is not that of the structs"


def write(root, now):
    header = (root / HEADER).read_text()
    (root / HEADER).write_text(LIST.sub(lambda _: struct_list(now), header))
    TEXT.write_text(now)


def main():
    root = Path(sys.argv[1])
    if struct.calcsize("P") != 8:
        print(f"{TEXT.name} is of machines with pointers of 8 bytes")
        return 77
    version = soversion(root)
    now = f"ABI {version}\n{answers(root)}"
    if "--write" in sys.argv:
        write(root, now)
        return 0
    wrong = list(differences(root, now))
    if wrong:
        wrong += [f"The ABI is no longer that of {TEXT.name}. If {version} was released, programs built",
                  f"for it do not fit any more: raise the version (meson.build, {HEADER}).",
                  "Then: tests/lint/abi.py . --write"]
    print("\n".join(wrong) if wrong else f"abi: {now.count(chr(10))} lines, nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
