// Text and elements. Nothing here or elsewhere parses HTML: every string becomes a text node, made visible first.

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const LONG_TEXT = 6000;

// Controls (ANSI escapes begin with one), bidirectional overrides and zero widths as the terminal report shows them.
function escapeOf(character) {
  const code = character.codePointAt(0);
  if (character === '\r') return '\\r';
  if (code < 0x100) return '\\x' + code.toString(16).padStart(2, '0');
  if (code < 0x10000) return '\\u' + code.toString(16).padStart(4, '0');
  return '\\U' + code.toString(16).padStart(8, '0');
}

function visible(text) {
  return String(text).replace(STEERING, c => (c === '\n' || c === '\t' ? c : escapeOf(c)));
}

function oneLine(text) {
  return visible(String(text).replace(/\s+/g, ' ').trim());
}

// h('a', { class: 'x', href: '#', onclick: f }, 'text', element, [more]): an element; strings become text.
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = SVG_TAGS.has(name)
    ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name);
  if (classes.length) element.setAttribute('class', classes.join(' '));
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else if (key === 'width%') element.style.width = `${100 * value}%`;
    else if (key === 'height%') element.style.height = `${100 * value}%`;
    else if (key === 'run') element.style.setProperty('--hue', hueOf(value));
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

const SVG_TAGS = new Set(['svg', 'rect', 'line', 'polyline', 'circle', 'text', 'g']);

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

function replace(element, ...children) {
  element.textContent = '';
  append(element, children);
}

// A block of somebody else's text: of a very long one the beginning, the rest on demand.
function longText(text, tag = 'div.prose') {
  if (text.length <= LONG_TEXT) return h(tag, { dir: 'auto' }, text);
  const box = h(tag, { dir: 'auto' }, text.slice(0, LONG_TEXT));
  const more = h('button.more', { type: 'button', onclick: () => { replace(box, text); more.remove(); } },
    `… show all ${text.length.toLocaleString('en')} characters`);
  return h('div', {}, box, more);
}

// Folded, and filled when it is first opened.
function unfolding(tag, title, fill) {
  const box = h(tag, {}, h('summary', {}, title));
  box.addEventListener('toggle', async () => {
    if (box.open && box.children.length === 1) append(box, [await fill()]);
  });
  return box;
}

const messageOf = (role, ...text) => h('div.message', {}, h('span.label', {}, role), ...text);

// As the tables round: of two numbers that are equally near the even one. toFixed takes the larger.
function fixed(x, digits) {
  const scaled = Math.abs(x) * 10 ** digits, down = Math.floor(scaled);
  const tie = scaled - down === 0.5 && Number.isInteger(x * 2 ** (digits + 1));
  return (tie && down % 2 === 0 ? Math.sign(x) * down / 10 ** digits : x).toFixed(digits);
}

const percent = (value, digits = 1) =>
  value === null || value === undefined ? '–' : fixed(100 * value, digits).replace(/^-(?=[0.]+$)/, '');

const signed = value => (value > 0 ? '+' : value < 0 ? '−' : '±') + fixed(Math.abs(100 * value), 1);

const count = n => Number(n).toLocaleString('en');

const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

function duration(seconds) {
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds), two = n => String(n).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

const words = name => name.replaceAll('_', ' ');
