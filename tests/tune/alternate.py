#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""alternate.py FOLDER: how tools/bench in FOLDER times sides in turns, with sides whose times the
test says."""
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import alternate  # noqa: E402

KEY = ('linear', '512', 'forward')
WORK = types.SimpleNamespace(cases={KEY: {'op': 'linear', 'group': 'forward', 'size': [512]}})


class Script:
    """A side that takes these seconds, round after round, then the last for ever."""

    def __init__(self, name, seconds, calls):
        self.name, self.seconds, self.calls = name, list(seconds), calls

    def time(self, work):
        self.calls.append(self.name)
        now = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        return {KEY: (now, 1.5 * now)} if now else {}


def run(ours, theirs, **options):
    calls, table = [], alternate.Table()
    sides = [Script('ours', ours, calls), Script('theirs', theirs, calls)]
    alternate.alternate(table, WORK, sides, **options)
    return table, sides, calls


class Alternation(unittest.TestCase):
    def test_sides_take_turns(self):
        _, _, calls = run([1], [2])
        self.assertEqual(calls, ['ours', 'theirs'] * 3)

    def test_figures_are_fastest_and_median(self):
        table, (ours, _), _ = run([1.2, 1.0, 1.1], [2])
        times = table.of(ours, KEY)
        self.assertEqual((times.fastest, times.median), (1.0, 1.5 * 1.1))
        self.assertAlmostEqual(times.spread, 1.2)

    def test_a_disturbed_row_is_repeated_until_three_rounds_agree(self):
        table, (_, theirs), calls = run([1], [20, 2, 16, 2.1, 2.2])
        self.assertEqual(calls, ['ours', 'theirs'] * 5)
        self.assertFalse(table.doubtful([theirs], [KEY]))
        self.assertEqual(table.of(theirs, KEY).fastest, 2)

    def test_there_is_an_end_and_the_row_is_marked(self):
        table, (ours, theirs), calls = run([1], [2 ** n for n in range(9)])
        self.assertEqual(len(calls), 2 * alternate.MOST_ROUNDS)
        self.assertTrue(table.doubtful([theirs], [KEY]))
        self.assertFalse(table.doubtful([ours], [KEY]))

    def test_a_side_without_an_answer_is_not_asked_again(self):
        table, (_, theirs), calls = run([1], [None])
        self.assertEqual(calls, ['ours', 'theirs', 'ours', 'ours'])
        self.assertIsNone(table.of(theirs, KEY).fastest)

    def test_more_rounds_can_be_asked_for(self):
        _, _, calls = run([1], [2], rounds=12)
        self.assertEqual(len(calls), 24)


PEER = '''
import json, sys, time
print(json.dumps({'version': 'Stub 1'}), flush=True)
for line in sys.stdin:
    case = json.loads(line)
    if case['op'] == 'end':
        sys.exit('no such module')
    if case['op'] == 'hang':
        time.sleep(60)
    print(json.dumps([1, 2] if case['op'] == 'linear' else None), flush=True)
'''


class Peers(unittest.TestCase):
    def ask(self, op, patience=30):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / 'peer.py'
            program.write_text(PEER)
            peer = alternate.Peer('stub', [sys.executable, program], patience)
            work = types.SimpleNamespace(cases={'key': {'op': op}})
            answers = [peer.time(work), peer.time(work)]
            peer.close()
        return peer, answers

    def test_it_is_asked_case_by_case(self):
        peer, answers = self.ask('linear')
        self.assertEqual(peer.version, 'Stub 1')
        self.assertEqual(answers, [{'key': [1, 2]}] * 2)

    def test_what_it_does_not_know_is_no_case(self):
        self.assertEqual(self.ask('sort')[1], [{}, {}])

    def test_why_it_ended_is_told(self):
        peer, answers = self.ask('end')
        self.assertEqual((peer.missing, answers), ('no such module', [{}, {}]))

    def test_it_has_only_so_much_time(self):
        peer, answers = self.ask('hang', patience=1)
        self.assertEqual((peer.missing, answers), ('no answer within 1 s', [{}, {}]))

    def test_a_peer_that_is_not_there(self):
        peer = alternate.Peer('none', ['/nonesuch/python'], 1)
        self.assertIn('/nonesuch', peer.missing)
        self.assertEqual(peer.time(WORK), {})


if __name__ == '__main__':
    unittest.main()
