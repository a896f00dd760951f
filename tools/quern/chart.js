// SPDX-License-Identifier: MIT
// Under the pointer: the values of each line at its nearest point.
'use strict';
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}
for (const figure of document.querySelectorAll('figure.chart')) {
  const data = JSON.parse(figure.querySelector('script').textContent);
  const picture = figure.querySelector('svg'), cursor = picture.querySelector('.cursor');
  const read = figure.querySelector('.read'), before = read.textContent;
  const show = event => {
    const box = picture.getBoundingClientRect(), view = picture.viewBox.baseVal;
    const at = (event.clientX - box.left) / box.width * view.width;
    const x = data.from + (at - data.left) / (data.right - data.left) * (data.to - data.from);
    const texts = [];
    let shown = null;
    for (const line of data.lines) {
      if (line.pale) continue;
      const i = nearest(line.x, x);
      if (shown === null || Math.abs(line.x[i] - x) < Math.abs(shown - x)) shown = line.x[i];
      texts.push((line.name ? line.name + ' ' : '') + line.y[i] + ' at ' + line.x[i]);
    }
    const share = data.to > data.from ? (shown - data.from) / (data.to - data.from) : 0.5;
    cursor.setAttribute('transform', 'translate(' + (data.left + share * (data.right - data.left)) +
                        ')');
    cursor.style.display = 'inline';
    read.textContent = texts.join(', ');
  };
  picture.addEventListener('pointermove', show);
  picture.addEventListener('pointerdown', show);
  picture.addEventListener('pointerleave', () => {
    cursor.style.display = 'none';
    read.textContent = before;
  });
}
