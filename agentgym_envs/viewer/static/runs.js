/* The table of all runs side by side, and the page of one run. */
(function () {
  "use strict";
  const { el, fill, number } = Viewer;
  const percent = (value) => `${number(100 * value, 1)} %`;
  const POLL_MS = 5000;
  let view = null; // the state of the open page; null if none is open

  /* A duration in the largest fitting unit. */
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "–";
    if (seconds < 1) return `${number(seconds * 1000, 0)} ms`;
    if (seconds < 120) return `${number(seconds, 1)} s`;
    return seconds < 7200 ? `${number(seconds / 60, 1)} min` : `${number(seconds / 3600, 1)} h`;
  }

  const when = (time) => new Date(time * 1000).toISOString().slice(0, 16).replace("T", " ");
  const money = (dollars) => (dollars === null ? "–" : `$${number(dollars, dollars < 1 ? 4 : 2)}`);
  const large = (value) => (value >= 1000 ? Viewer.count(Math.round(value)) : number(value, 1));

  /* A share with its interval, as numbers and as a mark on a line from 0 to 1. */
  function share(estimate) {
    if (!estimate) return el("span", { class: "dim" }, "–");
    const [mean, low, high] = estimate.map((value) => Math.max(0, Math.min(1, value)));
    const band = { left: `${100 * low}%`, width: `${100 * (high - low)}%` };
    return el(
      "span",
      { class: "share num", title: `95 % interval: ${percent(estimate[1])} to ${percent(estimate[2])}` },
      el(
        "span",
        { class: "track", "aria-hidden": "true" },
        el("span", { class: "band", style: band }),
        el("span", { class: "mean", style: { left: `${100 * mean}%` } }),
      ),
      el("b", {}, percent(estimate[0])),
      el("span", { class: "range-text dim" }, `${percent(estimate[1])}–${percent(estimate[2])}`),
    );
  }

  /* A mean with its interval below, if there is one. */
  function amount(estimate, shown = large) {
    if (!estimate) return el("span", { class: "dim" }, "–");
    const [mean, low, high] = estimate;
    const range = low === null ? null : el("span", { class: "sub dim" }, `${shown(low)}–${shown(high)}`);
    return el("span", { class: "num" }, shown(mean), range);
  }

  const seconds = ([generation, environment]) =>
    generation === null
      ? el("span", { class: "dim" }, "–")
      : el(
          "span",
          { class: "num", title: `${duration(generation)} of generation and ${duration(environment)} of the environment` },
          duration(generation + environment),
        );

  const first = (estimate) => (estimate ? estimate[0] : null);
  const total = ([generation, environment]) => (generation === null ? null : generation + environment);

  /* The columns of both tables: {key, name, value (to sort by), draw, title}. `row` is a run's figures for the choice. */
  const FIGURES = [
    { key: "success", name: "Success", value: ({ row }) => first(row.success), draw: ({ row }) => share(row.success) },
    { key: "score", name: "Score", value: ({ row }) => first(row.score), draw: ({ row }) => amount(row.score, (x) => number(x, 3)) },
    { key: "tasks", name: "Tasks", value: ({ row }) => row.tasks, draw: ({ row }) => Viewer.count(row.tasks) },
    {
      key: "episodes",
      name: "Episodes",
      value: ({ row }) => row.episodes,
      draw: ({ row }) => [
        Viewer.count(row.episodes),
        row.excluded > 0 &&
          el(
            "span",
            { class: "sub invalid", title: "The environment failed, or there was no turn. Not part of the figures." },
            `${Viewer.count(row.excluded)} excluded`,
          ),
      ],
    },
    { key: "turns", name: "Turns", value: ({ row }) => first(row.turns), draw: ({ row }) => amount(row.turns) },
    { key: "invalid", name: "Invalid", title: "Share of turns whose action was invalid", value: ({ row }) => first(row.invalid),
      draw: ({ row }) => el("span", { class: "num" }, row.invalid ? percent(row.invalid[0]) : "–") },
    { key: "tokens", name: "Tokens", title: "Tokens that the policy wrote, per episode", value: ({ row }) => first(row.tokens), draw: ({ row }) => amount(row.tokens) },
    { key: "seconds", name: "Time", title: "Seconds per episode: generation and environment", value: ({ row }) => total(row.seconds), draw: ({ row }) => seconds(row.seconds) },
  ];
  const COLUMNS = [
    { key: "name", name: "Run", value: ({ run }) => run.name, draw: ({ run, row }) => runCell(run, row) },
    { key: "policy", name: "Policy", value: ({ run }) => run.policies.join(), draw: ({ run }) => Viewer.line(run.policies.join(", ") || "–", 90) },
    ...FIGURES,
    { key: "wall", name: "Wall", title: "Time in which episodes were being played", value: ({ run }) => run.wall, draw: ({ run }) => el("span", { class: "num" }, duration(run.wall)) },
    { key: "cost", name: "Cost", title: "As recorded", value: ({ run }) => run.cost, draw: ({ run }) => el("span", { class: "num" }, money(run.cost)) },
    { key: "started", name: "Begun (UTC)", value: ({ run }) => run.started, draw: ({ run }) => el("span", { class: "num dim" }, run.started === null ? "–" : when(run.started)) },
  ];
  const GROUPS = [
    { key: "group", name: "Group", value: ({ row }) => `${row.env} ${row.group}`, draw: (pair) => groupCell(pair) },
    ...FIGURES,
  ];

  const addressOf = (run) => Viewer.address("run", { name: run.name });

  function runCell(run, row) {
    const part = run.step === null ? "" : run.evaluation ? `evaluation after step ${run.step}` : `step ${run.step}`;
    const about = [Viewer.words.env(row.env || `${run.environments.length} environments`), run.algorithm, part];
    return [
      el("a", { href: addressOf(run) }, Viewer.line(run.name, 80)),
      el("span", { class: "sub dim" }, about.filter(Boolean).join(" · ")),
      run.complete === false && Viewer.chip("Not finished", "warn", "The evaluation has not finished, so easy tasks may prevail."),
    ];
  }

  function groupCell({ run, row }) {
    const href = Viewer.address("", { source: run.name, env: row.env, group: row.group, step: run.step });
    return [
      el("a", { href }, Viewer.line(row.group || "all", 80)),
      run.environments.length > 1 && el("span", { class: "sub dim" }, Viewer.words.env(row.env)),
    ];
  }

  /* Sort rows; those without the value come last in both directions. */
  function sorted(pairs, column, descending) {
    const known = (pair) => column.value(pair) !== null && column.value(pair) !== undefined;
    const order = (a, b) => (column.value(a) < column.value(b) ? -1 : column.value(a) > column.value(b) ? 1 : 0);
    const found = pairs.filter(known).sort((a, b) => (descending ? order(b, a) : order(a, b)));
    return [...found, ...pairs.filter((pair) => !known(pair))];
  }

  /* Columns in which no row has a value are left out. */
  const filled = (columns, pairs) =>
    columns.filter((column) => pairs.some((pair) => ![null, undefined, ""].includes(column.value(pair))));

  /* A sortable table; `sort` is {key, desc}, and `onSort` receives a new one. */
  function table(label, columns, pairs, sort, onSort) {
    const shown = filled(columns, pairs);
    const chosen = shown.find((column) => column.key === sort.key) || shown[0];
    const head = (column) => {
      const state = column !== chosen ? "none" : sort.desc ? "descending" : "ascending";
      const arrow = { ascending: "↑", descending: "↓", none: "" }[state];
      const numeric = !["name", "policy", "group"].includes(column.key);
      const flip = () => onSort({ key: column.key, desc: column === chosen ? !sort.desc : numeric });
      const button = el(
        "button",
        { type: "button", "data-sort": column.key, on: { click: flip } },
        column.name,
        el("span", { class: "arrow", "aria-hidden": "true" }, arrow),
      );
      return el("th", { scope: "col", class: `col-${column.key}`, "aria-sort": state, title: column.title }, button);
    };
    const line = (pair) =>
      el("tr", {}, shown.map((column, i) =>
        el(i ? "td" : "th", { class: `col-${column.key}`, scope: i ? null : "row", "data-name": column.name }, column.draw(pair))));
    return el(
      "div",
      { class: "runs-table card", tabindex: "0", role: "region", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, shown.map(head))), el("tbody", {}, sorted(pairs, chosen, sort.desc).map(line))),
    );
  }

  /* Draw a table again in another order, and keep the focus on its head. */
  function resort(draw, sort) {
    view.sort = sort;
    keep();
    draw();
    const again = view.root.querySelector(`[data-sort="${CSS.escape(sort.key)}"]`);
    if (again) again.focus();
  }

  function keep() {
    const { sort, query } = view;
    const wanted = { ...query, sort: sort.key, desc: sort.desc ? "1" : "0" };
    Viewer.keepAddress(view.path, wanted);
  }

  function begin(root, params, path, sort) {
    view = { root, path, query: { ...params.query }, sort };
    if (params.query.sort) view.sort = { key: params.query.sort, desc: params.query.desc === "1" };
    delete view.query.sort;
    delete view.query.desc;
    root.append(el("p", { class: "empty", role: "status" }, "Reading the runs…"));
    return view;
  }

  async function load(opened, path, params, draw) {
    try {
      const found = await Viewer.api(path, params);
      if (view !== opened) return;
      const text = JSON.stringify(found);
      if (text === opened.last) return;
      Object.assign(opened, { last: text, data: found });
      draw();
    } catch (error) {
      if (view === opened && !opened.data) Viewer.nowhere(opened.root, error.message);
    }
  }

  /* The figures of a run for the chosen environment; null if it has none. */
  function rowOf(run, env) {
    return env ? run.environments.find((row) => row.env === env) || null : run.overall;
  }

  function envChoice(runs) {
    const envs = [...new Set(runs.flatMap((run) => run.environments.map((row) => row.env)))].sort();
    if (envs.length < 2) return null;
    const chosen = view.query.env || "";
    const option = (env, text) => el("option", { value: env, selected: env === chosen }, text);
    const on = {
      change: ({ target }) => {
        view.query.env = target.value;
        keep();
        drawTable();
      },
    };
    return el(
      "label",
      { class: "env-choice dim" },
      "Environment",
      el("select", { class: "field", name: "env", on }, option("", "All"), envs.map((env) => option(env, Viewer.words.env(env)))),
    );
  }

  function drawTable() {
    const { runs } = view.data;
    const pairs = runs.map((run) => ({ run, row: rowOf(run, view.query.env) })).filter(({ row }) => row);
    const mixed = !view.query.env && new Set(runs.map((run) => run.environments.map((row) => row.env).join())).size > 1;
    fill(
      view.root,
      el(
        "header",
        { class: "headline" },
        el("h1", {}, "Runs"),
        el("p", { class: "dim num" }, Viewer.plural(pairs.length, "run")),
        envChoice(runs),
      ),
      mixed && el("p", { class: "hint dim" }, "These runs are of different environments. Choose one to compare them."),
      runs.length
        ? table("Runs", COLUMNS, pairs, view.sort, (sort) => resort(drawTable, sort))
        : Viewer.empty("No runs yet", "Runs appear here when their first episode is written."),
    );
  }

  const bigFigure = (name, shown, title) =>
    el("div", { title }, el("dt", { class: "label" }, name), el("dd", { class: "num" }, shown));

  function figures(run) {
    const row = run.overall;
    return el(
      "dl",
      { class: "big-figures card" },
      bigFigure("Success", share(row.success)),
      bigFigure("Score", amount(row.score, (x) => number(x, 3))),
      bigFigure("Episodes", `${Viewer.count(row.episodes)} of ${Viewer.plural(row.tasks, "task")}`),
      row.excluded > 0 && bigFigure("Excluded", Viewer.count(row.excluded), "The environment failed, or there was no turn."),
      bigFigure("Turns", amount(row.turns)),
      bigFigure("Invalid actions", row.invalid ? percent(row.invalid[0]) : "–"),
      bigFigure("Tokens per episode", amount(row.tokens)),
      bigFigure("Time per episode", seconds(row.seconds)),
      bigFigure("Wall time", duration(run.wall), "Time in which at least one episode was being played"),
      run.cost !== null && bigFigure("Cost", money(run.cost), "As recorded"),
    );
  }

  function stops(run) {
    const all = Object.entries(run.stops);
    const one = ([stop, count]) =>
      el(
        "li",
        {},
        el("a", { href: Viewer.address("", { source: run.name, stop, step: run.step }) }, Viewer.words.stop(stop).short || stop),
        el("span", { class: "num dim" }, Viewer.count(count)),
      );
    return section("How episodes ended", el("ul", { class: "stops" }, all.map(one)));
  }

  function errors(run) {
    if (!run.errors.length) return null;
    const one = ({ text, count, id }) =>
      el("li", {}, el("span", { class: "num dim" }, `${Viewer.count(count)} ×`), el("a", { href: `#/episode/${id}`, class: "mono" }, Viewer.line(text, 220)));
    return section("Errors", el("ul", { class: "errors" }, run.errors.map(one)));
  }

  function section(title, ...children) {
    return el("section", { class: "run-part card" }, el("h2", {}, title), children);
  }

  /* Settings as a table: nested objects as JSON in one cell. */
  function config(title, values) {
    const all = Object.entries(values).flatMap(([name, value]) =>
      name === "settings" && value && typeof value === "object" ? Object.entries(value) : [[name, value]],
    );
    const shown = all.filter(([, value]) => value !== null && value !== "" && JSON.stringify(value) !== "{}");
    if (!shown.length) return null;
    const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    const one = ([name, value]) => [el("dt", {}, Viewer.line(name, 60)), el("dd", { class: "mono" }, Viewer.text(text(value), { limit: 300 }))];
    return section(title, el("dl", { class: "config" }, shown.map(one)));
  }

  function about(run) {
    const part =
      run.step === null ? "" : run.evaluation ? `the evaluation after step ${run.step}` : `training step ${run.step}`;
    const text = [run.policies.join(", "), part && `figures of ${part}`, run.started !== null && `begun ${when(run.started)} UTC`];
    return el("p", { class: "dim" }, Viewer.line(text.filter(Boolean).join(" · "), 300));
  }

  function drawRun() {
    const run = view.data;
    document.title = `Run ${run.name}`;
    const pairs = run.groups.map((row) => ({ run, row }));
    fill(
      view.root,
      el("div", { class: "crumbs" }, Viewer.steps.crumb("#/runs", "Runs")),
      el("header", { class: "run-head" }, el("h1", {}, Viewer.line(run.name, 160)), about(run)),
      run.complete === false && el("p", { class: "problem" }, "This evaluation has not finished. Easy tasks end first, so its figures may fall."),
      figures(run),
      el("p", { class: "run-links" }, el("a", { class: "button", href: Viewer.address("", { source: run.name }) }, `All ${Viewer.plural(run.count, "episode")}`)),
      table("Groups", GROUPS, pairs, view.sort, (sort) => resort(drawRun, sort)),
      el("div", { class: "run-parts" }, stops(run), errors(run), config("Versions", run.versions), config("Config", run.config)),
    );
  }

  function follow(opened, path, params, draw) {
    const again = () => document.hidden || load(opened, path, params, draw);
    if (!Viewer.exported) opened.timer = setInterval(again, POLL_MS);
    return load(opened, path, params, draw);
  }

  function close() {
    clearInterval(view.timer);
    view = null;
  }

  Viewer.pages.runs = {
    title: "Runs",
    open: (root, params) => follow(begin(root, params, "runs", { key: "success", desc: true }), "runs", {}, drawTable),
    close,
  };
  Viewer.pages.run = {
    title: "Run",
    open: (root, params) =>
      follow(begin(root, params, "run", { key: "group", desc: false }), "runs", { name: params.query.name || "" }, drawRun),
    close,
  };
  Viewer.duration = duration;
})();
