#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles every kernel program with every set of options that the operators ask for, as OpenCL C
1.2 for machines that are not here: offline.py KERNELS PROGRAMS [--pairs] [JOBS]

PROGRAMS is kernel_programs. All are compiled for spir64, which
knows neither double nor half and gives no mercy to warnings, without optimisation: so nothing is
inlined, and a function that has no definition of its own shows. Those of an ordinary GPU or CPU are
compiled for two makes of GPUs, too, down to their assembler, with little optimisation: more takes most of the
time and refuses nothing. What is then written in assembly itself goes through ptxas, if it is there.
With --pairs those that spir64 gets are so few that every two options that some set has together are
together in one of them, and those that GPUs get, so few that every option is in one.
"""
import argparse
import heapq
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from gpu.programs import launches  # noqa: E402

COMMON = ["clang", "-x", "cl", "-cl-std=CL1.2", "-Wall", "-Wextra", "-Werror",
          "-Wdouble-promotion", "-Wno-unused-parameter", "-Wno-unused-function",
          "-Wno-unused-but-set-parameter", "-S"]
SPIR = ["-target", "spir64", "-emit-llvm", "-cl-opt-disable", "-Xclang",
        "-cl-ext=-cl_khr_fp64,-cl_khr_fp16"]
GPUS = {
    "amdgcn": ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-nogpulib", "-O1",
               "-Xclang", "-finclude-default-header"],
    # The driver's compiler calls it asm, as we do; clang's strict mode does not.
    "nvptx64": ["-target", "nvptx64-nvidia-nvcl", "-nogpulib", "-O1", "-Xclang",
                "-finclude-default-header", "-Xclang", "-cl-ext=+cl_khr_fp16", "-Xclang",
                "-target-cpu", "-Xclang", "sm_80", "-Xclang", "-target-feature", "-Xclang",
                "+ptx70", "-Dasm=__asm__", "-DQN_MATRIX_UNITS=71", "-DQN_MATRIX_LAYOUT=1"],
}
PTXAS = shutil.which("ptxas")
LAYOUTS = {"mma": ["f16", "bf16", "tf32"], "mfma": ["f16", "bf16", "f32"], "wmma": ["f16", "bf16"],
           "dpas8": ["f16", "bf16"], "dpas16": ["f16", "bf16", "tf32"]}
# Programs that the OpenCL layer and the trainer launch by themselves, without an operator.
OWN = {"fill": [[]], "tile": [[f"-DUNIT_TYPE={name}", f"-DTILE_LAYOUT={layout}"]
                               for layout, names in LAYOUTS.items() for name in names],
       "tile_copy": [["-DUNIT_TYPE=f16", "-DTILE_LAYOUT=mma", f"-DALONG_K={along}"]
                     for along in (0, 1)],
       "tile_cpu": [[]],
       "limits": [["-DWORDS=12288", "-DGROUP=64"]],
       "ceiling": [["-DQN_V=16", "-DQN_GROUP=1"], ["-DQN_V=4", "-DQN_GROUP=64"]]}
# Functions that a program uses and does not define, but for those of OpenCL C and the compiler's.
MISSING = re.compile(r"^declare .*?@(?!_Z|llvm\.)(\w+)", re.MULTILINE)
# The functions of OpenCL C in assembly for ptxas: the driver has them.
BUILTIN = re.compile(r"^\.func(?=.* _Z)", re.MULTILINE)


def collect(program):
    """The distinct (stem, options), and those for an ordinary GPU or CPU."""
    common = {(stem, tuple(more)) for stem in OWN for more in OWN[stem]}
    more = set()
    for launch in launches(program):
        (more if launch.rank == "more" else common).add((launch.stem, launch.options))
    return common | more, common


def cover(programs, together):
    """Few programs, so that any `together` options that one of a stem has are in one of them: next
    comes the one that adds most, which can only become less while it waits."""
    added = {(stem, options): {(stem, *of) for of in itertools.combinations((stem, *options), together)}
             for stem, options in programs}
    waiting = [(-len(new), program) for program, new in added.items()]
    heapq.heapify(waiting)
    chosen, have = set(), set()
    while waiting:
        before, program = heapq.heappop(waiting)
        new = added[program] - have
        if len(new) == -before:
            chosen.add(program)
            have |= new
        elif new:
            heapq.heappush(waiting, (-len(new), program))
    return chosen


def precompile(folder):
    """The header of OpenCL's functions, read once. By name: the default one hides vload_half
    without cl_khr_fp16."""
    header = str(Path(folder) / "opencl-c.pch")
    subprocess.run([*COMMON, *SPIR, "-include", "opencl-c.h", "-Xclang", "-emit-pch", "-o", header,
                    "-"], check=True, input="", text=True)
    return [*SPIR, "-Xclang", "-include-pch", "-Xclang", header]


def assemble(text):
    """What ptxas says against the matrix instructions in a text."""
    said = ""
    for machine in ("sm_80", "sm_90") if PTXAS and "mma.sync" in text else ():
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(BUILTIN.sub(".extern .func", text))
            file.flush()
            done = subprocess.run([PTXAS, "-c", "-arch", machine, "-o", "/dev/null", file.name],
                                  text=True, capture_output=True)
            said += done.stderr or "ptxas failed\n" * (done.returncode != 0)
    return said


def build(kernels, stem, options, target, flags):
    command = [*COMMON, *flags, "-I", str(kernels), *options, str(kernels / f"{stem}.cl"), "-o",
               "-"]
    result = subprocess.run(command, text=True, capture_output=True)
    errors = result.stderr or "".join(
        f"{name} is not defined\n" for name in MISSING.findall(result.stdout))
    errors += assemble(result.stdout)
    if result.returncode == 0 and not errors:
        return None
    return f"{stem} {' '.join(options)} for {target}:\n{errors}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", type=Path)
    parser.add_argument("program")
    parser.add_argument("jobs", type=int, nargs="?", default=os.cpu_count() or 1)
    parser.add_argument("--pairs", action="store_true")
    options = parser.parse_args()
    kernels = options.kernels
    programs, common = collect(options.program)
    if options.pairs:
        programs, common = cover(programs, 2), cover(common, 1)
    unused = {path.stem for path in kernels.glob("*.cl")} - {stem for stem, _ in programs}
    wrong = [f"{stem}.cl: nothing builds it" for stem in sorted(unused)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        spir = precompile(folder)
        work = [(*program, "spir64", spir) for program in sorted(programs)]
        work += [(*program, *gpu) for program in sorted(common) for gpu in GPUS.items()]
        wrong += filter(None, pool.map(lambda item: build(kernels, *item), work))
    for text in wrong[:10]:
        print("\n".join(text.splitlines()[:12]))
    print(f"{len(programs)} programs for spir64, {len(common)} also for {', '.join(GPUS)}, "
          f"{'matrix instructions by ptxas' if PTXAS else 'ptxas is not there'}")
    print(f"{len(work) + len(unused) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
