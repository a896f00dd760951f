#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares libquern's tokenizers with the tokenizers package on random strings.

Usage: tokenizers_agree.py build/src/libquern.so [--strings 50000] [--seed 1] [--text FILE]...
(needs the tokenizers package from PyPI; seen with 0.23.3)

Tokenizers of three families are trained from /usr/share/common-licenses (GPT-2, Llama 3, BERT), and
from any --text besides. Random strings mix scripts, blanks, punctuation, pieces of the text and any
code point that Unicode 14 assigned, for BERT without those that are newer than the package's tables.
Then every code point, alone and between two letters. Prints the number of strings that differ, and
the first ones; ends with status 1 if there are any.
"""
import argparse
import ctypes
import pathlib
import random
import sys
import tempfile

import tokenizers

from text import assigned, byte_level, newer, random_string, word_piece


class Params(ctypes.Structure):
    _fields_ = [("frame", ctypes.c_bool), ("fn", ctypes.c_void_p), ("user", ctypes.c_void_p)]


IDS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32), ctypes.c_int64)


class Ours:
    """A tokenizer of libquern."""

    def __init__(self, library, path):
        self.library, self.handle, self.ids = library, ctypes.c_void_p(), []
        library.qn_last_error.restype = ctypes.c_char_p
        if library.qn_tokenizer_open(ctypes.byref(self.handle), str(path).encode(), None):
            sys.exit(library.qn_last_error().decode())
        self.take = IDS(self.add)

    def add(self, _, ids, count):
        self.ids += ids[:count]
        return 0

    def encode(self, text, frame):
        self.ids = []
        params = Params(frame, ctypes.cast(self.take, ctypes.c_void_p), None)
        size = ctypes.c_size_t(len(text))
        if self.library.qn_tokenizer_encode(self.handle, text, size, ctypes.byref(params)):
            sys.exit(self.library.qn_last_error().decode())
        return self.ids

    def decode(self, ids):
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        array = (ctypes.c_int32 * len(ids))(*ids)
        if self.library.qn_tokenizer_decode(self.handle, array, ctypes.c_int64(len(ids)),
                                            ctypes.byref(text), ctypes.byref(size)):
            sys.exit(self.library.qn_last_error().decode())
        got = ctypes.string_at(text, size.value)
        self.library.qn_free(text)
        return got


def compare(name, theirs, ours, strings, frame):
    wrong = []
    for string in strings:
        expected = theirs.encode(string, add_special_tokens=frame).ids
        got = ours.encode(string.encode(), frame)
        if got != expected:
            wrong.append((string, expected, got))
    print(f"{name}: {len(wrong)} of {len(strings)} strings differ")
    for string, expected, got in wrong[:5]:
        print(f"    {string!r}\n        package {expected}\n        quern   {got}")
    return wrong


def round_trips(name, ours, strings):
    wrong = [s for s in strings if ours.decode(ours.encode(s.encode(), False)) != s.encode()]
    print(f"{name}: {len(wrong)} of {len(strings)} strings decode to others")
    return wrong


def same_decoded(name, theirs, ours, strings):
    wrong = []
    for string in strings:
        ids = theirs.encode(string, add_special_tokens=True).ids
        expected = theirs.decode(ids, skip_special_tokens=False)
        if ours.decode(ids).decode() != expected:
            wrong.append((string, expected, ours.decode(ids).decode()))
    print(f"{name}: {len(wrong)} of {len(strings)} are decoded otherwise")
    for string in wrong[:3]:
        print(f"    {string!r}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--strings", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", type=pathlib.Path, action="append", default=[])
    args = parser.parse_args()
    files = sorted(p for p in pathlib.Path("/usr/share/common-licenses").iterdir()
                   if p.is_file() and not p.is_symlink())
    text = "".join(p.read_bytes().decode("utf-8", "replace") for p in [*files, *args.text])
    library = ctypes.CDLL(args.library.resolve())
    points = assigned()
    print(f"tokenizers {tokenizers.__version__}, seed {args.seed}")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, theirs in [("gpt2", byte_level(text, 2048, False)),
                             ("llama3", byte_level(text, 2048, True)),
                             ("bert", word_piece(text, 2048)),
                             ("bert-cased", word_piece(text, 2048, False)),
                             ("bert-accents", word_piece(text, 2048, True, False))]:
            path = pathlib.Path(folder) / f"{name}.json"
            theirs.save(str(path))
            ours = Ours(library, path)
            some = sorted(set(points) - newer()) if "bert" in name else points
            draw, known = random.Random(args.seed), set(some)
            strings = [random_string(draw, text, known, some) for _ in range(args.strings)]
            single = [chr(c) for c in some] + [f"a{chr(c)}b" for c in some]
            for what, some in [("random strings", strings), ("code points", single),
                               ("the text", [text])]:
                wrong += len(compare(f"{name}, {what}", theirs, ours, some, True))
            if "bert" in name:
                wrong += len(same_decoded(name, theirs, ours, strings[:5000]))
            else:
                wrong += len(round_trips(name, ours, strings))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
