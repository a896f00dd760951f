#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan_page.py PROGRAM: the page of `quern plan --html` says what the plan says, needs no network and
takes names as text."""
import json
import sys

from pages import Page
from support import Bench

NAME = '<b>&\'".ini'


def check_page(bench):
    plan = json.loads(bench.good('plan', NAME, '--json', '--html', 'p.html'))
    points = json.loads(bench.good('plan', NAME, '--json', '--frontier'))
    page = Page(bench.folder / 'p.html')
    page.check_alone(bench)
    bench.expect('b' not in page.tags and f'<title>{NAME}' not in page.text, 'an element from outside')
    bench.expect(page.titles == ['Memory over the cycle', 'Other budgets'], f'{page.titles}')
    for name, value in (('budget', '4 MiB'), ('micro-batch', str(plan['micro_batch'])),
                        ('recomputed steps', f'{plan["recomputed_steps"]} of {plan["steps"]}'),
                        ('hash', plan['hash'])):
        bench.expect(page.fact(name) == [value], f'{name}: {page.fact(name)}')
    memory = page.chart('addresses over steps')['data']
    bench.expect([(phase['name'], len(phase['steps'])) for phase in memory['phases']] ==
                 [(phase['name'], len(phase['steps'])) for phase in plan['phases']], 'phases')
    bench.expect(memory['pools'] == plan['pools'] and max(memory['live']) == plan['live_bytes'] and
                 memory['live'][memory['peak_at']] == plan['live_bytes'], 'bytes')
    used = {memory['tags'][array[1]] for array in memory['arrays']}
    bench.expect({tag for tag, size in plan['bytes_by_tag'].items() if size} <= used, f'{used}')
    alive = [array for array in memory['arrays'] if array[2] <= memory['peak_at'] <= array[3]]
    rows = page.tables[1][1:]
    bench.expect(len(rows) == len(alive) and
                 sorted(row[0] for row in rows) == sorted(array[0] for array in alive), f'{rows}')
    bench.expect(all(row[4] for row in rows) and rows[0][0] in
                 [array[0] for array in alive if array[4] == max(a[4] for a in alive)], f'{rows[0]}')
    bench.expect(page.chart('seconds of an update over bytes')['data'] == points, 'the frontier')
    rows = page.tables[2][1:]
    bench.expect([int(row[1]) for row in rows] == [point['bytes'] for point in points], f'{rows}')
    fits = [point['bytes'] for point in points if point['bytes'] <= plan['budget_bytes']]
    bench.expect([int(row[1]) for row in rows if 'this plan' in row[6]] == fits[-1:], f'{rows}')


def check_bad(bench):
    for args, code in ((['r.ini', '--html', 'nowhere/p.html'], 1),
                       (['r.ini', '--html', 'q.html', '--budget', '1KiB'], 3)):
        got, _, error = bench.run('plan', *args)
        bench.expect(got == code and error.count('\n') == 1, f'{args}: {got} {error}')
    bench.expect(not list(bench.folder.glob('q.html*')), 'a page of no plan')


def main():
    with Bench(sys.argv[1]) as bench:
        bench.recipe(NAME)
        check_page(bench)
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
