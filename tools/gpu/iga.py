# SPDX-License-Identifier: MIT
"""Intel's disassembler: a library that its compiler is linked with, so that it is there where that
is (iga.h of the Intel Graphics Compiler)."""
import ctypes
import re

from gpu import listing
from gpu.call import Failed

LIBRARY = "libiga64.so.1"
# iga_gen_t: the chips' families.
FAMILIES = {"tgllp": 1 << 24, "dg2": 1 << 24 | 2, "pvc": 1 << 24 | 4}

EMPTY = re.compile(r"sync\.|nop|illegal|join")
UNIT = re.compile(r"dpasw?\.")
MULTIPLY = re.compile(r"(mad|mac)\S*:h?f$|dpasw?\.")
BARRIER = re.compile(r"sync\.bar")
# Nothing does two at once; how wide loads are is not worked out.
PACKED = GLOBAL_LOAD = LOCAL_LOAD = re.compile(r"(?!)")


class ContextOptions(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("family", ctypes.c_uint32)]


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "bytes", "formatting", "reserved", "reserved_too", "decoding", "first_address")]


def library():
    """The library, None where it is missing."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def disassemble(code, target):
    """The code of a kernel as text."""
    iga, context, text = library(), ctypes.c_void_p(), ctypes.c_char_p()
    made = ContextOptions(ctypes.sizeof(ContextOptions), FAMILIES[target])
    how = Options(ctypes.sizeof(Options))
    if iga.iga_context_create(ctypes.byref(made), ctypes.byref(context)):
        raise Failed(f"{LIBRARY}: knows no {target}")
    status = iga.iga_context_disassemble(context, ctypes.byref(how), code, len(code), None, None,
                                         ctypes.byref(text))
    found = (text.value or b"").decode()
    iga.iga_context_release(context)
    if status:
        raise Failed(f"{LIBRARY}: cannot read the code: {status}")
    return found


def parse(text):
    """The lines of a kernel: predicates stand before an instruction, the masks of lanes behind; its
    type, that of its first operand, becomes part of its name."""
    lines, label = [], ""
    for row in text.splitlines():
        marked = re.match(r"(L\d+):", row)
        label = marked[1] if marked else label
        found = re.match(r"\s*(?:\([^)]*\)\s*)?([a-z]\S*)\s*(.*)", row)
        if found and not marked:
            jump = re.search(r"\bL\d+\b", found[2])
            kind = re.search(r":[a-z]+\b", found[2])
            lines.append(listing.Line(label, found[1] + (kind[0] if kind else ""), found[2],
                                      jump[0] if jump else ""))
            label = ""
    return lines


def trips(_lines, _loop):
    """Not worked out: shares are of loops without others in them that multiply."""


def bits(_match):
    """Never asked: no loads are found."""
