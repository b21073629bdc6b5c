// Accessible names of elements. Source: Accessible Name and Description Computation 1.2, and HTML-AAM 1.0 for each kind
// of element; where Chrome differs, this follows Chrome.

const LONGEST_NAME = 200, LONGEST_TEXT = 10_000, DEEPEST_NAME = 60;

const NAMED_BY_CONTENT = words(`button cell checkbox columnheader DisclosureTriangle gridcell heading link math menuitem
  menuitemcheckbox menuitemradio option radio rowheader switch tab term tooltip treeitem`);

// Control and format characters (some reverse the direction of a text), surrogates, and private-use icons.
const UNREADABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu;

/** The readable characters of a text, on one line. */
function squeeze(text) {
  if (/^[!-~]+(?: [!-~]+)*$/.test(text)) return text;
  return text.replace(/\s+/g, ' ').replace(UNREADABLE, '').replace(/ {2,}/g, ' ').trim();
}

/** The first `most` characters, with an ellipsis if there are more. */
function shorten(text, most) {
  const clean = squeeze(text.length > 4 * most ? text.slice(0, 4 * most) : text);
  return clean.length > most ? squeeze(clean.slice(0, most)) + '…' : clean;
}

const attributeName = (e, name) => squeeze((attribute(e, name) ?? '').slice(0, 4 * LONGEST_NAME));

const labelledBy = e => join(referenced(e, 'aria-labelledby').map(whole));
const ariaName = e => labelledBy(e) || attributeName(e, 'aria-label');
const join = parts => squeeze(parts.join(' '));

/** The text of an element that names another; of a hidden element, all of its text. */
function whole(e) {
  return attributeName(e, 'aria-label') || (isRendered(e) ? contentOf(e) : squeeze(textContent(e).slice(0, LONGEST_NAME)));
}

const labelsOf = e => join(labelsFor(e).map(label => contentOf(label, e)));
const childText = (e, tag) => {
  for (let c = firstElement(e); c; c = c.nextElementSibling) if (tagOf(c) === tag) return contentOf(c);
  return '';
};

// `e.labels` searches the whole document for each element; this searches once for all elements.
const MAX_LABELS = 5_000;
let labelsIn = new Map();

function labelsFor(e) {
  const root = rootOf(e);
  if (!labelsIn.has(root)) labelsIn.set(root, labelsByControl(root));
  return labelsIn.get(root).get(e) ?? [];
}

function labelsByControl(root) {
  const labels = new Map();
  for (const label of [...queryAll(root, 'label')].slice(0, MAX_LABELS)) {
    const control = label.control;
    if (control) labels.set(control, [...labels.get(control) ?? [], label]);
  }
  return labels;
}

const attributes = (...names) => e => names.reduce((found, name) => found || attributeName(e, name), '');
const inputName = {
  button: e => squeeze(e.value), submit: e => squeeze(hasAttribute(e, 'value') ? e.value : 'Submit'),
  reset: e => squeeze(hasAttribute(e, 'value') ? e.value : 'Reset'),
  image: e => attributes('alt', 'value', 'title')(e) || 'Submit',
};
const textFieldName = e => labelsOf(e) || attributes('title', 'placeholder', 'aria-placeholder')(e);

const NATIVE_NAME = {
  area: attributes('alt'), fieldset: e => childText(e, 'legend'), img: attributes('alt'), object: labelsOf,
  input: e => e.type in inputName ? labelsOf(e) || inputName[e.type](e) : textFieldName(e), optgroup: attributes('label'),
  option: e => squeeze(e.label), svg: e => childText(e, 'title'), table: e => childText(e, 'caption'),
  textarea: textFieldName, select: labelsOf, button: labelsOf, meter: labelsOf, output: labelsOf, progress: labelsOf,
};

/** The name of an element, and whether the name comes from its content. */
function nameOf(e, role) {
  const given = ariaName(e) || (NATIVE_NAME[tagOf(e)]?.(e) ?? '');
  if (given) return { name: shorten(given, LONGEST_NAME), content: false };
  const content = isNamedByContent(e, role) ? contentOf(e) : '';
  if (content) return { name: shorten(content, LONGEST_NAME), content: true };
  return { name: UNTITLED.has(role) ? '' : attributeName(e, 'title'), content: false };
}

// For these roles Chrome uses a title as the description, which is not shown.
const UNTITLED = words('caption code deletion emphasis generic insertion none paragraph strong subscript superscript time');

const isNamedByContent = (e, role) =>
  NAMED_BY_CONTENT.has(role) && tagOf(e) !== 'input' || role === 'row' && closest(e, '[role=grid],[role=treegrid]');

/** The visible text of an element, without the control that it labels. */
function contentOf(e, control = null) {
  const parts = { text: '', control, left: LONGEST_NAME * 4 };
  gather(e, parts, 0);
  return squeeze(parts.text);
}

function gather(e, parts, depth) {
  add(parts, pseudoText(e, '::before'));
  for (const c of childrenOf(e)) {
    if (parts.left <= 0) return;
    const type = typeOf(c);
    if (type === TEXT) add(parts, c.data.slice(0, parts.left));
    else if (type === ELEMENT && c !== parts.control) gatherElement(c, parts, depth + 1);
  }
  add(parts, pseudoText(e, '::after'));
}

function add(parts, text) {
  parts.text += text;
  parts.left -= text.length + 1;
}

function gatherElement(e, parts, depth) {
  if (tagOf(e) === 'br') return add(parts, ' ');
  if (nodesLeft-- <= 0 || depth > DEEPEST_NAME || isLeftOut(e)) return;
  const display = getComputedStyle(e).display;
  if (!isRendered(e) && display !== 'contents') return;
  const gap = display.startsWith('inline') && display !== 'inline-block' || display === 'contents' ? '' : ' ';
  add(parts, gap);
  const own = embeddedName(e);
  if (own === null) gather(e, parts, depth);
  else add(parts, ' ' + own + ' ');
  add(parts, gap);
}

/** The text of an element inside the name of another; null if that is its content. */
function embeddedName(e) {
  const tag = tagOf(e);
  const given = attributeName(e, 'aria-label');
  if (given) return given;
  if (EMBEDDED[tag]) return EMBEDDED[tag](e);
  return NATIVE_NAME[tag] && tag !== 'button' && tag !== 'meter' ? NATIVE_NAME[tag](e) || null : null;
}

const EMBEDDED = {
  img: attributes('alt', 'title'), input: e => BUTTONS.has(e.type) ? nameOf(e, 'button').name : squeeze(valueOf(e)),
  select: e => squeeze(valueOf(e)), textarea: e => squeeze(e.value), svg: e => childText(e, 'title'),
};
const BUTTONS = words('button submit reset image');

/** The text that a style sheet adds before or after the content of an element. */
function pseudoText(e, which) {
  if (!sheetsAddText) return '';
  const content = getComputedStyle(e, which).content;
  if (content === 'none' || content === 'normal' || !content.includes('"')) return '';
  const texts = [...content.split('" / "')[0].matchAll(/"((?:[^"\\]|\\.)*)"/g)];
  return texts.map(([, text]) => text.replace(/\\(.)/g, '$1')).join('');
}

// Reading the pseudo-elements of every element takes as long as the rest of an observation, and most small pages have
// none. So the style sheets are searched first, each of them once and up to MAX_RULES rules.
const MAX_RULES = 500;
let sheetsAddText = false;
const searched = new WeakMap();
const addsText = rule => rule.type === CSSRule.IMPORT_RULE || /[\s{;]content:/.test(rule.cssText);

function sheetAddsText(sheet) {
  try {
    const rules = sheet.cssRules, known = searched.get(sheet);
    if (known?.count === rules.length) return known.found;
    const found = rules.length > MAX_RULES || [...rules].some(addsText);
    searched.set(sheet, { count: rules.length, found });
    return found;
  } catch {
    return true; // a sheet of another origin, which cannot be read
  }
}

/** Search the style sheets of a document or shadow tree for added text. */
function searchSheets(root) {
  sheetsAddText ||= [...sheetsOf[typeOf(root)](root), ...adoptedBy[typeOf(root)](root)].some(sheetAddsText);
}
