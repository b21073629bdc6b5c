// The desk's page: asks every second how the task stands, and shows it.
'use strict';

const at = id => document.getElementById(id);
let episode = '';
let typing;

async function ask(path, said) {
  const order = said && { method: 'POST', body: JSON.stringify(said), headers: { 'content-type': 'application/json' } };
  const answer = await fetch(path, order);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function made(tag, text, className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}

function showTask({ task, world }) {
  const tags = task ? [task.group, task.kind, task.difficulty, task.split] : [];
  at('tags').replaceChildren(...[...tags, `world ${world}`].map(tag => made('span', tag)));
  at('goal').textContent = task ? task.goal : 'No task is chosen. Look around, or take one.';
  at('id').textContent = task ? task.id : '';
  at('state').hidden = !task;
}

function showSites({ sites, url }) {
  const links = sites.map(site => {
    const link = made('a', site.name, url.startsWith(`${site.origin}/`) ? 'here' : '');
    link.href = `${site.url}/`;
    link.target = 'frame';
    return link;
  });
  at('sites').replaceChildren(...links);
  at('address').textContent = url || ' ';
}

function showScore({ score, standings }) {
  at('score').firstElementChild.textContent = score.toFixed(score % 1 ? 2 : 0);
  at('score').classList.toggle('solved', score >= 1);
  at('standings').replaceChildren(...standings.map(({ about, score: one, reason }) => {
    const line = made('li', about, one >= 1 ? 'met' : '');
    if (reason) line.append(made('small', reason));
    return line;
  }));
}

function show(status) {
  if (status.episode !== episode) {
    episode = status.episode;
    showTask(status);
    at('answer').value = status.answer;
    at('frame').src = status.start;
  }
  showSites(status);
  showScore(status);
}

async function find() {
  const tasks = await ask(`/tasks?q=${encodeURIComponent(at('search').value)}`);
  at('found').replaceChildren(...tasks.map(task => {
    const button = made('button', task.goal);
    button.append(made('small', task.id));
    button.addEventListener('click', () => begin(task.id));
    const line = document.createElement('li');
    line.append(button);
    return line;
  }));
}

const begin = async task => show(await ask('/begin', { task }));

async function poll() {
  try {
    show(await ask('/status'));
  } catch {
    at('address').textContent = 'The server has gone. Start it again with: agentgym webarena sites';
  }
  setTimeout(poll, 1000);
}

at('frame').name = 'frame';
at('again').addEventListener('click', () => begin(''));
at('any').addEventListener('click', () => begin('*'));
at('search').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(find, 200); });
at('answer').addEventListener('input', async () => showScore(await ask('/answer', { answer: at('answer').value })));
poll();
