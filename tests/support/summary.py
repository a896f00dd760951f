#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the logs of `meson test`: summary.py STATUS [LOG COUNT]...

STATUS is 0 if every command before this one ended well; each LOG must hold COUNT tests.

A program counts as many tests as it says it ran ("3 passed, 1 failed", or cmocka's last lines), else
as one. What was skipped, ran out of time or crashed counts as failed, and so does a program that ran
nothing, a log that cannot be read or that lacks tests, and a bad STATUS where nothing else failed.
Lines that begin with `report:` and what a skipped test says are repeated. The last line is
`N passed, N failed`, the status 1 if anything failed or nothing ran.
"""
import json
import re
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)", re.MULTILINE)


def count(test):
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
    return passed, failed


def repeat(test):
    for line in test["said"].splitlines():
        if line.startswith("report:") or (test["result"] == "SKIP" and line.strip()):
            print(f"{test['name']}: {line}")


def add_up(tests):
    passed = failed = 0
    for test in tests:
        good, bad = count(test)
        passed, failed = passed + good, failed + bad
        repeat(test)
        if bad:
            print(f"FAILED: {test['name']} ({test['result']}): {bad} of {good + bad}")
    return passed, failed


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
    passed, failed = add_up(tests)
    return passed, failed + bool(wrong)


def main():
    status, *rest = sys.argv[1:]
    passed = failed = 0
    for path, expected in zip(rest[::2], rest[1::2]):
        good, bad = add_log(path, int(expected))
        passed, failed = passed + good, failed + bad
    if not failed and (status != "0" or not passed):
        print(f"FAILED: nothing in the logs, but the status of the run is {status}")
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
