// Scores with intervals, floors and ceilings, and a published row beside them.

// Progress alone, chance-corrected, with an interval that holds the floor's own error. The rest where one points at it.
function corrected(reference) {
  const said = [];
  for (const measure of ['success_rate', 'progress_rate']) {
    const limits = reference.chance_corrected_ci95?.[measure];
    said.push(`${words(measure)}: corrected ${minus(reference.chance_corrected[measure])}`
      // Below chance the limits are negative, and a dash between them would read as another minus.
      + (limits ? `, 95 % interval ${limits.map(minus).join(' to ')}` : '')
      + `, floor ${percent(reference.floor[measure])}, ceiling ${percent(reference.ceiling[measure])}`);
  }
  return h('span.corrected', { title: said.join('\n'), 'aria-label': said.join('; ') }, minus(reference.chance_corrected.progress_rate));
}

const minus = value => percent(value).replace('-', '−');

const USUAL = { success: 'success', progress: 'progress' };

// Families whose scores have names of their own stand in tables of their own.
function scores(data, runs) {
  const names = family => runs.map(run => run.summary.scores?.[family]).find(Boolean);
  const usual = data.families.filter(family => !names(family)), apart = data.families.filter(names);
  return [usual.length && scoreTable(data, runs, usual, USUAL),
    ...apart.map(family => scoreTable(data, runs, [family], names(family)))].filter(Boolean);
}

// A row a kind of task of each family: success, and the number of tasks, of each run.
function kindTable(data, runs) {
  const of = (run, family) => run.summary.families[family]?.by_kind || {};
  const body = h('tbody', {});
  for (const family of data.families) {
    const kinds = [...new Set(runs.flatMap(run => Object.keys(of(run, family))))].sort();
    kinds.forEach((kind, i) => body.append(h('tr', { class: i ? 'same' : '' }, h('th', { scope: 'row' }, i ? '' : data.title(family)),
      h('td', {}, oneLine(kind)), runs.map(run => {
        const score = of(run, family)[kind];
        return h('td.n', {}, score ? `${percent(score.success_rate)} (${score.n})` : '–');
      }))));
  }
  return body.children.length > 0 && h('details.folded.kinds', {}, h('summary', {}, 'success % by kind of task (tasks)'),
    scrolled(h('table', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'family'), h('th', { scope: 'col' }, 'kind'),
      runs.map(run => h('th.n', { scope: 'col' }, runs.length > 1 ? chip(run) : 'success')))), body)));
}

function scoreTable(data, runs, families, names) {
  const several = runs.length > 1, rows = names === USUAL ? publishedRows(data) : [], box = h('div', {});
  const own = rows.findIndex(row => runs.some(run => run.name.toLowerCase().includes(row.name.toLowerCase())));
  const draw = beside => {
    const body = h('tbody', {});
    // Labels of ours and changed tasks are another scale.
    const scaled = families => runs.every(run => families.every(family => !/ours|changed/.test(run.summary.labels[family] || '')));
    const published = (family, of) => beside && scaled(of) && body.append(h('tr.same.published', {}, h('th', { scope: 'row' }, oneLine(beside.name), family === 'held-out' && ', held-out'), several && h('td', {}),
      ['success', 'progress'].map(measure => h('td', {}, rateBar('published', ...beside.of(family, measure)))), h('td', {}), h('td', {}), h('td', {})));
    // One run has its whole score above.
    const whole = names === USUAL && several ? runs.filter(totalOf) : [];
    whole.forEach((run, i) => {
      const { name, score: held } = totalOf(run), same = i > 0 && totalOf(whole[i - 1]).name === name;
      body.append(h('tr.total', { class: same ? 'total same' : 'total' }, h('th', { scope: 'row' }, same ? '' : capital(name)),
        h('td', {}, chip(run)),
        h('td', {}, rateBar('success', held.success_rate, held.success_rate_ci95)),
        h('td', {}, rateBar('progress', held.progress_rate, held.progress_rate_ci95)),
        h('td.n', {}, held.stands_for ? `${held.n}/${held.stands_for}` : held.n), h('td', {}), h('td', {})));
    });
    if (!several || whole.some(run => totalOf(run).name === 'held-out')) published('held-out', families);
    for (const family of families) {
      runs.filter(run => run.summary.families[family]).forEach((run, i) => {
        const entry = run.summary.families[family], reference = entry.reference;
        const rate = (measure, bar) => rateBar(bar, entry[measure], entry[`${measure}_ci95`],
          reference?.floor[measure], reference?.ceiling[measure]);
        body.append(h('tr', { class: i ? 'same' : '' },
          h('th', { scope: 'row' }, i ? '' : h('a', { href: address({ family }) }, data.title(family))),
          several && h('td', {}, chip(run)),
          h('td', {}, rate('success_rate', 'success')), h('td', {}, rate('progress_rate', 'progress')),
          h('td.n', {}, (entry.n === entry.expected ? `${entry.n}` : `${entry.n}/${entry.expected}`)
            + (run.summary.samples > 1 ? ` × ${run.summary.samples}` : '')),
          h('td.n', {}, percent(entry.grounding_accuracy)),
          h('td.n', {}, reference ? corrected(reference) : '–')));
      });
      published(data.title(family), [family]);
    }
    replace(box, scrolled(h('table.scores', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'family'),
      several && h('th', { scope: 'col' }, 'run'),
      [names.success, names.progress].map(name => h('th', { scope: 'col' }, name)),
      ['tasks', 'grounding', 'corrected'].map(name => h('th.n', { scope: 'col' }, name)))), body)));
  };
  draw(rows[Math.max(0, own)]);
  return [rows.length > 0 && h('p', {}, h('label', {}, 'published row beside: ', h('select', { name: 'published',
    onchange: event => draw(rows[event.target.value]) }, h('option', { value: '' }, 'none'), rows.map((row, i) =>
    h('option', { value: i, selected: i === Math.max(0, own) }, oneLine(`${row.series}: ${row.name}`))))), ' ',
  h('a', { href: address({ paper: 'table1' }) }, 'all of them, and how they compare')), box];
}

// The rows of the paper's main table, where the runs are of its suite and in its words.
function publishedRows(data) {
  const table = data.index.exhibits.find(each => each.name === 'table1')?.tables[0];
  const alike = data.runs.every(run => run.suite === data.index.published_suite && !run.perturbation);
  return (table && alike ? table.rows.filter(row => !row.ours) : []).map(row => ({ name: row.name, series: row.group,
    of: (family, measure) => {
      const [text] = row.cells[table.columns.findIndex(([group, name]) => group === family && name === measure)] || ['-'];
      return [text === '-' ? null : parseFloat(text) / 100];
    } }));
}
