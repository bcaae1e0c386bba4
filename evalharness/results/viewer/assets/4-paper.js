// The paper's tables and figures with the rows of these runs in them, as `evalharness paper` prints them.

function paper(app, wanted) {
  const all = app.data.index.exhibits, filled = all.filter(each => each.tables.length);
  const rest = all.filter(each => !each.tables.length);
  const shown = filled.find(each => each.name === wanted) || filled[0];
  return h('div.page', {},
    h('nav.exhibits', { 'aria-label': 'exhibits' }, filled.map(each =>
      h('a', { href: address({ paper: each.name }), 'aria-current': each === shown ? 'page' : null }, each.name))),
    shown && section(shown.title, h('p.soft', {}, shown.shows), shown.tables.map((table, i) => [
      i > 0 && h('h3', {}, table.title), exhibitTable(table),
      h('ul.notes', {}, table.notes.map(text => h('li', {}, text)))]),
    h('ul.notes', {}, shown.missing.map(text => h('li.warning', {}, `missing: ${text}`)))),
    rest.length > 0 && section('Not filled by these runs', h('dl.exhibits', {}, rest.map(each => [
      h('dt', {}, each.title), h('dd', {}, each.shows, h('br'), h('code', {}, each.missing.join('; ') || each.command))]))));
}

function exhibitTable(table) {
  const spans = [];
  for (const [group] of table.columns) {
    if (spans.length && spans.at(-1)[0] === group) spans.at(-1)[1]++;
    else spans.push([group, 1]);
  }
  const beside = table.rows.some(row => !row.ours); // ours stand out where there are others
  const grouped = spans.some(([group]) => group), heading = name => h('th.n', { scope: 'col' }, name);
  let before = '';
  const rows = table.rows.flatMap(row => {
    const first = row.group && row.group !== before;
    before = row.group;
    return [first && h('tr', {}, h('th.soft', { scope: 'rowgroup', colspan: table.columns.length + 1 }, oneLine(row.group))),
      h('tr', { class: row.ours && beside ? 'ours' : '' }, h('th', { scope: 'row' }, oneLine(row.name)),
        row.cells.map(([text, interval, heldIn]) => h('td.n', {}, heldIn ? [h('u', {}, text), '*'] : text,
          interval && h('small', {}, interval))))];
  });
  return scrolled(h('table.exhibit', {}, h('thead', {},
    grouped && h('tr', {}, h('td', {}), spans.map(([group, n]) => h('th.n', { scope: 'colgroup', colspan: n }, group))),
    h('tr', {}, h('th', { scope: 'col' }, table.first), table.columns.map(([, name]) => heading(name)))),
  h('tbody', {}, rows)));
}
