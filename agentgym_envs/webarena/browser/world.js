// Runs in the isolated world of every document, from its start: the page's own scripts can neither see nor change it.
// Tracks whether the page is about to navigate and whether it is still busy.
globalThis.agentgym ??= {};
(() => {
  const page = { leaving: false, requests: 0, changed: -Infinity, parsed: Infinity };
  const EVERYTHING = { subtree: true, childList: true, attributes: true, characterData: true };
  const LOADED = 'script[src]:not([type]), script[src][type=""], script[src][type*=javascript], script[src][type=module], '
    + 'link[rel~=stylesheet][href], link[rel~=modulepreload][href], img[src]:not([loading=lazy])';
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
  const clock = () => performance.timeOrigin + performance.now();  // one for all frames
  const markChanged = () => { page.changed = clock(); };
  const onRequest = () => { page.requests += 1; };
  const onResponse = () => { page.requests = Math.max(0, page.requests - 1); markChanged(); };

  // sameDocument covers hashes, href="#" and pushState.
  globalThis.navigation?.addEventListener('navigate', e => {
    if (!e.destination.sameDocument && !e.downloadRequest) page.leaving = true;
  });
  document.addEventListener('agentgym:request', onRequest);
  document.addEventListener('agentgym:response', onResponse);

  const watcher = new MutationObserver(records => {
    markChanged();
    if (page.parsed < Infinity) for (const { addedNodes } of records) addedNodes.forEach(trackAdded);
  });
  const watched = new WeakSet();

  // Watch changes, also in open shadow roots.
  function watch(root) {
    if (!watched.has(root)) watcher.observe(root, EVERYTHING);
    watched.add(root);
    for (const e of queryAll(root, '*')) if (shadowOf(e)) watch(shadowOf(e));
  }

  // Code and pictures that a script adds count as requests: a picture has no size before it is loaded.
  function trackAdded(node) {
    if (typeOf(node) !== ELEMENT || !matches(node, LOADED) || node.complete === true) return;
    onRequest();
    for (const end of ['load', 'error']) node.addEventListener(end, () => setTimeout(onResponse), { once: true });
  }

  // Nodes that the parser adds are not changes: only scripts can keep a page busy.
  document.addEventListener('DOMContentLoaded', () => {
    watcher.takeRecords();
    page.changed = -Infinity;
    page.parsed = clock();
  });

  // This page and the pages of its frames of the same origin.
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

  // A page parsed more than `busy` ms ago counts as loaded: a picture may never arrive, document.open() never be closed.
  const loaded = (now, busy) => getter(Document, 'readyState')(document) === 'complete' || now - page.parsed >= busy;

  // Resolves to 'leaving' once another document is requested; to 'settled' once the page is loaded, has no open request
  // and has not changed for `quiet` ms; to 'busy' if that takes over `busy` ms after loading, or over `load` ms in all.
  agentgym.settled = async ({ quiet, busy, load }) => {
    for (let i = 0; i < 3; i++) await pause(0);
    watch(document);
    const began = clock();
    let loadedAt = began;
    for (;;) {
      const now = clock(), isQuiet = ({ requests, changed }) => requests <= 0 && now - changed >= quiet;
      if (page.leaving) return 'leaving';
      if (now - began >= load) return 'busy';
      if (!loaded(now, busy)) loadedAt = now;
      else if (pages(globalThis).every(isQuiet)) return 'settled';
      else if (now - loadedAt >= busy) return 'busy';
      await pause(Math.min(quiet, 10));
    }
  };
  agentgym.cancelLeaving = () => { page.leaving = false; };
  agentgym.page = page;
  watcher.observe(document, EVERYTHING);
  watched.add(document);
})();
