// Roles of elements, in the words of Chrome's accessibility tree, which WebArena shows.
// Sources: HTML-AAM 1.0 for the implicit roles of elements, WAI-ARIA 1.2 for the attribute `role`.

const HTML_ROLES = {
  abbr: 'Abbr', address: 'group', article: 'article', aside: 'complementary', audio: 'Audio', blockquote: 'blockquote',
  button: 'button', canvas: 'Canvas', caption: 'caption', code: 'code', datalist: 'listbox', dd: 'definition',
  del: 'deletion', details: 'group', dfn: 'term', dialog: 'dialog', dl: 'DescriptionList', dt: 'term', em: 'emphasis',
  embed: 'EmbeddedObject', fieldset: 'group', figcaption: 'Figcaption', figure: 'figure', form: 'form', frame: 'Iframe',
  h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading', hgroup: 'group',
  hr: 'separator', iframe: 'Iframe', img: 'img', ins: 'insertion', label: 'LabelText', legend: 'Legend',
  li: 'listitem', main: 'main', mark: 'mark', menu: 'list', meter: 'meter', nav: 'navigation',
  object: 'PluginObject', ol: 'list', optgroup: 'group', option: 'option', output: 'status', p: 'paragraph',
  progress: 'progressbar', s: 'deletion', search: 'search', strong: 'strong', sub: 'subscript',
  sup: 'superscript', table: 'table', tbody: 'rowgroup', textarea: 'textbox', tfoot: 'rowgroup', thead: 'rowgroup',
  time: 'time', tr: 'row', ul: 'list', video: 'Video',
};

const INPUT_ROLES = {
  button: 'button', checkbox: 'checkbox', color: 'ColorWell', date: 'Date', 'datetime-local': 'DateTime', file: 'button',
  image: 'button', month: 'DateTime', number: 'spinbutton', radio: 'radio', range: 'slider', reset: 'button',
  search: 'searchbox', submit: 'button', time: 'InputTime', week: 'DateTime',
};

const words = text => new Set(text.split(/\s+/));

const ARIA_ROLES = words(`alert alertdialog application article banner blockquote button caption cell checkbox code
  columnheader combobox complementary contentinfo definition deletion dialog directory document emphasis feed figure form
  generic grid gridcell group heading image img insertion link list listbox listitem log main mark marquee math menu menubar
  menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio
  radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong subscript
  suggestion superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid treeitem`);

// Roles of elements that an agent can act on.
const INTERACTIVE = words(`button checkbox ColorWell combobox Date DateTime DisclosureTriangle InputTime link listbox
  menuitem menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab textbox treeitem`);

// Structural roles, which appear only with a name or a state.
const STRUCTURE = words(`Abbr banner caption code deletion DescriptionList definition emphasis Figcaption generic img
  insertion LabelText Legend list listitem mark navigation none paragraph rowgroup sectionfooter sectionheader strong
  subscript superscript SvgRoot time`);

const SECTIONS = 'article,aside,main,nav,section,[role=article],[role=complementary],[role=main],[role=navigation]';

// Elements described by their state, not by their contents.
const LEAVES = words('audio canvas embed img input meter progress select textarea video');

const ROLE_OF_TAG = {
  a: e => hasAttribute(e, 'href') ? 'link' : 'generic',
  area: e => hasAttribute(e, 'href') ? 'link' : 'generic',
  footer: e => closest(e, SECTIONS) ? 'sectionfooter' : 'contentinfo',
  header: e => closest(e, SECTIONS) ? 'sectionheader' : 'banner',
  img: e => attribute(e, 'alt') === '' && !ariaName(e) && !hasAttribute(e, 'title') ? 'none' : 'img',
  input: e => hasAttribute(e, 'list') && !(e.type in INPUT_ROLES) ? 'combobox' : INPUT_ROLES[e.type] ?? 'textbox',
  section: e => ariaName(e) || hasAttribute(e, 'title') ? 'region' : 'generic',
  select: e => e.multiple || e.size > 1 ? 'listbox' : 'combobox',
  summary: e => tagOf(parentOf(e) ?? e) === 'details' ? 'DisclosureTriangle' : 'generic',
  svg: e => ariaName(e) ? 'SvgRoot' : 'img',
  td: e => CELL_OF[tableRole(e)] ?? 'cell',
  th: e => HEADER_OF[attribute(e, 'scope')] ?? (besideData(e) ? 'rowheader' : 'columnheader'),
};

const CELL_OF = { grid: 'gridcell', treegrid: 'gridcell' };
const HEADER_OF = { row: 'rowheader', rowgroup: 'rowheader', col: 'columnheader', colgroup: 'columnheader' };
const PRESENTATIONAL = words('none presentation');
const TABLE_PARTS = words('caption tbody td tfoot th thead tr');
const LIST_PARTS = words('li');

const tableRole = e => ariaRole(closest(e, 'table') ?? e);

/** True for a header cell before a data cell, which makes it the header of its row. */
function besideData(e) {
  for (let c = e.nextElementSibling; c; c = c.nextElementSibling) if (tagOf(c) === 'td') return true;
  return false;
}

/** The first known role in the attribute `role`. */
function ariaRole(e) {
  const written = attribute(e, 'role');
  if (!written) return null;
  const role = written.toLowerCase().split(/\s+/).find(word => ARIA_ROLES.has(word));
  return role === 'image' ? 'img' : role === 'directory' ? 'list' : role ?? null;
}

const isFocusable = e => e.tabIndex >= 0 || hasAttribute(e, 'tabindex');

/** True for parts of a presentational table or list, which have no roles of their own. */
function inPresentational(e, tag) {
  const owner = TABLE_PARTS.has(tag) ? closest(e, 'table') : LIST_PARTS.has(tag) ? parentOf(e) : null;
  return owner && typeOf(owner) === ELEMENT && PRESENTATIONAL.has(ariaRole(owner)) && !isFocusable(owner);
}

function ownRole(e) {
  const tag = tagOf(e);
  if (inPresentational(e, tag)) return 'generic';
  const special = ROLE_OF_TAG[tag];
  if (special) return special(e);
  return HTML_ROLES[tag] ?? (attribute(e, 'contenteditable') !== null && isEditingHost(e) ? 'textbox' : 'generic');
}

/** The root of an editable region. Chrome calls it generic; here it is a textbox, since an agent types into it. */
const isEditingHost = e => isHtml(e) && isEditable(e) && attribute(e, 'contenteditable') !== 'false';

function roleOf(e) {
  const role = ariaRole(e);
  if (role === null || role === 'generic') return ownRole(e);
  if (PRESENTATIONAL.has(role)) return isFocusable(e) || ariaName(e) ? ownRole(e) : 'generic';
  if ((role === 'form' || role === 'region') && !ariaName(e) && !hasAttribute(e, 'title')) return role === 'form' ? role : 'generic';
  return role;
}
