#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""verse_pairs.py TOOL: what the tool makes of two small dumps in the form of diatheke's."""
import pathlib
import subprocess
import sys
import tempfile

# Blanks at ends (~), titles before verses, which stay, verses of several lines, what belongs to none.
FIRST = """Genesis 1:1: In the beginning.
Genesis 1:2: ¶ And the mill\u2019s  stone.~~
I Samuel 2:3: Only here.
Psalms 2:12: Kiss the \u00e6.

A Psalm of David.
   Psalms 3:1: LORD, how many.

A Psalm of David.
   Psalms 3:2: Selah.
A Psalm of David.
   Song of Solomon 1:1: The song.
A Psalm of David.
   Revelation of John 22:21: Amen.~~~~
(engKJV2006eb)
"""
SECOND = """Genesis 1:1: At first,
\u201cthere was 1:1: nothing.\u201d

  But much came.
Genesis 1:2:
Psalms 2:12: Honour him,
for his wrath.
Blessed are they.~


A Psalm by David, when he fled.
  Psalms 3:2: Many say,

Selah.

A Psalm by David, when he fled.
  Psalms 3:1: Yahweh, how many
rise up!
A Psalm by David, when he fled.
  Esther (Greek) 1:1: In the second year.
A Psalm by David, when he fled.
<title type="psalm">Of David.</title> <lg/>Song of Solomon 1:1: The Song of songs.
A Psalm by David, when he fled.
  Revelation of John 22:21: Grace. Amen.


   The following words are not common. Abba is father.
See also 'talent'.
(engWEB2015eb)
"""
KJV = ['In the beginning.', 'Kiss the \u00e6.', 'LORD, how many.', 'Selah.', 'The song.', 'Amen.']
WEB = ['At first, \u201cthere was 1:1: nothing.\u201d But much came.',
       'Honour him, for his wrath. Blessed are they.', 'Yahweh, how many rise up!', 'Many say, Selah.',
       'The Song of songs.', 'Grace. Amen.']


def main():
    tool = str(pathlib.Path(sys.argv[1]).resolve())
    checks = []
    with tempfile.TemporaryDirectory(prefix='quern-test-') as name:
        folder = pathlib.Path(name)

        def run(*args):
            return subprocess.run([sys.executable, tool, *args], capture_output=True, encoding='utf-8', cwd=folder,
                                  env={'PATH': '/nonexistent', 'PYTHONIOENCODING': 'utf-8'}, check=False)

        def expect(what, *good):
            checks.append(all(good))
            if not all(good):
                print(f'{what}: {good}')

        (folder / 'a').write_text(FIRST.replace('~', ' '), 'utf-8')
        (folder / 'b').write_text(SECOND.replace('~', ' '), 'utf-8')
        (folder / 'empty').write_text('Job 1:1: There was a man.\n', 'utf-8')
        (folder / 'latin').write_bytes(b'Job 1:1: \xe9\n')
        made = run('out/verses', '--dumps', 'a', 'b')
        expect('made', made.returncode == 0, made.stdout.startswith('6 verses: '), not made.stderr)
        for file, lines in (('kjv.txt', KJV), ('web.txt', WEB)):
            is_ = (folder / 'out' / 'verses' / file).read_text('utf-8')
            expect(f'{file}: {is_}', is_ == ''.join(line + '\n' for line in lines))
        for what, args in (('no verse in common', ('none', '--dumps', 'a', 'empty')),
                           ("'missing'", ('none', '--dumps', 'a', 'missing')),
                           ('utf-8', ('none', '--dumps', 'a', 'latin')),
                           ('install the packages sword-text-kjv', ('none',))):
            failed = run(*args)
            expect(f'{what}: {failed.stderr}', failed.returncode == 1, what in failed.stderr,
                   failed.stderr.count('\n') == 1, not (folder / 'none').exists())
    print(f'{sum(checks)} passed, {len(checks) - sum(checks)} failed')
    sys.exit(not all(checks))


if __name__ == '__main__':
    main()
