/* WebArena and MiniWoB: the page as a tree, the target of the next action, and the changes of the page. */
(function () {
  "use strict";
  const { el, svg } = Viewer;
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

  const GAP = 7; // pixels between an element and the box around it
  let treeIsOpen = false; // kept from turn to turn

  /* The box of the target over a picture of `width` by `height` pixels. */
  function overlay(width, height, box) {
    const [x, y, w, h] = box;
    const [left, top] = [Math.max(x - GAP, 2), Math.max(y - GAP, 2)];
    const size = { width: Math.min(x + w + GAP, width - 2) - left, height: Math.min(y + h + GAP, height - 2) - top, rx: 8 };
    const halo = svg("rect", { class: "halo", x: left, y: top, ...size });
    const line = svg("rect", { class: "line", x: left, y: top, ...size });
    return svg("svg", { class: "wa-box", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, halo, line);
  }

  function picture(source, label, box) {
    const image = el("img", { class: "wa-image", src: source, alt: label });
    const frame = el("div", { class: "wa-frame" }, image);
    image.addEventListener("error", () => frame.replaceChildren(el("p", { class: "dim" }, "The image is missing.")));
    if (box)
      image.addEventListener("load", () => frame.append(overlay(image.naturalWidth, image.naturalHeight, box)));
    return frame;
  }

  /* Show a picture in the size of the window, until a click or Escape. */
  function enlarge(source, label, box) {
    const dialog = el("dialog", { class: "wa-large", "aria-label": label }, picture(source, label, box));
    dialog.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  function figure(state, detail, title, box) {
    const source = Viewer.image(detail.row.id, state.image);
    if (!source) return null;
    const open = el(
      "button",
      { class: "wa-open", type: "button", title: "Enlarge", on: { click: () => enlarge(source, title, box) } },
      picture(source, title, box),
    );
    return el("figure", { class: "wa-figure" }, el("figcaption", {}, title), open);
  }

  /* The page's picture before the action, with a box around its target, and after it. */
  function pictures(states, index, detail) {
    const [state, next] = [states[index], states[index + 1]];
    const before = state.image && figure(state, detail, next ? "Before the action" : "At the end", state.box);
    const after = next && next.image && figure(next, detail, "After the action", null);
    return before || after ? el("div", { class: "wa-pictures" }, before, after) : null;
  }

  /* How to get pictures, if no state has one. */
  function unseen(states) {
    if (states.some((state) => state.image)) return null;
    const option = el("code", {}, "--env-arg record_screenshots=true");
    return el("p", { class: "p-empty" }, "No pictures were recorded; ", option, " records them.");
  }

  /* Below pictures, the tree opens on request. */
  function tree(shared, state, under) {
    if (!state.lines.length) return null;
    if (!under) return page(shared, state);
    const summary = el("summary", {}, `The page as a tree (${Viewer.plural(state.lines.length, "line")})`);
    const details = el("details", { class: "wa-fold", open: treeIsOpen }, summary, page(shared, state));
    details.addEventListener("toggle", () => (treeIsOpen = details.open));
    return details;
  }

  Viewer.panels.webarena = {
    title: "The page",
    drawsObservation: true,
    draw(states, index, detail) {
      const shared = states[0].shared;
      const state = states[index];
      const images = pictures(states, index, detail);
      return el(
        "div",
        { class: "p-box p-webarena" },
        tabs(state),
        bar(state),
        notes(state),
        facts(state, index),
        images || unseen(states),
        tree(shared, state, images !== null),
        gone(shared, state),
      );
    },
  };
})();
