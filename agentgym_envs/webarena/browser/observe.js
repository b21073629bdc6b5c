// Observation of a page: one pass over the DOM, written in WebArena's format.
//
//   [1] RootWebArea 'Shop' focused: True
//   <tab>[2] link 'Cart'
//   <tab>StaticText 'Free delivery'
//   ... 12 more lines were left out ...
//
// A line is `[id] role 'name' property: value ...` or `StaticText 'text'`, indented by one tab per enclosing element.
// Names and texts are on one line, without unreadable characters, and quoted by Python's rules. Lines that begin with
// three dots report omissions. Ids count from 1 in the order in which elements first appear in an observation. An
// element keeps its id as long as its document exists.
//
// The page may be hostile: the walk uses its own stack, and reads at most MAX_NODES nodes.

const MAX_NODES = 60_000, MAX_OPTIONS = 50, MAX_FRAMES = 5, LONGEST_CLICKABLE = 80, NOTE_SPACE = 100;

const EVERYWHERE = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };

const ids = new WeakMap();
let nextId = 1;
let observed = new Map();
let hiddenElements = new Set();
let nodesLeft = 0;

const SKIPPED = words('base br head link meta noscript param script source style template title track datalist');

function idOf(e) {
  let id = ids.get(e);
  if (!id) ids.set(e, id = nextId++);
  return id;
}

const isLeftOut = e =>
  SKIPPED.has(tagOf(e)) || attribute(e, 'aria-hidden') === 'true' || hasAttribute(e, 'inert') || hiddenElements.has(e);

/** Lines up to a total length. Further lines are only counted. */
class Lines {
  constructor(most) {
    this.most = most - NOTE_SPACE;
    this.lines = [];
    this.size = 0;
    this.omitted = 0;
  }

  add(depth, line) {
    this.size += depth + line.length + 1;
    const fits = this.size <= this.most;
    if (fits) this.lines.push('\t'.repeat(depth) + line);
    else this.omitted += 1;
    return fits;
  }
}

class Walk {
  constructor({ viewport = true, maxChars = 60_000, hidden = [] }) {
    this.clip = viewport ? { left: 0, top: 0, right: innerWidth, bottom: innerHeight } : EVERYWHERE;
    this.hidden = hidden.join(',');
    this.lines = new Lines(maxChars);
    this.nodes = [];
    this.contexts = [];
    this.owned = new Map();
    this.range = new Range();
    this.focused = focusedElement();
  }

  run() {
    const body = bodyOf(document) ?? rootElement(document);
    const root = this.focused === null || this.focused === body ? ' focused: True' : '';
    this.elementLine(rootElement(document), 0, `RootWebArea ${quote(pageTitle())}${root}`);
    this.enter(document, { depth: 1, name: '', content: false, active: false, invisible: false, frames: 0,
      clip: this.clip });
    while (this.nodes.length && nodesLeft-- > 0) {
      const node = this.nodes.pop(), context = this.contexts.pop();
      const type = typeof node === 'string' ? 0 : typeOf(node);
      if (type === 0) this.textLine(node, context);
      else if (type === ELEMENT) this.element(node, context);
      else if (type === TEXT) this.text(node, context);
    }
    this.finish();
  }

  finish() {
    const more = this.nodes.length > 0, omitted = this.lines.omitted;
    if (!more && !omitted) return;
    const count = omitted ? `${more ? 'more than ' : ''}${omitted} more line${omitted > 1 ? 's' : ''}` : 'the rest of the page';
    this.lines.lines.push(`... ${count} left out: the page is too long`);
  }

  /** Start with a document: with its modal dialog alone, if it has one. */
  enter(root, context) {
    this.prepare(root);
    const body = bodyOf(root);
    const modal = modalOf(root);
    if (modal) this.push([modal], context);
    else if (body && !isLeftOut(body)) this.push(this.childrenOf(body), context);
  }

  /** Find the elements to hide and those moved by aria-owns, in a document or shadow tree. */
  prepare(root) {
    searchSheets(root);
    if (this.hidden) for (const e of queryAll(root, this.hidden)) hiddenElements.add(e);
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

  push(children, context) {
    for (let i = children.length - 1; i >= 0; i--) {
      this.nodes.push(children[i]);
      this.contexts.push(context);
    }
  }

  text(node, context) {
    if (context.invisible) return;
    const data = node.data;
    if (!/\S/.test(data.slice(0, 1000))) return;
    this.range.selectNodeContents(node);
    if (overlaps(this.range.getBoundingClientRect(), context.clip)) this.textLine(data, context);
  }

  /** Write a line with an id. */
  elementLine(e, depth, line) {
    const id = idOf(e);
    if (this.lines.add(depth, `[${id}] ${line}`)) observed.set(id, e);
  }

  textLine(text, context) {
    const clean = shorten(text, LONGEST_TEXT);
    if (!clean || clean === context.name || context.content && context.name.includes(clean)) return;
    this.lines.add(context.depth, `StaticText ${quote(clean)}`);
  }

  element(e, context) {
    if (isLeftOut(e)) return;
    const style = getComputedStyle(e), contents = style.display === 'contents';
    if (!contents && !isRendered(e)) return;
    const box = contents ? null : boxOf(e);
    if (box && isCollapsed(box, style)) return;
    const invisible = style.visibility !== 'visible';
    const here = invisible === context.invisible ? context : { ...context, invisible };
    const role = roleOf(e), visible = !invisible && this.isVisible(e, box, here);
    if (style.contentVisibility !== 'hidden') this.contents(e, visible, invisible ? here : this.describe(e, role, visible, here, style));
  }

  /** Write the line of an element, if it gets one. Returns the context of its children. */
  describe(e, role, visible, context, style) {
    const interactive = INTERACTIVE.has(role);
    const clickable = !interactive && isClickable(e, style, context);
    const active = context.active || interactive || clickable;
    const inner = active === context.active ? context : { ...context, active };
    if (!visible) return inner;
    let { name, content } = nameOf(e, role);
    if (clickable && !name) [name, content] = [shortContent(e), true];
    const structure = STRUCTURE.has(role), focused = e === this.focused;
    if (structure && !name && !clickable && !focused) return labelsTickbox(e) ? { ...inner, name: contentOf(e, e.control), content: true } : inner;
    const states = statesOf(e, structure ? '' : role, focused, clickable);
    this.elementLine(e, context.depth, `${role} ${quote(name)}${states}${crossOrigin(e)}`);
    return { ...inner, depth: context.depth + 1, name, content };
  }

  isVisible(e, box, context) {
    if (box && box.width && box.height) return overlaps(box, context.clip);
    // An empty box may have visible contents outside of it, such as a floating picture in a link.
    this.range.selectNodeContents(e);
    return overlaps(this.range.getBoundingClientRect(), context.clip);
  }

  contents(e, visible, context) {
    const tag = tagOf(e);
    if (FRAMES.has(tag)) return this.frame(e, context);
    if (tag === 'select') return this.options(e, context);
    if (LEAVES.has(tag)) return;
    const children = this.childrenOf(e);
    if (!visible) return this.push(children, context);
    const before = pseudoText(e, '::before'), after = pseudoText(e, '::after');
    if (before) this.textLine(before, context);
    if (after) this.push([after], context);
    this.push(children, context);
  }

  frame(e, context) {
    const inner = frameDocument(e);
    if (!inner || context.frames >= MAX_FRAMES) return;
    const box = boxOf(e), style = getComputedStyle(e), { clip } = context;
    const x = box.left + e.clientLeft + parseFloat(style.paddingLeft), y = box.top + e.clientTop + parseFloat(style.paddingTop);
    this.enter(inner, { ...context, frames: context.frames + 1, active: false, clip: {
      left: Math.max(clip.left, box.left) - x, top: Math.max(clip.top, box.top) - y,
      right: Math.min(clip.right, box.right) - x, bottom: Math.min(clip.bottom, box.bottom) - y } });
  }

  options(select, context) {
    if (context.invisible || !observed.has(ids.get(select))) return;
    let group = null, count = 0, more = 0, depth = context.depth;
    for (const option of select.options) {
      if (isLeftOut(option) || option.hidden) continue;
      if (++count > MAX_OPTIONS && !option.selected && ++more) continue;
      const parent = parentOf(option);
      if (parent !== group) {
        group = parent;
        depth = context.depth + (tagOf(parent) === 'optgroup' ? 1 : 0);
        if (depth > context.depth) this.elementLine(parent, context.depth, `group ${quote(nameOf(parent, 'group').name)}`);
      }
      this.elementLine(option, depth, `option ${quote(shorten(option.label, LONGEST_NAME))}${statesOf(option, 'option')}`);
    }
    if (more) this.lines.add(context.depth, `... ${more} more options; type the text of one to choose it`);
  }
}

/** True for the label of a checkbox or radio button. As in Chrome, the control's name replaces its text. */
const labelsTickbox = e => tagOf(e) === 'label' && e.control && TICKBOXES.has(e.control.type);
const TICKBOXES = words('checkbox radio');
const pageTitle = () => shorten(titleOf(document), LONGEST_NAME);
const crossOrigin = e => FRAMES.has(tagOf(e)) && !frameDocument(e) ? ' cross-origin: True' : '';
const overlaps = (box, clip) =>
  box.width > 0 && box.height > 0 && box.bottom > clip.top && box.top < clip.bottom && box.right > clip.left && box.left < clip.right;

/** True for a collapsed element, such as a closed menu: no width or height, and its overflow is hidden. */
const isCollapsed = (box, style) => (box.width === 0 || box.height === 0) && style.overflow !== 'visible';

/** True for an element without an interactive role that seems to take clicks. A pointer cursor counts on the outermost element. */
function isClickable(e, style, context) {
  if (hasAttribute(e, 'onclick')) return true;
  if (tagOf(e) === 'label' && e.control) return !context.active && isInvisible(e.control);
  if (Number(attribute(e, 'tabindex') ?? -1) >= 0) return true;
  return style.cursor === 'pointer' && !context.active;
}

function isInvisible(control) {
  if (!isRendered(control)) return true;
  const { width, height } = boxOf(control), style = getComputedStyle(control);
  return width <= 1 || height <= 1 || style.opacity === '0' || style.visibility !== 'visible';
}

function shortContent(e) {
  const content = contentOf(e);
  return content.length > LONGEST_CLICKABLE ? '' : content;
}

function observe(options) {
  if (!rootElement(document)) return { title: '', tree: '', count: 0, truncated: false };  // a script is rewriting it
  observed = new Map();
  hiddenElements = new Set();
  nodesLeft = MAX_NODES;
  sheetsAddText = false;
  labelsIn = new Map();
  const walk = new Walk(options);
  walk.run();
  const { lines, omitted } = walk.lines;
  const page = { title: pageTitle(), tree: lines.join('\n'), count: observed.size, truncated: omitted > 0 || walk.nodes.length > 0 };
  return options.boxes ? { ...page, boxes: agentgym.boxes() } : page;
}

function element(id) {
  const e = observed.get(id);
  return e && isConnected(e) ? e : null;
}

globalThis.agentgym ??= {};
Object.assign(globalThis.agentgym, { observe, element });
