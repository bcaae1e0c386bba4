// Two episodes of one task beside each other, turn by turn, with the first turn at which they part.

const plainText = text => (text ?? '').replace(/\s+/g, ' ').trim();

// The number of the first turn whose action or observation differs (thoughts may); null where none does.
function firstDifference(a, b) {
  const turns = Math.max(a.turns.length, b.turns.length);
  if (plainText(a.first_observation) !== plainText(b.first_observation)) return 0;
  for (let i = 0; i < turns; i++) {
    const x = a.turns[i], y = b.turns[i];
    if (!x || !y || plainText(x.action) !== plainText(y.action) || plainText(x.observation) !== plainText(y.observation)) return i + 1;
  }
  return null;
}

class SideBySide {
  constructor(app, values) {
    this.app = app;
    this.values = values;
    this.element = h('div.page.comparison', {});
  }

  side(text, otherwise) {
    const [run, sample] = (text || otherwise).split('.').map(Number), found = this.app.data.runs[run];
    return { run: found, episode: found && found.find(this.values.compare, sample), value: `${run}.${sample}` };
  }

  async start() {
    const id = this.values.compare, a = this.side(this.values.a, '0.0'), b = this.side(this.values.b, this.app.data.runs.length > 1 ? '1.0' : '0.1');
    const sides = [a, b], missing = sides.find(side => side.episode === undefined);
    if (missing) {
      replace(this.element, h('p.warning', {}, `There is no finished episode ${missing.value} of ${id}.`), h('p', {}, h('a', { href: '#' }, 'Overview')));
      return;
    }
    for (const side of sides) {
      side.record = await side.run.trajectory(side.episode);
      side.steps = steps(side.record);
    }
    this.difference = firstDifference(a.record, b.record);
    const task = a.run.task(a.episode), turns = Math.max(a.steps.length, b.steps.length), rows = [];
    for (let number = 1; number <= turns; number++) {
      if (number === this.difference) rows.push(h('div.parting', { id: 'first-difference', tabindex: -1 }, `first difference: turn ${number}`));
      rows.push(h('div', { class: this.difference && number >= this.difference ? 'pair' : 'pair alike' }, sides.map((side, i) => {
        const step = side.steps[number - 1];
        return h('div.half', {}, h('span.who', {}, this.chip(side)),
          step ? turnCard(step, `turn-${i}-${number}`) : h('p.soft', {}, number === side.steps.length + 1 ? `ended: ${ENDS[side.record.ended_by]}` : ''));
      })));
    }
    replace(this.element,
      h('header.top', {}, h('nav', {}, h('a', { href: this.app.back(task.family) }, '‹ ', this.app.data.title(task.family)), h('span.spread', {}),
        h('button', { type: 'button', title: 'previous task both have: [', onclick: () => this.beside(-1) }, '‹ previous'),
        h('button', { type: 'button', title: 'next task both have: ]', onclick: () => this.beside(1) }, 'next ›')),
      h('h1', {}, task.id), h('div.part', {}, h('span.label', {}, 'Goal'), longText(a.record.goal, 'div.prose.goal')),
      h('p', {}, this.difference === null ? 'No difference: the same actions and observations throughout.'
        : this.difference === 0 ? 'The first observations differ already.'
          : this.difference === 1 ? 'They differ from the first turn on.'
            : [`The same until turn ${this.difference}. `, h('button', { type: 'button', onclick: () => this.jump() }, 'first difference')])),
      h('div.pair.heads', {}, sides.map((side, i) => this.head(side, i))),
      rows);
    if (this.difference > 1) this.jump();
  }

  head(side, i) {
    const outcome = side.run.outcome(side.episode), choices = this.app.data.runs.flatMap(run =>
      run.samplesOf(this.values.compare).map(episode => [`${run.number}.${run.column.sample[episode]}`,
        `${letter(run)} ${run.label}` + (run.samples > 1 ? ` #${run.column.sample[episode]}` : '')]));
    return h('div.half', {}, h('label', {}, this.chip(side),
      h('select', { 'aria-label': i ? 'right episode' : 'left episode', onchange: event => { location.hash = address({ ...this.values, [i ? 'b' : 'a']: event.target.value }); } },
        choices.map(([value, label]) => h('option', { value, selected: value === side.value }, oneLine(label))))),
    h('p', {}, mark(outcome), ` progress ${percent(side.record.progress, 0)} % · ${plural(side.steps.length, 'turn')} · `,
      h('a', { href: side.run.address(side.episode) }, 'open')));
  }

  // The run's own letter, with the sample where that is what tells the sides apart.
  chip(side) {
    return chip(side.run, side.run.samples > 1 ? ` #${side.run.column.sample[side.episode]}` : '');
  }

  jump() {
    const parting = document.getElementById('first-difference');
    if (parting) {
      parting.scrollIntoView({ block: 'center' });
      parting.focus({ preventScroll: true });
    }
  }

  beside(step) {
    const { data } = this.app, a = this.side(this.values.a, '0.0'), b = this.side(this.values.b, '1.0');
    const both = data.index.tasks.filter(task => a.run.samplesOf(task.id).length && b.run.samplesOf(task.id).length);
    const to = both[both.findIndex(task => task.id === this.values.compare) + step];
    if (to) location.hash = address({ ...this.values, compare: to.id });
  }

  key(event) {
    if (event.key === 'Escape') location.hash = address({ task: this.values.compare, run: this.side(this.values.a, '0.0').run?.number || undefined });
    else if (event.key === ']') this.beside(1);
    else if (event.key === '[') this.beside(-1);
    else if (event.key === 'd') this.jump();
    else return false;
    return true;
  }
}
