// Times of steps: a bar of a run, the roofline, a table.

/** Steps of a run side by side, as wide as their time; what runs in a loop has a row of its own. */
function timeline(run) {
  const width = 1200, row = 34, whole = run.ms || 1;
  let x = 0;
  const rows = [], loops = new Map();
  for (const step of index.steps.values()) {
    const time = index.time.get(step.id || 0)?.ms || 0;
    const wide = (time / whole) * width;
    if (step.loop >= 0) {
      const loop = loops.get(step.loop) || {x, wide: 0};
      loops.set(step.loop, loop);
      loop.wide += wide;
    }
    const name = step.names?.[0] || step.what || '', letters = Math.floor((wide - 6) / 6.3);
    if (wide > 0.05)
      rows.push(h(
          'g', {class: 'link', onclick: () => (location.hash = 'time/' + (step.id || 0))},
          h('title', {}, `${short(name, 200)}: ${ms(time)}, ${step.what} ${step.strategy || ''}`),
          h('rect', {
            x,
            y: 0,
            width: Math.max(0.4, wide - 0.2),
            height: row,
            fill: strategyColours.of(strategyKind(step))
          }),
          letters >= 5 ? h('text', {class: 'inside', x: x + 3, y: row / 2 + 4},
                           '\u2068' + short(name, letters) + '\u2069') :
                         ''));
    x += wide;
  }
  const between = Math.max(0, ((run.between_ms || 0) / whole) * width);
  rows.push(
      h('rect', {x, y: 0, width: between, height: row, fill: 'var(--line)'},
        h('title', {}, `between steps: ${ms(run.between_ms || 0)}`)));
  for (const [id, loop] of loops) {
    const step = index.steps.get(id);
    rows.push(h(
        'rect',
        {x: loop.x, y: row + 3, width: Math.max(1, loop.wide), height: 12, fill: 'var(--faint)'},
        h('title', {},
          `loop of ${plural(step?.iterations, 'iteration')}: ${ms((loop.wide / width) * whole)}`)));
  }
  return h(
      'svg', {
        class: 'drawing',
        viewBox: `0 0 ${width} ${row + (loops.size ? 18 : 2)}`,
        width,
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': 'Steps of a run, as wide as their time'
      },
      rows);
}

/**
 * Axis of a plot: where a value is, from 0 to 1, and ticks. Logarithmic ones have ticks at powers of
 * ten, and at their 2 and 5 fold where the values span less than two of them.
 */
function axisOf(values, linear) {
  if (linear) {
    const most = Math.max(...values), unit = 10 ** Math.floor(Math.log10(most || 1));
    const step = [0.2, 0.5, 1, 2, 5].map((part) => part * unit).find((part) => most / part <= 6);
    const count = Math.ceil(most / step) || 1;
    return {
      ticks: Array.from({length: count + 1}, (_, i) => i * step),
      at: (value) => value / (count * step)
    };
  }
  const least = Math.min(...values), most = Math.max(...values) * 1.0001;
  const factors = Math.log10(most / least) < 2 ? [1, 2, 5] : [1], all = [];
  for (let e = Math.floor(Math.log10(least)); e <= Math.ceil(Math.log10(most)); ++e)
    all.push(...factors.map((factor) => factor * 10 ** e));
  const first = Math.max(0, all.findLastIndex((tick) => tick <= least * 1.0001));
  const last = Math.max(first + 1, all.findIndex((tick) => tick >= most * 0.9998));
  const ticks = all.slice(first, last + 1), low = Math.log10(ticks[0]);
  const span = Math.log10(ticks.at(-1)) - low || 1;
  return {ticks, at: (value) => (Math.log10(value) - low) / span};
}

/** Plot: points {x, y, title, href, colour}, lines of points; logarithmic but for a linear x. */
function plot({title, x: xTitle, y: yTitle, points, lines = [], linear = false}) {
  const all = points.filter((point) => (linear || point.x > 0) && point.y > 0);
  if (!all.length) return null;
  const width = 520, height = 320, left = 56, bottom = 40, right = 24;
  const values = (key) => [...all, ...lines.flat()].map((point) => point[key])
                              .filter((value) => value > 0 || (linear && key === 'x'));
  const xs = axisOf(values('x'), linear), ys = axisOf(values('y'), false);
  const px = (value) => left + xs.at(value) * (width - left - right);
  const py = (value) => height - bottom - ys.at(value) * (height - bottom - 10);
  const ticks = [
    ...xs.ticks.flatMap(
        (tick) =>
            [h('line', {class: 'axis', x1: px(tick), x2: px(tick), y1: 10, y2: height - bottom}),
             h('text', {x: px(tick), y: height - bottom + 14, 'text-anchor': 'middle'},
               tickText(tick))]),
    ...ys.ticks.flatMap(
        (tick) =>
            [h('line', {class: 'axis', x1: left, x2: width - right, y1: py(tick), y2: py(tick)}),
             h('text', {x: left - 6, y: py(tick) + 4, 'text-anchor': 'end'}, tickText(tick))])
  ];
  return h(
      'figure', {style: 'margin:0'}, h('h3', {}, title),
      h('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': title},
        ticks, lines.map((line) => h('polyline', {
                           class: 'roof',
                           points: line.map((point) => `${px(point.x)},${py(point.y)}`).join(' ')
                         })),
        all.map(
            (point) =>
                h('circle', {
                  class: 'link point',
                  cx: px(point.x),
                  cy: py(point.y),
                  r: 4.5,
                  fill: point.colour,
                  'fill-opacity': 0.75,
                  tabindex: 0,
                  onclick: () => (location.hash = point.href),
                  onkeydown: (event) => event.key === 'Enter' && (location.hash = point.href)
                },
                  h('title', {}, point.title))),
        h('text', {x: (left + width) / 2, y: height - 8, 'text-anchor': 'middle'}, xTitle),
        h('text', {
          x: 12,
          y: height / 2,
          'text-anchor': 'middle',
          transform: `rotate(-90 12 ${height / 2})`
        },
          yTitle)));
}
const tickText = (value) => (value === 0 || (value >= 0.01 && value <= 1e4) ?
                                 String(Number(value.toPrecision(2))) :
                                 value.toExponential(0));

function roofline() {
  const target = log.last('target') || {};
  const points = [];
  for (const step of index.steps.values()) {
    const time = index.time.get(step.id || 0);
    if (!time?.ms || !step.flops || !step.bytes) continue;
    const seconds = time.ms / 1e3 / (time.calls || 1);
    points.push({
      x: step.flops / step.bytes,
      y: step.flops / seconds / 1e9,
      colour: strategyColours.of(strategyKind(step)),
      href: step.kernel === undefined ? 'time/' + (step.id || 0) : 'kernels/' + step.kernel,
      title: `${short(step.names?.[0] || step.what, 200)}: ${
          numeral(step.flops / seconds / 1e9)} GFLOP/s, ${ms(time.ms)}`
    });
  }
  const lines = [];
  const {peak_gflops: peak, bandwidth_gbytes: bandwidth} = target;
  if (peak && bandwidth && points.length) {
    const least = Math.min(...points.map((point) => point.x), peak / bandwidth / 10);
    const most = Math.max(...points.map((point) => point.x), (peak / bandwidth) * 10);
    lines.push(
        [{x: least, y: least * bandwidth}, {x: peak / bandwidth, y: peak}, {x: most, y: peak}]);
  }
  return plot({title: 'Roofline', x: 'FLOP per byte', y: 'GFLOP/s', points, lines});
}

function expectedPlot() {
  const points = [];
  for (const [id, time] of index.time) {
    if (!time.expected_ms || !time.ms) continue;
    const step = index.steps.get(id) || {};
    points.push({
      x: time.expected_ms,
      y: time.ms,
      colour: strategyColours.of(strategyKind(step)),
      href: 'time/' + id,
      title: `${short(step.names?.[0] || step.what, 200)}: expected ${ms(time.expected_ms)} (${
          time.expected_from}), measured ${ms(time.ms)}`
    });
  }
  const values = points.flatMap((point) => [point.x, point.y]);
  const lines = values.length ? [[
    {x: Math.min(...values), y: Math.min(...values)},
    {x: Math.max(...values), y: Math.max(...values)}
  ]] :
                                [];
  return plot(
      {title: 'Expected against measured', x: 'expected ms', y: 'measured ms', points, lines});
}

/** Trace of the last run, in the format of Perfetto. */
function trace() {
  const events = log.of('span').map((span) => {
    const step = index.steps.get(span.step || 0) || {};
    return {
      name: short(step.names?.[0] || step.what || 'step', 200),
      ph: 'X',
      pid: 1,
      tid: 1,
      ts: span.start_us || 0,
      dur: span.us || 0,
      args: {
        step: span.step || 0,
        what: step.what,
        how: step.strategy,
        nodes: (step.names || []).slice(0, 8)
      }
    };
  });
  return JSON.stringify({traceEvents: events, displayTimeUnit: 'ms'});
}

function timeTab(place) {
  const run = log.last('run');
  const chosen = place.length ? Number(place[0]) : -1;
  const share = (step) => (run?.ms ? (index.time.get(step.id || 0)?.ms || 0) / run.ms : 0);
  const loopOf = (step) => (step.loop >= 0 ? index.steps.get(step.loop) : undefined);
  const rows = [...index.steps.values()];
  if (run) rows.sort((a, b) => share(b) - share(a));
  const time = (step) => index.time.get(step.id || 0) || {};
  const rate = (step, key) =>
      (time(step).ms && step[key] ? (step[key] * (time(step).calls || 1)) / (time(step).ms * 1e6) :
                                    undefined);
  const loopText = (loop) => {
    const total = rows.filter((step) => step.loop === (loop.id || 0))
                      .reduce((sum, step) => sum + (time(step).ms || 0), 0);
    return plural(loop.iterations, 'iteration') +
        (total ? `: ${ms(total)} in all, ${ms(total / (loop.iterations || 1))} each` : '');
  };
  const columns = [
    {
      title: 'step',
      number: true,
      key: (s) => s.id || 0,
      cell: (s) => link('time/' + (s.id || 0), String(s.id || 0))
    },
    {title: 'ONNX nodes', key: (s) => s.names?.[0] || '', cell: (s) => nodesOfStep(s)},
    {title: 'operators', key: (s) => s.what || '', cell: (s) => short(s.what, 60)},
    {
      title: 'strategy',
      key: (s) => s.strategy || '',
      cell: (s) =>
          [short(s.strategy, 80),
           loopOf(s) ? h('div', {class: 'faint'}, `in a loop of ${loopOf(s).iterations || 0}`) : '',
           s.kind === 'loop' ? h('div', {class: 'faint'}, loopText(s)) : '']
    },
    {
      title: 'kernel',
      number: true,
      key: (s) => s.kernel ?? -1,
      cell: (s) => (s.kernel === undefined ? '' : link('kernels/' + s.kernel, String(s.kernel)))
    },
  ];
  if (run)
    columns.push(
        {title: 'time', number: true, key: (s) => time(s).ms || 0, cell: (s) => ms(time(s).ms)},
        {title: 'share', key: share, cell: (s) => [bar(share(s)), ' ', percent(share(s))]}, {
          title: 'calls',
          number: true,
          key: (s) => time(s).calls || 0,
          cell: (s) =>
              [String(time(s).calls || ''),
               time(s).calls > 1 ?
                   h('div', {class: 'faint'}, ms(time(s).ms / time(s).calls) + ' each') :
                   '']
        },
        {
          title: 'expected',
          number: true,
          key: (s) => time(s).expected_ms || 0,
          cell: (s) =>
              (time(s).expected_ms ?
                   (time(s).expected_from === 'roofline' ? '~' : '') + ms(time(s).expected_ms) :
                   '')
        },
        {
          title: 'GFLOP/s',
          number: true,
          key: (s) => rate(s, 'flops') || 0,
          cell: (s) => numeral(rate(s, 'flops'))
        },
        {
          title: 'GB/s',
          number: true,
          key: (s) => rate(s, 'bytes') || 0,
          cell: (s) => numeral(rate(s, 'bytes'))
        });
  const sum = rows.reduce((total, step) => total + (time(step).ms || 0), 0);
  const tab =
      h('div', {}, h('h2', {}, 'Time'),
        run ?
            [
              h('p', {id: 'total', 'data-ms': run.ms, 'data-sum': sum + (run.between_ms || 0)},
                `A run takes ${ms(run.ms)}: ${ms(sum)} in ${plural(rows.length, 'step')} and ${
                    ms(run.between_ms || 0)} between them. ` +
                    `Times are means over the middle half of ${plural(run.runs, 'run')}. `,
                log.of('span').length ?
                    download('trace for Perfetto (ui.perfetto.dev)', 'trace.json', trace) :
                    ''),
              h('div', {class: 'scroll'}, timeline(run)), strategyColours.legend(),
              h('div', {class: 'columns'}, roofline(), expectedPlot())
            ] :
            h('p', {}, 'No time was measured: ', h('code', {}, 'tessera profile'), ' or ',
              h('code', {}, 'tessera report'), ' measures it.'),
        h('h2', {}, 'Steps'), table(columns, rows, {
          row: (step) =>
              ({id: 'step-' + (step.id || 0), class: (step.id || 0) === chosen && 'chosen'})
        }));
  if (chosen >= 0) whenThere('step-' + chosen, (row) => row.scrollIntoView({block: 'center'}));
  return tab;
}

function nodesOfStep(step) {
  const names = step.names || [];
  const shown = names.slice(0, 3).map((name) => {
    const node = index.byName.get(name);
    return h('div', {}, node ? nodeLink('original', node, 56) : named(name, 56));
  });
  if (names.length > 3)
    shown.push(
        h('details', {}, h('summary', {}, `${names.length - 3} more`),
          names.slice(3).map((name) => h('div', {}, named(name, 56)))));
  return shown;
}
