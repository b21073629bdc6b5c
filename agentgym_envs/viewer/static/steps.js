/* Navigation between turns, shared by the pages of one episode and of a comparison. */
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

  /* Previous and next buttons with a status line; `go` receives -1 or 1, `between` is placed between the buttons. */
  function bar(where, go, between = null) {
    const before = button("Previous turn", LEFT, "←", () => go(-1));
    return el(
      "div",
      { class: "steps" },
      before,
      between,
      button("Next turn", RIGHT, "→", () => go(1)),
      where,
    );
  }

  /* The goal below the controls; it is shown while the page's heading, which has it in full, is out of sight. */
  const floatingGoal = (row) => {
    const text = row.goal || row.task;
    return el("p", { class: "floating-goal", title: text, "aria-hidden": "true" }, el("span", { class: "label" }, "Goal"), Viewer.line(text, 300));
  };

  function followGoal(heading, controls) {
    const isOut = ([entry]) => controls.classList.toggle("afloat", !entry.isIntersecting);
    new IntersectionObserver(isOut, { rootMargin: `-${document.querySelector(".top").offsetHeight}px 0px 0px` }).observe(heading);
  }

  const crumb = (href, text) => el("a", { class: "button small bare", href }, icon(LEFT), text);

  /* The line with the result of an episode. */
  const verdict = (row, ...more) =>
    el(
      "p",
      { class: "verdict" },
      Viewer.words.outcome(row),
      Viewer.words.score(row.score),
      el("span", { class: "num" }, Viewer.plural(row.turns, "turn")),
      ...more,
    );

  /* The policy, training step and seed of an episode. */
  const player = (row, ...more) =>
    [Viewer.words.policy(row), row.step === null ? "" : `step ${row.step}`, ...more, `seed ${row.seed}`]
      .filter(Boolean)
      .join(" · ");

  /* Scrolls an element to below the sticky header of the page. */
  function show(item, controls, { first = false, jump = false } = {}) {
    const goal = controls.querySelector(".floating-goal");
    const headerHeight = document.querySelector(".top").offsetHeight + controls.offsetHeight + goal.offsetHeight + 12;
    const top = item.getBoundingClientRect().top + scrollY - headerHeight;
    const behavior = Viewer.calm() || jump ? "auto" : "smooth";
    window.scrollTo({ top: first ? Math.min(top, scrollY) : top, behavior });
  }

  /* True if a key press is for the page. */
  const isPageKey = (event) => !Viewer.typing(event) && !document.getElementById("help").open;

  Viewer.steps = { LEFT, RIGHT, button, bar, floatingGoal, followGoal, crumb, verdict, player, show, isPageKey };
})();
