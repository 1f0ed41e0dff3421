"use strict";
// Reads the event log that the page contains, and shows it. Text of the log only ever becomes the
// text of an element, an attribute or a canvas: names in a model are never read as HTML.

// --- the log -----------------------------------------------------------------------------------

function readLog(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const lines = element.textContent.split("\n").filter((line) => line.trim());
  const log = { text: element.textContent.trimStart(), header: {}, all: {} };
  for (const line of lines) {
    const record = JSON.parse(line);
    if (record.event === "log") log.header = record;
    else (log.all[record.event] ||= []).push(record);
  }
  log.of = (event) => log.all[event] || [];
  log.last = (event) => log.of(event).at(-1);
  return log;
}

const log = readLog("events");
const other = readLog("other-events");
const layouts = JSON.parse(document.getElementById("layouts").textContent);

// Index of the log: what the parts of the page look up. Fields with their default are left out of
// a log, so that numbers may be missing.
const index = (() => {
  const byId = (records) => new Map(records.map((record) => [record.id || 0, record]));
  const nodes = log.of("node");
  const graphs = [...new Set(nodes.map((node) => node.graph))];
  const nodesOf = new Map(graphs.map((g) => [g, byId(nodes.filter((node) => node.graph === g))]));
  const after = graphs.find((graph) => graph !== "original");
  const steps = byId(log.of("step"));
  const time = new Map(log.of("step_time").map((record) => [record.step || 0, record]));
  const definitions = byId(log.of("definition"));
  const kernels = byId(log.of("kernel"));
  const stepsOfNode = new Map();  // of the graph after
  for (const step of steps.values())
    for (const node of step.nodes || []) push(stepsOfNode, node, step);
  const became = new Map();       // original node -> nodes after
  const producer = new Map();     // name of a value -> original node
  for (const node of nodesOf.get(after)?.values() || [])
    for (const origin of node.origins || []) push(became, origin, node);
  for (const node of nodesOf.get("original")?.values() || [])
    for (const result of node.results || []) producer.set(result.name, node);
  const byName = new Map();
  for (const node of nodesOf.get("original")?.values() || []) byName.set(node.name, node);
  const rewritesOf = new Map();   // original node -> rewrites and changes by passes
  const place = (names, what) => {
    for (const name of names || []) {
      const node = producer.get(name);
      if (node && !(rewritesOf.get(node.id || 0) || []).includes(what))
        push(rewritesOf, node.id || 0, what);
    }
  };
  for (const rewrite of log.of("rewrite")) place(rewrite.where, { rewrite });
  for (const pass of log.of("pass"))
    for (const change of pass.changes || [])
      if (!log.of("rewrite").some((rewrite) => rewrite.rule === change.what))
        place(change.where, { pass, change });
  const mainTime = new Map();     // name of an original node -> ms of the steps mainly about it
  for (const [id, record] of time) {
    const name = steps.get(id)?.names?.[0];
    if (name !== undefined) mainTime.set(name, (mainTime.get(name) || 0) + (record.ms || 0));
  }
  return { graphs, nodesOf, after, steps, time, definitions, kernels, stepsOfNode, became, producer,
           byName, rewritesOf, mainTime };
})();

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

// --- elements ----------------------------------------------------------------------------------

const svgTags = new Set(["svg", "g", "rect", "path", "line", "circle", "text", "title", "polyline"]);

/** Element with attributes and children; strings become text. */
function h(tag, attributes = {}, ...children) {
  const element = svgTags.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag)
                                   : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false) element.append(child);
  return element;
}

function short(text, most = 64) {
  const points = [...String(text ?? "").slice(0, 4000)];
  if (points.length <= most) return points.join("");
  const half = (most - 1) >> 1;
  return points.slice(0, half).join("") + "…" + points.slice(-half).join("");
}

/** A name: isolated from the direction of the text around it, and shortened. */
function named(text, most = 64) {
  return h("bdi", { class: "name", title: short(text, 400) }, short(text, most));
}

/** Link to a place of this page. */
function link(place, ...content) {
  return h("a", { href: "#" + place }, content);
}
const stepLink = (step, most) =>
  link("time/" + (step.id || 0), named(step.names?.[0] || step.what || "step " + step.id, most));
const nodeLink = (graph, node, most) =>
  link(`graph/${graph}/${node.id || 0}`, named(node.name || node.op, most));

function numeral(value, digits = 3) {
  if (value === undefined || value === null || Number.isNaN(value)) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(digits)).toString();
}
function ms(value) {
  if (value === undefined) return "";
  return value >= 1 ? `${numeral(value, 4)} ms` : `${numeral(value * 1000, 3)} µs`;
}
function bytes(value = 0) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < 4) value /= 1000, ++unit;
  return `${numeral(value)} ${units[unit]}`;
}
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const plural = (count, one, many = one + "s") => `${(count || 0).toLocaleString("en")} ${count === 1 ? one : many}`;

// --- colours -----------------------------------------------------------------------------------

const isDark = () => document.documentElement.dataset.theme === "dark";
const palette = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f",
                 "#edc948", "#ff9da7", "#86bcb6", "#8cd17d", "#d37295"];

/** Strategy without its numbers: "dot", "winograd", "copy". */
function strategyKind(step) {
  const text = step.strategy && step.strategy !== "…" ? step.strategy : step.kind || "";
  return text.split(/[ ,:(]/)[0] || "other";
}

/** Colours by name, in order of first use. */
class Colours {
  constructor() { this.map = new Map(); }
  of(name) {
    if (!this.map.has(name)) this.map.set(name, palette[this.map.size % palette.length]);
    return this.map.get(name);
  }
  legend() {
    return h("div", { class: "legend" }, [...this.map].map(([name, colour]) =>
      h("span", {}, h("i", { style: `background:${colour}` }), short(name, 24))));
  }
}
/** From pale to strong, for a share of the longest time. */
function heat(share) {
  const part = Math.max(0, Math.min(1, Math.sqrt(share)));
  return isDark() ? `hsl(${48 - 40 * part} ${30 + 55 * part}% ${22 + 22 * part}%)`
                  : `hsl(${52 - 44 * part} ${60 + 30 * part}% ${95 - 33 * part}%)`;
}
const strategyColours = new Colours();

// --- tables ------------------------------------------------------------------------------------

/** Table with columns {title, cell, key?, number?}; a click on a title sorts by its key. */
function table(columns, rows, { row: attributes = () => ({}) } = {}) {
  const body = h("tbody");
  const line = (row) => h("tr", attributes(row), columns.map((column) =>
    h("td", { class: column.number && "number" }, column.cell(row))));
  // The first rows at once, the others piece by piece, so that a long table does not hold up the page.
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
    return h("th", {
      class: column.number && "number", scope: "col",
      ...(column.key && { "aria-sort": "none", tabindex: 0, onclick: sort,
                          onkeydown: (event) => event.key === "Enter" && sort() }),
    }, column.title);
  });
  fill(rows);
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head)), body));
}

/** Calls an action with the element of an id, once a table has it. */
function whenThere(id, action, tries = 100) {
  const element = document.getElementById(id);
  if (element) action(element);
  else if (tries) setTimeout(whenThere, 20, id, action, tries - 1);
}

function bar(share) {
  return h("span", { class: "bar", style: `width:${Math.max(1, Math.round(110 * share))}px` });
}

// --- summary -----------------------------------------------------------------------------------

function card(value, title, note) {
  return h("div", { class: "card" }, h("span", {}, title), h("b", {}, value),
           note && h("span", {}, note));
}

function summaryCards() {
  const bench = log.last("benchmark"), run = log.last("run"), memory = log.last("memory");
  const compilation = log.last("compilation"), target = log.last("target"), model = log.last("model");
  const cards = [];
  const latency = bench?.p50_ms ?? run?.ms;
  if (latency !== undefined)
    cards.push(card(ms(latency), "Latency", bench ? `median of ${plural(bench.runs, "run")}`
                                                  : `mean of the middle half of ${plural(run.runs, "run")}`));
  if (bench?.peer)
    cards.push(card(`${numeral(bench.speedup)}×`, `Speedup over ${bench.peer}`,
                    `95 % interval ${numeral(bench.speedup_low)} to ${numeral(bench.speedup_high)}; ` +
                    `it takes ${ms(bench.peer_p50_ms)}`));
  if (memory) {
    cards.push(card(bytes(memory.arena_bytes), "Activations",
                    memory.lower_bound ? `at least ${bytes(memory.lower_bound)} are needed at one time` : ""));
    cards.push(card(bytes(memory.weight_bytes), "Weights",
                    `as packed; in the file ${bytes(model?.parameter_bytes)}`));
    cards.push(card(bytes(memory.code_bytes), "Code", plural(log.of("kernel").length, "kernel")));
  }
  if (bench?.peer)
    cards.push(card((bench.error || 0).toExponential(1), "Largest error of outputs",
                    `relative to their RMS, against ${bench.peer}: ${bench.agrees === false ? "too large" : "within the tolerance"}`));
  else if (target?.error >= 0)
    cards.push(card(target.error.toExponential(1), "Largest error of outputs", `of ${target.precision} against f32, relative to their RMS`));
  if (model) {
    const after = index.after ? index.nodesOf.get(index.after).size : undefined;
    cards.push(card(after === undefined ? numeral(model.nodes) : `${numeral(model.nodes)} → ${numeral(after)}`, "Nodes",
                    index.steps.size ? `in ${plural(index.steps.size, "step")}` : ""));
  }
  if (compilation)
    cards.push(card(`${numeral(compilation.seconds)} s`, "Compile time",
                    `${compilation.kernels_from_cache || 0} of ${plural(compilation.kernels, "kernel")} from the cache`));
  const proof = log.last("proof");
  if (proof) cards.push(card(proof.verdict, "Equivalence", `${proof.source} and ${proof.target}`));
  return cards;
}

/** What is proved of the result, in words. */
function correctness() {
  const rewrites = log.of("rewrite"), passes = log.of("pass");
  if (!rewrites.length && !passes.length) return null;
  const proved = rewrites.filter((rewrite) => rewrite.verdict === "proved");
  const validated = passes.filter((pass) => pass.validation);
  const doubtful = validated.filter((pass) => pass.validation.startsWith("unknown"));
  const assumptions = [...new Set(rewrites.flatMap((rewrite) => rewrite.assumptions || []))];
  const lines = [
    rewrites.length
      ? h("li", {}, h("b", { class: proved.length === rewrites.length ? "good" : "bad" },
                      proved.length === rewrites.length ? "proved: " : "not all proved: "),
          `${proved.length} of ${plural(rewrites.length, "applied rewrite rule")} proved, for all sizes and inputs (`,
          link("rewrites", "rules and proofs"), ")")
      : h("li", {}, "no rewrite rule was applied"),
    validated.length
      ? h("li", {}, h("b", { class: doubtful.length ? "warn" : "good" },
                      doubtful.length ? "partly validated: " : "validated: "),
          `${validated.length - doubtful.length} of ${plural(validated.length, "pass", "passes")} proved on this model, or left it unchanged`)
      : h("li", {}, "passes were not validated on this model (--validate does that)"),
    log.last("target")?.numerics === "exact"
      ? h("li", {}, "numerics exact: results have the same bits as without optimizations")
      : h("li", {}, "numerics reals: results are equal over the real numbers; floating point may round differently"),
  ];
  if (assumptions.length)
    lines.push(h("li", {}, "the proofs assume that ", assumptions.slice(0, 12).join("; ")));
  return h("section", {}, h("h2", {}, "Is it right?"), h("ul", { class: "plain" }, lines));
}

function slowest() {
  const times = log.of("step_time").slice(0, 8);
  if (!times.length) return null;
  const run = log.last("run");
  return h("section", {}, h("h2", {}, "Slowest steps"), table([
    { title: "ONNX node", cell: (t) => stepLink(index.steps.get(t.step || 0) || {}, 48) },
    { title: "computed as", cell: (t) => short(index.steps.get(t.step || 0)?.what, 40) },
    { title: "time", number: true, cell: (t) => ms(t.ms) },
    { title: "share", number: true, cell: (t) => percent((t.ms || 0) / run.ms) },
    { title: "rules that changed it", cell: (t) => ruleLinks(originsOfStep(index.steps.get(t.step || 0))) },
  ], times));
}

function originsOfStep(step) {
  const origins = new Set();
  for (const id of step?.nodes || [])
    for (const origin of index.nodesOf.get(index.after)?.get(id)?.origins || []) origins.add(origin);
  return [...origins];
}
function ruleLinks(origins) {
  const names = new Map();
  for (const origin of origins)
    for (const { rewrite, pass, change } of index.rewritesOf.get(origin) || [])
      if (rewrite) names.set(rewrite.rule, link("rewrites/" + rewrite.rule, rewrite.rule));
      else names.set(change.what, h("span", { class: "faint" }, `${change.what} (${pass.name})`));
  const links = [...names.values()].slice(0, 6);
  return links.length ? links.flatMap((one, i) => (i ? [", ", one] : [one])) : h("span", { class: "faint" }, "none");
}

function about() {
  const model = log.last("model"), target = log.last("target"), compilation = log.last("compilation");
  const search = log.last("search");
  const rows = [];
  const row = (name, ...value) => rows.push(h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)));
  if (model) {
    row("model", named(model.file || model.name));
    for (const [kind, list] of [["inputs", model.inputs], ["outputs", model.outputs]])
      row(kind, (list || []).slice(0, 20).map((tensor) => h("div", {}, named(tensor.name), ": ", short(tensor.type, 60))));
    if (model.parameters) row("parameters", numeral(model.parameters));
    if (model.multiply_adds) row("multiply-adds", numeral(model.multiply_adds));
  }
  if (target?.architecture) row("target", [target.architecture, target.cpu].filter(Boolean).join(", "), target.threads ? `, ${plural(target.threads, "thread")}` : "");
  if (target?.precision) row("precision", target.precision);
  if (target?.peak_gflops)
    row("peak", `${numeral(target.peak_gflops)} GFLOP/s (f32), ${numeral(target.bandwidth_gbytes)} GB/s, measured`);
  for (const [op, why] of Object.entries(compilation?.interpreted || {}))
    row("interpreted", h("span", { class: "warn" }, `${op}, ${why}`));
  if (search)
    row("search", `${search.kept ? "a faster graph was found" : "no better graph was found"} in ${numeral(search.seconds)} s` +
        (search.ratio ? `: ${numeral(1 / search.ratio)}× as fast (95 % interval ${numeral(1 / search.ratio_high)} to ${numeral(1 / search.ratio_low)})` : ""));
  return rows.length ? h("section", {}, h("h2", {}, "Model and target"), h("div", { class: "scroll" }, h("table", {}, rows))) : null;
}

function summaryTab() {
  return h("div", {}, h("h2", {}, "Summary"), h("div", { class: "cards" }, summaryCards()),
           h("div", { class: "columns" }, correctness(), slowest()), about(),
           h("p", {}, download("event log", "events.jsonl", () => log.text)));
}

/** Link that saves text as a file. */
function download(title, file, text) {
  return h("a", { href: "#", onclick: (event) => {
    event.preventDefault();
    const url = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
    const anchor = h("a", { href: url, download: file });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  } }, "Download the " + title);
}

// --- graph -------------------------------------------------------------------------------------

/** One graph on a canvas: pan, zoom, selection. Only what is in view is drawn. */
class GraphView {
  constructor(graph, { colour, select }) {
    this.graph = graph;
    this.layout = layouts[graph];
    this.nodes = index.nodesOf.get(graph);
    this.colour = colour;
    this.select = select;
    this.boxes = this.layout.boxes.map(([x, y, width, height, nodes]) => ({ x, y, width, height, nodes }));
    this.boxOf = new Map(this.boxes.flatMap((box) => box.nodes.map((node) => [node, box])));
    this.scale = 1;
    this.x = this.y = 0;  // of the graph, at the center of the canvas
    this.canvas = h("canvas", { tabindex: 0, "data-graph": graph, role: "img",
      "aria-label": `Graph ${graph}: ${this.nodes.size} nodes. Arrow keys pan, plus and minus zoom, 0 fits.` });
    this.pointers = new Map();
    this.listen();
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.moved = false;
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (event) => {
        if (end === "pointerup" && !this.moved && this.pointers.size === 1) this.click(event.offsetX, event.offsetY);
        this.pointers.delete(event.pointerId);
      });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.offsetX, event.offsetY];
    if (Math.hypot(now[0] - before[0], now[1] - before[1]) > 2) this.moved = true;
    if (this.pointers.size === 2) {
      const [a, b] = [...this.pointers.entries()].find(([id]) => id !== event.pointerId)[1];
      const distance = (p) => Math.hypot(p[0] - a, p[1] - b) || 1;
      this.zoom(distance(now) / distance(before), a, b);
    } else if (this.moved) {
      this.x -= (now[0] - before[0]) / this.scale;
      this.y -= (now[1] - before[1]) / this.scale;
      this.draw();
    } else {
      return;
    }
    this.pointers.set(event.pointerId, now);
  }

  key(event) {
    const step = 60 / this.scale;
    const keys = { ArrowLeft: () => (this.x -= step), ArrowRight: () => (this.x += step),
                   ArrowUp: () => (this.y -= step), ArrowDown: () => (this.y += step),
                   "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
                   "0": () => this.fit(), n: () => this.neighbour(1), p: () => this.neighbour(-1) };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
    this.draw();
  }

  /** The node after or before the chosen one, by the keyboard. */
  neighbour(by) {
    const ids = [...this.nodes.keys()];
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(this.chosen) + by))];
    if (next !== undefined) this.select(this.graph, next);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth) return;
    const first = !this.width;
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.ratio = ratio;
    if (first && !this.isPlaced) this.fit();
    this.draw();
  }

  fit() {
    const { width, height } = this.layout;
    this.scale = Math.max(0.02, Math.min(1.2, this.width / (width + 40), this.height / (height + 40)));
    // A tall graph is unreadable as a whole: begin at its top.
    const readable = 0.3;
    this.x = width / 2;
    this.y = height / 2;
    if (this.scale < readable && height > width) {
      this.scale = Math.min(1, Math.max(readable, this.scale));
      const first = this.boxes[0];
      if (first) this.x = first.x;
      this.y = this.height / 2 / this.scale - 20;
    }
    this.draw();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const scale = Math.max(0.01, Math.min(4, this.scale * factor));
    this.x += (px - this.width / 2) * (1 / this.scale - 1 / scale);
    this.y += (py - this.height / 2) * (1 / this.scale - 1 / scale);
    this.scale = scale;
    this.draw();
  }

  click(px, py) {
    const x = this.x + (px - this.width / 2) / this.scale;
    const y = this.y + (py - this.height / 2) / this.scale;
    const box = this.boxes.find((b) => Math.abs(x - b.x) <= b.width / 2 && Math.abs(y - b.y) <= b.height / 2);
    if (!box) return;
    const row = Math.floor((y - (box.y - box.height / 2) - 5) / 18);
    this.select(this.graph, box.nodes[Math.max(0, Math.min(box.nodes.length - 1, row))]);
  }

  /** Marks nodes, and moves to the first of them. */
  mark(nodes) {
    this.marked = new Set(nodes);
    this.draw();
  }
  show(node) {
    const box = this.boxOf.get(node);
    if (!box) return;
    this.isPlaced = true;
    this.x = box.x;
    this.y = box.y;
    this.scale = Math.max(this.scale, 0.9);
    this.draw();
  }

  draw() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  paint() {
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const [edge, text, mark, accent, fill] =
      ["--edge", "--text", "--mark", "--accent", "--box"].map(colour);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.translate(this.width / 2, this.height / 2);
    context.scale(this.scale, this.scale);
    context.translate(-this.x, -this.y);
    const left = this.x - this.width / 2 / this.scale, right = this.x + this.width / 2 / this.scale;
    const top = this.y - this.height / 2 / this.scale, bottom = this.y + this.height / 2 / this.scale;
    context.lineWidth = Math.max(1, 0.7 / this.scale);
    context.strokeStyle = edge;
    context.beginPath();
    for (const [from, to] of this.layout.edges) {
      const a = this.boxes[from], b = this.boxes[to];
      if (Math.max(a.x, b.x) < left || Math.min(a.x, b.x) > right) continue;
      const y0 = a.y + a.height / 2, y1 = b.y - b.height / 2;
      if (Math.max(y0, y1) < top || Math.min(y0, y1) > bottom) continue;
      const bend = Math.min(60, Math.abs(y1 - y0) / 2);
      context.moveTo(a.x, y0);
      context.bezierCurveTo(a.x, y0 + bend, b.x, y1 - bend, b.x, y1);
    }
    context.stroke();
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.direction = "ltr";
    let drawn = 0;
    for (const box of this.boxes) {
      const x = box.x - box.width / 2, y = box.y - box.height / 2;
      if (x > right || x + box.width < left || y > bottom || y + box.height < top) continue;
      ++drawn;
      context.fillStyle = this.colour(this.graph, box) || fill;
      context.fillRect(x, y, box.width, box.height);
      context.strokeStyle = box.nodes.includes(this.chosen) ? accent : edge;
      context.lineWidth = (box.nodes.includes(this.chosen) ? 3 : 1) * Math.max(1, 0.7 / this.scale);
      context.strokeRect(x, y, box.width, box.height);
      if (this.scale < 0.28) {
        if (box.nodes.some((node) => this.marked?.has(node))) {
          context.fillStyle = mark;
          context.fillRect(x, y, box.width, box.height);
        }
        continue;
      }
      context.save();
      context.beginPath();
      context.rect(x, y, box.width, box.height);
      context.clip();
      box.nodes.forEach((id, row) => {
        const node = this.nodes.get(id), at = y + 14 + 18 * row;
        if (this.marked?.has(id) || id === this.chosen) {
          context.fillStyle = mark;
          context.fillRect(x + 1, at - 9, box.width - 2, 18);
        }
        context.fillStyle = text;
        context.fillText(node.op, x + 8, at);
        const start = x + 14 + context.measureText(node.op).width;
        context.fillStyle = text;
        context.globalAlpha = 0.7;
        const room = Math.max(4, Math.floor((x + box.width - start) / 6.3));
        // Isolated from the direction of the text around it.
        context.fillText("\u2068" + short(node.name, room) + "\u2069", start, at);
        context.globalAlpha = 1;
      });
      context.restore();
    }
    this.canvas.dataset.drawn = drawn;
  }
}

function graphTab(place) {
  const graphs = index.graphs.filter((graph) => layouts[graph]?.boxes.length);
  const wanted = graphs.includes(place[0]) ? place[0] : index.after || "original";
  const wide = window.innerWidth > 1100 && graphs.length > 1;
  let mode = wide ? "both" : wanted;
  let by = index.time.size ? "time" : index.steps.size ? "strategy" : "operator";
  const longest = Math.max(1e-9, ...[...index.time.values()].map((time) => time.ms || 0));
  const longestNode = Math.max(1e-9, ...index.mainTime.values());
  const colours = {};
  const stepsOf = (graph, box) => graph === index.after
    ? box.nodes.flatMap((node) => index.stepsOfNode.get(node) || [])
    : (index.became.get(box.nodes[0]) || []).flatMap((node) => index.stepsOfNode.get(node.id || 0) || []);
  const colour = (graph, box) => {
    const node = index.nodesOf.get(graph).get(box.nodes[0]);
    if (by === "operator") return tint((colours.operator ||= new Colours()).of(node.op));
    const steps = [...new Set(stepsOf(graph, box))];
    if (by === "time") {
      const time = graph === index.after
        ? steps.reduce((sum, step) => sum + (index.time.get(step.id || 0)?.ms || 0), 0) / longest
        : (index.mainTime.get(node.name) || 0) / longestNode;
      return time ? heat(time) : undefined;
    }
    const step = steps.at(-1);
    if (!step) return undefined;
    return by === "strategy" ? tint(strategyColours.of(strategyKind(step)))
                             : tint((colours.precision ||= new Colours()).of(step.precision || "other"));
  };
  const detail = h("aside", { id: "detail", "aria-live": "polite" },
                   h("p", { class: "faint" }, "Click on a node, or search for its name."));
  const select = (graph, node) => {
    history.replaceState(null, "", `#graph/${graph}/${node}`);
    detail.replaceChildren(...nodeDetail(graph, node));
    const counterpart = graph === "original"
      ? (index.became.get(node) || []).map((one) => one.id || 0)
      : index.nodesOf.get(graph).get(node)?.origins || [];
    for (const view of Object.values(views)) {
      view.chosen = view.graph === graph ? node : undefined;
      view.mark(view.graph === graph ? [] : counterpart);
      if (view.graph !== graph && counterpart.length) view.show(counterpart[0]);
      view.draw();
    }
  };
  const views = Object.fromEntries(graphs.map((graph) => [graph, new GraphView(graph, { colour, select })]));
  const holder = h("div", { class: "views" });
  const legend = h("span");
  const redraw = () => {
    Object.values(views).forEach((view) => view.paint && view.width && view.paint());
    const list = by === "strategy" ? strategyColours : colours[by];
    legend.replaceChildren(by === "time" ? h("span", { class: "faint" }, "pale: short, strong: long") : list?.legend() || "");
  };
  const arrange = () => {
    holder.replaceChildren(...graphs.filter((graph) => mode === "both" || mode === graph)
      .map((graph) => h("div", { class: "view" }, h("h3", {}, `${graph} (${plural(index.nodesOf.get(graph).size, "node")})`), views[graph].canvas)));
    buttons.forEach((button) => button.setAttribute("aria-pressed", button.value === mode));
    requestAnimationFrame(redraw);
  };
  const buttons = [...graphs, ...(graphs.length > 1 ? ["both"] : [])].map((name) =>
    h("button", { type: "button", value: name, onclick: () => { mode = name; arrange(); } }, name));
  const choices = ["time", "strategy", "precision", "operator"].filter((choice) =>
    choice === "operator" || (choice === "time" ? index.time.size : index.steps.size));
  const chooser = h("select", { id: "colour", "aria-label": "Color by", onchange: (event) => { by = event.target.value; redraw(); } },
                    choices.map((choice) => h("option", { value: choice, selected: choice === by }, "color by " + choice)));
  const each = (action) => () => Object.values(views).forEach((view) => view.width && view.canvas.isConnected && action(view));
  const controls = h("div", { class: "controls" }, buttons, chooser,
    h("button", { type: "button", id: "zoom-in", title: "Zoom in (+)", onclick: each((view) => view.zoom(1.4)) }, "+"),
    h("button", { type: "button", id: "zoom-out", title: "Zoom out (-)", onclick: each((view) => view.zoom(1 / 1.4)) }, "−"),
    h("button", { type: "button", title: "Fit (0)", onclick: each((view) => view.fit()) }, "fit"), legend);
  arrange();
  if (place.length > 1) {
    const node = Number(place[1]);
    if (views[wanted].boxOf.has(node)) {
      if (mode !== "both") { mode = wanted; arrange(); }
      select(wanted, node);
      views[wanted].show(node);
    }
  }
  graphTab.views = views;
  graphTab.redraw = redraw;
  return h("div", {}, controls, h("div", { class: "graph" }, holder, detail));
}

/** A colour as the background of text. */
function tint(colour) {
  return colour + (isDark() ? "88" : "66");
}

function nodeDetail(graph, id) {
  const node = index.nodesOf.get(graph)?.get(id);
  if (!node) return [h("p", {}, "There is no such node.")];
  const parts = [h("h3", {}, named(node.name, 120)), h("p", {}, h("b", {}, node.op), " ", short(node.attributes || "", 300))];
  const list = (title, items) => items.length && parts.push(h("h3", {}, title), h("ul", { class: "plain" }, items.map((item) => h("li", {}, item))));
  const definition = index.definitions.get(node.definition ?? -1);
  if (definition) parts.push(h("h3", {}, "Definition"), h("pre", {}, definition.text));
  list("Operands", (node.operands || []).map((operand) => [
    operand.node === undefined || operand.node < 0 ? named(operand.name) : nodeLink(graph, { id: operand.node, name: operand.name }),
    ": ", short(operand.type, 80), operand.constant ? " (constant)" : ""]));
  list("Results", (node.results || []).map((result) => [named(result.name), ": ", short(result.type, 80)]));
  const origins = graph === "original" ? [id] : node.origins || [];
  if (graph !== "original")
    list("Came from", origins.map((origin) => nodeLink("original", index.nodesOf.get("original").get(origin) || {})));
  else if (index.after)
    list("Became", (index.became.get(id) || []).map((one) => [nodeLink(index.after, one), " ", one.op]));
  if (graph === "original" && index.after && !index.became.has(id))
    parts.push(h("p", {}, "It was removed: folded at compile time, or not needed."));
  const rules = (graph === "original" ? [id] : origins).flatMap((origin) => index.rewritesOf.get(origin) || []);
  if (rules.length) parts.push(h("h3", {}, "Rewrites"), h("p", {}, ruleLinks(origins)));
  const steps = graph === "original"
    ? (index.became.get(id) || []).flatMap((one) => index.stepsOfNode.get(one.id || 0) || [])
    : index.stepsOfNode.get(id) || [];
  list("Steps", [...new Set(steps)].slice(0, 20).map((step) => [
    link("time/" + (step.id || 0), "step " + (step.id || 0)), ` ${step.what}`,
    step.strategy ? ` [${step.strategy}]` : "", index.time.has(step.id || 0) ? ", " + ms(index.time.get(step.id || 0).ms) : "",
    step.kernel === undefined ? "" : [", ", link("kernels/" + step.kernel, "kernel " + step.kernel)]]));
  return parts;
}

// --- rewrites ----------------------------------------------------------------------------------

/** Small graph as a picture, in layers. */
function picture(drawing) {
  const labels = drawing?.labels || [], edges = drawing?.edges || [];
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
  return h("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: "img" },
    edges.map(([from, to]) => h("line", { class: "edge", x1: at[from][0], y1: at[from][1] + 11, x2: at[to][0], y2: at[to][1] - 11 })),
    labels.map((label, box) => h("g", { class: "node" },
      h("title", {}, short(label, 400)),
      h("rect", { x: at[box][0] - width(box) / 2, y: at[box][1] - 11, width: width(box), height: 22, rx: 5 }),
      h("text", { x: at[box][0], y: at[box][1] + 4, "text-anchor": "middle" }, "\u2068" + short(label, 32) + "\u2069"))));
}

function rewriteDetails(rewrite, open) {
  const total = Object.values(rewrite.proof_steps || {}).reduce((sum, count) => sum + count, 0);
  const places = (rewrite.where || []).map((name) => {
    const node = index.producer.get(name);
    return node ? nodeLink("original", node) : named(name);
  });
  const proved = rewrite.verdict === "proved";
  return h("details", { open, id: "rule-" + rewrite.rule },
    h("summary", {}, h("b", {}, rewrite.rule), ` ${rewrite.times > 1 ? rewrite.times + " times" : "once"} by ${rewrite.by} · `,
      h("span", { class: proved ? "good" : "bad" }, rewrite.verdict || "unknown"),
      ` · ${rewrite.numerics === "exact" ? "exact: keeps every bit" : rewrite.numerics || ""}`),
    h("p", {}, rewrite.about || ""), h("pre", {}, rewrite.equation || ""),
    h("div", { class: "rule" }, h("div", {}, h("h3", {}, "source"), picture(rewrite.source)),
      h("div", {}, h("h3", {}, "target"), picture(rewrite.target))),
    h("p", {}, h("b", {}, "Guard: "), rewrite.guard || "none"),
    h("p", {}, h("b", {}, "Proof: "), proved
      ? `proved for all sizes${rewrite.guard ? " where " + rewrite.guard : ""} in ${plural(total, "step")}: ` +
        Object.entries(rewrite.proof_steps || {}).map(([kind, count]) => `${count} ${kind}`).join(", ")
      : rewrite.verdict || "unknown"),
    (rewrite.assumptions || []).length ? h("p", {}, h("b", {}, "Assuming that "), rewrite.assumptions.join("; ")) : null,
    rewrite.found ? h("p", {}, h("b", {}, "Found: "), rewrite.found) : null,
    rewrite.before_ms ? h("p", {}, h("b", {}, rewrite.measured ? "Measured: " : "Expected: "),
      `${ms(rewrite.before_ms)} → ${ms(rewrite.after_ms)} of the region, with the other rules that were applied to it`) : null,
    places.length ? h("p", {}, h("b", {}, "Where: "), places.slice(0, 60).flatMap((one, i) => (i ? [", ", one] : [one])),
      places.length > 60 ? ` and ${places.length - 60} more` : "") : null);
}

function rewritesTab(place) {
  const rewrites = log.of("rewrite");
  const wanted = decodeURIComponent(place[0] || "");
  const tab = h("div", {}, h("h2", {}, "Rewrite rules"),
    rewrites.length ? rewrites.map((rewrite, i) => rewriteDetails(rewrite, wanted ? rewrite.rule === wanted : i === 0))
                    : h("p", {}, "No rewrite rule was applied to this model."),
    h("h2", {}, "Passes"), table([
      { title: "pass", cell: (pass) => h("span", { title: pass.summary }, pass.name) },
      { title: "what it does", cell: (pass) => pass.summary || "" },
      { title: "numerics", cell: (pass) => pass.numerics || "" },
      { title: "time", number: true, cell: (pass) => ms(1e3 * (pass.seconds || 0)) },
      { title: "nodes", number: true, cell: (pass) => `${pass.nodes_before || 0} → ${pass.nodes_after || 0}` },
      { title: "validation", cell: (pass) => pass.validation || "" },
      { title: "changes", cell: (pass) => (pass.changes || []).map((change) =>
          h("div", {}, `${change.times} × ${change.what}`)) },
    ], log.of("pass")));
  requestAnimationFrame(() => wanted && document.getElementById("rule-" + wanted)?.scrollIntoView());
  return tab;
}

// --- time --------------------------------------------------------------------------------------

/** Steps of a run side by side, as wide as their time; what runs in a loop has a row of its own. */
function timeline(run) {
  const width = 1200, row = 34;
  let x = 0;
  const rows = [], loops = new Map();
  for (const step of index.steps.values()) {
    const time = index.time.get(step.id || 0)?.ms || 0;
    const wide = (time / run.ms) * width;
    if (step.loop >= 0) {
      const loop = loops.get(step.loop) || { x, wide: 0 };
      loops.set(step.loop, loop);
      loop.wide += wide;
    }
    if (wide > 0.05)
      rows.push(h("rect", { class: "link", x, y: 0, width: Math.max(0.4, wide - 0.2), height: row, fill: strategyColours.of(strategyKind(step)),
        onclick: () => (location.hash = "time/" + (step.id || 0)) },
        h("title", {}, `${short(step.names?.[0] || step.what, 200)}: ${ms(time)}, ${step.what} ${step.strategy || ""}`)));
    x += wide;
  }
  const between = Math.max(0, ((run.between_ms || 0) / run.ms) * width);
  rows.push(h("rect", { x, y: 0, width: between, height: row, fill: "var(--line)" }, h("title", {}, `between steps: ${ms(run.between_ms || 0)}`)));
  for (const [id, loop] of loops) {
    const step = index.steps.get(id);
    rows.push(h("rect", { x: loop.x, y: row + 3, width: Math.max(1, loop.wide), height: 12, fill: "var(--faint)" },
      h("title", {}, `loop of ${plural(step.iterations, "iteration")}: ${ms((loop.wide / width) * run.ms)}`)));
  }
  return h("svg", { viewBox: `0 0 ${width} ${row + (loops.size ? 18 : 2)}`, width, preserveAspectRatio: "none", role: "img",
                    "aria-label": "Steps of a run, as wide as their time" }, rows);
}

/** Log-log plot: points {x, y, title, href, colour}, lines of points. */
function plot({ title, x: xTitle, y: yTitle, points, lines = [] }) {
  const all = points.filter((point) => point.x > 0 && point.y > 0);
  if (!all.length) return null;
  const width = 520, height = 320, left = 56, bottom = 40;
  const bounds = (key) => {
    const values = [...all.map((point) => point[key]), ...lines.flat().map((point) => point[key])].filter((value) => value > 0);
    return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values) * 1.0001))];
  };
  const [x0, x1] = bounds("x"), [y0, y1] = bounds("y");
  const px = (value) => left + ((Math.log10(value) - x0) / (x1 - x0 || 1)) * (width - left - 10);
  const py = (value) => height - bottom - ((Math.log10(value) - y0) / (y1 - y0 || 1)) * (height - bottom - 10);
  const ticks = [];
  for (let e = x0; e <= x1; ++e)
    ticks.push(h("line", { class: "axis", x1: px(10 ** e), x2: px(10 ** e), y1: 10, y2: height - bottom }),
               h("text", { x: px(10 ** e), y: height - bottom + 14, "text-anchor": "middle" }, power(e)));
  for (let e = y0; e <= y1; ++e)
    ticks.push(h("line", { class: "axis", x1: left, x2: width - 10, y1: py(10 ** e), y2: py(10 ** e) }),
               h("text", { x: left - 6, y: py(10 ** e) + 4, "text-anchor": "end" }, power(e)));
  return h("figure", { style: "margin:0" }, h("h3", {}, title),
    h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title }, ticks,
      lines.map((line) => h("polyline", { class: "roof", points: line.map((point) => `${px(point.x)},${py(point.y)}`).join(" ") })),
      all.map((point) => h("circle", { class: "link point", cx: px(point.x), cy: py(point.y), r: 4.5, fill: point.colour, "fill-opacity": 0.75,
        tabindex: 0, onclick: () => (location.hash = point.href), onkeydown: (event) => event.key === "Enter" && (location.hash = point.href) },
        h("title", {}, point.title))),
      h("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, xTitle),
      h("text", { x: 12, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${height / 2})` }, yTitle)));
}
const power = (e) => (e >= -2 && e <= 4 ? String(10 ** e) : `1e${e}`);

function roofline() {
  const target = log.last("target") || {};
  const points = [];
  for (const step of index.steps.values()) {
    const time = index.time.get(step.id || 0);
    if (!time?.ms || !step.flops || !step.bytes) continue;
    const seconds = time.ms / 1e3 / (time.calls || 1);
    points.push({ x: step.flops / step.bytes, y: step.flops / seconds / 1e9, colour: strategyColours.of(strategyKind(step)),
      href: step.kernel === undefined ? "time/" + (step.id || 0) : "kernels/" + step.kernel,
      title: `${short(step.names?.[0] || step.what, 200)}: ${numeral(step.flops / seconds / 1e9)} GFLOP/s, ${ms(time.ms)}` });
  }
  const lines = [];
  const { peak_gflops: peak, bandwidth_gbytes: bandwidth } = target;
  if (peak && bandwidth && points.length) {
    const least = Math.min(...points.map((point) => point.x), peak / bandwidth / 10);
    const most = Math.max(...points.map((point) => point.x), (peak / bandwidth) * 10);
    lines.push([{ x: least, y: least * bandwidth }, { x: peak / bandwidth, y: peak }, { x: most, y: peak }]);
  }
  return plot({ title: "Roofline", x: "FLOP per byte", y: "GFLOP/s", points, lines });
}

function expectedPlot() {
  const points = [];
  for (const [id, time] of index.time) {
    if (!time.expected_ms || !time.ms) continue;
    const step = index.steps.get(id) || {};
    points.push({ x: time.expected_ms, y: time.ms, colour: strategyColours.of(strategyKind(step)), href: "time/" + id,
      title: `${short(step.names?.[0] || step.what, 200)}: expected ${ms(time.expected_ms)} (${time.expected_from}), measured ${ms(time.ms)}` });
  }
  const values = points.flatMap((point) => [point.x, point.y]);
  const lines = values.length ? [[{ x: Math.min(...values), y: Math.min(...values) }, { x: Math.max(...values), y: Math.max(...values) }]] : [];
  return plot({ title: "Expected against measured", x: "expected ms", y: "measured ms", points, lines });
}

/** Trace of the last run, in the format of Perfetto. */
function trace() {
  const events = log.of("span").map((span) => {
    const step = index.steps.get(span.step || 0) || {};
    return { name: short(step.names?.[0] || step.what || "step", 200), ph: "X", pid: 1, tid: 1, ts: span.start_us || 0, dur: span.us || 0,
             args: { step: span.step || 0, what: step.what, how: step.strategy, nodes: (step.names || []).slice(0, 8) } };
  });
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ms" });
}

function timeTab(place) {
  const run = log.last("run");
  const chosen = place.length ? Number(place[0]) : -1;
  const share = (step) => (run?.ms ? (index.time.get(step.id || 0)?.ms || 0) / run.ms : 0);
  const loopOf = (step) => (step.loop >= 0 ? index.steps.get(step.loop) : undefined);
  const rows = [...index.steps.values()];
  if (run) rows.sort((a, b) => share(b) - share(a));
  const time = (step) => index.time.get(step.id || 0) || {};
  const rate = (step, key) => (time(step).ms && step[key] ? (step[key] * (time(step).calls || 1)) / (time(step).ms * 1e6) : undefined);
  const columns = [
    { title: "step", number: true, key: (s) => s.id || 0, cell: (s) => link("time/" + (s.id || 0), String(s.id || 0)) },
    { title: "ONNX nodes", key: (s) => s.names?.[0] || "", cell: (s) => nodesOfStep(s) },
    { title: "operators", key: (s) => s.what || "", cell: (s) => short(s.what, 60) },
    { title: "strategy", key: (s) => s.strategy || "", cell: (s) => [short(s.strategy, 80), loopOf(s) ? h("div", { class: "faint" }, `in a loop of ${loopOf(s).iterations || 0}`) : "",
        s.kind === "loop" ? h("div", { class: "faint" }, plural(s.iterations, "iteration")) : ""] },
    { title: "kernel", number: true, key: (s) => s.kernel ?? -1, cell: (s) => (s.kernel === undefined ? "" : link("kernels/" + s.kernel, String(s.kernel))) },
  ];
  if (run) columns.push(
    { title: "time", number: true, key: (s) => time(s).ms || 0, cell: (s) => ms(time(s).ms) },
    { title: "share", key: share, cell: (s) => [bar(share(s)), " ", percent(share(s))] },
    { title: "calls", number: true, key: (s) => time(s).calls || 0, cell: (s) => [String(time(s).calls || ""), time(s).calls > 1 ? h("div", { class: "faint" }, ms(time(s).ms / time(s).calls) + " each") : ""] },
    { title: "expected", number: true, key: (s) => time(s).expected_ms || 0, cell: (s) => (time(s).expected_ms ? (time(s).expected_from === "roofline" ? "~" : "") + ms(time(s).expected_ms) : "") },
    { title: "GFLOP/s", number: true, key: (s) => rate(s, "flops") || 0, cell: (s) => numeral(rate(s, "flops")) },
    { title: "GB/s", number: true, key: (s) => rate(s, "bytes") || 0, cell: (s) => numeral(rate(s, "bytes")) });
  const sum = rows.reduce((total, step) => total + (time(step).ms || 0), 0);
  const tab = h("div", {}, h("h2", {}, "Time"),
    run ? [h("p", { id: "total", "data-ms": run.ms, "data-sum": sum + (run.between_ms || 0) },
             `A run takes ${ms(run.ms)}: ${ms(sum)} in ${plural(rows.length, "step")} and ${ms(run.between_ms || 0)} between them. ` +
             `Times are means over the middle half of ${plural(run.runs, "run")}. `,
             log.of("span").length ? download("trace for Perfetto (ui.perfetto.dev)", "trace.json", trace) : ""),
           h("div", { class: "scroll" }, timeline(run)), strategyColours.legend(),
           h("div", { class: "columns" }, roofline(), expectedPlot())]
        : h("p", {}, "No time was measured: ", h("code", {}, "tessera profile"), " or ", h("code", {}, "tessera report"), " measures it."),
    h("h2", {}, "Steps"), table(columns, rows, { row: (step) => ({ id: "step-" + (step.id || 0), class: (step.id || 0) === chosen && "chosen" }) }));
  if (chosen >= 0) whenThere("step-" + chosen, (row) => row.scrollIntoView({ block: "center" }));
  return tab;
}

function nodesOfStep(step) {
  const names = step.names || [];
  const shown = names.slice(0, 3).map((name) => {
    const node = index.byName.get(name);
    return h("div", {}, node ? nodeLink("original", node, 56) : named(name, 56));
  });
  if (names.length > 3)
    shown.push(h("details", {}, h("summary", {}, `${names.length - 3} more`), names.slice(3).map((name) => h("div", {}, named(name, 56)))));
  return shown;
}

// --- kernels -----------------------------------------------------------------------------------

function kernelDetails(kernel, open) {
  const id = kernel.id || 0;
  const steps = [...index.steps.values()].filter((step) => step.kernel === id);
  const total = steps.reduce((sum, step) => sum + (index.time.get(step.id || 0)?.ms || 0), 0);
  const element = h("details", { id: "kernel-" + id }, h("summary", {}, h("b", {}, `kernel ${id}`), ` ${short(kernel.name, 48)} · `,
    steps[0] ? named(steps[0].names?.[0] || steps[0].what, 48) : "", ` · ${plural(steps.length, "step")}`, total ? ` · ${ms(total)}` : "",
    ` · ${bytes(kernel.code_bytes)} of code`));
  const fill = () => {
    const form = (title, text) => text && h("div", {}, h("h3", {}, title), h("pre", {}, text));
    element.append(h("div", {},
      h("p", {}, h("b", {}, "Decided: "), [...new Set(steps.map((step) => step.strategy).filter(Boolean))].join("; ") || "no strategy",
        kernel.scratch_bytes ? `; ${bytes(kernel.scratch_bytes)} of scratch memory per thread` : "",
        steps[0]?.grid ? `; grid ${steps[0].grid.join(" × ")}` : "", steps[0]?.precision ? `; ${steps[0].precision}` : ""),
      h("p", {}, "Used by ", steps.slice(0, 12).flatMap((step, i) => [i ? ", " : "", stepLink(step, 40)]), steps.length > 12 ? " …" : ""),
      h("div", { class: "forms" }, form("Tile program", kernel.tile), form("Schedule as loop nests", kernel.loops),
        form(log.last("target")?.architecture?.startsWith("sm_") ? "PTX" : "Assembly", kernel.assembly)),
      kernel.left_out ? h("p", { class: "faint" }, "Some forms are left out: " + kernel.left_out) : null));
  };
  element.addEventListener("toggle", fill, { once: true });
  if (open) element.open = true;
  return element;
}

function kernelsTab(place) {
  const wanted = place.length ? Number(place[0]) : -1;
  const kernels = log.of("kernel");
  requestAnimationFrame(() => wanted >= 0 && document.getElementById("kernel-" + wanted)?.scrollIntoView());
  return h("div", {}, h("h2", {}, "Kernels"), h("p", { class: "faint" }, "The longest first. A kernel may be used by several steps."),
           kernels.map((kernel, i) => kernelDetails(kernel, wanted < 0 ? i === 0 : (kernel.id || 0) === wanted)));
}

// --- memory ------------------------------------------------------------------------------------

function memoryTab() {
  const memory = log.last("memory") || {};
  const values = log.of("value").filter((value) => value.home === "arena");
  const steps = Math.max(1, index.steps.size), size = Math.max(1, memory.arena_bytes || 0);
  const width = 1100, height = 420, left = 70;
  const x = (step) => left + (step / steps) * (width - left), y = (offset) => height - 24 - (offset / size) * (height - 34);
  const colours = new Colours();
  const rects = values.map((value) => {
    const first = value.first || 0, last = value.last || 0, end = (value.offset || 0) + (value.bytes || 0);
    return h("rect", { class: "link value", x: x(first), y: y(end), width: Math.max(0.6, x(last + 1) - x(first) - 0.3), height: Math.max(0.6, y(value.offset || 0) - y(end) - 0.3),
      fill: colours.of(index.steps.get(first)?.what || "other"), "fill-opacity": 0.8, onclick: () => (location.hash = "time/" + first) },
      h("title", {}, `${short(value.name, 200)}: ${value.type}, ${bytes(value.bytes)} at ${(value.offset || 0).toLocaleString("en")}, steps ${first} to ${last}`));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    h("line", { class: "axis", x1: left, x2: width, y1: y(share * size), y2: y(share * size) }),
    h("text", { x: left - 6, y: y(share * size) + 4, "text-anchor": "end" }, bytes(share * size))]);
  const live = new Float64Array(steps + 1);
  for (const value of values) for (let at = value.first || 0; at <= (value.last || 0) && at <= steps; ++at) live[at] += value.bytes || 0;
  const fullest = live.indexOf(Math.max(...live));
  const moved = [...index.steps.values()].filter((step) => step.kind === "swap");
  return h("div", {}, h("h2", {}, "Memory"),
    h("p", {}, `The arena has ${bytes(memory.arena_bytes)}` + (memory.lower_bound ? `, of which ${bytes(memory.lower_bound)} are needed at one time` : "") +
      `; it is fullest at `, link("time/" + fullest, "step " + fullest), `. Weights ${bytes(memory.weight_bytes)}, code ${bytes(memory.code_bytes)}` +
      (memory.swap_bytes ? `, swapped to a file ${bytes(memory.swap_bytes)}` : "") + "."),
    (memory.notes || []).map((note) => h("p", { class: "warn" }, note)),
    moved.length ? h("p", { class: "warn" }, `${plural(moved.length, "step")} move values to a file or back.`) : null,
    values.length ? h("div", { class: "scroll" }, h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The arena over time: values as rectangles from their first to their last step" },
      ticks, rects, h("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "step"))) : h("p", {}, "No value is in the arena."),
    h("h2", {}, "Largest values"), table([
      { title: "value", key: (v) => v.name, cell: (v) => (index.producer.has(v.name) ? nodeLink("original", index.producer.get(v.name)) : named(v.name)) },
      { title: "type", cell: (v) => short(v.type, 60) },
      { title: "place", key: (v) => v.home, cell: (v) => v.home },
      { title: "bytes", number: true, key: (v) => v.bytes || 0, cell: (v) => (v.bytes || 0).toLocaleString("en") },
      { title: "steps", number: true, key: (v) => (v.last || 0) - (v.first || 0), cell: (v) => `${v.first || 0} to ${v.last || 0}` },
    ], [...log.of("value")].sort((a, b) => (b.bytes || 0) - (a.bytes || 0)).slice(0, 200)));
}

// --- proof, comparison -------------------------------------------------------------------------

function proofTab() {
  return h("div", {}, log.of("proof").map((proof) => {
    const style = { proved: "good", refuted: "bad" }[proof.verdict] || "warn";
    const position = (proof.position || []).join(", ");
    return h("section", {}, h("h2", {}, named(proof.source), " and ", named(proof.target), ": ", h("span", { class: style }, proof.verdict)),
      h("p", {}, `Of ${plural(proof.values, "value")} of the second model, ${plural(proof.congruent, "is", "are")} equal to one of the first by congruence and ` +
        `${plural(proof.proved, "is", "are")} by proofs of their own, in ${numeral(proof.seconds)} s.`),
      (proof.assumptions || []).length ? [h("h3", {}, "Assuming that"), h("ul", { class: "plain" }, proof.assumptions.map((text) => h("li", {}, text)))] : null,
      proof.why ? h("p", { class: style }, proof.why) : null,
      proof.output ? h("p", {}, "Output ", named(proof.output), position ? ` at [${position}]` : "", `: ${numeral(proof.source_value || 0, 7)} and ${numeral(proof.target_value || 0, 7)}`) : null,
      proof.difference ? h("p", {}, h("b", {}, proof.difference)) : null,
      proof.source_graph ? h("div", { class: "rule" }, [["first", proof.source_drawing, proof.source_graph], ["second", proof.target_drawing, proof.target_graph]].map(([title, drawing, text]) =>
        h("div", {}, h("h3", {}, `subgraph of the ${title} model`), h("div", { class: "scroll" }, picture(drawing)), h("pre", {}, text)))) : null);
  }));
}

function compareTab() {
  const differences = log.of("difference");
  const sum = (key) => differences.reduce((total, entry) => total + (entry[key] || 0), 0);
  const change = (entry) => (entry.b_ms || 0) - (entry.a_ms || 0);
  const largest = Math.max(1e-9, ...differences.map((entry) => Math.abs(change(entry))));
  const file = (of) => named(of?.last("model")?.file || of?.header.command || "second");
  const rows = [["steps", (of) => of.of("step").length], ["a run", (of) => ms(of.last("run")?.ms)], ["activations", (of) => bytes(of.last("memory")?.arena_bytes)],
                ["weights", (of) => bytes(of.last("memory")?.weight_bytes)], ["precision", (of) => of.last("target")?.precision || ""],
                ["rules applied", (of) => of.of("rewrite").map((rewrite) => rewrite.rule).join(", ") || "none"]];
  return h("div", {}, h("h2", {}, "Comparison"),
    other && h("div", { class: "scroll" }, h("table", {}, h("tr", {}, h("th", {}, ""), h("th", {}, file(log)), h("th", {}, file(other))),
      rows.map(([title, of]) => h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, of(log)), h("td", {}, of(other)))))),
    h("p", {}, `All steps: ${ms(sum("a_ms"))} and ${ms(sum("b_ms"))}.`), table([
      { title: "ONNX nodes", key: (e) => e.names?.[0] || "", cell: (e) => [named(e.names?.[0] || ""), e.names?.length > 1 ? ` and ${e.names.length - 1} more` : ""] },
      { title: "first", number: true, key: (e) => e.a_ms || 0, cell: (e) => ms(e.a_ms || 0) },
      { title: "second", number: true, key: (e) => e.b_ms || 0, cell: (e) => ms(e.b_ms || 0) },
      { title: "change", key: change, cell: (e) => [h("span", { class: "bar", style: `width:${Math.round((90 * Math.abs(change(e))) / largest)}px;background:var(${change(e) > 0 ? "--bad" : "--good"})` }),
          " ", (change(e) > 0 ? "+" : "−") + ms(Math.abs(change(e)))] },
      { title: "first computed as", cell: (e) => short(e.a_how, 120) },
      { title: "second computed as", cell: (e) => (e.b_how === e.a_how ? h("span", { class: "faint" }, "the same") : short(e.b_how, 120)) },
    ], differences));
}

// --- tabs, search, theme -----------------------------------------------------------------------

const tabs = [
  { id: "compare", title: "Compare", shown: () => log.of("difference").length, show: compareTab },
  { id: "proof", title: "Proof", shown: () => log.of("proof").length, show: proofTab },
  { id: "summary", title: "Summary", shown: () => true, show: summaryTab },
  { id: "graph", title: "Graph", shown: () => Object.values(layouts).some((layout) => layout.boxes.length), show: graphTab },
  { id: "rewrites", title: "Rewrites", shown: () => log.of("pass").length, show: rewritesTab },
  { id: "time", title: "Time", shown: () => log.of("step").length, show: timeTab },
  { id: "kernels", title: "Kernels", shown: () => log.of("kernel").length, show: kernelsTab },
  { id: "memory", title: "Memory", shown: () => log.of("value").length, show: memoryTab },
].filter((tab) => tab.shown());

function route() {
  const [id, ...place] = location.hash.slice(1).split("/");
  const tab = tabs.find((one) => one.id === id) || tabs[0];
  for (const button of document.getElementById("tabs").children) {
    const chosen = button.dataset.tab === tab.id;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
  graphTab.views = null;
  const start = performance.now();
  document.getElementById("main").replaceChildren(tab.show(place));
  document.body.dataset.tab = tab.id;
  document.body.dataset.milliseconds = (performance.now() - start).toFixed(1);
  if (!place.length) window.scrollTo(0, 0);
}

function startTabs() {
  const nav = document.getElementById("tabs");
  nav.append(...tabs.map((tab) => h("button", { type: "button", role: "tab", "data-tab": tab.id, onclick: () => (location.hash = tab.id) }, tab.title)));
  nav.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const buttons = [...nav.children];
    const next = buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  window.addEventListener("hashchange", route);
}

/** Nodes, steps and rules whose name contains a text. */
function search(text) {
  const wanted = text.toLowerCase();
  const found = [];
  const add = (name, kind, place) => found.length < 60 && found.push({ name, kind, place });
  for (const graph of index.graphs)
    for (const node of index.nodesOf.get(graph).values())
      if ((node.name || "").toLowerCase().includes(wanted) || node.op === wanted)
        add(node.name || node.op, `${graph} ${node.op}`, `graph/${graph}/${node.id || 0}`);
  for (const rewrite of log.of("rewrite"))
    if (rewrite.rule.toLowerCase().includes(wanted)) add(rewrite.rule, "rule", "rewrites/" + rewrite.rule);
  if (!index.graphs.length)
    for (const step of index.steps.values())
      if ((step.names?.[0] || step.what || "").toLowerCase().includes(wanted)) add(step.names?.[0] || step.what, "step", "time/" + (step.id || 0));
  return found;
}

function startSearch() {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const close = () => (list.hidden = true);
  const open = (place) => {
    close();
    if (location.hash === "#" + place) route();
    else location.hash = place;
  };
  input.addEventListener("input", () => {
    const found = input.value.trim() ? search(input.value.trim()) : [];
    list.hidden = !input.value.trim();
    list.replaceChildren(...(found.length ? found.map((entry) => h("li", {}, h("a", { href: "#" + entry.place, onclick: (event) => { event.preventDefault(); open(entry.place); } },
      named(entry.name, 60), " ", h("span", { class: "faint" }, entry.kind)))) : [h("li", { class: "faint" }, "nothing found")]));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "ArrowDown") list.querySelector("a")?.focus();
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (event.key === "Escape") { close(); input.focus(); }
    if (!by) return;
    event.preventDefault();
    (document.activeElement.parentElement?.[by]?.querySelector("a") || input).focus();
  });
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
  });
}

function startTheme() {
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    graphTab.redraw?.();
  };
  set(preferred.matches ? "dark" : "light");
  preferred.addEventListener("change", () => set(preferred.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => set(isDark() ? "light" : "dark"));
}

document.getElementById("command").textContent = `tessera ${log.header.command || ""} ${log.header.version || ""}`;
startTheme();
startTabs();
startSearch();
route();
