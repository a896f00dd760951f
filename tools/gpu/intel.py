# SPDX-License-Identifier: MIT
"""Intel: ocloc, which is its driver's compiler, and the disassembler that comes with it."""
import re
import shutil
import struct

from gpu import iga, listing
from gpu.call import said

# pvc is there for its matrix units, of sub-groups of 16: nothing else is looked at, nor is what its
# compiler in Debian has no function for.
TARGETS = {"dg2": {}, "tgllp": {},
           "pvc": {"family": "matrix units", "lacks": "-DUNIT_TYPE=tf32"}}
# Layout of matrix units; its number, and bits for its types, are those of include/quern/device.h.
UNITS = {"dg2": "dpas8", "pvc": "dpas16"}
UNIT_OPTIONS = {"dg2": "-DQN_MATRIX_LAYOUT=4 -DQN_MATRIX_UNITS=3",
                "pvc": "-DQN_MATRIX_LAYOUT=5 -DQN_MATRIX_UNITS=3"}
UNIT_EXTENSIONS = (" -cl-ext=-all,+cl_khr_fp16,+cl_intel_subgroups,+cl_intel_subgroups_short,"
                   "+cl_intel_required_subgroup_size,+cl_intel_subgroup_local_block_io,"
                   "+cl_intel_subgroup_matrix_multiply_accumulate")
INSTALL = ["apt-get install intel-opencl-icd"]


def missing():
    lacks = [] if shutil.which("ocloc") else ["ocloc"]
    return lacks + ([] if iga.library() else [iga.LIBRARY]), []


def section(data, wanted):
    """The bytes of a section of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    names_at = heads[names][4]
    for name, _, _, _, at, length in heads:
        start = names_at + name
        if data[start:data.index(b"\0", start)] == wanted:
            return data[at:at + length]
    return b""


def shares(code, target):
    """What its instructions say; how wide loads are is not worked out."""
    found = listing.analyse(iga.parse(iga.disassemble(code, target)), iga)
    return {name: found[name] for name in ("units", "inner", "step")}


def figures(info):
    """{kernel: figures} of the text that goes with a program."""
    found = {}
    for part in re.split(r"^  - name: +", info.split("\nkernels_misc_info:")[0], flags=re.M)[1:]:
        def count(pattern, part=part):
            return sum(map(int, re.findall(pattern, part)))
        buffers = re.findall(r"- type: +scratch\s+usage: +(\w+)\s+size: +(\d+)", part)
        spilled = sum(int(size) for usage, size in buffers if "spill" in usage)
        found[part.split("\n")[0].strip()] = {
            "registers": count(r"grf_count: +(\d+)"), "simd": count(r"simd_size: +(\d+)"),
            "local": count(r"slm_size: +(\d+)"), "spills": spilled,
            "stack": sum(int(size) for _, size in buffers) - spilled}
    return found


def compile_program(kernels, program, target, folder):
    """{kernel: figures} of a program, or raises Failed."""
    for old in folder.glob("*.bin"):
        old.unlink()
    units = program.family == "matrix units"
    said(["ocloc", "compile", "-file", str(kernels / f"{program.stem}.cl"), "-device", target,
          "-options", f"-cl-std=CL1.2 -I {kernels} {' '.join(program.options)}"
          + (f" {UNIT_OPTIONS[target]}" if units else ""), "-internal_options",
          "-cl-intel-allow-zebin" + (UNIT_EXTENSIONS if units else ""), "-out_dir", str(folder)], cwd=folder)
    binary = next(folder.glob("*.bin")).read_bytes()
    found = figures(section(binary, b".ze_info").decode())
    for kernel, one in found.items():
        one.update(shares(section(binary, f".text.{kernel}".encode()), target))
    return found
