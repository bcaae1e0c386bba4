// Every task of every run at a glance: a column of cells a task, a cell a run, in the order of the runs' letters.

const STATE = { solved: 'solved', 'in-part': 'in part', not: 'not solved', absent: 'not played' };

function stateOf(run, task) {
  const success = run.mean(task, 'success');
  if (success === null) return 'absent';
  if (success > 1 - 1e-9) return 'solved';
  return run.mean(task, 'progress') > 0 ? 'in-part' : 'not';
}

function gridCell(run, task) {
  const state = stateOf(run, task), episodes = run.byTask.get(task) || [];
  // Height says it without colour, too: full, as far as it got, empty.
  const fill = state === 'solved' ? 1 : state === 'in-part' ? Math.max(0.25, Math.min(0.75, run.mean(task, 'progress'))) : 0;
  const said = episodes.length > 1 ? `${episodes.filter(i => run.column.success[i]).length} of ${episodes.length} solved` : STATE[state];
  return [h(`span.square.${state}`, {}, h('span.fill', { 'height%': fill })), said];
}

function taskGrid(data, runs) {
  const several = runs.length > 1;
  return data.families.map(family => {
    const tasks = data.index.tasks.map((task, number) => number).filter(number => data.index.tasks[number].family === family)
      .sort((a, b) => (data.index.tasks[a].id < data.index.tasks[b].id ? -1 : 1));
    if (!tasks.length) return null;
    const mine = runs.filter(run => run.summary.families[family]);
    const solved = mine.map(run => [several && chip(run), `${tasks.filter(task => stateOf(run, task) === 'solved').length} of ${tasks.filter(task => run.byTask.has(task)).length} `]);
    const often = mine.some(run => tasks.some(task => (run.byTask.get(task) || []).length > 1));
    return h('div.grid', {}, h('p', {}, h('a', { href: address({ family }) }, data.title(family)), ' ',
      h('span.soft', {}, often ? 'solved at every attempt: ' : 'solved: ', solved)),
      h('div.columns-of-tasks', {}, tasks.map(task => {
        const id = data.index.tasks[task].id, cells = mine.map(run => [run, ...gridCell(run, task)]);
        const title = `${id}: ` + cells.map(([run, , said]) => (several ? `${letter(run)} ${said}` : said)).join(', ');
        const played = mine.filter(run => run.byTask.has(task));
        const to = played.length > 1 ? address({ compare: id, a: `${played[0].number}.0`, b: `${played[1].number}.0` })
          : played.length ? played[0].address(played[0].byTask.get(task)[0]) : null;
        return h(to ? 'a.stack-of-runs' : 'span.stack-of-runs', { href: to, title, 'aria-label': title }, cells.map(([, cell]) => cell));
      })));
  });
}

const gridLegend = runs => h('p.soft.legend', {},
  Object.entries(STATE).map(([state, words]) => [h(`span.square.${state}`, {}, h('span.fill', { 'height%': { solved: 1, 'in-part': 0.5 }[state] || 0 })), ` ${words} `]),
  runs.length > 1 && ['· from above: ', runs.map(run => chip(run))]);
