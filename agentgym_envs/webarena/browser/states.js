// States of elements: the properties after the name, in the order and the words of Chrome's tree.

const MAX_VALUE = 1_000;

function truth(e, name) {
  const given = attribute(e, name);
  return given === 'true' ? 'True' : given === 'false' ? 'False' : null;
}

const set = value => value ? 'True' : null;
const isControl = e => CONTROLS.has(tagOf(e));
const CONTROLS = words('button input optgroup option select textarea');
const CHECKED = words('checkbox menuitemcheckbox menuitemradio radio switch');
const VALUED = words(`ColorWell combobox Date DateTime InputTime meter progressbar scrollbar searchbox slider spinbutton
  textbox`);

/** The states of an element, each as ` key: value`. */
function statesOf(e, role, focused, clickable) {
  let states = '';
  const add = (key, value) => { if (value !== null) states += ` ${key}: ${value}`; };
  add('focused', set(focused));
  add('clickable', set(clickable));
  if (!role) return states;
  add('disabled', set(isControl(e) && matches(e, ':disabled') || attribute(e, 'aria-disabled') === 'true'));
  add('required', set(isControl(e) && e.required || attribute(e, 'aria-required') === 'true'));
  add('readonly', set(isControl(e) && e.readOnly || attribute(e, 'aria-readonly') === 'true'));
  add('invalid', invalidOf(e));
  add('hasPopup', popupOf(e, role));
  add('expanded', expandedOf(e));
  add('checked', CHECKED.has(role) ? checkedOf(e) : null);
  add('pressed', pressedOf(e));
  add('selected', selectedOf(e));
  add('current', currentOf(e));
  add('value', VALUED.has(role) || tagOf(e) === 'input' && e.type === 'file' ? quotedValue(e) : null);
  return states;
}

const word = value => value && /^[a-z-]{1,30}$/i.test(value) ? value : null;

function invalidOf(e) {
  const given = word(attribute(e, 'aria-invalid'));
  if (given) return given === 'false' ? null : given;
  return isControl(e) && matches(e, ':user-invalid') ? 'true' : null;
}

function popupOf(e, role) {
  const given = word(attribute(e, 'aria-haspopup'));
  if (given) return given === 'false' ? null : given === 'true' ? 'menu' : given;
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
const currentOf = e => { const given = word(attribute(e, 'aria-current')); return given === 'false' ? null : given; };
const selectedOf = e => tagOf(e) === 'option' ? set(e.selected) : truth(e, 'aria-selected');

/** The value of a field; a password shows only its length, as in Chrome. */
function valueOf(e) {
  const tag = tagOf(e);
  if (tag === 'select') return [...e.selectedOptions].slice(0, 20).map(option => option.label).join(', ');
  if (tag === 'input') return e.type === 'password' ? '•'.repeat(e.value.length) : fieldValue(e);
  if (tag === 'textarea') return e.value;
  if (tag === 'meter' || tag === 'progress') return e.position === -1 ? '' : String(e.value);
  return attribute(e, 'aria-valuetext') ?? attribute(e, 'aria-valuenow') ?? '';
}

const fieldValue = e => e.type === 'file' ? [...e.files].map(file => file.name).join(', ') : e.value;

/** The readable characters of a line, with all its spaces, since an agent may have to copy them. */
const spaced = line => line.replace(/\s/g, ' ').replace(UNREADABLE, '');

function quotedValue(e) {
  const value = valueOf(e).slice(0, 4 * MAX_VALUE).split('\n').map(spaced).join('\n');
  return value ? quote(value.length > MAX_VALUE ? value.slice(0, MAX_VALUE) + '…' : value) : null;
}

/** A quoted text in Python's syntax, so that a name can end neither its quotes nor its line. */
function quote(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  return mark + text.replace(mark === "'" ? /[\\']/g : /\\/g, '\\$&').replaceAll('\n', '\\n') + mark;
}
