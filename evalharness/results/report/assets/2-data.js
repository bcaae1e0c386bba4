// The data: an index of everything, and the trajectories in gzipped blocks that are opened when they are looked at.

async function gunzip(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

const whole = new Promise(done => {
  if (document.readyState !== 'loading') done();
  else document.addEventListener('DOMContentLoaded', done);
});

// In the file: blocks stand behind this script, so all but the index waits until the document has been read.
const embedded = {
  index: () => gunzip(document.getElementById('index').textContent),
  async get(name) {
    await whole;
    return gunzip(document.getElementById(name).textContent);
  },
};

const KEPT_BLOCKS = 24;

class Data {
  constructor(source) {
    this.source = source;
    this.blocks = new Map();
  }

  async load() {
    this.index = await this.source.index();
    this.blocks.clear();
    this.prompted = null;
    this.runs = this.index.runs.map((run, number) => new Run(this, run, number));
    this.families = Object.keys(this.index.titles).filter(family =>
      this.runs.some(run => run.summary.families[family])).sort();
    this.taskNumber = new Map(this.index.tasks.map((task, i) => [task.id, i]));
    return this;
  }

  title(family) {
    return family === 'all' ? 'All families' : this.index.titles[family] || family;
  }

  async block(run, block) {
    const name = `block-${run}-${block}`;
    if (!this.blocks.has(name)) {
      this.blocks.set(name, this.source.get(name));
      if (this.blocks.size > KEPT_BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
    }
    return this.blocks.get(name);
  }

  prompts() {
    this.prompted ||= this.source.get('prompts');
    return this.prompted;
  }
}

class Run {
  constructor(data, run, number) {
    Object.assign(this, run);
    this.data = data;
    this.number = number;
    this.column = run.episodes;
    this.size = this.column.task.length;
    this.byTask = new Map();
    for (let i = 0; i < this.size; i++) {
      const task = this.column.task[i];
      if (!this.byTask.has(task)) this.byTask.set(task, []);
      this.byTask.get(task).push(i);
    }
    for (const listed of this.byTask.values()) listed.sort((a, b) => this.column.sample[a] - this.column.sample[b]);
  }

  task(episode) {
    return this.data.index.tasks[this.column.task[episode]];
  }

  find(taskId, sample) {
    const listed = this.byTask.get(this.data.taskNumber.get(taskId)) || [];
    return listed.find(episode => this.column.sample[episode] === sample);
  }

  samplesOf(taskId) {
    return this.byTask.get(this.data.taskNumber.get(taskId)) || [];
  }

  // The mean over the samples of a task; null where it has not been played.
  mean(taskNumber, column) {
    const listed = this.byTask.get(taskNumber);
    return listed ? listed.reduce((sum, i) => sum + this.column[column][i], 0) / listed.length : null;
  }

  outcome(episode) {
    if (this.column.success[episode]) return 'success';
    return this.column.progress[episode] > 0 ? 'partial' : 'none';
  }

  has(episode, trouble) {
    return (this.column.troubles[episode] >> trouble) & 1;
  }

  async trajectory(episode) {
    const block = await this.data.block(this.number, this.column.block[episode]);
    return block[this.column.position[episode]];
  }

  address(episode, more = {}) {
    return address({ task: this.task(episode).id, sample: this.column.sample[episode] || undefined,
      run: this.number || undefined, ...more });
  }
}

const letter = run => (run.number >= 26 ? String.fromCharCode(64 + Math.floor(run.number / 26)) : '')
  + String.fromCharCode(65 + run.number % 26);

// Hues that nothing else in the page has: red is an error, amber a warning, green success.
const HUES = [255, 55, 310, 205, 350, 105, 280, 230];
const hueOf = run => HUES[run.number] ?? 180 + (run.number * 137.5) % 170;

// A run's letter in its colour: the same run has the same on every page.
const chip = (run, more = '') => h('span.letter', { run, title: run.label }, letter(run) + more);

// The part of the page's address behind `#`; what is undefined or empty is left out.
function address(values) {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== undefined && value !== '') parts.set(key, value);
  return '#' + parts.toString().replaceAll('%2F', '/').replaceAll('%3A', ':');
}

// What the raw reply was, where it is not stored because it is just these two lines.
const rawReply = turn => turn.reply ?? `Thought: ${turn.thought ?? ''}\nAction: ${turn.action}`;
