# SPDX-License-Identifier: MIT
"""For the tests of builds: a folder of its own, commands in it, and counts of what was expected."""
import os
import pathlib
import subprocess
import tempfile


class Place:
    """A temporary folder; `env` goes to all commands."""

    def __init__(self, **env):
        self.env = {**os.environ, **env}
        self.keeper = tempfile.TemporaryDirectory(prefix='quern-install-')
        self.folder = pathlib.Path(self.keeper.name)
        self.passed = self.failed = 0

    def run(self, *command, **env):
        return subprocess.run(list(map(str, command)), cwd=self.folder, text=True,
                              env={**self.env, **env}, capture_output=True)

    def good(self, *command, **env):
        """What the command, which has to succeed, wrote to both its outputs."""
        done = self.run(*command, **env)
        out = done.stdout + done.stderr
        self.expect(done.returncode == 0, f'{command}: {done.returncode}\n{out[-3000:]}')
        return out

    def expect(self, condition, text):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print('FAILED', text)

    def end(self):
        """The exit status; prints the counts."""
        print(f'{self.passed} passed, {self.failed} failed')
        return 1 if self.failed else 0
