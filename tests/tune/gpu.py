#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpu.py FOLDER PROGRAM [Steps]: tools/bench/gpu.sh in FOLDER, with steps that the test makes up, and,
without the word Steps, whole with --small: killed, run again, beside a peer that the test makes up and
without one."""
import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

BENCH, PROGRAM = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
del sys.argv[1:3]
sys.path.insert(0, str(BENCH))
import gpu  # noqa: E402
import gpu_page  # noqa: E402

DEVICE = {'device': 'a', 'platform': 'b', 'driver': 'c', 'quern': '1'}
# Answers every case with 2 ms.
PEER = """#!/bin/sh
echo '{"version": "PyTorch made up"}'
while read -r line; do echo '[0.002, 0.003]'; done
"""


class Steps(unittest.TestCase):
    """With a clock of the test."""

    def setUp(self):
        keeper = tempfile.TemporaryDirectory(prefix='quern-test-')
        self.addCleanup(keeper.cleanup)
        self.folder, self.now, self.ran = pathlib.Path(keeper.name), 0, []
        patch = mock.patch.object(gpu.time, 'monotonic', lambda: self.now)
        patch.start()
        self.addCleanup(patch.stop)

    def step(self, name, limit, took=0, fails=None):
        def do(_):
            self.ran.append(name)
            self.now += 60 * took
            if fails:
                raise fails
            return {'seconds': 1}
        return gpu.Step(name, limit, do)

    def call(self, steps, minutes=8):
        """What a call of its own leaves to the next."""
        bench = types.SimpleNamespace(state=gpu.State(self.folder, False))
        with contextlib.redirect_stdout(io.StringIO()):
            return [step.name for step in gpu.call(bench, steps, minutes)], bench.state.told

    def test_a_call_ends_before_a_step_that_may_take_longer_and_the_next_goes_on(self):
        steps = [self.step('a', 3, 2), self.step('b', 3, 3), self.step('c', 4, 1), self.step('d', 1, 1)]
        self.assertEqual(self.call(steps)[0], ['c', 'd'])
        self.assertEqual(self.call(steps)[0], [])
        self.assertEqual(self.call(steps)[0], [])
        self.assertEqual(self.ran, ['a', 'b', 'c', 'd'])

    def test_what_the_whole_time_does_not_suffice_for_is_left_out_and_named(self):
        steps = [self.step(f'{i}', 8, 8) for i in range(5)]
        while self.call(steps)[0]:
            pass
        self.assertEqual(self.ran, ['0', '1', '2'])
        page = gpu_page.write(self.call(steps)[1], [step.name for step in steps])
        self.assertRegex(page, 'left out for want of time: 3, 4')

    def test_a_step_that_fails_is_named_and_not_repeated(self):
        steps = [self.step('a', 1, 1, gpu.Problem('no memory')), self.step('b', 1, 1)]
        self.call(steps)
        told = self.call(steps)[1]
        self.assertEqual(self.ran, ['a', 'b'])
        self.assertIn('- no memory: a\n', gpu_page.write(told, ['a', 'b']))

    def test_a_step_ends_at_its_limit(self):
        def hang(_):
            subprocess.run(['sleep', '60'], check=True)
        bench = types.SimpleNamespace(state=gpu.State(self.folder, False))
        with contextlib.redirect_stdout(io.StringIO()):
            gpu.take(bench, gpu.Step('a', 1, hang), 0.2)
        self.assertEqual(bench.state.told['steps']['a']['problem'], 'not done within 0 s')

    def test_figures_of_two_devices_never_meet(self):
        state = gpu.State(self.folder, False)
        state.recognise(DEVICE)
        state.save()
        again = gpu.State(self.folder, False)
        again.recognise(DEVICE)
        with self.assertRaises(SystemExit):
            again.recognise({**DEVICE, 'driver': 'd'})
        with self.assertRaises(SystemExit):
            gpu.State(self.folder, True)

    def test_ratios_are_judged_by_their_targets(self):
        def row(ours, theirs):
            return {'seconds': ours, 'peer_seconds': theirs, 'flops': 1e9}
        told = {'small': False, 'device': DEVICE, 'seconds': 60, 'steps': {
            'linear/a/f32': row(1, 0.5), 'linear/b/f32': row(1, 1), 'linear/a/f16': row(1, 0.59),
            'conv2d/a 3x3/2 b/bf16': row(1, 0.6)}}
        page = gpu_page.write(told, told['steps'])
        self.assertIn('| Matrix products | f32 | cuBLAS | 0.7 | 0.71 | 2 | met |', page)
        self.assertIn('| Matrix products | f16 | cuBLAS | 0.6 | 0.59 | 1 | MISSED |', page)
        self.assertIn('| Convolutions | bf16 | cuDNN | 0.6 | 0.60 | 1 | met |', page)
        self.assertIn('| Attention | f32 | FlashAttention | 0.5 | - | 0 | not measured |', page)
        self.assertIn('| a 3x3/2 b | bf16 | 1000.000 | 0.001 | 600.000 | 0.60 |', page)


class Whole(unittest.TestCase):
    def start(self, folder, python):
        return subprocess.Popen([BENCH / 'gpu.sh', '--small', '--program', PROGRAM, '--python', python,
                                 '--state', folder], text=True, stdout=subprocess.PIPE,
                                env={**os.environ, 'PYTHON': sys.executable,
                                     'TMPDIR': str(folder.parent)})

    def test_a_killed_call_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory(prefix='quern-test-') as name:
            folder, peer = pathlib.Path(name, 'state'), pathlib.Path(name, 'peer')
            peer.write_text(PEER)
            peer.chmod(0o755)
            process = self.start(folder, peer)
            for line in process.stdout:  # until the first product stands in the state
                if re.match(r'linear.* s$', line):
                    break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            known = gpu.State(folder, True).told['steps']
            self.assertIn('peer_seconds', known['linear/thin 16 rows/f32'])
            done = self.start(folder, 'no such interpreter')
            out = done.communicate()[0]
            page = (folder / 'results.md').read_text(encoding='utf-8')
            self.assertEqual(done.returncode, 0, out)
            self.assertFalse(set(known) & {line.split(' ..')[0] for line in out.splitlines()}, out)
            told = gpu.State(folder, True).told
            self.assertEqual([name for name, step in told['steps'].items() if 'problem' in step], [], page)
            self.assertEqual(set(told['steps']), {step.name for step in gpu.steps_of(True)})
            self.assertEqual(told['steps']['linear/thin 16 rows/f32'], known['linear/thin 16 rows/f32'])
            self.assertRegex(page, r"PyTorch: .*no such interpreter.*: attention/8 heads of 64, 256 tokens/f32")
            self.assertRegex(page, r'\| thin 16 rows \| f32 \| [\d.]+ \| [\d.]+ \| 6\.000 \| [\d.]+ \|')
            self.assertRegex(page, r'check --small`: \d+ passed, 0 failed')


if __name__ == '__main__':
    unittest.main()
