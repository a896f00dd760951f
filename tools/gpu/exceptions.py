# SPDX-License-Identifier: MIT
"""What a default setting may have of stack, scratch and spills: nothing, but for exceptions.txt."""
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("exceptions.txt")


class Exception_(NamedTuple):
    target: str
    kernel: str  # PROGRAM/KERNEL
    what: str    # types, and what tells the program from others, by commas; "*" for all
    bytes: int
    reason: str


def read():
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            target, kernel, what, limit, reason = line.split(maxsplit=4)
            yield Exception_(target, kernel, what, int(limit), reason)


class Exceptions:
    """The exceptions, those of the file unless others are given, and which of them were needed."""

    def __init__(self, listed=None):
        self.listed, self.used = list(read()) if listed is None else listed, set()

    def allowed(self, row):
        name = f"{row['program']}/{row['kernel']}"
        parts = {row["types"], *row["what"].split()}
        for one in self.listed:
            if (one.target, one.kernel) == (row["target"], name) and (
                    one.what == "*" or set(one.what.split(",")) <= parts):
                yield one

    def faults(self, row):
        """What is wrong with a row, as lines."""
        where = (f"{row['target']}: {row['program']}/{row['kernel']} {row['types']} {row['what']}")
        if "error" in row:
            return [f"{where}: {row['error']}"]
        if row["family"] == "matrix units" and row.get("units") == 0:
            return [f"{where}: no instruction of matrix units"]
        held = row["stack"] + row["spills"]
        if row["setting"] or not held:
            return []
        allowed = list(self.allowed(row))
        self.used.update(allowed)
        if any(held <= one.bytes for one in allowed):
            return []
        return [f"{where}: {row['stack']} bytes of stack or scratch, {row['spills']} of spills"]

    def unused(self, targets):
        """Exceptions that nothing needs any more, as lines."""
        return [f"exceptions.txt: {one.target} {one.kernel} {one.what}: nothing needs it"
                for one in self.listed if one.target in targets and one not in self.used]
