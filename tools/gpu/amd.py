# SPDX-License-Identifier: MIT
"""AMD: clang with the device libraries of ROCm, which is what its driver runs."""
import re
import shutil
import sys
from pathlib import Path

from gpu import listing
from gpu.call import said

# Most waves of a SIMD.
TARGETS = {"gfx90a": {"waves": 8}, "gfx1030": {"waves": 16}, "gfx1100": {"waves": 16}}
# Layout of matrix units; its number, and bits for its types, are those of include/quern/device.h.
UNITS = {"gfx90a": "mfma", "gfx1100": "wmma"}
UNIT_OPTIONS = {"gfx90a": ["-DQN_MATRIX_LAYOUT=2", "-DQN_MATRIX_UNITS=11"],
                "gfx1100": ["-DQN_MATRIX_LAYOUT=3", "-DQN_MATRIX_UNITS=3"]}
BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
INSTALL = ["apt-get install clang-19 rocm-device-libs"]
# The newest chip that the libraries of Debian know stands for later ones.
ISA, OLD_ISA = "oclc_isa_version_1100.bc", "oclc_isa_version_1030.bc"
FLAGS = ["-O3", "-target", "amdgcn-amd-amdhsa", "-mcode-object-version=4", "-Xclang",
         "-finclude-default-header"]

EMPTY = re.compile(r"s_nop|s_waitcnt|s_delay_alu|s_clause|s_inst_prefetch")
MULTIPLY = re.compile(r"v_(pk_|dual_)?(fma|fmac|fmaak|fmamk|mac|mad)_(f32|mix_f32)|v_(mfma|wmma)_")
UNIT = re.compile(r"v_(mfma|wmma)_")
PACKED = re.compile(r"v_pk_")
BARRIER = re.compile(r"s_barrier")
GLOBAL_LOAD = re.compile(r"(?:global|flat|buffer)_load_(\w+)")
LOCAL_LOAD = re.compile(r"ds_(?:read|load)(2?)(?:st64)?_(\w+)")
WIDTHS = {"ubyte": 8, "sbyte": 8, "u8": 8, "i8": 8, "ushort": 16, "sshort": 16, "u16": 16,
          "i16": 16, "short_d16": 16, "short_d16_hi": 16, "d16_b16": 16, "d16_hi_b16": 16,
          "dword": 32, "dwordx2": 64, "dwordx3": 96, "dwordx4": 128}
COMPARED = re.compile(r"s_cmpk?_(eq|lg|lt|gt|le|ge)_[iu]32|v_cmp_(eq|ne|lt|gt|le|ge)_[iu]32")


def bits(match):
    name = match.groups()[-1].removesuffix("_e32")
    width = WIDTHS.get(name) or int(re.sub(r".*?(\d+)$", r"\1", name))
    return width * (2 if len(match.groups()) > 1 and match[1] else 1)


def missing():
    lacks = [] if shutil.which("clang-19") else ["clang-19"]
    return lacks + ([] if BITCODE.is_dir() else [str(BITCODE)]), []


def parse(text):
    """{kernel: (lines, what the compiler says about it)} of its assembly. Two operations that one
    instruction does at once, with :: between them, are two lines."""
    kernels, lines, label = {}, None, ""
    for row in text.splitlines():
        begun = re.match(r"(\w+):\s+; @", row)
        if begun:
            lines, label = kernels.setdefault(begun[1], ([], []))[0], ""
            said_of = kernels[begun[1]][1]
        elif lines is not None and row.startswith(";"):
            said_of.append(row)
        elif lines is not None:
            marked = re.match(r"(\.LBB\w+):", row)
            label = marked[1] if marked else label
            found = re.match(r"\s+([a-z]\w+)\s*([^;]*)", row)
            if found:
                jump = re.match(r"\.LBB\w+", found[2]) if "branch" in found[1] else None
                first, *second = found[2].split(" :: ")
                lines.append(listing.Line(label, found[1], first, jump[0] if jump else ""))
                lines += [listing.Line("", *half.split(maxsplit=1), "") for half in second]
                label = ""
    return kernels


def start_of(lines, before, register):
    for line in reversed(lines[:before]):
        operands = [part.strip() for part in line.operands.split(",")]
        if operands[0] == register:
            return listing.number(operands[1]) if "mov" in line.op else None
    return None


def trips(lines, loop):
    """How often the loop runs, from a counter that grows by a constant up to another."""
    grown, times = {}, None
    body = lines[loop.first:loop.last + 1]
    for i, line in enumerate(body):
        operands = [part.strip() for part in line.operands.split(",")]
        steps = [listing.number(part) for part in operands[1:] if listing.number(part) is not None]
        if re.match(r"s_add|v_add", line.op) and len(steps) == 1 and (
                line.op.startswith("s_addk") or operands[0] in operands[1:]):
            grown[operands[0]] = (i, steps[0])
    for i, line in enumerate(body):
        relation = COMPARED.match(line.op)
        parts = [part.strip() for part in line.operands.split(",")]
        counter = next((part for part in parts if part in grown), None)
        bound = next((value for value in map(listing.number, parts) if value is not None), None)
        if not relation or counter is None:
            continue
        at, step = grown[counter]
        # Which way round it jumps is not looked at: a loop ends where the counter is the bound.
        times = listing.run_length(start_of(lines, loop.first, counter), step, bound, "NE",
                                   i < at) or times
    return times


def figures(said_of, whole, kernel, target):
    """What the compiler says about one kernel."""
    text = "\n".join(said_of)
    spilled = re.search(rf"\.name:\s+{kernel}$.*?\.sgpr_spill_count: +(\d+)"
                        r".*?\.vgpr_spill_count: +(\d+)", whole, re.M | re.S)

    def count(pattern):
        match = re.search(pattern, text)
        return int(match[1]) if match else 0
    waves = count(r"Occupancy: (\d+)")
    return {"registers": count(r"NumVgprs: (\d+)"), "accumulators": count(r"NumAgprs: (\d+)"),
            "local": count(r"LDSByteSize: (\d+)"), "stack": count(r"ScratchSize: (\d+)"),
            "spills": 4 * int(spilled[2]), "scalar_spills": int(spilled[1]),
            "waves": waves, "occupancy": round(100 * waves / TARGETS[target]["waves"])}


def libraries(folder):
    """The device libraries with a stand-in for the chip that they do not know."""
    if (BITCODE / ISA).exists():
        return BITCODE
    own = folder / "bitcode"
    if not own.exists():
        own.mkdir()
        for path in BITCODE.iterdir():
            (own / path.name).symlink_to(path)
        (own / ISA).symlink_to(BITCODE / OLD_ISA)
    return own


def compile_program(kernels, program, target, folder):
    """{kernel: figures} of a program, or raises Failed."""
    text = folder / "x.s"
    said(["clang-19", "-x", "cl", "-cl-std=CL1.2", *FLAGS, f"-mcpu={target}",
          f"--rocm-device-lib-path={libraries(folder)}", "-I", str(kernels), *program.options,
          *UNIT_OPTIONS.get(target, []),
          str(kernels / f"{program.stem}.cl"), "-S", "-o", str(text)])
    whole = text.read_text()
    parsed, found = parse(whole), {}
    for kernel in program.kernels:
        lines, said_of = parsed[kernel]
        found[kernel] = {**figures(said_of, whole, kernel, target),
                         **listing.analyse(lines, sys.modules[__name__])}
    return found
