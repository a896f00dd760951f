# SPDX-License-Identifier: MIT
"""The page of gpu.py, from what its steps told."""
import datetime
import platform

import compare

TITLES = {'linear': 'Matrix products', 'attention': 'Attention', 'conv2d': 'Convolutions'}
PEERS = {'linear': 'cuBLAS', 'attention': 'FlashAttention', 'conv2d': 'cuDNN'}
TARGETS = {('linear', 'f32'): 0.7, ('linear', 'f16'): 0.6, ('linear', 'bf16'): 0.6,
           **{('conv2d', storage): 0.6 for storage in ('f32', 'f16', 'bf16')},
           **{('attention', storage): 0.5 for storage in ('f32', 'f16', 'bf16')}}


def ratio(step):
    """The peer's time over ours: above 1 means that Quern is faster."""
    return step['peer_seconds'] / step['seconds'] if 'peer_seconds' in step else None


def number(value, form='.2f'):
    return '-' if value is None else format(value, form)


def table(*rows):
    head, *rest = (' | '.join(map(str, row)) for row in rows)
    return ['', f'| {head} |', '|---' * len(rows[0]) + '|', *(f'| {row} |' for row in rest), '']


def done(told, kind):
    """[(work, storage, step)] of a kind of steps that have results."""
    parts = ((name.split('/'), step) for name, step in told['steps'].items())
    return [('/'.join(part[1:-1]), part[-1], step) for part, step in parts
            if part[0] == kind and 'seconds' in step]


def head(told):
    device = told['device'] or dict.fromkeys(('device', 'platform', 'driver', 'quern'), 'unknown')
    versions = sorted({step['peer_version'] for step in told['steps'].values()
                       if step.get('peer_version')})
    lines = [f'# Quern on {device["device"]}', '',
             f'{datetime.date.today()}, {device["platform"]}, driver {device["driver"]}, Quern '
             f'{device["quern"]}, {platform.platform()}; beside '
             f'{", ".join(versions) or "nothing"}; {told["seconds"] / 60:.1f} minutes.']
    if told['small']:
        lines += ['', 'With --small: these figures say nothing about the device.']
    return lines


def first(told):
    ceilings, check = (told['steps'].get(name, {}) for name in ('ceilings', 'check'))
    lines = []
    if 'flops_ceiling' in ceilings:
        lines += ['', f'Ceilings: {ceilings["flops_ceiling"] / 1e12:.3f} TFLOP/s of f32 multiply-adds, '
                  f'{ceilings["bytes_per_second_ceiling"] / 1e9:.1f} GB/s copied, '
                  f'{1e6 * ceilings["launch_seconds"]:.1f} us a launch.']
    if 'passed' in check:
        lines += ['', f'`quern check --small`: {check["passed"]} passed, {check["failed"]} failed.']
        lines += [f'- FAILED {f["op"]}/{f["case"]} {f["storage"]} {f["variant"]}: {f["reason"]}'
                  for f in check['failures']]
    return lines


def targets(told):
    rows = []
    for (op, storage), target in TARGETS.items():
        ratios = [r for r in (ratio(step) for _, s, step in done(told, op) if s == storage) if r]
        mean = compare.geometric_mean(ratios)
        met = 'not measured' if mean is None else 'met' if mean >= target else 'MISSED'
        rows.append((TITLES[op], storage, PEERS[op], target, number(mean), len(ratios), met))
    return ['', '## Targets', '', 'Geometric means of ratios; above 1 means that Quern is faster.',
            *table(('work', 'storage', 'beside', 'target', 'ratio', 'rows', ''), *rows)]


def kernels(told):
    lines = []
    for op, title in TITLES.items():
        rows = [(name, storage, number(1e3 * step['seconds'], '.3f'),
                 number(1e-12 * step['flops'] / step['seconds'], '.3f'),
                 number(1e3 * step['peer_seconds'] if 'peer_seconds' in step else None, '.3f'),
                 number(ratio(step))) for name, storage, step in done(told, op)]
        if rows:
            lines += [f'## {title}, forward and both gradients',
                      *table(('work', 'storage', 'Quern, ms', 'TFLOP/s', f'{PEERS[op]}, ms', 'ratio'),
                             *rows)]
    return lines


def updates(told):
    rows = [(name, storage, step['samples'], step['micro_batch'],
             number(step['peak_bytes'] / 2**20, '.0f'), number(1e3 * step['seconds'], '.1f'),
             number(step['samples'] / step['seconds'], '.1f'),
             number(1e3 * step['peer_seconds'] if 'peer_seconds' in step else None, '.1f'),
             number(ratio(step))) for name, storage, step in done(told, 'update')]
    return ['## Updates', *table(('network', 'storage', 'samples', 'micro-batch', 'MiB', 'Quern, ms',
                                  'samples/s', 'PyTorch, ms', 'ratio'), *rows)] if rows else []


def missing(told, names):
    """What has no result or no peer, a reason a line."""
    by_reason = {}
    for name in names:
        step = told['steps'].get(name, {'problem': 'not run yet, or left out for want of time'})
        for field, what in (('problem', ''), ('peer_missing', 'PyTorch: ')):
            if step.get(field):
                by_reason.setdefault(what + step[field], []).append(name)
    return ['## Missing', '', *(f'- {reason}: {", ".join(where)}'
                                for reason, where in by_reason.items())] if by_reason else []


def write(told, names):
    """`told`: of State; `names`: of all steps."""
    tuned = [f'- {name}: {step["said"]}' for name, step in told['steps'].items() if 'said' in step]
    parts = (head(told), first(told), targets(told), kernels(told), updates(told),
             ['## Tuning', '', *tuned, ''] if tuned else [], missing(told, names))
    return '\n'.join(line for part in parts for line in part) + '\n'
