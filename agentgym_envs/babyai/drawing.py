"""Images of the whole world: as text for terminals and logs, and as an SVG document for web pages.

Both show more than the agent can see, and mark what is in its field of view.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import chain

from agentgym_envs.babyai.text_view import TextView, kind
from agentgym_envs.babyai.view import grid_cells
from agentgym_envs.babyai.world import GridWorld, Thing

Cell = tuple[int, int]


def draw_text(world: GridWorld, text_view: TextView) -> str:
    """Draw the mission, the steps, the carried object, the map (two columns per cell) and a legend, in plain text."""
    width, height = world.size
    lit = _lit(world, text_view)
    rows = ["".join(_sign(world, (x, y), (x, y) in lit) for x in range(width)) for y in range(height)]
    return "\n".join([world.mission, _state(world), *rows, _legend(world)])


def draw_svg(world: GridWorld, text_view: TextView) -> str:
    """Draw an SVG document in units of a cell, without ids, scripts or styles, so that a page can hold several.

    Objects in sight have the names of the observation as titles.
    """
    width, height = world.size
    names = {seen.thing.serial: name for name, seen in text_view.named.items()}
    cells = [(x, y) for y in range(height) for x in range(width)]
    lit = _lit(world, text_view)
    label = escape(f"{world.mission}. {_state(world)}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">',
        f'<path d="M0 0h{width}v{height}H0z" fill="{_DARK}"/>',
        _grid(width, height),
        _area([cell for cell in cells if _is_wall(world, cell)], f'fill="{_STONE}"'),
        _area([cell for cell in cells if cell in lit], 'fill="#b4ccff" fill-opacity=".2"'),
        f'<g stroke="{_DARK}" stroke-width=".05" stroke-linejoin="round">',
        *(_draw_thing(world, (x, y), thing, names) for x, y, thing in world.things()),
        *_draw_agent(world),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines)


def _lit(world: GridWorld, text_view: TextView) -> frozenset[Cell]:
    """Positions of the cells in sight."""
    width = world.size[0]
    in_view = enumerate(chain.from_iterable(grid_cells(world.size, world.position, world.direction)))
    return frozenset(
        (cell % width, cell // width) for number, cell in in_view if cell >= 0 and text_view.view.lit >> number & 1
    )


def _is_wall(world: GridWorld, cell: Cell) -> bool:
    thing = world.at(*cell)
    return thing is not None and thing.type == "wall"


def _state(world: GridWorld) -> str:
    held = "nothing" if world.carrying is None else f"a {kind(world.carrying)}"
    return f"Step {world.steps} of {world.max_steps}, carrying {held}"


_ARROWS = "►▼◄▲"  # from the oldest character sets, so that no terminal draws them wide or as emoji
_SIGNS = {"ball": "●", "box": "■", "key": "K", "open door": "/", "closed door": "+", "locked door": "#"}
_LETTERS = {"red": "r", "green": "g", "blue": "b", "purple": "p", "yellow": "y", "grey": "e"}


def _type(thing: Thing) -> str:
    """Return the type, with the state of a door: a key of `_SIGNS`."""
    return kind(thing).removeprefix(f"{thing.color} ")


def _sign(world: GridWorld, cell: Cell, lit: bool) -> str:
    thing = world.at(*cell)
    if cell == world.position:
        return (" " if thing is None else _SIGNS[_type(thing)]) + _ARROWS[world.direction]
    if thing is None:
        return " ·" if lit else "  "
    if thing.type == "wall":
        return "██" if lit else "░░"
    letter = _LETTERS[thing.color]
    return (letter.upper() if lit else letter) + _SIGNS[_type(thing)]


def _legend(world: GridWorld) -> str:
    """Explain the signs of this image, in the order of the tables."""
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
"""Distinguishable for colour-blind readers, with a contrast of at least 3 to the lit floor (WCAG 1.4.11)."""
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
"""Shapes of a cell from (0, 0) to (1, 1), in the colour of their group. The open door is for a vertical wall."""
_CARRIED_AT = ((-0.1, 0.6), (-0.1, -0.1), (0.6, -0.1), (0.6, 0.6))
"""The offset of a carried object, by direction: behind the agent and to its right, so that its tip stays visible."""
_AGENT = '<path d="M.14.12.92.5.14.88.3.5z" fill="#fff"/>'


def _grid(width: int, height: int) -> str:
    """Draw thin lines between cells, so that they can be counted."""
    lines = [f"M{x} 0v{height}" for x in range(1, width)] + [f"M0 {y}h{width}" for y in range(1, height)]
    return f'<path d="{"".join(lines)}" stroke="#fff" stroke-opacity=".08" stroke-width=".04"/>'


def _area(area: list[Cell], look: str) -> str:
    """Draw cells, listed row by row, as one path with a rectangle for each run of neighbours."""
    runs: list[list[int]] = []
    for x, y in area:
        if runs and runs[-1][1] == y and runs[-1][0] + runs[-1][2] == x:
            runs[-1][2] += 1
        else:
            runs.append([x, y, 1])
    path = "".join(f"M{x} {y}h{length}v1h-{length}z" for x, y, length in runs)
    return f'<path d="{path}" {look} shape-rendering="crispEdges"/>'


def _draw_thing(world: GridWorld, cell: Cell, thing: Thing, names: dict[int, str]) -> str:
    x, y = cell
    turn = ""
    if thing.type == "door" and not (_is_wall(world, (x, y - 1)) and _is_wall(world, (x, y + 1))):
        turn = " rotate(-90 .5 .5)" if thing.is_open else ""
    inside = "" if thing.contains is None else f" with a {kind(thing.contains)} in it"
    title = names.get(thing.serial, kind(thing)) + inside
    return _group(f"translate({x} {y}){turn}", title, _SHAPES[_type(thing)], _COLORS[thing.color])


def _draw_agent(world: GridWorld) -> Iterator[str]:
    """Draw the agent as an arrow, with the carried object in a circle next to it."""
    (x, y), held = world.position, world.carrying
    yield _group(f"translate({x} {y}) rotate({90 * world.direction} .5 .5)", "the agent", _AGENT, _COLORS["grey"])
    if held is not None:
        title = f"{kind(held)}, carried"
        shapes = f'<circle cx=".5" cy=".5" r=".65" fill="{_DARK}"/>{_SHAPES[_type(held)]}'
        right, down = _CARRIED_AT[world.direction]
        yield _group(f"translate({x + right:g} {y + down:g}) scale(.5)", title, shapes, _COLORS[held.color])


def _group(transform: str, title: str, shapes: str, color: str) -> str:
    return f'<g transform="{transform}" fill="{color}"><title>{escape(title)}</title>{shapes}</g>'
