#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""browser.py PROGRAM: pages in a real browser: their scripts run, say nothing on the console, and
show the figures of the metrics. Status 77: Chromium is not here."""
import html
import json
import os
import re
import shutil
import subprocess
import sys

from support import Bench

# Moves the pointer over the first chart, in its middle and at its right end.
PROBE = """<script>
const figure = document.querySelector('figure.chart'), picture = figure.querySelector('svg');
const data = JSON.parse(figure.querySelector('script').textContent);
const box = picture.getBoundingClientRect(), width = picture.viewBox.baseVal.width;
const out = [];
for (const share of [0.51, 1]) {
  const x = box.left + box.width * (data.left + share * (data.right - data.left)) / width;
  picture.dispatchEvent(new PointerEvent('pointermove', {clientX: x, clientY: box.top + 9}));
  out.push(figure.querySelector('.read').textContent);
}
picture.dispatchEvent(new PointerEvent('pointerleave', {}));
out.push(figure.querySelector('.read').textContent.trim());
document.body.dataset.wide = document.documentElement.scrollWidth;
document.body.dataset.probe = JSON.stringify(out);
</script>
"""


# Points at the middle of each array of the map, and moves the slider to both ends.
MAP_PROBE = """<script>
const map = document.querySelector('figure.map'), picture = map.querySelector('svg');
const arrays = JSON.parse(map.querySelector('script').textContent).arrays;
const read = figure => figure.querySelector('.read').innerText.split('\\n');
const out = {found: [], slider: []};
picture.querySelectorAll('rect').forEach((rect, i) => {
  const box = rect.getBoundingClientRect();
  picture.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2,
                                                         clientY: box.top + box.height / 2}));
  out.found.push([arrays[i], rect.classList.contains('marked'), read(map)]);
});
const frontier = document.querySelector('figure.frontier'), slider = frontier.querySelector('input');
out.slider.push(read(frontier)[0]);
for (const value of [0, 1000]) {
  slider.value = value;
  slider.dispatchEvent(new Event('input'));
  out.slider.push(read(frontier)[0]);
}
document.body.dataset.wide = document.documentElement.scrollWidth;
document.body.dataset.probe = JSON.stringify(out);
</script>
"""


def browser():
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        if shutil.which(name):
            return name
    return None


def visit(bench, page, probe='', width=1200):
    """(document, messages of the console) after the page's scripts ran."""
    text = (bench.folder / page).read_text()
    (bench.folder / 'probed.html').write_text(text.replace('</body>', probe + '</body>'))
    done = subprocess.run(
        [browser(), '--headless', '--no-sandbox', '--disable-gpu', '--enable-logging=stderr',
         f'--user-data-dir={bench.folder / "profile"}', f'--window-size={width},2000', '--dump-dom',
         f'file://{bench.folder / "probed.html"}'], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=120, check=False,
        env={**os.environ, 'HOME': str(bench.folder)})
    said = [line for line in done.stderr.splitlines() if 'CONSOLE' in line]
    bench.expect(done.returncode == 0 and '</html>' in done.stdout, f'{page}: {done.stderr}')
    return done.stdout, said


def probed(document, key):
    found = re.search(rf'data-{key}="([^"]*)"', document)
    return json.loads(html.unescape(found[1])) if found else None


def check_report(bench):
    bench.good('train', 'r.ini', '--quiet', '--out', '<b>run', '--set', 'train.norm_groups=fc1.*, *')
    bench.good('report', '<b>run')
    rows = [json.loads(line) for line in
            (bench.folder / '<b>run/metrics.jsonl').read_text().splitlines()]
    losses = {row['step'] + 1: row['loss'] for row in rows if 'step' in row}
    for width in (1200, 500):
        document, said = visit(bench, 'report.html', PROBE, width)
        bench.expect(not said, f'the console says {said}')
        bench.expect(document.count('<svg') == document.count('<figure') == 8, 'charts')
        bench.expect('>grad norms' in document and '>ratio of gradient norms' in document, 'norms')
        bench.expect(document.count('<img') == 1 and '&lt;b&gt;run</h1>' in document, 'elements')
        bench.expect(probed(document, 'wide') <= width, f'{width}: {probed(document, "wide")} wide')
        middle, last, after = probed(document, 'probe') or ('', '', 'nothing')
        for text, at in ((middle, 1 + len(losses) // 2), (last, len(losses))):
            found = re.fullmatch(r'(\S+) at (\d+)', text)
            bench.expect(found and int(found[2]) == at and
                         abs(float(found[1]) / losses[at] - 1) < 1e-5, f'{text}, not {losses[at]}')
        bench.expect(after == '', f'still there: {after}')


def check_compare(bench):
    """Twelve trainings: under the pointer are the means of the seeds alone."""
    bench.good('compare', 'r.ini', '--vary', 'train.lr=0.1,0.05,0.02,0.01', '--seeds', '1,2,3',
               '--steps', 12, '--set', 'train.norm_groups=fc1.*, *', '--quiet')
    for width in (1200, 500):
        document, said = visit(bench, 'compare.html', PROBE, width)
        bench.expect(not said, f'the console says {said}')
        bench.expect(document.count('<svg') == document.count('<figure') == 11, 'charts')
        bench.expect(document.count('class="line s3 pale"') == 33, 'lines of seeds')
        bench.expect(probed(document, 'wide') <= width, f'{width}: {probed(document, "wide")} wide')
        middle, last, after = probed(document, 'probe') or ('', '', 'nothing')
        for text, at in ((middle, 7 * 24), (last, 12 * 24)):
            found = re.findall(r'lr=(\S+) \S+ at (\d+)', text)
            bench.expect(found == [(lr, str(at)) for lr in ('0.1', '0.05', '0.02', '0.01')],
                         f'{text}, not at {at}')
        bench.expect(after == '', f'still there: {after}')


def check_plan(bench):
    points = json.loads(bench.good('plan', 'r.ini', '--json', '--frontier', '--html', 'plan.html'))
    for width in (1200, 500):
        document, said = visit(bench, 'plan.html', MAP_PROBE, width)
        bench.expect(not said, f'the console says {said}')
        bench.expect(probed(document, 'wide') <= width, f'{width}: {probed(document, "wide")} wide')
        probe = probed(document, 'probe') or {'found': [], 'slider': ['', '', '']}
        bench.expect(len(probe['found']) > 20, f'{len(probe["found"])} arrays')
        for array, marked, lines in probe['found']:
            bench.expect(marked and lines[0].startswith(f'{array[0]}: ') and lines[2] == array[7] and
                         lines[0].endswith(f'pool {array[5]} at byte {array[6]}') and
                         lines[3].startswith('step '), f'{array}: {marked} {lines}')
        now, least, most = probe['slider']
        bench.expect(now.startswith('4 MiB: micro-batch ') and least.endswith('no plan fits'),
                     f'{now}, {least}')
        bench.expect(f'micro-batch {points[-1]["micro_batch"]}, recomputed steps '
                     f'{points[-1]["recomputed_steps"]}, ' in most and ' 0.0 % more' in most, most)


def check_evaluation(bench):
    """After check_report: of its training."""
    bench.good('eval', '<b>run', '--report', 'eval.html')
    for width in (1200, 500):
        wide = '<script>document.body.dataset.wide = document.documentElement.scrollWidth</script>'
        document, said = visit(bench, 'eval.html', wide, width)
        bench.expect(not said, f'the console says {said}')
        bench.expect(probed(document, 'wide') <= width, f'{width}: {probed(document, "wide")} wide')
        bench.expect('id="confusion"' in document, 'no matrix')


def main():
    if not browser():
        print('skipped: no Chromium is installed')
        return 77
    with Bench(sys.argv[1]) as bench:
        (bench.folder / 'wrong.html').write_text('<body><script>nowhere()</script></body></html>')
        bench.expect('nowhere' in ''.join(visit(bench, 'wrong.html')[1]), 'errors are not heard')
        check_report(bench)
        check_evaluation(bench)
        check_plan(bench)
        check_compare(bench)
        bench.end()
    return 0


if __name__ == '__main__':
    sys.exit(main())
