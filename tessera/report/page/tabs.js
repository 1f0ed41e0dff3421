// Tabs, search and theme: the start of the page.

const tabs = [
  {id: 'compare', title: 'Compare', shown: () => log.of('difference').length, show: compareTab},
  {id: 'proof', title: 'Proof', shown: () => log.of('proof').length, show: proofTab},
  {id: 'summary', title: 'Summary', shown: () => true, show: summaryTab},
  {
    id: 'graph',
    title: 'Graph',
    shown: () => Object.values(layouts).some((layout) => layout.boxes.length),
    show: graphTab
  },
  {id: 'rewrites', title: 'Rewrites', shown: () => log.of('pass').length || log.of('rewrite').length, show: rewritesTab},
  {id: 'time', title: 'Time', shown: () => log.of('step').length, show: timeTab},
  {id: 'kernels', title: 'Kernels', shown: () => log.of('kernel').length, show: kernelsTab},
  {id: 'memory', title: 'Memory', shown: () => log.of('value').length, show: memoryTab},
  {
    id: 'tuning',
    title: 'Tuning',
    shown: () => log.of('tuning').length || log.of('tuning_task').length,
    show: tuningTab
  },
].filter((tab) => tab.shown());

function route() {
  const [id, ...place] = location.hash.slice(1).split('/');
  const tab = tabs.find((one) => one.id === id) || tabs[0];
  for (const button of document.getElementById('tabs').children) {
    const chosen = button.dataset.tab === tab.id;
    button.setAttribute('aria-selected', chosen);
    button.tabIndex = chosen ? 0 : -1;
    if (chosen) button.scrollIntoView({block: 'nearest', inline: 'nearest'});
  }
  graphTab.views = null;
  const start = performance.now();
  document.getElementById('main').replaceChildren(tab.show(place));
  document.body.dataset.tab = tab.id;
  document.body.dataset.milliseconds = (performance.now() - start).toFixed(1);
  if (!place.length) window.scrollTo(0, 0);
}

function startTabs() {
  const nav = document.getElementById('tabs');
  nav.append(...tabs.map(
      (tab) =>
          h('button', {
            type: 'button',
            role: 'tab',
            'data-tab': tab.id,
            onclick: () => (location.hash = tab.id)
          },
            tab.title)));
  nav.addEventListener('keydown', (event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!by) return;
    const buttons = [...nav.children];
    const next =
        buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  window.addEventListener('hashchange', route);
}

/** Nodes, steps and rules whose name contains a text. */
function search(text) {
  const wanted = text.toLowerCase();
  const found = [];
  const add = (name, kind, place) => found.length < 60 && found.push({name, kind, place});
  for (const graph of index.graphs)
    for (const node of index.nodesOf.get(graph).values())
      if ((node.name || '').toLowerCase().includes(wanted) || node.op === wanted)
        add(node.name || node.op, `${graph} ${node.op}`, `graph/${graph}/${node.id || 0}`);
  for (const rewrite of log.of('rewrite'))
    if (rewrite.rule.toLowerCase().includes(wanted))
      add(rewrite.rule, 'rule', 'rewrites/' + rewrite.rule);
  if (!index.graphs.length)
    for (const step of index.steps.values())
      if ((step.names?.[0] || step.what || '').toLowerCase().includes(wanted))
        add(step.names?.[0] || step.what, 'step', 'time/' + (step.id || 0));
  return found;
}

function startSearch() {
  const input = document.getElementById('search'), list = document.getElementById('found');
  const close = () => (list.hidden = true);
  const open = (place) => {
    close();
    if (location.hash === '#' + place)
      route();
    else
      location.hash = place;
  };
  input.addEventListener('input', () => {
    const found = input.value.trim() ? search(input.value.trim()) : [];
    list.hidden = !input.value.trim();
    list.replaceChildren(
        ...(found.length ?
                found.map(
                    (entry) =>
                        h('li', {},
                          h('a', {
                            href: '#' + entry.place,
                            onclick: (event) => {
                              event.preventDefault();
                              open(entry.place);
                            }
                          },
                            named(entry.name, 60), ' ', h('span', {class: 'faint'}, entry.kind)))) :
                [h('li', {class: 'faint'}, 'nothing found')]));
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    if (event.key === 'ArrowDown') list.querySelector('a')?.focus();
    if (event.key === 'Enter') list.querySelector('a')?.click();
  });
  list.addEventListener('keydown', (event) => {
    const by = {ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling'}[event.key];
    if (event.key === 'Escape') {
      close();
      input.focus();
    }
    if (!by) return;
    event.preventDefault();
    (document.activeElement.parentElement?.[by]?.querySelector('a') || input).focus();
  });
  document.addEventListener('click', (event) => {
    if (!event.target.closest('.search')) close();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
  });
}

function startTheme() {
  const preferred = window.matchMedia('(prefers-color-scheme: dark)');
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    graphTab.redraw?.();
  };
  set(preferred.matches ? 'dark' : 'light');
  preferred.addEventListener('change', () => set(preferred.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener(
      'click', () => set(isDark() ? 'light' : 'dark'));
  // Printers leave out backgrounds: dark text on white, whatever the screen shows.
  let shown = 'light';
  window.addEventListener('beforeprint', () => {
    shown = document.documentElement.dataset.theme;
    set('light');
  });
  window.addEventListener('afterprint', () => set(shown));
}

document.getElementById('command').textContent =
    `tessera ${log.header.command || ''} ${log.header.version || ''}`;
startTheme();
startTabs();
startSearch();
route();
