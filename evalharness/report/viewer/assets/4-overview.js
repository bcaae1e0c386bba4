// The overview: scores with intervals, floors and ceilings; how episodes ended; where time went; differences.

function overview(app) {
  const { data } = app, runs = data.runs, several = runs.length > 1;
  return h('div.page', {},
    runs.map(run => heading(run, several)),
    section('Scores', scores(data, runs),
      h('p.soft.legend', {},
        'Percent. ', h('span.key.success', {}), ' success, ', h('span.key.progress', {}),
        ' progress; whisker: 95 % interval; ticks: ', h('span.key-tick.floor', {}), ' chance, ',
        h('span.key-tick.ceiling', {}), ' best known plans. ',
        'Corrected: 0 is chance, 100 the best known plans.')),
    several && section('Differences', differences(app)),
    section('Progress by turn', h('div.curves', {}, data.families.filter(family => runs.some(run => run.curves[family])).map(family =>
      h('figure', {}, h('figcaption', {}, h('a', { href: address({ family }) }, data.title(family))),
        curve(runs, family)))),
    several && h('p.soft.legend', {}, runs.map(run => [h('span.key-line', { class: `key-line run${run.number % 6}` }), ` ${run.label()}  `]))),
    section('How episodes ended', endings(data, runs), h('p.soft.legend', {},
      h('span.key.success', {}), ' success ', h('span.key.partial', {}), ' some progress ',
      h('span.key.none', {}), ' no progress')),
    section('Where the time went', times(data, runs), h('p.soft.legend', {},
      'Summed over episodes, of which many run at once. ',
      h('span.key.model', {}), ' model ', h('span.key.environment', {}), ' simulator ',
      h('span.key.rest', {}), ' waiting and harness')),
    runs.some(run => run.behaviour.length) && section('Behaviour', behaviour(data, runs)));
}

const section = (title, ...children) => h('section', {}, h('h2', {}, title), ...children);

function heading(run, several) {
  const held = run.summary.held_out;
  const facts = [`suite ${run.suite}${run.suite_seed ? `, seed ${run.suite_seed}` : ''}`,
    run.perturbation && `perturbation ${run.perturbation}`, `at most ${run.max_turns} turns`,
    run.samples > 1 && `${run.samples} samples a task`, plural(run.size, 'episode'),
    `started ${new Date(1000 * run.started).toISOString().slice(0, 16).replace('T', ' ')} UTC`];
  return h('header.run', {},
    h('div', {},
      h('h1', {}, several && h('span.letter', { class: `letter run${run.number % 6}` }, letter(run)), oneLine(run.name)),
      h('p.soft', {}, facts.filter(Boolean).join(' · ')),
      h('p.soft', {}, h('code', {}, oneLine(run.folder)))),
    held && h('dl.held', {}, ['success', 'progress'].map(measure => h('div', {},
      h('dt', {}, `held-out ${measure}`),
      h('dd', {}, h(`strong.${measure}`, {}, percent(held[`${measure}_rate`])),
        h('small', {}, `${percent(held[`${measure}_rate_ci95`][0])}–${percent(held[`${measure}_rate_ci95`][1])}`))))),
    h('ul.notes', {}, run.warnings.map(text => h('li.warning', {}, text)),
      run.notes.slice(1).map(text => h('li', {}, text))));
}

const letter = run => String.fromCharCode(65 + run.number);

// Chance-corrected, with an interval that holds the floor's own error.
function corrected(reference, measure) {
  const limits = reference.chance_corrected_ci95?.[measure];
  return h('div', {}, percent(reference.chance_corrected[measure]),
    limits && h('small', {}, ` ${percent(limits[0])}–${percent(limits[1])}`));
}

const USUAL = { success: 'success', progress: 'progress' };

// Families whose scores have names of their own stand in tables of their own.
function scores(data, runs) {
  const names = family => runs.map(run => run.summary.scores?.[family]).find(Boolean);
  const usual = data.families.filter(family => !names(family)), apart = data.families.filter(names);
  return [usual.length && scoreTable(data, runs, usual, USUAL),
    ...apart.map(family => scoreTable(data, runs, [family], names(family)))].filter(Boolean);
}

function scoreTable(data, runs, families, names) {
  const several = runs.length > 1, body = h('tbody', {});
  for (const family of families) {
    runs.filter(run => run.summary.families[family]).forEach((run, i) => {
      const entry = run.summary.families[family], reference = entry.reference;
      const rate = (measure, bar) => rateBar(bar, entry[measure], entry[`${measure}_ci95`],
        reference?.floor[measure], reference?.ceiling[measure]);
      body.append(h('tr', { class: i ? 'same' : '' },
        h('th', { scope: 'row' }, i ? '' : h('a', { href: address({ family }) }, data.title(family))),
        several && h('td', {}, h('span', { class: `letter run${run.number % 6}` }, letter(run))),
        h('td', {}, rate('success_rate', 'success')), h('td', {}, rate('progress_rate', 'progress')),
        h('td.n', {}, (entry.n === entry.expected ? `${entry.n}` : `${entry.n}/${entry.expected}`)
          + (run.summary.samples > 1 ? ` × ${run.summary.samples}` : '')),
        h('td.n', {}, percent(entry.grounding_accuracy)),
        h('td.n', {}, reference ? ['success_rate', 'progress_rate'].map(measure => corrected(reference, measure)) : '–')));
    });
  }
  for (const run of runs.filter(run => names === USUAL && run.summary.held_out)) {
    const held = run.summary.held_out;
    body.append(h('tr.total', {}, h('th', { scope: 'row' }, 'Held-out'),
      several && h('td', {}, h('span', { class: `letter run${run.number % 6}` }, letter(run))),
      h('td', {}, rateBar('success', held.success_rate, held.success_rate_ci95)),
      h('td', {}, rateBar('progress', held.progress_rate, held.progress_rate_ci95)), h('td.n', {}, held.n), h('td', {}), h('td', {})));
  }
  return scrolled(h('table.scores', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'family'),
    several && h('th', { scope: 'col' }, 'run'),
    [names.success, names.progress].map(name => h('th', { scope: 'col' }, name)),
    ['tasks', 'grounding', 'corrected'].map(name =>
      h('th.n', { scope: 'col' }, name)))), body));
}

// Wide tables scroll by themselves; the focus makes that possible with the keyboard.
const scrolled = table => h('div.scroll', { tabindex: 0 }, table);

function differences(app) {
  const { data } = app, { comparisons, not_compared: why } = data.index;
  if (why) return h('p.warning', {}, why);
  return comparisons.map((comparison, i) => {
    const a = data.runs[0], b = data.runs[i + 1];
    // The cautious of the two questions: these tasks, or kinds of tasks like these.
    const shown = d => d.cautious === 'kinds' ? [d.p_by_kind_holm, d.ci95_by_kind, '*'] : [d.p_holm, d.ci95, ''];
    const row = (d, [p, interval, mark] = shown(d)) => h('tr', { class: p < 0.05 ? 'significant' : '' },
      h('th', { scope: 'row' }, d.family === 'held_out' ? 'Held-out' : data.title(d.family)), h('td', {}, d.measure),
      h('td.n', {}, d.n), h('td.n', {}, percent(d.baseline)), h('td.n', {}, percent(d.run)),
      h('td.n', {}, h('b', {}, signed(d.difference))), h('td.n.soft', {}, `${signed(interval[0])} to ${signed(interval[1])}`),
      h('td.n', {}, (p < 0.0001 ? '<.0001' : p.toFixed(p < 0.01 ? 4 : 3)) + mark),
      h('td.n', {}, `${d.wins} / ${d.ties} / ${d.losses}`));
    const flips = (name, ids, outcome) => h('p', {}, `${name}: `, ids.length
      ? h('a', { href: address({ family: 'all', run: b.number, outcome }) }, plural(ids.length, 'task')) : 'none');
    return h('div', {},
      h('h3', {}, h('span', { class: `letter run${b.number % 6}` }, letter(b)), ` ${oneLine(b.label())} against `,
        h('span', { class: 'letter run0' }, 'A'), ` ${oneLine(a.label())}`),
      h('ul.notes', {}, comparison.notes.map(text => h('li', {}, text))),
      scrolled(h('table', {}, h('thead', {}, h('tr', {}, ['family', 'measure'].map(name => h('th', { scope: 'col' }, name)),
        ['n', 'A', letter(b), 'difference', '95 % interval', 'p (Holm)', 'won / tied / lost'].map(name =>
          h('th.n', { scope: 'col' }, name)))), h('tbody', {}, comparison.differences.map(d => row(d))))),
      comparison.differences.some(d => d.cautious === 'kinds') &&
        h('p.soft', {}, '* significant over tasks, not over their kinds: the interval and p of the kinds are shown'),
      flips(`solved more by ${letter(b)}`, comparison.gained, 'gained'),
      flips(`solved more by A`, comparison.lost, 'lost'));
  });
}

// (family, run, its episodes) for every pair that has some.
function* groups(data, runs) {
  for (const family of data.families) {
    for (const run of runs) {
      const listed = [];
      for (let i = 0; i < run.size; i++) if (run.task(i).family === family) listed.push(i);
      if (listed.length) yield [family, run, listed];
    }
  }
}

function perGroup(data, runs, headings, cells) {
  const several = runs.length > 1;
  let before = null;
  const rows = [...groups(data, runs)].map(([family, run, listed]) => {
    const first = family !== before;
    before = family;
    return h('tr', { class: first ? '' : 'same' },
      h('th', { scope: 'row' }, first && h('a', { href: address({ family }) }, data.title(family))),
      several && h('td', {}, h('span', { class: `letter run${run.number % 6}` }, letter(run))),
      cells(run, listed, family));
  });
  return scrolled(h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'family'),
    several && h('th', { scope: 'col' }, 'run'), headings.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))),
  h('tbody', {}, rows)));
}

function endings(data, runs) {
  const total = (run, listed, column) => listed.reduce((sum, i) => sum + run.column[column][i], 0);
  return perGroup(data, runs, [['', 'wide'], ['mean turns', 'n'], ['limit reached', 'n'], ['turns with a format error', 'n'],
    ['turns not valid', 'n']],
  (run, listed, family) => {
    const by = { success: 0, partial: 0, none: 0 };
    for (const i of listed) by[run.outcome(i)]++;
    const turns = total(run, listed, 'turns'), limit = data.index.ended_by.indexOf('turn_limit');
    const share = column => h('a', { href: address({ family, run: run.number || undefined,
      trouble: column === 'invalid_turns' ? 'not_valid' : 'format' }) }, percent(total(run, listed, column) / turns) + ' %');
    return [h('td', {}, stack(Object.entries(by).map(([kind, n]) => [kind, n, OUTCOME[kind]]), count)),
      h('td.n', {}, (turns / listed.length).toFixed(1)),
      h('td.n', {}, percent(listed.filter(i => run.column.ended_by[i] === limit).length / listed.length) + ' %'),
      h('td.n', {}, share('format_error_turns')), h('td.n', {}, share('invalid_turns'))];
  });
}

function times(data, runs) {
  const table = perGroup(data, runs, [['', 'wide'], ['model', 'n'], ['simulator', 'n'], ['rest', 'n'],
    ['an episode', 'n'], ['tokens', 'n']],
  (run, listed) => {
    const sum = column => listed.reduce((total, i) => total + run.column[column][i], 0);
    const model = sum('model_s'), environment = sum('environment_s'), wall = sum('wall_s');
    const rest = Math.max(0, wall - model - environment);
    return [h('td', {}, stack([['model', model, 'model'], ['environment', environment, 'simulator'], ['rest', rest, 'rest']], duration)),
      ...[model, environment, rest].map(seconds => h('td.n', {}, duration(seconds))),
      h('td.n', {}, duration(wall / listed.length)), h('td.n', {}, count(sum('tokens')))];
  });
  const walls = runs.filter(run => run.summary.wall_s).map(run => h('li', {},
    runs.length > 1 && `${letter(run)}: `, `${duration(run.summary.wall_s)} of wall time`));
  return [table, h('ul.notes', {}, walls)];
}

// rows: [figure, family, value, low, high]; a family of '' is all together.
function behaviour(data, runs) {
  return runs.filter(run => run.behaviour.length).map(run => {
    const figures = [...new Set(run.behaviour.map(row => row[0]))], families = [...new Set(run.behaviour.map(row => row[1]))].sort();
    const cell = new Map(run.behaviour.map(([figure, family, ...values]) => [figure + '\n' + family, values]));
    const number = value => value.toFixed(1);
    return h('div', {}, runs.length > 1 && h('h3', {}, h('span', { class: `letter run${run.number % 6}` }, letter(run)), ` ${oneLine(run.label())}`),
      scrolled(h('table.behaviour', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, ''), families.map(family =>
        h('th.n', { scope: 'col' }, family ? data.title(family) : 'all')))),
      h('tbody', {}, figures.map(figure => h('tr', {}, h('th', { scope: 'row' }, words(figure)), families.map(family => {
        const [value, low, high] = cell.get(figure + '\n' + family) || [];
        return h('td.n', {}, value === undefined || value === null ? '–' : number(value),
          h('small', {}, low === null || low === undefined ? '' : `${number(low)}–${number(high)}`));
      })))))));
  });
}
