// A training: held-out success and progress of its checkpoints by step, and the reward of its own episodes below.

function trainings(app) {
  return h('div.page', {}, app.data.index.trainings.map(training => section(oneLine(training.model),
    h('p.soft', {}, `suite ${training.suite}; whiskers and brackets: 95 % intervals`),
    h('ul.notes', {}, training.notes.map(text => h('li', {}, text))),
    h('p.legend', {}, h('span.key.success'), ' success % ', h('span.key.progress'), ' progress %'),
    h('div.training', {}, training.columns.map(([column, title]) =>
      h('figure', {}, h('figcaption', {}, oneLine(title)), ratesBy(training, column))),
    training.rewards.length > 0 && h('figure', {}, h('figcaption', {}, oneLine(training.reward_title)), rewardBy(training))),
    trainingTable(training))));
}

// The same steps from left to right in every picture of a training.
function span(training) {
  const xs = [...training.points.map(point => point.x), ...training.rewards.map(([x]) => x)];
  return [Math.min(...xs), Math.max(...xs)];
}

function axes(training, low, high, mark, label, drawn) {
  const W = 320, H = 150, L = 34, B = 18, [first, last] = span(training);
  const x = v => L + (W - L - 8) * (last === first ? 0.5 : (v - first) / (last - first));
  const y = v => 6 + (H - B - 6) * (1 - (v - low) / (high - low || 1));
  return h('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': label },
    [low, (low + high) / 2, high].map(v => [
      h('line', { class: 'grid', x1: L, x2: W - 4, y1: y(v), y2: y(v) }),
      h('text', { x: L - 4, y: y(v) + 4, 'text-anchor': 'end' }, mark(v))]),
    h('text', { x: L, y: H - 4 }, `${oneLine(training.axis)} ${first}`),
    last > first && h('text', { x: W - 4, y: H - 4, 'text-anchor': 'end' }, String(last)),
    drawn(x, y));
}

function ratesBy(training, column) {
  const points = training.points.filter(point => point.rates[column]);
  const label = points.map(point => `${point.name}: success ${percent(point.rates[column].success)} %, ` +
    `progress ${percent(point.rates[column].progress)} %`).join('; ');
  return axes(training, 0, 1, v => String(100 * v), label, (x, y) => ['progress', 'success'].map((measure, i) => {
    const at = point => [x(point.x) + 3 * i, y(point.rates[column][measure])];
    return [
      h(`polyline.by-step.${measure}`, { points: points.map(point => at(point).map(v => v.toFixed(1)).join(',')).join(' ') }),
      points.map(point => {
        const [cx, cy] = at(point), [low, high] = point.ci95[column][measure];
        return h(`g.by-step.${measure}`, {}, h('line', { x1: cx, x2: cx, y1: y(low), y2: y(high) }),
          h('circle', { cx, cy, r: 2.5 }));
      })];
  }));
}

function rewardBy(training) {
  const values = training.rewards.map(([, reward]) => reward), low = Math.min(0, ...values), high = Math.max(...values);
  return axes(training, low, high > low ? high : low + 1, v => fixed(v, 2), `mean reward of training episodes, ${fixed(values[0], 3)} to ${fixed(values.at(-1), 3)}`,
    (x, y) => [h('polyline.by-step.reward', { points: training.rewards.map(([step, reward]) => `${x(step).toFixed(1)},${y(reward).toFixed(1)}`).join(' ') }),
      training.rewards.map(([step, reward]) => h('g.by-step.reward', {}, h('circle', { cx: x(step), cy: y(reward), r: 1.5 })))]);
}

function trainingTable(training) {
  const rate = (point, column, measure) => {
    const rates = point.rates[column];
    if (!rates) return h('td.n', {}, '–');
    const [low, high] = point.ci95[column][measure];
    return h('td.n', {}, percent(rates[measure]), h('small', {}, ` [${percent(low)}, ${percent(high)}]`));
  };
  const heading = (name, n) => h('th.n', { scope: 'col', colspan: n }, oneLine(name));
  return scrolled(h('table.by-step', {}, h('thead', {},
    h('tr', {}, h('td', { colspan: 3 }), training.columns.map(([, title]) => heading(title, 2))),
    h('tr', {}, heading(training.axis), heading('tasks'), heading('training reward'),
      training.columns.map(() => [heading('success %'), heading('progress %')]))),
  h('tbody', {}, training.points.map(point => h('tr', {},
    h('th.n', { scope: 'row' }, String(point.x)),
    h('td.n', {}, count(point.n)), h('td.n', {}, point.reward === null ? '–' : fixed(point.reward, 3)),
    training.columns.map(([column]) => ['success', 'progress'].map(measure => rate(point, column, measure))))))));
}
