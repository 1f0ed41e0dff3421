// Rewrite rules with their proofs, and passes.

/** Small graph as a picture, in layers. */
function picture(drawing) {
  const labels = drawing?.labels || [],
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
      'svg', {viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: 'img'},
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
        ` · ${rewrite.numerics === 'exact' ? 'exact: keeps every bit' : rewrite.numerics || ''}`),
      h('p', {}, rewrite.about || ''), h('pre', {}, rewrite.equation || ''),
      h('div', {class: 'rule'}, h('div', {}, h('h3', {}, 'source'), picture(rewrite.source)),
        h('div', {}, h('h3', {}, 'target'), picture(rewrite.target))),
      h('p', {}, h('b', {}, 'Guard: '), rewrite.guard || 'none'),
      h('p', {}, h('b', {}, 'Proof: '),
        proved ? `proved for all sizes${rewrite.guard ? ' where ' + rewrite.guard : ''} in ${
                     plural(total, 'step')}: ` +
                Object.entries(rewrite.proof_steps || {})
                    .map(([kind, count]) => `${count} ${kind}`)
                    .join(', ') :
                 rewrite.verdict || 'unknown'),
      (rewrite.assumptions || []).length ?
          h('p', {}, h('b', {}, 'Assuming that '), rewrite.assumptions.join('; ')) :
          null,
      rewrite.found ? h('p', {}, h('b', {}, 'Found: '), rewrite.found) : null,
      rewrite.before_ms ?
          h('p', {}, h('b', {}, rewrite.measured ? 'Measured: ' : 'Expected: '),
            `${ms(rewrite.before_ms)} → ${
                ms(rewrite
                       .after_ms)} of the region, with the other rules that were applied to it`) :
          null,
      places.length ? h('p', {}, h('b', {}, 'Where: '),
                        places.slice(0, 60).flatMap((one, i) => (i ? [', ', one] : [one])),
                        places.length > 60 ? ` and ${places.length - 60} more` : '') :
                                             null);
}

function rewritesTab(place) {
  const rewrites = log.of('rewrite');
  const wanted = decodeURIComponent(place[0] || '');
  const tab =
      h('div', {}, h('h2', {}, 'Rewrite rules'),
        rewrites.length ? rewrites.map(
                              (rewrite, i) => rewriteDetails(
                                  rewrite, wanted ? rewrite.rule === wanted : i === 0)) :
                          h('p', {}, 'No rewrite rule was applied to this model.'),
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
