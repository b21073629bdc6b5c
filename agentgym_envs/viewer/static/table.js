/* The table of episodes. Only visible rows exist in the page; rows are fetched in pages of a hundred. */
(function () {
  "use strict";
  const { el } = Viewer;
  const PAGE = 100;
  const AROUND = 8; // additional rows above and below the visible ones
  const NARROW = matchMedia("(max-width: 720px)");
  const COLUMNS = [
    { key: "id", name: "#", width: "58px", right: true },
    { key: "task", name: "Task", width: "minmax(0, 1fr)" },
    { key: "env", name: "Environment", width: "164px" },
    { key: "stop", name: "Outcome", width: "180px" },
    { key: "score", name: "Score", width: "108px", right: true },
    { key: "turns", name: "Turns", width: "62px", right: true },
    { key: "tokens", name: "Tokens", width: "70px", right: true, optional: "figures" },
    { key: "seconds", name: "Time", width: "70px", right: true, optional: "figures" },
    { key: "cost", name: "Cost", width: "70px", right: true, optional: "figures" },
    { key: "step", name: "Step", width: "62px", right: true, optional: "steps" },
    { key: "policy", name: "Policy", width: "150px", optional: "policies" },
  ];
  const DRAW = {
    id: (row) => [String(row.id)],
    task: (row) => [
      el("a", { href: `#/episode/${row.id}`, class: "goal", tabindex: "-1" }, Viewer.line(row.goal || row.task, 220)),
      el(
        "span",
        { class: "sub mono" },
        (row.tags.length > 0 || row.noted) && el("span", { class: "row-tags" }, row.tags.map((tag) => Viewer.chip(tag, "accent")), row.noted && Viewer.chip("note", "accent")),
        Viewer.line(row.task, 90),
      ),
    ],
    env: (row) => [
      Viewer.line(Viewer.words.env(row.env), 60),
      el("span", { class: "sub" }, Viewer.line(row.group || "", 60)),
    ],
    stop: (row) => [
      Viewer.words.outcome(row),
      row.stop !== "success" &&
        el("span", { class: "why" }, row.stop === "failure" ? "" : Viewer.words.stop(row.stop).short),
    ],
    score: (row) => [Viewer.words.score(row.score)],
    turns: (row) => [
      String(row.turns),
      row.invalid > 0 &&
        el(
          "span",
          { class: "sub invalid", title: `${Viewer.plural(row.invalid, "action")} could not be parsed or carried out` },
          `${row.invalid} invalid`,
        ),
    ],
    tokens: (row) => [row.tokens === null ? "–" : Viewer.count(row.tokens)],
    seconds: (row) => [row.seconds === null ? "–" : Viewer.duration(row.seconds)],
    cost: (row) => [row.cost === null ? "–" : `$${Viewer.number(row.cost, 4)}`],
    step: (row) => [row.step === null ? "" : String(row.step)],
    policy: (row, { sourced }) => [
      Viewer.line(Viewer.words.policy(row), 60),
      sourced && el("span", { class: "sub" }, Viewer.line(row.source, 60)),
    ],
  };

  function columnsFor(summary) {
    const sourced = summary.sources.length > 1; // a single source is not shown
    const known = ({ key, optional }) =>
      optional === "figures" ? (summary.figures || []).includes(key) : summary[optional].length > 0;
    const shown = COLUMNS.filter((column) => !column.optional || known(column));
    return shown.map((column) => ({ ...column, sourced }));
  }

  const classOf = ({ key, right, optional }) =>
    [optional === "figures" ? "figure-column" : key, right && "right"].filter(Boolean).join(" ");
  const canSort = (column) => column.key !== "policy";

  /* The sort control for narrow screens, where rows are cards without a header. */
  function sorter(columns, sort, onSort) {
    const option = (column, desc) => {
      const chosen = column.key === sort.key && desc === sort.desc;
      const text = `${column.name === "#" ? "Number" : column.name}, ${desc ? "high to low" : "low to high"}`;
      return el("option", { value: `${column.key} ${desc ? 1 : 0}`, selected: chosen }, text);
    };
    const on = { change: ({ target }) => onSort(target.value.split(" ")[0], target.value.endsWith("1")) };
    const options = columns.filter(canSort).flatMap((column) => [option(column, false), option(column, true)]);
    return el("label", { class: "sorter dim" }, "Sort by", el("select", { class: "field", name: "sort", on }, options));
  }

  function header(columns, sort, onSort) {
    const cell = (column) => {
      const state = sort.key === column.key ? (sort.desc ? "descending" : "ascending") : "none";
      const sortable = canSort(column);
      const button = el(
        "button",
        { type: "button", "data-sort": column.key, on: { click: () => onSort(column.key, state === "ascending") } },
        column.name === "#" ? el("span", { "aria-label": "Number" }, "#") : column.name,
        el("span", { class: "arrow", "aria-hidden": "true" }, { ascending: "↑", descending: "↓", none: "" }[state]),
      );
      const props = {
        role: "columnheader",
        class: classOf(column),
        "aria-sort": sortable ? state : null,
      };
      return el("div", props, sortable ? button : column.name);
    };
    return el(
      "div",
      { role: "rowgroup", class: "head" },
      el("div", { role: "row", "aria-rowindex": "1" }, columns.map(cell)),
    );
  }

  function drawRow(columns, row, index) {
    const cell = (column) =>
      el(
        "div",
        { role: "cell", class: `${classOf(column)}${column.right ? " num" : ""}` },
        row ? DRAW[column.key](row, column) : null,
      );
    return el(
      "div",
      { role: "row", class: row ? "row" : "row coming", "aria-rowindex": String(index + 2) },
      columns.map(cell),
    );
  }

  class Table {
    constructor(root, { summary, sort, onSort, onTotal, onError }) {
      Object.assign(this, { onTotal, onError, columns: columnsFor(summary), params: {}, total: 0, at: 0 });
      this.generation = 0;
      this.pages = new Map();
      this.nodes = new Map();
      this.body = el("div", { role: "rowgroup", class: "rows" });
      const widths = (columns) => columns.map((column) => column.width).join(" ");
      const few = this.columns.filter((column) => column.optional !== "figures"); // for windows of medium width
      this.root = el(
        "div",
        { role: "table", class: "table card", "aria-label": "Episodes", style: { "--cols": widths(this.columns), "--few-cols": widths(few) } },
        header(this.columns, sort, onSort),
        this.body,
      );
      root.append(sorter(this.columns, sort, onSort), this.root);
      this.body.addEventListener("focusin", (event) => this.onRowEvent(event));
      this.body.addEventListener("click", (event) => this.onRowEvent(event));
      this.onScroll = () => this.scheduleDraw();
      addEventListener("scroll", this.onScroll, { passive: true });
      addEventListener("resize", this.onScroll);
    }

    get height() {
      return NARROW.matches ? 112 : 54;
    }

    close() {
      this.generation += 1;
      removeEventListener("scroll", this.onScroll);
      removeEventListener("resize", this.onScroll);
    }

    scheduleDraw() {
      if (this.waiting) return;
      this.waiting = requestAnimationFrame(() => {
        this.waiting = 0;
        this.draw();
      });
    }

    visibleRange() {
      const above = Math.max(0, -this.body.getBoundingClientRect().top);
      const first = Math.floor(above / this.height);
      return [first, Math.min(this.total, first + Math.ceil(innerHeight / this.height) + 1)];
    }

    /* Fetches the visible rows again: for new filters, and when the files have grown. */
    async load(params = this.params, index = null) {
      this.params = params;
      this.generation += 1;
      const generation = this.generation;
      this.root.classList.add("busy");
      const row = index === null ? this.visibleRange()[0] : index;
      try {
        const numbers = [Math.floor(row / PAGE), Math.floor(row / PAGE) + 1].slice(0, this.total || index ? 2 : 1);
        const answers = await Promise.all(numbers.map((number) => this.fetch(number)));
        if (generation !== this.generation) return;
        this.pages = new Map(answers.map((answer, i) => [numbers[i], answer.rows]));
        this.setTotal(answers[0]);
      } catch (error) {
        if (generation === this.generation) this.onError(error);
      }
      this.root.classList.remove("busy");
    }

    fetch(number) {
      return Viewer.api("episodes", { ...this.params, offset: number * PAGE, limit: PAGE });
    }

    setTotal({ total, note, means }) {
      this.total = total;
      this.at = Math.max(0, Math.min(this.at, total - 1));
      this.root.setAttribute("aria-rowcount", String(total + 1));
      this.body.style.height = `${total * this.height}px`;
      this.onTotal(total, note, means);
      this.draw();
    }

    async more(number) {
      if (this.pages.has(number)) return;
      this.pages.set(number, null);
      const generation = this.generation;
      try {
        const answer = await this.fetch(number);
        if (generation === this.generation) this.pages.set(number, answer.rows);
      } catch (error) {
        if (generation === this.generation) this.pages.delete(number);
        return;
      }
      if (generation === this.generation) this.draw();
    }

    row(index) {
      const page = this.pages.get(Math.floor(index / PAGE));
      return (page && page[index % PAGE]) || null;
    }

    draw() {
      const [first, last] = this.visibleRange();
      const from = Math.max(0, first - AROUND);
      const to = Math.min(this.total, last + AROUND);
      this.body.style.height = `${this.total * this.height}px`;
      for (const [index, kept] of this.nodes)
        if (index < from || index >= to || kept.row !== this.row(index)) this.drop(index);
      for (let index = from; index < to; index += 1) this.placeRow(index, index - from);
      clearTimeout(this.fetchTimer);
      this.fetchTimer = setTimeout(() => this.fill(from, to), 60);
    }

    drop(index) {
      const { node } = this.nodes.get(index);
      if (node.contains(document.activeElement)) this.hadFocus = index;
      node.remove();
      this.nodes.delete(index);
    }

    placeRow(index, position) {
      if (!this.nodes.has(index)) {
        const row = this.row(index);
        this.nodes.set(index, { row, node: drawRow(this.columns, row, index) });
      }
      const { node } = this.nodes.get(index);
      node.style.top = `${index * this.height}px`;
      if (this.body.children[position] !== node) this.body.insertBefore(node, this.body.children[position] || null);
      const link = node.querySelector("a");
      if (link) link.tabIndex = index === this.at ? 0 : -1;
      if (link && this.hadFocus === index) this.focus(index);
    }

    fill(first, last) {
      const pages = new Set([first, Math.max(first, last - 1)].map((index) => Math.floor(index / PAGE)));
      for (const number of pages) if (number * PAGE < this.total) this.more(number);
    }

    onRowEvent(event) {
      const row = event.target.closest(".row");
      if (row) this.at = Number(row.getAttribute("aria-rowindex")) - 2;
    }

    /* Makes a row the current one and scrolls it into view. */
    choose(index) {
      if (!this.total) return;
      this.at = Math.max(0, Math.min(index, this.total - 1));
      const top = this.body.getBoundingClientRect().top + scrollY + this.at * this.height;
      const headerHeight = document.querySelector(".top").offsetHeight + this.body.previousSibling.offsetHeight + 8;
      if (top < scrollY + headerHeight) scrollTo(0, top - headerHeight);
      else if (top + this.height > scrollY + innerHeight - 8) scrollTo(0, top + this.height - innerHeight + 8);
      this.hadFocus = this.at;
      this.draw();
    }

    focus(index) {
      this.hadFocus = null;
      this.nodes.get(index).node.querySelector("a").focus({ preventScroll: true });
    }
  }

  Viewer.Table = Table;
})();
