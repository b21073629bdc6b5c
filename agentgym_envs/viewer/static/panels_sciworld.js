/* SciWorld: the house, the room, the inventory, and the steps of the task. */
(function () {
  "use strict";
  const { el, svg } = Viewer;
  const [WIDE, HIGH, STEP_X, STEP_Y] = [92, 34, 112, 62];
  const POSITIONS = {
    bathroom: [0, 0],
    kitchen: [1, 0],
    outside: [2, 0],
    foundry: [3, 0],
    bedroom: [0, 1],
    hallway: [1, 1],
    greenhouse: [2, 1],
    "art studio": [0, 2],
    "living room": [1, 2],
    workshop: [2, 2],
  };
  const corner = (room) => [8 + POSITIONS[room][0] * STEP_X, 8 + POSITIONS[room][1] * STEP_Y];
  const centre = (room) => [corner(room)[0] + WIDE / 2, corner(room)[1] + HIGH / 2];

  function door([a, b], open) {
    const [[x1, y1], [x2, y2]] = [centre(a), centre(b)];
    const isOpen = open.some(([c, d]) => c === a && d === b);
    return svg("line", { x1, y1, x2, y2, class: `sw-way ${isOpen ? "open" : ""}` });
  }

  function room(name, state, visited) {
    const [x, y] = corner(name);
    const here = name === state.room;
    const kind = here ? "here" : visited.has(name) ? "visited" : "";
    const label = svg("text", { x: x + WIDE / 2, y: y + HIGH / 2 + 4 }, name);
    return svg("g", { class: `sw-room ${kind}` }, svg("rect", { x, y, width: WIDE, height: HIGH, rx: 6 }), label);
  }

  function sentence(state, visited) {
    const where = state.room ? `The agent is in the ${state.room}.` : "The room of the agent is unknown.";
    const others = [...visited].filter((name) => name !== state.room);
    const open = state.doors.map(([a, b]) => `${a} and ${b}`).join("; ");
    return `${where}${others.length ? ` It was in: ${others.join(", ")}.` : ""}${open ? ` Open doors: ${open}.` : ""}`;
  }

  function house(states, index) {
    const shared = states[0].shared;
    const state = states[index];
    const visited = new Set(
      states
        .slice(0, index + 1)
        .map((one) => one.room)
        .filter(Boolean),
    );
    const size = `0 0 ${8 + 3 * STEP_X + WIDE + 8} ${8 + 2 * STEP_Y + HIGH + 8}`;
    return svg(
      "svg",
      { class: "sw-map", viewBox: size, role: "img", "aria-label": sentence(state, visited) },
      shared.ways.map((way) => door(way, state.doors)),
      shared.rooms.filter((name) => POSITIONS[name]).map((name) => room(name, state, visited)),
      key(),
    );
  }

  function key() {
    const x = corner("foundry")[0] + 6;
    const y = corner("bedroom")[1] + 12;
    const line = (dy, name, className) => [
      svg("line", { x1: x, x2: x + 22, y1: y + dy, y2: y + dy, class: `sw-way ${className}` }),
      svg("text", { x: x + 28, y: y + dy + 4, class: "sw-key" }, name),
    ];
    return svg("g", { "aria-hidden": "true" }, line(0, "open door", "open"), line(20, "door", ""));
  }

  /* A list in which new items are marked. */
  function list(title, now, before, empty) {
    const old = new Set(before);
    const rows = now.map((text) => el("li", { class: before && !old.has(text) ? "new" : "" }, Viewer.line(text, 240)));
    return el(
      "section",
      {},
      el("h3", {}, title),
      rows.length ? el("ul", { class: "sw-things" }, rows) : el("p", { class: "p-empty" }, empty),
    );
  }

  function goal(one) {
    return el(
      "li",
      { class: one.done ? "done" : "" },
      el("span", { class: "sw-tick", "aria-hidden": "true" }, one.done ? "✓" : "○"),
      Viewer.line(one.text, 160),
      el("span", { class: "hush" }, one.done ? " (reached)" : " (not reached)"),
    );
  }

  function goals(state) {
    const [main, aids] = [state.goals.filter((one) => one.main), state.goals.filter((one) => !one.main)];
    if (!state.goals.length) return null;
    const reached = aids.filter((one) => one.done);
    const open = aids.filter((one) => !one.done);
    return el(
      "section",
      { class: "sw-goals" },
      el("h3", {}, `Steps of the task (${main.filter((one) => one.done).length} of ${main.length})`),
      el("ol", {}, main.map(goal)),
      aids.length ? el("h3", {}, `Optional steps (${reached.length} of ${aids.length})`) : null,
      reached.length ? el("ul", {}, reached.map(goal)) : null,
      open.length
        ? el(
            "details",
            {},
            el("summary", {}, Viewer.plural(open.length, "other optional step", "other optional steps")),
            el("ul", {}, open.map(goal)),
          )
        : null,
    );
  }

  /* The score of the state that the panel shows, which is that before the turn. */
  function score(state, atEnd) {
    if (state.score === null) return null;
    const share = Math.max(0, Math.min(1, state.score));
    const bar = el("meter", { class: "sw-score", min: 0, max: 1, value: share, "aria-label": "Score" });
    const moves = state.moves === null || state.moves === undefined ? "" : `, ${Viewer.plural(state.moves, "move")}`;
    const when = atEnd ? "at the end" : "before this turn";
    return el("p", { class: "sw-line" }, bar, el("span", {}, `score ${Viewer.number(state.score, 3)} ${when}${moves}`));
  }

  Viewer.panels.sciworld = {
    title: "The house",
    draw(states, index) {
      const state = states[index];
      const last = index ? states[index - 1] : null;
      const sameRoom = last && last.room === state.room && last.things.length;
      const unlisted = state.fresh ? "Nothing is here." : "Nothing has been listed yet.";
      return el(
        "div",
        { class: "p-box p-sciworld" },
        house(states, index),
        score(state, index === states.length - 1),
        goals(state),
        el(
          "div",
          { class: "sw-columns" },
          list(state.room ? `In the ${state.room}` : "Here", state.things, sameRoom ? last.things : null, unlisted),
          list(
            "Carried",
            state.inventory,
            last ? last.inventory : null,
            state.fresh ? "Nothing is carried." : "Unknown so far.",
          ),
        ),
      );
    },
  };
})();
