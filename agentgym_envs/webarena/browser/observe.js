// What an agent reads of a page: one pass over the DOM, told in WebArena's format.
//
//   [1] RootWebArea 'Shop' focused: True
//   <tab>[2] link 'Cart'
//   <tab>StaticText 'Free delivery'
//   ... 12 more lines were left out ...
//
// A line is `[id] role 'name' property: value ...` or `StaticText 'text'`, indented by a tab for each element that it
// is in. Names and texts are on one line, without characters that cannot be read, and quoted by Python's rules; lines
// that begin with three dots say what was left out. Ids count from 1, in the order in which elements were first told,
// and stay with their elements for as long as the document lives.
//
// The page may be hostile: the walk keeps its own stack, and reads at most MOST_NODES nodes.

const MOST_NODES = 60_000, MOST_OPTIONS = 50, MOST_FRAMES = 5, LONGEST_CLICKABLE = 80, NOTE_SPACE = 100;

const EVERYWHERE = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };

const ids = new WeakMap();
let nextId = 1;
let told = new Map();
let unwanted = new Set();
let nodesLeft = 0;

const SKIPPED = words('base br head link meta noscript param script source style template title track datalist');

function idOf(e) {
  let id = ids.get(e);
  if (!id) ids.set(e, id = nextId++);
  return id;
}

const isLeftOut = e =>
  SKIPPED.has(tagOf(e)) || attribute(e, 'aria-hidden') === 'true' || hasAttribute(e, 'inert') || unwanted.has(e);

/** Lines, up to a length; those beyond are counted only. */
class Lines {
  constructor(most) {
    this.most = most - NOTE_SPACE;
    this.lines = [];
    this.size = 0;
    this.lost = 0;
  }

  add(depth, line) {
    this.size += depth + line.length + 1;
    const fits = this.size <= this.most;
    if (fits) this.lines.push('\t'.repeat(depth) + line);
    else this.lost += 1;
    return fits;
  }
}

class Walk {
  constructor({ viewport = true, maxChars = 60_000, hidden = [] }) {
    this.clip = viewport ? { left: 0, top: 0, right: innerWidth, bottom: innerHeight } : EVERYWHERE;
    this.hidden = hidden.join(',');
    this.lines = new Lines(maxChars);
    this.nodes = [];
    this.places = [];
    this.owned = new Map();
    this.range = new Range();
    this.focused = focusedElement();
  }

  run() {
    const body = bodyOf(document) ?? rootElement(document);
    const root = this.focused === null || this.focused === body ? ' focused: True' : '';
    this.name(rootElement(document), 0, `RootWebArea ${quote(pageTitle())}${root}`);
    this.enter(document, { depth: 1, name: '', content: false, active: false, silent: false, frames: 0,
      clip: this.clip });
    while (this.nodes.length && nodesLeft-- > 0) {
      const node = this.nodes.pop(), place = this.places.pop();
      const type = typeof node === 'string' ? 0 : typeOf(node);
      if (type === 0) this.tell(node, place);
      else if (type === ELEMENT) this.element(node, place);
      else if (type === TEXT) this.text(node, place);
    }
    this.finish();
  }

  finish() {
    const more = this.nodes.length > 0, lost = this.lines.lost;
    if (!more && !lost) return;
    const count = lost ? `${more ? 'more than ' : ''}${lost} more line${lost > 1 ? 's' : ''}` : 'the rest of the page';
    this.lines.lines.push(`... ${count} left out: the page is too long`);
  }

  /** Begin with a document: only its modal dialog, if there is one. */
  enter(root, place) {
    this.prepare(root);
    const body = bodyOf(root);
    const modal = modalOf(root);
    if (modal) this.push([modal], place);
    else if (body && !isLeftOut(body)) this.push(this.childrenOf(body), place);
  }

  /** Find what is hidden by wish and who owns whom, in a document or shadow tree. */
  prepare(root) {
    searchSheets(root);
    if (this.hidden) for (const e of queryAll(root, this.hidden)) unwanted.add(e);
    for (const owner of queryAll(root, '[aria-owns]'))
      if (isRendered(owner))
        for (const e of referenced(owner, 'aria-owns'))
          if (!contains(e, owner) && !this.owned.has(e)) this.owned.set(e, owner);
  }

  childrenOf(e) {
    const root = shadowOf(e);
    if (root) this.prepare(root);
    const children = childrenOf(e);
    if (this.owned.size === 0) return children;
    const own = referenced(e, 'aria-owns').filter(c => this.owned.get(c) === e);
    return [...children.filter(c => !this.owned.has(c)), ...own];
  }

  push(children, place) {
    for (let i = children.length - 1; i >= 0; i--) {
      this.nodes.push(children[i]);
      this.places.push(place);
    }
  }

  text(node, place) {
    if (place.silent) return;
    const data = node.data;
    if (!/\S/.test(data.slice(0, 1000))) return;
    this.range.selectNodeContents(node);
    if (overlaps(this.range.getBoundingClientRect(), place.clip)) this.tell(data, place);
  }

  /** A line with an id. */
  name(e, depth, line) {
    const id = idOf(e);
    if (this.lines.add(depth, `[${id}] ${line}`)) told.set(id, e);
  }

  tell(text, place) {
    const clean = shorten(text, LONGEST_TEXT);
    if (!clean || clean === place.name || place.content && place.name.includes(clean)) return;
    this.lines.add(place.depth, `StaticText ${quote(clean)}`);
  }

  element(e, place) {
    if (isLeftOut(e)) return;
    const style = getComputedStyle(e), contents = style.display === 'contents';
    if (!contents && !isRendered(e)) return;
    const box = contents ? null : boxOf(e);
    if (box && isFolded(box, style)) return;
    const silent = style.visibility !== 'visible';
    const here = silent === place.silent ? place : { ...place, silent };
    const role = roleOf(e), seen = !silent && this.sees(e, box, here);
    if (style.contentVisibility !== 'hidden') this.inside(e, seen, silent ? here : this.line(e, role, seen, here, style));
  }

  /** Tell an element, if it is to be told; returns the place of what is in it. */
  line(e, role, seen, place, style) {
    const interactive = INTERACTIVE.has(role);
    const clickable = !interactive && isClickable(e, style, place);
    const active = place.active || interactive || clickable;
    const inner = active === place.active ? place : { ...place, active };
    if (!seen) return inner;
    let { name, content } = nameOf(e, role);
    if (clickable && !name) [name, content] = [shortContent(e), true];
    const structure = STRUCTURE.has(role), focused = e === this.focused;
    if (structure && !name && !clickable && !focused) return ticked(e) ? { ...inner, name: contentOf(e, e.control), content: true } : inner;
    const states = statesOf(e, structure ? '' : role, focused, clickable);
    this.name(e, place.depth, `${role} ${quote(name)}${states}${foreign(e)}`);
    return { ...inner, depth: place.depth + 1, name, content };
  }

  sees(e, box, place) {
    if (box && box.width && box.height) return overlaps(box, place.clip);
    // Boxes of nothing are told for what flows out of them, such as floating pictures in links.
    this.range.selectNodeContents(e);
    return overlaps(this.range.getBoundingClientRect(), place.clip);
  }

  inside(e, seen, place) {
    const tag = tagOf(e);
    if (FRAMES.has(tag)) return this.frame(e, place);
    if (tag === 'select') return this.options(e, place);
    if (LEAVES.has(tag)) return;
    const children = this.childrenOf(e);
    if (!seen) return this.push(children, place);
    const before = pseudoText(e, '::before'), after = pseudoText(e, '::after');
    if (before) this.tell(before, place);
    if (after) this.push([after], place);
    this.push(children, place);
  }

  frame(e, place) {
    const inner = frameDocument(e);
    if (!inner || place.frames >= MOST_FRAMES) return;
    const box = boxOf(e), style = getComputedStyle(e), { clip } = place;
    const x = box.left + e.clientLeft + parseFloat(style.paddingLeft), y = box.top + e.clientTop + parseFloat(style.paddingTop);
    this.enter(inner, { ...place, frames: place.frames + 1, active: false, clip: {
      left: Math.max(clip.left, box.left) - x, top: Math.max(clip.top, box.top) - y,
      right: Math.min(clip.right, box.right) - x, bottom: Math.min(clip.bottom, box.bottom) - y } });
  }

  options(select, place) {
    if (place.silent || !told.has(ids.get(select))) return;
    let group = null, count = 0, more = 0, depth = place.depth;
    for (const option of select.options) {
      if (isLeftOut(option) || option.hidden) continue;
      if (++count > MOST_OPTIONS && !option.selected && ++more) continue;
      const parent = parentOf(option);
      if (parent !== group) {
        group = parent;
        depth = place.depth + (tagOf(parent) === 'optgroup' ? 1 : 0);
        if (depth > place.depth) this.name(parent, place.depth, `group ${quote(nameOf(parent, 'group').name)}`);
      }
      this.name(option, depth, `option ${quote(shorten(option.label, LONGEST_NAME))}${statesOf(option, 'option')}`);
    }
    if (more) this.lines.add(place.depth, `... ${more} more options; type the text of one to choose it`);
  }
}

/** Whether it is the label of a box to tick, which is told by the name of that, as in Chrome. */
const ticked = e => tagOf(e) === 'label' && e.control && TICKED.has(e.control.type);
const TICKED = words('checkbox radio');
const pageTitle = () => shorten(titleOf(document), LONGEST_NAME);
const foreign = e => FRAMES.has(tagOf(e)) && !frameDocument(e) ? ' cross-origin: True' : '';
const overlaps = (box, clip) =>
  box.width > 0 && box.height > 0 && box.bottom > clip.top && box.top < clip.bottom && box.right > clip.left && box.left < clip.right;

/** Folded up, as menus are: no height, and what flows over is cut off. */
const isFolded = (box, style) => (box.width === 0 || box.height === 0) && style.overflow !== 'visible';

/** What has no role but takes clicks, as far as a script can know. A hand as cursor counts where it first appears. */
function isClickable(e, style, place) {
  if (hasAttribute(e, 'onclick')) return true;
  if (tagOf(e) === 'label' && e.control) return !place.active && isUnseen(e.control);
  if (Number(attribute(e, 'tabindex') ?? -1) >= 0) return true;
  return style.cursor === 'pointer' && !place.active;
}

function isUnseen(control) {
  if (!isRendered(control)) return true;
  const { width, height } = boxOf(control), style = getComputedStyle(control);
  return width <= 1 || height <= 1 || style.opacity === '0' || style.visibility !== 'visible';
}

function shortContent(e) {
  const content = contentOf(e);
  return content.length > LONGEST_CLICKABLE ? '' : content;
}

function observe(options) {
  if (!rootElement(document)) return { title: '', tree: '', count: 0, cut: false };  // a script is writing it anew
  told = new Map();
  unwanted = new Set();
  nodesLeft = MOST_NODES;
  sheetsWrite = false;
  labelsIn = new Map();
  const walk = new Walk(options);
  walk.run();
  const { lines, lost } = walk.lines;
  return { title: pageTitle(), tree: lines.join('\n'), count: told.size, cut: lost > 0 || walk.nodes.length > 0 };
}

function element(id) {
  const e = told.get(id);
  return e && isConnected(e) ? e : null;
}

globalThis.agentgym ??= {};
Object.assign(globalThis.agentgym, { observe, element });
