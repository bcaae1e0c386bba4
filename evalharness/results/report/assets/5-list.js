// The list of episodes (or of tasks, where each was sampled more than once): filters, search, and only the rows in view.

const SORTS = {
  task: (run, a, b) => run.column.task[a] - run.column.task[b] || run.column.sample[a] - run.column.sample[b],
  progress: (run, a, b) => run.column.progress[a] - run.column.progress[b] || run.column.success[a] - run.column.success[b],
  turns: (run, a, b) => run.column.turns[a] - run.column.turns[b],
  errors: (run, a, b) => errors(run, a) - errors(run, b),
};
const errors = (run, i) => run.column.format_error_turns[i] + run.column.invalid_turns[i];

// Rows of one height inside a scrolling box; drawn are those in view and a few around.
class Rows {
  constructor(draw, open) {
    this.draw = draw;
    this.open = open;
    this.size = 0;
    this.selected = 0;
    this.window = h('div.window', {});
    this.space = h('div.space', {}, this.window);
    this.element = h('div.rows', { tabindex: 0, role: 'grid', 'aria-label': 'episodes' }, this.space);
    this.element.addEventListener('scroll', () => this.paint());
    this.element.addEventListener('click', event => {
      const row = event.target.closest('.row');
      if (!row || event.target.closest('a')) return;
      this.select(Number(row.dataset.position), false);
      this.open(this.selected);
    });
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  get height() {
    return matchMedia('(max-width: 44rem)').matches ? 62 : 38;
  }

  show(size, selected = 0) {
    this.size = size;
    this.selected = Math.min(selected, Math.max(0, size - 1));
    this.element.setAttribute('aria-rowcount', size);
    this.paint();
    this.reveal();
  }

  // `all`: for a printer.
  paint(all = false) {
    const height = this.height, view = this.element.clientHeight || 600;
    const first = all ? 0 : Math.max(0, Math.floor(this.element.scrollTop / height) - 8);
    const last = all ? this.size : Math.min(this.size, first + Math.ceil(view / height) + 16);
    this.space.style.height = `${this.size * height}px`;
    this.window.style.transform = `translateY(${first * height}px)`;
    const rows = [];
    for (let i = first; i < last; i++) {
      const row = this.draw(i);
      row.id = `row-${i}`;
      row.dataset.position = i;
      row.setAttribute('role', 'row');
      row.setAttribute('aria-rowindex', i + 1);
      row.setAttribute('aria-selected', i === this.selected);
      row.style.height = `${height}px`;
      for (const cell of row.children) if (!cell.matches('a')) cell.setAttribute('role', 'gridcell');
      rows.push(row);
    }
    replace(this.window, rows);
    this.element.setAttribute('aria-activedescendant', this.size ? `row-${this.selected}` : '');
  }

  select(position, reveal = true) {
    this.selected = Math.max(0, Math.min(this.size - 1, position));
    this.paint();
    if (reveal) this.reveal();
  }

  reveal() {
    const height = this.height, top = this.selected * height, box = this.element;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const to = { ArrowDown: this.selected + 1, j: this.selected + 1, ArrowUp: this.selected - 1, k: this.selected - 1,
      PageDown: this.selected + page, PageUp: this.selected - page, Home: 0, End: this.size - 1 }[event.key];
    if (event.key === 'Enter' && this.size) this.open(this.selected);
    else if (to === undefined) return false;
    else this.select(to);
    return true;
  }
}

// What the filters leave of a run, in order; `values` are those of the page's address.
function filtered(data, run, values, found) {
  const index = data.index, needle = (values.q || '').toLowerCase();
  const trouble = values.trouble && index.troubles.indexOf(values.trouble);
  const format = index.troubles.map((name, bit) => bit).slice(0, index.troubles.indexOf('not_valid'));
  const other = comparedWith(data, run);
  const result = [];
  for (let i = 0; i < run.size; i++) {
    const task = run.task(i);
    if (values.family !== 'all' && task.family !== values.family) continue;
    if (values.level && task.difficulty !== values.level) continue;
    if (values.kind && task.kind !== values.kind) continue;
    if (values.trouble === 'format') {
      if (!format.some(bit => run.has(i, bit))) continue;
    } else if (values.trouble && !run.has(i, trouble)) continue;
    if (values.outcome && !isOutcome(values.outcome, run, i, other)) continue;
    if (needle && !(found ? found.has(i) : matches(task, needle))) continue;
    result.push(i);
  }
  const sort = SORTS[values.sort] || SORTS.task, down = values.down ? -1 : 1;
  return values.sort || values.down ? result.sort((a, b) => down * sort(run, a, b) || SORTS.task(run, a, b)) : result;
}

// The run that its differences are from; of a baseline the first that was compared with it.
function comparedWith(data, run) {
  const own = data.index.comparisons.find(one => one.numbers[1] === run.number);
  const numbers = own ? own.numbers : data.index.comparisons.find(one => one.numbers[0] === run.number)?.numbers;
  return numbers && data.runs[numbers[own ? 0 : 1]];
}

const matches = (task, needle) => `${task.id} ${task.kind} ${task.goal}`.toLowerCase().includes(needle);

function isOutcome(outcome, run, i, other) {
  if (outcome === 'success' || outcome === 'partial' || outcome === 'none') return run.outcome(i) === outcome;
  if (outcome === 'unsolved') return !run.column.success[i];
  const mine = run.mean(run.column.task[i], 'success'), theirs = other && other.mean(run.column.task[i], 'success');
  if (theirs === null || theirs === undefined) return false;
  return outcome === 'gained' ? mine > theirs + 1e-9 : mine < theirs - 1e-9;
}

class List {
  constructor(app, values) {
    this.app = app;
    this.values = { ...values };
    this.run = app.run(values);
    this.byTask = values.by === 'task' && this.run.samples > 1;
    this.rows = new Rows(i => this.byTask ? this.drawTask(i) : this.draw(i), i => this.open(i));
    this.found = null;
    this.element = h('div.list', {}, this.controls(), this.head(), this.rows.element);
  }

  start() {
    this.refresh(this.app.lastEpisode);
    if (this.values.q && this.values.turns) this.searchTurns();
    this.rows.element.focus({ preventScroll: true });
  }

  controls() {
    const { data } = this.app, { index } = data, run = this.run;
    const family = this.values.family;
    const kinds = [...new Set(index.tasks.filter(task => family === 'all' || task.family === family).map(task => task.kind))].sort();
    const seen = index.troubles.filter((name, bit) => { for (let i = 0; i < run.size; i++) if (run.has(i, bit)) return true; return false; });
    const select = (name, options) => h('select', { name, 'aria-label': name, class: this.values[name] ? 'set' : '',
      onchange: event => this.change({ [name]: event.target.value }) },
    options.map(([value, text]) => h('option', { value, selected: (this.values[name] || '') === value }, text)));
    this.search = h('input', { type: 'search', name: 'q', placeholder: 'goal, kind, task id', value: this.values.q || '',
      'aria-label': 'search', oninput: () => this.change({ q: this.search.value, turns: '' }) });
    this.inTurns = h('button', { type: 'button', onclick: () => { this.change({ turns: '1' }); this.searchTurns(); } }, 'search the turns too');
    this.count = h('span.count', { role: 'status' });
    return h('form.controls', { onsubmit: event => { event.preventDefault(); this.rows.element.focus(); } },
      h('label.search', {}, this.search), this.inTurns,
      data.runs.length > 1 && select('run', data.runs.map(one => [one.number ? String(one.number) : '', `${letter(one)} ${oneLine(one.label)}`])),
      select('outcome', [['', 'any outcome'], ['success', '✓ success'], ['unsolved', 'no success'], ['partial', '◐ some progress'],
        ['none', '○ no progress'], ...(data.runs.length > 1 ? [['gained', 'solved more'], ['lost', 'solved less']] : [])]),
      select('level', [['', 'easy and hard'], ['easy', 'easy'], ['hard', 'hard']]),
      kinds.length > 1 && select('kind', [['', 'all kinds'], ...kinds.map(kind => [kind, oneLine(kind)])]),
      select('trouble', [['', 'any errors or none'], ['format', 'any format error'], ...seen.map(name => [name, words(name)])]),
      run.samples > 1 && select('by', [['', 'list episodes'], ['task', 'list tasks']]),
      this.count);
  }

  head() {
    const column = (name, label) => {
      const on = (this.values.sort || 'task') === name;
      return h(`span.${name}`, { role: 'columnheader', 'aria-sort': on ? (this.values.down ? 'descending' : 'ascending') : null },
        h('button', { type: 'button', onclick: () => this.change({ sort: name === 'task' ? '' : name,
          down: on ? (this.values.down ? '' : '1') : (name === 'task' ? '' : '1') }) }, label));
    };
    const plain = (name, label) => h(`span.${name}`, { role: 'columnheader' }, label);
    return this.byTask
      ? h('div.row.head', { role: 'row' }, plain('outcome', ''), plain('task', 'task'), plain('goal', 'goal'), plain('strip-cell', 'samples'), plain('progress', 'mean'))
      : h('div.row.head', { role: 'row' }, plain('outcome', ''), column('task', 'task'), plain('goal', 'goal'), plain('kind', 'kind'),
        column('progress', 'progress'), column('turns', 'turns'), column('errors', 'errors'));
  }

  draw(position) {
    const { run } = this, i = this.shown[position], task = run.task(i), outcome = run.outcome(i);
    const bad = errors(run, i);
    return h('div.row', {}, mark(outcome),
      h('a.task', { href: run.address(i), tabindex: -1 }, task.id, run.samples > 1 && h('small', {}, ` #${run.column.sample[i]}`)),
      h('span.goal', {}, oneLine(task.goal)), h('span.kind', {}, oneLine(task.kind), task.difficulty === 'hard' && h('small', {}, ' hard')),
      progressBar(run.column.progress[i], outcome), h('span.turns', {}, run.column.turns[i]),
      h('span.errors', { class: bad ? 'errors some' : 'errors' }, bad || '·'));
  }

  drawTask(position) {
    const { run } = this, i = this.shown[position], task = run.task(i), number = run.column.task[i];
    const best = run.mean(number, 'success') > 0 ? 'success' : run.mean(number, 'progress') > 0 ? 'partial' : 'none';
    return h('div.row.by-task', {}, mark(best), h('a.task', { href: run.address(i), tabindex: -1 }, task.id),
      h('span.goal', {}, oneLine(task.goal)), h('span.strip-cell', {}, strip(run, task.id)),
      progressBar(run.mean(number, 'progress'), best));
  }

  refresh(selected) {
    let shown = filtered(this.app.data, this.run, this.values, this.found);
    if (this.byTask) {
      const first = new Map();
      for (const i of shown) if (!first.has(this.run.column.task[i])) first.set(this.run.column.task[i], i);
      shown = [...first.values()];
    }
    this.shown = shown;
    this.app.shown = { run: this.run.number, episodes: shown, address: location.hash };
    const all = this.total(), noun = this.byTask ? 'task' : 'episode';
    replace(this.count, shown.length === all ? plural(all, noun) : `${count(shown.length)} of ${plural(all, noun)}`);
    this.inTurns.hidden = !this.values.q || Boolean(this.values.turns);
    this.rows.show(shown.length, Math.max(0, shown.indexOf(selected)));
  }

  // Of the family, before any filter.
  total() {
    const all = filtered(this.app.data, this.run, { family: this.values.family });
    return this.byTask ? new Set(all.map(i => this.run.column.task[i])).size : all.length;
  }

  // A change that alters the controls themselves draws the page anew; a search only the rows.
  change(values) {
    Object.assign(this.values, values);
    history.replaceState(null, '', address(this.values));
    this.found = null;
    if ('q' in values) this.refresh();
    else if (!('turns' in values)) this.app.route();
  }

  // Through every trajectory of the run: the goal, what was thought, done, seen, and the raw replies.
  async searchTurns() {
    const needle = this.values.q.toLowerCase(), run = this.run, found = new Set();
    this.inTurns.hidden = true;
    const blocks = new Map();
    for (let i = 0; i < run.size; i++) {
      if (!blocks.has(run.column.block[i])) blocks.set(run.column.block[i], []);
      blocks.get(run.column.block[i]).push(i);
    }
    let done = 0;
    for (const [block, episodes] of blocks) {
      const records = await this.app.data.source.get(`block-${run.number}-${block}`);
      if (this.values.q.toLowerCase() !== needle || !this.element.isConnected) return;
      for (const i of episodes) {
        const record = records[run.column.position[i]];
        const text = [record.goal, record.first_observation, ...record.turns.flatMap(turn => [turn.reasoning, turn.thought, turn.action, turn.observation, turn.reply])];
        if (matches(run.task(i), needle) || text.some(part => part && part.toLowerCase().includes(needle))) found.add(i);
      }
      replace(this.count, `searching: ${Math.round(100 * ++done / blocks.size)} %`);
    }
    this.found = found;
    this.refresh();
  }

  open(position) {
    const episode = this.shown[position];
    this.app.lastEpisode = episode;
    location.hash = this.run.address(episode);
  }

  key(event) {
    if (event.key === '/') this.search.focus();
    else if (event.key === 'Escape') location.hash = '#';
    else return this.rows.key(event);
    return true;
  }
}
