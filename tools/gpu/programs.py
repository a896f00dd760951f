# SPDX-License-Identifier: MIT
"""What the operators launch, as tests/kernels/programs.c prints it."""
import subprocess
from typing import NamedTuple


class Launch(NamedTuple):
    """A kernel with the options of its program. `rank` is "gpu", "cpu" or "more", `setting` the
    index of the variant's setting, `items` the work-items of a work-group."""
    rank: str
    operator: str
    variant: str
    setting: int
    items: int
    stem: str
    kernel: str
    options: tuple


def launches(program, rank=None):
    """The distinct launches that `program` prints, in its order; of `rank` alone if it is given."""
    seen = set()
    with subprocess.Popen([program], text=True, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if line in seen or rank and not line.startswith(rank + " "):
                continue
            seen.add(line)
            of, operator, variant, setting, items, stem, kernel, *options = line.split()
            yield Launch(of, operator, variant, int(setting), int(items), stem, kernel,
                         tuple(options))
    if process.returncode:
        raise SystemExit(f"{program} failed")
