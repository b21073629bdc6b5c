/* The training page: logged metrics by step, with links to the episodes of a step. */
(function () {
  "use strict";
  const { el, fill, number } = Viewer;
  const TITLES = {
    success: ["Success", "share"],
    score: ["Score", "score"],
    reward: ["Reward", ""],
    turns: ["Turns and turn limit", "count"],
    invalid_actions: ["Invalid actions", "share"],
    truncated_answers: ["Truncated answers", "share"],
    loss: ["Loss", ""],
    entropy: ["Entropy", ""],
    kl: ["KL to the reference", ""],
    "rollout/zero_variance_groups": ["Groups of equal scores", "share"],
    effective_sample_size: ["Effective sample size", "share"],
    sampler_kl: ["KL to the sampling policy", ""],
    success_low: ["Held-out success, lower bound", "share"],
    success_high: ["Held-out success, upper bound", "share"],
    grad_norm: ["Norm of the gradient", ""],
    learning_rate: ["Learning rate", "count"],
    reward_std: ["Spread of rewards", ""],
    "rollout/tokens_per_second": ["Sampled tokens per second", "count"],
    num_tokens: ["Tokens so far", "count"],
    step_time: ["Seconds per step", "count"],
    "rollout/tokens": ["Tokens per step", "count"],
  };
  const HEALTH = ["entropy", "truncated_answers", "rollout/zero_variance_groups", "effective_sample_size", "kl"];
  const FIRST = ["success", "score", "turns", "loss", ...HEALTH];
  const NEVER = ["max_turns"]; // drawn with the turns
  const OF_ALGORITHM = /(^|[/_])(loss|grad_norm)$/; // not comparable between algorithms, so each has its own plot
  const COLOURS = 6;
  const MORE_ROWS = 200;
  const POLL_MS = 3000; // a log also grows without new episodes
  const options = { hidden: new Set(), separateEnvs: null, smoothing: 0.6, chosen: null };
  let root = null;
  let runs = [];
  let cursor = null;
  let lastData = "";
  let timer = 0;

  const shownRuns = () => runs.filter((run) => !options.hidden.has(run.name));
  const envsOf = (list) => [...new Set(list.flatMap((run) => run.rows.map((row) => row.env)).filter(Boolean))].sort();
  const bySeparateEnvs = () => envsOf(shownRuns()).length > 0 && options.separateEnvs !== false;
  const titleOf = (key) => (TITLES[key] || [key, ""])[0];
  const kindOf = (key, lines) => {
    const kind = (TITLES[key] || ["", ""])[1];
    if (kind !== "score") return kind;
    return lines.every((line) => line.points.every(([, value]) => value >= 0 && value <= 1)) ? "share" : "";
  };

  /* One curve per shown run, or per environment of a run. With several runs, the colour identifies the run. */
  function curves() {
    const envs = envsOf(shownRuns());
    const several = shownRuns().length > 1;
    return shownRuns().flatMap((run) => {
      const own = bySeparateEnvs() ? envs.filter((env) => run.rows.some((row) => row.env === env)) : [];
      return (own.length ? own : [null]).map((env) => {
        const [first, second] = [runs.indexOf(run), env ? envs.indexOf(env) : 0];
        const name = [several && run.name, env].filter(Boolean).join(" · ") || "all episodes";
        return {
          run,
          env,
          name,
          colour: `var(--s${(several ? first : second) % COLOURS})`,
          dash: several && env ? second : several ? Math.floor(first / COLOURS) : second,
        };
      });
    });
  }

  function pointsOf(curve, key, isEval) {
    const rows = curve.run.rows.filter(
      (row) => row.env === curve.env && row.eval === isEval && typeof row[key] === "number",
    );
    return rows.map((row) => [row.step, row[key]]);
  }

  /* The curves of a series. A series that is not logged per environment has one curve per run. */
  function curvesOf(key) {
    const all = curves();
    if (all.some((curve) => curve.env && curve.run.rows.some((row) => row.env === curve.env && key in row))) return all;
    return all
      .filter((curve, place) => all.findIndex((other) => other.run === curve.run) === place)
      .map((curve) => {
        const several = shownRuns().length > 1;
        const first = several ? runs.indexOf(curve.run) : 0;
        return {
          ...curve,
          env: null,
          name: several ? curve.run.name : "all episodes",
          colour: several || !curve.env ? `var(--s${first % COLOURS})` : "var(--text)",
          dash: Math.floor(first / COLOURS),
        };
      });
  }

  function linesOf(key) {
    return curvesOf(key)
      .flatMap((curve) => {
        const lines = [{ ...curve, points: pointsOf(curve, key, false), kind: "" }];
        const evaluated = pointsOf(curve, key, true);
        if (evaluated.length)
          lines.push({
            ...curve,
            name: `${curve.name}, evaluated`.replace("all episodes, ", ""),
            points: evaluated,
            kind: "eval",
          });
        if (key === "turns")
          lines.push({
            ...curve,
            name: `${curve.name}, limit`.replace("all episodes, ", ""),
            points: pointsOf(curve, "max_turns", false),
            kind: "limit",
            dash: 0,
          });
        return lines;
      })
      .filter((line) => line.points.length);
  }

  function seriesNames() {
    const names = [...new Set(shownRuns().flatMap((run) => run.series))].filter((name) => !NEVER.includes(name));
    const place = (name) =>
      FIRST.includes(name) ? FIRST.indexOf(name) : name in TITLES ? FIRST.length : FIRST.length + 1;
    return names.sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  }

  function chosen() {
    if (options.chosen) return options.chosen;
    const names = seriesNames();
    return new Set([...FIRST, ...(names.includes("score") ? [] : ["reward"])].filter((name) => names.includes(name)));
  }

  /* Opens the episodes of a logged step. */
  function pick(step) {
    for (const run of shownRuns()) {
      if (run.rows.some((one) => one.step === step && one.episodes)) {
        location.hash = Viewer.address("", { step, source: runs.length > 1 ? run.source : "" });
        return;
      }
    }
    showNote(`There are no recorded episodes of step ${step}.`);
  }

  function showNote(text) {
    root.querySelector(".training-note").textContent = text;
  }

  const hint = () =>
    runs.some((run) => run.rows.some((row) => row.episodes)) && "Click on a step to list its episodes.";

  function legend() {
    const items = curves().map((curve) => el("li", {}, Viewer.lineSample(curve), curve.name));
    const grey = { colour: "var(--dim)", dash: 0 };
    const rows = shownRuns().flatMap((run) => run.rows);
    if (rows.some((row) => row.eval))
      items.push(el("li", {}, Viewer.lineSample({ ...grey, kind: "eval" }), "evaluated"));
    if (rows.some((row) => "max_turns" in row))
      items.push(el("li", {}, Viewer.lineSample({ ...grey, kind: "limit" }), "turn limit"));
    return el("ul", { class: "legend", "aria-label": "Lines" }, items);
  }

  function toggle(text, pressed, act) {
    return el(
      "button",
      { class: "button small", type: "button", "aria-pressed": String(pressed), on: { click: act } },
      text,
    );
  }

  function choices(label, buttons) {
    const props = { class: "choices", role: "group", "aria-label": label };
    return el("div", props, el("span", { class: "label" }, label), buttons);
  }

  function runButtons() {
    const press = (run) => () => {
      if (options.hidden.has(run.name)) options.hidden.delete(run.name);
      else if (shownRuns().length > 1) options.hidden.add(run.name);
      draw();
    };
    const buttons = runs.map((run) => toggle(run.name, !options.hidden.has(run.name), press(run)));
    return runs.length > 1 && choices("Runs", buttons);
  }

  function envButtons() {
    const set = (separateEnvs) => () => {
      options.separateEnvs = separateEnvs;
      draw();
    };
    const buttons = [toggle("Each", bySeparateEnvs(), set(true)), toggle("All together", !bySeparateEnvs(), set(false))];
    return envsOf(shownRuns()).length > 0 && choices("Environments", buttons);
  }

  function slider() {
    const shown = el("output", { class: "num dim", for: "smoothing" }, number(options.smoothing, 2));
    const onInput = (event) => {
      options.smoothing = Number(event.target.value);
      shown.textContent = number(options.smoothing, 2);
      drawPlots();
    };
    const input = el("input", {
      id: "smoothing",
      type: "range",
      min: 0,
      max: 0.95,
      step: 0.05,
      value: options.smoothing,
      on: { input: onInput },
    });
    return el(
      "div",
      { class: "choices" },
      el("label", { class: "label", for: "smoothing" }, "Smoothing"),
      input,
      shown,
    );
  }

  function seriesBoxes() {
    const now = chosen();
    const tick = (name) => (event) => {
      options.chosen = new Set(now);
      options.chosen[event.target.checked ? "add" : "delete"](name);
      now[event.target.checked ? "add" : "delete"](name);
      drawPlots();
      drawTable();
    };
    const boxes = seriesNames().map((name) =>
      el(
        "label",
        { title: name },
        el("input", { type: "checkbox", checked: now.has(name), on: { change: tick(name) } }),
        titleOf(name),
      ),
    );
    return el(
      "details",
      { class: "series" },
      el("summary", {}, `Plotted series (${boxes.length})`),
      el("div", { class: "boxes" }, boxes),
    );
  }

  function focusedPlot() {
    const figure = document.activeElement && document.activeElement.closest(".plots .figure");
    return figure ? figure.dataset.series : null;
  }

  /* The plots of a series: one, or one per algorithm of the runs. */
  function plotsOf(name) {
    const lines = linesOf(name);
    const algorithms = [...new Set(lines.map((line) => line.run.algorithm))];
    if (!OF_ALGORITHM.test(name) || algorithms.length < 2) return [{ name, title: titleOf(name), lines }];
    return algorithms.map((algorithm) => ({
      name: `${name} ${algorithm}`,
      title: `${titleOf(name)} · ${algorithm || "unknown algorithm"}`,
      lines: lines.filter((line) => line.run.algorithm === algorithm),
    }));
  }

  function drawPlots(focused = focusedPlot()) {
    const holder = root.querySelector(".plots");
    cursor = { step: cursor ? cursor.step : null, listeners: new Set() };
    const names = seriesNames().filter((name) => chosen().has(name));
    fill(
      holder,
      names
        .flatMap(plotsOf)
        .filter(({ lines }) => lines.length)
        .map(({ name, title, lines }) =>
          Viewer.plot({
            title,
            name,
            kind: kindOf(name, lines),
            lines,
            smoothing: options.smoothing,
            cursor,
            pick,
          }),
        ),
    );
    const again = focused && holder.querySelector(`[data-series="${CSS.escape(focused)}"] .plot`);
    if (again) again.focus();
  }

  function tableRow(run, row, names) {
    const values = names.map((name) =>
      el(
        "td",
        { class: "num" },
        typeof row[name] === "number"
          ? row[name] !== 0 && Math.abs(row[name]) < 1e-3
            ? row[name].toExponential(2)
            : number(row[name], 3)
          : "–",
      ),
    );
    const step =
      !row.episodes
        ? String(row.step)
        : el(
            "a",
            { href: Viewer.address("", { step: row.step, source: runs.length > 1 ? run.source : "" }) },
            String(row.step),
          );
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, step),
      runs.length > 1 && el("td", {}, run.name),
      el("td", {}, row.env || "all"),
      el("td", {}, row.eval ? "yes" : "no"),
      values,
    );
  }

  /* Draws the table, with the newest steps first. */
  function drawTable(most = MORE_ROWS) {
    const holder = root.querySelector(".numbers-body");
    if (!root.querySelector(".numbers").open) return fill(holder);
    const names = [...chosen()].flatMap((name) => (name === "turns" ? ["turns", "max_turns"] : [name]));
    const rows = shownRuns()
      .flatMap((run) => run.rows.map((row) => [run, row]))
      .sort(([, a], [, b]) => b.step - a.step);
    const heads = [
      "Step",
      runs.length > 1 && "Run",
      "Environment",
      "Evaluation",
      ...names.map((name) => (name === "max_turns" ? "Turn limit" : name === "turns" ? "Turns" : titleOf(name))),
    ];
    const cells = rows.slice(0, most).map(([run, row]) => tableRow(run, row, names));
    return fill(
      holder,
      Viewer.scroller("Numbers", heads.filter(Boolean), el("tbody", {}, cells)),
      rows.length > most &&
        el(
          "button",
          { class: "button small", type: "button", on: { click: () => drawTable(most * 5) } },
          `More (${Viewer.count(rows.length - most)} rows)`,
        ),
    );
  }

  function draw() {
    const isOpen = (name) => Boolean(root.querySelector(`${name}[open]`));
    const open = [isOpen(".series"), isOpen(".numbers")];
    const label =
      document.activeElement && root.contains(document.activeElement) ? document.activeElement.textContent : null;
    const focused = focusedPlot();
    const series = seriesBoxes();
    const numbers = el(
      "details",
      { class: "numbers card", on: { toggle: () => drawTable() } },
      el("summary", {}, "The numbers as a table"),
      el("div", { class: "numbers-body" }),
    );
    [series.open, numbers.open] = open;
    fill(
      root,
      el(
        "div",
        { class: "training" },
        el("h1", {}, "Training"),
        el("div", { class: "training-controls" }, runButtons(), envButtons(), slider(), series),
        legend(),
        el("p", { class: "training-note dim", role: "status" }, hint()),
        el("div", { class: "plots" }),
        numbers,
      ),
    );
    drawPlots(focused);
    const again = label && [...root.querySelectorAll("button, summary")].find((node) => node.textContent === label);
    if (again) again.focus();
  }

  async function load() {
    const here = root;
    let data;
    try {
      data = await Viewer.api("training");
    } catch (error) {
      if (here === root && !lastData)
        fill(here, Viewer.empty("Nothing to show", error.message));
      return;
    }
    const text = JSON.stringify(data);
    if (here !== root || !root || text === lastData) return;
    lastData = text;
    runs = data.runs.filter((run) => run.rows.length);
    if (runs.length) draw();
    else
      fill(
        root,
        Viewer.empty(
          "No training run here",
          "Open the folder of a training run of agentgym train, or the step folders of AgentGym-RL.",
        ),
      );
  }

  function open(holder) {
    root = holder;
    lastData = "";
    cursor = null;
    if (!Viewer.exported) timer = setInterval(() => document.hidden || load(), POLL_MS);
    return load();
  }

  function close() {
    clearInterval(timer);
    root = null;
  }

  Viewer.pages.training = { title: "Training", open, close };
})();
