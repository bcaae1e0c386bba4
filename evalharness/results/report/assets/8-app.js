// Which page stands at which address, the bar on top, keys, theme; and the questions to a server, where there is one.

const KEYS = [
  ['?', 'these keys'], ['o', 'overview'], ['1 … 9', 'a family; 0 all'], ['t', 'light, dark, as the system'],
  ['/', 'search in the list'], ['j k ↓ ↑', 'rows of a list; j k: turns of a trajectory'], ['Enter', 'open'],
  ['[ ]', 'previous and next episode'], [', .', 'previous and next sample'], ['r', 'raw reply of the turn'], ['p', 'prompt'],
  ['c', 'side by side'], ['d', 'first difference'], ['Esc', 'back'],
];
const THEMES = ['', 'light', 'dark'];

class App {
  constructor(data) {
    this.data = data;
    this.bar = document.getElementById('bar');
    this.main = document.getElementById('main');
    this.help = h('dialog', { 'aria-label': 'keys' }, h('h2', {}, 'Keys'), h('dl', {}, KEYS.map(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])),
      h('button', { type: 'button', onclick: () => this.help.close() }, 'close'));
    document.body.append(this.help);
    this.setTheme(this.stored());
    addEventListener('hashchange', () => this.route());
    addEventListener('keydown', event => this.key(event));
    addEventListener('beforeprint', () => this.view.rows?.paint(true));
    addEventListener('afterprint', () => this.view.rows?.paint());
  }

  run(values) {
    return this.data.runs[Number(values.run || 0)] || this.data.runs[0];
  }

  values() {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  }

  // Back to the list as it was filtered, or to the family's.
  back(family) {
    return this.shown ? this.shown.address : address({ family });
  }

  async route() {
    const values = this.values();
    this.view = values.compare ? new SideBySide(this, values) : values.task ? new Trajectory(this, values)
      : values.family ? new List(this, values)
      : { element: overview(this),
        start: () => scrollTo(0, 0), key: () => false };
    document.body.classList.toggle('fixed', Boolean(values.family && !values.task && !values.compare));
    this.drawBar(values);
    replace(this.main, this.view.element);
    const view = this.view;
    await view.start();
    if (view !== this.view) return;
    document.body.dataset.ready = location.hash || '#';
    performance.mark('shown');
  }

  drawBar(values) {
    const task = values.task || values.compare, family = values.family || (task && task.split('/')[0]);
    const link = (to, name, current) => h('a', { href: to, 'aria-current': current ? 'page' : null }, name);
    const kept = { run: values.run };
    replace(this.bar, h('nav', { 'aria-label': 'pages' }, link('#', 'Overview', !family),
      this.data.families.length > 1 && link(address({ family: 'all', ...kept }), 'All', family === 'all'),
      this.data.families.map(name => link(address({ family: name, ...kept }), this.data.title(name), family === name))),
    this.status = h('span.status', { role: 'status' }, this.said || ''),
    h('button', { type: 'button', 'aria-label': 'theme', title: 'light or dark: t', onclick: () => this.nextTheme() }, '◑'),
    h('button', { type: 'button', 'aria-label': 'keys', title: 'keys: ?', onclick: () => this.help.showModal() }, '?'));
    this.revealPage();
  }

  // On a phone the bar is wider than the screen: the page's own name shall be in view.
  revealPage() {
    const nav = this.bar.firstElementChild, current = nav.querySelector('[aria-current=page]');
    if (current) nav.scrollLeft = current.offsetLeft - nav.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
  }

  say(text) {
    this.said = text;
    if (this.status) replace(this.status, text);
  }

  stored() {
    try { return localStorage.getItem('evalharness-theme') || ''; } catch { return ''; }
  }

  setTheme(theme) {
    this.theme = theme;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem('evalharness-theme', theme); } catch { /* a file may have no storage */ }
  }

  nextTheme() {
    this.setTheme(THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length]);
    this.say(this.theme || 'as the system');
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const field = event.target.closest('input, select, textarea');
    if (field) {
      if (event.key === 'Escape' || (event.key === 'ArrowDown' && field.type === 'search')) this.view.rows?.element.focus();
      return;
    }
    if (event.key === 'Enter' && event.target.closest('a, button, summary')) return;
    const families = ['all', ...this.data.families];
    let taken = true;
    if (event.key === '?') this.help.showModal();
    else if (event.key === 't') this.nextTheme();
    else if (event.key === 'o') location.hash = '#';
    else if (/^[0-9]$/.test(event.key) && families[Number(event.key)]) location.hash = address({ family: families[Number(event.key)] });
    else taken = this.view.key(event);
    if (taken) event.preventDefault();
  }
}

async function start() {
  try {
    const data = await new Data(embedded).load();
    const app = new App(data);
    await app.route();
  } catch (error) {
    replace(document.getElementById('main'), h('p.warning', {}, `This page could not be read: ${error.message}. `,
      typeof DecompressionStream === 'undefined' ? 'It needs a browser of 2023 or later.' : 'The file may be incomplete; make it again.'));
    throw error;
  }
}

start();
