// One drawn turn at a time: a person decides, the server has it on the disk before the page says so.

const KEYS = [
  ['r', 'right'], ['w', 'wrong'], ['1 … 5', 'wrong, of this kind'], ['n', 'note'], ['u', 'take the label back'],
  ['Enter', 'next undecided turn'], ['j k → ←', 'next and previous turn'], ['t', 'light, dark, as the system'], ['?', 'these keys'],
];
const THEMES = ['', 'light', 'dark'];
const KIND_MEANING = {
  format: 'no action could be read',
  parameter: 'names a thing that is not there or does not fit',
  place: 'not possible from here, or in this state',
  logic: 'possible, but changes or undoes nothing useful',
  plan: 'carried out, does not serve the goal',
};
const NOTE_PAUSE = 300;

class Labelling {
  constructor(data) {
    Object.assign(this, data);
    this.notes = new Map();
    this.saving = Promise.resolve();
    this.bar = document.getElementById('bar');
    this.main = document.getElementById('main');
    this.panel = h('footer.panel', { 'aria-label': 'label' });
    this.help = h('dialog', { 'aria-label': 'keys' }, h('h2', {}, 'Keys'), h('dl', {}, KEYS.map(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])),
      h('button', { type: 'button', onclick: () => this.help.close() }, 'close'));
    document.getElementById('app').append(this.panel);
    document.body.append(this.help);
    this.status = h('span.status', { role: 'status' });
    this.setTheme(this.stored());
    addEventListener('keydown', event => this.key(event));
    addEventListener('hashchange', () => this.show(Number(location.hash.slice(1)) - 1));
  }

  get turn() { return this.turns[this.at]; }

  decided() { return this.turns.filter(turn => turn.label).length; }

  undecided(from) {
    for (let step = 1; step <= this.turns.length; step++) {
      const at = (from + step) % this.turns.length;
      if (!this.turns[at].label) return at;
    }
    return null;
  }

  async show(at) {
    this.keepNote();
    if (!(at >= 0 && at < this.turns.length)) at = 0;
    this.at = at;
    history.replaceState(null, '', `#${at + 1}`);
    const record = await fetch(`data/turn-${at}`).then(answer => answer.json());
    if (this.at !== at) return;
    replace(this.main, this.view(record));
    this.drawBar();
    this.drawPanel();
    if (record.turns.length === 1) scrollTo(0, 0);
    else this.main.querySelector('.current').scrollIntoView({ block: matchMedia('(max-width: 44rem)').matches ? 'start' : 'center' });
    document.body.dataset.ready = String(at + 1);
  }

  view(record) {
    const part = (kind, label, text, tag) => h(`div.part.${kind}`, {}, h('span.label', {}, label), longText(text, tag));
    const card = (turn, current) => h('article', { class: current ? 'turn current' : 'turn earlier', 'data-turn': turn.turn },
      h('header', {}, h('span.turn-number', {}, `Turn ${turn.turn}`), current && h('b.ask', {}, 'right or wrong?')),
      turn.thought && turn.action !== null && part('thought', 'Thought', turn.thought),
      turn.action === null ? part('action', 'Reply', turn.reply || '(empty)') : part('action', 'Action', turn.action, 'code'),
      part('observation', 'Observation', turn.observation));
    const last = record.turns.length - 1;
    return h('div.page.labelling', {},
      h('h1', {}, this.titles[record.family] || record.family, h('small', {}, ` ${record.task_id}${record.sample ? ` #${record.sample}` : ''}`)),
      h('section.opening', {}, part('goal-part', 'Goal', record.goal, 'div.prose.goal'),
        record.left_out > 0 && h('p.soft.left-out', {}, `${plural(record.left_out, 'earlier turn')} left out`),
        part('observation', record.left_out ? 'Before' : 'Start', record.before)),
      record.turns.map((turn, i) => card(turn, i === last)));
  }

  drawBar() {
    const done = this.decided(), all = this.turns.length;
    const track = h('span.done-track', { 'aria-hidden': 'true' }, h('span.done-fill', { 'width%': done / all }));
    replace(this.bar, h('b.who', {}, oneLine(this.rater)), h('span.soft.run-name', {}, oneLine(this.run)), h('span.spread', {}), this.status, track,
      h('span.count', {}, `${done} of ${all}`),
      h('button', { type: 'button', 'aria-label': 'theme', title: 'light or dark: t', onclick: () => this.nextTheme() }, '◑'),
      h('button', { type: 'button', 'aria-label': 'keys', title: 'keys: ?', onclick: () => this.help.showModal() }, '?'));
  }

  drawPanel() {
    const { label } = this.turn, wrong = Boolean(label && label.wrong);
    const choice = (name, text, key, pressed, act) => h('button', { type: 'button', class: `choice ${name}`, 'aria-pressed': String(pressed), onclick: act },
      h('kbd', {}, key), ` ${text}`);
    this.note = h('input', { type: 'text', 'aria-label': 'note', placeholder: 'note (n)', maxlength: 2000, value: this.noteOf(this.at),
      oninput: () => this.noteChanged(), onchange: () => this.keepNote() });
    this.panel.classList.toggle('is-wrong', wrong);
    replace(this.panel, h('div.inner', {},
      h('div.verdicts', {}, choice('right', 'right', 'r', Boolean(label && !label.wrong), () => this.decide(false)),
        choice('wrong', 'wrong', 'w', wrong, () => this.decide(true)), this.note),
      h('div.kinds', {}, this.kinds.map((kind, i) => h('button', { type: 'button', class: 'choice kind', title: KIND_MEANING[kind],
        'aria-pressed': String(wrong && label.kind === kind), onclick: () => this.decide(true, kind) }, h('kbd', {}, i + 1), ` ${kind}`))),
      h('div.after', {}, label ? this.judged() : h('p.soft', {}, 'What a judge said is shown once you have decided.'),
        h('span.steps', {}, h('button', { type: 'button', 'aria-label': 'previous turn', onclick: () => this.show(this.at - 1) }, '‹'),
          h('span.soft', {}, `${this.at + 1} / ${this.turns.length}`),
          h('button', { type: 'button', 'aria-label': 'next turn', onclick: () => this.step(1) }, '›'),
          h('button.next', { type: 'button', onclick: () => this.next() }, 'next')))));
  }

  judged() {
    const { judges, label } = this.turn;
    if (!judges.length) return h('p.soft', {}, 'No judge has judged this turn.');
    return h('div.judges', {}, judges.map(judge => h('p', {}, h('span.label', {}, oneLine(judge.name)), ' ',
      h('b', { class: judge.wrong === null ? 'none' : judge.wrong ? 'wrong' : 'right' }, judge.wrong === null ? 'no verdict' : judge.wrong ? 'wrong' : 'right'),
      judge.kind && ` ${judge.kind}`, judge.wrong !== null && judge.wrong !== label.wrong && h('span.differs', {}, ' differs'),
      judge.note && h('span.soft', { dir: 'auto' }, ` ${oneLine(judge.note)}`))));
  }

  noteOf(at) { return this.notes.get(at) ?? this.turns[at].label?.note ?? ''; }

  noteChanged() {
    this.notes.set(this.at, this.note.value);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.keepNote(), NOTE_PAUSE);
  }

  // A note of a decided turn is saved by itself; one that comes first waits for the decision.
  keepNote() {
    clearTimeout(this.pause);
    if (this.at === undefined) return;
    const { label } = this.turn, note = this.notes.get(this.at);
    if (label && note !== undefined && note !== label.note) this.save(this.at, { ...label, note });
  }

  decide(wrong, kind) {
    const { label } = this.turn, kept = label && label.wrong === wrong ? label.kind : null;
    return this.save(this.at, { wrong, kind: kind ?? kept, note: this.noteOf(this.at) });
  }

  takeBack() { if (this.turn.label) return this.save(this.at, { wrong: null, kind: null, note: '' }); }

  // One after the other, so that the last decision is the last line in the file.
  save(at, label) {
    this.say('saving …');
    this.saving = this.saving.then(async () => {
      try {
        const answer = await fetch(`data/turn-${at}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(label) });
        if (!answer.ok) throw new Error(await answer.text());
        Object.assign(this.turns[at], await answer.json());
        if (this.notes.get(at) === label.note || label.wrong === null) this.notes.delete(at);
        this.say(label.wrong === null ? 'taken back' : 'saved');
        this.drawBar();
        if (at === this.at && document.activeElement !== this.note) this.drawPanel();
      } catch (error) {
        this.say(`not saved: ${oneLine(error.message)}`, true);
      }
    });
    return this.saving;
  }

  say(text, bad = false) {
    replace(this.status, text);
    this.status.classList.toggle('bad', bad);
  }

  step(by) { this.show(Math.min(Math.max(this.at + by, 0), this.turns.length - 1)); }

  async next() {
    await this.saving;
    const at = this.undecided(this.at);
    if (at === null) this.say('all turns are decided');
    else this.show(at);
  }

  stored() { try { return localStorage.getItem('evalharness-theme') || ''; } catch { return ''; } }

  setTheme(theme) {
    this.theme = theme;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem('evalharness-theme', theme); } catch { /* there may be no storage */ }
  }

  nextTheme() { this.setTheme(THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length]); }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open || this.at === undefined) return;
    if (event.target === this.note) {
      if (event.key === 'Enter' || event.key === 'Escape') { this.note.blur(); this.keepNote(); this.drawPanel(); event.preventDefault(); }
      return;
    }
    // A closed dialog keeps the focus until the page is drawn again.
    if (event.key === 'Enter' && event.target.closest('button, summary') && !this.help.contains(event.target)) return;
    const kind = this.kinds[Number(event.key) - 1];
    const act = {
      r: () => this.decide(false), w: () => this.decide(true), u: () => this.takeBack(), n: () => this.note.focus(),
      Enter: () => this.next(), j: () => this.step(1), ArrowRight: () => this.step(1), k: () => this.step(-1), ArrowLeft: () => this.step(-1),
      t: () => this.nextTheme(), '?': () => this.help.showModal(),
    }[event.key] || (kind && (() => this.decide(true, kind)));
    if (act) { event.preventDefault(); act(); }
  }
}

async function start() {
  try {
    const page = new Labelling(await fetch('data/turns').then(answer => answer.json()));
    const asked = Number(location.hash.slice(1)) - 1;
    await page.show(asked >= 0 ? asked : page.undecided(-1) ?? 0);
  } catch (error) {
    replace(document.getElementById('main'), h('p.warning', {}, `This page could not be read: ${error.message}. Is evalharness judge label still running?`));
    throw error;
  }
}

start();
