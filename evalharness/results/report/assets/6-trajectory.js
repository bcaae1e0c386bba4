// One episode turn by turn, with a rail at the side that says where it got to.

const FORMAT_ERRORS = {
  empty: 'the reply was empty',
  no_action: 'the reply has no action',
  thought_only: 'the reply has a thought but no action',
  truncated: 'the token limit cut the reply off before its action was complete',
  reasoning_truncated: 'the token limit cut the reply off inside its reasoning: --max-tokens is too small for this model',
  several_actions: 'more than one action',
  invented_observation: "the model wrote the environment's answer itself; cut off from there on",
  bad_call: 'the call is of another tool, or without a command',
  echoed_observation: 'the reply began with an observation: passed over',
};

const ENDS = {
  success: 'solved',
  environment: 'the environment ended it',
  turn_limit: 'turn limit reached',
  policy_stopped: 'the policy stopped',
  context_full: 'the model\'s context was full',
  simulator_halted: 'the last action halted the simulator',
};

// The turns with what a reader needs at each: number, gain, and what was wrong.
function steps(record) {
  const trims = new Map(record.trims);
  let before = 0;
  return record.turns.map((turn, i) => {
    const errors = turn.format_errors || [], invalid = turn.valid === false && turn.action !== undefined && turn.action !== null;
    const step = { ...turn, number: i + 1, gain: turn.progress - before, errors, invalid, bad: errors.length > 0 || invalid,
      noAction: turn.action === undefined || turn.action === null,
      done: (turn.subgoals_completed || []).map(number => record.subgoals[number] ?? `subgoal ${number}`),
      dropped: trims.get(i + 1) };
    before = turn.progress;
    return step;
  });
}

function turnCard(step, id) {
  const facts = [
    step.prompt_tokens !== undefined && `${count(step.prompt_tokens)} prompt tokens`,
    step.completion_tokens !== undefined && `${count(step.completion_tokens)} completion tokens`,
    step.finish_reason && step.finish_reason !== 'stop' && `finish reason ${step.finish_reason}`,
    step.policy_s && `model ${duration(step.policy_s)}`,
    step.failed_tries && `asked again after: ${step.failed_tries.map(words).join(', ')}`, step.environment_s && `simulator ${duration(step.environment_s)}`];
  const sent = step.sent && unfolding('details.raw', 'what was sent', () =>
    step.sent.map(message => messageOf(message.role, longText(message.content, 'pre'))));
  const raw = unfolding('details.raw', 'raw reply', () =>
    [longText([rawReply(step), ...(step.calls || [])].join('\n'), 'pre'), h('p.soft', {}, facts.filter(Boolean).join(' · '))]);
  return [
    step.dropped && h('p.trim', {}, `context full: the ${step.dropped} oldest turns were dropped before this one`),
    h('article', { class: step.bad ? 'turn bad' : 'turn', id, tabindex: -1, 'data-turn': step.number },
      h('header', {}, h('span.turn-number', {}, `Turn ${step.number}`),
        step.gain > 1e-6 && h('span.gain', {}, `+${percent(step.gain, 0)} %`), h('span.soft', {}, `progress ${percent(step.progress, 0)} %`),
        step.invalid && h('span.tag.error', {}, 'not valid'), step.errors.map(kind => h('span.tag.error', {}, words(kind)))),
      step.reasoning && h('details.part.reasoning', {}, h('summary', {}, step.reasoning_tokens ? `Reasoning, ${plural(step.reasoning_tokens, 'token')}` : 'Reasoning'), longText(step.reasoning)),
      step.thought && !(step.noAction && rawReply(step).includes(step.thought)) && h('div.part.thought', {}, h('span.label', {}, 'Thought'), longText(step.thought)),
      step.noAction
        ? h('div.part.action', {}, h('span.label', {}, 'Reply'), longText(rawReply(step) || '(empty)', 'div.prose.refused'))
        : h('div.part.action', {}, h('span.label', {}, 'Action'), longText(step.action, 'code')),
      step.errors.map(kind => h('p.why', {}, FORMAT_ERRORS[kind] || words(kind))),
      h('div.part.observation', {}, h('span.label', {}, step.noAction ? 'Correction' : 'Observation'), longText(step.observation)),
      (step.judged || []).map(([judge, verdict, kind, reason]) => h('div.part.judged', {}, h('span.label', {}, oneLine(judge)), h('p', {},
        h('b', { class: verdict === 'wrong' ? 'wrong' : verdict === 'right' ? 'right' : 'none' }, verdict), kind && ` ${words(kind)}`,
        reason && h('span.soft', { dir: 'auto' }, ` ${oneLine(reason)}`)))),
      step.done.map(goal => h('p.subgoal', {}, h('span', { 'aria-hidden': 'true' }, '★ '), 'subgoal completed: ', h('b', {}, oneLine(goal)))),
      (step.further || []).map(([purpose, reply]) => h('details.raw', {}, h('summary', {}, `asked before: ${oneLine(purpose)}`), longText(reply, 'pre'))),
      sent, raw)];
}

class Trajectory {
  constructor(app, values) {
    this.app = app;
    this.values = values;
    this.run = app.run(values);
    this.episode = this.run.find(values.task, Number(values.sample || 0));
    this.turn = 0;
    this.element = h('div.page.trajectory', {});
    if (this.episode === undefined) {
      replace(this.element, h('p.warning', {}, `${this.run.name} has no finished episode of ${values.task}, sample ${values.sample || 0}.`),
        h('p', {}, h('a', { href: '#' }, 'Overview')));
    }
  }

  async start() {
    if (this.episode === undefined) return;
    this.app.lastEpisode = this.episode;
    const record = this.record = await this.run.trajectory(this.episode);
    this.steps = steps(record);
    const task = this.run.task(this.episode);
    replace(this.element, this.top(task), this.strips(task),
      h('div.columns', {}, this.rail(), h('div.turns', {},
        h('section.opening', {},
          h('div.part', {}, h('span.label', {}, 'Goal'), longText(record.goal, 'div.prose.goal')),
          this.subgoals(),
          this.prompt(),
          h('div.part.observation', {}, h('span.label', {}, 'Start'), longText(record.first_observation))),
        this.trials(),
        this.steps.map(step => turnCard(step, `turn-${step.number}`)),
        this.ending())));
    if (this.values.turn) this.select(Number(this.values.turn));
    else scrollTo(0, 0);
  }

  top(task) {
    const { run, record } = this, outcome = run.outcome(this.episode), facts = [
      task.kind, task.difficulty, run.samples > 1 && `sample ${record.sample}`, record.labels === 'ours' && 'labels: ours',
      plural(this.steps.length, 'turn'), ENDS[record.ended_by]];
    return h('header.top', {},
      h('nav', { 'aria-label': 'episodes' },
        h('a', { href: this.app.back(task.family) }, '‹ ', this.app.data.title(task.family)),
        h('span.spread', {}),
        h('button', { type: 'button', title: 'previous in the list: [', onclick: () => this.beside(-1) }, '‹ previous'),
        h('button', { type: 'button', title: 'next in the list: ]', onclick: () => this.beside(1) }, 'next ›')),
      h('h1', {}, mark(outcome), ' ', task.id),
      h('p.soft', {}, this.app.data.runs.length > 1 && chip(run),
        ` ${oneLine(run.label)} · `, facts.filter(Boolean).map(oneLine).join(' · ')),
      record.solved !== record.success && h('p.warning', {}, record.solved
        ? "The simulator takes the task for solved; the suite's labels do not." : "The suite's labels take the task for solved; the simulator does not."));
  }

  // Where the same task was played more than once: the samples of each run, and the way to see two beside each other.
  strips(task) {
    const playedBy = this.app.data.runs.filter(run => run.samplesOf(task.id).length);
    if (playedBy.length < 2 && playedBy[0].samplesOf(task.id).length < 2) return null;
    return h('div.strips', {}, playedBy.map(run => h('div', {},
      this.app.data.runs.length > 1 && chip(run),
      strip(run, task.id, run === this.run ? this.episode : undefined))),
    this.compareAddress() && h('a.button', { href: this.compareAddress() }, 'side by side'));
  }

  compareAddress() {
    const id = this.record.task_id, mine = [this.run.number, this.record.sample];
    const others = this.app.data.runs.flatMap(run => run.samplesOf(id).map(i => [run.number, run.column.sample[i]]))
      .filter(([run, sample]) => run !== mine[0] || sample !== mine[1]);
    const other = others.find(([run, sample]) => run !== mine[0] && sample === mine[1]) || others[0];
    if (!other) return null;
    const [a, b] = mine[0] <= other[0] ? [mine, other] : [other, mine];
    return address({ compare: id, a: a.join('.'), b: b.join('.') });
  }

  subgoals() {
    const { record } = this;
    if (!record.subgoals.length) return null;
    const at = new Map();
    for (const step of this.steps) for (const number of step.subgoals_completed || []) if (!at.has(number)) at.set(number, step.number);
    const reached = [...record.subgoals.keys()].filter(number => at.has(number)).length;
    return h('details.subgoals', { open: record.subgoals.length <= 8 }, h('summary', {}, `${reached} of ${plural(record.subgoals.length, 'subgoal')} completed`),
      h('ol', {}, record.subgoals.map((goal, number) => h('li', { class: at.has(number) ? 'done' : '' },
        h('span', {}, at.has(number) ? '★ ' : '☆ '), h('span.goal-text', {}, oneLine(goal)),
        at.has(number) && h('button.at', { type: 'button', onclick: () => this.select(at.get(number)) }, `turn ${at.get(number)}`)))));
  }

  prompt() {
    const { record } = this;
    if (record.prompt === null) {
      return h('details.prompt', {}, h('summary', {}, 'prompt'), h('p.soft', {},
        'No prompt file with the hash of this run is at hand. If the run used prompt files of its own, make the report with --prompts DIR.'));
    }
    this.promptBox = unfolding('details.prompt', 'prompt', async () => {
      const messages = (await this.app.data.prompts())[record.prompt];
      return [messages.map(message => messageOf(message.role,
        h('pre', { dir: 'auto' }, message.content.replaceAll('\ue000', () => record.goal).replaceAll('\ue001', () => record.first_observation)))),
      h('p.soft', {}, 'Then the turns below: each reply up to its first action, each observation as a message of the user.')];
    });
    return this.promptBox;
  }

  // Trials at the task before this one, of an agent that tries again.
  trials() {
    return (this.record.trials || []).map((trial, i) => h('details.prompt', {},
      h('summary', {}, `trial ${i + 1}: ${ENDS[trial.ended_by] || oneLine(trial.ended_by)}, progress ${percent(trial.progress, 0)} %`),
      h('ol', {}, trial.actions.map(action => h('li', {}, action === null ? '(no action)' : oneLine(action)))),
      trial.notes.map(note => messageOf('notes', longText(note, 'pre')))));
  }

  rail() {
    this.marks = this.steps.map(step => {
      const fill = h('span.fill', {});
      fill.style.setProperty('--share', `${100 * step.progress}%`);
      const said = [`turn ${step.number}`, `progress ${percent(step.progress, 0)} %`, step.bad && 'error', step.done.length && 'subgoal completed'];
      return h('a.step', { class: `step${step.bad ? ' bad' : ''}${step.done.length ? ' goal' : ''}`, href: this.run.address(this.episode, { turn: step.number }),
        title: said.filter(Boolean).join(', '), 'aria-label': said.filter(Boolean).join(', '),
        onclick: event => { event.preventDefault(); this.select(step.number); } },
      h('span.no', {}, step.number), h('span.track', {}, fill), h('span.sign', {}, step.done.length ? '★' : step.bad ? '✕' : ''));
    });
    return h('nav.rail', { 'aria-label': 'turns' }, this.marks);
  }

  ending() {
    const { record } = this, outcome = this.run.outcome(this.episode);
    return h('p.ending', { class: `ending ${outcome}` }, mark(outcome), ` ${ENDS[record.ended_by]} after ${plural(this.steps.length, 'turn')}, progress ${percent(record.progress, 0)} %`);
  }

  select(number) {
    if (!this.steps || !this.steps.length) return;
    this.turn = Math.max(1, Math.min(this.steps.length, number));
    this.marks.forEach((mark, i) => mark.setAttribute('aria-current', i + 1 === this.turn ? 'step' : 'false'));
    const card = document.getElementById(`turn-${this.turn}`);
    this.element.querySelectorAll('.turn.current').forEach(other => other.classList.remove('current'));
    card.classList.add('current');
    card.scrollIntoView({ block: 'start' });
    card.focus({ preventScroll: true });
    this.marks[this.turn - 1].scrollIntoView({ block: 'nearest', inline: 'nearest' });
    history.replaceState(null, '', this.run.address(this.episode, { turn: this.turn }));
  }

  // The neighbour in the list that this episode was opened from.
  beside(step) {
    const shown = this.app.shown && this.app.shown.run === this.run.number ? this.app.shown.episodes : null;
    const list = shown && shown.includes(this.episode) ? shown
      : filtered(this.app.data, this.run, { family: this.run.task(this.episode).family });
    const to = list[list.indexOf(this.episode) + step];
    if (to !== undefined) location.hash = this.run.address(to);
  }

  sample(step) {
    const listed = this.run.samplesOf(this.values.task), to = listed[listed.indexOf(this.episode) + step];
    if (to !== undefined) location.hash = this.run.address(to);
  }

  key(event) {
    if (event.key === 'Escape') location.hash = this.app.back(this.episode === undefined ? 'all' : this.run.task(this.episode).family);
    else if (!this.steps) return false;
    else if (event.key === 'j') this.select(this.turn + 1);
    else if (event.key === 'k') this.select(this.turn - 1);
    else if (event.key === ']') this.beside(1);
    else if (event.key === '[') this.beside(-1);
    else if (event.key === '.') this.sample(1);
    else if (event.key === ',') this.sample(-1);
    else if (event.key === 'c' && this.element.querySelector('.strips a.button')) location.hash = this.compareAddress();
    else if (event.key === 'p' && this.promptBox) this.promptBox.open = !this.promptBox.open;
    else if (event.key === 'r') {
      const raw = this.element.querySelector(`#turn-${this.turn || 1} .raw`);
      if (raw) raw.open = !raw.open;
    } else return false;
    return true;
  }
}
