#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the logs of `meson test`: summary.py STATUS [LOG COUNT]...

STATUS is 0 if every command before this one ended well; each LOG must hold COUNT tests.

A program counts as many tests as it says it ran ("3 passed, 1 failed", or cmocka's last lines), else
as one. What was skipped, ran out of time or crashed counts as failed, and so does a program that ran
nothing, a log that cannot be read or that lacks tests, and a bad STATUS where nothing else failed.
A test of the suite `driver` may be skipped: it needs an OpenCL driver, another MPI, a browser, a right or
an instruction of the processor that few machines have.
Lines that begin with `report:` and what a skipped test says are repeated. The last line is
`N passed, N failed`, with `, N skipped` where a test was; the status is 1 if anything failed or
nothing ran.
"""
import json
import re
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)", re.MULTILINE)


def may_be_skipped(test):
    """Meson names a test `PROJECT:SUITE+SUITE / NAME`."""
    suites = test["name"].partition(" / ")[0].partition(":")[2].split("+")
    return test["result"] == "SKIP" and "driver" in suites


def count(test):
    """What passed, failed and was skipped."""
    if may_be_skipped(test):
        return 0, 0, 1
    own, cmocka = OWN.findall(test["said"]), CMOCKA.findall(test["said"])
    if own:
        passed, failed = map(int, own[-1])
    elif cmocka:
        passed = sum(int(n) for what, n in cmocka if what == "PASSED")
        failed = sum(int(n) for what, n in cmocka if what != "PASSED")
    else:
        passed, failed = (1, 0) if test["result"] == "OK" else (0, 1)
    if test["result"] != "OK" or passed == 0:
        failed = max(failed, 1)
    return passed, failed, 0


def repeat(test):
    for line in test["said"].splitlines():
        if line.startswith("report:") or (test["result"] == "SKIP" and line.strip()):
            print(f"{test['name']}: {line}")


def add_up(tests):
    sums = [0, 0, 0]
    for test in tests:
        passed, failed, skipped = count(test)
        sums = [a + b for a, b in zip(sums, (passed, failed, skipped))]
        repeat(test)
        if failed:
            print(f"FAILED: {test['name']} ({test['result']}): {failed} of {passed + failed}")
    return sums


def add_log(path, expected):
    """The same for a log, which may be missing or end early."""
    tests, wrong = [], None
    try:
        with open(path) as file:
            for line in file:
                test = json.loads(line)
                tests.append({"name": test["name"], "result": test["result"],
                              "said": test.get("stdout", "") + "\n" + test.get("stderr", "")})
    except (OSError, ValueError, KeyError, TypeError) as error:
        wrong = repr(error)
    if not wrong and (not expected or len(tests) < expected):
        wrong = f"{len(tests)} of {expected} tests"
    if wrong:
        print(f"FAILED: {path}: {wrong}")
    passed, failed, skipped = add_up(tests)
    return passed, failed + bool(wrong), skipped


def main():
    status, *rest = sys.argv[1:]
    passed, failed, skipped = (sum(column) for column in zip(
        (0, 0, 0), *(add_log(path, int(count)) for path, count in zip(rest[::2], rest[1::2]))))
    if not failed and (status != "0" or not passed):
        print(f"FAILED: nothing in the logs, but the status of the run is {status}")
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
