/* One turn, and the end of an episode, as text. */
(function () {
  "use strict";
  const { el, chip } = Viewer;
  const SEEN = 2400; // characters of an observation before it is folded
  const COMPACT = 4; // lines of an observation that is shown elsewhere as well

  function part(kind, label, ...children) {
    return el("section", { class: `part ${kind}` }, el("h4", { class: "label" }, label), ...children);
  }

  function words(value, find, limit, lines) {
    if (!value) return el("p", { class: "body dim" }, "(nothing)");
    return el("div", { class: "body", dir: "auto" }, Viewer.text(value, { find, limit, lines }));
  }

  function flags(turn) {
    return [
      turn.invalid && chip("Invalid", "warn", "The action could not be parsed or carried out; the reply says why."),
      turn.truncated && chip("Truncated", "warn", "The answer reached its token limit, so its end is missing."),
      turn.reward ? chip(Viewer.signed(turn.reward, 3), turn.reward > 0 ? "good" : "bad", "Reward of this turn") : null,
    ];
  }

  function verdict(turn) {
    if (!turn.label) return null;
    const [text, tone, title] = Viewer.words.turnVerdict(turn.label);
    return chip(text, `${tone} turn-verdict`, title);
  }

  const TOOK = "Seconds of generation and of the environment, waiting included";
  const short = (seconds) => (seconds < 1 ? `${Viewer.number(seconds * 1000, 1)} ms` : `${Viewer.number(seconds, 1)} s`);
  const took = ({ seconds }) =>
    seconds ? el("span", { class: "sofar num", title: TOOK }, `${short(seconds[0])} + ${short(seconds[1])}`) : null;

  /* The tokens of the answer, and their rate. */
  function wrote({ info, seconds }) {
    if (typeof info.tokens !== "number") return null;
    const rate = seconds && seconds[0] > 0 ? `, ${Viewer.number(info.tokens / seconds[0], 1)} per second` : "";
    const title = `Tokens of the answer${rate}`;
    return el("span", { class: "sofar num", title }, Viewer.plural(info.tokens, "token"));
  }

  const marks = (turn) => [
    verdict(turn),
    ...flags(turn),
    wrote(turn),
    took(turn),
    el("span", { class: "sofar num", title: "Score after this turn" }, `score ${Viewer.number(turn.score, 3)}`),
  ];

  /* The full answer, if it contains more than the command. */
  function raw(turn, find) {
    if (turn.command === null || turn.action.trim() === turn.command.trim()) return null;
    return el(
      "details",
      { class: "raw" },
      el("summary", {}, "As written"),
      el("div", { class: "body mono" }, Viewer.text(turn.action, { find })),
    );
  }

  function action(turn, find) {
    if (turn.command === null) return part("act unread", "Answer, not a valid action", words(turn.action, find));
    return part("act", "Action", words(turn.command, find), raw(turn, find));
  }

  function numberOf(number, name, onSelect) {
    return el(
      "button",
      { class: "no num", type: "button", "aria-label": `Go to ${name.toLowerCase()}`, on: { click: onSelect } },
      number,
    );
  }

  const head = (number, name, onSelect, shown) =>
    el(
      "header",
      {},
      numberOf(number, name, onSelect),
      el("h3", {}, name),
      el("span", { class: "marks" }, shown),
    );

  const notes = (turn, find) => [
    turn.invalid ? el("p", { class: "note warn" }, "Not carried out: ", Viewer.text(turn.invalid, { find, limit: 600 })) : null,
    turn.truncated
      ? el("p", { class: "note warn" }, "The answer was truncated by the token limit of a turn: its end is missing.")
      : null,
  ];

  /* Parts for other views of a turn. */
  Viewer.parts = { part, words, flags, marks, action, head, notes };

  /* With `compact`, only the first lines of the observation are shown, as a panel or a difference shows it. */
  Viewer.turn = (turn, number, { find, onSelect, seen = SEEN, compact = false }) =>
    el(
      "article",
      { class: `turn card${turn.invalid ? " wrong" : ""}${turn.mistake ? " mistake" : ""}`, "aria-label": `Turn ${number}` },
      head(String(number), `Turn ${number}`, onSelect, marks(turn)),
      part("seen", "Observation", words(turn.observation, find, seen, compact ? COMPACT : undefined)),
      turn.thought ? part("thought", "Thought", words(turn.thought, find)) : null,
      action(turn, find),
      notes(turn, find),
    );

  /* The last observation, and the stop reason. `episode` is {row, meta, error, final_observation, lesson}. */
  Viewer.end = (episode, { find, onSelect }) =>
    el(
      "article",
      { class: `turn end card ${Viewer.words.tone(episode.row)}`, "aria-label": "End" },
      el(
        "header",
        {},
        numberOf("■", "The end", onSelect),
        el("h3", {}, "End"),
        el(
          "span",
          { class: "marks" },
          Viewer.words.outcome(episode.row),
          took(episode),
          el("span", { class: "sofar num" }, `score ${Viewer.number(episode.row.score, 3)}`),
        ),
      ),
      episode.final_observation ? part("seen", "Last observation", words(episode.final_observation, find, SEEN)) : null,
      el("p", { class: "note" }, Viewer.words.why(episode.row, episode.meta)),
      episode.error ? el("p", { class: "note bad mono" }, Viewer.text(episode.error, { limit: 1500 })) : null,
      episode.lesson ? part("thought", "Lesson for the next attempt", words(episode.lesson, find)) : null,
    );
})();
