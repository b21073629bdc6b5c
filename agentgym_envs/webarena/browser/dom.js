// Safe access to the DOM.
//
// A page may give form controls and images names that hide the properties of their form or document
// (<input name=childNodes>). This also affects an isolated world, so all properties of forms and documents are read
// through the accessors of the prototypes.

const getter = (type, name) => {
  const get = Object.getOwnPropertyDescriptor(type.prototype, name).get;
  return node => get.call(node);
};
const method = (type, name) => {
  const call = type.prototype[name];
  return (node, argument) => call.call(node, argument);
};

const tagOf = getter(Element, 'localName');
const attribute = method(Element, 'getAttribute');
const hasAttribute = method(Element, 'hasAttribute');
const matches = method(Element, 'matches');
const closest = method(Element, 'closest');
const isRendered = method(Element, 'checkVisibility');
const boxOf = method(Element, 'getBoundingClientRect');
const shadowOf = getter(Element, 'shadowRoot');
const firstElement = getter(Element, 'firstElementChild');
const typeOf = getter(Node, 'nodeType');
const firstChild = getter(Node, 'firstChild');
const nextSibling = getter(Node, 'nextSibling');
const parentOf = getter(Node, 'parentNode');
const textContent = getter(Node, 'textContent');
const rootOf = method(Node, 'getRootNode');
const contains = method(Node, 'contains');
const isConnected = getter(Node, 'isConnected');
const ownerOf = getter(Node, 'ownerDocument');
const titleOf = getter(Document, 'title');
const bodyOf = getter(Document, 'body');
const rootElement = getter(Document, 'documentElement');
const focusOf = getter(Document, 'activeElement');
const shadowFocus = getter(ShadowRoot, 'activeElement');
const isEditable = getter(HTMLElement, 'isContentEditable');
const allIn = {
  1: method(Element, 'querySelectorAll'),
  9: method(Document, 'querySelectorAll'),
  11: method(DocumentFragment, 'querySelectorAll'),
};
const byId = {
  1: () => null,
  9: method(Document, 'getElementById'),
  11: method(DocumentFragment, 'getElementById'),
};

const sheetsOf = { 9: getter(Document, 'styleSheets'), 11: getter(ShadowRoot, 'styleSheets') };
const adoptedBy = { 9: getter(Document, 'adoptedStyleSheets'), 11: getter(ShadowRoot, 'adoptedStyleSheets') };

const ELEMENT = 1, TEXT = 3;
const isHtml = e => getter(Element, 'namespaceURI')(e) === 'http://www.w3.org/1999/xhtml';
const queryAll = (root, selector) => allIn[typeOf(root)](root, selector);

/** The elements whose ids an attribute of `e` lists, in its order. */
function referenced(e, name) {
  const ids = attribute(e, name);
  if (!ids) return [];
  const root = rootOf(e), find = byId[typeOf(root)];
  return ids.split(/\s+/).slice(0, 50).map(id => id && find(root, id)).filter(Boolean);
}

/** The rendered children: those of an open shadow root, and the nodes assigned to a slot. */
function childrenOf(e) {
  if (tagOf(e) === 'slot') {
    const assigned = e.assignedNodes();
    if (assigned.length) return assigned;
  }
  if (tagOf(e) === 'details' && !e.open) return [...e.children].filter(c => tagOf(c) === 'summary').slice(0, 1);
  const children = [];
  for (let c = firstChild(shadowOf(e) || e); c; c = nextSibling(c)) children.push(c);
  return children;
}

/** The focused element, within shadow roots and frames of the same origin. */
function focusedElement() {
  let e = focusOf(document);
  for (let depth = 0; e && depth < 20; depth++) {
    const root = shadowOf(e), frame = !root && FRAMES.has(tagOf(e)) && frameDocument(e);
    const inner = root ? shadowFocus(root) : frame ? focusOf(frame) : null;
    if (!inner) return e;
    e = inner;
  }
  return e;
}

const FRAMES = new Set(['iframe', 'frame']);

/** The document of a frame; null if its origin is another. */
function frameDocument(e) {
  try { return e.contentDocument; } catch { return null; }
}

/** The modal dialog that makes the rest of a document inert; of several, the one in front. */
function modalOf(root) {
  const open = [...queryAll(root, 'dialog:modal')].filter(e => isRendered(e));
  if (open.length < 2) return open[0] ?? null;
  const inFront = dialog => {
    const box = boxOf(dialog);
    const top = Document.prototype.elementFromPoint.call(root, box.x + box.width / 2, box.y + box.height / 2);
    return top && contains(dialog, top);
  };
  return open.reverse().find(inFront) ?? open[0];
}
