/* One episode, turn by turn. */
(function () {
  "use strict";
  const { el, fill, chip, icon, steps } = Viewer;
  const PLAY_MS = 900;
  const MANY = 80; // with more turns, those outside the viewport are not laid out
  const SIDE_BY_SIDE = 2; // with more agents, the panel is below the turn
  const PLAY = "M5 3l8 5-8 5z";
  const PAUSE = "M5.5 3v10M10.5 3v10";
  const NARROW = matchMedia("(max-width: 1000px)"); // the panel is then below the current turn
  let view = null; // the state of the open episode; null if none is open

  const page = { title: "Episode" };
  Viewer.pages.episode = page;

  page.open = async (root, params) => {
    const opened = {
      root,
      index: 0,
      tab: params.query.tab || "turns",
      find: searched(),
      panels: null,
      playing: 0,
    };
    view = opened;
    root.append(el("p", { class: "empty", role: "status" }, "Reading the episode…"));
    try {
      opened.id = Number(await Viewer.links.find(params.ids[0]));
      opened.detail = await Viewer.api(`episodes/${opened.id}`);
    } catch (error) {
      if (view === opened) Viewer.nowhere(root, error.message);
      return;
    }
    if (view !== opened) return;
    document.title = `Episode ${opened.id}: ${String(opened.detail.row.goal || opened.detail.row.task).slice(0, 80)}`;
    addLabels(opened.detail);
    opened.attempts = attemptsOf(opened.detail);
    opened.current = opened.attempts.length - 1;
    draw();
    choose(Number(params.query.turn || 1) - 1, Boolean(params.query.turn));
    addEventListener("keydown", onKey);
    loadPanels(opened);
  };

  page.close = () => {
    pause();
    view = null;
    removeEventListener("keydown", onKey);
  };

  function searched() {
    return new URLSearchParams(Viewer.pages.list.address().split("?")[1] || "").get("q") || "";
  }

  /* Put the labels on their turns; `mistake` marks the first mistake. */
  function addLabels({ labels, turns }) {
    if (!labels) return;
    labels.turns.forEach((label, i) => turns[i] && Object.assign(turns[i], { label }));
    if (turns[labels.first_mistake - 1]) turns[labels.first_mistake - 1].mistake = true;
  }

  /* A button to the first mistake, and the turns lost in all; nothing without labels. */
  function mistakes({ labels }) {
    if (!labels) return null;
    const first = labels.first_mistake;
    const lost = labels.regret === null ? null : el("span", { class: "dim num" }, `regret ${labels.regret}`);
    if (!first) return [chip("No mistake", "good", "No turn has regret."), lost];
    const title = `Go to turn ${first} (m)`;
    const button = el("button", { class: "button small", type: "button", title, on: { click: toMistake } });
    fill(button, `First mistake: turn ${first}`);
    return [button, lost, labels.recovered && chip("Recovered", "good", "It came closer to the goal after the mistake.")];
  }

  function toMistake() {
    const { labels } = view.detail;
    if (!labels || !labels.first_mistake) return;
    if (view.current < view.attempts.length - 1) toAttempt(view.attempts.length - 1);
    if (view.tab !== "turns") toTab("turns");
    choose(labels.first_mistake - 1, true);
  }

  /* The attempts of a reflecting agent; the last one is the episode itself. */
  function attemptsOf(detail) {
    const earlier = (detail.attempts || []).map((made) => ({
      ...made,
      row: { ...detail.row, score: made.score, success: made.success, stop: made.stop },
    }));
    return [...earlier, detail];
  }

  const turns = () => view.attempts[view.current].turns;

  function draw() {
    const { detail, root } = view;
    view.main = el("div", { class: "tabbed", role: "tabpanel", id: "tabpanel" });
    view.aside = el("aside", { class: "panel card", "aria-label": "State of the environment", hidden: true });
    view.columns = el("div", { class: detail.team ? "columns team" : "columns" }, view.main, view.aside);
    view.controls = el("div", { class: "controls card" });
    fill(root, head(detail), attemptsBar(), view.controls, tabs(), view.columns, siblings(detail));
    drawControls();
    steps.followGoal(root.querySelector("h1"), view.controls);
    drawTab();
  }

  function head(detail) {
    const { row } = detail;
    const crumbs = [steps.crumb(Viewer.pages.list.address(), "Episodes"), el("span", { class: "dim num" }, `#${row.id}`), neighbours(row)];
    const goal = el("h1", {}, Viewer.text(row.goal || row.task, { limit: 300, find: view.find }));
    const files = [Viewer.links.button(address), Viewer.notes.files(row)];
    return Viewer.episodeHead(detail, { crumbs, goal, files, mistakes: mistakes(detail) });
  }

  function neighbours(row) {
    const step = (by, name, path, key) =>
      el(
        "button",
        {
          class: "button small bare",
          type: "button",
          "aria-label": `${name} episode in the list`,
          title: `${name} in the list (${key})`,
          on: { click: () => toNeighbour(row.id, by) },
        },
        icon(path),
      );
    return el("span", { class: "around" }, step(-1, "Previous", steps.LEFT, "["), step(1, "Next", steps.RIGHT, "]"));
  }

  async function toNeighbour(id, by) {
    const found = await Viewer.pages.list.neighbour(id, by).catch(() => null);
    if (found) location.hash = `#/episode/${found.id}`;
  }

  function attemptsBar() {
    if (view.attempts.length < 2) return null;
    const one = (made, i) => {
      const last = i === view.attempts.length - 1;
      const pressed = i === view.current;
      return el(
        "button",
        { class: "button small", type: "button", "aria-pressed": String(pressed), on: { click: () => toAttempt(i) } },
        `Attempt ${i + 1}${last ? " (last)" : ""}`,
        Viewer.words.outcome(made.row),
      );
    };
    view.attemptsButtons = el("div", { class: "attempts", role: "group", "aria-label": "Attempts" }, view.attempts.map(one));
    return view.attemptsButtons;
  }

  function toAttempt(i) {
    view.current = i;
    [...view.attemptsButtons.children].forEach((button, n) => button.setAttribute("aria-pressed", String(n === i)));
    drawControls();
    drawTab();
    choose(0, false);
  }

  function drawControls() {
    view.strip = Viewer.timeline(turns(), (index) => choose(index, true));
    view.play = steps.button("Play", PLAY, "space", toggle);
    view.where = el("span", { class: "where num", role: "status" });
    fill(
      view.controls,
      steps.bar(view.where, (by) => choose(view.index + by, true), view.play),
      view.strip.root,
      steps.floatingGoal(view.detail.row),
    );
  }

  function tabs() {
    const names = [["turns", "Turns"], view.detail.row.has_tokens && ["tokens", "Tokens"], ["raw", "Raw"]].filter(
      Boolean,
    );
    if (!names.some(([name]) => name === view.tab)) view.tab = "turns";
    const tab = ([name, text]) =>
      el(
        "button",
        {
          class: "tab",
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": "tabpanel",
          on: { click: () => toTab(name) },
        },
        text,
      );
    view.tabs = el(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "Views of the episode", on: { keydown: tabKey } },
      names.map(tab),
    );
    return view.tabs;
  }

  function tabKey(event) {
    const all = [...view.tabs.children];
    const next = all.indexOf(event.target) + { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!all[next]) return;
    event.stopPropagation();
    event.preventDefault();
    all[next].focus();
    all[next].click();
  }

  function toTab(name) {
    view.tab = name;
    drawTab();
    keep();
    if (name === "turns") mark(false);
  }

  function drawTab() {
    for (const tab of view.tabs.children) {
      const chosen = tab.id === `tab-${view.tab}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    view.main.setAttribute("aria-labelledby", `tab-${view.tab}`);
    view.items = [];
    if (view.tab === "turns") drawTurns();
    else if (view.tab === "raw") drawRaw();
    else drawTokens(view);
    drawPanel();
  }

  function drawTurns() {
    const made = view.attempts[view.current];
    const { team } = made;
    const on = (index) => ({ find: view.find, onSelect: () => choose(index, true), compact: expected().drawsObservation });
    const one = (turn, i) => (team ? Viewer.team.turn(team, i, turn, on(i)) : Viewer.turn(turn, i + 1, on(i)));
    const shown = { ...made, meta: view.detail.meta };
    const end = on(turns().length);
    view.items = [...turns().map(one), team ? Viewer.team.end(team, shown, end) : Viewer.end(shown, end)];
    const kind = `turn-list${team ? " of-team" : ""}${view.items.length > MANY ? " many" : ""}`;
    fill(view.main, team ? Viewer.team.heads(team, view.find) : null, el("div", { class: kind }, view.items));
  }

  function drawRaw() {
    const { siblings: others, ...rest } = view.detail;
    const text = JSON.stringify(rest, null, 2);
    const status = el("span", { class: "dim", role: "status" });
    const copy = () =>
      navigator.clipboard.writeText(text).then(
        () => (status.textContent = "Copied."),
        () => (status.textContent = "The browser does not allow this page to copy."),
      );
    const button = el("button", { class: "button small", type: "button", on: { click: copy } }, "Copy JSON");
    fill(
      view.main,
      el(
        "div",
        { class: "card rawbox" },
        el("p", {}, button, status),
        el(
          "div",
          { class: "mono", tabindex: "0", role: "region", "aria-label": "JSON of the episode" },
          Viewer.text(text, { limit: 20000, lines: Infinity }),
        ),
      ),
    );
  }

  async function drawTokens(opened) {
    fill(opened.main, el("p", { class: "empty", role: "status" }, "Reading the tokens…"));
    let shown;
    try {
      opened.tokens = opened.tokens || (await Viewer.api(`episodes/${opened.detail.row.id}/tokens`));
      shown = Viewer.tokens.draw(opened.tokens, opened.detail);
    } catch (error) {
      shown = el("p", { class: "empty" }, error.message);
    }
    if (view !== opened || opened.tab !== "tokens") return;
    fill(opened.main, shown);
    mark(opened.index > 0);
  }

  async function loadPanels(opened) {
    try {
      opened.panels = await Viewer.api(`episodes/${opened.detail.row.id}/panels`);
    } catch (error) {
      opened.panels = { kind: null, states: [], note: error.message };
    }
    if (view === opened) drawPanel();
  }

  /* The state before the current turn; states[i] is the one after i actions. */
  function drawPanel() {
    const { panels, aside, current, attempts } = view;
    const kind = panels && Viewer.panels[panels.kind];
    const earlier = current < attempts.length - 1;
    aside.hidden = view.tab !== "turns" || earlier || (panels !== null && !kind && !panels.note);
    view.columns.classList.toggle("alone", aside.hidden);
    if (aside.hidden) return;
    const { team } = view.detail;
    const under = NARROW.matches || (team && team.agents.length > SIDE_BY_SIDE);
    view.columns.classList.toggle("under", Boolean(under));
    if (under) view.items[view.index].after(aside);
    else if (aside.parentNode !== view.columns) view.columns.append(aside);
    const waiting = panels ? panels.note : "The episode is being replayed to show its world…";
    const note = waiting ? el("p", { class: "dim small" }, Viewer.text(waiting)) : null;
    const title = el(
      "h2",
      {},
      (kind || expected()).title,
      el("span", { class: "dim" }, view.index < turns().length ? ` before turn ${view.index + 1}` : " at the end"),
    );
    fill(aside, title, note, kind ? drawState(kind) : null);
  }

  /* The panel for the name of the environment, before the states are loaded. */
  function expected() {
    const name = view.detail.row.env.toLowerCase();
    const found = Object.keys(Viewer.panels).filter((one) => name.includes(one));
    const key = found.sort((a, b) => b.length - a.length)[0];
    return key ? Viewer.panels[key] : { title: "Environment" };
  }

  function drawState(kind) {
    try {
      const { states } = view.panels;
      return kind.draw(states, Math.min(view.index, states.length - 1), view.detail);
    } catch (error) {
      return el("p", { class: "dim" }, `This state could not be drawn: ${error.message}`);
    }
  }

  function choose(index, scroll) {
    view.index = Math.max(0, Math.min(index || 0, turns().length));
    const { length } = turns();
    view.strip.select(view.index);
    view.where.textContent =
      view.index < length ? `Turn ${view.index + 1} of ${length}` : `End of ${Viewer.plural(length, "turn")}`;
    if (view.playing && view.index === length) pause();
    drawPanel();
    mark(scroll);
    if (scroll) keep();
  }

  function address() {
    const { detail, index, tab } = view;
    const query = { turn: index ? index + 1 : "", tab: tab === "turns" ? "" : tab };
    return Viewer.address(`episode/${Viewer.links.reference(detail)}`, query);
  }

  const keep = () => history.replaceState(null, "", address());

  /* The answers in the tokens view, if there is one per turn; a turn of a team has several or none. They are looked up
     each time, as the view may have been drawn again. */
  function answers() {
    if (view.detail.team) return Viewer.team.answers(view.detail.team, view.main);
    const found = [...view.main.querySelectorAll(".run.answer")];
    return found.length === turns().length ? found : [];
  }

  function mark(scroll) {
    const items = view.tab === "tokens" ? answers() : view.items;
    items.forEach((item, i) => {
      for (const node of [item].flat()) {
        node.classList.toggle("now", i === view.index);
        node.setAttribute("aria-current", i === view.index ? "step" : "false");
      }
    });
    const [item] = [items[view.index]].flat();
    if (!item || !scroll) return;
    steps.show(item, view.controls, { first: view.index === 0, jump: Boolean(view.playing) });
  }

  function toggle() {
    if (view.playing) return pause();
    if (view.index === turns().length) choose(0, true);
    view.playing = setInterval(() => choose(view.index + 1, true), PLAY_MS);
    setPlayButton("Pause", PAUSE);
  }

  function pause() {
    if (!view || !view.playing) return;
    clearInterval(view.playing);
    view.playing = 0;
    setPlayButton("Play", PLAY);
  }

  function setPlayButton(name, path) {
    view.play.setAttribute("aria-label", name);
    view.play.title = `${name} (space)`;
    fill(view.play, icon(path));
  }

  function siblings(detail) {
    if (!detail.siblings.length) return null;
    const one = (row) =>
      el(
        "li",
        {},
        el("a", { href: `#/episode/${row.id}` }, `#${row.id}`),
        Viewer.words.outcome(row),
        Viewer.words.score(row.score),
        el("span", { class: "num dim" }, Viewer.plural(row.turns, "turn")),
        el("span", { class: "dim" }, Viewer.line(steps.player(row, row.source), 120)),
        el(
          "a",
          {
            class: "button small",
            href: `#/compare/${detail.row.id}/${row.id}`,
            "aria-label": `Compare with episode ${row.id}`,
          },
          "Compare",
        ),
      );
    return el(
      "section",
      { class: "siblings card", "aria-labelledby": "siblings" },
      el("h2", { id: "siblings" }, "Other episodes of this task"),
      el("ul", {}, detail.siblings.map(one)),
    );
  }

  const KEYS = {
    ArrowRight: () => choose(view.index + 1, true),
    ArrowLeft: () => choose(view.index - 1, true),
    j: () => choose(view.index + 1, true),
    k: () => choose(view.index - 1, true),
    Home: () => choose(0, true),
    End: () => choose(turns().length, true),
    m: toMistake,
    " ": toggle,
    "[": () => toNeighbour(view.detail.row.id, -1),
    "]": () => toNeighbour(view.detail.row.id, 1),
  };

  function onKey(event) {
    if (!steps.isPageKey(event) || !KEYS[event.key]) return;
    if (event.key === " " && event.target.matches("button, a, summary")) return;
    if (event.key !== " ") pause();
    event.preventDefault();
    KEYS[event.key]();
  }
})();
