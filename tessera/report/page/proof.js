// Proofs of `tessera prove`, and comparisons of two logs.

function proofTab() {
  return h('div', {}, log.of('proof').map((proof) => {
    const style = {proved: 'good', refuted: 'bad'}[proof.verdict] || 'warn';
    const position = (proof.position || []).join(', ');
    return h(
        'section', {},
        h('h2', {}, named(proof.source), ' and ', named(proof.target), ': ',
          h('span', {class: style}, proof.verdict)),
        h('p', {},
          `Of ${plural(proof.values, 'value')} of the second model, ${
              plural(proof.congruent, 'is', 'are')} equal to one of the first by congruence and ` +
              `${plural(proof.proved, 'is', 'are')} by proofs of their own, in ${
                  numeral(proof.seconds)} s.`),
        (proof.assumptions || []).length ?
            [
              h('h3', {}, 'Assuming that'),
              h('ul', {class: 'plain'}, proof.assumptions.map((text) => h('li', {}, text)))
            ] :
            null,
        proof.why ? h('p', {class: style}, proof.why) : null,
        proof.output ?
            h('p', {}, 'Output ', named(proof.output), position ? ` at [${position}]` : '',
              `: ${numeral(proof.source_value || 0, 7)} and ${
                  numeral(proof.target_value || 0, 7)}`) :
            null,
        proof.difference ? h('p', {}, h('b', {}, proof.difference)) : null,
        proof.source_graph ?
            h('div', {class: 'rule'},
              [
                ['first', proof.source_drawing, proof.source_graph],
                ['second', proof.target_drawing, proof.target_graph]
              ]
                  .map(
                      ([title, drawing, text]) =>
                          h('div', {}, h('h3', {}, `subgraph of the ${title} model`),
                            h('div', {class: 'scroll'}, picture(drawing)), h('pre', {}, text)))) :
            null);
  }));
}

function compareTab() {
  const differences = log.of('difference');
  const sum = (key) => differences.reduce((total, entry) => total + (entry[key] || 0), 0);
  const change = (entry) => (entry.b_ms || 0) - (entry.a_ms || 0);
  const largest = Math.max(1e-9, ...differences.map((entry) => Math.abs(change(entry))));
  const file = (of) => named(of?.last('model')?.file || of?.header.command || 'second');
  const rows = [
    ['steps', (of) => of.of('step').length], ['a run', (of) => ms(of.last('run')?.ms)],
    ['activations', (of) => bytes(of.last('memory')?.arena_bytes)],
    ['weights', (of) => bytes(of.last('memory')?.weight_bytes)],
    ['precision', (of) => of.last('target')?.precision],
    // A saved program has no records of passes.
    ['rules applied', (of) => of.of('pass').length || of.of('rewrite').length ?
         of.of('rewrite').filter((one) => !one.rejected).map((one) => one.rule).join(', ') || 'none' :
         undefined]
  ].filter(([, value]) => other && (value(log) !== undefined || value(other) !== undefined));
  return h(
      'div', {}, h('h2', {}, 'Comparison'),
      other &&
          h('div', {class: 'scroll'},
            h('table', {},
              h('tr', {}, h('th', {}, ''), h('th', {}, file(log)), h('th', {}, file(other))),
              rows.map(
                  ([title, of]) =>
                      h('tr', {}, h('th', {scope: 'row'}, title), h('td', {}, of(log) ?? 'not known'),
                        h('td', {}, of(other) ?? 'not known'))))),
      h('p', {}, `All steps: ${ms(sum('a_ms'))} and ${ms(sum('b_ms'))}.`),
      table(
          [
            {
              title: 'ONNX nodes',
              key: (e) => e.names?.[0] || '',
              cell: (e) =>
                  [named(e.names?.[0] || ''),
                   e.names?.length > 1 ? ` and ${e.names.length - 1} more` : '']
            },
            {title: 'first', number: true, key: (e) => e.a_ms || 0, cell: (e) => ms(e.a_ms || 0)},
            {title: 'second', number: true, key: (e) => e.b_ms || 0, cell: (e) => ms(e.b_ms || 0)},
            {
              title: 'change',
              key: change,
              cell: (e) =>
                  [h('span', {
                     class: 'bar',
                     style: `width:${
                         Math.round((90 * Math.abs(change(e))) / largest)}px;background:var(${
                         change(e) > 0 ? '--bad' : '--good'})`
                   }),
                   ' ', h('span', {style: 'white-space:nowrap'},
                          (change(e) > 0 ? '+' : '−') + ms(Math.abs(change(e))))]
            },
            {title: 'first computed as', cell: (e) => short(e.a_how, 120)},
            {
              title: 'second computed as',
              cell: (e) =>
                  (e.b_how === e.a_how ? h('span', {class: 'faint'}, 'the same') :
                                         short(e.b_how, 120))
            },
          ],
          differences));
}
