/* Two episodes of one task side by side, turn by turn. */
(function () {
  "use strict";
  const { el, fill, steps } = Viewer;
  const SEEN = 900;
  let view = null;

  const page = { title: "Comparison" };
  Viewer.pages.compare = page;

  page.open = async (root, params) => {
    const opened = { root, ids: params.ids, index: 0 };
    view = opened;
    root.append(el("p", { class: "empty", role: "status" }, "Reading both episodes…"));
    try {
      opened.details = await Promise.all([0, 1].map((i) => Viewer.api(`episodes/${params.ids[i]}`)));
    } catch (error) {
      if (view === opened) Viewer.nowhere(root, error.message);
      return;
    }
    if (view !== opened) return;
    document.title = `Episodes ${params.ids[0]} and ${params.ids[1]}`;
    opened.length = Math.max(...opened.details.map((detail) => detail.turns.length));
    opened.first = firstDifference(opened.details);
    draw();
    choose(Number(params.query.turn || 1) - 1, Boolean(params.query.turn));
    addEventListener("keydown", onKey);
  };

  page.close = () => {
    view = null;
    removeEventListener("keydown", onKey);
  };

  /* The action of a turn as text; null if there is no such turn. */
  function actionOf(detail, i) {
    const turn = detail.turns[i];
    if (turn && detail.team) return Viewer.team.actions(detail.team.turns[i]);
    return turn ? (turn.command === null ? turn.action : turn.command).trim() : null;
  }

  /* The first turn with another action or observation; null if all turns are equal. */
  function firstDifference([one, other]) {
    const length = Math.max(one.turns.length, other.turns.length);
    for (let i = 0; i < length; i += 1) {
      const [a, b] = [one.turns[i], other.turns[i]];
      if (!a || !b || actionOf(one, i) !== actionOf(other, i) || a.observation !== b.observation) return i;
    }
    return null;
  }

  function draw() {
    const { details, root, length } = view;
    view.rows = Array.from({ length }, (_, i) => pair(i));
    view.rows.push(
      el(
        "div",
        { class: "pair", role: "group", "aria-label": "End" },
        details.map((detail, side) =>
          cell(side, Viewer.end({ ...detail, final_observation: "" }, { onSelect: () => choose(length, true) })),
        ),
      ),
    );
    view.where = el("span", { class: "where num", role: "status" });
    fill(
      root,
      head(),
      el(
        "div",
        { class: "controls card" },
        steps.bar(view.where, (by) => choose(view.index + by, true)),
        jump(),
      ),
      el("div", { class: "pair heads" }, details.map(summary)),
      el("div", { class: "pairs" }, view.rows),
    );
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
    return el(
      "button",
      { class: "button small", type: "button", title: "d", on: { click: () => choose(view.first, true) } },
      `First difference: turn ${view.first + 1}`,
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
    const [a, b] = view.details.map((detail) => detail.turns[i]);
    const different = !a || !b || actionOf(view.details[0], i) !== actionOf(view.details[1], i);
    const seen = Boolean(a && b && a.observation !== b.observation);
    const sides = [a, b].map((turn, side) =>
      cell(side, turn ? brief(turn, i, { side, different, seen }) : el("p", { class: "gone dim" }, "The episode had ended.")),
    );
    const line = i === view.first ? el("p", { class: "parting", id: "first-difference" }, "First difference") : null;
    return el(
      "div",
      {
        class: `pair${different ? " different" : ""}`,
        role: "group",
        "aria-label": `Turn ${i + 1}${different ? ", different" : ""}`,
      },
      line,
      sides,
    );
  }

  function brief(turn, i, { side, different, seen }) {
    const [team, other] = [view.details[side].team, view.details[1 - side].team];
    const on = { onSelect: () => choose(i, true), seen: SEEN };
    if (team) {
      const shown = Viewer.team.turn(team, i, turn, on);
      Viewer.team.markDifferences(shown, team.turns[i], other && other.turns[i]);
      return shown;
    }
    const shown = Viewer.turn(turn, i + 1, on);
    if (different) shown.querySelector(".act").classList.add("different");
    if (seen) shown.querySelector(".seen").classList.add("different");
    return shown;
  }

  function choose(index, scroll) {
    const { rows, length } = view;
    view.index = Math.max(0, Math.min(index || 0, length));
    view.where.textContent = view.index < length ? `Turn ${view.index + 1} of ${length}` : "End";
    rows.forEach((row, i) =>
      row.querySelectorAll(".turn").forEach((turn) => turn.classList.toggle("now", i === view.index)),
    );
    if (!scroll) return;
    Viewer.keepAddress(`compare/${view.ids[0]}/${view.ids[1]}`, { turn: view.index ? view.index + 1 : "" });
    steps.show(rows[view.index], view.root.querySelector(".controls"));
  }

  function onKey(event) {
    if (!steps.isPageKey(event)) return;
    const to = {
      ArrowRight: view.index + 1,
      j: view.index + 1,
      ArrowLeft: view.index - 1,
      k: view.index - 1,
      Home: 0,
      End: view.length,
      d: view.first,
    }[event.key];
    if (to === undefined || to === null) return;
    event.preventDefault();
    choose(to, true);
  }
})();
