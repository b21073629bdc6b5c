/* The choice of colours, applied before anything is drawn so that the page does not flash. */
(function () {
  "use strict";
  const KEY = "agentgym-view-theme";
  const ORDER = ["auto", "light", "dark"];

  function read() {
    try {
      const stored = localStorage.getItem(KEY);
      return ORDER.includes(stored) ? stored : "auto";
    } catch (error) {
      return "auto"; // storage is not allowed, as on some file:// pages
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
