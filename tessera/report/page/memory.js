// The arena over time.

/** What a memory limit led to: steps that run again, values that are moved to a file. */
function additionalSteps() {
  const rows = [...index.steps.values()]
                   .filter((step) => step.kind === 'swap' || step.strategy === 'recomputed')
                   .map((step) => ({
                          step,
                          effect: step.kind === 'swap' ? 'swapped ' + step.strategy : 'recomputed',
                          bytes: step.kind === 'swap' ? step.bytes : undefined
                        }));
  const mapped = log.of('value').filter((value) => value.home === 'file');
  if (!rows.length && !mapped.length) return null;
  return [
    h('h2', {}, 'Recomputed and swapped'),
    rows.length ?
        table(
            [
              {title: 'step', number: true, cell: (row) => stepNumber(row.step)},
              {title: 'ONNX nodes', cell: (row) => nodesOfStep(row.step)},
              {title: 'operators', cell: (row) => short(row.step.what, 60)},
              {title: 'effect', cell: (row) => row.effect},
              {
                title: 'work',
                number: true,
                cell: (row) => row.bytes ? bytes(row.bytes) :
                                           `${numeral((row.step.flops || 0) / 1e6)} MFLOP`
              },
              {
                title: 'time',
                number: true,
                cell: (row) => ms(index.time.get(row.step.id || 0)?.ms)
              },
            ],
            rows) :
        null,
    mapped.length ?
        table(
            [
              {title: 'value in the temporary file', cell: (value) => valueLink(value)},
              {title: 'type', cell: (value) => short(value.type, 60)},
              {title: 'bytes', number: true, cell: (value) => bytes(value.bytes)},
              {title: 'steps', number: true, cell: (v) => `${v.first || 0} to ${v.last || 0}`},
            ],
            mapped) :
        null
  ];
}
const stepNumber = (step) => link('time/' + (step.id || 0), String(step.id || 0));
const valueLink = (value) => index.producer.has(value.name) ?
    nodeLink('original', index.producer.get(value.name)) :
    named(value.name);

function memoryTab() {
  const memory = log.last('memory') || {};
  const values = log.of('value').filter((value) => value.home === 'arena');
  const steps = Math.max(1, index.steps.size), size = Math.max(1, memory.arena_bytes || 0);
  const width = 1100, height = 420, left = 70;
  const x = (step) => left + (step / steps) * (width - left),
        y = (offset) => height - 24 - (offset / size) * (height - 34);
  const colours = new Colours();
  const rects = values.map((value) => {
    const first = value.first || 0, last = value.last || 0,
          end = (value.offset || 0) + (value.bytes || 0);
    return h(
        'rect', {
          class: 'link value',
          x: x(first),
          y: y(end),
          width: Math.max(0.6, x(last + 1) - x(first) - 0.3),
          height: Math.max(0.6, y(value.offset || 0) - y(end) - 0.3),
          fill: colours.of(index.steps.get(first)?.what || 'other'),
          'fill-opacity': 0.8,
          onclick: () => (location.hash = 'time/' + first)
        },
        h('title', {},
          `${short(value.name, 200)}: ${value.type}, ${bytes(value.bytes)} at ${
              (value.offset || 0).toLocaleString('en')}, steps ${first} to ${last}`));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(
      (share) =>
          [h('line',
             {class: 'axis', x1: left, x2: width, y1: y(share * size), y2: y(share * size)}),
           h('text', {x: left - 6, y: y(share * size) + 4, 'text-anchor': 'end'},
             bytes(share * size))]);
  const live = new Float64Array(steps + 1);
  for (const value of values)
    for (let at = value.first || 0; at <= (value.last || 0) && at <= steps; ++at)
      live[at] += value.bytes || 0;
  const fullest = live.indexOf(Math.max(...live));
  return h(
      'div', {}, h('h2', {}, 'Memory'),
      h('p', {},
        `The arena has ${bytes(memory.arena_bytes)}` +
            (memory.lower_bound ? `, of which ${bytes(memory.lower_bound)} are needed at one time` :
                                  '') +
            `; it is fullest at `,
        link('time/' + fullest, 'step ' + fullest),
        `. Weights ${bytes(memory.weight_bytes)}, code ${bytes(memory.code_bytes)}` +
            (memory.swap_bytes ? `, swapped to a file ${bytes(memory.swap_bytes)}` : '') + '.'),
      (memory.notes || []).map((note) => h('p', {class: 'warn'}, note)),
      values.length ?
          h('div', {class: 'scroll'},
            h('svg', {
              viewBox: `0 0 ${width} ${height}`,
              width,
              height,
              role: 'img',
              'aria-label':
                  'The arena over time: values as rectangles from their first to their last step'
            },
              ticks, rects,
              h('text', {x: (left + width) / 2, y: height - 6, 'text-anchor': 'middle'}, 'step'))) :
          h('p', {}, 'No value is in the arena.'),
      additionalSteps(), h('h2', {}, 'Largest values'),
      table(
          [
            {
              title: 'value',
              key: (v) => v.name,
              cell: valueLink
            },
            {title: 'type', cell: (v) => short(v.type, 60)},
            {title: 'place', key: (v) => v.home, cell: (v) => v.home},
            {
              title: 'bytes',
              number: true,
              key: (v) => v.bytes || 0,
              cell: (v) => (v.bytes || 0).toLocaleString('en')
            },
            {
              title: 'steps',
              number: true,
              key: (v) => (v.last || 0) - (v.first || 0),
              cell: (v) => `${v.first || 0} to ${v.last || 0}`
            },
          ],
          [...log.of('value')].sort((a, b) => (b.bytes || 0) - (a.bytes || 0)).slice(0, 200)));
}
