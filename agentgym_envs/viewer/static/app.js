/* The router, the polling of the server, and the keys of all pages. */
(function () {
  "use strict";
  const { el, fill, icon } = Viewer;
  const POLL_MS = 2000;
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  const help = document.getElementById("help");
  const THEMES = {
    auto: ["Colours of the system", "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11"],
    light: [
      "Light colours",
      "M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6M8 1v1.5m0 11V15M1 8h1.5m11 0H15M3.5 3.5l1 1M11.5 11.5l1 1M3.5 12.5l1-1m7-7l1-1",
    ],
    dark: ["Dark colours", "M13 9.5A5.5 5.5 0 0 1 6.5 3A5.5 5.5 0 1 0 13 9.5z"],
  };
  const KEYS = [
    [
      "List",
      [
        ["↑ ↓", "Choose an episode (also k, j)"],
        ["Enter", "Open it"],
        ["/", "Search in the text"],
      ],
    ],
    [
      "Episode and comparison",
      [
        ["← →", "Previous turn, next turn (also k, j)"],
        ["Home End", "First turn, end of the episode"],
        ["Space", "Play and pause"],
        ["[ ]", "Previous and next episode in the list"],
        ["m", "First mistake, if the episode has labels"],
        ["d", "Comparison: first difference"],
      ],
    ],
    [
      "Everywhere",
      [
        ["g", "Back to the list"],
        ["t", "Change the colours"],
        ["?", "This help; Escape closes it"],
      ],
    ],
  ];
  let page = null;
  let shown = "";
  let version = null;

  function route() {
    const [path, query] = (location.hash.replace(/^#/, "") || "/").split(/\?(.*)/s);
    const [name, ...ids] = path.split("/").filter(Boolean);
    return { name: name || "list", ids, query: Object.fromEntries(new URLSearchParams(query || "")) };
  }

  function nowhere(root, text) {
    const home = el("a", { class: "button", href: "#/" }, "All episodes");
    fill(root, Viewer.empty("Nothing is here", text, home));
  }

  function open() {
    if (location.hash === "#main") return; // the skip link
    const { name, ids, query } = route();
    if (help.open) help.close();
    if (page && page.close) page.close();
    if (page) main.focus({ preventScroll: true }); // so that a screen reader continues in the new page
    main.replaceChildren();
    page = Viewer.pages[name] || null;
    shown = name;
    drawPages();
    window.scrollTo(0, 0);
    if (!page) return nowhere(main, `There is no page “${name}”.`);
    document.title = page.title || "Episodes";
    page.open(main, { ids, query });
  }

  function drawPages(summary) {
    const bar = document.getElementById("pages");
    const training = summary
      ? summary.has_training
      : Boolean(bar.querySelector('[href="#/training"]')) || shown === "training";
    const part = { run: "runs" }[shown] || shown;
    const link = (name, href, text) => el("a", { href, "aria-current": part === name ? "page" : null }, text);
    fill(
      bar,
      link("list", "#/", "Episodes"),
      link("runs", "#/runs", "Runs"),
      training && link("training", "#/training", "Training"),
    );
  }

  function report(text, kind) {
    if (live.textContent !== text) live.textContent = text;
    live.className = `live ${kind}`;
  }

  async function poll() {
    try {
      const summary = await Viewer.api("summary");
      const changed = summary.version !== version;
      if (changed) drawPages(summary);
      if (changed && version !== null && page && page.refresh) page.refresh(summary);
      version = summary.version;
      const count = Viewer.plural(summary.count, "episode");
      report(Viewer.exported ? `${count} in this file` : `Following ${count}`, Viewer.exported ? "still" : "");
    } catch (error) {
      report(error.status ? error.message : "The server does not respond", "lost");
    }
  }

  async function follow() {
    if (!document.hidden) await poll();
    if (!Viewer.exported) setTimeout(follow, POLL_MS);
  }

  function drawTools() {
    const [text, path] = THEMES[Viewer.theme.current()];
    const theme = el(
      "button",
      {
        class: "button bare icon-only",
        type: "button",
        "aria-label": `${text}; change`,
        title: `${text} (t)`,
        on: { click: nextTheme },
      },
      icon(path),
    );
    const ask = el(
      "button",
      {
        class: "button bare icon-only",
        type: "button",
        "aria-label": "Keys and help",
        title: "Keys (?)",
        on: { click: showHelp },
      },
      "?",
    );
    const tools = document.getElementById("tools");
    const hadFocus = tools.contains(document.activeElement);
    fill(tools, theme, ask);
    if (hadFocus) theme.focus();
  }

  function nextTheme() {
    Viewer.theme.next();
    drawTools();
  }

  function showHelp() {
    const keys = (text) => text.split(" ").map((key) => el("kbd", {}, key));
    const rows = ([head, items]) => [
      el("h3", {}, head),
      items.map(([key, what]) => [el("dt", {}, keys(key)), el("dd", {}, what)]),
    ];
    const close = el("button", { class: "button small", type: "button", on: { click: () => help.close() } }, "Close");
    fill(help, el("header", {}, el("h2", { id: "help-title" }, "Keys"), close), el("dl", {}, KEYS.map(rows)));
    help.showModal();
  }

  function onKey(event) {
    if (Viewer.typing(event)) return;
    if (help.open && event.key !== "?") return;
    if (event.key === "?") help.open ? help.close() : showHelp();
    else if (event.key === "t") nextTheme();
    else if (event.key === "g") location.hash = Viewer.pages.list.address();
    else return;
    event.preventDefault();
  }

  /* Replaces the query of the address without opening the page again. */
  Viewer.address = (path, query) => {
    const wanted = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    return "#/" + path + (wanted.length ? "?" + new URLSearchParams(wanted) : "");
  };
  Viewer.keepAddress = (path, query) => history.replaceState(null, "", Viewer.address(path, query));
  Viewer.nowhere = nowhere;

  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  addEventListener("hashchange", open);
  addEventListener("keydown", onKey);
  drawTools();
  open();
  follow();
})();
