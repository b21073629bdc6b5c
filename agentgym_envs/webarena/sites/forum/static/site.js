// Votes are sent without reloading the page. If that fails, the form is submitted normally.
'use strict';

function showVote(form, vote) {
  form.querySelector('.score').textContent = vote.score;
  for (const [kind, value, word] of [['up', 1, 'upvote'], ['down', -1, 'downvote']]) {
    const button = form.querySelector(`.${kind}`), on = vote.value === value;
    button.classList.toggle('on', on);
    button.value = on ? 0 : value;
    button.setAttribute('aria-label', on ? `Retract ${word}` : word[0].toUpperCase() + word.slice(1));
  }
}

document.addEventListener('submit', async event => {
  const form = event.target, button = event.submitter;
  if (!form.matches('.vote') || !button || form.dataset.plain) return;
  event.preventDefault();
  try {
    const body = new URLSearchParams({ value: button.value, quiet: 1 });
    const response = await fetch(form.action, { method: 'POST', body });
    if (!response.ok || response.redirected) throw new Error('not counted');
    showVote(form, await response.json());
  } catch {
    form.dataset.plain = '1';
    form.requestSubmit(button);
  }
});
