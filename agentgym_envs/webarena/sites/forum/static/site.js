// Votes are sent without reloading the page. If that fails, the form is submitted normally. A list with `data-endless`
// loads its next part as one scrolls to its end, and drops what lies far above, so that the document stays small.
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

const MOST_PARTS = 2;
let loading = false;

async function loadPart(list, step) {
  const parts = list.children, edge = step > 0 ? parts[parts.length - 1] : parts[0];
  const number = Number(edge.dataset.page) + step;
  if (number < 1 || number > Number(list.dataset.last)) return false;
  const fresh = (await documentAt(`${location.pathname}?page=${number}`))?.querySelector('[data-endless] > section');
  if (!fresh) return false;
  const top = edge.getBoundingClientRect().top;
  if (step > 0) edge.after(fresh); else edge.before(fresh);
  if (parts.length > MOST_PARTS) (step > 0 ? parts[0] : parts[parts.length - 1]).remove();
  scrollBy(0, edge.getBoundingClientRect().top - top);  // what one reads stays where it is
  return true;
}

const near = {
  1: () => scrollY + innerHeight >= document.documentElement.scrollHeight - 300,
  [-1]: () => scrollY < 100,
};

async function loadNearEdges() {
  const list = document.querySelector('[data-endless]');
  if (!list || loading) return;
  loading = true;
  try {
    let position;
    do {
      for (const step of [1, -1]) {
        let loaded = false;
        while (near[step]() && await loadPart(list, step)) loaded = true;
        if (loaded) break;
      }
      position = scrollY;
      await new Promise(requestAnimationFrame);  // the scroll events of `loadPart` come before this frame
    } while (scrollY !== position);  // somebody scrolled meanwhile
  } finally {
    loading = false;
  }
}

addEventListener('scroll', loadNearEdges);
addEventListener('DOMContentLoaded', loadNearEdges);  // the first part may not fill the window
