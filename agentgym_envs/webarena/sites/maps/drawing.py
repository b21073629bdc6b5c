"""The map as SVG: its ground, in tiles, and the overlay of places, pins and routes.

The ground (land, roads and their labels) is prepared once per world. Places are drawn from the current database.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.country import HEIGHT_KM, WIDTH_KM
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.maps.geocoding import location_of_position
from agentgym_envs.webarena.sites.maps.geometry import Point, bearing, degrees, distance
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES, COLOURS
from agentgym_envs.webarena.sites.maps.network import cached_per_world, network

WIDTH, HEIGHT = 1000, 720
"""Size of every drawing in its own pixels. Pages scale it to the available space."""
TILE = 512
"""Width and height of a tile, in the same pixels."""
MAX_ZOOM = 9
_KM_PER_PIXEL = 0.46
_TILES = 256
"""The number of tiles that are kept per world."""
_MARGIN = 8
"""Lines are up to twice as wide, in pixels."""
_LABEL_MARGIN = 120
"""Labels are up to twice as wide, in pixels."""


@dataclass(frozen=True, slots=True)
class MapView:
    """A section of the map: its centre and zoom level. Each level doubles the scale."""

    middle: Point
    zoom: int
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def scale(self) -> float:
        """Kilometres per pixel."""
        return math.ldexp(_KM_PER_PIXEL, -self.zoom)

    @property
    def corner(self) -> Point:
        """North-west corner."""
        return self.middle[0] - self.width / 2 * self.scale, self.middle[1] - self.height / 2 * self.scale

    @property
    def far_corner(self) -> Point:
        """South-east corner."""
        return self.middle[0] + self.width / 2 * self.scale, self.middle[1] + self.height / 2 * self.scale

    def pixel(self, point: Point) -> Point:
        """Convert a position to pixels."""
        x, y = self.corner
        return round((point[0] - x) / self.scale, 1), round((point[1] - y) / self.scale, 1)

    def query(self, *, east: float = 0.0, south: float = 0.0, nearer: int = 0) -> str:
        """Return the query string of this view, moved by fractions of its width and height."""
        x = min(max(self.middle[0] + east * self.width * self.scale, 0.0), WIDTH_KM)
        y = min(max(self.middle[1] + south * self.height * self.scale, 0.0), HEIGHT_KM)
        latitude, longitude = degrees((x, y))
        return f"?lat={latitude}&lon={longitude}&zoom={self.zoom + nearer}"


class MapPin(NamedTuple):
    """A pin with the text "start", "end", "here" or a number."""

    point: Point
    text: str


class _Feature(NamedTuple):
    """An SVG path with its bounding box."""

    west: float
    north: float
    east: float
    south: float
    path: str
    style: str = ""


class _Label(NamedTuple):
    """A text label."""

    point: Point
    text: str
    style: str
    turn: float = 0.0


@dataclass(frozen=True, slots=True)
class _Background:
    """The fixed part of the map. `layers` are in drawing order; each has the minimum zoom at which it is drawn."""

    layers: Sequence[tuple[str, int, Sequence[_Feature]]]
    towns: Sequence[tuple[int, _Label]]
    names: Sequence[tuple[int, _Label]]


WHOLE = MapView((WIDTH_KM / 2, HEIGHT_KM / 2), 0)
_EVERYWHERE = f"M-400 -400H{WIDTH_KM + 400}V{HEIGHT_KM + 400}H-400Z"
_LAND = (("region", 0), ("forest", 0), ("river", 0), ("lake", 0), ("sea", 0), ("built", 0), ("park", 4))
_ROADS = (
    ("path", 6),
    ("pedestrian", 5),
    ("residential", 5),
    ("tertiary", 4),
    ("secondary", 0),
    ("primary", 0),
    ("link", 3),
    ("motorway", 0),
)


def view_around(points: Sequence[Point], closest: int = 8) -> MapView:
    """Return the closest view that contains all points."""
    west, east = min(x for x, _ in points), max(x for x, _ in points)
    north, south = min(y for _, y in points), max(y for _, y in points)
    middle = ((west + east) / 2, (north + south) / 2)
    for zoom in range(closest, 0, -1):
        scale = MapView(middle, zoom).scale
        if east - west < 0.86 * WIDTH * scale and south - north < 0.84 * HEIGHT * scale:
            return MapView(middle, zoom)
    return WHOLE


def draw(context: RequestContext, view: MapView, marks: Sequence[MapPin] = (), course: Sequence[Point] = ()) -> Any:
    """Draw a view, or the one that the script of the page asks for: its tiles, and the overlay.

    It is hidden from screen readers, since pages describe the content in words.
    """
    from markupsafe import Markup

    view = _requested_view(context) or view
    head = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMid slice" aria-hidden="true" focusable="false"'
    )
    where = f' data-x="{view.middle[0]:.4f}" data-y="{view.middle[1]:.4f}" data-zoom="{view.zoom}"'
    overlay = _course(course, view)
    overlay += "".join(_places(context, view)) if view.zoom >= 2 else ""
    overlay += "".join(_mark(view, mark) for mark in marks)
    ground = "".join(_tiles_in(context.database, view))
    return Markup(f'{head} class="ground">{ground}</svg>{head} class="overlay"{where}>{overlay}</svg>')


def draw_tile(database: sqlite3.Connection, zoom: int, column: int, row: int) -> str | None:
    """Draw a tile of the ground; None if there is none. Columns and rows count from the north-west.

    The drawing is larger than the tile by a pixel on each side: neighbours overlap, so that no seam is seen.
    """
    if min(zoom, column, row) < 0 or zoom > MAX_ZOOM:
        return None
    side = _tile_side(zoom)
    if column * side >= WIDTH_KM or row * side >= HEIGHT_KM:
        return None
    tiles = _tiles(database)
    if (zoom, column, row) not in tiles:
        if len(tiles) >= _TILES:
            tiles.pop(next(iter(tiles)))
        view = MapView(((column + 0.5) * side, (row + 0.5) * side), zoom, TILE, TILE)
        size = TILE + 2
        box = f'width="{size}" height="{size}" viewBox="-1 -1 {size} {size}"'
        name = f'xmlns="http://www.w3.org/2000/svg" data-tile="{zoom}/{column}/{row}"'
        tiles[zoom, column, row] = f"<svg {name} {box}>{_ground(database, view)}</svg>"
    return tiles[zoom, column, row]


def _tile_side(zoom: int) -> float:
    """Return the width and height of a tile in kilometres."""
    return TILE * MapView((0, 0), zoom).scale


def _tiles_in(database: sqlite3.Connection, view: MapView) -> Iterable[str]:
    """Yield the tiles of a view in their places."""
    side = _tile_side(view.zoom)
    (west, north), (east, south) = view.corner, view.far_corner
    for row in range(int(north // side), math.ceil(south / side)):
        for column in range(int(west // side), math.ceil(east / side)):
            x, y = view.pixel((column * side, row * side))
            tile = draw_tile(database, view.zoom, column, row) or ""
            yield tile.replace("<svg", f'<svg x="{x - 1:.1f}" y="{y - 1:.1f}"', 1)


@cached_per_world
def _tiles(database: sqlite3.Connection) -> dict[tuple[int, int, int], str]:
    return {}


def _requested_view(context: RequestContext) -> MapView | None:
    """Return the view of the parameter "map", as in "4/47.5/-31.2": zoom, latitude and longitude."""
    zoom, _, middle = context.query.text("map", most=50).partition("/")
    location = location_of_position(middle.replace("/", ","))
    known = zoom.isdecimal() and zoom.isascii() and int(zoom) <= MAX_ZOOM
    return MapView(location.point, int(zoom)) if location and known else None


def _ground(database: sqlite3.Connection, view: MapView) -> str:
    background = _background(database)
    return _in_kilometres(view, _paths(background, view)) + "".join(_names(background, view))


def _in_kilometres(view: MapView, parts: Iterable[str]) -> str:
    """Group elements whose coordinates are positions."""
    x, y = view.corner
    return f'<g transform="scale({1 / view.scale:.5f}) translate({-x:.5f} {-y:.5f})">{"".join(parts)}</g>'


@cached_per_world
def _background(database: sqlite3.Connection) -> _Background:
    shapes = database.execute("SELECT kind, name, points FROM map_shapes ORDER BY id").fetchall()
    regions = {name: index for index, name in enumerate(dict.fromkeys(row["name"] for row in shapes))}
    layers = [
        (kind, zoom, [_shape(row, f"region-{regions[row['name']]}") for row in shapes if row["kind"] == kind])
        for kind, zoom in _LAND
    ]
    net = network(database)
    for kind, zoom in _ROADS:
        features = [_road(net.chains[road], net) for road, one in net.roads.items() if one.kind == kind]
        layers.append((kind, zoom, features))
    return _Background(layers, _town_labels(database), _road_labels(database) + _shape_labels(shapes))


def _read(points: str) -> list[Point]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in points.split())]


def _shape(row: sqlite3.Row, region: str) -> _Feature:
    kind, points = row["kind"], _read(row["points"])
    feature = _feature(points, closed=kind != "river")
    if kind == "region":
        return feature._replace(style=f"region {region}")
    return feature._replace(path=f"{_EVERYWHERE}{feature.path}") if kind == "sea" else feature


def _feature(points: Sequence[Point], *, closed: bool = False) -> _Feature:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    path = "M" + "L".join(f"{x:.3f} {y:.3f}" for x, y in points) + ("Z" if closed else "")
    return _Feature(min(xs), min(ys), max(xs), max(ys), path)


def _road(chain: Sequence[int], net: Any) -> _Feature:
    points = [net.ends(chain[0])[0], *(net.ends(segment)[1] for segment in chain)]
    return _feature(points)


def _paths(background: _Background, view: MapView) -> Iterable[str]:
    """Yield one path per kind of feature, and a wider one below it for roads."""
    margin = _MARGIN * view.scale
    west, north = view.corner[0] - margin, view.corner[1] - margin
    east, south = view.far_corner[0] + margin, view.far_corner[1] + margin
    roads = dict(_ROADS)
    for kind, zoom, features in background.layers:
        if view.zoom < zoom:
            continue
        seen = [f for f in features if f.west <= east and f.east >= west and f.north <= south and f.south >= north]
        if not seen:
            continue
        near = "far" if view.zoom < 4 else "mid" if view.zoom < 7 else "near"
        if kind == "region":
            yield from (f'<path class="{one.style}" d="{one.path}"/>' for one in seen)
        else:
            path = "".join(one.path for one in seen)
            casing = f'<path class="{kind} casing {near}" d="{path}"/>' if kind in roads and view.zoom > 2 else ""
            yield f'{casing}<path class="{kind} {near}" d="{path}"/>'


def _course(course: Sequence[Point], view: MapView) -> str:
    if not course:
        return ""
    path = _feature(course).path
    return _in_kilometres(view, [f'<path class="course casing" d="{path}"/><path class="course" d="{path}"/>'])


def _places(context: RequestContext, view: MapView) -> Iterable[str]:
    """Yield markers of the places that fit without overlap. Categories with a low minimum zoom come first."""
    kinds = [key for key, one in CATEGORIES.items() if one.shown <= view.zoom]
    (west, north), (east, south) = view.corner, view.far_corner
    holes = ", ".join("?" * len(kinds))
    rows = context.rows(
        f"SELECT id, name, category, x, y FROM map_places WHERE x BETWEEN ? AND ? AND y BETWEEN ? AND ? "
        f"AND category IN ({holes}) ORDER BY id LIMIT 400",
        west, east, north, south, *kinds,
    )  # fmt: skip
    boxes: list[tuple[float, float, float]] = []
    for row in sorted(rows, key=lambda row: CATEGORIES[row["category"]].shown):
        x, y = view.pixel((row["x"], row["y"]))
        if all(abs(x - a) > 18 or abs(y - b) > 18 for a, b, _ in boxes):
            wide = 3.0 * len(row["name"])
            named = view.zoom >= 8 or CATEGORIES[row["category"]].shown <= view.zoom - 2
            named = named and all(abs(x - a) > wide + half or not -6 < y - b < 32 for a, b, half in boxes)
            boxes.append((x, y, wide if named else 10.0))
            yield _marker(row, x, y, named=named)


def _marker(row: sqlite3.Row, x: float, y: float, *, named: bool) -> str:
    category = CATEGORIES[row["category"]]
    name = escape(row["name"])
    text = f'<text class="name" x="{x}" y="{y + 19}">{name}</text>' if named else ""
    return (
        f'<a href="/place/{row["id"]}" tabindex="-1"><title>{name}</title>'
        f'<circle cx="{x}" cy="{y}" r="8" fill="{COLOURS[category.group]}"/>'
        f'<text class="glyph" x="{x}" y="{y + 4}">{category.glyph}</text>{text}</a>'
    )


def _names(background: _Background, view: MapView) -> Iterable[str]:
    for zoom, label in (*background.names, *(background.towns if view.zoom < 7 else ())):
        x, y = view.pixel(label.point)
        near = abs(x - view.width / 2) < view.width / 2 + _LABEL_MARGIN
        if view.zoom >= zoom and near and abs(y - view.height / 2) < view.height / 2 + _LABEL_MARGIN:
            turn = f' transform="rotate({label.turn:.0f} {x} {y})"' if label.turn else ""
            yield f'<text class="{label.style}" x="{x}" y="{y}"{turn}>{escape(label.text)}</text>'


def _mark(view: MapView, mark: MapPin) -> str:
    """Draw a pin whose tip is at the position."""
    x, y = view.pixel(mark.point)
    pin = "M0 0C-3 -9 -11 -13 -11 -22A11 11 0 1 1 11 -22C11 -13 3 -9 0 0Z"
    kind = escape(mark.text if mark.text in ("start", "end") else "here")
    text = f'<text y="-18">{escape(mark.text)}</text>' if mark.text.isdigit() else '<circle cy="-22" r="4"/>'
    return f'<g class="pin {kind}" transform="translate({x} {y})"><path d="{pin}"/>{text}</g>'


def _town_labels(database: sqlite3.Connection) -> list[tuple[int, _Label]]:
    rows = database.execute("SELECT id, name, x, y FROM map_towns ORDER BY id").fetchall()
    labels = []
    for row in rows:
        style = "town capital" if row["id"] == 1 else "town large" if row["id"] <= 7 else "town"
        labels.append((0 if row["id"] <= 18 else 1, _Label((row["x"], row["y"]), row["name"], style)))
    return labels


def _road_labels(database: sqlite3.Connection) -> list[tuple[int, _Label]]:
    """Place the label of each road on its longest segment, along the road."""
    net = network(database)
    labels = []
    for road, one in net.roads.items():
        if one.kind == "link":
            continue
        segment = max(net.chains[road], key=lambda number: net.segments[number].length)
        start, end = net.ends(segment)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        if one.town is None:
            style = "sign motorway-sign" if one.kind == "motorway" else "sign"
            labels += [(2 if one.kind == "motorway" else 3, _Label(middle, one.name, style))]
        elif distance(start, end) > 0.1:
            turn = (bearing(start, end) - 90 + 90) % 180 - 90
            labels.append((7, _Label(middle, one.name, "street", turn or 0.1)))
    return labels


def _shape_labels(shapes: Sequence[sqlite3.Row]) -> list[tuple[int, _Label]]:
    zooms = {"forest": 2, "lake": 2, "river": 3}
    labels = []
    for row in shapes:
        if row["kind"] in zooms:
            points = _read(row["points"])
            middle = (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))
            point = points[len(points) // 2] if row["kind"] == "river" else middle
            labels.append((zooms[row["kind"]], _Label(point, row["name"], f"{row['kind']}-name")))
    return labels
