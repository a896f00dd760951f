#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exchanges safetensors files between the library and Python, both ways.

Usage: tensors_python.py TENSORS_SAMPLE

Reads with a few lines of plain Python; where the safetensors package is installed, with it too.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I32": 4, "I64": 8}
ITEMS = [("images", "U8", [2, 1, 3, 5]), ("layer.weight", "F32", [300, 1000]),
         ("layer.bias", "F32", [300]), ('half "quoted" é', "F16", [7]),
         ("brain", "BF16", [2, 2, 2]), ("ids", "I32", [5]), ("scalar", "F32", []),
         ("empty", "F32", [0, 3])]
METADATA = {"format": "pt", "note": "two\nlines"}


def size_of(dtype, shape):
    size = SIZES[dtype]
    for dim in shape:
        size *= dim
    return size


def expected_bytes(index, size):
    period = bytes((index * 50 + at * 7) % 256 // 4 for at in range(256))
    return (period * (size // 256 + 1))[:size]


def read_plain(data):
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    start = 8 + length
    assert start % 8 == 0, "the data is not aligned"
    metadata = header.pop("__metadata__")
    end, tensors = 0, {}
    for name, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = info["data_offsets"]
        assert begin == end, name
        assert begin % SIZES[info["dtype"]] == 0, name
        end = stop
        tensors[name] = (info["dtype"], info["shape"], data[start + begin:start + stop])
    assert start + end == len(data)
    return metadata, tensors


def check_written(program, path):
    said = subprocess.run([program, "write", path], check=True, stdout=subprocess.PIPE, text=True)
    with open(path, "rb") as file:
        data = file.read()
    assert said.stdout == "%d %08x\n" % (len(data), zlib.crc32(data)), said.stdout
    metadata, tensors = read_plain(data)
    assert metadata == METADATA, metadata
    assert len(tensors) == len(ITEMS)
    for index, (name, dtype, shape) in enumerate(ITEMS):
        assert tensors[name] == (dtype, shape, expected_bytes(index, size_of(dtype, shape))), name


def check_package(path):
    """Reads with the package; with NumPy, which has no bf16, or with PyTorch."""
    try:
        import safetensors
    except ImportError:
        return "package safetensors: not installed, not asked"
    with safetensors.safe_open(path, framework="np") as file:
        assert file.metadata() == METADATA
        for index, (name, dtype, shape) in enumerate(ITEMS):
            if dtype == "BF16":
                continue
            tensor = file.get_tensor(name)
            assert list(tensor.shape) == shape, name
            assert tensor.tobytes() == expected_bytes(index, size_of(dtype, shape)), name
    return "package safetensors %s: reads the file" % safetensors.__version__


def check_read(program, path):
    """A file as another writer lays it out: any order in the header, a type that we do not use."""
    tensors = [("b", "F32", [2, 3]), ("a", "U8", [5]), ("c", "I64", [2]), ("é", "F16", [])]
    header, data, lines = {}, b"", []
    for index, (name, dtype, shape) in enumerate(tensors):
        part = expected_bytes(index, size_of(dtype, shape))
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
        lines.append(" ".join([name, dtype, *map(str, shape), "%08x" % zlib.crc32(part)]))
    text = json.dumps(dict(sorted(header.items()))).encode() + b"  "
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    said = subprocess.run([program, "print", path], check=True, stdout=subprocess.PIPE)
    assert said.stdout.decode() == "\n".join(lines) + "\n", said.stdout


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample.safetensors")
        check_written(sys.argv[1], path)
        print(check_package(path))
        check_read(sys.argv[1], path)
    print("files are exchanged both ways")


main()
