#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizers trained from tests/golden/text/text.txt, and what they make of some strings.

Usage: text.py                (needs the tokenizers package from PyPI; seen with 0.23.3)

Makes in tests/golden/text: gpt2.json, llama3.json (merges as texts, as before version 0.20),
bert.json, cased.json, accents.json (lower case, accents kept), gpt2/vocab.json and gpt2/merges.txt,
and cases.txt with a line for each string: its UTF-8 in hexadecimal, then for each of the five the ids,
separated by blanks, behind a "|". Training WordPiece is not the same every time: the files of BERT and
the cases change together.
"""
import json
import pathlib
import random
import unicodedata

from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/text"
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SCRIPTS = [(0x20, 0x7e), (0x09, 0x0d), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x3ff),
           (0x400, 0x4ff), (0x590, 0x5ff), (0x600, 0x6ff), (0x900, 0x97f), (0xe00, 0xe7f),
           (0x1100, 0x11ff), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x209f), (0x2100, 0x218f),
           (0x3000, 0x30ff), (0x4e00, 0x4fff), (0xac00, 0xacff), (0xfb00, 0xfb4f), (0xfe00, 0xfeff),
           (0xff00, 0xffef), (0x1f300, 0x1f64f), (0x1d400, 0x1d4ff), (0x20000, 0x200ff),
           (0x2b740, 0x2b91f), (0x2b920, 0x2b9ff)]
HARD = ["'s", "'LL", "'\u017f", "don't", "\u180e", "\u0085", "\u00a0", "\r\n", "\n\n", "   ", "\t",
        "\u0130", "\u1e9e", "\u03a3", "\ufffd", "\u200b", "\u200d", "123456", "<|endoftext|>", "[MASK]",
        "[CLS]", "\u2028", "\u3000", "\ufeff", "\u0345", "\u1fb3", "\uac00\u0301", ".", "\x00", "\x7f"]
# The package's tables for BERT are those of Unicode 8: code points that were assigned since, or
# that have another category now, as far as it changes what BERT does with them.
NEWER = """61d 7fd 890-891 898-89f 8ca-8e2 9fd-9fe a76 afa-aff b55 c04 c3c c77 c84 d00 d3b-d3c d81 eba 166d
1734 180f 1885-1886 1abf-1ace 1b7d-1b7e 1df6-1dfb 2e43-2e4f 2e52-2e5d a82c a8c5 a8ff a9bd 10d24-10d27
10eab-10ead 10f46-10f50 10f55-10f59 10f82-10f89 11070 11073-11074 110c2 110cd 111c9 111cf 1123e 1133b
11438-1143f 11442-11444 11446 1144b-1144f 1145a-1145b 1145d-1145e 11660-1166c 116b9 1182f-11837
11839-1183b 1193b-1193c 1193e 11943-11946 119d4-119d7 119da-119db 119e0 119e2 11a01-11a0a 11a33-11a38
11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c 11a9e-11aa2 11c30-11c36 11c38-11c3d
11c3f 11c41-11c45 11c70-11c71 11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a
11d3c-11d3d 11d3f-11d45 11d47 11d90-11d91 11d95 11d97 11ef3-11ef4 11ef7-11ef8 11fff 12ff1-12ff2
13430-13438 16e97-16e9a 16f4f 16fe2 16fe4 1cf00-1cf2d 1cf30-1cf46 1e000-1e006 1e008-1e018 1e01b-1e021
1e023-1e024 1e026-1e02a 1e130-1e136 1e2ae 1e2ec-1e2ef 1e944-1e94a 1e95e-1e95f"""


def newer():
    """The code points of NEWER."""
    points = set()
    for part in NEWER.split():
        first, _, last = part.partition("-")
        points |= set(range(int(first, 16), int(last or first, 16) + 1))
    return points


def assigned():
    """Code points of Unicode 14, which Python 3.11 has, and PCRE2 10.42."""
    if unicodedata.unidata_version != "14.0.0":
        raise SystemExit(f"Python has Unicode {unicodedata.unidata_version}, needed is 14.0.0")
    return [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def byte_level(text, size, llama):
    tokenizer = Tokenizer(models.BPE(ignore_merges=llama))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if llama:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|endoftext|> $A",
                                          special_tokens=[("<|endoftext|>", 0)])])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def word_piece(text, size, lower=True, strip=None):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator([text], trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def random_string(draw, text, known, points):
    parts = []
    for _ in range(draw.randint(1, 12)):
        kind = draw.randint(0, 5)
        if kind == 0:
            parts.append(draw.choice(HARD))
        elif kind == 1:
            begin = draw.randrange(len(text))
            parts.append(text[begin:begin + draw.randint(1, 30)])
        elif kind == 2:
            parts.append(chr(draw.choice(points)))
        else:
            low, high = draw.choice(SCRIPTS)
            parts += [chr(draw.randint(low, high)) for _ in range(draw.randint(1, 6))]
    return "".join(c for c in "".join(parts) if ord(c) in known)


def save(name, tokenizer):
    tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
    if name == "llama3":
        path = FOLDER / "llama3.json"
        root = json.loads(path.read_text())
        root["model"]["merges"] = [" ".join(pair) for pair in root["model"]["merges"]]
        path.write_text(json.dumps(root, ensure_ascii=True))
    if name == "gpt2":
        (FOLDER / "gpt2").mkdir(exist_ok=True)
        tokenizer.model.save(str(FOLDER / "gpt2"))


def main():
    text = (FOLDER / "text.txt").read_text()
    made = {"gpt2": byte_level(text, 600, False), "llama3": byte_level(text, 600, True),
            "bert": word_piece(text, 700), "cased": word_piece(text, 700, False),
            "accents": word_piece(text, 700, True, False)}
    for name, tokenizer in made.items():
        save(name, tokenizer)
    points = sorted(set(assigned()) - newer())
    draw = random.Random(1)
    strings = ["", " ", "a", *HARD, *text.split("\n\n"), "x" * 100, "x" * 101, "é" * 100, "e\u0301" * 60]
    strings += [f"a{chr(c)}b" for c in [0x2b820, 0x2b91f, 0x2b920, 0x2ceaf, 0x2ceb0, 0x3400, 0x4dbf,
                                        0x4dc0, 0xf900, 0xfb00, 0x2fa1f, 0x180e, 0x2b73f, 0x2b740]]
    strings += [random_string(draw, text, set(points), points) for _ in range(100)]
    with (FOLDER / "cases.txt").open("w") as out:
        for string in strings:
            ids = ["|" + " ".join(map(str, t.encode(string).ids)) for t in made.values()]
            out.write(string.encode().hex() + "".join(ids) + "\n")


if __name__ == "__main__":
    main()
