// What begins a task on a MiniWoB page, in the page's own world.

// A page tells of the date and opens calendars at it: every episode begins at the same moment.
function stopClock() {
  const shift = Date.parse('2020-01-01T12:00:00Z') - Date.now();
  window.Date = new Proxy(Date, {
    construct: (real, given, target) => Reflect.construct(real, given.length ? given : [real.now() + shift], target),
    get: (real, key) => key === 'now' ? () => real.now() + shift : Reflect.get(real, key),
  });
}

// Nothing moves, and nothing waits: the text of a page depends on what was done, never on when.
function hurry({ fx, ui }) {
  fx.off = true;
  if (ui?.autocomplete) ui.autocomplete.prototype.options.delay = 0;
  if (ui?.menu) ui.menu.prototype.delay = 0;
}

// Items take clicks, and not what holds them, which would be told as something to click.
const plainMenus = $ => $('.ui-menu').removeAttr('tabindex').find('li').addBack().css('cursor', 'default');

function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function tell(names, states) {
  const found = new Map();
  for (const [selector, role, name] of names)
    for (const element of document.querySelectorAll(selector)) found.set(element, [role, name]);
  for (const [element, [role, name]] of found) {
    set(element, 'role', role);
    set(element, 'aria-label', name);
  }
  for (const [selector, attribute, so] of states)
    for (const element of document.querySelectorAll(selector)) set(element, attribute, String(element.matches(so)));
}

function keepTelling(names, states) {
  tell(names, states);
  const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] };
  new MutationObserver(() => tell(names, states)).observe(document, changes);
}

// The pictures that style sheets put in the place of text: while one is on its way it has no size, and is not told.
function pictures() {
  const rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules].map(rule => [rule.style?.content, sheet.href]));
  return rules.flatMap(([content, base]) => {
    const address = /^url\("(.*)"\)/.exec(content ?? '')?.[1];
    return address ? [Object.assign(new Image(), { src: new URL(address, base ?? document.baseURI) })] : [];
  });
}

const arrived = picture => picture.complete || new Promise(resolve => { picture.onload = picture.onerror = resolve; });
const loaded = () => document.readyState === 'complete' || new Promise(resolve => {
  addEventListener('load', () => setTimeout(resolve));
});

function start(seed, mode) {
  core.EPISODE_MAX_TIME = 2 ** 31 - 1;  // no timer can be longer; these are 24 days
  core.cover_div.onclick = null;  // it would start another episode
  core.setDataMode(mode);
  Math.seedrandom(seed);
  core.startEpisodeReal();
  clearInterval(core.CD_TIMER);
  core.agentgymSeed = seed;  // a page that was loaded anew has none
}

function asked() {
  const query = document.getElementById('query').cloneNode(true);
  for (const picture of query.querySelectorAll('[aria-label]')) picture.textContent = picture.getAttribute('aria-label');
  return query.textContent.replace(/\s+/g, ' ').trim();
}

/** Begin; returns what the page asks for. */
async function begin({ seed, mode, names, states, before, after }) {
  await loaded();
  stopClock();
  if (window.jQuery) hurry(window.jQuery);
  Function(before)();
  start(seed, mode);
  Function(after)();
  if (window.jQuery) plainMenus(window.jQuery);
  keepTelling(names, states);
  core.agentgymPictures = pictures();  // kept, so that they stay in memory
  await Promise.all([...core.agentgymPictures, ...document.images].map(arrived));
  return asked();
}
