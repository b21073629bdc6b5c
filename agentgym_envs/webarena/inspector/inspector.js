// The inspector's page: polls the status every second and shows it.
'use strict';

const byId = id => document.getElementById(id);
let episode = '';
let typing;

async function request(path, body) {
  const options = body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(path, options);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

function createElement(tag, text, className = '') {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}

function showTask({ task, world }) {
  const tags = task ? [task.group, task.kind, task.difficulty, task.split] : [];
  byId('tags').replaceChildren(...[...tags, `world ${world}`].map(tag => createElement('span', tag)));
  byId('goal').textContent = task ? task.goal : 'No task is selected. Explore the sites, or choose a task.';
  byId('id').textContent = task ? task.id : '';
  byId('state').hidden = !task;
}

function createLink(text, url, className = '') {
  const link = createElement('a', text, className);
  link.href = url;
  link.target = 'frame';
  return link;
}

// The frame is a single tab: those of a task that starts on several are links to their pages.
function showSites({ sites, url, tabs }) {
  const links = sites.map(site =>
    createLink(site.name, `${site.url}/`, url.startsWith(`${site.origin}/`) ? 'here' : ''));
  const pages = tabs.length > 1 ? tabs.map((tab, index) => createLink(`Tab ${index}`, tab)) : [];
  byId('sites').replaceChildren(...links, ...pages);
  byId('address').textContent = url || ' ';
}

function showScore({ score, evaluators }) {
  byId('score').firstElementChild.textContent = score.toFixed(score % 1 ? 2 : 0);
  byId('score').classList.toggle('solved', score >= 1);
  byId('evaluators').replaceChildren(...evaluators.map(({ about, score: evaluatorScore, reason }) => {
    const line = createElement('li', about, evaluatorScore >= 1 ? 'met' : '');
    if (reason) line.append(createElement('small', reason));
    return line;
  }));
}

function show(status) {
  if (status.episode !== episode) {
    episode = status.episode;
    showTask(status);
    byId('answer').value = status.answer;
    byId('frame').src = status.start;
  }
  showSites(status);
  showScore(status);
}

async function find() {
  const tasks = await request(`/tasks?q=${encodeURIComponent(byId('search').value)}`);
  byId('results').replaceChildren(...tasks.map(task => {
    const button = createElement('button', task.goal);
    button.append(createElement('small', task.id));
    button.addEventListener('click', () => begin(task.id));
    const line = document.createElement('li');
    line.append(button);
    return line;
  }));
}

const begin = async task => show(await request('/begin', { task }));

async function poll() {
  try {
    show(await request('/status'));
  } catch {
    byId('address').textContent = 'The server is not running. Start it again with: agentgym webarena sites';
  }
  setTimeout(poll, 1000);
}

byId('frame').name = 'frame';
byId('again').addEventListener('click', () => begin(''));
byId('any').addEventListener('click', () => begin('*'));
byId('search').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(find, 200); });
byId('answer').addEventListener('input', async () => showScore(await request('/answer', { answer: byId('answer').value })));
poll();
