// The map of a page: tiles of the ground, under an overlay of places, pins and routes. The page comes with the tiles of
// its first view; others load as they come into view.
// It is dragged, or moved by the arrow keys, and zoomed by the wheel, a double click, + and -. The address follows: the
// query of the map page, "#map=zoom/latitude/longitude" on other pages. Without this script, pages show their
// first view, and links move the map of the map page.
'use strict';

const map = document.querySelector('.map');
const KM_PER_PIXEL = 0.46;
const [WIDTH, HEIGHT, TILE, MAX_ZOOM] = [1000, 720, 512, 9];
const [WIDTH_KM, HEIGHT_KM] = [420, 300];
const [NORTH, WEST, KM_PER_LATITUDE, KM_PER_LONGITUDE] = [48.6, -33.4, 111.2, 75.6];
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const WHEEL_NOTCH = 60;

const ground = map?.querySelector('.ground'), loading = new Set();
const overlay = () => map.querySelector('.overlay');
const moves = () => map.querySelector('.moves');
const clamp = (value, most) => Math.min(Math.max(value, 0), most);
let view, refreshed = 0, wheeled = 0;

function drawnView() {
  const { x, y, zoom } = overlay().dataset;
  return { x: +x, y: +y, zoom: +zoom };
}

// Kilometres per pixel of the drawing, and pixels of the window per pixel of the drawing, which covers its whole box.
const kilometres = zoom => KM_PER_PIXEL * 2 ** -zoom;
function stretch() {
  const { width, height } = map.getBoundingClientRect();
  return Math.max(width / WIDTH, height / HEIGHT);
}

function tilesInView() {
  const box = map.getBoundingClientRect(), side = TILE * kilometres(view.zoom), found = [];
  const range = (middle, length, most) => {
    const reach = length / 2 / stretch() * kilometres(view.zoom);
    return [Math.max(Math.floor((middle - reach) / side), 0), Math.min(middle + reach, most) / side];
  };
  const [west, east] = range(view.x, box.width, WIDTH_KM), [north, south] = range(view.y, box.height, HEIGHT_KM);
  for (let row = north; row < south; row++)
    for (let column = west; column < east; column++) found.push(`${view.zoom}/${column}/${row}`);
  return found;
}

// Put a tile of any zoom level in its place.
function place(tile) {
  const [zoom, column, row] = tile.dataset.tile.split('/').map(Number);
  const side = TILE * kilometres(zoom), pixel = kilometres(view.zoom), factor = 2 ** (view.zoom - zoom);
  tile.setAttribute('x', (column * side - view.x) / pixel + WIDTH / 2 - factor);
  tile.setAttribute('y', (row * side - view.y) / pixel + HEIGHT / 2 - factor);
  for (const length of ['width', 'height']) tile.setAttribute(length, (TILE + 2) * factor);
}

async function load(name) {
  loading.add(name);
  const response = await fetch(`/tiles/${name}.svg`);
  if (response.ok) ground.append(new DOMParser().parseFromString(await response.text(), 'image/svg+xml').documentElement);
  loading.delete(name);
  placeTiles(response.ok);
}

// The old tiles stay below the new ones until all of these are there.
function placeTiles(loads = true) {
  const wanted = tilesInView(), present = new Set([...ground.children].map(tile => tile.dataset.tile));
  const missing = wanted.filter(name => !present.has(name));
  if (loads) for (const name of missing) if (!loading.has(name)) load(name);
  for (const tile of [...ground.children])
    if (missing.length || wanted.includes(tile.dataset.tile)) place(tile);
    else tile.remove();
}

function show(next) {
  view = { x: clamp(next.x, WIDTH_KM), y: clamp(next.y, HEIGHT_KM), zoom: next.zoom };
  placeTiles();
  const drawn = drawnView(), pixel = kilometres(view.zoom) / stretch();
  const [right, down] = [(drawn.x - view.x) / pixel, (drawn.y - view.y) / pixel];
  overlay().style.transform = `translate(${right}px, ${down}px) scale(${2 ** (view.zoom - drawn.zoom)})`;
}

// Replace the overlay, and on the map page the links and the list of places, by those of the current address.
async function refresh() {
  const address = new URL(location.href), at = address.hash.match(/^#map=(.+)/), number = ++refreshed;
  if (at) address.searchParams.set('map', at[1]);
  const page = await documentAt(address);
  if (!page || number !== refreshed) return;  // a later request answers
  const focused = document.activeElement.closest('.moves a')?.getAttribute('aria-label');
  for (const part of ['.overlay', ...moves() ? ['.moves', '.panel'] : []])
    document.querySelector(part).replaceWith(page.querySelector(part));
  if (focused) moves().querySelector(`[aria-label="${focused}"]`)?.focus();
  show(drawnView());
}

function go(next) {
  show(next);
  const latitude = (NORTH - view.y / KM_PER_LATITUDE).toFixed(5), longitude = (WEST + view.x / KM_PER_LONGITUDE).toFixed(5);
  history.replaceState(null, '', moves() ? `/?lat=${latitude}&lon=${longitude}&zoom=${view.zoom}` : `#map=${view.zoom}/${latitude}/${longitude}`);
  refresh();
}

function moveBy(right, down) {
  const pixel = kilometres(view.zoom) / stretch();
  return { x: view.x + right * pixel, y: view.y + down * pixel, zoom: view.zoom };
}

// Zoom; the point at `x` and `y` pixels from the centre stays where it is.
function zoomBy(levels, x = 0, y = 0) {
  const zoom = clamp(view.zoom + levels, MAX_ZOOM);
  if (zoom === view.zoom) return;
  const change = (kilometres(view.zoom) - kilometres(zoom)) / stretch();
  go({ x: view.x + x * change, y: view.y + y * change, zoom });
}

function zoomAt(levels, event) {
  const { left, top, width, height } = map.getBoundingClientRect();
  zoomBy(levels, event.clientX - left - width / 2, event.clientY - top - height / 2);
}

function drag(start) {
  if (start.button !== 0 || start.target.closest('.moves')) return;
  let { clientX: x, clientY: y } = start, moved = false;
  const move = event => {
    moved ||= Math.hypot(event.clientX - x, event.clientY - y) >= 4;
    if (!moved) return;
    show(moveBy(x - event.clientX, y - event.clientY));
    [x, y] = [event.clientX, event.clientY];
  };
  const drop = () => {
    ended.abort();
    if (!moved) return;
    const stop = click => click.preventDefault();  // the click that ends the drag opens no place
    map.addEventListener('click', stop, { capture: true });
    setTimeout(() => map.removeEventListener('click', stop, { capture: true }));
    go(view);
  };
  const ended = new AbortController(), { signal } = ended;
  document.addEventListener('pointermove', move, { signal });
  for (const end of ['pointerup', 'pointercancel']) document.addEventListener(end, drop, { signal });
}

function turnWheel(event) {
  event.preventDefault();
  wheeled += event.deltaY;
  if (Math.abs(wheeled) < WHEEL_NOTCH) return;
  zoomAt(wheeled < 0 ? 1 : -1, event);
  wheeled = 0;
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.target === document.body || map.contains(event.target))) return;
  const step = STEPS[event.key], levels = { '+': 1, '=': 1, '-': -1 }[event.key];
  if (!step && !levels) return;
  event.preventDefault();
  const { width, height } = map.getBoundingClientRect();
  if (step) go(moveBy(step[0] * width / 4, step[1] * height / 4));
  else zoomBy(levels);
}

// The links on the map page lead to other views of the same page.
function follow(event) {
  const link = event.target.closest('.moves a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.pushState(null, '', link.href);
  refresh();
}

if (map) {
  view = drawnView();
  if (location.hash.startsWith('#map=')) refresh();
  map.addEventListener('pointerdown', drag);
  map.addEventListener('dragstart', event => event.preventDefault());
  map.addEventListener('click', follow);
  map.addEventListener('dblclick', event => { if (!event.target.closest('.moves')) zoomAt(1, event); });
  map.addEventListener('wheel', turnWheel, { passive: false });
  document.addEventListener('keydown', press);
  window.addEventListener('popstate', refresh);
  window.addEventListener('resize', () => show(view));
}
