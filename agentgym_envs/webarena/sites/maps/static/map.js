// Drag the map of the home page, or zoom it with the wheel or a double click; the server draws the new view.
// Without this script, the links on the map do the same.
'use strict';

const map = document.querySelector('.map');
const moves = map && map.querySelector('.moves');
const KM_PER_PIXEL = 0.46;
const WIDTH = 1000;
const MAX_ZOOM = 9;
const [NORTH, WEST, KM_PER_LATITUDE, KM_PER_LONGITUDE] = [48.6, -33.4, 111.2, 75.6];

function currentView() {
  const { x, y, zoom } = map.querySelector('svg').dataset;
  return { x: +x, y: +y, zoom: +zoom };
}

// Window pixels per pixel of the drawing, which covers its whole box.
function stretch() {
  const { width, height } = map.getBoundingClientRect();
  return Math.max(width / WIDTH, height / 720);
}

async function show({ x, y, zoom }) {
  const query = new URLSearchParams({
    lat: (NORTH - y / KM_PER_LATITUDE).toFixed(5), lon: (WEST + x / KM_PER_LONGITUDE).toFixed(5), zoom,
  });
  const response = await fetch(`/drawing?${query}`);
  if (!response.ok) return;
  const drawn = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('svg');
  map.querySelector('svg').replaceWith(drawn);
  history.replaceState(null, '', `/?${query}`);
}

function zoomTo(nearer, event) {
  const before = currentView();
  const zoom = Math.min(Math.max(before.zoom + nearer, 0), MAX_ZOOM);
  if (zoom === before.zoom) return;
  const box = map.getBoundingClientRect();
  const change = KM_PER_PIXEL * (2 ** -before.zoom - 2 ** -zoom) / stretch();
  show({
    x: before.x + (event.clientX - box.left - box.width / 2) * change,
    y: before.y + (event.clientY - box.top - box.height / 2) * change,
    zoom,
  });
}

function drag(start) {
  if (start.button !== 0 || start.target.closest('.moves')) return;
  const drawn = map.querySelector('svg');
  const move = event => {
    drawn.style.transform = `translate(${event.clientX - start.clientX}px, ${event.clientY - start.clientY}px)`;
  };
  const drop = event => {
    document.removeEventListener('pointermove', move);
    const [right, down] = [event.clientX - start.clientX, event.clientY - start.clientY];
    if (Math.hypot(right, down) < 4) return;
    map.addEventListener('click', click => click.preventDefault(), { capture: true, once: true });
    const { x, y, zoom } = currentView();
    const scale = KM_PER_PIXEL * 2 ** -zoom / stretch();
    show({ x: x - right * scale, y: y - down * scale, zoom });
  };
  document.addEventListener('pointermove', move);
  document.addEventListener('pointerup', drop, { once: true });
}

if (moves) {
  map.addEventListener('pointerdown', drag);
  map.addEventListener('dragstart', event => event.preventDefault());
  map.addEventListener('dblclick', event => zoomTo(1, event));
  map.addEventListener('wheel', event => {
    event.preventDefault();
    zoomTo(event.deltaY < 0 ? 1 : -1, event);
  }, { passive: false });
}
