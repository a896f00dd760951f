# SPDX-License-Identifier: MIT
"""NVIDIA: clang and libclc in the place of the driver's front-end, then ptxas; nvdisasm reads what
it makes."""
import re
import shutil
import sys
from pathlib import Path

from gpu import listing
from gpu.call import said

TARGETS = {"sm_80": {"warps": 64, "groups": 32, "local": 167936},
           "sm_86": {"warps": 48, "groups": 16, "local": 102400},
           "sm_90": {"warps": 64, "groups": 32, "local": 233472}}
# Layout of matrix units.
UNITS = {target: "mma" for target in TARGETS}
LIBCLC = Path("/usr/lib/clc/nvptx64--nvidiacl.bc")
INSTALL = ["apt-get install clang-19 libclc-15",
           "VENV/bin/pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm"]
FLAGS = ["-O3", "-target", "nvptx64-nvidia-nvcl", "-nogpulib", "-Xclang",
         "-finclude-default-header", "-Xclang", "-cl-ext=+cl_khr_fp16", "-Xclang", "-target-feature",
         "-Xclang", "+ptx80", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(LIBCLC),
         "-Wno-linker-warnings", "-Dasm=__asm__", "-DQN_MATRIX_UNITS=71",
         "-DQN_MATRIX_LAYOUT=1",
         "-include", str(Path(__file__).with_name("half.clh"))]

EMPTY = re.compile(r"NOP|BSSY|BSYNC|WARPSYNC")
MULTIPLY = re.compile(r"FFMA|HFMA2(?!\.MMA)|HMMA|FFMA2")
UNIT = re.compile(r"HMMA")
PACKED = re.compile(r"FFMA2")
BARRIER = re.compile(r"BAR\.")
GLOBAL_LOAD = re.compile(r"LDG\.E(\S*)")
LOCAL_LOAD = re.compile(r"LDSM?(\S*)")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\S*)\s*(.*?)\s*;")
# What ptxas puts between instructions for time to pass: its condition is never true.
NEVER = re.compile(r"\*/\s+@!U?PT\s")
COUNTED = re.compile(r"(?:IADD3|VIADD|UIADD3)\S*$")
COMPARED = re.compile(r"U?ISETP\.(\w\w)\.")
COPIED = re.compile(r"MOV$|UMOV$|IMAD\.MOV|CS2R|HFMA2\.MMA")


def bits(match):
    if match[0].startswith("LDSM"):
        return 32 * int(match[0][-1])
    width = re.search(r"\.(U8|S8|U16|S16|64|128)(?:\.|$)", match[1] + ".")
    return int(re.sub(r"\D", "", width[1])) if width else 32


def missing():
    """What is not there to compile with, and what is missing beyond that."""
    lacks = [name for name in ("clang-19", "ptxas") if not shutil.which(name)]
    lacks += [] if LIBCLC.exists() else [str(LIBCLC)]
    return lacks, [] if shutil.which("nvdisasm") else ["nvdisasm: no shares, no widths of loads"]


def operands_of(line):
    return [part.strip().replace(".reuse", "") for part in line.operands.split(",")]


def start_of(lines, before, register):
    """The constant that the register holds where the loop begins, None: none is seen."""
    for line in reversed(lines[:before]):
        operands = operands_of(line)
        pair = re.sub(r"\d+", lambda n: str(int(n[0]) + 1), operands[0])
        if operands[0] != register and not (line.op == "CS2R" and pair == register):
            continue
        if not COPIED.match(line.op):
            return None
        if all(re.fullmatch(r"-?U?S?RZ|0", part) for part in operands[1:]):
            return 0
        return listing.number(operands[-1]) if "HFMA2" not in line.op else None
    return None


def trips(lines, loop):
    """How often the loop runs, from a counter that grows by a constant up to another."""
    grown, times = {}, None
    body = lines[loop.first:loop.last + 1]
    for i, line in enumerate(body):
        operands = operands_of(line)
        if COUNTED.match(line.op) and operands[0] in operands[1:]:
            steps = [listing.number(part) for part in operands[1:]]
            steps = [step for step in steps if step is not None]
            if len(steps) == 1:
                grown[operands[0]] = (i, steps[0])
    for i, line in enumerate(body):
        relation, operands = COMPARED.match(line.op), operands_of(line)
        if not relation or len(operands) < 4 or operands[2] not in grown:
            continue
        at, step = grown[operands[2]]
        bound = 0 if operands[3] in ("RZ", "URZ") else listing.number(operands[3])
        times = listing.run_length(start_of(lines, loop.first, operands[2]), step, bound,
                                   relation[1], i < at) or times
    return times


def parse(text):
    """{kernel: lines} of what nvdisasm prints."""
    kernels, lines, label = {}, [], ""
    for row in text.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.(\w+),", row)
        if section:
            lines = kernels.setdefault(section[1], [])
        marked = re.match(r"(\.L_\w+):", row)
        if marked:
            label = marked[1]
        found = INSTRUCTION.match(row)
        if found:
            op = "NOP" if NEVER.search(row) else found[1]
            jump = re.search(r"`\((\.L_\w+)\)", found[2]) if op.startswith("BRA") else None
            lines.append(listing.Line(label, op, found[2], jump[1] if jump else ""))
            label = ""
    return kernels


def occupancy(target, registers, local, items):
    """Percent of the warps of a multiprocessor: registers in pieces of 256 a warp, a KiB of local
    memory a group for the system."""
    chip, warps = TARGETS[target], -(-items // 32)
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // warps
    by_local = chip["local"] // (local + 1024)
    groups = min(chip["groups"], chip["warps"] // warps, by_registers, by_local)
    return round(100 * groups * warps / chip["warps"])


def figures(text):
    """{kernel: figures} of what ptxas -v says."""
    found = {}
    for part in text.split("Compiling entry function ")[1:]:
        def count(pattern, part=part):
            match = re.search(pattern, part)
            return int(match[1]) if match else 0
        found[part.split("'")[1]] = {
            "registers": count(r"Used (\d+) registers"), "local": count(r"(\d+) bytes smem"),
            "stack": count(r"(\d+) bytes stack frame"),
            "spills": count(r"(\d+) bytes spill stores") + count(r"(\d+) bytes spill loads")}
    return found


def compile_program(kernels, program, target, folder):
    """{kernel: figures} of a program, or raises Failed."""
    text, code = folder / "x.ptx", folder / "x.cubin"
    said(["clang-19", "-x", "cl", "-cl-std=CL1.2", *FLAGS, "-Xclang", "-target-cpu", "-Xclang",
          target, "-I", str(kernels), *program.options, str(kernels / f"{program.stem}.cl"), "-S",
          "-o", str(text)])
    found = figures(said(["ptxas", "-v", f"-arch={target}", "-o", str(code), str(text)]))
    assembly = parse(said(["nvdisasm", "-c", str(code)])) if shutil.which("nvdisasm") else {}
    for kernel, (items, _) in program.kernels.items():
        one = found[kernel]
        one["occupancy"] = occupancy(target, one["registers"], one["local"], items)
        if kernel in assembly:
            one.update(listing.analyse(assembly[kernel], sys.modules[__name__]))
    return found
