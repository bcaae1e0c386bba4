// The world beside the turns: its picture, a slider, and a line that says where it came back to an earlier picture.

class World {
  // `go`: what a turn chosen on the slider is told to.
  constructor(record, go) {
    this.pictures = record.pictures;
    this.at = record.picture_at;
    // As an image: nothing in it can run, whatever a name holds.
    this.image = h('img', { alt: '' });
    this.caption = h('figcaption', {});
    this.slider = h('input', { type: 'range', min: 0, max: this.at.length - 1, value: 0, 'aria-label': 'turn shown in the picture',
      oninput: () => this.draw(Number(this.slider.value)), onchange: () => this.slider.value > 0 && go(Number(this.slider.value)) });
    const back = this.at.filter((picture, turn) => this.earlier(turn).length).length;
    this.element = h('aside.world', {}, h('figure', {}, this.image, this.caption, this.slider, this.line(),
      h('p.soft', {}, `${back} of ${plural(this.at.length - 1, 'turn')} went back to an earlier picture`)));
    this.draw(0);
  }

  // When the world came to the picture that it had come back to at this turn; none where it only stayed as it was.
  earlier(turn) {
    const stays = turn > 0 && this.at[turn - 1] === this.at[turn];
    return stays ? [] : [...this.at.keys()].filter(t => t < turn && this.at[t] === this.at[turn] && this.at[t - 1] !== this.at[t]);
  }

  // Pictures by turn: downwards what is new, upwards what had been before. A loop is a saw.
  line() {
    const W = 320, H = 44, last = Math.max(1, this.at.length - 1), rows = Math.max(1, this.pictures.length - 1);
    this.x = turn => 8 + (W - 16) * turn / last;
    this.y = turn => 5 + (H - 10) * this.at[turn] / rows;
    this.marker = h('circle.marker', { r: 4.5 });
    const points = [...this.at.keys()].map(turn => `${this.x(turn).toFixed(1)},${this.y(turn).toFixed(1)}`);
    return h('svg.walk', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'pictures by turn: down to a new one, up to an earlier one' },
      h('polyline', { points: points.join(' ') }),
      [...this.at.keys()].filter(turn => this.earlier(turn).length).map(turn => h('circle.back', { cx: this.x(turn), cy: this.y(turn), r: 2.5 })),
      this.marker);
  }

  draw(turn) {
    const earlier = this.earlier(turn), shown = earlier.filter(Boolean).slice(-3).join(', ');
    const as = [earlier[0] === 0 && 'at the start', shown && `after turn ${shown}`].filter(Boolean).join(' and ');
    const stays = turn > 0 && this.at[turn - 1] === this.at[turn];
    this.image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.pictures[this.at[turn]])}`;
    this.image.alt = (turn ? `the world after turn ${turn}` : 'the world at the start') + (stays ? ': unchanged' : as && `: as ${as}`);
    replace(this.caption, this.image.alt);
    this.caption.classList.toggle('back', earlier.length > 0);
    this.slider.value = turn;
    this.marker.setAttribute('cx', this.x(turn));
    this.marker.setAttribute('cy', this.y(turn));
  }
}
