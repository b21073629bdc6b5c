// Behaviour shared by the pages of all sites. Attributes in the HTML switch it on, so no page has a script of its own:
//   <button data-opens="id">      opens the <dialog id="id">; <button data-closes> within it closes it
//   <form data-confirm="Sure?">   asks for confirmation in a dialog before it is submitted
//   <select data-sends>           submits its form when another option is selected
//   <details class="menu">        closes on a click elsewhere and on Escape
//   <input data-checks="name">    checks or clears all checkboxes of that name in its form
//   <button data-calendar="DAY">  opens a calendar at that day for the text field beside it
//   <main data-reloads>           links to its own path and forms without a method reload only this element
//   <input data-suggests="/path"> lists links while one types: the <ul> of the page at that path, with the text as `q`
'use strict';

function confirmFirst(form) {
  const dialog = document.createElement('dialog');
  const text = document.createElement('p');
  text.textContent = form.dataset.confirm;
  const yes = document.createElement('button');
  yes.textContent = form.dataset.confirmYes || 'OK';
  yes.className = 'primary';
  const no = document.createElement('button');
  no.textContent = 'Cancel';
  yes.addEventListener('click', () => { delete form.dataset.confirm; dialog.close(); form.requestSubmit(form.submitter); });
  no.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  dialog.setAttribute('aria-label', 'Confirm');
  dialog.append(text, yes, no);
  document.body.append(dialog);
  dialog.showModal();
}

async function documentAt(address) {
  const answer = await fetch(address);
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), 'text/html') : null;
}

async function reload(main, address) {
  main.setAttribute('aria-busy', 'true');
  const fresh = (await documentAt(address))?.querySelector('main[data-reloads]');
  if (fresh) { main.replaceWith(fresh); scrollTo(0, 0); }
  else location.assign(address);
}

function reloads(event, source, address) {
  const main = source.closest('main[data-reloads]');
  if (!main || address.origin !== location.origin || address.pathname !== location.pathname) return;
  event.preventDefault();
  history.pushState(null, '', address);
  reload(main, address);
}

window.addEventListener('popstate', () => {
  const main = document.querySelector('main[data-reloads]');
  if (main) reload(main, location.href);
});

async function suggest(input) {
  const text = input.value;
  const list = text.trim() && (await documentAt(`${input.dataset.suggests}?q=${encodeURIComponent(text)}`))?.querySelector('ul');
  if (input.value !== text) return;  // a later request answers
  input.parentElement.querySelector('.suggestions')?.remove();
  if (list?.children.length) input.after(list);
}

document.addEventListener('input', event => {
  if (event.target.matches('[data-suggests]')) suggest(event.target);
});

document.addEventListener('submit', event => {
  const form = event.target;
  if (form.method !== 'get' || form.dataset.confirm) return;
  const address = new URL(form.getAttribute('action') || location.pathname, location.href);  // a field may be named "action"
  address.search = new URLSearchParams(new FormData(form, event.submitter));
  reloads(event, form, address);
});

document.addEventListener('submit', event => {
  if (!event.target.dataset.confirm) return;
  event.preventDefault();
  event.target.submitter = event.submitter;
  confirmFirst(event.target);
});

document.addEventListener('click', event => {
  const opener = event.target.closest('[data-opens]');
  if (opener) document.getElementById(opener.dataset.opens).showModal();
  const closer = event.target.closest('[data-closes]');
  if (closer) closer.closest('dialog').close();
  for (const menu of document.querySelectorAll('details.menu[open]'))
    if (!menu.contains(event.target)) menu.open = false;
  for (const list of document.querySelectorAll('.suggestions'))
    if (!list.parentElement.contains(event.target)) list.remove();
  const link = event.target.closest('a[href]:not([target])');
  const plain = !event.defaultPrevented && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  if (link && plain) reloads(event, link, new URL(link.href));
});

document.addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('details.menu[open]')) menu.open = false;
  for (const list of document.querySelectorAll('.suggestions')) list.remove();
});

document.addEventListener('change', event => {
  if (event.target.matches('select[data-sends]')) event.target.form.requestSubmit();
  if (event.target.matches('[data-checks]'))
    for (const box of event.target.form.querySelectorAll(`input[name="${event.target.dataset.checks}"]`))
      box.checked = event.target.checked;
});

function openCalendar(button, month) {
  const field = button.closest('.field').querySelector('input');
  const dialog = document.createElement('dialog');
  const bar = document.createElement('p'), days = document.createElement('div');
  const add = (parent, text, label, action) => {
    const one = document.createElement('button');
    one.textContent = text;
    one.setAttribute('aria-label', label);
    one.addEventListener('click', () => { dialog.close(); action(); });
    parent.append(one);
  };
  const at = (offset, day) => new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + offset, day));
  const title = document.createElement('strong');
  title.textContent = month.toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  add(bar, '‹', 'Previous month', () => openCalendar(button, at(-1, 1)));
  bar.append(title);
  add(bar, '›', 'Next month', () => openCalendar(button, at(1, 1)));
  for (let day = 1; day <= at(1, 0).getUTCDate(); day++) {
    const iso = at(0, day).toISOString().slice(0, 10);
    add(days, day, iso, () => { field.value = iso; field.focus(); });
  }
  days.firstChild.style.gridColumnStart = (at(0, 1).getUTCDay() + 6) % 7 + 1;
  add(bar, '×', 'Close', () => field.focus());
  dialog.addEventListener('close', () => dialog.remove());
  dialog.className = 'calendar';
  dialog.setAttribute('aria-label', 'Calendar');
  dialog.append(bar, days);
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener('click', event => {
  const button = event.target.closest('[data-calendar]');
  if (!button) return;
  const field = button.closest('.field').querySelector('input');
  const chosen = /^\d{4}-\d\d-\d\d$/.test(field.value) ? field.value : button.dataset.calendar;
  openCalendar(button, new Date(`${chosen}T00:00:00Z`));
});
