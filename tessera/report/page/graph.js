// Graphs on canvases, and the details of their nodes.

/** One graph on a canvas: pan, zoom, selection. Only what is in view is drawn. */
class GraphView {
  constructor(graph, {colour, select}) {
    this.graph = graph;
    this.layout = layouts[graph];
    this.nodes = index.nodesOf.get(graph);
    this.colour = colour;
    this.select = select;
    this.boxes =
        this.layout.boxes.map(([x, y, width, height, nodes]) => ({x, y, width, height, nodes}));
    this.boxOf = new Map(this.boxes.flatMap((box) => box.nodes.map((node) => [node, box])));
    this.scale = 1;
    this.x = this.y = 0;  // of the graph, at the center of the canvas
    this.canvas = h('canvas', {
      tabindex: 0,
      'data-graph': graph,
      role: 'img',
      'aria-label':
          `Graph ${graph}: ${this.nodes.size} nodes. Arrow keys pan, plus and minus zoom, 0 fits.`
    });
    this.pointers = new Map();
    this.listen();
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(
          Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX,
          event.offsetY);
    }, {passive: false});
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.moved = false;
    });
    canvas.addEventListener('pointermove', (event) => this.drag(event));
    for (const end of ['pointerup', 'pointercancel'])
      canvas.addEventListener(end, (event) => {
        if (end === 'pointerup' && !this.moved && this.pointers.size === 1)
          this.click(event.offsetX, event.offsetY);
        this.pointers.delete(event.pointerId);
      });
    canvas.addEventListener('keydown', (event) => this.key(event));
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
    const keys = {
      ArrowLeft: () => (this.x -= step),
      ArrowRight: () => (this.x += step),
      ArrowUp: () => (this.y -= step),
      ArrowDown: () => (this.y += step),
      '+': () => this.zoom(1.25),
      '=': () => this.zoom(1.25),
      '-': () => this.zoom(0.8),
      '0': () => this.fit(),
      n: () => this.neighbour(1),
      p: () => this.neighbour(-1)
    };
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
    const {clientWidth, clientHeight} = this.canvas;
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
    const {width, height} = this.layout;
    this.scale =
        Math.max(0.02, Math.min(1.2, this.width / (width + 40), this.height / (height + 40)));
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
    const box = this.boxes.find(
        (b) => Math.abs(x - b.x) <= b.width / 2 && Math.abs(y - b.y) <= b.height / 2);
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

  /** Colors, to be found again: another choice, or another theme. */
  refresh() {
    for (const box of this.boxes) box.fill = undefined;
    const style = getComputedStyle(document.documentElement);
    this.theme = Object.fromEntries(['edge', 'text', 'mark', 'accent', 'box'].map(
        (name) => [name, style.getPropertyValue('--' + name).trim()]));
    if (this.width) this.paint();
  }

  paint() {
    if (!this.theme) return this.refresh();
    const context = this.canvas.getContext('2d');
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.translate(this.width / 2, this.height / 2);
    context.scale(this.scale, this.scale);
    context.translate(-this.x, -this.y);
    const x = this.width / 2 / this.scale, y = this.height / 2 / this.scale;
    const view = {left: this.x - x, right: this.x + x, top: this.y - y, bottom: this.y + y};
    this.line = Math.max(1, 0.7 / this.scale);
    this.paintEdges(context, view);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.direction = 'ltr';
    let drawn = 0;
    for (const box of this.boxes) {
      const left = box.x - box.width / 2, top = box.y - box.height / 2;
      if (left > view.right || left + box.width < view.left || top > view.bottom ||
          top + box.height < view.top)
        continue;
      this.paintBox(context, box, left, top);
      ++drawn;
    }
    this.canvas.dataset.drawn = drawn;
  }

  paintEdges(context, view) {
    const isFar = this.scale < 0.15;  // curves look like lines
    context.lineWidth = this.line;
    context.strokeStyle = this.theme.edge;
    context.beginPath();
    for (const [from, to] of this.layout.edges) {
      const a = this.boxes[from], b = this.boxes[to];
      if (Math.max(a.x, b.x) < view.left || Math.min(a.x, b.x) > view.right) continue;
      const y0 = a.y + a.height / 2, y1 = b.y - b.height / 2;
      if (Math.max(y0, y1) < view.top || Math.min(y0, y1) > view.bottom) continue;
      const bend = Math.min(60, Math.abs(y1 - y0) / 2);
      context.moveTo(a.x, y0);
      if (isFar)
        context.lineTo(b.x, y1);
      else
        context.bezierCurveTo(a.x, y0 + bend, b.x, y1 - bend, b.x, y1);
    }
    context.stroke();
  }

  paintBox(context, box, left, top) {
    const {theme} = this;
    const isChosen = this.chosen !== undefined && box.nodes.includes(this.chosen);
    if (box.fill === undefined) box.fill = this.colour(this.graph, box) || theme.box;
    context.fillStyle = box.fill;
    context.fillRect(left, top, box.width, box.height);
    context.strokeStyle = isChosen ? theme.accent : theme.edge;
    context.lineWidth = (isChosen ? 3 : 1) * this.line;
    context.strokeRect(left, top, box.width, box.height);
    if (this.scale < 0.28) {
      if (!this.marked?.size || !box.nodes.some((node) => this.marked.has(node))) return;
      context.fillStyle = theme.mark;
      context.fillRect(left, top, box.width, box.height);
      return;
    }
    box.labels ||= this.labels(context, box);
    box.nodes.forEach((id, row) => {
      const at = top + 14 + 18 * row, {op, name, start} = box.labels[row];
      if (id === this.chosen || this.marked?.has(id)) {
        context.fillStyle = theme.mark;
        context.fillRect(left + 1, at - 9, box.width - 2, 18);
      }
      context.fillStyle = theme.text;
      context.fillText(op, left + 8, at);
      context.globalAlpha = 0.7;
      context.fillText(name, left + start, at);
      context.globalAlpha = 1;
    });
  }

  /** Texts of the nodes of a box, as long as it is wide. */
  labels(context, box) {
    return box.nodes.map((id) => {
      const node = this.nodes.get(id), op = short(node.op, 28);
      const start = 14 + context.measureText(op).width, room = box.width - start - 6;
      if (!node.name || node.name.startsWith('%')) return {op, name: '', start};  // it has none
      let name = '', most = Math.floor(room / 5);
      do {
        // Isolated from the direction of the text around it.
        name = most > 2 ? '\u2068' + short(node.name, most--) + '\u2069' : '';
      } while (name && context.measureText(name).width > room);
      return {op, name, start};
    });
  }
}

function graphTab(place) {
  const graphs = index.graphs.filter((graph) => layouts[graph]?.boxes.length);
  const wanted = graphs.includes(place[0]) ? place[0] : index.after || 'original';
  const wide = window.innerWidth > 1100 && graphs.length > 1;
  let mode = wide ? 'both' : wanted;
  let by = index.time.size ? 'time' : index.steps.size ? 'strategy' : 'operator';
  const longest = Math.max(1e-9, ...[...index.time.values()].map((time) => time.ms || 0));
  const longestNode = Math.max(1e-9, ...index.mainTime.values());
  const colours = {};
  const stepsOf = (graph, box) => graph === index.after ?
      box.nodes.flatMap((node) => index.stepsOfNode.get(node) || []) :
      (index.became.get(box.nodes[0]) ||
       []).flatMap((node) => index.stepsOfNode.get(node.id || 0) || []);
  const colour = (graph, box) => {
    const node = index.nodesOf.get(graph).get(box.nodes[0]);
    if (by === 'operator') return tint((colours.operator ||= new Colours()).of(node.op));
    const steps = [...new Set(stepsOf(graph, box))];
    if (by === 'time') {
      const time = graph === index.after ?
          steps.reduce((sum, step) => sum + (index.time.get(step.id || 0)?.ms || 0), 0) / longest :
          (index.mainTime.get(node.name) || 0) / longestNode;
      return time ? heat(time) : undefined;
    }
    const step = steps.at(-1);
    if (!step) return undefined;
    return by === 'strategy' ?
        tint(strategyColours.of(strategyKind(step))) :
        tint((colours.precision ||= new Colours()).of(step.precision || 'other'));
  };
  const detail =
      h('aside', {id: 'detail', 'aria-live': 'polite'},
        h('p', {class: 'faint'}, 'Click on a node, or search for its name.'));
  const select = (graph, node) => {
    history.replaceState(null, '', `#graph/${graph}/${node}`);
    detail.replaceChildren(...nodeDetail(graph, node));
    const counterpart = graph === 'original' ?
        (index.became.get(node) || []).map((one) => one.id || 0) :
        index.nodesOf.get(graph).get(node)?.origins || [];
    for (const view of Object.values(views)) {
      view.chosen = view.graph === graph ? node : undefined;
      view.mark(view.graph === graph ? [] : counterpart);
      if (view.graph !== graph && counterpart.length) view.show(counterpart[0]);
      view.draw();
    }
  };
  const views =
      Object.fromEntries(graphs.map((graph) => [graph, new GraphView(graph, {colour, select})]));
  const holder = h('div', {class: 'views'});
  const legend = h('span');
  const redraw = () => {
    Object.values(views).forEach((view) => view.refresh());
    const list = by === 'strategy' ? strategyColours : colours[by];
    legend.replaceChildren(
        by === 'time' ? h('span', {class: 'faint'}, 'pale: short, strong: long') :
                        list?.legend() || '');
  };
  const arrange = () => {
    holder.replaceChildren(
        ...graphs.filter((graph) => mode === 'both' || mode === graph)
            .map(
                (graph) =>
                    h('div', {class: 'view'},
                      h('h3', {}, `${graph} (${plural(index.nodesOf.get(graph).size, 'node')})`),
                      views[graph].canvas)));
    buttons.forEach((button) => button.setAttribute('aria-pressed', button.value === mode));
    requestAnimationFrame(redraw);
  };
  const buttons = [...graphs, ...(graphs.length > 1 ? ['both'] : [])].map(
      (name) =>
          h('button', {
            type: 'button',
            value: name,
            onclick: () => {
              mode = name;
              arrange();
            }
          },
            name));
  const choices = ['time', 'strategy', 'precision', 'operator'].filter(
      (choice) =>
          choice === 'operator' || (choice === 'time' ? index.time.size : index.steps.size));
  const chooser = h(
      'select', {
        id: 'colour',
        'aria-label': 'Color by',
        onchange: (event) => {
          by = event.target.value;
          redraw();
        }
      },
      choices.map(
          (choice) => h('option', {value: choice, selected: choice === by}, 'color by ' + choice)));
  const each = (action) => () =>
      Object.values(views).forEach((view) => view.width && view.canvas.isConnected && action(view));
  const controls =
      h('div', {class: 'controls'}, buttons, chooser,
        h('button', {
          type: 'button',
          id: 'zoom-in',
          title: 'Zoom in (+)',
          onclick: each((view) => view.zoom(1.4))
        },
          '+'),
        h('button', {
          type: 'button',
          id: 'zoom-out',
          title: 'Zoom out (-)',
          onclick: each((view) => view.zoom(1 / 1.4))
        },
          '−'),
        h('button', {type: 'button', title: 'Fit (0)', onclick: each((view) => view.fit())}, 'fit'),
        legend);
  arrange();
  if (place.length > 1) {
    const node = Number(place[1]);
    if (views[wanted].boxOf.has(node)) {
      if (mode !== 'both') {
        mode = wanted;
        arrange();
      }
      select(wanted, node);
      views[wanted].show(node);
    }
  }
  graphTab.views = views;
  graphTab.redraw = redraw;
  return h('div', {}, controls, h('div', {class: 'graph'}, holder, detail));
}

/** A colour as the background of text. */
function tint(colour) { return colour + (isDark() ? '88' : '66'); }

function nodeDetail(graph, id) {
  const node = index.nodesOf.get(graph)?.get(id);
  if (!node) return [h('p', {}, 'There is no such node.')];
  const parts = [
    h('h3', {}, named(node.name, 120)),
    h('p', {}, h('b', {}, node.op), ' ', short(node.attributes || '', 300))
  ];
  const list = (title, items) => items.length &&
      parts.push(
          h('h3', {}, title), h('ul', {class: 'plain'}, items.map((item) => h('li', {}, item))));
  const definition = index.definitions.get(node.definition ?? -1);
  if (definition) parts.push(h('h3', {}, 'Definition'), h('pre', {}, definition.text));
  list(
      'Operands',
      (node.operands || [])
          .map(
              (operand) =>
                  [operand.node === undefined || operand.node < 0 ?
                       named(operand.name) :
                       nodeLink(graph, {id: operand.node, name: operand.name}),
                   ': ', short(operand.type, 80), operand.constant ? ' (constant)' : '']));
  list(
      'Results',
      (node.results || []).map((result) => [named(result.name), ': ', short(result.type, 80)]));
  const origins = graph === 'original' ? [id] : node.origins || [];
  if (graph !== 'original')
    list(
        'Came from',
        origins.map(
            (origin) => nodeLink('original', index.nodesOf.get('original').get(origin) || {})));
  else if (index.after)
    list(
        'Became',
        (index.became.get(id) || []).map((one) => [nodeLink(index.after, one), ' ', one.op]));
  if (graph === 'original' && index.after && !index.became.has(id))
    parts.push(h('p', {}, 'It was removed: folded at compile time, or not needed.'));
  const rules = (graph === 'original' ? [id] : origins)
                    .flatMap((origin) => index.rewritesOf.get(origin) || []);
  if (rules.length) parts.push(h('h3', {}, 'Rewrites'), h('p', {}, ruleLinks(origins)));
  const steps = graph === 'original' ?
      (index.became.get(id) || []).flatMap((one) => index.stepsOfNode.get(one.id || 0) || []) :
      index.stepsOfNode.get(id) || [];
  list(
      'Steps',
      [...new Set(steps)].slice(0, 20).map(
          (step) =>
              [link('time/' + (step.id || 0), 'step ' + (step.id || 0)), ` ${step.what}`,
               step.strategy ? ` [${step.strategy}]` : '',
               index.time.has(step.id || 0) ? ', ' + ms(index.time.get(step.id || 0).ms) : '',
               step.kernel === undefined ?
                   '' :
                   [', ', link('kernels/' + step.kernel, 'kernel ' + step.kernel)]]));
  return parts;
}
