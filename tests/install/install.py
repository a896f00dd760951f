#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""install.py ROOT BUILD [subproject]: installs into an empty folder and uses the library as anybody
would: the example and the program of the README, built through pkg-config and run, shared and
static. With `subproject`, through Meson from another project instead."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from support import Place

STRICT = ['-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-O1']
PUBLIC = {'abi', 'check', 'contrastive', 'data', 'device', 'drift', 'generate', 'graph', 'graph_file', 'group',
          'image', 'io', 'log', 'metric', 'model', 'ops', 'plan', 'predict', 'quern', 'retrieval', 'schedule',
          'status', 'tensor', 'text', 'train', 'tune'}
OUTSIDE = """project('outside', 'c', default_options: ['c_std=c11'])
quern = dependency('quern', fallback: 'quern')
executable('outside', 'main.c', dependencies: quern)
"""

SAYS_LAST_ERROR = """#include <quern/quern.h>
#include <stdio.h>
int main(void)
{
    qn_status status = qn_abi_check();
    return printf("%s: %s", qn_status_name(status), qn_last_error()) < 0;
}
"""
SAYS_RANKS = """#include <quern/mpi.h>
#include <stdio.h>
int main(void)
{
    qn_mpi *mpi;
    const qn_mpi_params params = {.members = 2};
    qn_status status = qn_mpi_open(&mpi, &params);
    printf("rank %d of %d, %d members: %s\\n", qn_mpi_rank(mpi), qn_mpi_ranks(mpi),
           qn_mpi_members(mpi), qn_status_name(status));
    qn_mpi_close(&mpi);
    return 0;
}
"""
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
OTHER_HEADERS = {
    'same': ('plan.h', 'int64_t capacity;', 'int64_t capacity;', 'QN_OK: '),
    'other': ('abi.h', r'X\(qn_place_params, 0x\w+', 'X(qn_place_params, 0x12345678',
              'QN_ERR_ARGUMENT: qn_place_params: has other fields in the program than in Quern .*'),
    'larger': ('plan.h', 'int64_t capacity;', 'int64_t capacity, more;',
               r'QN_ERR_ARGUMENT: qn_place_params: has 48 bytes in the program and 40 in Quern .*'),
    'newer': ('abi.h', 'QN_VERSION "', 'QN_VERSION "9',
              r'QN_ERR_ARGUMENT: the program was made for Quern 9.* and runs with .*'),
}


class Installed(Place):
    """What the build installs lies in `dest`."""

    def __init__(self, root, build):
        super().__init__()
        self.root, self.build = pathlib.Path(root), build
        self.dest = self.folder / 'dest'

    def flags(self, *what):
        pc = next(self.dest.rglob('quern.pc'))
        prefix = self.dest / re.search(r'^prefix=/(.*)$', pc.read_text(), re.MULTILINE)[1]
        out = subprocess.run(['pkg-config', f'--define-variable=prefix={prefix}', *what], text=True,
                             env={**os.environ, 'PKG_CONFIG_PATH': str(pc.parent)}, check=True,
                             stdout=subprocess.PIPE).stdout
        return out.split(), pc.parent.parent

    def readme_program(self):
        text = (self.root / 'README.md').read_text()
        path = self.folder / 'first.c'
        path.write_text(re.search(r'```c\n(.*?)```', text, re.DOTALL)[1])
        return path


def check_files(place):
    headers = {path.stem for path in place.dest.rglob('include/quern/*.h')}
    names = {path.name for path in place.dest.rglob('*')}
    major, minor, _ = (place.root / 'meson.build').read_text().split("version: '")[1].split('.', 2)
    soname = f'libquern.so.0.{minor}' if major == '0' else f'libquern.so.{major}'
    mpi = 'libquern-mpi.so' in names
    place.expect(headers == PUBLIC | ({'mpi'} if mpi else set()), f'headers: {headers}')
    place.expect(('quern-mpi.pc' in names) == mpi, 'quern-mpi.pc without its library, or it alone')
    for name in ('libquern.so', soname, 'libquern.a', 'quern.pc', 'quern', 'fashion-mnist.ini'):
        place.expect(name in names, f'{name} is not installed')


def check_program(place, name, source, expected):
    shared, libdir = place.flags('--cflags', '--libs', 'quern', 'OpenCL')
    static, _ = place.flags('--static', '--libs', 'quern')
    static = [str(libdir / 'libquern.a') if flag == '-lquern' else flag for flag in static]
    cflags, _ = place.flags('--cflags', 'quern')
    place.good('cc', *STRICT, source, '-o', name, *shared, '-lm')
    out = place.good(place.folder / name, LD_LIBRARY_PATH=str(libdir))
    place.expect(re.search(expected, out), f'{name} says: {out}')
    place.good('cc', *STRICT, source, '-o', f'{name}-static', *cflags, *static,
               '-lOpenCL', '-lm')
    out = place.good(place.folder / f'{name}-static')
    place.expect(re.search(expected, out), f'{name}, static, says: {out}')


def check_other_headers(place):
    """A library that is not of the headers that a program was compiled with."""
    flags, libdir = place.flags('--cflags', '--libs', 'quern')
    installed = next(place.dest.rglob('include/quern/quern.h')).parent
    for name, (header, old, new, expected) in OTHER_HEADERS.items():
        include, program = place.folder / f'{name}-include', place.folder / name
        shutil.copytree(installed, include / 'quern')
        path = include / 'quern' / header
        text = path.read_text()
        place.expect(re.search(old, text), f'{header}: {old} is not there')
        path.write_text(re.sub(old, new, text, count=1))
        for compiler in (['cc', *STRICT], ['c++', *STRICT[1:], '-std=c++11', '-Wold-style-cast']):
            source = place.folder / f'{name}.{"c" if compiler[0] == "cc" else "cc"}'
            source.write_text(SAYS_LAST_ERROR)
            place.good(*compiler, '-I', include, source, '-o', program, *flags)
            out = place.good(program, LD_LIBRARY_PATH=str(libdir))
            place.expect(re.fullmatch(expected, out), f'{source.name} says: {out}')


def check_mpi(place):
    """The library for MPI, if the build has it, by its own pkg-config file alone."""
    if not list(place.dest.rglob('quern-mpi.pc')):
        return
    shared, libdir = place.flags('--cflags', '--libs', 'quern-mpi')
    source = place.folder / 'ranks.c'
    source.write_text(SAYS_RANKS)
    place.good('cc', *STRICT, source, '-o', 'ranks', *shared)
    out = place.good(place.folder / 'ranks', LD_LIBRARY_PATH=str(libdir), **AS_ROOT)
    place.expect(out == 'rank 0 of 1, 2 members: QN_OK\n', f'ranks says: {out}')


def check_command(place):
    program = next(place.dest.rglob('bin/quern'))
    _, libdir = place.flags('--libs', 'quern')
    out = place.good(program, 'plan', 'fashion-mnist', '--budget', '16MiB',
                     LD_LIBRARY_PATH=str(libdir))
    place.expect('planned peak' in out, f'quern plan says: {out}')


def check_subproject(place):
    """Another project with a copy of this one, without its tests."""
    inner = place.folder / 'subprojects'
    inner.mkdir()
    (inner / 'quern').symlink_to(place.root)
    (place.folder / 'meson.build').write_text(OUTSIDE)
    place.readme_program().rename(place.folder / 'main.c')
    place.good('meson', 'setup', 'b', '.')
    place.good('ninja', '-C', 'b', 'outside')
    place.expect('done: 3.000' in place.good('b/outside'), 'other weights')


def main():
    place = Installed(*sys.argv[1:3])
    if 'subproject' in sys.argv:
        check_subproject(place)
    else:
        place.good('meson', 'install', '-C', place.build, '--no-rebuild',
                   DESTDIR=str(place.dest))
        check_files(place)
        check_program(place, 'embed', place.root / 'examples/embed.c', r'51\d of 512 points right')
        check_program(place, 'first', place.readme_program(), r'^done: 3\.000$')
        check_other_headers(place)
        check_mpi(place)
        check_command(place)
    return place.end()


if __name__ == '__main__':
    sys.exit(main())
