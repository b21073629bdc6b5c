/* BabyAI: the grid, drawn in units of a cell. */
(function () {
  "use strict";
  const { el, svg } = Viewer;
  const FACES = ["right", "down", "left", "up"];
  const SHAPES = {
    ball: ["M.15.5a.35.35 0 1 0 .7 0a.35.35 0 1 0-.7 0z"],
    box: ["M.12.16h.76v.7H.12z", "M.12.42h.76M.5.34v.18"],
    key: ["M.42.5a.23.23 0 1 1 .16 0V.95H.24V.81h.18V.74H.28V.61H.42zM.5.19a.09.09 0 1 0 0 .18.09.09 0 1 0 0-.18z"],
    closed: ["M.05.05h.9v.9h-.9z", "M.22.22h.56v.56H.22z", "M.6.5a.06.06 0 1 0 .12 0a.06.06 0 1 0-.12 0z"],
    locked: ["M.05.05h.9v.9h-.9z", "M.5.22a.15.15 0 0 1 .08.28L.64.78H.36L.42.5A.15.15 0 0 1 .5.22z"],
    open: ["M.03.03h.94v.2H.03z"],
    wall: ["M0 0h1v1H0z"],
  };
  const AGENT = "M.12.12.9.5.12.88.3.5z";

  const at = (x, y, more) => ({ transform: `translate(${x} ${y})${more || ""}` });
  const shapeOf = (thing) => (thing.type === "door" ? thing.state || "closed" : thing.type);
  const wallAt = (shared, x, y) => (shared.walls[y] || "")[x] === "#";

  /* Adjacent cells with a sign as one path, which keeps large grids small. */
  function area(rows, sign, className) {
    let path = "";
    rows.forEach((row, y) => {
      for (let x = row.indexOf(sign); x >= 0;) {
        let end = x;
        while (row[end] === sign) end += 1;
        path += `M${x} ${y}h${end - x}v1h${x - end}z`;
        x = row.indexOf(sign, end);
      }
    });
    return svg("path", { d: path, class: className });
  }

  function lines(shared) {
    let path = "";
    for (let x = 1; x < shared.width; x += 1) path += `M${x} 0v${shared.height}`;
    for (let y = 1; y < shared.height; y += 1) path += `M0 ${y}h${shared.width}`;
    return svg("path", { d: path, class: "ba-lines" });
  }

  function picture(thing) {
    const shape = shapeOf(thing);
    return SHAPES[shape].map((d, layer) => svg("path", { d, class: `ba-${shape}-${layer}` }));
  }

  function draw(thing, shared) {
    const sideways =
      thing.type === "door" &&
      thing.state === "open" &&
      !(wallAt(shared, thing.x, thing.y - 1) && wallAt(shared, thing.x, thing.y + 1));
    const position = at(thing.x, thing.y, sideways ? " rotate(-90 .5 .5)" : "");
    const title = thing.name + (thing.inside ? ` with a ${thing.inside} in it` : "");
    return svg("g", { ...position, class: `ba-thing ba-${thing.color}` }, svg("title", {}, title), picture(thing));
  }

  function agent(state) {
    const [x, y, face] = state.agent;
    const arrow = svg(
      "g",
      { ...at(x, y, ` rotate(${90 * face} .5 .5)`), class: "ba-agent" },
      svg("title", {}, "the agent"),
      svg("path", { d: AGENT }),
    );
    if (!state.carrying) return [arrow];
    const [right, down] = [
      [-0.12, 0.62],
      [-0.12, -0.12],
      [0.62, -0.12],
      [0.62, 0.62],
    ][face];
    const held = svg(
      "g",
      { ...at(x + right, y + down, " scale(.5)"), class: `ba-thing ba-held ba-${state.carrying.color}` },
      svg("title", {}, `${state.carrying.name}, carried`),
      svg("circle", { cx: 0.5, cy: 0.5, r: 0.66 }),
      picture(state.carrying),
    );
    return [arrow, held];
  }

  function trail(state) {
    if (state.trail.length < 2) return null;
    const points = state.trail.map(([x, y]) => `${x + 0.5},${y + 0.5}`).join(" ");
    return svg("polyline", { points, class: "ba-trail" }, svg("title", {}, "the path of the last turn"));
  }

  /* A description of the picture for screen readers. */
  function sentence(shared, state) {
    const where = shared.egocentric
      ? "The agent's view, seven cells ahead and to the sides."
      : `A grid of ${shared.width} by ${shared.height} cells. The agent is in column ${state.agent[0]}, row ${state.agent[1]}, and faces ${FACES[state.agent[2]]}.`;
    const seen = state.things.filter((thing) => thing.seen).map((thing) => thing.name);
    const sight = seen.length ? `In sight: ${seen.join(", ")}.` : "Nothing but walls is in sight.";
    return `${where} ${sight} ${held(state)}`;
  }

  const held = (state) => (state.carrying ? `It carries a ${state.carrying.name}.` : "It carries nothing.");

  function map(shared, state) {
    return svg(
      "svg",
      {
        class: "ba-map",
        viewBox: `0 0 ${shared.width} ${shared.height}`,
        role: "img",
        "aria-label": sentence(shared, state),
      },
      svg("rect", { width: shared.width, height: shared.height, class: "ba-floor" }),
      area(shared.walls, "#", "ba-stone"),
      area(state.visible, "1", "ba-visible"),
      lines(shared),
      trail(state),
      state.things.map((thing) => draw(thing, shared)),
      agent(state),
    );
  }

  function facts(shared, state) {
    const steps = shared.max_steps ? `${state.steps} of ${shared.max_steps}` : (state.steps ?? "–");
    const carried = state.carrying ? state.carrying.name : "nothing";
    const rows = [
      ["Mission", Viewer.line(shared.mission)],
      ["Carries", carried],
      ["Steps", String(steps)],
    ];
    return el(
      "dl",
      { class: "p-facts" },
      rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    );
  }

  function words(state) {
    const seen = state.things.filter((thing) => thing.seen);
    if (!seen.length) return null;
    const rows = seen.map((thing) =>
      el("li", { class: `ba-${thing.color}` }, el("i", { "aria-hidden": "true" }), thing.name),
    );
    return [el("h3", {}, "In sight"), el("ul", { class: "ba-seen" }, rows)];
  }

  Viewer.panels.babyai = {
    title: "The grid",
    draw(states, index) {
      const shared = states[0].shared;
      const state = states[index];
      return el("div", { class: "p-box p-babyai" }, map(shared, state), facts(shared, state), words(state));
    },
  };
})();
