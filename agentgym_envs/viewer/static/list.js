/* The list of episodes. */
(function () {
  "use strict";
  const { el, fill } = Viewer;
  let state = {};
  let table = null;
  let parts = null;
  let summary = null;
  let opened = 0;
  const position = { address: "#/", index: null, top: 0 }; // the last position, to return to

  const page = { title: "Episodes", address: () => position.address, position };
  Viewer.pages.list = page;

  page.open = async (root, params) => {
    opened += 1;
    const request = opened;
    state = { ...params.query };
    try {
      summary = await Viewer.api("summary");
    } catch (error) {
      if (request === opened) Viewer.nowhere(root, error.message);
      return;
    }
    if (request !== opened) return;
    parts = {
      count: el("p", { class: "count dim num", role: "status" }),
      means: el("p", { class: "dim" }),
      problems: el("div", {}),
      form: el("form", {
        class: "filters",
        role: "search",
        "aria-label": "Filter episodes",
        on: { submit: (event) => event.preventDefault() },
      }),
      table: el("div", {}),
      none: el("div", {}),
    };
    root.append(
      el("header", { class: "headline" }, el("h1", {}, "Episodes"), parts.count, parts.means),
      parts.problems,
      parts.form,
      parts.table,
      parts.none,
    );
    const back = position.index !== null && Viewer.address("", state) === position.address ? { ...position } : null;
    draw();
    await start(back);
    addEventListener("keydown", onKey);
  };

  page.close = () => {
    opened += 1;
    removeEventListener("keydown", onKey);
    if (!table) return;
    Object.assign(position, { address: Viewer.address("", state), top: scrollY, index: table.at });
    table.close();
    table = null;
  };

  page.refresh = (latest) => {
    if (!table) return;
    summary = latest;
    if (!parts.form.contains(document.activeElement)) draw();
    table.load();
  };

  function draw() {
    Viewer.filters(parts.form, summary, state, change);
    const problems = summary.problems || [];
    const some = problems.slice(0, 50).map((text) => el("li", {}, Viewer.line(text, 300)));
    fill(
      parts.problems,
      problems.length > 0 &&
        el(
          "details",
          { class: "problem" },
          el("summary", {}, `${Viewer.plural(problems.length, "file or line", "files or lines")} could not be read`),
          el("ul", {}, some),
        ),
    );
  }

  function change(fields) {
    if ("env" in fields && !("group" in fields)) fields = { ...fields, group: "" };
    if (Object.entries(fields).every(([key, value]) => (state[key] || "") === value)) return;
    state = { ...state, ...fields };
    Viewer.keepAddress("", state);
    draw();
    window.scrollTo(0, 0);
    table.at = 0;
    table.load(query(), 0);
  }

  function query() {
    const wanted = Viewer.filters.keys.concat("sort", "desc").filter((key) => state[key]);
    return Object.fromEntries(wanted.map((key) => [key, state[key]]));
  }

  function sort(key, desc) {
    state = { ...state, sort: key, desc: desc ? "1" : "" };
    Viewer.keepAddress("", state);
    restart();
    const used = [`[role=columnheader] [data-sort=${key}]`, "[name=sort]"].map((one) => parts.table.querySelector(one));
    used.find((one) => one.checkVisibility()).focus();
  }

  function restart() {
    if (table) table.close();
    parts.table.replaceChildren();
    const order = { key: state.sort || "id", desc: state.desc === "1" };
    table = new Viewer.Table(parts.table, { summary, sort: order, onSort: sort, onTotal: showTotal, onError: fail });
    return table.load(query(), 0);
  }

  async function start(back) {
    const loaded = restart();
    if (back) table.at = back.index;
    if (!back || !back.top) return loaded;
    table.at = 0;
    await loaded;
    if (!table) return;
    window.scrollTo(0, back.top);
    table.at = back.index;
    table.draw();
  }

  /* A search through very many episodes continues with each request. */
  function continueSearch(searched) {
    setTimeout(() => table === searched && table.load(), 500);
  }

  const percent = (share) => `${Viewer.number(100 * share, 1)} %`;

  /* Means over all episodes of the list. */
  function showMeans(means) {
    if (!means) return fill(parts.means);
    const { success, score, turns, episodes } = means;
    const one = (name, value) => el("span", {}, `${name} `, el("b", { class: "num" }, value));
    const title = `Of ${Viewer.plural(episodes, "usable episode")} in this list. Runs has intervals and groups.`;
    return fill(
      parts.means,
      el("span", { class: "means", title }, one("success", percent(success)), one("score", Viewer.number(score, 3)), one("turns", Viewer.number(turns, 1))),
    );
  }

  function showTotal(total, note, means) {
    showMeans(means);
    const narrowed = Viewer.filters.keys.some((key) => state[key]);
    parts.count.textContent = narrowed
      ? `${Viewer.count(total)} of ${Viewer.plural(summary.count, "episode")}`
      : Viewer.plural(total, "episode");
    if (note) parts.count.textContent += ` · ${note}`;
    if (note) continueSearch(table);
    parts.table.hidden = total === 0;
    fill(parts.none, total === 0 && !note && (narrowed ? noMatch() : nothing()));
  }

  function fail(error) {
    parts.count.textContent = "";
    parts.table.hidden = true;
    const message = Viewer.empty("The list cannot be shown", error.message);
    message.setAttribute("role", "alert");
    fill(parts.none, message);
  }

  function noMatch() {
    const clear = () => change(Object.fromEntries(Viewer.filters.keys.map((key) => [key, ""])));
    const button = el("button", { class: "button", type: "button", on: { click: clear } }, "Clear the filters");
    return Viewer.empty("No matching episode", "No episode matches all of the filters.", button);
  }

  function nothing() {
    return Viewer.empty("No episodes yet", "Episodes appear here as they are written to the folder.");
  }

  function onKey(event) {
    if (!table || Viewer.typing(event) || document.getElementById("help").open) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const inside = parts.table.contains(document.activeElement);
    if (step) table.choose(inside ? table.at + step : table.visibleRange()[0] + (step > 0 ? 0 : -1));
    else if (event.key === "/") parts.form.querySelector('[name="q"]').focus();
    else return;
    event.preventDefault();
  }

  /* The episode that is `by` rows further in the last list, if there is one. */
  page.neighbour = async (id, by) => {
    const params = Object.fromEntries(new URLSearchParams(position.address.split("?")[1] || ""));
    const index = position.index ?? id;
    const { rows } = await Viewer.api("episodes", { ...params, offset: Math.max(0, index - 1), limit: 3 });
    const here = rows.findIndex((row) => row.id === id);
    const found = here < 0 ? null : rows[here + by];
    if (found) position.index = index + by;
    return found || null;
  };
})();
