// Lives in the isolated world of every document, from its start: the page's own scripts can neither see nor change it.
// It knows whether the page is about to be left and whether it is still busy.
globalThis.agentgym ??= {};
(() => {
  const page = { leaving: false, requests: 0, changed: -Infinity, parsed: -Infinity };
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
  const note = () => { page.changed = performance.now(); };

  // sameDocument covers hashes, href="#" and pushState.
  globalThis.navigation?.addEventListener('navigate', e => {
    if (!e.destination.sameDocument && !e.downloadRequest) page.leaving = true;
  });
  document.addEventListener('agentgym:asked', () => { page.requests += 1; });
  document.addEventListener('agentgym:answered', () => { page.requests -= 1; note(); });

  const watcher = new MutationObserver(note);
  watcher.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  // What the parser adds is no change: only scripts can keep a page busy.
  document.addEventListener('DOMContentLoaded', () => {
    watcher.takeRecords();
    page.changed = -Infinity;
    page.parsed = performance.now();
  });

  const loaded = (now, most) =>
    document.readyState === 'complete' || document.readyState === 'interactive' && now - page.parsed >= most;

  // 'leaving' once another document is asked for; 'settled' once the page is loaded, waits for no answer and has not
  // changed for `quiet` ms; 'busy' if that takes longer than `most` ms, and loading before it longer than `patience`.
  agentgym.settled = async ({ quiet, most, patience }) => {
    for (let i = 0; i < 3; i++) await pause(0);
    const asked = performance.now();
    let start = asked;
    for (;;) {
      const now = performance.now();
      if (page.leaving) return 'leaving';
      if (now - asked >= patience) return 'busy';
      if (!loaded(now, most)) start = now;
      else if (page.requests <= 0 && now - page.changed >= quiet) return 'settled';
      else if (now - start >= most) return 'busy';
      await pause(Math.min(quiet, 10));
    }
  };
  agentgym.stay = () => { page.leaving = false; };
})();
