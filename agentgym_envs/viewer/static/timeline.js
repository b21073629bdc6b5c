/* The timeline of an episode: one column per turn, with the score as a curve, rewards as ticks, and marks for problems. */
(function () {
  "use strict";
  const { el, svg, fill } = Viewer;
  const HEIGHT = 54;
  const FOOT = 14; // room for numbers below the curve
  const HEAD = 5;

  function bounds(turns) {
    const scores = turns.map((turn) => turn.score ?? 0);
    return [Math.min(0, ...scores), Math.max(1, ...scores)];
  }

  function curve(turns, x, y) {
    let path = `M${x(0)} ${y(0)}`;
    turns.forEach((turn, i) => (path += `H${x(i + 1)}V${y(turn.score ?? 0)}`));
    return path + `H${x(turns.length + 1)}`;
  }

  function numbers(count, x) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => x(size) - x(0) >= 26) || 1000;
    const marks = [];
    for (let i = 0; i < count; i += 1) {
      const wanted = step === 1 || i === 0 || (i + 1) % step === 0;
      if (wanted) marks.push(svg("text", { class: "n", x: (x(i) + x(i + 1)) / 2, y: HEIGHT - 3 }, String(i + 1)));
    }
    return marks;
  }

  function tick(turn, i, x, y) {
    const middle = (x(i) + x(i + 1)) / 2;
    const marks = [];
    if (turn.reward) {
      const tone = turn.reward > 0 ? "good" : "bad";
      marks.push(
        svg("line", {
          class: `tick ${tone}`,
          x1: x(i + 1),
          x2: x(i + 1),
          y1: y((turn.score ?? 0) - turn.reward),
          y2: y(turn.score ?? 0),
        }),
      );
    }
    const base = HEIGHT - FOOT - 3;
    if (turn.invalid) marks.push(svg("path", { class: "invalid", d: `M${middle - 4} ${base}h8l-4 -7z` }));
    if (turn.label) marks.push(band(turn, i, x));
    if (turn.truncated) marks.push(svg("rect", { class: "truncated", x: middle - 3, y: base - 6, width: 6, height: 6 }));
    return marks;
  }

  /* A band below a labelled turn: on plan, detour or out of reach. */
  function band(turn, i, x) {
    const tone = turn.label.verdict.replace(" ", "-");
    const width = Math.max(1, x(i + 1) - x(i) - 1);
    return svg("rect", { class: `band ${tone}`, x: x(i), y: HEIGHT - FOOT - 1, width, height: 3 });
  }

  function describe(turns, index) {
    if (index >= turns.length) return `End, after ${Viewer.plural(turns.length, "turn")}`;
    const turn = turns[index];
    const extra = [
      turn.invalid && "invalid action",
      turn.truncated && "answer truncated",
      turn.label && Viewer.words.turnVerdict(turn.label)[0].toLowerCase(),
      turn.reward && `reward ${Viewer.signed(turn.reward)}`,
    ];
    return [`Turn ${index + 1} of ${turns.length}`, ...extra.filter(Boolean)].join(", ");
  }

  class Timeline {
    constructor(turns, onSelect) {
      Object.assign(this, { turns, onSelect, index: 0 });
      this.drawing = svg("svg", { class: "strip-picture", height: HEIGHT, "aria-hidden": "true" });
      this.now = svg("rect", { class: "now", y: 0, height: HEIGHT, rx: 3 });
      const range = { "aria-label": "Turn", "aria-valuemin": "1", "aria-valuemax": String(turns.length + 1) };
      this.root = el("div", { class: "strip", role: "slider", tabindex: "0", ...range }, this.drawing);
      this.root.addEventListener("pointerdown", (event) => {
        this.root.setPointerCapture(event.pointerId);
        this.point(event);
      });
      this.root.addEventListener("pointermove", (event) => event.buttons === 1 && this.point(event));
      new ResizeObserver(() => this.draw()).observe(this.root);
    }

    get width() {
      return Math.max(40, this.root.clientWidth);
    }

    draw() {
      const { turns, width } = this;
      const count = turns.length;
      const [low, high] = bounds(turns);
      const x = (i) => (i * width) / (count + 1);
      const y = (score) => HEAD + (1 - (score - low) / (high - low)) * (HEIGHT - FOOT - HEAD - 3);
      const path = curve(turns, x, y);
      this.drawing.setAttribute("width", width);
      fill(
        this.drawing,
        this.now,
        svg("line", { class: "base", x1: 0, x2: width, y1: y(0), y2: y(0) }),
        svg("path", { class: "under", d: `${path}V${y(0)}H0Z` }),
        svg("path", { class: "curve", d: path }),
        turns.map((turn, i) => tick(turn, i, x, y)),
        numbers(count, x),
        svg("text", { class: "n", x: (x(count) + width) / 2, y: HEIGHT - 3 }, x(1) > 24 ? "end" : "•"),
      );
      this.moveCursor();
    }

    moveCursor() {
      const column = this.width / (this.turns.length + 1);
      this.now.setAttribute("x", this.index * column);
      this.now.setAttribute("width", Math.max(3, column));
    }

    point(event) {
      const share = (event.clientX - this.root.getBoundingClientRect().left) / this.width;
      this.onSelect(Math.max(0, Math.min(this.turns.length, Math.floor(share * (this.turns.length + 1)))));
    }

    select(index) {
      this.index = index;
      this.root.setAttribute("aria-valuenow", String(index + 1));
      this.root.setAttribute("aria-valuetext", describe(this.turns, index));
      this.moveCursor();
    }
  }

  /* `onSelect` receives an index from 0 to turns.length; the last one is the end. */
  Viewer.timeline = (turns, onSelect) => new Timeline(turns, onSelect);
})();
