/* Two episodes of one task side by side: aligned turn by turn, with equal turns folded and a diff of the texts. */
(function () {
  "use strict";
  const { el, fill, steps } = Viewer;
  const SEEN = 900;
  const FOLDED = 3; // so many equal turns in a row are folded
  let view = null;

  const page = { title: "Comparison" };
  Viewer.pages.compare = page;

  page.open = async (root, params) => {
    const opened = { root, index: 0, unfolded: new Set() };
    view = opened;
    root.append(el("p", { class: "empty", role: "status" }, "Reading both episodes…"));
    try {
      const found = await Promise.all([0, 1].map((i) => Viewer.links.find(params.ids[i])));
      opened.details = await Promise.all(found.map((id) => Viewer.api(`episodes/${id}`)));
    } catch (error) {
      if (view === opened) Viewer.nowhere(root, error.message);
      return;
    }
    if (view !== opened) return;
    document.title = `Episodes ${opened.details[0].row.id} and ${opened.details[1].row.id}`;
    opened.rows = alignment(opened.details);
    opened.first = firstDifference();
    draw();
    choose(Number(params.query.row || 1) - 1, Boolean(params.query.row));
    addEventListener("keydown", onKey);
  };

  page.close = () => {
    view = null;
    removeEventListener("keydown", onKey);
  };

  /* The action of a turn as text. */
  function actionOf(detail, i) {
    const turn = detail.turns[i];
    if (detail.team) return Viewer.team.actions(detail.team.turns[i]);
    return (turn.command === null ? turn.action : turn.command).trim();
  }

  /* The rows of the page: {a, b}, the turns side by side, and what differs: `action`, `seen`. */
  function alignment(details) {
    const [one, other] = details;
    const [n, m] = [one.turns.length, other.turns.length];
    const actions = details.map((detail) => detail.turns.map((_, i) => actionOf(detail, i)));
    const weigh = (i, j) => {
      if (actions[0][i] !== actions[1][j]) return 0;
      return one.turns[i].observation === other.turns[j].observation ? 3 : 1;
    };
    return Viewer.diff.rowsOf(n, m, Viewer.diff.align(n, m, weigh)).map(({ a, b }) => {
      const both = a !== null && b !== null;
      const action = !both || actions[0][a] !== actions[1][b];
      return { a, b, action, seen: both && one.turns[a].observation !== other.turns[b].observation };
    });
  }

  function firstDifference() {
    const found = view.rows.findIndex(({ action, seen }) => action || seen);
    return found < 0 ? null : found;
  }

  function draw() {
    const { root, details } = view;
    view.pairs = el("div", { class: "pairs" });
    view.where = el("span", { class: "where num", role: "status" });
    view.controls = el(
      "div",
      { class: "controls card" },
      steps.bar(view.where, (by) => choose(view.index + by, true)),
      el("div", { class: "compare-tools" }, jump(), Viewer.links.button(address)),
      steps.floatingGoal(details[0].row),
    );
    fill(root, head(), view.controls, el("div", { class: "pair heads" }, details.map(summary)), view.pairs);
    steps.followGoal(root.querySelector("h1"), view.controls);
    drawPairs();
  }

  /* Draws all rows. Long runs of equal turns are one row until they are opened. */
  function drawPairs() {
    const { details, rows } = view;
    view.nodes = new Map();
    const nodes = [];
    for (let i = 0; i < rows.length; ) {
      const end = equalUntil(i);
      const folded = end - i >= FOLDED && !view.unfolded.has(i);
      if (folded) nodes.push(fold(i, end));
      else for (let k = i; k < Math.max(end, i + 1); k += 1) nodes.push(pair(k));
      i = Math.max(end, i + 1);
    }
    const end = (detail) => Viewer.end({ ...detail, final_observation: "" }, { onSelect: () => choose(rows.length, true) });
    const last = el("div", { class: "pair", role: "group", "aria-label": "End" }, details.map((detail, side) => cell(side, end(detail))));
    view.nodes.set(rows.length, last);
    fill(view.pairs, nodes, last);
  }

  /* The end of the equal rows that begin at a row. */
  function equalUntil(start) {
    let end = start;
    while (end < view.rows.length && !view.rows[end].action && !view.rows[end].seen) end += 1;
    return end;
  }

  function fold(start, end) {
    const { rows } = view;
    const range = (side) => `${rows[start][side] + 1}–${rows[end - 1][side] + 1}`;
    const where = range("a") === range("b") ? range("a") : `${range("a")} of A, ${range("b")} of B`;
    const open = () => {
      view.unfolded.add(start);
      drawPairs();
      choose(start, true);
    };
    const text = `${end - start} equal turns (${where}): show`;
    const node = el("button", { class: "button equal-fold", type: "button", on: { click: open } }, text);
    for (let i = start; i < end; i += 1) view.nodes.set(i, node);
    return node;
  }

  function head() {
    const [one, other] = view.details;
    const same = one.row.env === other.row.env && one.row.task === other.row.task;
    return el(
      "header",
      { class: "episode-head" },
      el("div", { class: "crumbs" }, steps.crumb(`#/episode/${one.row.id}`, `Episode ${one.row.id}`)),
      el("h1", {}, Viewer.text(one.row.goal || one.row.task, { limit: 300 })),
      same
        ? null
        : el(
            "p",
            { class: "problem" },
            "These episodes are of different tasks, so their turns may have little in common.",
          ),
      same && one.row.seed !== other.row.seed
        ? el("p", { class: "dim" }, "Their seeds differ, so their initial states may differ as well.")
        : null,
    );
  }

  function jump() {
    if (view.first === null) return el("p", { class: "dim" }, "All turns are equal.");
    const { a, b } = view.rows[view.first];
    return el(
      "button",
      { class: "button small", type: "button", title: "d", on: { click: () => choose(view.first, true) } },
      `First difference: turn ${(a ?? b) + 1}`,
    );
  }

  function summary(detail, side) {
    const { row } = detail;
    return el(
      "div",
      { class: "cell card head", "data-side": "AB"[side] },
      el("h2", {}, el("a", { href: `#/episode/${row.id}` }, `${"AB"[side]}: episode ${row.id}`)),
      steps.verdict(row),
      el("p", { class: "dim" }, Viewer.line(steps.player(row, row.source), 160)),
    );
  }

  function cell(side, content) {
    return el("div", { class: "cell", "data-side": "AB"[side] }, content);
  }

  function pair(i) {
    const { rows, details } = view;
    const row = rows[i];
    const sides = ["a", "b"].map((name, side) => cell(side, row[name] === null ? missing(side, i) : brief(i, side)));
    const line = i === view.first ? el("p", { class: "parting", id: "first-difference" }, "First difference") : null;
    const changed = row.seen ? seenDiff(details[0].turns[row.a].observation, details[1].turns[row.b].observation) : null;
    const label = `Turn ${(row.a ?? row.b) + 1}${row.action ? ", different" : ""}`;
    const node = el("div", { class: `pair${row.action ? " different" : ""}`, role: "group", "aria-label": label }, line, sides, changed);
    view.nodes.set(i, node);
    return node;
  }

  /* The difference of two observations; nothing if they have little in common. */
  function seenDiff(before, after) {
    const found = Viewer.diff.textDiff(before, after);
    if (!found) return null;
    const label = "Difference of the observations";
    return el("section", { class: "seen-diff card", "aria-label": label }, el("h4", { class: "label" }, "Observations, A to B"), found);
  }

  /* The place of a turn that the other episode does not have. */
  function missing(side, i) {
    const name = "ab"[side];
    const ended = view.rows.slice(i).every((row) => row[name] === null);
    return el("p", { class: "gone dim" }, ended ? "The episode had ended." : `Only in ${"BA"[side]}.`);
  }

  function brief(i, side) {
    const row = view.rows[i];
    const [number, other] = [row["ab"[side]], row["ab"[1 - side]]];
    const detail = view.details[side];
    const turn = detail.turns[number];
    const on = { onSelect: () => choose(i, true), seen: SEEN, compact: other !== null };
    if (detail.team) {
      const shown = Viewer.team.turn(detail.team, number, turn, on);
      const against = view.details[1 - side].team;
      Viewer.team.markDifferences(shown, detail.team.turns[number], against && other !== null ? against.turns[other] : null);
      return shown;
    }
    const shown = Viewer.turn(turn, number + 1, on);
    if (row.action) shown.querySelector(".act").classList.add("different");
    if (row.seen) shown.querySelector(".seen").classList.add("different");
    return shown;
  }

  const address = () =>
    Viewer.address(`compare/${view.details.map(Viewer.links.reference).join("/")}`, { row: view.index ? view.index + 1 : "" });

  function label(row) {
    if (!row) return "End";
    if (row.a === row.b) return `Turn ${row.a + 1}`;
    const turn = (index) => (index === null ? "–" : index + 1);
    return `Turn ${turn(row.a)} | ${turn(row.b)}`;
  }

  function choose(index, scroll) {
    const { rows, nodes } = view;
    view.index = Math.max(0, Math.min(index || 0, rows.length));
    view.where.textContent = label(rows[view.index]);
    const chosen = nodes.get(view.index);
    for (const node of view.pairs.children) {
      const isNow = node === chosen;
      node.classList.toggle("now", isNow);
      node.querySelectorAll(".turn").forEach((turn) => turn.classList.toggle("now", isNow));
    }
    if (!scroll) return;
    history.replaceState(null, "", address());
    steps.show(chosen, view.controls);
  }

  function onKey(event) {
    if (!steps.isPageKey(event)) return;
    const to = {
      ArrowRight: view.index + 1,
      j: view.index + 1,
      ArrowLeft: view.index - 1,
      k: view.index - 1,
      Home: 0,
      End: view.rows.length,
      d: view.first,
    }[event.key];
    if (to === undefined || to === null) return;
    event.preventDefault();
    choose(to, true);
  }
})();
