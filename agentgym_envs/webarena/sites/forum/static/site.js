// Votes count at once, without loading the page anew; where that fails, the form is sent as forms are.
'use strict';

function shown(form, vote) {
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
    const answer = await fetch(form.action, { method: 'POST', body });
    if (!answer.ok || answer.redirected) throw new Error('not counted');
    shown(form, await answer.json());
  } catch {
    form.dataset.plain = '1';
    form.requestSubmit(button);
  }
});
