// Lives in the isolated world of every document, from its start: the page's own scripts can neither see nor change it.
// It knows whether the page is about to be left and whether it is still busy.
globalThis.agentgym ??= {};
(() => {
  const page = { leaving: false, requests: 0, changed: -Infinity, parsed: Infinity };
  const EVERYTHING = { subtree: true, childList: true, attributes: true, characterData: true };
  const LOADED = 'script[src]:not([type]), script[src][type=""], script[src][type*=javascript], script[src][type=module], '
    + 'link[rel~=stylesheet][href], link[rel~=modulepreload][href], img[src]:not([loading=lazy])';
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
  const clock = () => performance.timeOrigin + performance.now();  // one for all frames
  const note = () => { page.changed = clock(); };
  const asked = () => { page.requests += 1; };
  const answered = () => { page.requests = Math.max(0, page.requests - 1); note(); };

  // sameDocument covers hashes, href="#" and pushState.
  globalThis.navigation?.addEventListener('navigate', e => {
    if (!e.destination.sameDocument && !e.downloadRequest) page.leaving = true;
  });
  document.addEventListener('agentgym:asked', asked);
  document.addEventListener('agentgym:answered', answered);

  const watcher = new MutationObserver(records => {
    note();
    if (page.parsed < Infinity) for (const { addedNodes } of records) addedNodes.forEach(awaitAdded);
  });
  const watched = new WeakSet();

  // Changes are watched in open shadow roots, too.
  function watch(root) {
    if (!watched.has(root)) watcher.observe(root, EVERYTHING);
    watched.add(root);
    for (const e of queryAll(root, '*')) if (shadowOf(e)) watch(shadowOf(e));
  }

  // Code and pictures that a script adds are asked for, as what it fetches is. A picture has no size before it is there.
  function awaitAdded(node) {
    if (typeOf(node) !== ELEMENT || !matches(node, LOADED) || node.complete === true) return;
    asked();
    for (const end of ['load', 'error']) node.addEventListener(end, () => setTimeout(answered), { once: true });
  }

  // What the parser adds is no change: only scripts can keep a page busy.
  document.addEventListener('DOMContentLoaded', () => {
    watcher.takeRecords();
    page.changed = -Infinity;
    page.parsed = clock();
  });

  // This page, and those of frames in it, if they are of its origin.
  function pages(view) {
    try {
      if (!view.agentgym?.page) return [];
    } catch {
      return [];
    }
    const found = [view.agentgym.page];
    for (let i = 0; i < view.length; i++) found.push(...pages(view[i]));
    return found;
  }

  // A page that was parsed long ago counts as loaded: a picture may never come, document.open() may never be closed.
  const loaded = (now, most) => getter(Document, 'readyState')(document) === 'complete' || now - page.parsed >= most;

  // 'leaving' once another document is asked for; 'settled' once the page is loaded, waits for no answer and has not
  // changed for `quiet` ms; 'busy' if that takes longer than `most` ms, and loading before it longer than `patience`.
  agentgym.settled = async ({ quiet, most, patience }) => {
    for (let i = 0; i < 3; i++) await pause(0);
    watch(document);
    const began = clock();
    let start = began;
    for (;;) {
      const now = clock(), rests = ({ requests, changed }) => requests <= 0 && now - changed >= quiet;
      if (page.leaving) return 'leaving';
      if (now - began >= patience) return 'busy';
      if (!loaded(now, most)) start = now;
      else if (pages(globalThis).every(rests)) return 'settled';
      else if (now - start >= most) return 'busy';
      await pause(Math.min(quiet, 10));
    }
  };
  agentgym.stay = () => { page.leaving = false; };
  agentgym.page = page;
  watcher.observe(document, EVERYTHING);
  watched.add(document);
})();
