/* The head of an episode's page: goal, result, facts, note, and the parts of its record. */
(function () {
  "use strict";
  const { el, chip, steps } = Viewer;

  Viewer.episodeHead = (detail, { crumbs, goal, files, mistakes }) => {
    const { row } = detail;
    return el(
      "header",
      { class: "episode-head" },
      el("div", { class: "crumbs" }, crumbs),
      goal,
      steps.verdict(
        row,
        row.invalid > 0 && chip(`${row.invalid} invalid`, "warn"),
        mistakes,
        el("span", { class: "dim" }, Viewer.words.why(row, detail.meta)),
      ),
      detail.error ? el("div", { class: "problem mono" }, Viewer.text(detail.error, { limit: 800 })) : null,
      facts(row),
      el(
        "div",
        { class: "folds" },
        detail.team ? null : fold("Instructions", detail.instructions),
        made(detail.meta.agent),
        fold("Record", record(detail)),
        el("span", { class: "files" }, files),
      ),
      Viewer.notes.draw(detail),
    );
  };

  function facts(row) {
    const all = [
      ["Environment", row.env],
      ["Group", row.group],
      ["Split", row.split],
      ["Task", row.task],
      ["Seed", row.seed],
      ["Policy", Viewer.words.policy(row)],
      ["Training step", row.step],
      ["Source", row.source],
      ["Tokens", row.tokens === null ? null : Viewer.count(row.tokens)],
      ["Time", row.seconds === null ? null : Viewer.duration(row.seconds)],
      ["Cost", row.cost === null ? null : `$${Viewer.number(row.cost, 4)}`],
    ];
    const known = all.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return el(
      "dl",
      { class: "facts" },
      known.map(([name, value]) =>
        el("div", {}, el("dt", { class: "label" }, name), el("dd", { class: "num" }, Viewer.line(value, 120))),
      ),
    );
  }

  function record(detail) {
    const { meta, env_kwargs, task_data } = detail;
    const kept = Object.entries({ meta, env_kwargs, task_data }).filter(
      ([, value]) => value && Object.keys(value).length,
    );
    return kept.length ? JSON.stringify(Object.fromEntries(kept), null, 2) : "";
  }

  function fold(name, text) {
    return text
      ? el("details", { class: "fold" }, el("summary", {}, name), el("div", { class: "body mono" }, Viewer.text(text)))
      : null;
  }

  /* The last plan of the agent, and the number of its summaries. */
  function made(agent) {
    const { plan, summaries } = agent || {};
    return [
      typeof plan === "string" && fold("Plan at the end", plan),
      summaries > 0 && el("span", { class: "dim num" }, Viewer.plural(summaries, "summary", "summaries")),
    ];
  }
})();
