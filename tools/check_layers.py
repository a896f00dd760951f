#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that each layer includes only what it may: check_layers.py [ROOT]

Prints one line for each include or name that stands in the wrong place and ends with status 1 if
there is any.
"""
import argparse
import re
import sys
from pathlib import Path

# The layers of src/ and the folders of src/ that each may include besides itself. Public headers
# are types and prototypes for everybody.
LAYERS = {
    "base": [],
    "cl": ["base"],
    "op": ["base"],
    "io": ["base"],
    "graph": ["base", "op"],
    "form": ["base", "op", "io", "graph"],
    "text": ["base", "io"],
    "data": ["base", "io"],
    "schedule": [],
    "metric": ["base"],
    "plan": ["base", "op", "graph"],
    "ops": ["base", "op"],
    "check": ["base", "op", "cl"],
    "tune": ["base", "op", "plan", "cl", "check"],
    "run": ["base", "cl", "op", "io", "plan"],
    "group": ["base", "cl", "op", "plan", "run"],
    "mpi": [],
    "models": [],
    "generate": ["base"],
}
# The rooms of src/plan and what each may include besides itself; "plan" are the headers of
# src/plan itself, whose own files include every room.
ROOMS = {
    "cost": ["plan"],
    "lowering": ["plan", "cost"],
    "program": ["plan"],
    "placement": ["program"],
    "search": ["plan", "cost", "lowering", "program", "placement"],
    "showing": ["plan", "program", "placement"],
}
# Single headers beyond the table: (folder, header) and why.
ALLOWED = {
    ("cl", "op/emit.h"): "cl/ implements the launches that it declares",
    ("cl", "op/op.h"): "the operands of a launch",
    ("cl", "op/blas.h"): "the rule that it measures the facts for",
    ("cl", "op/tile.h"): "the tiles that it tries matrix units with",
}
PUBLIC_ONLY = ["tools", "examples"]
# Who may include the headers of a library: folders of src/ or of the tree.
LIBRARIES = {
    "CL/": ["cl"],
    "clblast": ["cl"],
    "zlib.h": ["io", "data"],
    "png.h": ["io"],
    "jpeglib.h": ["io"],
    "jerror.h": ["io"],
    "pcre2.h": ["text"],
    "utf8proc.h": ["text"],
    "cjson/": ["io", "text", "plan", "run", "tools"],
    "ini.h": ["tools"],
    "mpi.h": ["mpi"],
}
OPENCL_OUTSIDE = {"examples/embed.c": "it brings its own OpenCL objects"}
VENDORS = re.compile(
    r"\b(nvidia|cuda|amd|rocm|radeon|intel|pocl|mesa|rusticl|apple|qualcomm|adreno|mali|imagination"
    r"|powervr)\b", re.IGNORECASE)
VENDOR_FILE = "src/cl/quirk.c"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == "<", match[2]


def operators(root):
    text = (root / "src/op/list.h").read_text()
    return set(re.findall(r"^\s*X\((\w+)\)", text, re.MULTILINE))


def check_library(layer, place, name):
    for prefix, allowed in LIBRARIES.items():
        if name.startswith(prefix) and layer not in allowed and place not in OPENCL_OUTSIDE:
            return f"<{name}> belongs to {', '.join(allowed)}"
    return None


def is_internal(system, name):
    """Whether an include means a file of src/, which is on the path of all includes."""
    return not system or name.split("/")[0] in {*LAYERS, ".", ".."}


def check_room(path, name):
    """An include of a file of src/plan from one of its rooms."""
    room, other = path.parent.name, name.split("/")[1:-1] or ["plan"]
    if room == "plan" or other[0] in [room, *ROOMS[room]]:
        return None
    return f'"{name}": src/plan/{room} may include {", ".join(ROOMS[room])}'


def check_internal(layer, path, name, names):
    """An include of a file of src/ from another."""
    folder, header, stem = name.split("/")[0], name.rpartition("/")[2], path.stem
    if folder == layer == "plan":
        return check_room(path, name)
    if "/" not in name or folder == layer:
        other = Path(header).stem
        if layer == "ops" and other in names and other != stem:
            return f'"{name}": an operator never includes another'
        return None
    if folder in LAYERS[layer] or (layer, name) in ALLOWED:
        return None
    return f'"{name}": {layer} may include {", ".join(LAYERS[layer]) or "public headers only"}'


def check_source(root, names):
    for path in sorted((root / "src").rglob("*.[ch]")):
        place = path.relative_to(root).as_posix()
        layer = place.split("/")[1]
        if layer not in LAYERS:
            yield f"{place}: src/{layer} is no layer"
            continue
        for number, system, name in includes(path):
            wrong = check_library(layer, place, name)
            if not wrong and is_internal(system, name):
                wrong = check_internal(layer, path, name, names)
            if wrong:
                yield f"{place}:{number}: {wrong}"


def is_neighbour(path, system, name):
    """Whether it is a file of the same folder of tools/ or examples/, or of one below."""
    return not system and ".." not in name.split("/") and (path.parent / name).is_file()


def check_users(root):
    for folder in PUBLIC_ONLY:
        for path in sorted((root / folder).rglob("*.[ch]")):
            place = path.relative_to(root).as_posix()
            for number, system, name in includes(path):
                wrong = check_library(folder, place, name)
                if is_internal(system, name) and not is_neighbour(path, system, name):
                    wrong = f'"{name}": {folder} may include public headers only'
                if wrong:
                    yield f"{place}:{number}: {wrong}"


def check_public(root):
    for path in sorted((root / "include/quern").glob("*.h")):
        for number, system, name in includes(path):
            if not system or ("/" in name and not name.startswith("quern/")):
                yield f"include/quern/{path.name}:{number}: a public header includes {name}"


def check_vendors(root):
    for folder in ["src", "include", "cl_kernels", "tools/quern"]:
        for path in sorted((root / folder).rglob("*")):
            place = path.relative_to(root).as_posix()
            if path.suffix not in (".c", ".h", ".cl", ".clh") or place == VENDOR_FILE:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = VENDORS.search(line)
                if match:
                    yield f"{place}:{number}: '{match[0]}': vendors are named in {VENDOR_FILE} only"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path("."))
    root = parser.parse_args().root
    names = operators(root)
    wrong = [*check_source(root, names), *check_users(root), *check_public(root),
             *check_vendors(root)]
    print("\n".join(wrong) if wrong else "layers: nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
