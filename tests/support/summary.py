#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the logs of `meson test`: summary.py TESTLOG.json...

A program counts as many tests as it says it ran ("3 passed, 1 failed", or cmocka's last lines), else
as one. What was skipped, ran out of time or crashed counts as failed. The last line is
`N passed, N failed`, the status 1 if anything failed or nothing ran.
"""
import json
import re
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)", re.MULTILINE)


def count(test):
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    own, cmocka = OWN.findall(text), CMOCKA.findall(text)
    if own:
        passed, failed = map(int, own[-1])
    elif cmocka:
        passed = sum(int(n) for what, n in cmocka if what == "PASSED")
        failed = sum(int(n) for what, n in cmocka if what != "PASSED")
    else:
        passed, failed = (1, 0) if test["result"] == "OK" else (0, 1)
    if test["result"] != "OK":
        failed = max(failed, 1)
    return passed, failed


def main():
    passed = failed = 0
    for path in sys.argv[1:]:
        with open(path) as file:
            for line in file:
                test = json.loads(line)
                good, bad = count(test)
                passed, failed = passed + good, failed + bad
                if bad:
                    print(f"FAILED: {test['name']} ({test['result']}): {bad} of {good + bad}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
