/* The tokens view: given and sampled tokens of the model, as a trainer uses them. */
(function () {
  "use strict";
  const { el, fill, number, count } = Viewer;
  const HEAT = [
    // minimum probability of each level
    [0.9, "90 % and more"],
    [0.5, "50 to 90 %"],
    [0.2, "20 to 50 %"],
    [0.05, "5 to 20 %"],
    [0.01, "1 to 5 %"],
    [0, "below 1 %"],
  ];
  const CHUNK = 400; // tokens per block; blocks outside the viewport are not laid out
  const AT_ONCE = 3000; // tokens that are drawn at once; the others follow in slices
  const TABLE_ROWS = 500;
  const PLAIN = /^[\x20-\x7e]*$/;
  const options = { heat: true, only: false, spaces: false };
  let ids = 0;

  const percent = (share) => `${number(share * 100, share < 0.01 ? 3 : 1)} %`;
  const heatOf = (logprob) => HEAT.findIndex(([least]) => Math.exp(logprob) >= least);

  /* All tokens of a segment, those of the prompt first: {text, id, kind, mask, logprob, reward, index}. */
  function tokensOf(segment) {
    const prompt = segment.prompt.map((text, index) => ({
      text,
      id: (segment.prompt_ids || [])[index],
      kind: "prompt",
      mask: 0,
      logprob: null,
      reward: 0,
      index: null,
    }));
    const rest = segment.pieces.map((text, index) => {
      const mask = segment.mask[index];
      const logprob = mask && segment.logprobs ? segment.logprobs[index] : null;
      return {
        text,
        id: segment.ids[index],
        kind: mask ? "answer" : "seen",
        mask,
        logprob,
        reward: segment.rewards[index],
        index,
      };
    });
    return [...prompt, ...rest];
  }

  /* Runs of tokens of one kind: prompt, answer, observation. */
  function runsOf(tokens) {
    const runs = [];
    tokens.forEach((token, index) => {
      const last = runs[runs.length - 1];
      if (last && last.kind === token.kind) last.end = index + 1;
      else runs.push({ kind: token.kind, begin: index, end: index + 1 });
    });
    let answers = 0;
    for (const run of runs) run.number = run.kind === "answer" ? (answers += 1) : answers;
    return runs;
  }

  function statistics(tokens) {
    const trained = tokens.filter((token) => token.mask);
    const known = trained.filter((token) => token.logprob !== null);
    const mean = known.length ? known.reduce((sum, token) => sum + token.logprob, 0) / known.length : null;
    return {
      all: tokens.length,
      trained: trained.length,
      mean,
      reward: tokens.reduce((sum, token) => sum + token.reward, 0),
    };
  }

  function facts(tokens) {
    const found = statistics(tokens);
    const items = [
      ["Sampled", `${count(found.trained)} of ${count(found.all)} tokens`],
      ["Share", found.all ? percent(found.trained / found.all) : "–"],
      ["Mean log-probability", number(found.mean, 3)],
      ["Perplexity", found.mean === null ? "–" : number(Math.exp(-found.mean), 2)],
      ["Reward", number(found.reward, 3)],
    ];
    return el(
      "dl",
      { class: "facts" },
      items.map(([name, value]) =>
        el("div", {}, el("dt", { class: "label" }, name), el("dd", { class: "num" }, value)),
      ),
    );
  }

  /* The text of a token, with visible line ends and tabs, and boxes for invisible characters. */
  function textOf(text) {
    if (text === "") return el("span", { class: "part" }, "◌");
    return text
      .split(/([\n\t])/)
      .filter(Boolean)
      .map((part) => {
        if (part === "\n") return [el("span", { class: "sign" }, "↵"), "\n"];
        if (part === "\t") return [el("span", { class: "sign" }, "→"), "\t"];
        const spaced = options.spaces ? part.replaceAll(" ", "·") : part;
        return PLAIN.test(part) ? spaced : Viewer.text(spaced, { limit: 400 });
      });
  }

  function flag(reward) {
    return el(
      "span",
      { class: `flag ${reward > 0 ? "good" : "bad"}` },
      el("span", { class: "hush" }, "reward "),
      Viewer.signed(reward, 3),
    );
  }

  function tokenNode(token, index, prefix) {
    const heat = token.logprob === null ? "" : ` heat${heatOf(token.logprob)}`;
    const node = el(
      "span",
      { class: `tok ${token.kind}${heat}`, id: `${prefix}-${index}`, dataset: { mask: token.mask, index } },
      textOf(token.text),
    );
    return token.reward ? [node, flag(token.reward)] : node;
  }

  function describe(token) {
    const kinds = { prompt: "of the prompt", seen: "given, not sampled", answer: "sampled" };
    const items = [
      ["Token", token.text === "" ? "a part of the next character" : JSON.stringify(token.text)],
      ["Id", token.id],
      ["Mask", `${token.mask}, ${kinds[token.kind]}`],
    ];
    if (token.logprob !== null)
      items.push(["Log-probability", number(token.logprob, 4)], ["Probability", percent(Math.exp(token.logprob))]);
    if (token.reward) items.push(["Reward", Viewer.signed(token.reward, 4)]);
    return items.map(([name, value]) =>
      el(
        "span",
        { class: "item" },
        el("span", { class: "label" }, name),
        " ",
        typeof value === "string" ? Viewer.line(value, 80) : String(value),
      ),
    );
  }

  function headOf(run, tokens) {
    const names = { prompt: "Prompt", answer: `Answer ${run.number}`, seen: `Given after answer ${run.number}` };
    const own = tokens.slice(run.begin, run.end);
    const { mean } = statistics(own);
    const more = mean === null ? "" : `, mean log-probability ${number(mean, 2)}`;
    return el(
      "p",
      { class: "run-head" },
      el("b", {}, names[run.kind]),
      ` ${Viewer.plural(own.length, "token")}${more}`,
    );
  }

  /* The end of a block: after a line, or anywhere in a very long line. */
  function blockEnd(tokens, begin, end) {
    let at = begin + CHUNK;
    while (at < end && at < begin + 4 * CHUNK && !tokens[at - 1].text.endsWith("\n")) at += 1;
    return Math.min(at, end);
  }

  /* The empty blocks of a segment, and a function that fills each of them. */
  function blocksOf(tokens, prefix) {
    const work = [];
    const sections = runsOf(tokens).map((run) => {
      const section = el("div", { class: `run ${run.kind}` }, headOf(run, tokens));
      for (let begin = run.begin, end; begin < run.end; begin = end) {
        end = blockEnd(tokens, begin, run.end);
        const [first, last] = [begin, end];
        const block = el("div", { class: "block", style: { "--lines": Math.ceil((last - first) / 14) } });
        section.append(block);
        work.push({
          size: last - first,
          fill: () =>
            fill(
              block,
              tokens.slice(first, last).map((token, at) => tokenNode(token, first + at, prefix)),
            ),
        });
      }
      return section;
    });
    return { sections, work };
  }

  /* Fills some blocks at once and the rest in slices, so that the page stays responsive. */
  function fillBlocks(work) {
    let left = AT_ONCE;
    while (work.length && left > 0) {
      left -= work[0].size;
      work.shift().fill();
    }
    if (work.length) setTimeout(() => fillBlocks(work), 0);
  }

  /* Hovering, clicking and the arrow keys select a token; the line at the bottom describes it. */
  function follow(body, tokens, prefix, readout) {
    let at = null;
    function choose(index, scroll) {
      const node = document.getElementById(`${prefix}-${index}`);
      if (!node) return;
      const before = body.querySelector(".tok.chosen");
      if (before) before.classList.remove("chosen");
      at = index;
      node.classList.add("chosen");
      fill(readout, describe(tokens[index]));
      if (scroll) node.scrollIntoView({ block: "nearest" });
    }
    const onPoint = (event) => {
      const node = event.target.closest(".tok");
      if (node) choose(Number(node.dataset.index), false);
    };
    const isShown = (index) => !options.only || tokens[index].mask;
    body.addEventListener("pointerover", onPoint);
    body.addEventListener("click", onPoint);
    body.addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10, Home: -Infinity, End: Infinity }[
        event.key
      ];
      if (way === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      let index = Math.max(0, Math.min(tokens.length - 1, at === null ? 0 : at + way));
      const step = way > 0 ? 1 : -1;
      while (index >= 0 && index < tokens.length && !isShown(index)) index += step;
      if (index >= 0 && index < tokens.length) choose(index, true);
    });
  }

  function tableOf(tokens) {
    const body = el("tbody", {});
    const more = el("button", { class: "button small", type: "button", on: { click: add } }, "More rows");
    let at = 0;
    function add() {
      for (const token of tokens.slice(at, at + TABLE_ROWS)) {
        const cells = [
          JSON.stringify(token.text),
          token.id,
          token.mask,
          number(token.logprob, 4),
          token.logprob === null ? "–" : percent(Math.exp(token.logprob)),
          number(token.reward, 4),
        ];
        body.append(
          el(
            "tr",
            {},
            el("th", { scope: "row", class: "num" }, (at += 1)),
            cells.map((cell, index) =>
              el("td", { class: index ? "num" : "mono" }, index ? String(cell ?? "–") : Viewer.line(cell, 80)),
            ),
          ),
        );
      }
      more.hidden = at >= tokens.length;
    }
    add();
    const heads = ["Number", "Text", "Id", "Mask", "Log-probability", "Probability", "Reward"];
    return [Viewer.scroller("Tokens as a table", heads, body), more];
  }

  function segmentNode(segment, index, all, team) {
    const tokens = tokensOf(segment);
    const name = team ? String(team.agents[index]).slice(0, 60) : `Segment ${index + 1}`;
    const prefix = `tokens${(ids += 1)}`;
    const readout = el(
      "p",
      { class: "token-line num", "aria-live": "polite" },
      el("span", { class: "dim" }, "Point at a token, or use the arrow keys in the text."),
    );
    const { sections, work } = blocksOf(tokens, prefix);
    const body = el(
      "div",
      {
        class: "token-text mono",
        tabindex: "0",
        role: "group",
        "aria-label": `Tokens of ${team ? name : name.toLowerCase()}; arrow keys choose one`,
      },
      sections,
    );
    fillBlocks(work);
    follow(body, tokens, prefix, readout);
    const holder = el("div", {});
    const table = el(
      "details",
      { class: "token-table", on: { toggle: () => fill(holder, table.open ? tableOf(tokens) : null) } },
      el("summary", {}, "The tokens as a table"),
      holder,
    );
    const head = team
      ? el("h3", {}, Viewer.team.who(team, index))
      : all > 1 && el("h3", {}, `Segment ${index + 1} of ${all}`);
    return el(
      "section",
      { class: "segment", "aria-label": team ? name : `${name} of ${all}` },
      head,
      facts(tokens),
      el("div", { class: "card token-card" }, body, readout),
      table,
    );
  }

  function legend(heated) {
    const key = (name, text) => el("li", {}, el("span", { class: `tok ${name}` }, "token"), text);
    const steps = HEAT.map(([, text], index) =>
      el("li", {}, el("span", { class: `tok answer heat${index}` }, "token"), text),
    );
    return el(
      "div",
      { class: "token-legend" },
      el(
        "ul",
        { "aria-label": "Kinds of tokens" },
        key("answer", "sampled: mask 1, trained on"),
        key("seen", "given: mask 0"),
        el("li", {}, flag(0.5), "reward on the token before it"),
        el("li", {}, el("span", { class: "part" }, "◌"), "a part of the next character"),
      ),
      heated &&
        el(
          "ul",
          { class: "heat-legend", "aria-label": "Probability of sampled tokens" },
          el("li", { class: "label" }, "Probability"),
          steps,
        ),
    );
  }

  Viewer.tokens = {
    /* `data` is the response of /api/episodes/ID/tokens. The segments of a team are in the order of its agents. */
    draw(data, detail) {
      const segments = data.segments || [];
      const team = detail.team && detail.team.agents.length === segments.length ? detail.team : null;
      const note = data.note && el("p", { class: "token-note dim" }, data.note);
      if (!segments.length)
        return el("div", { class: "tokens" }, note || el("p", { class: "token-note dim" }, "There are no tokens."));
      const heated = segments.some((segment) => segment.logprobs);
      const holder = el("div", { class: team ? `segments of-${segments.length}` : "segments" });
      const root = el("div", { class: "tokens" });
      const look = () => {
        root.classList.toggle("heated", options.heat && heated);
        root.classList.toggle("only", options.only);
      };
      const again = () =>
        fill(
          holder,
          segments.map((segment, index) => segmentNode(segment, index, segments.length, team)),
        );
      const toggle = (name, text, act) =>
        el(
          "button",
          {
            class: "button small",
            type: "button",
            "aria-pressed": String(options[name]),
            on: {
              click: (event) => {
                options[name] = !options[name];
                event.currentTarget.setAttribute("aria-pressed", String(options[name]));
                act();
              },
            },
          },
          text,
        );
      const tools = el(
        "div",
        { class: "token-tools", role: "group", "aria-label": "How tokens are shown" },
        heated && toggle("heat", "Heat", look),
        toggle("only", "Sampled only", look),
        toggle("spaces", "Mark spaces", again),
      );
      root.append(tools, legend(heated));
      if (note) root.append(note);
      root.append(holder);
      look();
      again();
      return root;
    },
  };
})();
