// Rewrite rules with their proofs, and passes.

/** A large drawing without its boxes of constants. */
function withoutConstants(drawing) {
  const labels = drawing?.labels || [];
  if (labels.length <= 16) return drawing;
  const place = new Map(), kept = [];
  labels.forEach((label, box) => {
    if (label.startsWith('constant ')) return;
    place.set(box, kept.length);
    kept.push(label);
  });
  const edges = (drawing.edges || []).filter(([from, to]) => place.has(from) && place.has(to));
  return {labels: kept, edges: edges.map(([from, to]) => [place.get(from), place.get(to)])};
}

/** Small graph as a picture, in layers. */
function picture(whole) {
  const drawing = withoutConstants(whole), labels = drawing?.labels || [],
        edges = (drawing?.edges ||
                 []).filter(([from, to]) => labels[from] !== undefined && labels[to] !== undefined);
  if (!labels.length) return null;
  const rank = labels.map(() => 0);
  for (let round = 0; round < Math.min(labels.length, 60); ++round)
    for (const [from, to] of edges) rank[to] = Math.max(rank[to], rank[from] + 1);
  const layers = [];
  labels.forEach((_, box) => (layers[Math.min(rank[box], 60)] ||= []).push(box));
  const width = (box) => Math.min(220, 16 + 6.2 * short(labels[box], 32).length);
  const total = (layer) => layer.reduce((sum, box) => sum + width(box) + 14, 0);
  const rows = layers.filter(Boolean);
  const wide = Math.max(...rows.map(total)), at = [];
  rows.forEach((layer, row) => {
    let x = (wide - total(layer)) / 2;
    for (const box of layer) {
      at[box] = [x + width(box) / 2 + 7, 18 + 46 * row];
      x += width(box) + 14;
    }
  });
  const height = 36 + 46 * (rows.length - 1);
  return h(
      'svg', {class: 'drawing', viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: 'img'},
      edges.map(([from, to]) => h('line', {
                  class: 'edge',
                  x1: at[from][0],
                  y1: at[from][1] + 11,
                  x2: at[to][0],
                  y2: at[to][1] - 11
                })),
      labels.map(
          (label, box) =>
              h('g', {class: 'node'}, h('title', {}, short(label, 400)), h('rect', {
                  x: at[box][0] - width(box) / 2,
                  y: at[box][1] - 11,
                  width: width(box),
                  height: 22,
                  rx: 5
                }),
                h('text', {x: at[box][0], y: at[box][1] + 4, 'text-anchor': 'middle'},
                  '\u2068' + short(label, 32) + '\u2069'))));
}

/** Output of a mutant at small sizes, with the corrected boxes coloured. */
function regionPicture(grid) {
  const cell = 12, top = 20, rows = grid.rows || 0, columns = grid.columns || 0;
  const box = ([row, bottom, column, right], attributes) => h('rect', {
    x: column * cell,
    y: top + row * cell,
    width: (right - column) * cell,
    height: (bottom - row) * cell,
    ...attributes
  });
  const line = (x1, y1, x2, y2) =>
      h('line', {class: 'axis', x1: x1 * cell, y1: top + y1 * cell, x2: x2 * cell, y2: top + y2 * cell});
  const lines = [];
  for (let row = 0; row <= rows; ++row) lines.push(line(0, row, columns, row));
  for (let column = 0; column <= columns; ++column) lines.push(line(column, 0, column, rows));
  const width = Math.max(250, columns * cell + 1), height = top + rows * cell + 1;
  return h(
      'svg', {
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: 'img',
        class: 'region',
        'aria-label': 'Output of the mutant, with the corrected positions coloured'
      },
      h('text', {x: 0, y: 12},
        `output ${grid.output || 0}: axis ${grid.row_axis || 0} down, axis ${
            grid.column_axis || 0} across`),
      box([0, rows, 0, columns], {fill: 'var(--right)'}),
      (grid.boxes || []).map((one) => box(one, {fill: 'var(--wrong)'})), lines);
}

/** The mutant, and where it is corrected. */
function mutantDetails(rewrite) {
  if (!rewrite.corrected) return null;
  return [
    h('h3', {}, 'Partially equivalent: corrected where it is wrong'),
    h('p', {}, h('b', {}, 'Corrected: '), rewrite.corrected),
    h('div', {class: 'rule'},
      h('div', {}, h('h3', {}, 'mutant, before its correction'),
        h('div', {class: 'scroll'}, picture(rewrite.mutant))),
      h('div', {}, h('h3', {}, 'output at small sizes, corrected positions colored'),
        (rewrite.regions || []).map(regionPicture)))
  ];
}

/** Change of time, with its sign. */
function change(milliseconds) {
  return `${milliseconds > 0 ? '+' : '−'}${ms(Math.abs(milliseconds))}`;
}

/** Expected time of the whole model without and with a rule or pass; '' if it is not known. */
function expectedGain(record) {
  if (!record.before_ms) return '';
  const by = record.measured ? 'measured kernels' : 'the roofline model',
        share = 100 * Math.abs(record.expected_ms || 0) / record.before_ms;
  return record.expected_ms ?
      `${change(record.expected_ms)} expected for the whole model, ${
          share < 0.01 ? 'less than 0.01' : numeral(share, 2)} % of ${ms(record.before_ms)} by ${by}` :
      `no change expected for the whole model, ${ms(record.after_ms)} by ${by}`;
}

/** Steps that compute what became of the places of a rewrite. */
function stepsOf(rewrite) {
  const steps = new Set();
  for (const name of rewrite.where || []) {
    const node = index.producer.get(name);
    for (const made of (node && index.became.get(node.id || 0)) || [])
      for (const step of index.stepsOfNode.get(made.id || 0) || []) steps.add(step);
  }
  return [...steps];
}

/** What a rule was expected and measured to bring. */
function gainOf(rewrite) {
  const parts = [];
  if (rewrite.by !== 'search') {
    parts.push(expectedGain(rewrite) || 'not estimated, since sizes are not known');
  } else {
    if (rewrite.expected_ms) parts.push(`${change(rewrite.expected_ms)} expected in all places`);
    if (rewrite.before_ms)
      parts.push(`${ms(rewrite.before_ms)} → ${ms(rewrite.after_ms)} ${
          rewrite.measured ? 'measured' : 'expected'} of one region, with all rules applied to it`);
  }
  const steps = rewrite.rejected ? [] : stepsOf(rewrite).filter((step) => index.time.has(step.id || 0));
  const taken = steps.reduce((sum, step) => sum + (index.time.get(step.id || 0).ms || 0), 0);
  const run = log.last('run')?.ms;
  const measured = steps.length ?
      `Measured: the ${plural(steps.length, 'step')} that compute these places now take ${ms(taken)}` +
          (run ? `, ${(100 * taken / run).toFixed(1)} % of a run.` : '.') :
      '';
  return [
    h('p', {class: 'gain'}, h('b', {}, 'Gain: '), parts.join('; ')),
    measured ? h('p', {class: 'measured'}, measured) : null
  ];
}

function rewriteDetails(rewrite, open) {
  const total = Object.values(rewrite.proof_steps || {}).reduce((sum, count) => sum + count, 0);
  const places = (rewrite.where || []).map((name) => {
    const node = index.producer.get(name);
    return node ? nodeLink('original', node) : named(name);
  });
  const proved = rewrite.verdict === 'proved';
  return h(
      'details', {open, id: 'rule-' + rewrite.rule},
      h('summary', {}, h('b', {}, rewrite.rule),
        ` ${rewrite.times > 1 ? rewrite.times + ' times' : 'once'} by ${rewrite.by} · `,
        h('span', {class: proved ? 'good' : 'bad'}, rewrite.verdict || 'unknown'),
        ` · ${rewrite.numerics === 'exact' ? 'exact: keeps every bit' : rewrite.numerics || ''}`,
        rewrite.expected_ms ? ` · ${change(rewrite.expected_ms)} expected` : ''),
      rewrite.about ? h('p', {}, rewrite.about) : null,
      rewrite.equation ? h('pre', {}, rewrite.equation) : null,
      h('div', {class: 'rule'},
        h('div', {}, h('h3', {}, 'source'), h('div', {class: 'scroll'}, picture(rewrite.source))),
        h('div', {}, h('h3', {}, rewrite.corrected ? 'target: mutant and correction' : 'target'),
          h('div', {class: 'scroll'}, picture(rewrite.target)))),
      mutantDetails(rewrite),
      h('p', {}, h('b', {}, 'Guard: '), rewrite.guard || 'none'),
      h('p', {}, h('b', {}, 'Proof: '),
        proved ? `proved for all sizes${rewrite.guard ? ' where ' + rewrite.guard : ''} in ${
                     plural(total, 'step')}: ` +
                Object.entries(rewrite.proof_steps || {})
                    .map(([kind, count]) => `${count} ${kind}`)
                    .join(', ') :
                 rewrite.verdict || 'unknown'),
      rewrite.certificate ? h('details', {}, h('summary', {}, 'Steps of the proof (certificate)'),
                              h('pre', {}, rewrite.certificate)) :
                            null,
      (rewrite.assumptions || []).length ?
          h('p', {}, h('b', {}, 'Assuming that '), rewrite.assumptions.join('; ')) :
          null,
      rewrite.found ? h('p', {}, h('b', {}, 'Found: '), rewrite.found) : null,
      gainOf(rewrite),
      places.length ? h('p', {}, h('b', {}, 'Where: '),
                        places.slice(0, 60).flatMap((one, i) => (i ? [', ', one] : [one])),
                        places.length > 60 ? ` and ${places.length - 60} more` : '') :
                                             null);
}

function rewritesTab(place) {
  const rewrites = index.applied, rejected = log.of('rewrite').filter((one) => one.rejected);
  const wanted = decodeURIComponent(place[0] || '');
  const details = (rewrite, i) =>
      rewriteDetails(rewrite, wanted ? rewrite.rule === wanted : i === 0);
  const tab =
      h('div', {}, h('h2', {}, 'Rewrite rules'),
        rewrites.length ? rewrites.map(details) :
                          h('p', {}, 'No rewrite rule was applied to this model.'),
        rejected.length ?
            [
              h('h2', {}, 'Found by the search, not applied'),
              h('p', {}, 'The graph with these rules was not faster beyond the 95 % interval.'),
              rejected.map(details)
            ] :
            null,
        h('h2', {}, 'Passes'),
        table(
            [
              {title: 'pass', cell: (pass) => h('span', {title: pass.summary}, pass.name)},
              {title: 'what it does', cell: (pass) => pass.summary || ''},
              {title: 'numerics', cell: (pass) => pass.numerics || ''},
              {title: 'time', number: true, cell: (pass) => ms(1e3 * (pass.seconds || 0))},
              {
                title: 'nodes',
                number: true,
                cell: (pass) => `${pass.nodes_before || 0} → ${pass.nodes_after || 0}`
              },
              {
                title: 'expected gain',
                number: true,
                cell: (pass) => pass.before_ms ?
                    h('span', {title: expectedGain(pass)},
                      pass.expected_ms ? change(pass.expected_ms) : 'none') :
                    ''
              },
              {title: 'validation', cell: (pass) => pass.validation || ''},
              {
                title: 'changes',
                cell: (pass) =>
                    (pass.changes ||
                     []).map((change) => h('div', {}, `${change.times} × ${change.what}`))
              },
            ],
            log.of('pass')));
  requestAnimationFrame(
      () => wanted && document.getElementById('rule-' + wanted)?.scrollIntoView());
  return tab;
}
