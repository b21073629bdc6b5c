/* A team's episode: one column per agent, one row per turn, with the messages and gifts between agents. */
(function () {
  "use strict";
  const { el } = Viewer;
  const SEEN = 1200; // characters of an observation before it is folded
  const SAID = 400;
  const MAX_COLUMNS = 4; // more agents wrap, and messages between them have no connecting lines

  const colour = (index) => `var(--s${index % 6})`;
  const name = (team, index) => Viewer.line(team.agents[index], 60);
  const label = (text) => String(text).slice(0, 60);

  /* The name of an agent with its colour. */
  const who = (team, index) =>
    el("span", { class: "who", style: { "--who": colour(index) } }, el("i", { "aria-hidden": "true" }), name(team, index));

  /* One section per agent, side by side if there is room; sections with `wrong(index)` are marked. */
  function members(team, kind, one, wrong = () => false) {
    const size = team.agents.length;
    return el(
      "div",
      { class: `members ${kind} of-${size > MAX_COLUMNS ? "many" : size}` },
      team.agents.map((agent, index) =>
        el(
          "section",
          {
            class: wrong(index) ? "member wrong" : "member",
            "aria-label": label(agent),
            style: { "--who": colour(index) },
          },
          one(index),
        ),
      ),
    );
  }

  function words(kind, title, text, find, limit) {
    return text === null ? null : Viewer.parts.part(kind, title, Viewer.parts.words(text, find, limit));
  }

  /* The action of an agent, or the reason why there is none. */
  function act(cell, round, find) {
    if (cell.action !== null) return Viewer.parts.action(cell, find);
    if (round.action !== null) return null; // the text is not a joint action
    return el("p", { class: "idle dim" }, cell.acts ? "Writes nothing." : "Waits for another.");
  }

  function cell(team, round, index, { find, seen = SEEN }) {
    const own = round.cells[index];
    return [
      el("header", {}, who(team, index), el("span", { class: "marks" }, Viewer.parts.flags(own))),
      words("seen", "Observation", own.observation, find, seen),
      own.thought ? words("thought", "Thought", own.thought, find) : null,
      act(own, round, find),
      Viewer.parts.notes(own, find),
    ];
  }

  /* A message or gift, with a line from the column of the sender to those of the receivers. */
  function transfer(team, sent, find) {
    const ends = [sent.from, ...sent.to];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const gift = sent.amount !== undefined;
    const at = (first, last = first) => ({ "grid-column": `${first + 1} / ${last + 2}` });
    const mark = (kind, style) => el("span", { class: kind, "aria-hidden": "true", style });
    const what = gift
      ? el("b", {}, `${Viewer.count(sent.amount)} `, Viewer.line(sent.item, 80))
      : el("q", { class: "words" }, Viewer.text(sent.text, { find, limit: SAID }));
    return el(
      "li",
      { class: `transfer ${gift ? "gift" : "message"}`, style: { "--who": colour(sent.from), "--span": high - low + 1 } },
      mark("wire", at(low, high)),
      mark("start", at(sent.from)),
      sent.to.map((index) => mark("tip", at(index))),
      el(
        "div",
        { class: "said", style: at(low, high) },
        el(
          "span",
          { class: "route" },
          who(team, sent.from),
          el("span", { "aria-hidden": "true" }, "→"),
          el("span", { class: "hush" }, " to "),
          sent.to.map((index) => who(team, index)),
        ),
        el("span", { class: "hush" }, ": "),
        what,
      ),
    );
  }

  function transfers(team, round, find) {
    if (!round.transfers.length) return null;
    const size = team.agents.length;
    return el(
      "ul",
      {
        class: `transfers of-${size > MAX_COLUMNS ? "many" : size}`,
        style: { "--n": size },
        "aria-label": "Messages and gifts",
      },
      round.transfers.map((sent) => transfer(team, sent, find)),
    );
  }

  function turn(team, index, joint, on) {
    const round = team.turns[index];
    const hasText = round.cells.some((own) => own.observation !== null || own.action !== null);
    const hasInvalid = round.cells.some((own) => own.invalid);
    const wrong = (one) => Boolean(round.cells[one].invalid);
    const written = round.action === null ? null : { command: null, action: round.action };
    return el(
      "article",
      { class: `turn round card${written ? " wrong" : ""}`, "aria-label": `Turn ${index + 1}` },
      Viewer.parts.head(String(index + 1), `Turn ${index + 1}`, on.onSelect, Viewer.parts.marks(joint)),
      words("seen", "Reply to all", round.observation, on.find, on.seen || SEEN),
      hasText || written === null ? members(team, "", (one) => cell(team, round, one, on), wrong) : null,
      round.thought ? words("thought", "Thought", round.thought, on.find) : null,
      written && Viewer.parts.action(written, on.find),
      hasInvalid ? null : Viewer.parts.notes(joint, on.find),
      transfers(team, round, on.find),
    );
  }

  /* The end, with the last observation of each agent; `episode` as in Viewer.end. */
  function end(team, episode, on) {
    const { final } = team;
    const node = Viewer.end({ ...episode, final_observation: final ? "" : episode.final_observation }, on);
    const last = (index) => [
      el("header", {}, who(team, index)),
      final[index] === null
        ? el("p", { class: "idle dim" }, "No further observation.")
        : words("seen", "Last observation", final[index], on.find, SEEN),
    ];
    if (final && episode.final_observation) node.querySelector("header").after(members(team, "", last));
    return node;
  }

  /* The agents with their scores and instructions, above the turns. */
  function heads(team, find) {
    const one = (index) => [
      el("header", {}, who(team, index), Viewer.words.score(team.scores[index])),
      team.instructions[index]
        ? el(
            "details",
            { class: "fold" },
            el("summary", {}, "Instructions"),
            el("div", { class: "body mono" }, Viewer.text(team.instructions[index], { find })),
          )
        : null,
    ];
    return el("div", { class: "team-heads" }, members(team, "heads", one));
  }

  /* The answers of the agents in the tokens view, per turn; segment i belongs to agent i. */
  function answers(team, root) {
    const rows = team.turns.map(() => []);
    [...root.querySelectorAll(".segment")].forEach((segment, index) => {
      const runs = segment.querySelectorAll(".run.answer");
      const wrote = rows.filter((row, i) => index < team.agents.length && team.turns[i].cells[index].action !== null);
      if (runs.length === wrote.length) wrote.forEach((row, i) => row.push(runs[i]));
    });
    return rows;
  }

  /* The actions of all agents in a turn, as one text for comparison. */
  const actions = (round) => JSON.stringify(round.cells.map((own) => own.command ?? own.action ?? round.action));

  /* Marks the actions and observations that differ between two teams in a turn. */
  function markDifferences(node, round, other) {
    node.querySelectorAll(".members .member").forEach((section, index) => {
      const [own, its] = [round.cells[index], other && other.cells[index]];
      const different = (kind, value) => {
        const part = section.querySelector(kind);
        if (part && (!its || value(own) !== value(its))) part.classList.add("different");
      };
      different(".act", ({ command, action }) => command ?? action);
      different(".seen", ({ observation }) => observation);
    });
  }

  Viewer.team = { who, members, turn, end, heads, answers, actions, markDifferences };
})();
