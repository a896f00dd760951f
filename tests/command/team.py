#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""team.py PROGRAM: predictions for members that are not here, beside the same worked out from the plans
of single devices; and what such a file may not say."""
import json
import re
import sys
import xml.etree.ElementTree

from bad_input import check
from support import Bench

FACTS = {'name': 'fast one', 'cpu': False, 'global_bytes': 1 << 30, 'max_alloc_bytes': 1 << 28}
SLOW = {'name': 'slow one', 'cpu': True, 'global_bytes': 1 << 30, 'max_alloc_bytes': 1 << 28}
MIB = 1 << 20

TEAM = """[members]
nodes = 1, 2, 4
batch = member
[device fast]
facts = facts.json
match = fast
count = 2
budget = 8MiB
micro_batch = 8
[link inside]
bandwidth = 1 GB/s
latency = 1 ms
[link between]
bandwidth = 100 Mbit/s
latency = 20 ms
overhead = 100 us
"""


def near(a, b):
    return abs(a - b) <= 1e-6 * abs(b)


def write(bench, text=TEAM, name='team.ini', **changes):
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (bench.folder / name).write_text(text)
    return name


def predict(bench, *args, shard='none'):
    return json.loads(bench.good('plan', 'r.ini', '--members', 'team.ini', '--json', '--shard', shard, *args))


def alone(bench, *args):
    """The plan of one device by itself."""
    return json.loads(bench.good('plan', 'r.ini', '--facts', 'facts.json', '--json', *args))


FAST = ('--device', 'fast', '--budget', '8MiB', '--micro-batch', 8)
DIM = 32
SMALL_TOWERS = ('--set', 'model.hidden1=64', '--set', 'model.hidden2=0', '--set', f'contrastive.dim={DIM}')

RATE, OVERHEAD = 100e6 / 8, 100e-6
TOLD = 2 * OVERHEAD + 0.02  # weights, before the first backward pass
CROSSING = {'direct': 4, 'ring': 3, 'hierarchical': 2}  # parts of a quarter, in half an exchange


def halves(size):
    """Seconds of half an exchange of two nodes of two, in one bucket."""
    return {'direct': 2 * (OVERHEAD + 2 * (size / 4) / RATE) + 0.02,
            'ring': 3 * (OVERHEAD + (size / 4) / RATE) + 2 * 0.02 + 0.001,
            'hierarchical': (size / 2) / 1e9 + OVERHEAD + 2 * (size / 4) / RATE + 0.021}


def check_formulas(bench):
    """Two nodes of two: parts of a quarter. Within a node one is sent, to the other node two, by both
    members, or one after another around the ring, twice between nodes. The one bucket waits for all of
    the backward pass."""
    write(bench)
    told = predict(bench)
    plan = alone(bench, *FAST)
    bench.expect([row['members'] for row in told['teams']] == [2, 4, 8], f'{told}')
    bench.expect([row['batch'] for row in told['teams']] == [48, 96, 192], f'{told}')
    row, size = told['teams'][1], 4 * plan['trained_parameters']
    bench.expect(told['gradient_bytes'] == size and size < MIB, f'{size}: {told}')
    bench.expect(near(row['compute_seconds'], plan['predicted_seconds']), f'{row}')
    bench.expect(near(row['backward_seconds'], plan['backward_seconds']), f'{row}')
    for name, half in halves(size).items():
        got, more = row['exchanges'][name], 2 * half + TOLD
        bench.expect(near(got['exposed_seconds'], more), f'{name}: {more} {got}')
        bench.expect(near(got['seconds'], plan['predicted_seconds'] + more), f'{name}: {got}')
        bench.expect(near(got['samples_per_second'], 96 / got['seconds']), f'{name}: {got}')
        bench.expect(near(got['efficiency'], plan['predicted_seconds'] / got['seconds']), f'{name}: {got}')
        bench.expect(near(got['bytes_sent'], 2 * 3 / 4 * size), f'{name}: {got}')
        bench.expect(near(got['bytes_between_nodes'], 2 * CROSSING[name] * size / 4), f'{name}: {got}')
    device, = row['devices']
    bench.expect(device['samples'] == 24 and device['micro_batch'] == 8 and device['name'] == 'fast' and
                 device['device'] == 'fast one' and device['budget_bytes'] == 8 * MIB and
                 device['peak_bytes_planned'] == plan['peak_bytes_planned'], f'{device} {plan}')


def check_batches(bench):
    """The batch of an update is split; of a member it is each one's, which is the default of nothing."""
    write(bench, **{'batch = member': ''})
    told = predict(bench, '--batch', 96)['teams']
    bench.expect([row['batch'] for row in told] == [96] * 3, f'{told}')
    bench.expect([row['devices'][0]['samples'] for row in told] == [48, 24, 12], f'{told}')
    few = alone(bench, *FAST, '--batch', 12)
    bench.expect(near(told[2]['compute_seconds'], few['predicted_seconds']), f'{told[2]} {few}')


def check_kinds(bench):
    """Two kinds, of which one has a share of its own and half its speed: all wait for it."""
    kind = ('[device slow]\nfacts = facts.json\nmatch = slow\nshare = 0.5\nspeed = 0.5\nbudget = 6MiB\n'
            'recompute = all\nmicro_batch = 4\n')
    for before in ('[device fast]', '[link inside]'):
        write(bench, **{before: kind + before, 'nodes = 1, 2, 4': 'nodes = 2'})
        check_two_kinds(bench)


def check_two_kinds(bench):
    row, = predict(bench)['teams']
    fast, slow = sorted(row['devices'], key=lambda device: device['name'])
    bench.expect(row['members'] == 6 and row['batch'] == 144, f'{row}')
    bench.expect((fast['samples'], slow['samples']) == (29, 14), f'{row}')
    plan = alone(bench, '--device', 'slow', '--budget', '6MiB', '--recompute', 'all', '--micro-batch', 4,
                 '--batch', 14)
    bench.expect(near(slow['seconds'], 2 * plan['predicted_seconds']), f'{slow} {plan}')
    bench.expect(slow['peak_bytes_planned'] == plan['peak_bytes_planned'] and slow['micro_batch'] == 4, f'{slow} {plan}')
    bench.expect(near(row['compute_seconds'], max(fast['seconds'], slow['seconds'])), f'{row}')
    bench.expect(near(row['backward_seconds'], 2 * plan['backward_seconds']), f'{row}')
    rate = 4 * 29 / fast['seconds'] + 2 * 14 / slow['seconds']
    direct = row['exchanges']['direct']
    bench.expect(near(direct['efficiency'], 144 / direct['seconds'] / rate), f'{row}')


def check_shared(bench):
    """Members share the optimizer's states, tell each other norms, and the second half of the exchange
    waits for the update."""
    write(bench)
    key = ('--set', 'train.optimizer=adamw')
    for row, other in zip(predict(bench, *key)['teams'], predict(bench, *key, shard='optimizer')['teams']):
        whole, part, members = *row['devices'], *other['devices'], row['members']
        states = alone(bench, *FAST, *key)['bytes_by_tag']['optimizer']
        bench.expect(whole['optimizer_bytes'] == states, f'{whole} {states}')
        bench.expect(0 < part['optimizer_bytes'] < states, f'{part} {states}')
        spared = whole['peak_bytes_planned'] - part['peak_bytes_planned']
        bench.expect(0 < spared <= states, f'{whole} {part}')
        told = 0.001 if row['nodes'] == 1 else 0.02 + 100e-6 * (members - 2)
        for name, exchange in row['exchanges'].items():
            more = other['exchanges'][name]['exposed_seconds'] - exchange['exposed_seconds']
            bench.expect(near(more, told), f'{members} {name}: {more} {told}')
        bench.expect(other['compute_seconds'] < row['compute_seconds'], f'{other} {row}')


def check_small_parameters(bench):
    """Parameters that are stored in 16 bits go out as such."""
    write(bench)
    key = ('--set', 'train.optimizer=adamw', '--set', 'memory.parameter_storage=bf16')
    for shard, size in (('none', 8), ('optimizer', 6)):
        told = predict(bench, *key, shard=shard)
        for row in told['teams']:
            sent = row['exchanges']['direct']['bytes_sent'] / (told['gradient_bytes'] / 4)
            members = row['members']
            bench.expect(near(sent, size * (members - 1) / members), f'{shard} {members}: {sent}')


def check_shown(bench):
    write(bench)
    out = bench.good('plan', 'r.ini', '--members', 'team.ini', '--svg', 'team.svg', '--shard', 'none')
    told = predict(bench)
    for row in told['teams']:
        direct = row['exchanges']['direct']
        line = rf'^ +{row["members"]} +{row["nodes"]} +{row["batch"]} .* {100 * direct["efficiency"]:.1f} %'
        bench.expect(re.search(line, out, re.M), f'no {line}: {out}')
    for text in ('device fast: 2 of a node, fast one, share 1', 'direct', 'ring', 'hierarchical'):
        bench.expect(text in out, f'no {text}: {out}')
    picture = (bench.folder / 'team.svg').read_text()
    root = xml.etree.ElementTree.fromstring(picture)
    circles = [part for part in root if part.tag.endswith('circle')]
    bench.expect(len(circles) == 2 * 3 * len(told['teams']), f'{len(circles)} points')
    left = {float(part.get('cx')) for part in circles}
    bench.expect(len(left) == 3 and max(left) - min(left) > 500, f'{left}')
    below = [float(part.get('cy')) for part in circles if float(part.get('cy')) > 300]
    efficiency = [row['exchanges'][name]['efficiency'] for name in ('hierarchical', 'ring', 'direct')
                  for row in told['teams']]
    bench.expect(all(abs(y - (330 + 240 * (1 - e))) < 0.1 for y, e in zip(below, efficiency)),
                 f'{below} {efficiency}')


def check_costs(bench):
    """What was timed on a device counts, wherever the file lies from."""
    (bench.folder / 'there').mkdir()
    cost = {'quern_tuning': 1}
    for name in ('facts.json', 'costs.json'):
        text = json.dumps(cost) if name == 'costs.json' else (bench.folder / name).read_text()
        (bench.folder / 'there' / name).write_text(text)
    write(bench, name='there/team.ini', **{'budget = 8MiB': 'budget = 8MiB\ncosts = costs.json'})
    check(bench, 'plan r.ini --members there/team.ini', 1, r'tuning')
    (bench.folder / 'there/costs.json').unlink()
    check(bench, 'plan r.ini --members there/team.ini', 1, r'there/costs\.json: No such file')


BAD = [
    ({'match = fast': 'match = none'}, 1, r'facts\.json: facts: no such device in it'),
    ({'facts = facts.json\n': ''}, 2, r'team\.ini: device fast: facts: missing'),
    ({'facts = facts.json': 'facts = gone.json'}, 1, r'gone\.json: No such file'),
    ({'count = 2': 'count = 0'}, 2, r"team\.ini:7: device fast\.count: '0' is too small"),
    ({'count = 2': 'counts = 2'}, 2, r'device fast\.counts: unknown key; did you mean count\?'),
    ({'count = 2': 'count = 257'}, 2, r'members: nodes: 4 of 257 members are more than 1024'),
    ({'budget = 8MiB': 'budget = 8MB'}, 2, r"device fast\.budget: '8MB' is not a size"),
    ({'budget = 8MiB': 'budget = 1KiB'}, 3, r'r\.ini: device fast: .*no plan fits 1\.00 KiB'),
    ({'micro_batch = 8': 'recompute = some'}, 2, r'device fast: .*no node is called some'),
    ({'micro_batch = 8': 'share = -1'}, 2, r"device fast\.share: '-1' is too small"),
    ({'micro_batch = 8': 'share = 0'}, 2, r'team\.ini: 2 members: share: all are 0'),
    ({'micro_batch = 8': 'speed = 0'}, 2, r"device fast\.speed: '0' is too small"),
    ({'nodes = 1, 2, 4': 'nodes = 1, 2, 2'}, 2, r"members\.nodes: '1, 2, 2' are no rising whole numbers"),
    ({'nodes = 1, 2, 4': 'nodes = 0'}, 2, r"members\.nodes: '0' are no rising"),
    ({'nodes = 1, 2, 4': 'nodes = 1.5'}, 2, r"members\.nodes: '1\.5' are no rising"),
    ({'nodes = 1, 2, 4': 'nodes = 2000'}, 2, r"members\.nodes: '2000' are no rising"),
    ({'nodes = 1, 2, 4': 'nodes = many'}, 2, r"members\.nodes: 'many' are no numbers"),
    ({'batch = member': 'batch = all'}, 2, r"members\.batch: 'all' is not one of them: update, member"),
    ({'batch = member': 'batch = update', 'nodes = 1, 2, 4': 'nodes = 1, 32'}, 2,
     r'team\.ini: 64 members: share: nothing of the batch is left for member 24'),
    ({'1 GB/s': '1 GB'}, 2, r"link inside\.bandwidth: '1 GB' is not a rate"),
    ({'1 GB/s': '0 GB/s'}, 2, r"link inside\.bandwidth: '0 GB/s' is no rate above 0"),
    ({'latency = 1 ms': 'latency = 1'}, 2, r"link inside\.latency: '1' is not a time"),
    ({'latency = 1 ms': 'latency = -1 ms'}, 2, r"link inside\.latency: '-1 ms' is below 0"),
    ({'[link inside]': '[link within]'}, 2, r'link within\.bandwidth: no such section: there are members'),
    ({'[link between]\nbandwidth = 100 Mbit/s': '[link between]'}, 2,
     r'team\.ini: link between: bandwidth: missing: there are several nodes'),
    ({'[link inside]\nbandwidth = 1 GB/s': '[link inside]'}, 2,
     r'team\.ini: link inside: bandwidth: missing: a node has several members'),
    ({'[device fast]': 'device fast'}, 2, r'team\.ini:4: neither a \[section\] nor a key'),
    ({'count = 2': 'count = 2\ncount = 3'}, 2, r'team\.ini:8: device fast\.count: given twice'),
]


def check_averages(bench):
    """Members that share the optimizer have parts of the averages, too."""
    write(bench)
    more = {}
    for shard in ('none', 'optimizer'):
        peaks = [predict(bench, *key, shard=shard)['teams'][-1]['devices'][0]['peak_bytes_planned']
                 for key in ((), ('--set', 'train.ema=0.9'))]
        more[shard] = peaks[1] - peaks[0]
    bench.expect(0 < more['optimizer'] < more['none'], f'bytes of averages: {more}')


def check_pairs(bench):
    """Pairs whose negatives are those of a micro-batch: members get whole micro-batches, and exchange
    gradients alone."""
    write(bench, **{'nodes = 1, 2, 4': 'nodes = 2'})
    key = ('--set', 'contrastive.mode=accumulate', '--micro-batch', 8)
    row, = json.loads(bench.good('plan', 'retrieve-fashion', '--members', 'team.ini', '--json', '--batch', 70,
                                 '--shard', 'none', *key))['teams']
    plan = json.loads(bench.good('plan', 'retrieve-fashion', '--facts', 'facts.json', '--json', *FAST, '--batch', 72,
                                 *key[:2]))
    device, = row['devices']
    bench.expect((row['members'], device['samples'], device['micro_batch']) == (4, 72, 8), f'{row}')
    bench.expect(near(device['seconds'], plan['predicted_seconds']), f'{device} {plan["predicted_seconds"]}')
    sent = 4 * plan['trained_parameters'] * 2 * 3 / 4
    bench.expect(near(row['exchanges']['direct']['bytes_sent'], sent), f'{row["exchanges"]} {sent}')


def check_whole_loss(bench):
    """After the forward passes queries of all samples go to all members, as results of an exchange do, then
    passages; the plan has them, with the gradient of each. Of pairs auto is gradcache."""
    write(bench)
    told, plan = (json.loads(bench.good('plan', 'retrieve-fashion', '--json', '--batch', 32, *SMALL_TOWERS, '--set',
                                        f'contrastive.mode={mode}', *where))
                  for mode, where in (('auto', ('--members', 'team.ini', '--shard', 'none')),
                                      ('gradcache', ('--facts', 'facts.json', *FAST))))
    row, size, rows = told['teams'][1], 4 * plan['trained_parameters'], 128 * 4 * DIM
    bench.expect(size < MIB and told['row_bytes'] == plan['row_bytes'] == 2 * 4 * DIM, f'{told} {plan}')
    for name, cell in halves(rows).items():
        got, more = row['exchanges'][name], 2 * halves(size)[name] + 2 * cell + TOLD
        bench.expect(near(got['exposed_seconds'], more), f'{name}: {more} {got}')
        bench.expect(near(got['bytes_sent'], 3 / 4 * (2 * size + 2 * rows)), f'{name}: {got}')
        bench.expect(near(got['bytes_between_nodes'], CROSSING[name] / 4 * (2 * size + 2 * rows)), f'{name}: {got}')
    for row in told['teams']:
        device, = row['devices']
        more = device['peak_bytes_planned'] - plan['peak_bytes_planned']
        bench.expect(more >= 2 * (row['batch'] - 32) * plan['row_bytes'], f'{device} {plan}')
        bench.expect(device['seconds'] > plan['predicted_seconds'], f'{device} {plan}')


def check_bad(bench):
    for changes, code, pattern in BAD:
        write(bench, **changes)
        check(bench, 'plan r.ini --members team.ini', code, pattern)
    write(bench, text='')
    check(bench, 'plan r.ini --members team.ini', 2, r'team\.ini: device NAME: no section')
    check(bench, 'plan r.ini --members gone.ini', 2, r'gone\.ini: No such file')
    text = ''.join(f'[device d{number}]\nfacts = facts.json\n' for number in range(9))
    write(bench, text=text)
    check(bench, 'plan r.ini --members team.ini', 2, r'device d8\.facts: more than 8 kinds of devices')
    write(bench)
    for option in ('--html x.html', '--frontier', '--explain x', '--facts facts.json', '--device fast', '--share 1:1'):
        check(bench, f'plan r.ini --members team.ini {option}', 2, rf'{option.split()[0]}: does not go with --members')
    check(bench, 'plan r.ini --members team.ini --set memory.early_updates=yes', 2, r'does not wait for other')
    check(bench, 'plan retrieve-fashion --members team.ini', 2, r'contrastive\.mode: contaccum: banks take pairs')
    check(bench, 'plan retrieve-fashion --set contrastive.mode=whole --members team.ini', 2,
          r'contrastive\.mode: the whole batch in one piece trains on one device')
    check(bench, 'plan retrieve-fashion --set contrastive.mode=accumulate --micro-batch 4 --members team.ini', 2,
          r'device fast\.micro_batch: negatives are those of a micro-batch')
    check(bench, 'plan r.ini --members team.ini --set train.batch=adaptive --set train.batch_min=8 --set '
          'train.batch_max=64 --set train.steps=5', 2, r'train\.batch: adaptive')
    check(bench, 'plan r.ini --members team.ini --svg gone/x.svg', 1, r'gone/x\.svg')


def check_single(bench):
    """One device alone needs no links, and exchanges nothing."""
    write(bench, text='[device one]\nfacts = facts.json\nmatch = slow\n')
    row, = predict(bench)['teams']
    plan, (device,) = alone(bench, '--device', 'slow'), row['devices']
    bench.expect(device['budget_bytes'] == plan['budget_bytes'] and
                 device['peak_bytes_planned'] == plan['peak_bytes_planned'], f'{device} {plan}')
    for exchange in row['exchanges'].values():
        bench.expect(near(exchange['seconds'], plan['predicted_seconds']) and exchange['efficiency'] == 1 and
                     exchange['bytes_sent'] == 0, f'{exchange}')


def main():
    with Bench(sys.argv[1]) as bench:
        facts = {'devices': [{'facts': FACTS}, {'facts': SLOW}]}
        (bench.folder / 'facts.json').write_text(json.dumps(facts))
        for part in (check_formulas, check_batches, check_kinds, check_shared, check_averages, check_pairs,
                     check_whole_loss, check_small_parameters, check_shown, check_costs, check_bad, check_single):
            part(bench)
        bench.end()


if __name__ == '__main__':
    main()
