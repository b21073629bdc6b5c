// What is done to elements, in the isolated world. Each function takes an element; what it returns is JSON.
(() => {
  const inWindow = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  const rectsOf = method(Element, 'getClientRects');
  const scrollIntoView = method(Element, 'scrollIntoView');

  // The frame of the same origin that an element is in, and that one's, and so on.
  function framesAround(element) {
    const frames = [];
    for (let e = element; (e = ownerOf(e).defaultView?.frameElement);) frames.push(e);
    return frames;
  }

  const scrollTo = element => scrollIntoView(element, { block: 'center', inline: 'center', behavior: 'instant' });

  // A point of a frame's document, in the document that the frame is in.
  function outOf(frame, [x, y]) {
    const box = boxOf(frame), style = getComputedStyle(frame);
    return [x + box.x + frame.clientLeft + parseFloat(style.paddingLeft), y + box.y + frame.clientTop + parseFloat(style.paddingTop)];
  }

  function hit(root, [x, y]) {
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
  // An element that lets clicks through to what is around it, as icons in buttons do.
  const transparent = element => getComputedStyle(element).pointerEvents === 'none';

  const spots = box => [[.5, .5], [.1, .5], [.9, .5], [.5, .1], [.5, .9]].map(([u, v]) => [box.x + u * box.width, box.y + v * box.height]);

  // Points of the element: where they are in the window, and whether the mouse there meets it.
  function* meetings(element) {
    for (const box of rectsOf(element)) {
      for (let spot of box.width && box.height ? spots(box) : []) {
        let met = belongs(element, hit(ownerOf(element), spot));
        for (const frame of framesAround(element)) {
          spot = outOf(frame, spot);
          met &&= belongs(frame, hit(ownerOf(frame), spot));
        }
        if (inWindow(spot)) yield { spot, met };
      }
    }
  }

  function meeting(element) {
    let found = 'nowhere';
    for (const { spot, met } of meetings(element)) {
      if (met) return spot;
      found = { covered: toldAround(hit(document, spot)) };
    }
    return found;
  }

  // The id of the nearest element with one, 0 without any.
  function toldAround(node) {
    for (; node; node = node.parentNode ?? node.host) if (told.get(ids.get(node)) === node) return ids.get(node);
    return 0;
  }

  // A point of the window at which the mouse meets the element, [x, y]; else { covered: id }, by what it is covered, or
  // 'nowhere' if it has no size or cannot be scrolled to.
  agentgym.point = element => {
    const found = meeting(element);
    if (Array.isArray(found)) return found;
    scrollTo(element);
    return meeting(element);
  };

  const fire = (element, ...types) => types.forEach(type => element.dispatchEvent(new Event(type, { bubbles: true, composed: true })));

  // Choose an option as a user would: 'chosen', 'disabled' (also of other elements), or 'no option'.
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
    const taken = field.type === 'color' ? field.value === text.toLowerCase() : field.value !== '' || text === '';
    if (taken) fire(field, 'input', 'change');
    else field.value = before;
    return taken ? 'done' : 'malformed';
  }

  function pickOption(select, text) {
    const tidy = s => s.replace(/\s+/g, ' ').trim().toLowerCase();
    const options = [...select.options], wanted = tidy(text);
    const option = options.find(o => tidy(o.text) === wanted) ?? options.find(o => tidy(o.value) === wanted);
    return option && agentgym.choose(option) === 'chosen' ? 'done' : 'no such option';
  }

  // Make ready for the keyboard, everything in the field selected so that typing replaces it: 'line' or 'lines', by
  // whether the field takes several. 'done' if the text was put in here, else why not.
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

  // What an input or a text area holds, as { value }; false of others.
  agentgym.held = element => ['INPUT', 'TEXTAREA'].includes(element.tagName) && { value: element.value };

  agentgym.options = select => [...select.options ?? []].slice(0, 20).map(option => option.text.trim());

  // Roles such as combobox are often worn by what holds the field.
  function prepareInner(element, text) {
    const fields = element.querySelectorAll('input:not([type=hidden]), textarea, [contenteditable=""], [contenteditable=true]');
    return fields.length === 1 && fields[0] !== element ? agentgym.prepare(fields[0], text) : 'no field';
  }

  agentgym.press = element => { element.click(); };

  // Wait until something changes, for `most` ms at most.
  agentgym.changed = async most => {
    const began = performance.timeOrigin + performance.now();
    for (let waited = 0; waited < most && agentgym.page.changed < began; waited += 20)
      await new Promise(resolve => setTimeout(resolve, 20));
  };

  // Pages learn that they were scrolled with the next picture of them.
  agentgym.shown = () => new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

  // Scroll by the height of the window: the page itself, or its largest part that scrolls. False at the end.
  agentgym.scroll = async down => {
    const scrollable = e => e.scrollHeight > e.clientHeight + 1 && /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
    const page = document.scrollingElement ?? document.documentElement;
    const parts = page.scrollHeight > innerHeight + 1 ? [page] : [...document.querySelectorAll('*')].filter(scrollable);
    const size = e => e.clientWidth * e.clientHeight;
    const part = parts.reduce((best, e) => !best || size(e) > size(best) ? e : best, null);
    if (!part) return false;
    const before = part.scrollTop;
    part.scrollBy({ top: (down ? 1 : -1) * (part === page ? innerHeight : part.clientHeight), behavior: 'instant' });
    await agentgym.shown();
    return part.scrollTop !== before;
  };
})();
