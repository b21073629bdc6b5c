// What is done to elements, in the isolated world. Each function takes an element; what it returns is JSON.
(() => {
  const inWindow = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

  // Where an element of a same-origin frame is in the window.
  function offset(element) {
    let x = 0, y = 0;
    for (let view = element.ownerDocument.defaultView; view && view !== globalThis.top && view.frameElement; view = view.parent) {
      const frame = view.frameElement, box = frame.getBoundingClientRect();
      x += box.x + frame.clientLeft;
      y += box.y + frame.clientTop;
    }
    return [x, y];
  }

  function scrollTo(element) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    let view = element.ownerDocument.defaultView;
    for (; view && view !== globalThis.top && view.frameElement; view = view.parent)
      view.frameElement.scrollIntoView({ block: 'center', behavior: 'instant' });
  }

  function hit(root, [x, y]) {
    let found = root.elementFromPoint(x, y);
    while (found?.shadowRoot) {
      const deeper = found.shadowRoot.elementFromPoint(x, y);
      if (!deeper || deeper === found) break;
      found = deeper;
    }
    return found;
  }

  function contains(outer, inner) {
    for (let node = inner; node; node = node.parentNode ?? node.host) if (node === outer) return true;
    return false;
  }

  const belongs = (element, found) =>
    contains(element, found) || contains(found, element) && element.tagName !== 'OPTION' && transparent(element)
    || [...(element.labels ?? [])].some(label => contains(label, found));
  // An element that lets clicks through to what is around it, as icons in buttons do.
  const transparent = element => getComputedStyle(element).pointerEvents === 'none';

  const spots = box => [[.5, .5], [.1, .5], [.9, .5], [.5, .1], [.5, .9]].map(([u, v]) => [box.x + u * box.width, box.y + v * box.height]);

  // A point of the window at which the mouse meets the element: [x, y], 'covered', or 'nowhere' if it has no size.
  agentgym.point = element => {
    const boxesOf = () => [...element.getClientRects()].filter(box => box.width && box.height);
    let boxes = boxesOf();
    if (!boxes.length) return 'nowhere';
    const root = element.ownerDocument, [dx, dy] = offset(element);
    const met = boxes => boxes.flatMap(spots).find(spot =>
      inWindow([spot[0] + dx, spot[1] + dy]) && belongs(element, hit(root, spot)));
    let spot = met(boxes), shift = [dx, dy];
    if (!spot) {
      scrollTo(element);
      shift = offset(element);
      boxes = boxesOf();
      spot = boxes.flatMap(spots).find(s => inWindow([s[0] + shift[0], s[1] + shift[1]]) && belongs(element, hit(root, s)));
    }
    return spot ? [spot[0] + shift[0], spot[1] + shift[1]] : 'covered';
  };

  const fire = (element, ...types) => types.forEach(type => element.dispatchEvent(new Event(type, { bubbles: true, composed: true })));

  // Choose an option as a user would; false if it cannot be chosen.
  agentgym.choose = option => {
    const select = option.closest('select');
    if (!select || select.disabled || option.disabled) return false;
    select.focus();
    if (select.multiple) option.selected = !option.selected;
    else select.selectedIndex = option.index;
    fire(select, 'input', 'change');
    return true;
  };

  const PICKED = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
  const BUTTONS = new Set(['button', 'submit', 'reset', 'checkbox', 'radio', 'image', 'file', 'hidden']);

  function pick(field, text) {
    field.value = text;
    fire(field, 'input', 'change');
    return field.type === 'range' || field.value !== '' || text === '' ? 'done' : 'malformed';
  }

  function pickOption(select, text) {
    const tidy = s => s.replace(/\s+/g, ' ').trim().toLowerCase();
    const options = [...select.options], wanted = tidy(text);
    const option = options.find(o => tidy(o.text) === wanted) ?? options.find(o => tidy(o.value) === wanted);
    return option && agentgym.choose(option) ? 'done' : 'no such option';
  }

  // Make ready for the keyboard, everything in the field selected so that typing replaces it: 'line' or 'lines', by
  // whether the field takes several. 'done' if the text was put in here, else why not.
  agentgym.prepare = (element, text) => {
    const field = element.tagName === 'LABEL' ? element.control ?? element : element;
    if (field.disabled) return 'disabled';
    if (field.readOnly) return 'read-only';
    if (field.tagName === 'SELECT') return pickOption(field, text);
    if (field.tagName === 'INPUT' && BUTTONS.has(field.type)) return 'no field';
    if (field.tagName === 'INPUT' && PICKED.has(field.type)) { field.focus(); return pick(field, text); }
    if (field.tagName !== 'INPUT' && field.tagName !== 'TEXTAREA' && !field.isContentEditable) return prepareInner(field, text);
    scrollTo(field);
    field.focus();
    if (field.select) field.select();
    else getSelection().selectAllChildren(field);
    return field.tagName === 'INPUT' ? 'line' : 'lines';
  };

  // Roles such as combobox are often worn by what holds the field.
  function prepareInner(element, text) {
    const fields = element.querySelectorAll('input:not([type=hidden]), textarea, [contenteditable=""], [contenteditable=true]');
    return fields.length === 1 && fields[0] !== element ? agentgym.prepare(fields[0], text) : 'no field';
  }

  agentgym.press = element => { element.click(); };

  // Scroll by the height of the window: the page itself, or its largest part that scrolls. False at the end.
  agentgym.scroll = down => {
    const scrollable = e => e.scrollHeight > e.clientHeight + 1 && /auto|scroll|overlay/.test(getComputedStyle(e).overflowY);
    const page = document.scrollingElement ?? document.documentElement;
    const parts = page.scrollHeight > innerHeight + 1 ? [page] : [...document.querySelectorAll('*')].filter(scrollable);
    const size = e => e.clientWidth * e.clientHeight;
    const part = parts.reduce((best, e) => !best || size(e) > size(best) ? e : best, null);
    if (!part) return false;
    const before = part.scrollTop;
    part.scrollBy({ top: (down ? 1 : -1) * (part === page ? innerHeight : part.clientHeight), behavior: 'instant' });
    return part.scrollTop !== before;
  };
})();
