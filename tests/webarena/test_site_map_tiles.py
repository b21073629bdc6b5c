"""The tiles of the map: their drawing, and how the map moves and zooms in a browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import gymnasium as gym
import pytest

from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.sites.maps.drawing import MAX_ZOOM, TILE, MapView
from tests.webarena.embedded import Visitor, visit
from tests.webarena.test_site_scripts import Visitor as BrowserVisitor

_TILES = "[...document.querySelectorAll('.ground > svg')].map(tile => tile.dataset.tile)"
_CENTRE = "const {left, top, width, height} = document.querySelector('.map').getBoundingClientRect()"
_DRAWN = "(({x, y, zoom}) => [+x, +y, +zoom])(document.querySelector('.overlay').dataset)"
MARKER = "a[href='/place/3'] circle"
"""The marker that the tests follow."""


@pytest.fixture
def maps() -> Iterator[Visitor]:
    yield from visit(Visitor("maps"))


def test_tiles_are_the_same_for_all_episodes_and_well_formed(maps: Visitor) -> None:
    first = maps.http.get("/tiles/3/2/1.svg")
    assert first.headers["content-type"].startswith("image/svg+xml")
    assert ElementTree.fromstring(first.text).get("data-tile") == "3/2/1"
    other = Visitor("maps")
    other.episode.database.execute("UPDATE map_places SET name = 'Elsewhere'")
    assert other.http.get("/tiles/3/2/1.svg").text == first.text


def test_tiles_exist_up_to_the_edge_of_the_country_and_nowhere_else(maps: Visitor) -> None:
    for zoom in range(MAX_ZOOM + 1):
        side = TILE * MapView((0, 0), zoom).scale
        columns, rows = int(420 // side) + 1, int(300 // side) + 1
        maps.get(f"/tiles/{zoom}/{columns - 1}/{rows - 1}.svg")
        maps.get(f"/tiles/{zoom}/{columns}/0.svg", 404)
        maps.get(f"/tiles/{zoom}/0/{rows}.svg", 404)


@pytest.mark.parametrize(
    "name", ["10/0/0", "-1/0/0", "0/-1/0", "0/0/x", "0/0", f"0/{10**400}/0", f"{10**30}/0/0", "1.5/0/0"]
)
def test_bad_coordinates_have_no_tile(name: str, maps: Visitor) -> None:
    maps.get(f"/tiles/{name}.svg", 404)


def test_strangers_get_no_tiles(maps: Visitor) -> None:
    for token in ("", "unknown"):
        answer = maps.http.get("/tiles/0/0/0.svg", headers=dict.fromkeys(maps.http.headers, token))
        assert answer.status_code == 404 and "svg" not in answer.text


def test_pages_show_the_view_that_their_script_asks_for(maps: Visitor) -> None:
    page = maps.get("/place/3?map=4/47.10000/-31.00000")
    assert 'data-zoom="4"' in page and 'data-tile="4/' in page and 'data-tile="8/' not in page
    assert page.count('class="pin') == 1
    for wrong in ("4", "99/47.1/-31.0", "x/47.1/-31.0", "4/0.0/0.0", "4/47.1", "²/47.1/-31.0", "-1/47.1/-31.0"):
        assert maps.get(f"/place/3?map={wrong}") == maps.get("/place/3")


# --- in a browser ----------------------------------------------------------------------------------------------------


class Map(BrowserVisitor):
    """A map page, its mouse and keyboard. Positions are pixels from the centre of the map."""

    def use(self, action: Callable[[Any], Awaitable[Any]]) -> None:
        """Use the mouse or the keyboard of the page, and wait until the page has settled."""
        session = self.env.session

        async def settled() -> None:
            await action(session.tab.page)
            await session.settle()
            await session.observe()

        loop.run(settled())
        assert session.settled

    @property
    def centre(self) -> tuple[float, float]:
        x, y = self.js(f"(() => {{ {_CENTRE}; return [left + width / 2, top + height / 2]; }})()")
        return float(x), float(y)

    def drag(self, right: int, down: int) -> None:
        (x, y), steps = self.centre, 5

        async def move(page: Any) -> None:
            await page.mouse.move(x, y)
            await page.mouse.down()
            await page.mouse.move(x + right, y + down, steps=steps)
            await page.mouse.up()

        self.use(move)

    def press(self, *keys: str) -> None:
        async def strike(page: Any) -> None:
            for key in keys:
                await page.keyboard.press(key)

        self.use(strike)

    def turn_wheel(self, right: int, down: int, delta: int) -> None:
        (x, y), before = self.centre, self.zoom

        async def turn(page: Any) -> None:
            await page.mouse.move(x + right, y + down)
            await page.mouse.wheel(0, delta)
            while (await page.evaluate(_DRAWN))[2] == before:
                await asyncio.sleep(0.01)  # the browser scrolls later than it says

        self.use(turn)

    def double_click(self, right: int, down: int) -> None:
        x, y = self.centre
        self.use(lambda page: page.mouse.dblclick(x + right, y + down))

    @property
    def zoom(self) -> int:
        return int(self.js(_DRAWN)[2])

    @property
    def tiles(self) -> set[str]:
        return set(self.js(_TILES))

    @property
    def middle(self) -> tuple[float, float]:
        """The position at the centre of the map, in kilometres."""
        x, y, _ = self.js(_DRAWN)
        return float(x), float(y)

    def where(self, selector: str) -> tuple[float, float]:
        """The position of an element on the map, relative to its centre."""
        found = self.js(
            f"(() => {{ {_CENTRE}; const box = document.querySelector({selector!r}).getBoundingClientRect();"
            "return [box.x + box.width / 2 - left - width / 2, box.y + box.height / 2 - top - height / 2]; })()"
        )
        return float(found[0]), float(found[1])

    def pixel(self) -> float:
        """Kilometres per pixel of the window."""
        stretch = self.js(f"(() => {{ {_CENTRE}; return Math.max(width / 1000, height / 720); }})()")
        return MapView((0, 0), self.zoom).scale / float(stretch)


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    with gym.make("AgentGym/WebArena-v0", grammar="bare", table_version=1) as made:
        yield made.unwrapped


@pytest.fixture
def home(env: Any) -> Map:
    made = Map(env)
    made.visit("maps", "/?at=place-3&zoom=7")
    return made


MOVES = ["navigation 'Move the map'"]
for _name, _sign in (("Zoom in", "+"), ("Zoom out", "−"), ("Move north", "↑"), ("Move south", "↓")):
    MOVES += [f"link '{_name}'", f"StaticText '{_sign}'"]


def _near(one: tuple[float, float], other: tuple[float, float], most: float = 1.6) -> bool:
    return abs(one[0] - other[0]) <= most and abs(one[1] - other[1]) <= most


@pytest.mark.slow
def test_a_drag_moves_the_map_and_loads_new_tiles(home: Map) -> None:
    home.js("globalThis.stays = 1")
    before, (x, y), pixel = home.tiles, home.middle, home.pixel()
    home.drag(-350, 120)
    assert _near(home.middle, (x + 350 * pixel, y - 120 * pixel), 2 * pixel)
    assert home.tiles - before and all(name.startswith("7/") for name in home.tiles)
    assert home.js("globalThis.stays") == 1 and re.search(r"/\?lat=[\d.]+&lon=-[\d.]+&zoom=7$", home.url)


@pytest.mark.slow
def test_a_marker_stays_on_its_place(home: Map) -> None:
    assert _near(home.where(MARKER), (0, 0))
    home.drag(-90, 60)
    assert _near(home.where(MARKER), (-90, 60))
    home.turn_wheel(-90, 60, -120)
    assert home.zoom == 8 and _near(home.where(MARKER), (-90, 60))
    home.press("-")
    assert home.zoom == 7 and _near(home.where(MARKER), (-45, 30))
    home.double_click(100, 100)
    assert home.zoom == 8 and _near(home.where(MARKER), (-190, -40))


@pytest.mark.slow
def test_zoom_keeps_the_centre(home: Map) -> None:
    middle = home.middle
    home.press("+")
    home.press("+", "-")
    assert home.zoom == 8 and _near(home.middle, middle, 0.002)
    home.click("link", "Zoom in")
    assert home.zoom == 9 and _near(home.middle, middle, 0.002) and "'Zoom in'" not in home.tree
    home.press("+")
    assert home.zoom == 9, "there is no closer level"


@pytest.mark.slow
def test_arrow_keys_move_the_map_unless_one_types(home: Map) -> None:
    (x, y) = home.middle
    home.press("ArrowRight", "ArrowRight", "ArrowDown")
    right, down = home.middle
    assert right > x and down > y
    home.press("ArrowLeft", "ArrowLeft", "ArrowUp")
    assert _near(home.middle, (x, y), 0.003)
    home.type("searchbox", "Search the map", "5")
    home.press("ArrowLeft", "+", "-")
    assert _near(home.middle, (x, y), 0.003) and "value: '+-5'" in home.tree


@pytest.mark.slow
def test_the_page_after_a_move_is_the_page_of_its_address(home: Map) -> None:
    """The same text as after a visit, and the links lead there without a navigation and back."""
    home.js("globalThis.stays = 1")
    first, seen = home.url, [(home.url, home.page)]
    home.click("link", "Move east")
    seen.append((home.url, home.page))
    home.click("link", "Zoom out")
    seen.append((home.url, home.page))
    home.drag(100, 0)
    seen[2] = (home.url, home.page)
    home.act("go_back")
    assert (home.url, home.page) == seen[1]
    home.act("go_back")
    assert (home.url, home.page) == seen[0] and home.url == first
    assert home.js("globalThis.stays") == 1
    for url, page in seen:
        home.act(f"goto [{url}]")
        assert home.page == page


@pytest.mark.slow
def test_other_pages_keep_their_view_in_the_hash(home: Map) -> None:
    home.visit("maps", "/place/3")
    tree = home.tree
    home.drag(-80, -50)
    assert re.search(r"/place/3#map=8/[\d.]+/-[\d.]+$", home.url) and home.tree == tree
    url, middle, pin = home.url, home.middle, home.where(".pin path")
    home.visit("maps", "/place/3")
    assert not _near(home.where(".pin path"), pin)
    home.visit("maps", "/")
    home.act(f"goto [{url}]")
    assert home.url == url and _near(home.middle, middle, 0.002) and _near(home.where(".pin path"), pin)


@pytest.mark.slow
def test_a_click_that_ends_a_drag_opens_no_place(home: Map) -> None:
    home.drag(40, 0)
    url = home.url
    assert "/place/" not in url
    x, y = home.centre
    home.use(lambda page: page.mouse.click(x + 40, y))
    assert home.url.endswith("/place/3"), "the next click does"


@pytest.mark.slow
def test_the_drawing_adds_nothing_to_the_text(home: Map) -> None:
    shown = home.page.partition("region 'Map'\n")[2].split("\tcontentinfo")[0]
    assert [line.strip() for line in shown.splitlines()][: len(MOVES)] == MOVES
    tree = home.tree
    home.js("document.querySelectorAll('.map > svg').forEach(drawing => drawing.style.display = 'none')")
    home.press("Shift")
    assert home.tree == tree
