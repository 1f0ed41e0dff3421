// Summary: latency, memory, what is proved, the slowest steps.

function card(value, title, note) {
  return h(
      'div', {class: 'card'}, h('span', {}, title), h('b', {}, value), note && h('span', {}, note));
}

function summaryCards() {
  const bench = log.last('benchmark'), run = log.last('run'), memory = log.last('memory');
  const compilation = log.last('compilation'), target = log.last('target'),
        model = log.last('model');
  const cards = [];
  const latency = bench?.p50_ms ?? run?.ms;
  if (latency !== undefined)
    cards.push(card(
        ms(latency), 'Latency',
        bench ? `median of ${plural(bench.runs, 'run')}` :
                `mean of the middle half of ${plural(run.runs, 'run')}`));
  if (bench?.peer)
    cards.push(card(
        `${numeral(bench.speedup)}×`, `Speedup over ${bench.peer}`,
        `95 % interval ${numeral(bench.speedup_low)} to ${numeral(bench.speedup_high)}; ` +
            `it takes ${ms(bench.peer_p50_ms)}`));
  if (memory) {
    cards.push(card(
        bytes(memory.arena_bytes), 'Activations',
        memory.lower_bound ? `at least ${bytes(memory.lower_bound)} are needed at one time` : ''));
    cards.push(card(
        bytes(memory.weight_bytes), 'Weights',
        `as packed; in the file ${bytes(model?.parameter_bytes)}`));
    cards.push(card(bytes(memory.code_bytes), 'Code', plural(log.of('kernel').length, 'kernel')));
  }
  if (bench?.peer)
    cards.push(card(
        (bench.error || 0).toExponential(1), 'Largest error of outputs',
        `relative to their RMS, against ${bench.peer}: ${
            bench.agrees === false ? 'too large' : 'within the tolerance'}`));
  else if (target?.error >= 0)
    cards.push(card(
        target.error.toExponential(1), 'Largest error of outputs',
        `of ${target.precision} against f32, relative to their RMS`));
  if (model) {
    const after = index.after ? index.nodesOf.get(index.after).size : undefined;
    cards.push(card(
        after === undefined ? numeral(model.nodes) : `${numeral(model.nodes)} → ${numeral(after)}`,
        'Nodes', index.steps.size ? `in ${plural(index.steps.size, 'step')}` : ''));
  }
  if (compilation)
    cards.push(card(
        `${numeral(compilation.seconds)} s`, 'Compile time',
        `${compilation.kernels_from_cache || 0} of ${
            plural(compilation.kernels, 'kernel')} from the cache`));
  const proof = log.last('proof');
  if (proof) cards.push(card(proof.verdict, 'Equivalence', `${proof.source} and ${proof.target}`));
  return cards;
}

/** What is proved of a pass that changed the graph: '' if nothing is. */
function proofOf(pass) {
  if (pass.validation) return pass.validation.startsWith('proved') ? 'on this model' : '';
  const rules = new Map(index.applied.map((rewrite) => [rewrite.rule, rewrite]));
  const changes = pass.changes || [];
  return changes.length && changes.every((change) => rules.get(change.what)?.verdict === 'proved') ?
      'by its rules' :
      '';
}

/** What is proved of the result, in words. */
function correctness() {
  const rewrites = index.applied, passes = log.of('pass');
  if (!rewrites.length && !passes.length)
    return !index.steps.size ? null :
                               h('section', {}, h('h2', {}, 'Is it right?'),
                                 h('p', {id: 'verdict'},
                                   'A saved program does not say what was rewritten: ',
                                   h('code', {}, 'tessera compile MODEL --report page.html'),
                                   ' shows that, with proofs.'));
  const changed = passes.filter((pass) => pass.changed);
  const unproved = changed.filter((pass) => !proofOf(pass));
  const bySearch = rewrites.filter((rewrite) => rewrite.by === 'search');
  const open = bySearch.filter((rewrite) => rewrite.verdict !== 'proved');
  const assumptions = [...new Set(rewrites.flatMap((rewrite) => rewrite.assumptions || []))];
  const verdict = !changed.length && !bySearch.length ?
      ['good', 'Unchanged: ', 'the graph that is compiled is that of the model, node by node.'] :
      !unproved.length && !open.length ?
      ['good', 'Proved: ', 'every change of the graph is proved to keep its meaning.'] :
      [
        'warn', 'Partly proved: ',
        `${changed.length - unproved.length} of ${
            plural(changed.length, 'pass', 'passes')} that changed the graph` +
            (bySearch.length ? ` and ${bySearch.length - open.length} of ${
                                   plural(bySearch.length, 'rule')} of the search` :
                               '') +
            ' are proved. ' +
            (unproved.some((pass) => !pass.validation) ?
                 'With --validate, the others are proved on this very model too.' :
                 '')
      ];
  const target = log.last('target'), bench = log.last('benchmark');
  const lines = [
    changed.map((pass) => h('li', {}, link('rewrites', pass.name), `: ${pass.summary || ''}; `,
                            h('span', {class: proofOf(pass) ? 'good' : 'warn'},
                              proofOf(pass) ? `proved ${proofOf(pass)}` :
                                  pass.validation ? pass.validation :
                                                    'not validated on this model'))),
    rewrites.length ?
        h('li', {},
          `${rewrites.filter((rewrite) => rewrite.verdict === 'proved').length} of ${
              plural(rewrites.length, 'applied rewrite rule')} proved, for all sizes and inputs: `,
          rewrites.slice(0, 12).flatMap(
              (rewrite, i) =>
                  [i ? ', ' : '', link('rewrites/' + rewrite.rule, named(rewrite.rule))]),
          rewrites.length > 12 ? ' …' : '') :
        h('li', {}, 'No rewrite rule was applied.'),
    target?.numerics === 'exact' ?
        h('li', {}, 'Numerics exact: results have the same bits as without optimizations.') :
        h('li', {},
          'Numerics reals: results are equal over the real numbers; floating point may round differently.'),
    assumptions.length ?
        h('li', {}, 'The proofs assume that ', assumptions.slice(0, 12).join('; '), '.') :
        null,
    h('li', {},
      'Machine code is not proved: ',
      bench?.peer ? `its outputs ${bench.agrees === false ? 'do not agree' : 'agree'} with those of ${
                        bench.peer}.` :
                    h('span', {}, h('code', {}, 'tessera run --check-steps'),
                      ' compares each kernel with the interpreter.')),
  ];
  return h(
      'section', {}, h('h2', {}, 'Is it right?'),
      h('p', {id: 'verdict'}, h('b', {class: verdict[0]}, verdict[1]), verdict[2]),
      h('ul', {class: 'plain'}, lines));
}

function slowest() {
  const times = log.of('step_time').slice(0, 8);
  if (!times.length) return null;
  const run = log.last('run');
  return h(
      'section', {}, h('h2', {}, 'Slowest steps'),
      table(
          [
            {title: 'ONNX node', cell: (t) => stepLink(index.steps.get(t.step || 0) || {}, 48)},
            {title: 'computed as', cell: (t) => short(index.steps.get(t.step || 0)?.what, 40)},
            {title: 'time', number: true, cell: (t) => ms(t.ms)},
            {title: 'share', number: true, cell: (t) => percent((t.ms || 0) / (run?.ms || 1))},
            {
              title: 'rules that changed it',
              cell: (t) => ruleLinks(originsOfStep(index.steps.get(t.step || 0)))
            },
          ],
          times));
}

function originsOfStep(step) {
  const origins = new Set();
  for (const id of step?.nodes || [])
    for (const origin of index.nodesOf.get(index.after)?.get(id)?.origins || [])
      origins.add(origin);
  return [...origins];
}
function ruleLinks(origins) {
  const names = new Map();
  for (const origin of origins)
    for (const {rewrite, pass, change} of index.rewritesOf.get(origin) || [])
      if (rewrite)
        names.set(rewrite.rule, link('rewrites/' + rewrite.rule, rewrite.rule));
      else
        names.set(change.what, h('span', {class: 'faint'}, `${change.what} (${pass.name})`));
  const links = [...names.values()].slice(0, 6);
  return links.length ? links.flatMap((one, i) => (i ? [', ', one] : [one])) :
                        h('span', {class: 'faint'}, 'none');
}

function about() {
  const model = log.last('model'), target = log.last('target'),
        compilation = log.last('compilation');
  const search = log.last('search');
  const rows = [];
  const row = (name, ...value) =>
      rows.push(h('tr', {}, h('th', {scope: 'row'}, name), h('td', {}, value)));
  if (model) {
    row('model', named(model.file || model.name));
    for (const [kind, list] of [['inputs', model.inputs], ['outputs', model.outputs]])
      row(kind,
          (list || [])
              .slice(0, 20)
              .map((tensor) => h('div', {}, named(tensor.name), ': ', short(tensor.type, 60))));
    if (model.parameters) row('parameters', numeral(model.parameters));
    if (model.multiply_adds) row('multiply-adds', numeral(model.multiply_adds));
  }
  if (target?.architecture)
    row('target', [target.architecture, target.cpu].filter(Boolean).join(', '),
        target.threads ? `, ${plural(target.threads, 'thread')}` : '');
  if (target?.precision) row('precision', target.precision);
  if (target?.peak_gflops)
    row('peak',
        `${numeral(target.peak_gflops)} GFLOP/s (f32), ${
            numeral(target.bandwidth_gbytes)} GB/s, measured`);
  for (const [op, why] of Object.entries(compilation?.interpreted || {}))
    row('interpreted', h('span', {class: 'warn'}, `${op}, ${why}`));
  if (search)
    row('search',
        `${search.kept ? 'a faster graph was found' : 'no better graph was found'} in ${
            numeral(search.seconds)} s` +
            (search.ratio ?
                 `: ${numeral(1 / search.ratio)}× as fast (95 % interval ${
                     numeral(1 / search.ratio_high)} to ${numeral(1 / search.ratio_low)})` :
                 ''));
  const tuning = log.last('tuning');
  if (tuning)
    row('tuning', link('tuning', `${plural(log.of('trial').length, 'candidate')} of ${
                                     plural(log.of('tuning_task').length, 'task')} measured`),
        `: ${ms(tuning.default_ms || 0)} → ${ms(tuning.tuned_ms || 0)} in their kernels`);
  return rows.length ? h('section', {}, h('h2', {}, 'Model and target'),
                         h('div', {class: 'scroll'}, h('table', {}, rows))) :
                       null;
}

function summaryTab() {
  return h(
      'div', {}, h('h2', {}, 'Summary'), h('div', {class: 'cards'}, summaryCards()),
      h('div', {class: 'columns'}, correctness(), slowest()), about(),
      h('p', {}, download('event log', 'events.jsonl', () => log.text)));
}

/** Link that saves text as a file. */
function download(title, file, text) {
  return h(
      'a', {
        href: '#',
        onclick: (event) => {
          event.preventDefault();
          const url = URL.createObjectURL(new Blob([text()], {type: 'application/json'}));
          const anchor = h('a', {href: url, download: file});
          anchor.click();
          setTimeout(() => URL.revokeObjectURL(url), 1000);
        }
      },
      'Download the ' + title);
}
