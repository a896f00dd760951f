#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the compilers of the vendors make of the kernels for GPUs, without a GPU:

    tools/gpu_report.py [--kernel NAME]... [--target NAME]... [--json] [--gate] [--core]

A table of each hot kernel in its GPU shape, for each storage type and setting that a GPU with 32 KiB
of local memory takes, or one of 48 KiB with matrix units of layout mma: registers, bytes of stack or
scratch, spills, local memory, occupancy, the share of multiply-adds in the inner loop and in the
whole step, how wide it loads, and conflicts of the banks of local memory, and how many instructions
are those of matrix units. --gate fails where a default setting spills or has a stack or scratch,
but for what tools/gpu/exceptions.txt lists, where one of a family of tools/gpu/widths.py never
loads 128 bits at once, where one of tools/gpu/waves.py leaves room for too few waves, where one of
tools/gpu/banks.py has too many conflicts, where a step of one of tools/gpu/shares.py multiplies too
little, or where a kernel for matrix units does without them. Compilers that are missing are said
and left out; the status is 77 where none is there. They come from packages of Debian 12 and PyPI:

    apt-get install clang-19 libclc-15 rocm-device-libs intel-opencl-icd
    python3 -m venv ~/.cache/quern-gpu
    ~/.cache/quern-gpu/bin/pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm

Nothing is timed. clang and libclc stand in for NVIDIA's front-end, which may unroll or merge
otherwise; a stand-in of the chip serves where the device libraries do not know it (gfx1100).
"""
import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu import amd, banks, intel, nvidia, shares, waves, widths
from gpu.call import Failed
from gpu.exceptions import Exceptions
from gpu.hot import FAMILIES, MMA_ALONE, hot_programs

MAKERS = {"NVIDIA": nvidia, "AMD": amd, "Intel": intel}
ONE_EACH = ["sm_90", "gfx1030", "dg2"]
ROOT = Path(__file__).resolve().parents[1]
VENV = Path("~/.cache/quern-gpu").expanduser()
COLUMNS = ["kernel", "types", "setting", "regs", "stack B", "spill B", "local B", "occupancy",
           "inner %", "step %", "units", "global loads", "local loads", "bank conflicts"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", metavar="NAME",
                        help="only programs or families with this in their name")
    parser.add_argument("--target", action="append", metavar="NAME",
                        choices=[name for maker in MAKERS.values() for name in maker.TARGETS])
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--gate", action="store_true", help="judge the default settings")
    parser.add_argument("--core", action="store_true",
                        help=f"one program of each family, for {', '.join(ONE_EACH)}")
    parser.add_argument("--kernels", type=Path, default=ROOT / "cl_kernels", metavar="FOLDER")
    parser.add_argument("--programs", default=str(ROOT / "build/tests/kernels/kernel_programs"),
                        metavar="FILE", help="the built tests/kernels/programs.c")
    parser.add_argument("--venv", type=Path, default=VENV, metavar="FOLDER",
                        help="where pip has put NVIDIA's tools")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def find_tools(venv):
    """Appends the folders of NVIDIA's packages to the path."""
    folders = sorted(venv.glob("lib/python3*/site-packages/nvidia/*/bin"))
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *map(str, folders)])


def targets_there(wanted):
    """(target, maker) of the targets whose compilers are there; what is missing is said."""
    there = []
    for name, maker in MAKERS.items():
        of = [target for target in maker.TARGETS if not wanted or target in wanted]
        lacks, less = maker.missing() if of else ([], [])
        for text in less if not lacks else ():
            print(f"{name}: {text}", file=sys.stderr)
        if lacks:
            print(f"{name} is left out: {', '.join(lacks)} missing; {'; '.join(maker.INSTALL)}",
                  file=sys.stderr)
            continue
        there += [(target, maker) for target in of]
    return there


def takes(program, target, maker, names):
    """Whether a row of the program for the target is wanted: matrix units have one layout each."""
    of = maker.TARGETS[target]
    if of.get("family", program.family) != program.family or of.get("lacks") in program.options:
        return False
    if MMA_ALONE in program.what and maker.UNITS.get(target) != "mma":
        return False
    if program.family == "matrix units":
        if f"-DTILE_LAYOUT={maker.UNITS.get(target)}" not in program.options:
            return False
    return not names or any(name in program.stem or name in program.family for name in names)


def rows_of(kernels, program, target, maker):
    """A row for each kernel of the program, or one with what the compiler said against it."""
    base = {"target": target, "family": program.family, "program": program.stem,
            "types": program.storage, "what": program.what, "options": " ".join(program.options)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = maker.compile_program(kernels, program, target, Path(folder))
        except Failed as error:
            return [{**base, "kernel": program.stem, "setting": 0, "error": str(error)}]
    conflicts = banks.conflicts(kernels, program)
    return [{**base, "kernel": kernel, "setting": setting, **found[kernel], "banks": conflicts}
            for kernel, (_, setting) in program.kernels.items()]


def widths_text(widths):
    return " ".join(f"{bits}×{count}" for bits, count in widths.items()) if widths else "–"


def cells(row):
    """A row of the table as texts."""
    def shown(name):
        return "–" if row.get(name) is None else str(row[name])
    name = row["kernel"] if row["kernel"] == row["program"] else f"{row['program']}/{row['kernel']}"
    setting = row["what"] + (f" (setting {row['setting']})" if row["setting"] else "")
    if "error" in row:
        return [name, row["types"], setting, "does not compile: " + row["error"].split("\n")[0]]
    occupancy = f"{row['occupancy']} %" if "occupancy" in row else f"SIMD{row['simd']}"
    conflicts = "–" if row["banks"] is None else ", ".join(
        f"{access} {ways}-way" for access, ways in row["banks"].items()) or "none"
    return [name, row["types"], setting.strip(), shown("registers"), shown("stack"),
            shown("spills"), shown("local"), occupancy, shown("inner"), shown("step"), shown("units"),
            widths_text(row.get("global_loads")), widths_text(row.get("local_loads")), conflicts]


def print_table(rows):
    """Markdown, a table for each target."""
    for target in dict.fromkeys(row["target"] for row in rows):
        print(f"\n## {target}\n")
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
        for row in rows:
            if row["target"] == target:
                print("| " + " | ".join(cells(row)) + " |")
    worked = ", ".join(banks.ACCESSES)
    print(f"\nBank conflicts are worked out for {worked}; – elsewhere means that they are not. "
          "Shares count a step's edges, too: they are the least that it can be.")


def judge(rows, whole):
    """Prints what is wrong with default settings and returns how many rows are."""
    exceptions = Exceptions()
    wrong = [text for row in rows for text in exceptions.faults(row) + widths.faults(row)
             + waves.faults(row) + banks.faults(row) + shares.faults(row)]
    if whole:
        wrong += exceptions.unused({row["target"] for row in rows})
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(rows) - len(wrong)} passed, {len(wrong)} failed")
    return len(wrong)


def main():
    options = arguments()
    find_tools(options.venv)
    wanted = options.target or (ONE_EACH if options.core else None)
    there = targets_there(wanted)
    if not there:
        return 77
    programs = hot_programs(options.programs, options.core)
    work = [(options.kernels, program, target, maker) for target, maker in there
            for program in programs if takes(program, target, maker, options.kernel)]
    if not work:
        print(f"nothing is named so; families: {', '.join(FAMILIES)}", file=sys.stderr)
        return 2
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for some in pool.map(lambda item: rows_of(*item), work):
            rows += some
            for row in some if options.json else ():
                print(json.dumps(row), flush=True)
    if not (options.json or options.gate):
        print_table(rows)
    whole = not (options.core or options.kernel)
    return 1 if options.gate and judge(rows, whole) else 0


if __name__ == "__main__":
    sys.exit(main())
