"""Pictures of the whole world: as text for terminals and logs, and as an SVG document for web pages.

Both show more than the agent knows, and tell apart what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import chain

from agentgym_envs.babyai.text_view import Scene, kind
from agentgym_envs.babyai.view import places
from agentgym_envs.babyai.world import Thing, World

Place = tuple[int, int]


def draw_text(world: World, scene: Scene) -> str:
    """The mission, the steps and what is carried; the map, two columns a cell; what its signs mean. No escape codes."""
    width, height = world.size
    lit = _lit(world, scene)
    rows = ["".join(_sign(world, (x, y), (x, y) in lit) for x in range(width)) for y in range(height)]
    return "\n".join([world.mission, _state(world), *rows, _legend(world)])


def draw_svg(world: World, scene: Scene) -> str:
    """An SVG document in units of a cell, without ids, scripts and styles, so that a page can hold many.

    What is in sight bears the name that the observation gives it.
    """
    width, height = world.size
    names = {seen.thing.serial: name for name, seen in scene.named.items()}
    around = [(x, y) for y in range(height) for x in range(width)]
    lit = _lit(world, scene)
    label = escape(f"{world.mission}. {_state(world)}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">',
        f'<path d="M0 0h{width}v{height}H0z" fill="{_DARK}"/>',
        _grid(width, height),
        _area([place for place in around if _is_wall(world, place)], f'fill="{_STONE}"'),
        _area([place for place in around if place in lit], 'fill="#b4ccff" fill-opacity=".2"'),
        f'<g stroke="{_DARK}" stroke-width=".05" stroke-linejoin="round">',
        *(_draw_thing(world, (x, y), thing, names) for x, y, thing in world.things()),
        *_draw_agent(world),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines)


def _lit(world: World, scene: Scene) -> frozenset[Place]:
    """Where the cells lie that are in sight."""
    width = world.size[0]
    seen = enumerate(chain.from_iterable(places(world.size, world.position, world.direction)))
    return frozenset(
        (place % width, place // width) for cell, place in seen if place >= 0 and scene.view.lit >> cell & 1
    )


def _is_wall(world: World, place: Place) -> bool:
    cell = world.at(*place)
    return cell is not None and cell.type == "wall"


def _state(world: World) -> str:
    held = "nothing" if world.carrying is None else f"a {kind(world.carrying)}"
    return f"Step {world.steps} of {world.max_steps}, carrying {held}"


_ARROWS = "►▼◄▲"  # of the oldest character sets: no terminal draws them wide, nor as emoji
_SIGNS = {"ball": "●", "box": "■", "key": "K", "open door": "/", "closed door": "+", "locked door": "#"}
_LETTERS = {"red": "r", "green": "g", "blue": "b", "purple": "p", "yellow": "y", "grey": "e"}


def _type(thing: Thing) -> str:
    """The type, with its state if it is a door: a key of `_SIGNS`."""
    return kind(thing).removeprefix(f"{thing.color} ")


def _sign(world: World, place: Place, lit: bool) -> str:
    thing = world.at(*place)
    if place == world.position:
        return (" " if thing is None else _SIGNS[_type(thing)]) + _ARROWS[world.direction]
    if thing is None:
        return " ·" if lit else "  "
    if thing.type == "wall":
        return "██" if lit else "░░"
    letter = _LETTERS[thing.color]
    return (letter.upper() if lit else letter) + _SIGNS[_type(thing)]


def _legend(world: World) -> str:
    """What the signs of this picture mean, in the order of the tables."""
    things = [thing for _, _, thing in world.things()]
    types, colors = {_type(thing) for thing in things}, {thing.color for thing in things}
    signs = [f"{sign} {name}" for name, sign in _SIGNS.items() if name in types]
    letters = [f"{letter} {name}" for name, letter in _LETTERS.items() if name in colors]
    return f"{_ARROWS[world.direction]} you, {', '.join([*signs, *letters])}; in sight: capitals, dots, solid walls"


_COLORS = {
    "red": "#e8503f",
    "green": "#4fe39a",
    "blue": "#2c95ff",
    "purple": "#b06fc4",
    "yellow": "#f5d33a",
    "grey": "#a6abb0",
}
"""Told apart by the colour-blind too, and at least three times as bright as the floor in sight (WCAG 1.4.11)."""
_DARK, _STONE = "#12161f", "#596375"

_SHAPES = {
    "ball": '<circle cx=".5" cy=".5" r=".35"/>',
    "box": '<path d="M.12.16h.76v.7H.12z"/><path d="M.12.42h.76M.5.34v.18" stroke-width=".09"/>',
    "key": '<path d="M.42.5a.23.23 0 1 1 .16 0V.95H.24V.81h.18V.74H.28V.61H.42z'
    'M.5.19a.09.09 0 1 0 0 .18.09.09 0 1 0 0-.18z"/>',
    "closed door": '<path d="M.04.04h.92v.92H.04z"/><path d="M.2.2h.6v.6H.2z" fill="none"/>'
    f'<circle cx=".66" cy=".5" r=".06" fill="{_DARK}"/>',
    "locked door": '<path d="M.04.04h.92v.92H.04z"/>'
    f'<path d="M.5.22a.15.15 0 0 1 .08.28L.64.78H.36L.42.5A.15.15 0 0 1 .5.22z" fill="{_DARK}"/>',
    "open door": '<path d="M0 0h1v1H0z" fill-opacity=".22" stroke="none"/><path d="M.02.02h.96v.2H.02z"/>',
}
"""Drawn in a cell from (0, 0) to (1, 1), in the colour around; an open door as in a wall from top to bottom."""
_HANDS = ((-0.1, 0.6), (-0.1, -0.1), (0.6, -0.1), (0.6, 0.6))
"""Where the agent holds a thing, by direction: behind it, to its right, so that its tip stays free."""
_AGENT = '<path d="M.14.12.92.5.14.88.3.5z" fill="#fff"/>'


def _grid(width: int, height: int) -> str:
    """Thin lines, by which cells can be counted."""
    lines = [f"M{x} 0v{height}" for x in range(1, width)] + [f"M0 {y}h{width}" for y in range(1, height)]
    return f'<path d="{"".join(lines)}" stroke="#fff" stroke-opacity=".08" stroke-width=".04"/>'


def _area(area: list[Place], look: str) -> str:
    """Cells, listed row by row, as one path with a rectangle for each run of neighbours."""
    runs: list[list[int]] = []
    for x, y in area:
        if runs and runs[-1][1] == y and runs[-1][0] + runs[-1][2] == x:
            runs[-1][2] += 1
        else:
            runs.append([x, y, 1])
    path = "".join(f"M{x} {y}h{length}v1h-{length}z" for x, y, length in runs)
    return f'<path d="{path}" {look} shape-rendering="crispEdges"/>'


def _draw_thing(world: World, place: Place, thing: Thing, names: dict[int, str]) -> str:
    x, y = place
    turn = ""
    if thing.type == "door" and not (_is_wall(world, (x, y - 1)) and _is_wall(world, (x, y + 1))):
        turn = " rotate(-90 .5 .5)" if thing.is_open else ""
    inside = "" if thing.contains is None else f" with a {kind(thing.contains)} in it"
    title = names.get(thing.serial, kind(thing)) + inside
    return _group(f"translate({x} {y}){turn}", title, _SHAPES[_type(thing)], _COLORS[thing.color])


def _draw_agent(world: World) -> Iterator[str]:
    """The agent as an arrow, and in a circle beside it, what it carries."""
    (x, y), held = world.position, world.carrying
    yield _group(f"translate({x} {y}) rotate({90 * world.direction} .5 .5)", "the agent", _AGENT, _COLORS["grey"])
    if held is not None:
        title = f"{kind(held)}, carried"
        hand = f'<circle cx=".5" cy=".5" r=".65" fill="{_DARK}"/>{_SHAPES[_type(held)]}'
        right, down = _HANDS[world.direction]
        yield _group(f"translate({x + right:g} {y + down:g}) scale(.5)", title, hand, _COLORS[held.color])


def _group(transform: str, title: str, shapes: str, color: str) -> str:
    return f'<g transform="{transform}" fill="{color}"><title>{escape(title)}</title>{shapes}</g>'
