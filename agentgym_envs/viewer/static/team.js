/* A team's episode: a column an agent, a row a turn, and between them what went from one to another. */
(function () {
  "use strict";
  const { el } = Viewer;
  const SEEN = 1200; // characters of an observation before it is folded
  const SAID = 400;
  const MOST_ABREAST = 4; // more agents wrap, and what goes between them is told without lines

  const colour = (place) => `var(--s${place % 6})`;
  const name = (team, place) => Viewer.line(team.agents[place], 60);
  const label = (text) => String(text).slice(0, 60);

  /* The agent's name with its colour, as it heads whatever is its own. */
  const who = (team, place) =>
    el("span", { class: "who", style: { "--who": colour(place) } }, el("i", { "aria-hidden": "true" }), name(team, place));

  /* Something for each agent, side by side where there is room; `wrong` says whose is to be marked. */
  function crew(team, kind, one, wrong = () => false) {
    const size = team.agents.length;
    return el(
      "div",
      { class: `crew ${kind} of-${size > MOST_ABREAST ? "many" : size}` },
      team.agents.map((agent, place) =>
        el(
          "section",
          {
            class: wrong(place) ? "member wrong" : "member",
            "aria-label": label(agent),
            style: { "--who": colour(place) },
          },
          one(place),
        ),
      ),
    );
  }

  function words(kind, title, text, find, limit) {
    return text === null ? null : Viewer.parts.part(kind, title, Viewer.parts.words(text, find, limit));
  }

  /* What an agent did, or why it did nothing. */
  function act(cell, round, find) {
    if (cell.action !== null) return Viewer.parts.action(cell, find);
    if (round.action !== null) return null; // what was written is none of anybody's
    return el("p", { class: "idle dim" }, cell.acts ? "Writes nothing." : "Waits for another.");
  }

  function cell(team, round, place, { find, seen = SEEN }) {
    const own = round.cells[place];
    return [
      el("header", {}, who(team, place), el("span", { class: "marks" }, Viewer.parts.flags(own))),
      words("seen", "Observation", own.observation, find, seen),
      own.thought ? words("thought", "Thought", own.thought, find) : null,
      act(own, round, find),
      Viewer.parts.notes(own, find),
    ];
  }

  /* A line from the sender's column to the receivers', and what it carries. */
  function hop(team, sent, find) {
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
      { class: `hop ${gift ? "gift" : "message"}`, style: { "--who": colour(sent.from), "--span": high - low + 1 } },
      mark("wire", at(low, high)),
      mark("start", at(sent.from)),
      sent.to.map((place) => mark("tip", at(place))),
      el(
        "div",
        { class: "said", style: at(low, high) },
        el(
          "span",
          { class: "route" },
          who(team, sent.from),
          el("span", { "aria-hidden": "true" }, "→"),
          el("span", { class: "hush" }, " to "),
          sent.to.map((place) => who(team, place)),
        ),
        el("span", { class: "hush" }, ": "),
        what,
      ),
    );
  }

  function hops(team, round, find) {
    if (!round.hops.length) return null;
    const size = team.agents.length;
    return el(
      "ul",
      {
        class: `hops of-${size > MOST_ABREAST ? "many" : size}`,
        style: { "--n": size },
        "aria-label": "Messages and gifts",
      },
      round.hops.map((sent) => hop(team, sent, find)),
    );
  }

  function turn(team, place, joint, on) {
    const round = team.turns[place];
    const told = round.cells.some((own) => own.observation !== null || own.action !== null);
    const apart = round.cells.some((own) => own.invalid);
    const wrong = (one) => Boolean(round.cells[one].invalid);
    const written = round.action === null ? null : { command: null, action: round.action };
    return el(
      "article",
      { class: `turn round card${written ? " wrong" : ""}`, "aria-label": `Turn ${place + 1}` },
      Viewer.parts.head(String(place + 1), `Turn ${place + 1}`, on.onSelect, Viewer.parts.marks(joint)),
      words("seen", "Answer to all", round.told, on.find, on.seen || SEEN),
      told || written === null ? crew(team, "", (one) => cell(team, round, one, on), wrong) : null,
      round.thought ? words("thought", "Thought", round.thought, on.find) : null,
      written && Viewer.parts.action(written, on.find),
      apart ? null : Viewer.parts.notes(joint, on.find),
      hops(team, round, on.find),
    );
  }

  /* The end, with what each saw last; `told` as for the end of any episode. */
  function end(team, told, on) {
    const { final } = team;
    const node = Viewer.end({ ...told, final_observation: final ? "" : told.final_observation }, on);
    const last = (place) => [
      el("header", {}, who(team, place)),
      final[place] === null
        ? el("p", { class: "idle dim" }, "Sees nothing more.")
        : words("seen", "Last observation", final[place], on.find, SEEN),
    ];
    if (final && told.final_observation) node.querySelector("header").after(crew(team, "", last));
    return node;
  }

  /* The agents with their scores and what they were told at first; it stands above the turns. */
  function heads(team, find) {
    const one = (place) => [
      el("header", {}, who(team, place), Viewer.words.score(team.scores[place])),
      team.instructions[place]
        ? el(
            "details",
            { class: "fold" },
            el("summary", {}, "Instructions"),
            el("div", { class: "body mono" }, Viewer.text(team.instructions[place], { find })),
          )
        : null,
    ];
    return el("div", { class: "team-heads" }, crew(team, "heads", one));
  }

  /* For each turn the answers of its agents among the tokens; segment i is that of agent i. */
  function answers(team, root) {
    const rows = team.turns.map(() => []);
    [...root.querySelectorAll(".segment")].forEach((segment, place) => {
      const runs = segment.querySelectorAll(".run.answer");
      const wrote = rows.filter((row, i) => place < team.agents.length && team.turns[i].cells[place].action !== null);
      if (runs.length === wrote.length) wrote.forEach((row, i) => row.push(runs[i]));
    });
    return rows;
  }

  /* What the agents did in a turn, as one text to compare by. */
  const done = (round) => JSON.stringify(round.cells.map((own) => own.command ?? own.action ?? round.action));

  /* Marks what two teams did and saw differently in one turn. */
  function tellApart(node, round, other) {
    node.querySelectorAll(".crew .member").forEach((section, place) => {
      const [own, its] = [round.cells[place], other && other.cells[place]];
      const unlike = (kind, value) => {
        const part = section.querySelector(kind);
        if (part && (!its || value(own) !== value(its))) part.classList.add("unlike");
      };
      unlike(".act", ({ command, action }) => command ?? action);
      unlike(".seen", ({ observation }) => observation);
    });
  }

  Viewer.team = { who, crew, turn, end, heads, answers, done, tellApart };
})();
