/* Line plots over training steps as SVG. Lines differ in colour and dashes; values can be read by keyboard as well. */
(function () {
  "use strict";
  const { el, svg, fill, number } = Viewer;
  const HEIGHT = 200;
  const ROOM = { left: 58, right: 12, top: 10, bottom: 24 };
  const DASHES = ["", "6 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2"];

  /* Round numbers from `low` to `high`, about `count` of them. */
  function ticks(low, high, count, whole) {
    const rough = (high - low) / Math.max(1, count) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || rough;
    const size = whole ? Math.max(1, Math.ceil(step)) : step;
    const found = [];
    for (let at = Math.ceil(low / size - 1e-9) * size; at <= high + size * 1e-9; at += size)
      found.push(Math.abs(at) < size * 1e-9 ? 0 : at);
    return found;
  }

  function label(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return `${number(value / 1e6, 1)} M`;
    if (size >= 1e4) return `${number(value / 1e3, 1)} k`;
    if (size !== 0 && size < 1e-3) return value.toExponential(1).replace("-", "−").replace("e-", "e−");
    return number(value, size < 0.1 ? 4 : size < 10 ? 3 : 1);
  }
  const percent = (value) => `${number(value * 100, 1)} %`;

  /* The bias-corrected exponential moving average of [x, y] points; `share` is the weight of the past. */
  function smooth(points, share) {
    let sum = 0;
    let weight = 0;
    return points.map(([x, y]) => {
      sum = sum * share + y * (1 - share);
      weight = weight * share + 1 - share;
      return [x, sum / weight];
    });
  }

  function path(points, x, y, stepped) {
    let text = "";
    points.forEach(([step, value], index) => {
      if (index === 0) text = `M${x(step)},${y(value)}`;
      else text += stepped ? `H${x(step)}V${y(value)}` : `L${x(step)},${y(value)}`;
    });
    return text;
  }

  /* The range of the values with a margin; 0 to 1 for shares, from 0 for counts. */
  function range(lines, kind) {
    if (kind === "share") return [0, 1];
    let low = Infinity;
    let high = -Infinity;
    for (const line of lines)
      for (const [, value] of line.points) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (kind === "count") low = Math.min(low, 0);
    if (low > high) return [0, 1];
    if (low === high)
      [low, high] = low === 0 ? [0, 1] : [Math.min(low, low - Math.abs(low) * 0.5), high + Math.abs(high) * 0.5];
    const room = (high - low) * 0.06;
    return [kind === "count" && low === 0 ? 0 : low - room, high + room];
  }

  function scale([low, high], from, to) {
    const size = high - low || 1;
    return (value) => Number((from + ((value - low) / size) * (to - from)).toFixed(1));
  }

  function axes(width, x, y, steps, values, kind) {
    const bottom = HEIGHT - ROOM.bottom;
    const rows = ticks(values[0], values[1], 5, kind === "count").map((value) => [
      svg("line", { class: "grid", x1: ROOM.left, x2: width - ROOM.right, y1: y(value), y2: y(value) }),
      svg(
        "text",
        { class: "tick", x: ROOM.left - 7, y: y(value) + 3.5, "text-anchor": "end" },
        kind === "share" ? percent(value) : label(value),
      ),
    ]);
    const columns = ticks(steps[0], steps[1], Math.max(2, Math.floor(width / 90)), true).map((step) =>
      svg("text", { class: "tick", x: x(step), y: bottom + 16, "text-anchor": "middle" }, label(step)),
    );
    columns.push(svg("text", { class: "tick", x: ROOM.left - 16, y: bottom + 16, "text-anchor": "end" }, "step"));
    return svg(
      "g",
      { "aria-hidden": "true" },
      rows,
      svg("line", { class: "base", x1: ROOM.left, x2: width - ROOM.right, y1: bottom, y2: bottom }),
      columns,
    );
  }

  function drawLine(line, x, y, share) {
    const look = {
      style: { "--line-colour": line.colour },
      "stroke-dasharray": DASHES[line.dash % DASHES.length] || null,
    };
    const stepped = line.kind === "limit";
    const single = line.points.length === 1 || line.kind === "eval";
    const smoothed = share > 0 && !stepped && line.kind !== "eval";
    const [first] = line.points;
    return svg(
      "g",
      { class: `curve ${line.kind || ""}`, "data-name": line.name, style: look.style },
      smoothed && svg("path", { class: "raw", d: path(line.points, x, y) }),
      svg("path", {
        class: "main",
        d: path(smoothed ? smooth(line.points, share) : line.points, x, y, stepped),
        "stroke-dasharray": look["stroke-dasharray"],
      }),
      single &&
        line.points.map(([step, value]) =>
          svg("path", { class: "mark", d: `M${x(step)},${y(value) - 4}l4,4l-4,4l-4,-4z` }),
        ),
      stepped &&
        line.named &&
        svg("text", { class: "tick limit-name", x: x(first[0]) + 4, y: y(first[1]) - 5 }, "limit"),
    );
  }

  /* A sample of a line for legends. */
  Viewer.lineSample = ({ colour, dash, kind }) => {
    const line = svg("line", {
      x1: 0,
      y1: 5,
      x2: 26,
      y2: 5,
      "stroke-dasharray": kind ? null : DASHES[dash % DASHES.length] || null,
    });
    const mark = kind === "eval" && svg("path", { class: "mark", d: "M13,1l4,4l-4,4l-4,-4z" });
    return svg(
      "svg",
      {
        class: `sample ${kind || ""}`,
        width: 26,
        height: 10,
        "aria-hidden": "true",
        style: { "--line-colour": colour },
      },
      line,
      mark,
    );
  };

  /* The value of a line at a step; for a stepped line, the last value up to that step. */
  function valueAt(line, step) {
    if (line.kind !== "limit") return line.at.get(step);
    let found;
    for (const [at, value] of line.points) if (at <= step) found = value;
    return found;
  }

  /*
   * options: {title, name, kind: "share" | "count" | "", lines: [{name, colour, dash, kind: "" | "limit" | "eval", points: [[step, value]]}],
   * smoothing, pick(step), cursor: {step, owner, listeners: Set}}. All plots that share a cursor show the same step.
   */
  Viewer.plot = function (options) {
    const { cursor, kind } = options;
    const lines = options.lines
      .filter((line) => line.points.length)
      .map((line) => ({ ...line, at: new Map(line.points) }));
    const limits = lines.filter((line) => line.kind === "limit").sort((a, b) => b.points[0][1] - a.points[0][1]);
    if (limits.length) limits[0].named = true; // one label is enough
    const all = [...new Set(lines.flatMap((line) => line.points.map(([step]) => step)))].sort((a, b) => a - b);
    const format = (value) => (kind === "share" ? percent(value) : label(value));
    const holder = el("div", {
      class: "plot",
      tabindex: "0",
      role: "slider",
      "aria-label": `${options.title}: step`,
      "aria-valuemin": all[0],
      "aria-valuemax": all[all.length - 1],
    });
    const tip = el("div", { class: "tip num", "aria-hidden": "true", hidden: true });
    let x = null;
    let y = null;
    let crosshair = null;

    function draw() {
      const width = Math.max(240, holder.clientWidth || 420);
      const steps = [all[0], all[all.length - 1]];
      if (steps[0] === steps[1]) [steps[0], steps[1]] = [steps[0] - 1, steps[1] + 1];
      const values = range(lines, kind);
      x = scale(steps, ROOM.left, width - ROOM.right);
      y = scale(values, HEIGHT - ROOM.bottom, ROOM.top);
      crosshair = svg("g", { class: "crosshair" });
      fill(
        holder,
        svg(
          "svg",
          { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" },
          axes(width, x, y, steps, values, kind),
          lines.map((line) => drawLine(line, x, y, options.smoothing)),
          crosshair,
        ),
        tip,
      );
      point();
    }

    function nearest(step) {
      return all.reduce((best, at) => (Math.abs(at - step) < Math.abs(best - step) ? at : best), all[0]);
    }

    function valuesAt(step) {
      const found = lines.map((line) => [
        line,
        step === null ? line.points[line.points.length - 1][1] : valueAt(line, step),
      ]);
      return found.filter(([, value]) => value !== undefined);
    }

    function valueNode([line, value]) {
      return el(
        "span",
        { class: "value" },
        Viewer.lineSample(line),
        el("span", {}, line.name),
        el("b", {}, format(value)),
      );
    }

    /* Draws the crosshair and the values at the step of the cursor. */
    function point() {
      const step = cursor.step === null ? null : nearest(cursor.step);
      const found = valuesAt(step);
      const last = all[all.length - 1];
      holder.setAttribute("aria-valuenow", step === null ? last : step);
      holder.setAttribute(
        "aria-valuetext",
        `step ${step === null ? last : step}: ${found.map(([line, value]) => `${line.name} ${format(value)}`).join(", ")}`,
      );
      tip.hidden = step === null;
      tip.classList.toggle("brief", cursor.owner !== holder);
      if (step === null) return fill(crosshair);
      fill(
        crosshair,
        svg("line", { x1: x(step), x2: x(step), y1: ROOM.top, y2: HEIGHT - ROOM.bottom }),
        found.map(([line, value]) =>
          svg("circle", { cx: x(step), cy: y(value), r: 3.5, style: { "--line-colour": line.colour } }),
        ),
      );
      fill(tip, el("span", {}, `step ${Viewer.count(step)}`), found.map(valueNode));
      const right = x(step) < (holder.clientWidth || 420) / 2;
      tip.style.left = right ? `${x(step) + 12}px` : "auto";
      return (tip.style.right = right ? "auto" : `${(holder.clientWidth || 420) - x(step) + 12}px`);
    }

    function move(step) {
      [cursor.step, cursor.owner] = [step, holder];
      cursor.listeners.forEach((listener) => listener());
    }

    function onMove(event) {
      const offset = event.clientX - holder.getBoundingClientRect().left;
      const share = (offset - ROOM.left) / (holder.clientWidth - ROOM.left - ROOM.right);
      move(nearest(all[0] + share * (all[all.length - 1] - all[0])));
    }

    function onKey(event) {
      const at = cursor.step === null ? all.length - 1 : all.indexOf(nearest(cursor.step));
      const to = {
        ArrowLeft: at - 1,
        ArrowDown: at - 1,
        ArrowRight: at + 1,
        ArrowUp: at + 1,
        Home: 0,
        End: all.length - 1,
      }[event.key];
      if (event.key === "Enter" && cursor.step !== null) options.pick(nearest(cursor.step));
      else if (to === undefined) return;
      else move(all[Math.max(0, Math.min(all.length - 1, to))]);
      event.preventDefault();
      event.stopPropagation();
    }

    const listen = {
      pointermove: onMove,
      pointerleave: () => move(null),
      keydown: onKey,
      click: (event) => {
        onMove(event);
        options.pick(cursor.step);
      },
    };
    for (const [name, listener] of Object.entries(listen)) holder.addEventListener(name, listener);
    cursor.listeners.add(point);
    new ResizeObserver(draw).observe(holder);
    draw();
    const last = valuesAt(null).filter(([line]) => !line.kind);
    const readout =
      last.length < 4 &&
      el(
        "p",
        { class: "readout num", title: "The last values" },
        last.map(([line, value]) => valueNode([{ ...line, name: "" }, value])),
      );
    return el(
      "figure",
      { class: "card figure", "data-series": options.name },
      el("figcaption", {}, el("h3", {}, options.title), readout),
      holder,
    );
  };
})();
