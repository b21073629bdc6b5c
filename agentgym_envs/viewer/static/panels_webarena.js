/* WebArena and MiniWoB: the page as a tree, the target of the next action, and the changes of the page. */
(function () {
  "use strict";
  const { el } = Viewer;
  const LINE = /^(\t*)([\w-]+) ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(.*)$/s;
  const ACTED = new Set(["link", "button", "checkbox", "radio", "option", "menuitem", "tab", "switch"]);
  const FILLED = new Set(["textbox", "searchbox", "combobox", "spinbutton", "slider"]);
  const NEARLY_ALL = 0.7;
  const HEADS = new Set(["heading", "RootWebArea", "main", "navigation", "form", "dialog", "table"]);

  const plain = (quoted) => quoted.slice(1, -1).replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one));
  const family = (role) => (ACTED.has(role) ? "acted" : FILLED.has(role) ? "filled" : HEADS.has(role) ? "head" : "");

  /* The parts of a line. A line about omitted content has no role. */
  function parts(line) {
    const found = LINE.exec(line);
    if (!found) return { depth: 0, role: "", name: line.trim(), rest: "" };
    return { depth: found[1].length, role: found[2], name: plain(found[3]), rest: found[4].trim() };
  }

  function row(shared, [number, id], marks) {
    const { depth, role, name, rest } = parts(shared.lines[number]);
    return el(
      "li",
      { class: `wa-line ${marks}`, style: { "--depth": Math.min(depth, 14) } },
      el("span", { class: "wa-id" }, id === null ? "" : String(id)),
      role ? el("span", { class: `wa-role ${family(role)}` }, role) : null,
      el("span", { class: "wa-name" }, Viewer.line(name, 240)),
      rest ? el("span", { class: "wa-rest" }, Viewer.line(rest, 160)) : null,
    );
  }

  /* True if nearly all lines are new, so that marking them would not help. */
  const isNew = (state) => state.fresh.length > NEARLY_ALL * state.lines.length;

  function page(shared, state) {
    const fresh = new Set(isNew(state) ? [] : state.fresh);
    const rows = state.lines.map((pair, index) => {
      const marks = [fresh.has(index) ? "fresh" : "", index === state.target ? "target" : ""];
      return row(shared, pair, marks.filter(Boolean).join(" "));
    });
    const tree = el("ul", { class: "wa-tree", tabindex: "0", "aria-label": "The page as a tree" }, rows);
    const show = state.target ?? (isNew(state) ? 0 : state.fresh[0]);
    if (show)
      requestAnimationFrame(() => (tree.scrollTop = rows[show].offsetTop - tree.offsetTop - tree.clientHeight / 3));
    return tree;
  }

  function tabs(state) {
    if (state.tabs.length < 2) return null;
    const tab = (one) =>
      el(
        "li",
        { class: one.current ? "current" : "", "aria-current": one.current ? "true" : null },
        Viewer.line(one.title || "untitled", 40),
      );
    return el("ul", { class: "wa-tabs", "aria-label": "Tabs" }, state.tabs.map(tab));
  }

  function bar(state) {
    const current = state.tabs.find((tab) => tab.current);
    return el(
      "div",
      { class: "wa-bar" },
      current && current.title ? el("b", {}, Viewer.line(current.title, 90)) : null,
      el("code", {}, Viewer.line(state.url || "no address", 200)),
    );
  }

  function difference(state) {
    if (state.fresh.length + state.lost === 0) return "no change";
    if (isNew(state)) return "a new page";
    return `${Viewer.plural(state.fresh.length, "line")} new, ${Viewer.count(state.lost)} gone`;
  }

  /* The next action, and the number of changes since the page before. */
  function facts(state, index) {
    const next = state.command ? el("span", {}, "next: ", el("code", {}, Viewer.line(state.command, 120))) : null;
    const changed = index && state.page ? el("span", {}, difference(state)) : null;
    return next || changed ? el("p", { class: "wa-facts" }, next, changed) : null;
  }

  function gone(shared, state) {
    if (!state.gone.length || isNew(state)) return null;
    const rows = state.gone.map((number) => row(shared, [number, null], "gone"));
    const summary = el("summary", {}, `Removed since the page before (${Viewer.count(state.lost)})`);
    return el("details", { class: "wa-gone" }, summary, el("ul", { class: "wa-tree" }, rows));
  }

  function notes(state) {
    const omitted = state.omitted > 0 ? `${Viewer.plural(state.omitted, "more line")} not shown.` : "";
    return [state.note, omitted].filter(Boolean).map((text) => el("p", { class: "wa-note" }, Viewer.line(text, 400)));
  }

  Viewer.panels.webarena = {
    title: "The page",
    draw(states, index) {
      const shared = states[0].shared;
      const state = states[index];
      const image = state.image
        ? el("img", { class: "wa-image", src: state.image, alt: "The window at this turn" })
        : null;
      return el(
        "div",
        { class: "p-box p-webarena" },
        tabs(state),
        bar(state),
        notes(state),
        facts(state, index),
        image,
        state.lines.length ? page(shared, state) : null,
        gone(shared, state),
      );
    },
  };
})();
