// Scores with intervals, floors and ceilings.

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
  const several = runs.length > 1, body = h('tbody', {});
  const whole = names === USUAL ? runs.filter(totalOf) : [];
  whole.forEach((run, i) => {
    const { name, score: held } = totalOf(run), same = i > 0 && totalOf(whole[i - 1]).name === name;
    body.append(h('tr.total', { class: same ? 'total same' : 'total' }, h('th', { scope: 'row' }, same ? '' : capital(name)),
      several && h('td', {}, chip(run)),
      h('td', {}, rateBar('success', held.success_rate, held.success_rate_ci95)),
      h('td', {}, rateBar('progress', held.progress_rate, held.progress_rate_ci95)),
      h('td.n', {}, held.stands_for ? `${held.n}/${held.stands_for}` : held.n), h('td', {}), h('td', {})));
  });
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
  }
  return scrolled(h('table.scores', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'family'),
    several && h('th', { scope: 'col' }, 'run'),
    [names.success, names.progress].map(name => h('th', { scope: 'col' }, name)),
    ['tasks', 'grounding', 'corrected'].map(name => h('th.n', { scope: 'col' }, name)))), body));
}
