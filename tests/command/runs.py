#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""runs.py PROGRAM: training, stopping, going on, evaluating and planning, seen from outside."""
import hashlib
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from support import TEST, TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)
SUMMARY = ['peak_bytes_planned', 'peak_bytes_allocated', 'budget_bytes', 'micro_batch',
           'micro_steps', 'recomputed_steps', 'plan_hash', 'test_accuracy', 'test_loss']

NETWORK = """[model]
[data]
name = nowhere
shape = 3,64,64
classes = 10
[train]
batch = 4
steps = 1
[memory]
budget = 2GiB
micro_batch = 4
"""
MODELS = ['model.name=cnn model.group=4', 'model.name=mlp',
          *(f'model.name=resnet model.group=4 model.depth={depth}' for depth in (18, 50, 152)),
          *(f'model.name=vgg model.pool=2 model.group=4 model.depth={depth} model.batch_norm={norm}'
            for depth, norm in ((11, 0), (16, 1), (19, 0))),
          *(f'model.name=gpt model.layers=3 model.fused={fused}' for fused in (0, 1))]


def lines(bench, name):
    return [json.loads(line) for line in (bench.folder / name).read_text().splitlines()]


def digest(bench, out):
    folder = bench.folder / out / 'last'
    return [hashlib.sha256((folder / f'{name}.safetensors').read_bytes()).hexdigest()
            for name in ('weights', 'optimizer')]


def check_metrics(bench):
    out = bench.good('train', 'r.ini', '--metrics', 'm.json', '--out', 'whole')
    bench.expect('budget: 4 MiB (of the recipe)' in out, 'the budget is not named')
    bench.expect('planned peak' in out and 'test accuracy' in out, 'the plan is not printed')
    plan, *rows, summary = lines(bench, 'm.json')
    updates = [row for row in rows if 'step' in row]
    bench.expect(list(plan) == ['plan'] and list(summary) == ['summary'], 'first and last line')
    bench.expect([u['step'] for u in updates] == list(range(UPDATES)), 'steps')
    bench.expect(all(list(u) == ['step', 'loss', 'lr', 'grad_norm', 'samples', 'seconds']
                     and u['samples'] == 24 for u in updates), 'keys of an update')
    bench.expect(updates[-1]['loss'] < 0.5 * updates[0]['loss'], 'the loss does not fall')
    summary = summary['summary']
    bench.expect(all(key in summary for key in SUMMARY), f'keys of the summary: {summary}')
    bench.expect(summary['peak_bytes_planned'] == summary['peak_bytes_allocated']
                 <= summary['budget_bytes'] == 4 << 20, f'bytes: {summary}')
    bench.expect(summary['test_accuracy'] > 0.9 and not summary['interrupted'], f'{summary}')
    evaluations = [row['evaluation'] for row in rows if 'evaluation' in row]
    bench.expect([e['updates'] for e in evaluations] == [-(-TRAIN // 24), UPDATES] and
                 [int(e['epoch']) for e in evaluations] == [1, 2], f'evaluations: {evaluations}')
    bench.expect(all(evaluations[-1][key] == summary[key] for key in summary if key[:5] == 'test_'),
                 f'the last evaluation is not that of the summary: {evaluations[-1]}')
    evaluation = json.loads(bench.good('eval', 'whole', '--json'))
    bench.expect(evaluation['test_samples'] == TEST, 'samples of the evaluation')
    classes = evaluation['test_classes']
    bench.expect([c['labels'] for c in classes] == [TEST // 3] * 3, f'{classes}')
    bench.expect(abs(sum(c['accuracy'] for c in classes) / 3 - evaluation['test_accuracy']) < 1e-9 and
                 not any('name' in c for c in classes), f'{classes}')
    rows = bench.good('eval', 'whole').splitlines()
    bench.expect(len(rows) == 5 and all(re.fullmatch(rf' +\d+\.\d\d % +{TEST // 3} +{i}', row)
                                        for i, row in enumerate(rows[2:])), f'{rows}')
    for key in ('test_accuracy', 'test_loss'):
        bench.expect(evaluation[key] == summary[key], f'eval gives another {key}')
    for weights in ('whole/last', 'whole/last/weights.safetensors'):
        again = json.loads(bench.good('eval', 'r.ini', '--weights', weights, '--json'))
        bench.expect(again == evaluation, f'eval with {weights} differs')
    bench.expect(not bench.good('train', 'r.ini', '--quiet', '--steps', 2), '--quiet prints')


def resume_until_done(bench, out, metrics):
    """Kills again and again; gives how often."""
    kills = 0
    while True:
        process = bench.start('resume', out, '--metrics', metrics, '--quiet')
        if kills < 4:
            time.sleep(random.uniform(0.02, 0.6) if kills else 0.02)
            process.kill()
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
        else:
            process.communicate()
        if process.returncode == 0:
            return kills


def check_kill(bench):
    process = bench.start('train', 'r.ini', '--quiet', '--out', 'killed', '--metrics', 'k.json')
    while not (bench.folder / 'killed/last').exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.communicate()
    kills = resume_until_done(bench, 'killed', 'k.json')
    bench.expect(kills > 0, 'nothing was killed')
    bench.expect(digest(bench, 'killed') == digest(bench, 'whole'), 'other weights after kill -9')
    seen = {}
    for line in lines(bench, 'k.json'):
        if 'step' in line:
            values = (line['loss'], line['lr'], line['grad_norm'])
            bench.expect(seen.setdefault(line['step'], values) == values, 'a figure changed')
    bench.expect(sorted(seen) == list(range(UPDATES)), 'figures are missing')


def check_signal(bench, number):
    name = f'signal{number}'
    process = bench.start('train', 'r.ini', '--quiet', '--out', name, '--metrics', f'{name}.json',
                          '--epochs', 100000)
    path = bench.folder / f'{name}.json'
    while (not path.exists() or '"step":7,' not in path.read_text()) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    _, error = process.communicate()
    summary = lines(bench, f'{name}.json')[-1]['summary']
    bench.expect(process.returncode == 128 + number and not error,
                 f'{number}: {process.returncode} {error}')
    bench.expect(summary['interrupted'] and summary['updates'] >= 8, f'{number}: {summary}')
    last = (bench.folder / name / 'last').resolve().name
    bench.expect(last == f'update-{summary["updates"]:08d}', f'{last} is not the last update')


def check_interrupted(bench):
    """A run stopped by a signal goes on to the same end."""
    process = bench.start('train', 'r.ini', '--quiet', '--out', 'stopped', '--metrics', 's.json')
    path = bench.folder / 's.json'
    while (not path.exists() or '"step":2,' not in path.read_text()) and process.poll() is None:
        time.sleep(0.0005)
    process.send_signal(signal.SIGINT)
    process.communicate()
    bench.expect(process.returncode == 128 + signal.SIGINT, f'SIGINT: {process.returncode}')
    with path.open('a') as file:
        file.write('{"step":3,"lo')  # what a kill in the middle of a line would leave
    bench.good('resume', 'stopped', '--quiet', '--metrics', 's.json')
    bench.expect(digest(bench, 'stopped') == digest(bench, 'whole'), 'other weights after SIGINT')
    bench.expect(lines(bench, 's.json')[-1]['summary']['updates'] == UPDATES, 's.json')
    bench.good('resume', 'stopped/last', '--quiet')
    bench.good('resume', 'stopped', '--quiet', '--replan', '--budget', '3MiB', '--epochs', 3)
    bench.good('train', 'r.ini', '--quiet', '--out', 'three', '--epochs', 3)
    best = (bench.folder / 'stopped/best').resolve()
    bench.expect(best.parent.name == 'stopped' and best.is_dir(), 'there is no best')


def check_budget_origin(bench):
    """Where the budget of a training that goes on comes from, whatever the recipe says."""
    (bench.folder / 'b.txt').write_text('3MiB')
    bench.good('train', 'r.ini', '--quiet', '--steps', 1, '--budget-file', 'b.txt', '--out', 'from')
    for options, origin in (([], '3 MiB (of the checkpoint)'),
                            (['--replan'], '3 MiB (of the checkpoint)'),
                            (['--budget', '2MiB'], '2 MiB (--budget)'),
                            (['--budget-file', 'b.txt'], '3 MiB (--budget-file)')):
        out = bench.good('resume', 'from', '--steps', 1, *options)
        bench.expect(f'budget: {origin}\n' in out, f'{options}: not {origin}: {out}')


def check_other_folder(bench):
    """Going on into another folder: one that holds a training is left alone; a new one gets a best."""
    before = digest(bench, 'three')
    code, _, error = bench.run('resume', 'whole', '--epochs', 4, '--out', 'three')
    bench.expect(code == 2 and 'three: holds a training already' in error, f'{code}: {error}')
    bench.expect(digest(bench, 'three') == before, 'another training was touched')
    bench.good('resume', 'whole', '--quiet', '--epochs', 3, '--out', 'fresh')
    bench.expect((bench.folder / 'fresh/best/weights.safetensors').exists(), 'fresh has no best')
    bench.good('resume', 'fresh', '--quiet', '--out', bench.folder / 'fresh')


def check_data(bench):
    """A training goes on with the samples it began with, or not at all."""
    images = bench.folder / 'data/train-images-idx3-ubyte'
    labels = bench.folder / 'data/train-labels-idx1-ubyte'
    for path in (images, labels):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        code, _, error = bench.run('resume', 'whole', '--epochs', 3)
        bench.expect(code == 1 and error == 'quern: whole: data: not the samples this training '
                     'began with\n', f'{path}: {code}: {error}')
        path.write_bytes(whole)
    bench.good('resume', 'whole', '--quiet', '--epochs', 3)


def check_data_folder(bench):
    """The folder that QN_DATA_DIR named is known to the checkpoint."""
    bench.recipe('named.ini', **{'path = {data}': 'name = fashion-mnist'})
    bench.good('train', 'named.ini', '--quiet', '--steps', 2, '--out', 'named', QN_DATA_DIR='data')
    bench.good('resume', 'named', '--quiet', '--steps', 3, QN_DATA_DIR='/nonesuch')


def check_any_folder(bench):
    """Paths of data that no line of a recipe could hold come back from a checkpoint."""
    folder = bench.folder / 'a ;b' / ('x' * 200) / 'data'
    folder.parent.mkdir(parents=True)
    shutil.copytree(bench.folder / 'data', folder)
    bench.good('train', 'r.ini', '--quiet', '--steps', 2, '--out', 'any', '--set',
               f'data.path={folder}')
    bench.good('resume', 'any', '--quiet', '--steps', 3)


def check_two(bench):
    """One training saves in a folder; another is kept out of it, and an evaluation gets through."""
    process = bench.start('train', 'r.ini', '--quiet', '--out', 'busy', '--epochs', 100000,
                          '--set', 'train.save_every=3')
    while not (bench.folder / 'busy/last').exists() and process.poll() is None:
        time.sleep(0.001)
    for command in (['resume', 'busy'], ['resume', 'busy/last', '--out', 'busy']):
        code, _, error = bench.run(*command)
        bench.expect(code == 1 and 'busy: another training saves here' in error, f'{code}: {error}')
    for _ in range(5):
        bench.good('eval', 'busy')
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate()
    bench.expect(process.returncode == 128 + signal.SIGTERM and not error,
                 f'{process.returncode}: {error}')


def check_resume_signal(bench):
    process = bench.start('resume', 'whole', '--quiet', '--epochs', 100000, '--out', 'on',
                          '--metrics', 'on.json')
    path = bench.folder / 'on.json'
    while (not path.exists() or '"step"' not in path.read_text()) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    bench.expect(process.returncode == 128 + signal.SIGINT and not error,
                 f'{process.returncode}: {error}')


def check_rate(bench):
    """The first update counts when it has finished, not when it was enqueued: large ones show that."""
    wide = {'hidden1 = 64': 'hidden1 = 4096', 'hidden2 = 0': 'hidden2 = 4096', '4MiB': '400MiB',
            'batch = 24': 'batch = 200', 'save_every = 5': 'eval_every = 0'}
    bench.recipe('wide.ini', **wide)
    out = bench.good('train', 'wide.ini', '--steps', 6, '--metrics', 'w.json')
    seconds = [row['seconds'] for row in lines(bench, 'w.json') if 'step' in row]
    first = float(re.search(r'update 1/6 .* ([\d.]+) samples/s', out)[1])
    bench.expect(min(seconds) > 0.2 * sorted(seconds)[3], f'{seconds}')
    bench.expect(abs(first * seconds[0] - 200) < 0.05 * 200 + seconds[0], f'{first}: {seconds}')


def check_budget(bench):
    code, out, error = bench.run('plan', 'r.ini', '--json', '--budget', '1KiB')
    smallest = json.loads(out)['smallest_budget_bytes']
    bench.expect(code == 3 and str(smallest) in error, f'{code}: {error}')
    points = json.loads(bench.good('plan', 'r.ini', '--frontier', '--json'))
    bench.expect(points[0]['bytes'] == smallest, f'the frontier begins at {points[0]}')
    bench.expect(all(a['bytes'] < b['bytes'] and a['seconds'] > b['seconds']
                     for a, b in zip(points, points[1:])), f'{points}')
    code, _, error = bench.run('train', 'r.ini', '--budget', smallest - 1, '--metrics', 'b.json')
    bench.expect(code == 3 and str(smallest) in error, f'one byte less: {code}: {error}')
    bench.expect(lines(bench, 'b.json')[-1]['summary']['smallest_budget_bytes'] == smallest,
                 'smallest_budget_bytes in the metrics')
    bench.good('train', 'r.ini', '--quiet', '--budget', smallest, '--metrics', 'b.json')
    summary = lines(bench, 'b.json')[-1]['summary']
    bench.expect(summary['peak_bytes_allocated'] == smallest, f'{summary}')


def check_profile(bench):
    """A trace of one update: every step once, in time, with the bytes of the plan."""
    bench.good('train', 'r.ini', '--quiet', '--steps', 5, '--micro-batch', 5, '--recompute', 'all',
               '--metrics', 'm.json', '--profile', 'p.json')
    plan = lines(bench, 'm.json')[0]['plan']
    events = json.loads((bench.folder / 'p.json').read_text())['traceEvents']
    spans = [event for event in events if event['ph'] == 'X']
    steps = {phase['name']: len(phase['steps']) for phase in plan['phases']}
    want = (steps['first micro-step'] + 3 * steps['later micro-steps'] + steps['remainder'] +
            steps['update'])
    bench.expect(len(spans) == want, f'{len(spans)} steps, not {want}')
    kinds = {event['cat'] for event in spans}
    bench.expect(kinds == {'forward', 'recompute', 'backward', 'update', 'transfer'}, f'{kinds}')
    bench.expect(sum(event['cat'] == 'recompute' for event in spans) ==
                 sum(len(step) > 2 for phase in plan['phases'] for step in phase['steps'] *
                     (3 if phase['name'] == 'later micro-steps' else 1)), 'recomputed steps')
    bench.expect(all(a['ts'] + a['dur'] <= b['ts'] + 1 for a, b in zip(spans, spans[1:])),
                 'steps overlap')
    most = max(event['args']['bytes'] for event in events if event['ph'] == 'C')
    bench.expect(most == plan['live_bytes'], f"{most} bytes, not {plan['live_bytes']}")
    code, _, error = bench.run('train', 'r.ini', '--steps', 2, '--profile', 'nowhere/p.json')
    bench.expect(code == 1 and 'nowhere/p.json' in error, f'{code}: {error}')


def check_plan(bench):
    said = bench.good('plan', 'r.ini', '--explain', 'fc1.weight')
    bench.expect('fc1.weight, parameters: f32' in said and 'pool 0 at byte' in said, said)
    code, _, error = bench.run('plan', 'r.ini', '--explain', 'conv99')
    bench.expect(code == 2 and 'no tensor is called conv99' in error, f'{code}: {error}')
    plan = json.loads(bench.good('plan', 'r.ini', '--json', '--svg', 'p.svg'))
    bench.expect(plan['budget_bytes'] == 4 << 20, 'the budget of the plan')
    bench.expect((bench.folder / 'p.svg').read_text().lstrip().startswith('<'), 'no picture')
    devices = bench.good('devices', '--json')
    bench.expect('facts' in json.loads(devices)['devices'][0], 'devices have no facts')
    (bench.folder / 'facts.json').write_text(devices)
    elsewhere = json.loads(bench.good('plan', 'r.ini', '--json', '--facts', 'facts.json',
                                      OCL_ICD_VENDORS='/nonesuch', OCL_ICD_FILENAMES=''))
    bench.expect(elsewhere['device'] == plan['device'], 'the facts name another device')
    code, out, error = bench.run('plan', 'r.ini', OCL_ICD_VENDORS='/nonesuch',
                                 OCL_ICD_FILENAMES='')
    bench.expect(code == 0 and 'planned peak' in out and 'default facts' in error, error)
    code, _, error = bench.run('plan', 'fashion-mnist', QN_DATA_DIR='/nonesuch')
    bench.expect(code == 0, f'a recipe with its shape needs no data: {error}')
    for recompute in ('none', 'all', 'auto'):
        bench.good('plan', 'r.ini', '--recompute', recompute)


def check_waiting(bench):
    """A plan that takes long says so on a terminal."""
    terminal, end = pty.openpty()
    process = subprocess.Popen([bench.program, 'plan', 'fashion-resnet18', '--plan-effort',
                                'thorough', '--budget', '100MiB'], stderr=end, cwd=bench.folder,
                               stdout=subprocess.DEVNULL, env={**os.environ, 'QN_CACHE_DIR': ''})
    os.close(end)
    said = os.read(terminal, 100)
    process.kill()
    process.wait()
    os.close(terminal)
    bench.expect(said == b'\r\x1b[Kplanning ...', f'{said}')


def check_models(bench):
    bench.recipe('net.ini', NETWORK)
    bench.recipe('text.ini', NETWORK, **{'name = nowhere\nshape = 3,64,64\nclasses = 10':
                                         'kind = text\npath = nowhere\nlength = 32'})
    for model in MODELS:
        sets = [word for pair in model.split() for word in ('--set', pair)]
        name = 'text.ini' if 'gpt' in model else 'net.ini'
        code, out, error = bench.run('plan', name, '--recompute', 'none', *sets)
        bench.expect(code == 0 and 'planned peak' in out, f'{model}: {out}')
        few = 'group=4' in model and 'batch_norm=0' not in model
        bench.expect(error.count('warning: batch norm of groups of 4') == few
                     and error.count('\n') == few, f'{model}: {error}')
    code, _, error = bench.run('plan', 'net.ini', '--set', 'model.name=vgg')
    bench.expect(code == 2 and 'net.ini' in error and 'averaged to 7 x 7' in error, error)


def check_schedules(bench):
    bench.good('train', 'r.ini', '--quiet', '--metrics', 'g.json', '--steps', 6, '--set',
               'train.batch_schedule=0:8,2:16,4:24', '--set', 'train.schedule=one-cycle',
               '--set', 'train.eval_every=2 updates', '--set', 'train.optimizer=adamw')
    updates = [row for row in lines(bench, 'g.json') if 'step' in row]
    bench.expect([u['samples'] for u in updates] == [8, 8, 16, 16, 24, 24], f'{updates}')
    rates = [u['lr'] for u in updates]
    bench.expect(abs(max(rates) - 0.1) < 0.02 and rates[-1] < 1e-6, f'{rates}')
    out = bench.good('train', 'r.ini', '--steps', 6, '--set', 'train.eval_every=2 updates')
    bench.expect(len(re.findall('test accuracy', out)) == 3, out)


def check_adaptive(bench):
    """The batch grows with the noise, whether or not one waits to save, and goes on after a stop."""
    bench.recipe('a.ini', **{'batch = 24': 'batch = adaptive\nbatch_min = 2\nbatch_max = 9',
                             'epochs = 2': 'steps = 120\neval_every = 0', 'lr = 0.1': 'lr = 0.01',
                             'momentum = 0.9': '', 'schedule = cosine': ''})
    figures = []
    for name, arguments in (('a1', ['--out', 'a1']), ('a2', [])):
        bench.good('train', 'a.ini', '--quiet', '--metrics', f'{name}.json', *arguments)
        plan, *rows = lines(bench, f'{name}.json')
        updates = [row for row in rows if 'step' in row]
        figures.append([(u['loss'], u['samples'], u.get('noise_scale')) for u in updates])
    bench.expect(plan['plan']['micro_batch'] == 1, f"micro-batch {plan['plan']['micro_batch']}")
    bench.expect(figures[0] == figures[1], 'saving changes what an adaptive batch does')
    sizes = [samples for _, samples, _ in figures[0]]
    bench.expect(sizes[0] == 2 and set(sizes) - {2} and set(sizes) <= {2, 4, 8}, f'{sizes}')
    scales = [scale for _, _, scale in figures[0] if scale is not None]  # it may be infinite
    bench.expect(len(scales) > 60 and all(scale >= 0 for scale in scales), f'{scales}')
    bench.good('train', 'a.ini', '--quiet', '--steps', 43, '--out', 'a3')
    for steps in (87, 120):
        bench.good('resume', 'a3', '--quiet', '--steps', steps)
    bench.expect(digest(bench, 'a3') == digest(bench, 'a1'), 'resume gives other weights')


def check_tuning(bench):
    """What was tuned is used, and a training goes on with what it began with."""
    cache = bench.folder / 'cache'
    cache.mkdir(mode=0o700)
    env = {'QN_CACHE_DIR': str(cache)}
    out = bench.good('tune', 'r.ini', **env)
    bench.expect(re.search(r'[1-9]\d* kernels timed', out), out)
    bench.expect('0 kernels timed' in bench.good('tune', 'r.ini', **env), 'tuned twice')
    file, = cache.glob('tuning-*.json')
    table = json.loads(file.read_text())
    bench.expect(table['choices'] and not any(test['reason'] for test in table['self_tests']),
                 f'{table}')
    for choice in table['choices']:  # others than those that are fastest here
        if choice['task'].startswith('linear/'):
            choice['variant'], choice['setting'] = 'gpu', 'large'
    file.write_text(json.dumps(table))
    for mode, steps, out in (('stored', 4, 'tuned'), ('stored', 2, 'half')):
        bench.good('train', 'r.ini', '--tune', mode, '--steps', steps, '--out', out, '--quiet',
                   '--set', 'train.schedule=constant', **env)
    note = (bench.folder / 'half' / 'last' / 'train.json').read_text()
    bench.expect('"linear", "forward", "gpu' in note, 'the tuned variants are not in the checkpoint')
    file.unlink()
    bench.good('resume', 'half', '--steps', 4, '--quiet', **env)
    bench.expect(digest(bench, 'half') == digest(bench, 'tuned'), 'resumed with other kernels')
    bench.good('train', 'r.ini', '--steps', 4, '--out', 'plain', '--quiet', '--set',
               'train.schedule=constant', **env)
    bench.expect(digest(bench, 'plain') != digest(bench, 'tuned'), 'the variants do not matter')
    bench.good('train', 'r.ini', '--tune', 'quick', '--steps', 1, '--quiet', QN_CACHE_DIR='')
    cache.chmod(0o770)
    code, _, error = bench.run('train', 'r.ini', '--tune', 'quick', '--steps', 1, '--quiet', **env)
    bench.expect(code == 0 and re.fullmatch(r'quern: warning: tuning-\S+: could not be written to '
                                            r'the cache folder: .*others may write to it\n', error),
                 f'a cache that others may write to: {code}: {error}')


def plan_of(bench, *args, **env):
    out = bench.good('train', 'r.ini', '--tune', 'quick', '--steps', 1, *args, **env)
    share = re.search(r'costs measured for \d+ of \d+ steps, (\d+) % of the time; plan (\w+)', out)
    bench.expect(share, out)
    return out, int(share[1]), share[2]


def check_quick_tuning(bench):
    """A first run ends in a plan whose steps are measured; the next has the same."""
    cache = bench.folder / 'quick'
    cache.mkdir(mode=0o700)
    env = {'QN_CACHE_DIR': str(cache)}
    out, share, plan = plan_of(bench, **env)
    bench.expect(re.search(r'tuned \d+ kernels: compiled in [\d.]+ s, timed in [\d.]+ s\n', out), out)
    bench.expect(share >= 95, f'{share} % measured')
    file, = cache.glob('tuning-*.json')
    before = file.read_text()
    bench.expect(all(choice['seconds'] > 0 for choice in json.loads(before)['choices']),
                 'what was not timed is in the table')
    again, _, same = plan_of(bench, **env)
    bench.expect('tuned' not in again and same == plan, f'{same} after {plan}: {again}')
    bench.expect(file.read_text() == before, 'the table changed')


def check_tuning_signal(bench):
    """Tuning ends between two kernels, and keeps what it found."""
    for number, (signal_number, code) in enumerate(((signal.SIGINT, 130), (signal.SIGTERM, 143))):
        cache = bench.folder / f'interrupted{number}'
        cache.mkdir(mode=0o700)
        process = bench.start('tune', 'r.ini', QN_CACHE_DIR=str(cache))
        deadline = time.monotonic() + 60
        while not list(cache.glob('*')) and time.monotonic() < deadline:
            time.sleep(0.01)  # the first program is built
        process.send_signal(signal_number)
        out = process.communicate(timeout=60)[0]
        bench.expect(process.returncode == code, f'{process.returncode}: {out}')
        timed = re.match(r'(\d+) kernels timed: compiled in', out)
        bench.expect(timed, out)
        kept = [len(json.loads(file.read_text())['choices']) for file in cache.glob('tuning-*')]
        bench.expect(sum(kept) == int(timed[1]), f'{kept} are kept: {out}')


def check_bench(bench):
    out = bench.good('bench', 'r.ini')
    bench.expect(re.search(r'forward +\S+ \* +[\d.]+ ms +[\d.]+ GFLOP/s', out), out)
    report = json.loads(bench.good('bench', '--only', 'gpt2 projection', '--tune', 'off', '--all',
                                   '--json'))
    bench.expect(report['flops_ceiling'] > 0 and report['bytes_per_second_ceiling'] > 0,
                 'no ceilings')
    groups = {(r['group'], r['variant']) for r in report['results'] if r['outcome'] == 'timed'}
    blas = json.loads(bench.good('devices', '--json'))['devices'][0]['facts']['blas']
    bench.expect((('forward', 'clblast') in groups) == blas and len(groups) > 4, f'{groups}')
    bench.expect(all(r['op'] == 'linear' and r['outcome'] != 'failed' for r in report['results']),
                 f"{report['results']}")
    # Activations are in the storage type, those that are inputs of the graph too.
    read = {}
    for storage in ('f32', 'bf16'):
        report = json.loads(bench.good('bench', '--only', 'attention 8 heads of 64, 256', '--tune', 'off', '--json',
                                       '--storage', storage))
        read[storage] = next(r['bytes'] for r in report['results'] if r['group'] == 'forward')
    bench.expect(read['bf16'] < 0.6 * read['f32'], f'bytes of attention by storage: {read}')
    # The weight is nearly all that a product of one row reads.
    read = {}
    for storage in ('f32', 'bf16'):
        report = json.loads(bench.good('bench', '--only', 'thin 1 row', '--tune', 'off', '--json', '--set',
                                       f'memory.parameter_storage={storage}'))
        read[storage] = next(r['bytes'] for r in report['results'] if r['group'] == 'forward')
    bench.expect(read['bf16'] < 0.6 * read['f32'], f'bytes of a product by storage: {read}')


def check_help(bench):
    """Every page is a screen; the keys of recipes have one of their own."""
    overview = bench.good('help')
    bench.expect(bench.good('--help') == overview, 'help is not --help')
    commands = re.findall(r'(?m)^  ([\w-]+) ', overview)
    bench.expect(len(commands) == 20, f'{commands}')
    for command in commands:
        out = bench.good(command, '--help')
        bench.expect(out.startswith(f'Usage: quern {command}') and 'Exit status' in out, out)
        bench.expect(bench.good('help', command) == out, f'help {command} is another page')
        bench.expect(out.count('\n') <= 40 and max(map(len, out.splitlines())) <= 100,
                     f'{command} --help is more than a screen: {out}')
    keys = bench.good('recipes', '--keys')
    for word in ('[memory]', 'batch_schedule', 'name = unet', 'label_smoothing'):
        bench.expect(word in keys, f'recipes --keys does not tell of {word}')


def check_recipes(bench):
    rows = bench.good('recipes').split('\n\n')[0].splitlines()[1:]
    names = [row.split()[0] for row in rows]
    bench.expect(names == ['fashion-mnist', 'fashion-mlp', 'fashion-resnet18',
                           'pictures', 'finetune-resnet18', 'bert-kjv', 'bert-large-accumulation',
                           'gpt-kjv', 'gpt2-124m', 'llama-small', 'retrieve-fashion',
                           'retrieve-kjv', 'segment-fashion'], f'{names}')
    form = r'\S+ +[\d.]+ [MG]iB +\d+ (epochs|updates)  .+: .+'
    for row in rows:
        bench.expect(re.fullmatch(form, row) and len(row) <= 100, row)


def check_check(bench):
    bench.expect(re.fullmatch(r'quern \d+\.\d+\.\d+\n', bench.good('--version')), '--version')
    bench.expect(' 0 failed' in bench.good('check', '--op', 'relu', '--small'), 'check')
    report = json.loads(bench.good('check', '--op', 'relu', '--small', '--json'))
    bench.expect(report['operators'][0]['op'] == 'relu' and not report['failures'], f'{report}')


def main():
    random.seed(1)
    with Bench(sys.argv[1]) as bench:
        check_metrics(bench)
        check_kill(bench)
        check_signal(bench, signal.SIGTERM)
        check_signal(bench, signal.SIGINT)
        check_interrupted(bench)
        check_budget_origin(bench)
        check_other_folder(bench)
        check_data(bench)
        check_data_folder(bench)
        check_any_folder(bench)
        check_two(bench)
        check_resume_signal(bench)
        check_rate(bench)
        check_budget(bench)
        check_profile(bench)
        check_plan(bench)
        check_waiting(bench)
        check_models(bench)
        check_schedules(bench)
        check_adaptive(bench)
        check_tuning(bench)
        check_quick_tuning(bench)
        check_tuning_signal(bench)
        check_bench(bench)
        check_help(bench)
        check_recipes(bench)
        check_check(bench)
        bench.end()


if __name__ == '__main__':
    main()
