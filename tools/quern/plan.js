// SPDX-License-Identifier: MIT
// The map of a plan's memory, and the plans of other budgets under a slider.
'use strict';
const draw = (parent, name, attributes, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
};

const sizeText = bytes => {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit++; }
  return (unit && !Number.isInteger(bytes) ? bytes.toFixed(2) : String(bytes)) + ' ' + units[unit];
};

// The least of 1, 2, 5, 10, ... of which no more than `count` go into the range.
const tickStep = (range, count) => {
  const decade = 10 ** Math.floor(Math.log10(range / count));
  return [1, 2, 5, 10].map(factor => factor * decade).find(step => step * count >= range);
};

// Units of a picture as wide as its figure: letters have their size on a phone, too.
const widthOf = figure => Math.min(Math.max(figure.clientWidth, 320), 1000);

// Bytes axis on the left of a picture, in whole numbers of one unit.
function bytesAxis(picture, most, y, left, right) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let power = 0;
  while (most / 1024 ** power >= 4096) power++;
  const unit = 1024 ** power;
  const step = Math.max(1, tickStep(most / unit, 6));
  for (let tick = 0; tick * unit <= most; tick += step) {
    draw(picture, 'path', {class: 'rule', d: `M${left} ${y(tick * unit)}H${right}`});
    draw(picture, 'text', {x: left - 6, y: y(tick * unit) + 4, 'text-anchor': 'end'},
         `${tick} ${units[power]}`);
  }
}

// --- the map: steps to the right, addresses upwards, one pool on top of another ---

function showMap(figure) {
  const data = JSON.parse(figure.querySelector('script').textContent);
  const picture = figure.querySelector('svg'), read = figure.querySelector('.read');
  const width = widthOf(figure), left = 76, right = width - 4;
  const top = 10, bottom = 400, height = 420 + 16 * data.phases.length;
  const base = [0];
  for (const bytes of data.pools) base.push(base[base.length - 1] + bytes);
  const most = Math.max(1, base[base.length - 1]);
  const x = position => left + (right - left) * position / Math.max(1, data.length);
  const y = bytes => bottom - (bottom - top) * bytes / most;
  picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
  bytesAxis(picture, most, y, left, right);
  const boxes = data.arrays.filter(a => a[5] >= 0).map(a => {
    const from = base[a[5]] + a[6];
    const high = y(from) - y(from + a[4]);
    const box = draw(picture, 'rect', {class: `t${a[1]}${high < 4 ? ' thin' : ''}`, x: x(a[2]),
                                       width: x(a[3] + 1) - x(a[2]), y: y(from + a[4]), height: high});
    return {a, from, box};
  });
  for (const bytes of base.slice(1, -1))
    draw(picture, 'path', {class: 'axis', d: `M${left} ${y(bytes)}H${right}`});
  data.phases.forEach((phase, i) => {
    draw(picture, 'path', {class: 'phase', d: `M${x(phase.start)} ${top}V${bottom + 6 + 16 * i}`});
    const late = x(phase.start) > 0.7 * width;
    draw(picture, 'text', {x: late ? right : x(phase.start) + 4, y: bottom + 16 + 16 * i,
                           'text-anchor': late ? 'end' : 'start'}, phase.name);
  });
  const peak = x(data.peak_at + 0.5);
  draw(picture, 'path', {class: 'peak', d: `M${peak} ${top}V${bottom}`});
  const used = new Set(data.arrays.map(a => a[1]));
  data.tags.forEach((tag, i) => {
    if (!used.has(i)) return;
    const item = document.createElement('span'), mark = document.createElement('b');
    mark.className = `t${i}`;
    mark.textContent = '\u25a0 ';
    item.append(mark, tag);
    figure.querySelector('.legend').append(item, ' ');
  });

  let marked = null;
  const tell = lines => {
    read.replaceChildren(...lines.map(text => {
      const line = document.createElement('div');
      line.textContent = text;
      return line;
    }));
  };
  const phaseAt = position => data.phases.filter(phase => phase.start <= position).pop();
  const stepAt = position => {
    const phase = phaseAt(position), step = position - phase.start;
    return `step ${step} of ${phase.name}`;
  };
  const show = event => {
    const bounds = picture.getBoundingClientRect();
    const px = (event.clientX - bounds.left) / bounds.width * width;
    const py = (event.clientY - bounds.top) / bounds.height * height;
    const position = Math.floor((px - left) / (right - left) * data.length);
    const address = (bottom - py) / (bottom - top) * most;
    if (marked) marked.classList.remove('marked');
    marked = null;
    if (position < 0 || position >= data.length) return;
    const phase = phaseAt(position);
    const lines = [`${stepAt(position)}, ${phase.steps[position - phase.start]}: ` +
                   `${sizeText(data.live[position])} of ${sizeText(data.peak_bytes)} are alive` +
                   (position === data.peak_at ? ', the peak' : '')];
    const hit = boxes.find(({a, from}) => a[2] <= position && position <= a[3] &&
                                          from <= address && address < from + a[4]);
    if (hit) {
      const a = hit.a;
      marked = hit.box;
      marked.classList.add('marked');
      lines.unshift(`${a[0]}: ${data.tags[a[1]]}, ${sizeText(a[4])}, pool ${a[5]} at byte ${a[6]}`,
                    `from ${stepAt(a[2])} to ${stepAt(a[3])}`, a[7]);
    }
    tell(lines);
  };
  picture.addEventListener('pointermove', show);
  picture.addEventListener('pointerdown', show);
}

// --- the frontier ---

function showFrontier(figure) {
  const points = JSON.parse(figure.querySelector('script').textContent);
  const picture = figure.querySelector('svg'), slider = figure.querySelector('input');
  const read = figure.querySelector('.read'), rows = figure.querySelectorAll('tbody tr');
  const budget = Number(slider.dataset.budget), last = points[points.length - 1];
  const least = points[0].bytes * 0.9, most = Math.max(last.bytes * 1.1, least * 1.5);
  const width = widthOf(figure), left = 76, right = width - 4, top = 10, bottom = 200;
  const labels = width < 600 ? 2 : 5;
  const slow = Math.max(...points.map(p => p.seconds)), fast = last.seconds;
  const high = slow + 0.1 * (slow - fast || slow), low = fast - 0.1 * (slow - fast || fast);
  const x = bytes => left + (right - left) * Math.log(bytes / least) / Math.log(most / least);
  const y = seconds => bottom - (bottom - top) * (seconds - low) / (high - low);
  picture.setAttribute('viewBox', `0 0 ${width} 240`);
  const step = tickStep(high - low, 4);
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++) {
    draw(picture, 'path', {class: 'rule', d: `M${left} ${y(tick * step)}H${right}`});
    draw(picture, 'text', {x: left - 6, y: y(tick * step) + 4, 'text-anchor': 'end'},
         Number((tick * step).toPrecision(4)) + ' s');
  }
  for (let i = 0; i <= labels; i++) {
    const bytes = least * (most / least) ** (i / labels);
    draw(picture, 'text', {x: x(bytes), y: bottom + 20, 'text-anchor': i < labels ? 'middle' : 'end'},
         sizeText(Math.round(bytes)));
  }
  let path = '';
  points.forEach((p, i) => {
    path += `${i ? 'H' + x(p.bytes) + 'V' : 'M' + x(p.bytes) + ' '}${y(p.seconds)}`;
  });
  draw(picture, 'path', {class: 'stairs', d: path + 'H' + right});
  const cursor = draw(picture, 'path', {class: 'peak', d: `M0 ${top}V${bottom}`});
  const show = bytes => {
    const fits = points.filter(p => p.bytes <= bytes), p = fits[fits.length - 1];
    cursor.setAttribute('transform', `translate(${x(Math.min(Math.max(bytes, least), most))})`);
    rows.forEach((row, i) => row.classList.toggle('marked', i === fits.length - 1));
    read.textContent = !p ? `${sizeText(bytes)}: no plan fits` :
      `${sizeText(bytes)}: micro-batch ${p.micro_batch}, recomputed steps ${p.recomputed_steps}, ` +
      `${Number(p.seconds.toPrecision(3))} s an update, ` +
      `${(100 * (p.seconds / fast - 1)).toFixed(1)} % more than the fastest` +
      (p.early_updates ? ', early updates' : '') +
      (p.parked_bytes ? `, ${sizeText(p.parked_bytes)} parked` : '');
  };
  const share = Math.log(Math.min(Math.max(budget, least), most) / least) / Math.log(most / least);
  slider.value = Math.ceil(1000 * share);
  slider.addEventListener('input', () => {
    show(Math.round(least * (most / least) ** (slider.value / 1000)));
  });
  show(budget);
}

document.querySelectorAll('figure.map').forEach(showMap);
document.querySelectorAll('figure.frontier').forEach(showFrontier);
