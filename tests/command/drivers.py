#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""drivers.py PROGRAM DRIVER: the shipped recipes for Fashion-MNIST train on another OpenCL driver for
CPUs, with variants timed and without; a kernel that it cannot launch is left out, and is not said to
compute wrong numbers. A small GPT has the losses and gradient norms that it has on PoCL. Status 77:
the driver is not here.

`rusticl` (package mesa-opencl-icd, on llvmpipe) counts local memory twice and ends long loops early,
of which kernels for CPUs have some at 128 tokens; `intel` is Intel's CPU runtime (PyPI: intel-opencl-rt with intel-cmplr-lib-rt). QN_RUSTICL_ICD and QN_INTEL_ICD name .icd
files of those that are installed elsewhere."""
import json
import os
import re
import sys

from support import Bench, idx

DRIVERS = {
    'rusticl': ('/etc/OpenCL/vendors/rusticl.icd', {'RUSTICL_ENABLE': 'llvmpipe'}),
    'intel': ('/etc/OpenCL/vendors/intel64.icd', {}),
}

POCL = '/etc/OpenCL/vendors/pocl.icd'
NEAR = 1e-4  # other kernels, other sums; the last gradient norm is that of weights after an update


def write_data(folder):
    folder.mkdir()
    for split, count in (('train', 8), ('t10k', 4)):
        pixels = bytes((i * 37 + i // 784 * 11) % 251 for i in range(count * 784))
        labels = bytes(i % 10 for i in range(count))
        (folder / f'{split}-images-idx3-ubyte').write_bytes(idx(8, (count, 28, 28), pixels))
        (folder / f'{split}-labels-idx1-ubyte').write_bytes(idx(8, (count,), labels))


def train_gpt(bench, name, env):
    """The figures of two updates."""
    code, out, error = bench.run('train', 'gpt-kjv', '--set', 'model.layers=1', '--set', 'data.path=text',
                                 '--steps', '2', '--batch', '4', '--tune', 'off', '--metrics', name, **env)
    bench.expect(code == 0 and 'update 2/2' in out, f'gpt-kjv on {name}: {code}: {error}')
    lines = [json.loads(line) for line in (bench.folder / name).read_text().splitlines()]
    return [line[key] for line in lines if 'step' in line for key in ('loss', 'grad_norm')]


def compare_gpt(bench, driver, env):
    words = ('in', 'the', 'beginning', 'was', 'light', 'and', 'water')
    (bench.folder / 'text').write_text(' '.join(words[i * i % 11 % 7] for i in range(4000)))
    ours = train_gpt(bench, 'PoCL', {'OCL_ICD_VENDORS': POCL})
    theirs = train_gpt(bench, driver, env)
    print(ours, theirs)
    bench.expect(len(ours) == len(theirs) == 4, 'no figures')
    for a, b in zip(ours, theirs):
        bench.expect(abs(a - b) < NEAR * abs(a), f'gpt-kjv: {b} on {driver}, {a} on PoCL')


def main():
    driver = sys.argv[2]
    icd, env = DRIVERS[driver]
    icd = os.environ.get(f'QN_{driver.upper()}_ICD', icd)
    if not os.path.exists(icd):
        print(f'skipped: {driver} is not installed: no {icd}')
        return 77
    with Bench(sys.argv[1]) as bench:
        env = {**env, 'OCL_ICD_VENDORS': icd}
        code, out, error = bench.run('devices', **env)
        if code:
            print(f'skipped: {driver}: {error.strip()}')
            return 77
        print(out)
        write_data(bench.folder / 'fashion')
        for recipe in ('fashion-mlp', 'fashion-mnist'):
            for tune in ('off', 'quick'):
                code, out, error = bench.run('train', recipe, '--steps', '2', '--batch', '4',
                                             '--tune', tune, '--set', 'data.path=fashion', **env)
                name = f'{recipe}, tune {tune}: {code}: {error.strip()}'
                bench.expect(code == 0 and 'update 2/2' in out, name)
                bench.expect(not re.search('wrong numbers.*QN_ERR', error), name)
        if os.path.exists(POCL):
            compare_gpt(bench, driver, env)
        bench.end()
    return 0


if __name__ == '__main__':
    sys.exit(main())
