#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of the tree notice what is wrong: planted.py ROOT adds one bad line after another to a copy
of the tree; each must be reported, and the copy without them must not."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDERS = ["src", "include", "cl_kernels", "tools", "examples", "recipes", "docs",
           ".github"]
# (tool, file, line)
PLANTED = [
    ("layers", "src/cl/slab.c", '#include "plan/plan.h"'),
    ("layers", "src/cl/slab.c", "#include <plan/plan.h>"),
    ("layers", "src/cl/slab.c", "#include <../plan/plan.h>"),
    ("layers", "src/plan/plan.c", "#include <CL/cl.h>"),
    ("layers", "src/plan/cost/price.c", '#include "plan/search/cut.h"'),
    ("layers", "src/plan/plan.c", '#include "zlib.h"'),
    ("layers", "src/plan/plan.c", "/* wrong on NVIDIA */"),
    ("layers", "src/group/hub.c", "#include <mpi.h>"),
    ("layers", "src/mpi/link.c", '#include "base/log.h"'),
    ("layers", "src/ops/relu.c", '#include "ops/tanh.h"'),
    ("layers", "tools/quern/main.c", '#include "../../src/base/log.h"'),
    ("layers", "tools/quern/main.c", "#include <base/log.h>"),
    ("layers", "examples/embed.c", '#include "../src/base/log.h"'),
    ("layers", "include/quern/plan.h", '#include "base/log.h"'),
    ("style", "src/cl/slab.c", "int blank; "),
    ("style", "src/cl/slab.c", "int long_line; /* " + "x" * 90 + " */"),
    ("style", "cl_kernels/fill.cl", "__kernel void nothing(__global uint *x) {}"),
    ("style", "tools/demo.sh", "\techo"),
    ("style", "recipes/fashion-mlp.ini", "blank = 1 "),
    ("style", "docs/architecture.md", "[a room](../src/attic)"),
    ("style", ".github/workflows/ci.yml", "name: ci "),
    ("style", "tools/csv.py", "# SPDX-License-Identifier: MIT"),
]
# (header, text, text in its place, what abi.py must say)
ABI = [
    ("log.h", "void *user;", "void *user;", ""),
    ("log.h", "void *user;", "void *user; int more;", "+    16 4 int more"),
    ("tensor.h", "int rank;", "unsigned rank;", "-    0 4 int rank"),
    ("log.h", "void *user;", "double user;", "+    8 8 double user"),
    ("tensor.h", "typedef struct qn_tensor {",
     "typedef struct qn_more {\n    int a;\n} qn_more;\ntypedef struct qn_tensor {", "+qn_more 4"),
    ("ops.h", "{ QN_UPSAMPLE_NEAREST,", "{ QN_UPSAMPLE_NONE, QN_UPSAMPLE_NEAREST,",
     "+QN_UPSAMPLE_NEAREST 1"),
    ("abi.h", "X(qn_log, 0x", "X(qn_log, 0x1", "QN_STRUCT_LIST is not that of the structs"),
]


def check(root, copy, tool):
    return subprocess.run([sys.executable, root / f"tools/check_{tool}.py", copy], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def is_noticed(root, copy, tool, place, line):
    path = copy / place
    text = path.read_text() if path.exists() else ''
    path.write_text(f"{text}{line}\n")
    number = text.count("\n") + 1
    done = check(root, copy, tool)
    if text:
        path.write_text(text)
    else:
        path.unlink()
    return done.returncode == 1 and f"{place}:{number}:" in done.stdout


def abi_says(root, copy, name, old, new):
    """What abi.py says of the copy with another text in a header."""
    path = copy / "include/quern" / name
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    done = subprocess.run([sys.executable, root / "tests/lint/abi.py", copy], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    path.write_text(text)
    return done.returncode, done.stdout


def main():
    root = Path(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copy(root / "meson.build", copy)
        for name in FOLDERS:
            shutil.copytree(root / name, copy / name)
        for tool in ("layers", "style"):
            done = check(root, copy, tool)
            if done.returncode:
                print(f"check_{tool}.py without a bad line:\n{done.stdout}")
                failed += 1
        for item in PLANTED:
            if not is_noticed(root, copy, *item):
                print(f"check_{item[0]}.py does not notice in {item[1]}: {item[2]}")
                failed += 1
        for name, old, new, expected in ABI:
            code, text = abi_says(root, copy, name, old, new)
            if code != (1 if expected else 0) or expected not in text:
                print(f"abi.py of include/quern/{name} with '{new}' says {code}:\n{text}")
                failed += 1
    print(f"{len(PLANTED) + len(ABI) + 2 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
