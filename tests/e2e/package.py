#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""package.py PROGRAM: the Python package safetensors, from PyPI in an environment of its own, reads the
weights of a checkpoint and gives what the few lines of support.py give. Where the package cannot be
had, the test is skipped."""
import subprocess
import sys

from support import Bench, tensors

READ = """
import sys, safetensors
with safetensors.safe_open(sys.argv[1], framework='np') as file:
    for name in sorted(file.keys()):
        tensor = file.get_tensor(name)
        print(name, tensor.dtype, list(tensor.shape), tensor.tobytes().hex()[:64])
"""


def main():
    bench = Bench(sys.argv[1])
    _, run = bench.weights('--steps', 1)
    path = bench.folder / 'out1/last/weights.safetensors'
    own = tensors(path)
    bench.expect(len(own) > 10 and 'conv1.weight' in own, f'names: {sorted(own)}')
    venv = bench.folder / 'venv'
    made = subprocess.run([sys.executable, '-m', 'venv', venv]).returncode == 0 and subprocess.run(
        [venv / 'bin/pip', 'install', '--quiet', 'safetensors', 'numpy']).returncode == 0
    if not made and not bench.failed:
        print('package safetensors: cannot be installed here')
        sys.exit(77)
    if made:
        out = subprocess.run([venv / 'bin/python', '-c', READ, path], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
        want = [f"{name} float32 {shape} {data.hex()[:64]}"
                for name, (_, shape, data) in sorted(own.items())]
        bench.expect(out.splitlines() == want, f'the package reads:\n{out}')
    bench.end()


if __name__ == '__main__':
    main()
