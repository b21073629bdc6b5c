// Begins a task on a MiniWoB page, in the page's own JavaScript context.

// Pages show the date and open calendars on it: every episode begins at the same time.
function fixStartTime() {
  const shift = Date.parse('2020-01-01T12:00:00Z') - Date.now();
  window.Date = new Proxy(Date, {
    construct: (real, given, target) => Reflect.construct(real, given.length ? given : [real.now() + shift], target),
    get: (real, key) => key === 'now' ? () => real.now() + shift : Reflect.get(real, key),
  });
}

// Turn off animations and delays: the text of a page depends on the actions, not on their timing.
function removeDelays({ fx, ui }) {
  fx.off = true;
  if (ui?.autocomplete) ui.autocomplete.prototype.options.delay = 0;
  if (ui?.menu) ui.menu.prototype.delay = 0;
}

// Make menu items clickable but not their containers, which would appear as click targets.
const plainMenus = $ => $('.ui-menu').removeAttr('tabindex').find('li').addBack().css('cursor', 'default');

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function annotate(names, states) {
  const found = new Map();
  for (const [selector, role, name] of names)
    for (const element of document.querySelectorAll(selector)) found.set(element, [role, name]);
  for (const [element, [role, name]] of found) {
    set(element, 'role', role);
    set(element, 'aria-label', name);
  }
  for (const [selector, attribute, active] of states)
    for (const element of document.querySelectorAll(selector)) set(element, attribute, String(element.matches(active)));
}

function keepAnnotating(names, states) {
  annotate(names, states);
  const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] };
  new MutationObserver(() => annotate(names, states)).observe(document, changes);
}

// The images that style sheets use instead of text. An image that is still loading has no size and would be left out.
function styleImages() {
  const rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules].map(rule => [rule.style?.content, sheet.href]));
  return rules.flatMap(([content, base]) => {
    const url = /^url\("(.*)"\)/.exec(content ?? '')?.[1];
    return url ? [Object.assign(new Image(), { src: new URL(url, base ?? document.baseURI) })] : [];
  });
}

const imageLoaded = picture => picture.complete || new Promise(resolve => { picture.onload = picture.onerror = resolve; });
const pageLoaded = () => document.readyState === 'complete' || new Promise(resolve => {
  addEventListener('load', () => setTimeout(resolve));
});

function start(seed, mode) {
  core.EPISODE_MAX_TIME = 2 ** 31 - 1;  // the longest possible timer, 24 days
  core.cover_div.onclick = null;  // a click would start another episode
  core.setDataMode(mode);
  Math.seedrandom(seed);
  core.startEpisodeReal();
  clearInterval(core.CD_TIMER);
  core.agentgymSeed = seed;  // a page that was loaded again has none
}

function objective() {
  const query = document.getElementById('query').cloneNode(true);
  for (const picture of query.querySelectorAll('[aria-label]')) picture.textContent = picture.getAttribute('aria-label');
  return query.textContent.replace(/\s+/g, ' ').trim();
}

/** Begin the task. Returns its objective. */
async function begin({ seed, mode, names, states, before, after }) {
  await pageLoaded();
  fixStartTime();
  if (window.jQuery) removeDelays(window.jQuery);
  Function(before)();
  start(seed, mode);
  Function(after)();
  if (window.jQuery) plainMenus(window.jQuery);
  keepAnnotating(names, states);
  core.agentgymPictures = styleImages();  // kept, so that they stay in memory
  await Promise.all([...core.agentgymPictures, ...document.images].map(imageLoaded));
  return objective();
}
