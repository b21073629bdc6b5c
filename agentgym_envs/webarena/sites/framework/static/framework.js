// Behaviour shared by the pages of all sites. Attributes in the HTML switch it on, so no page has a script of its own:
//   <button data-opens="id">      opens the <dialog id="id">; <button data-closes> within it closes it
//   <form data-confirm="Sure?">   asks for confirmation in a dialog before it is submitted
//   <select data-sends>           submits its form when another option is selected
//   <details class="menu">        closes on a click elsewhere and on Escape
//   <input data-checks="name">    checks or clears all checkboxes of that name in its form
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
});

document.addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('details.menu[open]')) menu.open = false;
});

document.addEventListener('change', event => {
  if (event.target.matches('select[data-sends]')) event.target.form.requestSubmit();
  if (event.target.matches('[data-checks]'))
    for (const box of event.target.form.querySelectorAll(`input[name="${event.target.dataset.checks}"]`))
      box.checked = event.target.checked;
});
