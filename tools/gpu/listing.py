# SPDX-License-Identifier: MIT
"""Loops of a disassembled kernel: what share of them multiplies and adds, how wide they load.

A kernel is a list of Line. A loop is what a jump back spans. The inner loop is the one whose own
lines, those of loops inside it left aside, hold most multiply-adds and little else; the step is the smallest loop
around it, or itself, that has a barrier: what is done once for each strip of the operands. All
lines of a step count, those of the edges of a matrix too, so that its share is a lower bound; a loop
inside it counts as often as it runs, which is read from the constants of its counter."""
import re
from collections import Counter
from typing import NamedTuple


class Line(NamedTuple):
    label: str      # of the line, "" where there is none
    op: str
    operands: str
    jump: str       # the label that it may jump to, or ""


class Loop(NamedTuple):
    first: int
    last: int


def loops_of(lines):
    """The loops, those with the same head as one, from the first head to the last."""
    at = {line.label: i for i, line in enumerate(lines) if line.label}
    ends = {}
    for i, line in enumerate(lines):
        head = at.get(line.jump, i)
        if head < i:
            ends[head] = max(i, ends.get(head, i))
    return [Loop(*item) for item in sorted(ends.items())]


def inside(loop, outer):
    return loop != outer and outer.first <= loop.first and loop.last <= outer.last


def own_lines(lines, loop, loops):
    """Those of the loop that are not in a loop inside it."""
    nested = [other for other in loops if inside(other, loop)]
    return [line for i, line in enumerate(lines[loop.first:loop.last + 1], loop.first)
            if not any(other.first <= i <= other.last for other in nested)]


def counts(lines, maker):
    """Instructions, and those of them that multiply and add or feed a matrix unit. One that does two
    at once counts as two."""
    real = [line.op for line in lines if line.op and not maker.EMPTY.match(line.op)]
    useful = [op for op in real if maker.MULTIPLY.match(op)]
    packed = sum(bool(maker.PACKED.match(op)) for op in useful)
    return len(real) + packed, len(useful) + packed


def has_barrier(lines, loop, maker):
    return any(maker.BARRIER.match(line.op) for line in lines[loop.first:loop.last + 1])


def weighted(lines, loop, loops, maker, trips):
    """Instructions and multiply-adds of one run of a loop, or None where a loop inside it that
    multiplies runs unknown times; other loops of unknown length count once."""
    total, useful = counts(own_lines(lines, loop, loops), maker)
    nested = [other for other in loops if inside(other, loop)]
    for other in nested:
        if any(inside(other, third) for third in nested):
            continue
        part = weighted(lines, other, loops, maker, trips)
        if part is None:
            return None
        times = trips(lines, other)
        if times is None and part[1]:
            return None
        total, useful = total + part[0] * (times or 1), useful + part[1] * (times or 1)
    return total, useful


def share(part):
    return round(100 * part[1] / part[0]) if part and part[0] else None


def widths(lines, pattern, bits):
    """Loads that match, as {bits: how many}."""
    found = Counter()
    for line in lines:
        match = pattern.match(line.op)
        if match:
            found[bits(match)] += 1
    return dict(sorted(found.items()))


def analyse(lines, maker):
    """Shares in percent, None where there is no such loop or it is not worked out, and the widths
    of loads in the step, or in the whole kernel where there is none."""
    loops = loops_of(lines)
    own = {loop: counts(own_lines(lines, loop, loops), maker) for loop in loops}
    best = max((loop for loop in loops if own[loop][1]), default=None,
               key=lambda loop: own[loop][1] ** 2 / own[loop][0])
    step = min((loop for loop in loops if best and (loop == best or inside(best, loop))
                and has_barrier(lines, loop, maker)),
               key=lambda loop: loop.last - loop.first, default=None)
    body = lines[step.first:step.last + 1] if step else lines
    return {
        "units": sum(bool(maker.UNIT.match(line.op)) for line in lines),
        "inner": share(own[best]) if best else None,
        "step": share(weighted(lines, step, loops, maker, maker.trips)) if step else None,
        "global_loads": widths(body, maker.GLOBAL_LOAD, maker.bits),
        "local_loads": widths(body, maker.LOCAL_LOAD, maker.bits),
    }


def run_length(start, increment, bound, relation, before):
    """How often a loop runs whose counter goes from `start` by `increment` until `relation` with
    `bound` fails; `before`: it is compared before it grows. A start that is no constant is taken for
    the number of a work-item, less than the increment. None: that is no plain counter."""
    if start is None and relation not in ("NE", "EQ"):
        start = 0
    if not increment or start is None or bound is None:
        return None
    distance = (bound - start) * (1 if increment > 0 else -1)
    step = abs(increment)
    exact = relation in ("NE", "EQ")
    times = distance // step if exact or distance % step == 0 else distance // step + 1
    times += before + (relation in ("GT", "LE") and distance % step == 0)
    return times if 2 <= times <= 4096 and not (exact and distance % step) else None


def number(text):
    """The integer of 32 bits that a constant operand is, None for any other."""
    text = text.strip()
    if not re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text):
        return None
    value = int(text, 0)
    return value - (1 << 32) if value >= 1 << 31 else value
