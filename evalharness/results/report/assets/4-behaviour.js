// What the runs do beside scoring: one table, a column a run, each with its difference from the first.

// rows: [figure, family, value, low, high]; a family of '' is all together.
function behaviour(data, runs) {
  const shown = runs.filter(run => run.behaviour.length), several = shown.length > 1;
  const families = [...new Set(shown.flatMap(run => run.behaviour.map(row => row[1])))].sort();
  // Kinds of errors that nobody made are left out.
  const figures = [...new Set(shown.flatMap(run => run.behaviour.filter(row => row[2] || !row[0].startsWith(' ')).map(row => row[0])))];
  const found = new Map(shown.flatMap(run => run.behaviour.map(([figure, family, ...values]) => [`${run.number}\n${figure}\n${family}`, values])));
  const number = value => fixed(value, 1).replace('-', '−'), known = value => value !== null && value !== undefined;
  const cell = (run, figure, family) => {
    const of = one => found.get(`${one.number}\n${figure}\n${family}`) || [];
    const [value, low, high] = of(run), [first, firstLow, firstHigh] = run === shown[0] ? [] : of(shown[0]);
    const limits = known(low) && `${number(low)}–${number(high)}`, apart = low > firstHigh || high < firstLow;
    const difference = known(value) && known(first) && (value >= first ? '+' : '') + number(value - first);
    return h('td.n', { title: several && limits ? `95 % interval ${limits}` : null }, known(value) ? number(value) : '–', ' ',
      h('small', { class: apart ? 'apart' : '' }, several ? difference : limits));
  };
  const box = h('div', {});
  const draw = family => replace(box, scrolled(h('table.behaviour', {},
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, ''), shown.map(run =>
      h('th.n', { scope: 'col' }, several ? [chip(run), run !== shown[0] && ` − ${letter(shown[0])}`] : '95 % interval')))),
    h('tbody', {}, figures.map(figure => h('tr', {}, h('th', { scope: 'row' }, words(figure)), shown.map(run => cell(run, figure, family))))))));
  draw(families[0]);
  return [families.length > 1 && h('p.choice', {}, h('label', {}, 'family ', h('select', { name: 'behaviour-family',
    onchange: event => draw(event.target.value) },
  families.map(family => h('option', { value: family }, family ? data.title(family) : 'all families'))))), box,
  several && h('p.soft.legend', {}, `Small: the difference from ${letter(shown[0])}; bold where the 95 % intervals do not overlap.`)];
}
