/* Search with pages: the query and its results, the open page with the part in view, and the gold passages. */
(function () {
  "use strict";
  const { el, chip } = Viewer;
  const { goldChip, goldList, passage } = Viewer.searchParts;

  function result(one, rank) {
    const marks = [el("code", { class: "dim" }, Viewer.line(one.id, 60)), one.opened && chip("opened", "accent")];
    return passage(one, rank, one.snippet, marks);
  }

  function results(state, folded) {
    if (state.query === null) return el("p", { class: "p-empty" }, "Nothing has been searched yet.");
    const list = state.results.length
      ? el("ol", { class: "se-passages" }, state.results.map((one, i) => result(one, i + 1)))
      : el("p", { class: "p-empty" }, "Nothing was found.");
    const query = el("p", { class: "se-query" }, Viewer.line(state.query, 300));
    if (!folded) return [el("h3", {}, "Search"), query, list];
    const summary = el("summary", {}, "Last search: ", Viewer.line(state.query, 140), ` (${Viewer.plural(state.results.length, "result")})`);
    return el("details", { class: "se-earlier" }, summary, list);
  }

  /* The parts of the open page as a bar, with the one in view marked. */
  function parts({ part, parts: all }) {
    if (!(all > 1) || all > 400) return null;
    const one = (_, i) => el("span", { class: i + 1 === part ? "now" : "" });
    return el("div", { class: "sp-parts", "aria-hidden": "true" }, Array.from({ length: all }, one));
  }

  /* The text in view, with the accepted answers marked. */
  function text(page, shared) {
    const answers = shared.answers.filter((one) => one.length > 1).sort((a, b) => b.length - a.length);
    const low = page.text.toLowerCase();
    const found = answers.find((one) => low.includes(one.toLowerCase()));
    return el("div", { class: "sp-text", tabindex: "0", role: "region", "aria-label": "The part in view" }, Viewer.text(page.text, { find: found || "", lines: 60 }));
  }

  function page(state, shared) {
    const { page: open } = state;
    if (!open) return el("p", { class: "p-empty" }, "No page is open.");
    const golds = open.ids.filter((one) => one.gold);
    return el(
      "section",
      { class: `sp-page ${golds.length ? "gold" : ""}` },
      el(
        "div",
        { class: "se-head" },
        el("b", {}, Viewer.line(open.title, 140)),
        el("span", { class: "dim num" }, open.parts > 1 ? `part ${open.part} of ${open.parts}` : "the whole page"),
        golds.length ? goldChip() : null,
      ),
      parts(open),
      text(open, shared),
      golds.length > 0 && el("p", { class: "se-accepted" }, "In view: ", golds.map((one) => [el("code", {}, Viewer.line(one.id, 60)), " "])),
    );
  }

  function places(state) {
    if (state.kind !== "find") return null;
    const one = ({ part, text: around }) => el("li", {}, el("span", { class: "se-rank" }, `part ${part}`), " ", Viewer.line(around, 260));
    return [
      el("h3", {}, "Find"),
      el("p", { class: "se-query" }, Viewer.line(state.text, 200)),
      state.places.length ? el("ul", { class: "sp-places" }, state.places.map(one)) : el("p", { class: "p-empty" }, "Not in the page."),
    ];
  }

  function answer(state, shared) {
    if (state.kind !== "answer") return null;
    const tone = state.right ? "good" : "bad";
    return el(
      "div",
      { class: `se-answer ${tone}` },
      el("h3", {}, "Answer"),
      el("p", { class: "se-said" }, Viewer.line(state.text, 300)),
      chip(state.right ? "right" : "wrong", tone),
      shared.answers.length > 0 &&
        el("p", { class: "se-accepted" }, "Accepted: ", shared.answers.slice(0, 12).map((one) => [el("q", {}, Viewer.line(one, 80)), " "])),
    );
  }

  Viewer.panels.searchpages = {
    title: "Pages",
    drawsObservation: true,
    draw(states, index) {
      const { shared } = states[0];
      const state = states[index];
      const searching = state.kind === "search" || state.kind === null;
      const open = state.page ? [el("h3", {}, "Open page"), page(state, shared)] : null;
      return el(
        "div",
        { class: "p-box p-search" },
        goldList(shared, index, "read"),
        answer(state, shared),
        places(state),
        searching ? [results(state, false), open] : [open, results(state, true)],
      );
    },
  };
})();
