#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public header compiles alone, twice included, as C11 and as C++11: headers.py ROOT"""
import subprocess
import sys
from pathlib import Path

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror"]
COMPILERS = [("C11", ["cc", "-x", "c", "-std=c11"]), ("C++11", ["c++", "-x", "c++", "-std=c++11"])]


def compile_alone(command, root, name):
    text = f"#include <quern/{name}>\n#include <quern/{name}>\n"
    return subprocess.run([*command, *STRICT, "-I", root / "include", "-"], input=text, text=True,
                          capture_output=True)


def main():
    root = Path(sys.argv[1])
    failed = passed = 0
    for path in sorted((root / "include/quern").glob("*.h")):
        for language, command in COMPILERS:
            result = compile_alone(command, root, path.name)
            if result.returncode:
                print(f"{path.name} alone as {language}:\n{result.stderr}")
                failed += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
