// What the runs do beside scoring: one table, a column a run; the family is a switch.

// rows: [figure, family, value, low, high]; a family of '' is all together.
function behaviour(data, runs) {
  const shown = runs.filter(run => run.behaviour.length), several = runs.length > 1;
  const families = [...new Set(shown.flatMap(run => run.behaviour.map(row => row[1])))].sort();
  const figures = [...new Set(shown.flatMap(run => run.behaviour.map(row => row[0])))];
  const found = new Map(shown.flatMap(run => run.behaviour.map(([figure, family, ...values]) => [`${run.number}\n${figure}\n${family}`, values])));
  const number = value => fixed(value, 1), box = h('div', {});
  const draw = family => replace(box, scrolled(h('table.behaviour', {},
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, ''), shown.map(run =>
      h('th.n', { scope: 'col' }, several ? chip(run) : oneLine(run.label))))),
    h('tbody', {}, figures.map(figure => h('tr', {}, h('th', { scope: 'row' }, words(figure)), shown.map(run => {
      const [value, low, high] = found.get(`${run.number}\n${figure}\n${family}`) || [];
      return h('td.n', {}, value === undefined || value === null ? '–' : number(value),
        h('small', {}, low === null || low === undefined ? '' : `${number(low)}–${number(high)}`));
    })))))));
  draw(families[0]);
  return [families.length > 1 && h('p', {}, h('label', {}, 'family ', h('select', { name: 'behaviour-family',
    onchange: event => draw(event.target.value) },
  families.map(family => h('option', { value: family }, family ? data.title(family) : 'all families'))))), box];
}
