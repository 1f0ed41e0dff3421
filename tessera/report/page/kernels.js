// Kernels in their forms.

/** The schedule of a kernel's group, what chose it, and what else was possible. */
function scheduleChoice(kernel) {
  if (!kernel.chosen) return null;
  const others = kernel.alternatives || [];
  return [
    h('p', {}, h('b', {}, 'Schedule: '), h('code', {}, kernel.chosen),
      `; why: chosen by ${kernel.chosen_by || 'default'} out of ${
          plural(kernel.candidates, 'legal schedule')}`),
    others.length ?
        h('details', {},
          h('summary', {}, `${plural(others.length, 'alternative')} that came next`),
          table(
              [
                {title: 'schedule', cell: (other) => h('code', {}, other.schedule)},
                {
                  title: 'predicted time',
                  number: true,
                  cell: (other) => (other.cost ? `${numeral(other.cost)} × the chosen one` :
                                                 'not comparable: another strategy')
                },
              ],
              others)) :
        null
  ];
}

function kernelDetails(kernel, open) {
  const id = kernel.id || 0;
  const steps = [...index.steps.values()].filter((step) => step.kernel === id);
  const total = steps.reduce((sum, step) => sum + (index.time.get(step.id || 0)?.ms || 0), 0);
  const element =
      h('details', {id: 'kernel-' + id},
        h('summary', {}, h('b', {}, `kernel ${id}`), ` ${short(kernel.name, 48)} · `,
          steps[0] ? named(steps[0].names?.[0] || steps[0].what, 48) : '',
          ` · ${plural(steps.length, 'step')}`, total ? ` · ${ms(total)}` : '',
          ` · ${bytes(kernel.code_bytes)} of code`));
  const isGpu = log.last('target')?.architecture?.startsWith('sm_');
  const fill = () => {
    const form = (title, text) => text && h('div', {}, h('h3', {}, title), h('pre', {}, text));
    element.append(h(
        'div', {},
        h('p', {}, h('b', {}, 'Decided: '),
          [...new Set(steps.map((step) => step.strategy).filter(Boolean))].join('; ') ||
              'no strategy',
          kernel.scratch_bytes ? `; ${bytes(kernel.scratch_bytes)} of ${
                                     isGpu ? 'shared memory' : 'scratch memory per thread'}` :
                                 '',
          steps[0]?.grid ? `; grid ${steps[0].grid.join(' × ')}` : '',
          steps[0]?.precision ? `; ${steps[0].precision}` : ''),
        scheduleChoice(kernel), h('p', {}, 'Used by ',
          steps.slice(0, 12).flatMap((step, i) => [i ? ', ' : '', stepLink(step, 40)]),
          steps.length > 12 ? ' …' : ''),
        h('div', {class: 'forms'}, form('Tile program', kernel.tile),
          form(isGpu ? 'Schedule: threads and layouts' : 'Schedule: loop nests', kernel.schedule),
          form(isGpu ? 'PTX' : 'Assembly', kernel.assembly)),
        kernel.left_out ? h('p', {class: 'faint'}, 'Some forms are left out: ' + kernel.left_out) :
                          null));
  };
  element.addEventListener('toggle', fill, {once: true});
  if (open) element.open = true;
  return element;
}

function kernelsTab(place) {
  const wanted = place.length ? Number(place[0]) : -1;
  const kernels = log.of('kernel');
  requestAnimationFrame(
      () => wanted >= 0 && document.getElementById('kernel-' + wanted)?.scrollIntoView());
  return h(
      'div', {}, h('h2', {}, 'Kernels'),
      h('p', {class: 'faint'}, 'The longest first. A kernel may be used by several steps.'),
      kernels.map(
          (kernel, i) =>
              kernelDetails(kernel, wanted < 0 ? i === 0 : (kernel.id || 0) === wanted)));
}
