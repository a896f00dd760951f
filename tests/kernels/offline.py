#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles every kernel program with every set of options that the operators ask for, as OpenCL C
1.2 for machines that are not here: offline.py KERNELS PROGRAMS [JOBS]

PROGRAMS prints one "OPERATOR STEM KERNEL OPTIONS" a line. The first pass, for spir64, knows neither
double nor half and gives no mercy to warnings. The others generate code, with little optimisation:
more takes most of the time and refuses nothing.
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMON = ["clang", "-x", "cl", "-cl-std=CL1.2", "-Wall", "-Wextra", "-Werror",
          "-Wdouble-promotion", "-Wno-unused-parameter", "-Wno-unused-function",
          "-Wno-unused-but-set-parameter"]
TARGETS = {
    "spir64": ["-target", "spir64", "-fsyntax-only", "-Xclang",
               "-cl-ext=-cl_khr_fp64,-cl_khr_fp16"],
    "amdgcn": ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-nogpulib", "-O1", "-S", "-o",
               os.devnull, "-Xclang", "-finclude-default-header"],
    "nvptx64": ["-target", "nvptx64-nvidia-nvcl", "-nogpulib", "-O1", "-S", "-o", os.devnull,
                "-Xclang", "-finclude-default-header", "-Xclang", "-cl-ext=+cl_khr_fp16"],
}
# Programs that the OpenCL layer and the trainer launch by themselves, without an operator.
OWN = {"fill": [[]]}


def collect(program):
    """The distinct (stem, options)."""
    lines = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout
    sets = {(stem, tuple(options)) for _, stem, _, *options in map(str.split, lines.splitlines())}
    return sets | {(stem, tuple(options)) for stem, more in OWN.items() for options in more}


def precompile_header(folder):
    """The declarations for spir64, parsed once. By name, since the default header hides vload_half
    without cl_khr_fp16."""
    header, compiled = Path(folder) / "builtin.h", Path(folder) / "builtin.pch"
    header.write_text("#include <opencl-c.h>\n")
    subprocess.run([*COMMON, *TARGETS["spir64"], "-Xclang", "-emit-pch", "-Xclang", "-o", "-Xclang",
                    compiled, header], check=True)
    TARGETS["spir64"] += ["-include-pch", str(compiled)]


def build(kernels, stem, options, target):
    command = [*COMMON, *TARGETS[target], "-I", str(kernels), *options,
               str(kernels / f"{stem}.cl")]
    result = subprocess.run(command, text=True, capture_output=True)
    if result.returncode == 0:
        return None
    return f"{stem} {' '.join(options)} for {target}:\n{result.stderr}"


def main():
    kernels = Path(sys.argv[1])
    sets = collect(sys.argv[2])
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count() or 1
    unused = {path.stem for path in kernels.glob("*.cl")} - {stem for stem, _ in sets}
    wrong = [f"{stem}.cl: nothing builds it" for stem in sorted(unused)]
    work = [(stem, options, target) for stem, options in sorted(sets) for target in TARGETS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        precompile_header(folder)
        wrong += filter(None, pool.map(lambda item: build(kernels, *item), work))
    for text in wrong[:10]:
        print("\n".join(text.splitlines()[:12]))
    print(f"{len(sets)} programs for {', '.join(TARGETS)}")
    print(f"{len(work) + len(unused) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
