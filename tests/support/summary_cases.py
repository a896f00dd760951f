#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What summary.py makes of good and bad logs: summary_cases.py SUMMARY"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def log(*tests, suite="quern:device"):
    return "".join(json.dumps({"name": f"{suite} / t{n}", "result": result, "stdout": said}) + "\n"
                   for n, (result, said) in enumerate(tests))


GOOD = ("OK", "")
# name, status of the run, log (None: there is none), tests expected, what must be said
CASES = [
    ("two programs", 0, log(GOOD, ("OK", "3 passed, 0 failed\n")), 2, "4 passed, 0 failed"),
    ("cmocka", 0, log(("OK", "[  PASSED  ] 5 test(s).\n")), 1, "5 passed, 0 failed"),
    ("a failure", 1, log(GOOD, ("FAIL", "3 passed, 2 failed\n")), 2, "4 passed, 2 failed"),
    ("a crash", 1, log(GOOD, ("FAIL", "3 passed, 0 failed\n")), 2, "4 passed, 1 failed"),
    ("out of time", 1, log(GOOD, ("TIMEOUT", "")), 2, "1 passed, 1 failed"),
    ("skipped", 0, log(GOOD, ("SKIP", "no such device\n")), 2, "1 passed, 1 failed"),
    ("why it was skipped", 0, log(("SKIP", "no such device\n")), 1,
     "quern:device / t0: no such device"),
    ("a driver that is not here", 0, log(GOOD, ("SKIP", ""), suite="quern:device+driver"), 2,
     "1 passed, 0 failed, 1 skipped"),
    ("a driver's test that failed", 1, log(GOOD, ("FAIL", ""), suite="quern:device+driver"), 2,
     "1 passed, 1 failed"),
    ("drivers alone", 0, log(("SKIP", ""), suite="quern:driver"), 1, "0 passed, 1 failed, 1 skipped"),
    ("a report", 0, log(("OK", "x\nreport: 9 good\n")), 1, "quern:device / t0: report: 9 good"),
    ("nothing ran in a program", 0, log(GOOD, ("OK", "0 passed, 0 failed\n")), 2,
     "1 passed, 1 failed"),
    ("no log", 0, None, 2, "0 passed, 1 failed"),
    ("an empty log", 0, "", 2, "0 passed, 1 failed"),
    ("no list of tests", 0, log(GOOD), 0, "1 passed, 1 failed"),
    ("half of a log", 0, log(GOOD), 2, "1 passed, 1 failed"),
    ("a cut line", 0, log(GOOD, GOOD)[:-9], 2, "1 passed, 1 failed"),
    ("no test", 0, log(GOOD) + "{}\n", 2, "1 passed, 1 failed"),
    ("a number", 0, log(GOOD) + "7\n", 2, "1 passed, 1 failed"),
    ("a bad end and nothing failed", 1, log(GOOD), 1, "1 passed, 1 failed"),
    ("no log is named", 0, False, 0, "0 passed, 1 failed"),
]


def run(summary, folder, status, text, expected):
    path = Path(folder) / "a log.json"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text or "")
    logs = [] if text is False else [path, str(expected)]
    return subprocess.run([sys.executable, summary, str(status), *logs], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, status, text, expected, wanted in CASES:
            done = run(sys.argv[1], folder, status, text, expected)
            lines = done.stdout.splitlines()
            good = lines and " 0 failed" in lines[-1]
            if wanted not in lines or done.returncode != (0 if good else 1):
                print(f"{name}: status {done.returncode}, wanted '{wanted}':\n{done.stdout}")
                failed += 1
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
