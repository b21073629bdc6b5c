/* Names and explanations of outcomes. */
(function () {
  "use strict";
  const { el, icon } = Viewer;
  const STOPS = {
    success: ["Goal reached", "The goal was reached, and the environment ended the episode."],
    failure: ["Failed", "The environment ended the episode before the goal was reached."],
    turn_limit: ["Turn limit", "The turn limit was reached, so the episode was truncated."],
    token_limit: ["Token limit", "The token budget was used up, so the episode was truncated."],
    env_error: [
      "Environment error",
      "The environment failed. Such an episode is not used for metrics or training.",
    ],
    unknown: ["", "The log does not say how it ended."],
    closed: ["Closed", "The environment was closed during the episode."],
  };
  const TICK = "M3 8.5l3.2 3.2L13 5";
  const CROSS = "M4 4l8 8M12 4l-8 8";
  const BAR = "M4 8h8";

  function stop(name) {
    const [short, long] = STOPS[name] || [
      String(name || "unknown").replaceAll("_", " "),
      "The record gives no known reason.",
    ];
    return { short, long };
  }

  /* The explanation of the stop reason, with the turn limit if it is recorded. */
  function why(row, meta) {
    const limit = row.stop === "turn_limit" && meta && meta.max_turns;
    return stop(row.stop).long + (limit ? ` It was ${Viewer.plural(limit, "turn")}.` : "");
  }

  function tone(row) {
    if (row.success) return "good";
    return row.stop === "env_error" || row.stop === "closed" ? "warn" : "bad";
  }

  function outcome(row) {
    const kind = tone(row);
    const path = { good: TICK, bad: CROSS, warn: BAR }[kind];
    const text = row.success ? "Success" : kind === "warn" ? "No result" : "Failed";
    return el("span", { class: `chip ${kind} outcome` }, icon(path), text);
  }

  /* The score as a number and a bar. */
  function score(value) {
    const share = Math.max(0, Math.min(1, Number(value) || 0));
    return el(
      "span",
      { class: "gauge num" },
      el("span", { class: "bar", "aria-hidden": "true" }, el("span", { style: { width: `${share * 100}%` } })),
      el("span", { class: "value" }, Viewer.number(value)),
    );
  }

  /* The verdict on a labelled turn: short text, tone of the chip, explanation. */
  function turnVerdict(label) {
    const { before, after, regret, method } = label;
    const known = before !== null && after !== null;
    const how = method === "exact" ? "Exact." : "By the length of the oracle's plans.";
    const ways = known ? `${before} to go before this turn, ${after} after it. ${how}` : how;
    switch (label.verdict) {
      case "on plan":
        return ["On plan", "good", ways];
      case "detour":
        return [`Detour +${regret}`, "warn", `${Viewer.plural(regret, "turn")} lost: ${ways}`];
      case "lost":
        return ["Out of reach", "bad", `The goal can no longer be reached. ${how}`];
      default:
        return ["No verdict", "", "The oracle knows no way to the goal from here, and there is no proof that none exists."];
    }
  }

  /* The name of an environment without our namespace. */
  const env = (name) => String(name).replace(/^AgentGym\//, "");

  /* The policy and its agent. */
  const policy = (row) => [row.policy, row.agent].filter(Boolean).join(" · ");

  Viewer.words = { env, policy, stop, why, tone, outcome, turnVerdict, score };
})();
