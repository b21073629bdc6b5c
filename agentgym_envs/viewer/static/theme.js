/* The colours' choice, set before anything is drawn so that the page does not flash. */
(function () {
  "use strict";
  const KEY = "agentgym-view-theme";
  const ORDER = ["auto", "light", "dark"];

  function read() {
    try {
      const kept = localStorage.getItem(KEY);
      return ORDER.includes(kept) ? kept : "auto";
    } catch (error) {
      return "auto"; // storage is refused, as from some file:// pages
    }
  }

  function set(name) {
    document.documentElement.dataset.theme = name;
    try {
      localStorage.setItem(KEY, name);
    } catch (error) {
      return;
    }
  }

  window.Viewer = { pages: {}, panels: {} };
  Viewer.theme = {
    current: () => document.documentElement.dataset.theme,
    next: () => set(ORDER[(ORDER.indexOf(Viewer.theme.current()) + 1) % ORDER.length]),
  };
  document.documentElement.dataset.theme = read();
})();
