// Tuning: candidate schedules over time, predicted against measured.

const trialsOf = (task) => log.of('trial').filter((trial) => (trial.task || 0) === (task.id || 0));

/** Best ratio so far, as a line of points. */
function bestSoFar(trials) {
  const line = [];
  let best = 1;
  for (const trial of [...trials].sort((a, b) => (a.at || 0) - (b.at || 0))) {
    if (!(trial.ratio > 0)) continue;
    if (line.length) line.push({x: trial.at || 0, y: best});
    best = Math.min(best, trial.ratio);
    line.push({x: trial.at || 0, y: best});
  }
  return line;
}

function tuningPlots(trials, colours, chosen) {
  const taskOf = new Map(log.of('tuning_task').map((task) => [task.id || 0, task]));
  const points = (x) => trials.map((trial) => {
    const task = taskOf.get(trial.task || 0) || {};
    return {
      x: trial[x] || 0,
      y: trial.ratio || 0,
      colour: colours.of(task.what || 'task'),
      href: 'tuning/' + (trial.task || 0),
      title: `${short(task.names?.[0] || task.what, 100)}: ${numeral(trial.ratio)} × the default, ${
          numeral(trial.predicted)} predicted; ${short(trial.schedule, 200)}`
    };
  });
  const predicted = points('predicted').filter((point) => point.x > 0 && point.y > 0);
  const both = predicted.flatMap((point) => [point.x, point.y]);
  const ends = both.length ? [Math.min(...both), Math.max(...both)] : [];
  return h('div', {class: 'columns'}, plot({
             title: 'Candidates over time',
             x: 'seconds',
             y: 'measured time over the default',
             points: points('at'),
             lines: chosen ? [bestSoFar(trials)] : [],
             linear: true
           }),
           plot({
             title: 'Predicted against measured',
             x: 'predicted time over the default',
             y: 'measured time over the default',
             points: predicted,
             lines: [ends.map((end) => ({x: end, y: end}))]
           }));
}

function tuningSummary() {
  const tuning = log.last('tuning') || {};
  const trials = log.of('trial'), failed = trials.filter((trial) => !trial.ratio).length;
  return h(
      'p', {},
      `${plural(trials.length, 'candidate')} of ${
          plural(log.of('tuning_task').length, 'task')} were measured in ${
          numeral(tuning.seconds)} s (end: ${tuning.stopped_by || 'unknown'})` +
          (failed ? `, ${failed} of them could not be run` : '') +
          `. The kernels of these tasks take ${ms(tuning.default_ms || 0)} with the default ` +
          `schedules and ${ms(tuning.tuned_ms || 0)} with the chosen ones.`,
      tuning.ratio ?
          ` The whole program takes ${numeral(tuning.ratio)} of the time (95 % interval ${
              numeral(tuning.ratio_low)} to ${numeral(tuning.ratio_high)})` +
              (tuning.kept === false ? ': slower, so the default schedules stay.' : '.') :
          '');
}

function trialTable(trials) {
  return table(
      [
        {
          title: 'measured',
          number: true,
          key: (t) => t.ratio || Infinity,
          cell: (t) => (t.ratio ? numeral(t.ratio) : 'failed')
        },
        {
          title: 'predicted',
          number: true,
          key: (t) => t.predicted || 0,
          cell: (t) => numeral(t.predicted)
        },
        {title: 'at', number: true, key: (t) => t.at || 0, cell: (t) => `${numeral(t.at || 0)} s`},
        {title: 'schedule', cell: (t) => h('code', {}, short(t.schedule, 200))},
      ],
      [...trials].sort((a, b) => (a.ratio || Infinity) - (b.ratio || Infinity)));
}

function tuningTab(place) {
  const tasks = log.of('tuning_task'), colours = new Colours();
  const chosen = place.length ? tasks.find((task) => (task.id || 0) === Number(place[0])) : null;
  const trials = chosen ? trialsOf(chosen) : log.of('trial');
  const total = (task) => (task.uses || 1) * (task.default_ms || 0);
  const label = (task) => named(task.names?.[0] || task.what, 56);
  const plots = tuningPlots(trials, colours, chosen);
  return h(
      'div', {}, h('h2', {}, 'Tuning'), tuningSummary(),
      chosen ? [
        h('h3', {}, label(chosen), ` (${short(chosen.what, 60)}) `,
          link('tuning', 'all tasks')),
        h('p', {}, h('b', {}, 'default: '), h('code', {}, chosen.default_schedule || '')),
        h('p', {}, h('b', {}, 'chosen: '),
          chosen.schedule ? h('code', {}, chosen.schedule) : 'the default one')
      ] :
               null,
      plots, colours.legend(), chosen ? trialTable(trials) : null, h('h2', {}, 'Tasks'),
      table(
          [
            {
              title: 'ONNX node',
              key: (t) => t.names?.[0] || '',
              cell: (t) => link('tuning/' + (t.id || 0), label(t))
            },
            {title: 'operators', key: (t) => t.what || '', cell: (t) => short(t.what, 50)},
            {title: 'uses', number: true, key: (t) => t.uses || 0, cell: (t) => numeral(t.uses)},
            {
              title: 'default, all uses',
              number: true,
              key: total,
              cell: (t) => ms(total(t))
            },
            {
              title: 'chosen over default',
              number: true,
              key: (t) => t.ratio ?? 1,
              cell: (t) => t.schedule ? [
                h('b', {class: 'good'}, numeral(t.ratio ?? 1)),
                h('div', {class: 'faint'},
                  `${numeral(t.ratio_low ?? 1)} to ${numeral(t.ratio_high ?? 1)}`)
              ] :
                                        '1'
            },
            {
              title: 'measured',
              number: true,
              key: (t) => trialsOf(t).length + (t.known || 0),
              cell: (t) => `${trialsOf(t).length + (t.known || 0)} of ${t.space || 0}`
            },
            {
              title: 'schedule',
              cell: (t) => t.schedule ? h('code', {}, short(t.schedule, 120)) :
                                        h('span', {class: 'faint'}, 'the default one')
            },
          ],
          [...tasks].sort((a, b) => total(b) - total(a)),
          {row: (task) => ({class: chosen === task && 'chosen'})}));
}
