// The overview: its answer, scores, differences, how episodes ended, where time went.

function overview(app) {
  const { data } = app, runs = data.runs, several = runs.length > 1;
  return h('div.page', {},
    heading(runs, data.index.answers),
    section('Scores', scores(data, runs), kindTable(data, runs),
      h('p.soft.legend', {},
        'Percent. ', h('span.key.success', {}), ' success, ', h('span.key.progress', {}),
        ' progress; whisker: 95 % interval; ticks: ', h('span.key-tick.floor', {}), ' chance, ',
        h('span.key-tick.ceiling', {}), ' best known plans. ',
        'Corrected: progress with 0 as chance and 100 as the best known plans; point at it for success and intervals.')),
    several && section('Differences', differences(app)),
    several && section('Runs', runs.map(run => about(run))),
    section('Tasks', taskGrid(data, runs), gridLegend(runs)),
    section('Progress by turn', h('div.curves', {}, data.families.filter(family => runs.some(run => run.curves[family])).map(family =>
      h('figure', {}, h('figcaption', {}, h('a', { href: address({ family }) }, data.title(family))),
        curve(runs, family)))),
    several && h('p.soft.legend', {}, runs.map(run => [h('span.key-line', { run }), ` ${letter(run)} ${oneLine(run.label)}  `]))),
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

// The held-out score; without it what is estimated of it, or all tasks together.
const TOTALS = [['held_out', 'held-out'], ['held_out_estimate', 'held-out, estimated'], ['pooled', 'pooled']];
const totalOf = run => TOTALS.map(([key, name]) => ({ name, score: run.summary[key] })).find(({ score }) => score);
const capital = text => text[0].toUpperCase() + text.slice(1);

const errorShare = run => (run.summary.turns ? run.summary.format_error_turns / run.summary.turns : 0);
// From here on a score says more about the form of the replies than about the model's skill.
const troubled = run => errorShare(run) >= 0.5;

function trouble(run, several) {
  if (!troubled(run)) return null;
  return h('p.trouble', { role: 'alert' }, several && chip(run), h('b', {}, `${percent(errorShare(run), 0)} % of the turns have a format error`),
    ': the scores say more about the form of the replies than about the model. ',
    h('a', { href: address({ family: 'all', run: run.number || undefined, trouble: 'format' }) }, 'look at them'));
}

const day = run => new Date(1000 * run.started).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

const factsOf = run => [day(run), `suite ${run.suite}${run.suite_seed ? `, seed ${run.suite_seed}` : ''}`,
  run.perturbation && `perturbation ${run.perturbation}`, `at most ${run.max_turns} turns`,
  run.samples > 1 && `${run.samples} samples a task`, plural(run.size, 'episode')].filter(Boolean);

// One number first, in words; then what it is of.
function heading(runs, answers) {
  const [run] = runs, several = runs.length > 1, [answer, ...more] = answers;
  return h('header.run', {},
    h('h1', {}, oneLine(answer)), more.map(text => h('p', {}, h('b', {}, oneLine(text)))),
    h('p.soft', {}, factsOf(run).filter(fact => runs.every(other => factsOf(other).includes(fact))).join(' · ')),
    several ? h('p', {}, runs.map(each => h('span.named', {}, chip(each), ' ', oneLine(each.label)))) : [h('p', {}, oneLine(run.label)), named(run)],
    runs.map(each => trouble(each, several)),
    !several && notesOf(run));
}

const named = run => [run.label !== run.name && h('p.soft', {}, oneLine(run.name)), h('p.soft', {}, h('code', {}, oneLine(run.folder)))];

const notesOf = run => [
  h('ul.notes', {}, run.warnings.map(text => h('li.warning', {}, text)), run.notes.slice(1).map(text => h('li', {}, text))),
  run.details.length > 0 && h('details.folded', {}, h('summary', {}, 'tokens and efficiency'),
    h('ul.notes', {}, run.details.map(text => h('li', {}, text))))];

// One of several runs: what it is beside its scores.
const about = run => h('article.about', {}, h('h3', {}, chip(run), ' ', oneLine(run.label)),
  h('p.soft', {}, factsOf(run).join(' · ')), named(run), notesOf(run));

// Wide tables scroll by themselves; the focus makes that possible with the keyboard, and a line says that there is more.
function scrolled(table) {
  const box = h('div.scroll', { tabindex: 0 }, table), hint = h('p.soft.more-beside', { hidden: true }, 'more beside: scroll →');
  new ResizeObserver(() => { hint.hidden = box.scrollWidth <= box.clientWidth; }).observe(box);
  return [hint, box];
}

function differences(app) {
  const { data } = app, { comparisons, not_compared: apart } = data.index;
  const found = comparisons.map(comparison => {
    const [a, b] = comparison.numbers.map(number => data.runs[number]);
    const shown = p => p === null ? '-' : p < 0.001 ? '<.001' : p.toFixed(3);
    const row = d => h('tr', { class: d.p_holm < 0.05 ? 'significant' : '' },
      h('th', { scope: 'row' }, { held_out: 'Held-out', held_out_estimate: 'Held-out, estimated', pooled: 'Pooled' }[d.family] ?? data.title(d.family)), h('td', {}, d.measure),
      h('td.n', {}, d.n),
      h('td.n', { title: `${letter(a)} ${percent(d.baseline)}, ${letter(b)} ${percent(d.run)} on these tasks` }, h('b', {}, signed(d.difference))), h('td.n.soft', {}, `${signed(d.ci95[0])} to ${signed(d.ci95[1])}`),
      h('td.n', {}, shown(d.p)), h('td.n', {}, shown(d.p_holm)), h('td.n.soft', {}, shown(d.p_by_kind)),
      h('td.n', {}, `${d.wins} / ${d.ties} / ${d.losses}`));
    const flips = (name, ids, outcome) => h('p', {}, `${name}: `, ids.length
      ? h('a', { href: address({ family: 'all', run: b.number, outcome }) }, plural(ids.length, 'task')) : 'none');
    return h('div', {},
      h('h3', {}, chip(b), ` ${oneLine(b.label)} against `, chip(a), ` ${oneLine(a.label)}`),
      h('ul.notes', {}, comparison.notes.map(text => h('li', {}, text))),
      scrolled(h('table', {}, h('thead', {}, h('tr', {}, ['family', 'measure'].map(name => h('th', { scope: 'col' }, name)),
        ['n', 'difference', '95 % interval', 'p', 'Holm', 'p by kind', 'won / tied / lost'].map(name =>
          h('th.n', { scope: 'col' }, name)))), h('tbody', {}, comparison.differences.map(d => row(d))))),
      flips(`solved more by ${letter(b)}`, comparison.gained, 'gained'),
      flips(`solved more by ${letter(a)}`, comparison.lost, 'lost'));
  });
  return [found, apart.map(why => h('p.warning', {}, `not compared: ${why}`))];
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
      several && h('td', {}, chip(run)),
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
      trouble: column === 'invalid_turns' ? 'not_valid' : 'format' }) }, (turns ? percent(total(run, listed, column) / turns) : '0') + ' %');
    return [h('td', {}, stack(Object.entries(by).map(([kind, n]) => [kind, n, OUTCOME[kind]]), count)),
      h('td.n', {}, (turns / listed.length).toFixed(1)),
      h('td.n', {}, percent(listed.filter(i => run.column.ended_by[i] === limit).length / listed.length) + ' %'),
      h('td', { class: total(run, listed, 'format_error_turns') >= turns / 2 ? 'n alarming' : 'n' }, share('format_error_turns')), h('td.n', {}, share('invalid_turns'))];
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
