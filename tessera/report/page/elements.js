// Elements, numbers, colors and tables.

const svgTags =
    new Set(['svg', 'g', 'rect', 'path', 'line', 'circle', 'text', 'title', 'polyline']);

/** Element with attributes and children; strings become text. */
function h(tag, attributes = {}, ...children) {
  const element = svgTags.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) :
                                     document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else
      element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false) element.append(child);
  return element;
}

function short(text, most = 64) {
  const points = [...String(text ?? '').slice(0, 4000)];
  if (points.length <= most) return points.join('');
  const half = (most - 1) >> 1;
  return points.slice(0, half).join('') + '…' + points.slice(-half).join('');
}

/** A name: isolated from the direction of the text around it, and shortened. */
function named(text, most = 64) {
  return h('bdi', {class: 'name', title: short(text, 400)}, short(text, most));
}

/** Link to a place of this page. */
function link(place, ...content) { return h('a', {href: '#' + place}, content); }
const stepLink = (step, most) =>
    link('time/' + (step.id || 0), named(step.names?.[0] || step.what || 'step ' + step.id, most));
const nodeLink = (graph, node, most) =>
    link(`graph/${graph}/${node.id || 0}`, named(node.name || node.op, most));

function numeral(value, digits = 3) {
  if (value === undefined || value === null || Number.isNaN(value)) return '';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  return Number(value.toPrecision(digits)).toString();
}
function ms(value) {
  if (value === undefined) return '';
  return value >= 1 ? `${numeral(value, 4)} ms` : `${numeral(value * 1000, 3)} µs`;
}
function bytes(value = 0) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < 4) value /= 1000, ++unit;
  return `${numeral(value)} ${units[unit]}`;
}
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const plural = (count, one, many = one + 's') =>
    `${(count || 0).toLocaleString('en')} ${count === 1 ? one : many}`;

const isDark = () => document.documentElement.dataset.theme === 'dark';
const palette = [
  '#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#76b7b2', '#b07aa1', '#9c755f', '#edc948', '#ff9da7',
  '#86bcb6', '#8cd17d', '#d37295'
];

/** Strategy without its numbers: "dot", "winograd", "copy". */
function strategyKind(step) {
  const text = step.strategy && step.strategy !== '…' ? step.strategy : step.kind || '';
  return text.split(/[ ,:(]/)[0] || 'other';
}

/** Colours by name, in order of first use. */
class Colours {
  constructor() { this.map = new Map(); }
  of(name) {
    if (!this.map.has(name)) this.map.set(name, palette[this.map.size % palette.length]);
    return this.map.get(name);
  }
  legend() {
    return h(
        'div', {class: 'legend'},
        [...this.map].map(
            ([name, colour]) =>
                h('span', {}, h('i', {style: `background:${colour}`}), short(name, 24))));
  }
}
/** From pale to strong, for a share of the longest time. */
function heat(share) {
  const part = Math.max(0, Math.min(1, Math.sqrt(share)));
  return isDark() ? `hsl(${48 - 40 * part} ${30 + 55 * part}% ${22 + 22 * part}%)` :
                    `hsl(${52 - 44 * part} ${60 + 30 * part}% ${95 - 33 * part}%)`;
}
const strategyColours = new Colours();

/** Table with columns {title, cell, key?, number?}; a click on a title sorts by its key. */
function table(columns, rows, {row: attributes = () => ({})} = {}) {
  const body = h('tbody');
  const line = (row) =>
      h('tr', attributes(row),
        columns.map((column) => h('td', {class: column.number && 'number'}, column.cell(row))));
  // The first rows at once, the others piece by piece, so that a long table does not hold up the
  // page.
  let shown;
  const fill = (list) => {
    shown = list;
    body.replaceChildren();
    const more = (from) => {
      if (shown !== list) return;
      body.append(...list.slice(from, from + 100).map(line));
      if (from + 100 < list.length) setTimeout(more, 0, from + 100);
    };
    more(0);
  };
  let direction = -1;
  const head = columns.map((column) => {
    const sort = () => {
      direction = -direction;
      fill([...rows].sort((a, b) => {
        const x = column.key(a), y = column.key(b);
        return direction * (x < y ? -1 : x > y ? 1 : 0);
      }));
    };
    return h(
        'th', {
          class: column.number && 'number',
          scope: 'col',
          ...(column.key && {
            'aria-sort': 'none',
            tabindex: 0,
            onclick: sort,
            onkeydown: (event) => event.key === 'Enter' && sort()
          }),
        },
        column.title);
  });
  fill(rows);
  return h('div', {class: 'scroll'}, h('table', {}, h('thead', {}, h('tr', {}, head)), body));
}

/** Calls an action with the element of an id, once a table has it. */
function whenThere(id, action, tries = 100) {
  const element = document.getElementById(id);
  if (element)
    action(element);
  else if (tries)
    setTimeout(whenThere, 20, id, action, tries - 1);
}

function bar(share) {
  return h('span', {class: 'bar', style: `width:${Math.max(1, Math.round(110 * share))}px`});
}
