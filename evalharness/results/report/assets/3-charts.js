// Small pictures. Each says the same in words: in its label, or in the numbers beside it.

const SYMBOL = { success: '✓', partial: '◐', none: '○' };
const OUTCOME = { success: 'success', partial: 'some progress', none: 'no progress' };

function mark(outcome) {
  return h(`span.mark.${outcome}`, { title: OUTCOME[outcome], 'aria-label': OUTCOME[outcome] }, SYMBOL[outcome]);
}

// A rate on a track from 0 to 1: a bar, its interval as a whisker, floor and ceiling as ticks.
function rateBar(measure, value, interval, floor, ceiling) {
  if (value === null || value === undefined) return h('span.rate', {}, '–');
  const W = 160, H = 18, x = v => Math.round(10 * W * Math.min(1, Math.max(0, v))) / 10;
  const label = `${words(measure)} ${percent(value)} %` +
    (interval ? `, 95 % interval ${percent(interval[0])} to ${percent(interval[1])}` : '') +
    (floor === null || floor === undefined ? '' : `, floor ${percent(floor)}`) +
    (ceiling === null || ceiling === undefined ? '' : `, ceiling ${percent(ceiling)}`);
  const tick = (v, name) => v === null || v === undefined ? null
    : h('line', { class: 'tick ' + name, x1: x(v), x2: x(v), y1: 0, y2: H });
  return h('span.rate', { title: label },
    h('svg', { viewBox: `-1 0 ${W + 2} ${H}`, width: W + 2, height: H, role: 'img', 'aria-label': label },
      h('rect', { class: 'track', x: 0, y: 5, width: W, height: 8, rx: 2 }),
      h('rect', { class: measure, x: 0, y: 5, width: x(value), height: 8, rx: 2 }),
      interval && h('line', { class: 'whisker', x1: x(interval[0]), x2: x(interval[1]), y1: 9, y2: 9 }),
      tick(floor, 'floor'), tick(ceiling, 'ceiling')),
    h('span.number', {}, percent(value)),
    interval && h('small', {}, `${percent(interval[0])}–${percent(interval[1])}`));
}

// Mean progress after each turn, a line for each run.
function curve(runs, family) {
  const W = 220, H = 96, L = 26, B = 16, turns = Math.max(...runs.map(run => run.max_turns));
  const x = turn => L + (W - L - 4) * (turns === 1 ? 0 : (turn - 1) / (turns - 1)), y = v => 6 + (H - B - 6) * (1 - v);
  const lines = runs.filter(run => run.curves[family]).map(run => {
    const values = run.curves[family], last = values[values.length - 1];
    return h('polyline', { class: 'curve', run,
      points: values.map((v, i) => `${x(i + 1).toFixed(1)},${y(v).toFixed(1)}`).join(' ') },
    h('text', {}, `${run.label}: ${percent(last)} % at the end`));
  });
  const label = runs.filter(run => run.curves[family]).map(run =>
    `${run.label} ${percent(run.curves[family][run.curves[family].length - 1])} % after turn ${run.max_turns}`);
  return h('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'mean progress by turn: ' + label.join('; ') },
    [0, 0.5, 1].map(v => [
      h('line', { class: 'grid', x1: L, x2: W - 4, y1: y(v), y2: y(v) }),
      h('text', { x: L - 4, y: y(v) + 4, 'text-anchor': 'end' }, String(100 * v))]),
    [1, turns].map(turn => h('text', { x: x(turn), y: H - 2, 'text-anchor': turn === 1 ? 'start' : 'end' },
      turn === 1 ? 'turn 1' : String(turn))),
    lines);
}

// Shares of a whole: [[class, number, words], ...].
function stack(parts, unit) {
  const total = parts.reduce((sum, part) => sum + part[1], 0);
  if (!total) return h('span.soft', {}, '–');
  const said = parts.filter(part => part[1] > 0).map(([, n, name]) => `${name} ${unit(n)} (${percent(n / total, 0)} %)`);
  return h('span.stack', { role: 'img', 'aria-label': said.join(', '), title: said.join('\n') },
    parts.filter(part => part[1] > 0).map(([kind, n]) => h(`span.${kind}`, { 'width%': n / total })));
}

// The samples of one task: a cell each, filled as far as progress went.
function strip(run, taskId, current) {
  return h('span.strip', { role: 'group', 'aria-label': 'samples' }, run.samplesOf(taskId).map(episode => {
    const sample = run.column.sample[episode], outcome = run.outcome(episode);
    const label = `sample ${sample}: ${OUTCOME[outcome]}, progress ${percent(run.column.progress[episode], 0)} %`;
    const fill = h('span.fill', {});
    fill.style.height = `${100 * run.column.progress[episode]}%`;
    return h(`a.cell.${outcome}`, { href: run.address(episode), title: label, 'aria-label': label, tabindex: -1,
      'aria-current': episode === current ? 'true' : null }, fill, h('span.digit', {}, sample));
  }));
}

function progressBar(value, outcome) {
  return h('span.progress-bar', {}, h('span.track', {}, h(`span.fill.${outcome}`, { 'width%': value })),
    h('span.number', {}, percent(value, 0)));
}
