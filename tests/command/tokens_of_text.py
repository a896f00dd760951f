#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tokens_of_text.py PROGRAM GOLDEN: texts become tokens and texts again, vocabularies are made, and what
cannot be gives one line, the right exit code and no file."""
import json
import os
import pathlib
import pty
import shutil
import struct
import sys

from support import Bench

EVIL = '\x1b[31m\n'
HIGH = json.dumps({'added_tokens': [{'id': 70000, 'content': '<x>', 'special': True}],
                   'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False},
                   'model': {'type': 'BPE', 'vocab': {'a': 0, 'b': 1}, 'merges': []}})
# (arguments, exit code, what the line contains)
REFUSED = [
    ('tokenize', 2, 'tokenize: needs a FILE'),
    ('tokenize text.txt', 2, 'needs --tokenizer PATH, or --train N'),
    ('tokenize text.txt --train 300', 2, '--train needs --out FILE'),
    ('tokenize text.txt --train 300 --out o --decode', 2, '--train and --decode exclude each other'),
    ('tokenize text.txt --train 300 --out o --tokenizer t', 2, '--train and --tokenizer exclude'),
    ('tokenize text.txt --tokenizer t.json --field a', 2, '--field goes with --train'),
    ('tokenize text.txt --train 300 --out o --field a', 1, 'text.txt: line 1: is not a JSON object'),
    ('tokenize text.txt --train 256 --out o', 2, 'a vocabulary of 256 tokens: not from 257'),
    ('tokenize text.txt --train x --out o', 2, "--train: 'x' is not a whole number"),
    ('tokenize none.txt --tokenizer t.json --out o', 1, 'none.txt: No such file'),
    ('tokenize empty --tokenizer t.json --out o', 1, 'empty: is empty'),
    ('tokenize . --tokenizer t.json --out o', 1, '.: not a regular file'),
    ('tokenize fifo --tokenizer t.json --out o', 1, 'fifo: not a regular file'),
    ('tokenize text.txt --tokenizer none.json --out o', 1, 'none.json: cannot read: No such'),
    ('tokenize text.txt --tokenizer cut.json --out o', 1, 'cut.json: is not JSON, seen at byte'),
    ('tokenize text.txt --tokenizer evil.json --out o', 1, "model.type: '\\x1b[31m\\n' is neither"),
    ('tokenize text.txt --tokenizer high.json --out o', 1, 'high.json: model.vocab: no token for'),
    ('tokenize text.txt --tokenizer t.json --out none/o', 1, 'none/o: No such file'),
    ('tokenize odd --tokenizer t.json --decode --out o', 1, 'odd: 3 bytes are no tokens of 2 bytes'),
    ('tokenize far --tokenizer t.json --decode --out o', 1,
     'far: token 1: 600 is not in the vocabulary of t.json'),
    ('tokenize text.txt --train 300 --out none/o', 1, 'none/o: cannot write'),
]


def prepare(bench, golden):
    folder = bench.folder
    shutil.copy(golden / 'gpt2.json', folder / 't.json')
    shutil.copy(golden / 'text.txt', folder / 'text.txt')
    (folder / 'cut.json').write_bytes((golden / 'gpt2.json').read_bytes()[:5000])
    (folder / 'evil.json').write_text(json.dumps({'model': {'type': EVIL}}))
    (folder / 'high.json').write_text(HIGH)
    (folder / 'empty').write_bytes(b'')
    (folder / 'odd').write_bytes(b'123')
    (folder / 'far').write_bytes(struct.pack('<3H', 1, 600, 2))
    (folder / 'bytes').write_bytes(bytes(range(256)) * 3)
    os.mkfifo(folder / 'fifo')


def check_refused(bench):
    before = sorted(os.listdir(bench.folder))
    for line, code, words in REFUSED:
        got, out, error = bench.run(*line.split())
        bench.expect(got == code and words in error and error.count('\n') == 1 and not out and
                     '\x1b' not in error, f'{line}: {got}: {error}{out}')
    bench.expect(sorted(os.listdir(bench.folder)) == before, f'{os.listdir(bench.folder)}')


def check_tokens(bench, golden):
    ids = [int(i) for i in bench.good('tokenize', 'text.txt', '--tokenizer', 't.json').split()]
    said = bench.good('tokenize', 'text.txt', '--tokenizer', golden / 'gpt2', '--out', 'o')
    bench.expect(f'o: {len(ids)} tokens of 2 bytes each' in said, said)
    bench.expect((bench.folder / 'o').read_bytes() == struct.pack(f'<{len(ids)}H', *ids),
                 'o: other tokens than those printed')
    facts = json.loads(bench.good('tokenize', 'text.txt', '--tokenizer', 't.json', '--json'))
    size = (bench.folder / 'text.txt').stat().st_size
    bench.expect(facts == {'file': 'text.txt', 'bytes': size, 'vocabulary': 600,
                           'tokens': len(ids), 'token_bytes': 2}, f'{facts}')


def check_back(bench):
    for name in 'text.txt', 'bytes':
        bench.good('tokenize', name, '--tokenizer', 't.json', '--out', 'o')
        said = bench.good('tokenize', 'o', '--tokenizer', 't.json', '--decode', '--out', 'back')
        bench.expect(said.startswith('back: the text of '), said)
        bench.expect((bench.folder / 'back').read_bytes() == (bench.folder / name).read_bytes(),
                     f'{name}: comes back as another text')
    bench.good('tokenize', 'text.txt', '--tokenizer', 't.json', '--out', 'o')
    bench.expect(bench.good('tokenize', 'o', '--tokenizer', 't.json', '--decode') ==
                 (bench.folder / 'text.txt').read_text(), 'another text is printed')


def check_wide(bench):
    """Ids from 65536 on take four bytes."""
    (bench.folder / 'x').write_text('ab<x>a')
    bench.good('tokenize', 'x', '--tokenizer', 'high.json', '--out', 'o')
    bench.expect((bench.folder / 'o').read_bytes() == struct.pack('<4I', 0, 1, 70000, 0), 'wide')
    bench.expect(bench.good('tokenize', 'o', '--tokenizer', 'high.json', '--decode') == 'ab<x>a',
                 'wide tokens decode otherwise')


def check_terminal(bench):
    """A terminal gets no control character of the text."""
    (bench.folder / 'x').write_bytes(b'one\x1b[31m\ntwo\x00\x07\n')
    bench.good('tokenize', 'x', '--tokenizer', 't.json', '--out', 'o')
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(bench.folder)
        os.execv(bench.program, [bench.program, 'tokenize', 'o', '--tokenizer', 't.json', '--decode'])
    shown = b''
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # the end, as Linux tells it
        pass
    os.waitpid(child, 0)
    bench.expect(shown == b'one\\x1b[31m\r\ntwo\\x00\\x07\r\n', f'a terminal is sent {shown}')


def check_train(bench, golden):
    said = bench.good('tokenize', 'text.txt', '--train', 600, '--out', 'made.json')
    bench.expect(said.startswith('made.json: 600 tokens, made from '), said)
    made, expected = (json.loads(path.read_text())['model']
                      for path in (bench.folder / 'made.json', golden / 'gpt2.json'))
    bench.expect(made == expected, 'made.json: other merges than those of the package')
    lines = (bench.folder / 'text.txt').read_text(encoding='utf-8').removesuffix('\n').split('\n')
    (bench.folder / 'lines').write_text(''.join(json.dumps({'n': 1, 'body': line}) + '\n' for line in lines))
    bench.good('tokenize', 'lines', '--train', 600, '--out', 'lines.json', '--field', 'body')
    bench.expect((bench.folder / 'lines.json').read_bytes() == (bench.folder / 'made.json').read_bytes(),
                 'lines.json: another vocabulary than that of the text')
    code, out, error = bench.run('tokenize', 'odd', '--train', 600, '--out', 'made.json', '--json')
    bench.expect(code == 0 and 'has only 259 tokens' in error and
                 json.loads(out)['vocabulary'] == 259, f'{code}: {out}{error}')


def main():
    golden = pathlib.Path(sys.argv[2]).resolve()
    with Bench(sys.argv[1]) as bench:
        prepare(bench, golden)
        check_refused(bench)
        check_tokens(bench, golden)
        check_back(bench)
        check_wide(bench)
        check_terminal(bench)
        check_train(bench, golden)
        bench.end()


if __name__ == '__main__':
    main()
