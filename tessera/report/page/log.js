'use strict';
// Reads the event log that the page contains, and shows it. Text of the log only ever becomes the
// text of an element, an attribute or a canvas: names in a model are never read as HTML.

function readLog(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const lines = element.textContent.split('\n').filter((line) => line.trim());
  const log = {text: element.textContent.trimStart(), header: {}, all: {}};
  for (const line of lines) {
    const record = JSON.parse(line);
    if (record.event === 'log')
      log.header = record;
    else
      (log.all[record.event] ||= []).push(record);
  }
  log.of = (event) => log.all[event] || [];
  log.last = (event) => log.of(event).at(-1);
  return log;
}

const log = readLog('events');
const other = readLog('other-events');
const layouts = JSON.parse(document.getElementById('layouts').textContent);

// Index of the log: what the parts of the page look up. Fields with their default are left out of
// a log, so that numbers may be missing.
const index = (() => {
  const byId = (records) => new Map(records.map((record) => [record.id || 0, record]));
  const nodes = log.of('node');
  const graphs = [...new Set(nodes.map((node) => node.graph))];
  const nodesOf = new Map(graphs.map((g) => [g, byId(nodes.filter((node) => node.graph === g))]));
  const after = graphs.find((graph) => graph !== 'original');
  const steps = byId(log.of('step'));
  const time = new Map(log.of('step_time').map((record) => [record.step || 0, record]));
  const definitions = byId(log.of('definition'));
  const kernels = byId(log.of('kernel'));
  const stepsOfNode = new Map();  // of the graph after
  for (const step of steps.values())
    for (const node of step.nodes || []) push(stepsOfNode, node, step);
  const became = new Map();    // original node -> nodes after
  const producer = new Map();  // name of a value -> original node
  for (const node of nodesOf.get(after)?.values() || [])
    for (const origin of node.origins || []) push(became, origin, node);
  for (const node of nodesOf.get('original')?.values() || [])
    for (const result of node.results || []) producer.set(result.name, node);
  const byName = new Map();
  for (const node of nodesOf.get('original')?.values() || []) byName.set(node.name, node);
  const rewritesOf = new Map();  // original node -> rewrites and changes by passes
  const place = (names, what) => {
    for (const name of names || []) {
      const node = producer.get(name);
      if (node && !(rewritesOf.get(node.id || 0) || []).includes(what))
        push(rewritesOf, node.id || 0, what);
    }
  };
  const applied = log.of('rewrite').filter((rewrite) => !rewrite.rejected);
  for (const rewrite of applied) place(rewrite.where, {rewrite});
  for (const pass of log.of('pass'))
    for (const change of pass.changes || [])
      if (!applied.some((rewrite) => rewrite.rule === change.what))
        place(change.where, {pass, change});
  const mainTime = new Map();  // name of an original node -> ms of the steps mainly about it
  for (const [id, record] of time) {
    const name = steps.get(id)?.names?.[0];
    if (name !== undefined) mainTime.set(name, (mainTime.get(name) || 0) + (record.ms || 0));
  }
  return {
    graphs,
    nodesOf,
    after,
    steps,
    time,
    definitions,
    kernels,
    stepsOfNode,
    became,
    producer,
    byName,
    rewritesOf,
    applied,
    mainTime
  };
})();

function push(map, key, value) {
  if (map.has(key))
    map.get(key).push(value);
  else
    map.set(key, [value]);
}
