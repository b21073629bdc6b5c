// Functions that act on elements, in the isolated world. Each takes an element and returns JSON.
(() => {
  const inWindow = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  const rectsOf = method(Element, 'getClientRects');
  const scrollIntoView = method(Element, 'scrollIntoView');

  // The frames of the same origin around an element, from the inside out.
  function framesAround(element) {
    const frames = [];
    for (let e = element; (e = ownerOf(e).defaultView?.frameElement);) frames.push(e);
    return frames;
  }

  const scrollTo = element => scrollIntoView(element, { block: 'center', inline: 'center', behavior: 'instant' });

  // Translate a point of a frame's document to the document around the frame.
  function toParent(frame, [x, y]) {
    const box = boxOf(frame), style = getComputedStyle(frame);
    return [x + box.x + frame.clientLeft + parseFloat(style.paddingLeft), y + box.y + frame.clientTop + parseFloat(style.paddingTop)];
  }

  function topElement(root, [x, y]) {
    let found = Document.prototype.elementFromPoint.call(root, x, y);
    while (found && shadowOf(found)) {
      const deeper = shadowOf(found).elementFromPoint(x, y);
      if (!deeper || deeper === found) break;
      found = deeper;
    }
    return found;
  }

  function holds(outer, inner) {
    for (let node = inner; node; node = parentOf(node) ?? node.host) if (node === outer) return true;
    return false;
  }

  const belongs = (element, found) =>
    holds(element, found) || holds(found, element) && tagOf(element) !== 'option' && transparent(element)
    || [...(element.labels ?? [])].some(label => holds(label, found));
  // An element that passes clicks on to its parent, such as an icon in a button.
  const transparent = element => getComputedStyle(element).pointerEvents === 'none';

  const pointsIn = box => [[.5, .5], [.1, .5], [.9, .5], [.5, .1], [.5, .9]].map(([u, v]) => [box.x + u * box.width, box.y + v * box.height]);

  // Points of the element in the window, and whether a click there hits it.
  function* candidates(element) {
    for (const box of rectsOf(element)) {
      for (let point of box.width && box.height ? pointsIn(box) : []) {
        let hits = belongs(element, topElement(ownerOf(element), point));
        for (const frame of framesAround(element)) {
          point = toParent(frame, point);
          hits &&= belongs(frame, topElement(ownerOf(frame), point));
        }
        if (inWindow(point)) yield { point, hits };
      }
    }
  }

  function clickPoint(element) {
    let found = 'nowhere';
    for (const { point, hits } of candidates(element)) {
      if (hits) return point;
      found = { covered: nearestId(topElement(document, point)) };
    }
    return found;
  }

  // The id of a node or its nearest ancestor in the last observation; 0 without one.
  function nearestId(node) {
    for (; node; node = node.parentNode ?? node.host) if (observed.get(ids.get(node)) === node) return ids.get(node);
    return 0;
  }

  // A point of the window at which a click hits the element, [x, y]; { covered: id } if the element with that id covers
  // it; 'nowhere' if it has no size or cannot be scrolled to.
  agentgym.point = element => {
    const found = clickPoint(element);
    if (Array.isArray(found)) return found;
    scrollTo(element);
    return clickPoint(element);
  };

  // The part of an element inside the window and the frames around it, [x, y, width, height].
  function boxInWindow(element) {
    let { left, top, right, bottom } = boxOf(element);
    for (const frame of framesAround(element)) {
      const inner = frameDocument(frame).defaultView;
      [left, top, right, bottom] = [Math.max(left, 0), Math.max(top, 0), Math.min(right, inner.innerWidth), Math.min(bottom, inner.innerHeight)];
      [[left, top], [right, bottom]] = [toParent(frame, [left, top]), toParent(frame, [right, bottom])];
    }
    [left, top, right, bottom] = [Math.max(left, 0), Math.max(top, 0), Math.min(right, innerWidth), Math.min(bottom, innerHeight)].map(Math.round);
    return [left, top, right - left, bottom - top];
  }

  const isSeen = element => { for (const { hits } of candidates(element)) if (hits) return true; return false; };

  // The boxes of the observed elements that can be seen in the window: [id, x, y, width, height].
  agentgym.boxes = () => {
    const boxes = [];
    for (const [id, element] of observed) {
      const box = boxInWindow(element);
      if (box[2] > 0 && box[3] > 0 && isSeen(element)) boxes.push([id, ...box]);
    }
    return boxes;
  };

  const setSheets = {
    9: Object.getOwnPropertyDescriptor(Document.prototype, 'adoptedStyleSheets').set,
    11: Object.getOwnPropertyDescriptor(ShadowRoot.prototype, 'adoptedStyleSheets').set,
  };
  let showCaret = () => {};

  // Hide the text cursor, which blinks, without a change that the page observes. Returns false if there is none.
  agentgym.hideCaret = () => {
    const field = focusedElement();
    if (!field || !isHtml(field) || !(isEditable(field) || ['input', 'textarea'].includes(tagOf(field)))) return false;
    const root = rootOf(field), sheet = new (ownerOf(field).defaultView.CSSStyleSheet)();
    sheet.replaceSync('* { caret-color: transparent !important }');
    const adopt = change => setSheets[typeOf(root)].call(root, change([...adoptedBy[typeOf(root)](root)]));
    adopt(sheets => [...sheets, sheet]);
    showCaret = () => adopt(sheets => sheets.filter(one => one !== sheet));
    return true;
  };

  agentgym.showCaret = () => { showCaret(); showCaret = () => {}; };

  const fire = (element, ...types) => types.forEach(type => element.dispatchEvent(new Event(type, { bubbles: true, composed: true })));

  // Choose an option as a user would. Returns 'chosen', 'disabled' (for any disabled element) or 'no option'.
  agentgym.choose = option => {
    const select = option.tagName === 'OPTION' && option.closest('select');
    if (matches(option, ':disabled') || select && matches(select, ':disabled')) return 'disabled';
    if (!select) return 'no option';
    select.focus();
    if (select.multiple) option.selected = !option.selected;
    else select.selectedIndex = option.index;
    fire(select, 'input', 'change');
    return 'chosen';
  };

  const PICKED = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
  const BUTTONS = new Set(['button', 'submit', 'reset', 'checkbox', 'radio', 'image', 'file', 'hidden']);

  function pick(field, text) {
    const before = field.value;
    field.value = text;
    const accepted = field.type === 'color' ? field.value === text.toLowerCase() : field.value !== '' || text === '';
    if (accepted) fire(field, 'input', 'change');
    else field.value = before;
    return accepted ? 'done' : 'malformed';
  }

  function pickOption(select, text) {
    const tidy = s => s.replace(/\s+/g, ' ').trim().toLowerCase();
    const options = [...select.options], wanted = tidy(text);
    const option = options.find(o => tidy(o.text) === wanted) ?? options.find(o => tidy(o.value) === wanted);
    return option && agentgym.choose(option) === 'chosen' ? 'done' : 'no such option';
  }

  // Focus a field and select its text, so that typing replaces it. Returns 'line' or 'lines' for a field of one or more
  // lines, 'done' if the text was set here, or else the reason why the element takes no text.
  agentgym.prepare = (element, text) => {
    const field = element.tagName === 'LABEL' ? element.control ?? element : element;
    if (matches(field, ':disabled')) return 'disabled';
    if (field.readOnly) return 'read-only';
    if (field.tagName === 'SELECT') return pickOption(field, text);
    if (field.tagName === 'INPUT' && BUTTONS.has(field.type)) return 'no field';
    if (field.tagName === 'INPUT' && PICKED.has(field.type)) { field.focus(); return pick(field, text); }
    if (field.tagName !== 'INPUT' && field.tagName !== 'TEXTAREA' && !field.isContentEditable) return prepareInner(field, text);
    scrollTo(field);
    field.focus();
    if (field.select) field.select();
    else (rootOf(field).getSelection?.() ?? ownerOf(field).getSelection()).selectAllChildren(field);
    return field.tagName === 'INPUT' ? 'line' : 'lines';
  };

  // The text of an input or a text area, as { value }; false for other elements.
  agentgym.fieldValue = element => ['INPUT', 'TEXTAREA'].includes(element.tagName) && { value: element.value };

  agentgym.options = select => [...select.options ?? []].slice(0, 20).map(option => option.text.trim());

  // The element with a role such as combobox often contains the field.
  function prepareInner(element, text) {
    const fields = element.querySelectorAll('input:not([type=hidden]), textarea, [contenteditable=""], [contenteditable=true]');
    return fields.length === 1 && fields[0] !== element ? agentgym.prepare(fields[0], text) : 'no field';
  }

  agentgym.press = element => { element.click(); };

  // Wait until the page changes, for `most` ms at most.
  agentgym.changed = async most => {
    const began = performance.timeOrigin + performance.now();
    for (let waited = 0; waited < most && agentgym.page.changed < began; waited += 20)
      await new Promise(resolve => setTimeout(resolve, 20));
  };

  // Wait for the next frame: pages receive scroll events with it.
  agentgym.nextFrame = () => new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

  // Scroll the page, or its largest scrollable part, by the height of the window. Returns false at the end.
  agentgym.scroll = async down => {
    const scrollable = e => e.scrollHeight > e.clientHeight + 1 && /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
    const page = document.scrollingElement ?? document.documentElement;
    const parts = page.scrollHeight > innerHeight + 1 ? [page] : [...document.querySelectorAll('*')].filter(scrollable);
    const size = e => e.clientWidth * e.clientHeight;
    const part = parts.reduce((best, e) => !best || size(e) > size(best) ? e : best, null);
    if (!part) return false;
    const before = part.scrollTop;
    part.scrollBy({ top: (down ? 1 : -1) * (part === page ? innerHeight : part.clientHeight), behavior: 'instant' });
    await agentgym.nextFrame();
    return part.scrollTop !== before;
  };
})();
