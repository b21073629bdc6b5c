/* Going from turn to turn: what the page of one episode and that of two have in common. */
(function () {
  "use strict";
  const { el, icon } = Viewer;
  const LEFT = "M10 3L5 8l5 5";
  const RIGHT = "M6 3l5 5-5 5";

  const button = (name, path, key, click) =>
    el(
      "button",
      { class: "button bare icon-only", type: "button", "aria-label": name, title: `${name} (${key})`, on: { click } },
      icon(path),
    );

  /* Buttons around a status line; `go` gets -1 or 1, `between` stands between the two. */
  function bar(where, go, between = null) {
    const before = button("Turn before", LEFT, "←", () => go(-1));
    return el(
      "div",
      { class: "steps" },
      before,
      between,
      button("Turn after", RIGHT, "→", () => go(1)),
      where,
    );
  }

  const crumb = (href, text) => el("a", { class: "button small bare", href }, icon(LEFT), text);

  /* The line that tells how an episode went. */
  const verdict = (row, ...more) =>
    el(
      "p",
      { class: "verdict" },
      Viewer.words.outcome(row),
      Viewer.words.score(row.score),
      el("span", { class: "num" }, Viewer.plural(row.turns, "turn")),
      ...more,
    );

  /* Who played an episode, in few words. */
  const player = (row, ...more) =>
    [Viewer.words.policy(row), row.step === null ? "" : `step ${row.step}`, ...more, `seed ${row.seed}`]
      .filter(Boolean)
      .join(" · ");

  /* Scroll so that an element stands below what sticks to the top of the page. */
  function show(item, controls, { first = false, jump = false } = {}) {
    const lid = document.querySelector(".top").offsetHeight + controls.offsetHeight + 12;
    const top = item.getBoundingClientRect().top + scrollY - lid;
    const behavior = Viewer.calm() || jump ? "auto" : "smooth";
    window.scrollTo({ top: first ? Math.min(top, scrollY) : top, behavior });
  }

  /* Whether a key press is for the page. */
  const heard = (event) => !Viewer.typing(event) && !document.getElementById("help").open;

  Viewer.steps = { LEFT, RIGHT, button, bar, crumb, verdict, player, show, heard };
})();
