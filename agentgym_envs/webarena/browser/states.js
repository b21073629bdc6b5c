// What state an element is in: the properties after its name, in the order and the words of Chrome's tree.

const MOST_VALUE = 1_000;
const asTold = { true: 'True', false: 'False' };

const truth = (e, name) => asTold[attribute(e, name)] ?? null;
const set = value => value ? 'True' : null;
const isControl = e => CONTROLS.has(tagOf(e));
const CONTROLS = words('button input optgroup option select textarea');
const CHECKED = words('checkbox menuitemcheckbox menuitemradio radio switch');
const VALUED = words(`ColorWell combobox Date DateTime InputTime meter progressbar scrollbar searchbox slider spinbutton
  textbox`);

/** ` key: value` of all that can be said of an element. */
function statesOf(e, role, focused, clickable) {
  let told = '';
  const tell = (key, value) => { if (value !== null) told += ` ${key}: ${value}`; };
  tell('focused', set(focused));
  tell('clickable', set(clickable));
  if (!role) return told;
  tell('disabled', set(isControl(e) && matches(e, ':disabled') || attribute(e, 'aria-disabled') === 'true'));
  tell('required', set(isControl(e) && e.required || attribute(e, 'aria-required') === 'true'));
  tell('readonly', set(isControl(e) && e.readOnly || attribute(e, 'aria-readonly') === 'true'));
  tell('invalid', invalidOf(e));
  tell('hasPopup', popupOf(e, role));
  tell('expanded', expandedOf(e));
  tell('checked', CHECKED.has(role) ? checkedOf(e) : null);
  tell('pressed', pressedOf(e));
  tell('selected', selectedOf(e));
  tell('current', currentOf(e));
  tell('value', VALUED.has(role) || tagOf(e) === 'input' && e.type === 'file' ? quotedValue(e) : null);
  return told;
}

const word = value => value && /^[a-z-]{1,30}$/i.test(value) ? value : null;

function invalidOf(e) {
  const said = word(attribute(e, 'aria-invalid'));
  if (said) return said === 'false' ? null : said;
  return isControl(e) && matches(e, ':user-invalid') ? 'true' : null;
}

function popupOf(e, role) {
  const said = word(attribute(e, 'aria-haspopup'));
  if (said) return said === 'false' ? null : said === 'true' ? 'menu' : said;
  return isDropDown(e) ? 'menu' : role === 'combobox' ? 'listbox' : null;
}

const isDropDown = e => tagOf(e) === 'select' && !e.multiple && e.size <= 1;

function expandedOf(e) {
  const tag = tagOf(e);
  if (tag === 'summary' && tagOf(parentOf(e)) === 'details') return parentOf(e).open ? 'True' : 'False';
  const popover = tag === 'button' ? e.popoverTargetElement : null;
  if (popover) return matches(popover, ':popover-open') ? 'True' : 'False';
  return truth(e, 'aria-expanded') ?? (isDropDown(e) ? 'False' : null);
}

function checkedOf(e) {
  if (tagOf(e) === 'input') return e.indeterminate ? 'mixed' : String(e.checked);
  return word(attribute(e, 'aria-checked')) ?? 'false';
}

const pressedOf = e => word(attribute(e, 'aria-pressed'));
const currentOf = e => { const said = word(attribute(e, 'aria-current')); return said === 'false' ? null : said; };
const selectedOf = e => tagOf(e) === 'option' ? set(e.selected) : truth(e, 'aria-selected');

/** What a field holds; of a password only the length, as everywhere in Chrome. */
function valueOf(e) {
  const tag = tagOf(e);
  if (tag === 'select') return [...e.selectedOptions].slice(0, 20).map(option => option.label).join(', ');
  if (tag === 'input') return e.type === 'password' ? '•'.repeat(e.value.length) : fieldValue(e);
  if (tag === 'textarea') return e.value;
  if (tag === 'meter' || tag === 'progress') return e.position === -1 ? '' : String(e.value);
  return attribute(e, 'aria-valuetext') ?? attribute(e, 'aria-valuenow') ?? '';
}

const fieldValue = e => e.type === 'file' ? [...e.files].map(file => file.name).join(', ') : e.value;

/** What can be read of a line of a field, with all its spaces: they are to be copied, too. */
const spaced = line => line.replace(/\s/g, ' ').replace(UNREADABLE, '');

function quotedValue(e) {
  const value = valueOf(e).slice(0, 4 * MOST_VALUE).split('\n').map(spaced).join('\n');
  return value ? quote(value.length > MOST_VALUE ? value.slice(0, MOST_VALUE) + '…' : value) : null;
}

/** In quotes, as Python writes a string: the other quotes, a backslash or \n keep a name from ending its line or itself. */
function quote(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  return mark + text.replace(mark === "'" ? /[\\']/g : /\\/g, '\\$&').replaceAll('\n', '\\n') + mark;
}
