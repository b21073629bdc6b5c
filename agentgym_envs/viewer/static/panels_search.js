/* Search: the queries so far, their passages, the gold passages, and the answer. */
(function () {
  "use strict";
  const { el } = Viewer;
  const SHOWN = 700;

  const goldChip = () => Viewer.chip("gold", "good", "contains the answer, or leads to it");

  /* A passage of a result, with further marks in its head. */
  function passage(one, rank, text, ...marks) {
    const title = one.title || one.id || "untitled";
    const head = [el("span", { class: "se-rank" }, String(rank)), el("b", {}, Viewer.line(title, 120))];
    return el(
      "li",
      { class: `se-passage ${one.gold ? "gold" : ""}` },
      el("div", { class: "se-head" }, head, one.gold ? goldChip() : null, marks),
      el("p", {}, Viewer.text(text, { limit: SHOWN })),
    );
  }

  function results(shared, state) {
    if (!state.passages.length) return el("p", { class: "p-empty" }, "Nothing was found.");
    return el(
      "ol",
      { class: "se-passages" },
      state.passages.map((number, index) => passage(shared.passages[number], index + 1, shared.passages[number].text)),
    );
  }

  const golds = (shared, state) => state.passages.filter((number) => shared.passages[number].gold).length;

  /* A folded search of an earlier turn. Its passages are drawn when it is opened. */
  function earlier(shared, state, turn) {
    const found = golds(shared, state);
    const body = el("div", {});
    const summary = el(
      "summary",
      {},
      el("span", { class: "se-turn" }, `${turn}`),
      Viewer.line(state.query, 140),
      found ? Viewer.chip(`${found} gold`, "good") : null,
    );
    const open = (event) => event.target.open && Viewer.fill(body, results(shared, state));
    return el("details", { class: "se-earlier", on: { toggle: open } }, summary, body);
  }

  function answer(shared, state) {
    const tone = state.right ? "good" : "bad";
    return el(
      "div",
      { class: `se-answer ${tone}` },
      el("h3", {}, "Answer"),
      el("p", { class: "se-said" }, Viewer.line(state.answer, 300)),
      Viewer.chip(state.right ? "right" : "wrong", tone),
      accepted(shared),
    );
  }

  function accepted(shared) {
    if (!shared.answers.length) return el("p", { class: "p-empty" }, "The accepted answers are not in the record.");
    return el(
      "p",
      { class: "se-accepted" },
      "Accepted: ",
      shared.answers.slice(0, 12).map((one) => [el("q", {}, Viewer.line(one, 80)), " "]),
    );
  }

  /* The gold passages; `verb` says what happened to those that the agent has had. */
  function goldList(shared, index, verb = "found") {
    if (!shared.gold.length) return null;
    const row = (one) => {
      const found = one.turn !== null && one.turn <= index;
      const when = found ? `${verb} in turn ${one.turn}` : one.turn !== null ? `not yet ${verb}` : `never ${verb}`;
      return el(
        "li",
        { class: found ? "found" : "" },
        el("span", { class: "se-tick", "aria-hidden": "true" }, found ? "✓" : "○"),
        Viewer.line(one.title || one.id, 90),
        el("span", { class: "se-when" }, when),
      );
    };
    const found = shared.gold.filter((one) => one.turn !== null && one.turn <= index).length;
    return [
      el("h3", {}, `Gold passages (${found} of ${shared.gold.length} ${verb})`),
      el("ul", { class: "se-gold" }, shared.gold.map(row)),
    ];
  }

  function now(shared, state, index) {
    if (index === 0) return [el("p", { class: "p-empty" }, "Nothing has been searched yet."), accepted(shared)];
    if (state.answer !== null) return answer(shared, state);
    if (state.query === null) return el("p", { class: "p-empty" }, "This turn was neither a search nor an answer.");
    return [
      el("h3", {}, `Search of turn ${index}`),
      el("p", { class: "se-query" }, Viewer.line(state.query, 300)),
      results(shared, state),
    ];
  }

  Viewer.searchParts = { goldChip, goldList, passage };
  Viewer.panels.search = {
    title: "Searches",
    draw(states, index) {
      const shared = states[0].shared;
      const before = states
        .map((state, turn) => [state, turn])
        .slice(1, index)
        .filter(([state]) => state.query !== null);
      return el(
        "div",
        { class: "p-box p-search" },
        goldList(shared, index),
        now(shared, states[index], index),
        before.length
          ? [el("h3", {}, "Earlier searches"), before.reverse().map(([state, turn]) => earlier(shared, state, turn))]
          : null,
      );
    },
  };
})();
