# SPDX-License-Identifier: MIT
"""Running the compilers."""
import subprocess


class Failed(Exception):
    """A compiler refused a program; its text says why."""


def said(command, **more):
    """What a command prints, on both channels; Failed where it ends badly."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **more)
    if done.returncode:
        raise Failed(f"{command[0]}: " + done.stdout.strip()[-800:])
    return done.stdout
