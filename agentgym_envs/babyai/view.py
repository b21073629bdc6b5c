"""What the agent sees: seven by seven cells ahead of it, without the objects behind walls and closed doors.

A cell of the view is numbered `7 * ahead + column`, from 0 to 48: `ahead` counts the steps forward (0 is the agent's
own row) and `column` goes from left (0) to right (6); the agent stands in cell 3. A set of cells is a number with those
bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from agentgym_envs.babyai.world import AHEAD, Action, Thing, World

SIZE = 7
"""Cells in a row of the view, and rows."""
HOME = SIZE // 2
"""The agent's own cell."""
_ALL = (1 << SIZE * SIZE) - 1
_LEFTMOST = sum(1 << SIZE * row for row in range(SIZE))
_RIGHTMOST = _LEFTMOST << SIZE - 1
_STEPS = (SIZE, 1, -SIZE, -1)
"""How the number of a cell changes by a step forward, to the right, back and to the left."""

Pose = tuple[int, int]
"""A cell of the view and where the agent faces, as in `next_cell`."""


class Seen(NamedTuple):
    """A thing in sight. `rank` orders by distance, then the farther ahead first, then from left to right."""

    rank: int
    cell: int
    thing: Thing

    @property
    def ahead(self) -> int:
        """Steps in front of the agent, 0 to 6."""
        return self.cell // SIZE

    @property
    def right(self) -> int:
        """Steps to the right of the agent, -3 to 3."""
        return self.cell % SIZE - HOME


class View(NamedTuple):
    """What is in sight: things, nearest first; the set of cells that can be walked on; the set of all cells in sight.

    `barrier` is the first wall or box straight ahead: its kind and its distance in steps, or None.
    """

    seen: list[Seen]
    free: int
    barrier: tuple[str, int] | None
    lit: int

    def reach(self) -> int:
        """The cells that the agent can walk to within what it sees."""
        reached, free = 0, self.free | 1 << HOME
        wave = 1 << HOME
        while wave:
            reached |= wave
            wave = beside(wave) & free & ~reached
        return reached

    def path(self, target: int, *, onto: bool) -> list[Action] | None:
        """The fewest turns and steps to face the target cell, or to stand on it if `onto`; None if there is no way.

        Of equally short ways, the one that goes forward early, else turns left early.
        """
        start = HOME, 0
        came: dict[Pose, tuple[Pose, Action]] = {}
        queue, known = deque([start]), {start}
        while queue:
            pose = queue.popleft()
            if (pose[0] if onto else next_cell(*pose)) == target:
                return _trace(came, pose)
            for action, successor in self._moves(*pose):
                if successor not in known:
                    known.add(successor)
                    came[successor] = pose, action
                    queue.append(successor)
        return None

    def _moves(self, cell: int, facing: int) -> Iterator[tuple[Action, Pose]]:
        ahead = next_cell(cell, facing)
        if ahead is not None and self.free >> ahead & 1:
            yield Action.FORWARD, (ahead, facing)
        yield Action.LEFT, (cell, (facing - 1) % 4)
        yield Action.RIGHT, (cell, (facing + 1) % 4)


def look(world: World) -> View:
    """What the agent sees: the cells that minigrid's `gen_obs` shows, worked out without building a grid.

    Light starts at the agent and spreads row by row. Source: `Grid.process_vis` of minigrid.
    """
    seen: list[Seen] = []
    free, lit, all_lit, base, barrier = 0, 1 << HOME, 0, 0, None
    for row, clear in _rows(world):
        lit, next_lit = _spread(lit, clear)
        all_lit |= lit << base
        for column in _BITS[lit]:
            thing = row[column]
            if thing is None:
                free |= 1 << base + column
                continue
            if thing.can_overlap():
                free |= 1 << base + column
            if column == HOME and base and barrier is None and thing.type in ("wall", "box"):
                barrier = thing.type, base // SIZE
            if thing.type != "wall" and base + column != HOME:
                seen.append(Seen(_RANK[base + column], base + column, thing))
        if not next_lit:
            break
        lit, base = next_lit, base + SIZE
    seen.sort()
    return View(seen, free, barrier, all_lit)


def beside(cells: int) -> int:
    """The cells of the view that lie next to a set of them."""
    sideways = (cells & ~_LEFTMOST) >> 1 | (cells & ~_RIGHTMOST) << 1
    return (sideways | cells >> SIZE | cells << SIZE) & _ALL


@cache
def next_cell(cell: int, facing: int) -> int | None:
    """The cell after `cell` when facing ahead (0), right (1), back (2) or left (3); None outside the view."""
    after = cell + _STEPS[facing]
    inside = 0 <= after < SIZE * SIZE and (facing % 2 == 0 or after // SIZE == cell // SIZE)
    return after if inside else None


def _rows(world: World) -> Iterator[tuple[list[Thing | None], int]]:
    """The rows of the view from the agent on: what lies in each cell, and the set of columns that light passes."""
    level = world.level
    cells, width, height = level.grid.grid, level.width, level.height
    x, y = world.position
    for offsets in _OFFSETS[world.direction]:
        row, clear = [], 0
        for column, (dx, dy) in enumerate(offsets):
            i, j = x + dx, y + dy
            thing = cells[j * width + i] if 0 <= i < width and 0 <= j < height else cells[0]  # a corner: a wall
            row.append(thing)
            if thing is None or thing.see_behind():
                clear |= 1 << column
        yield row, clear


@cache
def _spread(lit: int, clear: int) -> tuple[int, int]:
    """The lit columns of a row and of the next, if these are lit from behind and light passes the columns `clear`.

    A lit cell that light passes lights its neighbour, the cell ahead and the neighbour's: to the right, then to the
    left.
    """
    ahead = 0
    for step, columns in ((1, range(SIZE - 1)), (-1, range(SIZE - 1, 0, -1))):
        for column in columns:
            if (lit & clear) >> column & 1:
                lit |= 1 << column + step
                ahead |= 1 << column | 1 << column + step
    return lit, ahead


def _trace(came: dict[Pose, tuple[Pose, Action]], pose: Pose) -> list[Action]:
    actions = []
    while pose in came:
        pose, action = came[pose]
        actions.append(action)
    return actions[::-1]


def _offsets(direction: int) -> list[list[tuple[int, int]]]:
    """For each cell of the view, by row and column, how far it lies from the agent in x and y."""
    (fx, fy), (rx, ry) = AHEAD[direction], AHEAD[(direction + 1) % 4]
    sides = range(-HOME, HOME + 1)
    return [[(fx * ahead + rx * side, fy * ahead + ry * side) for side in sides] for ahead in range(SIZE)]


def _nearness(cell: int) -> tuple[int, int, int]:
    ahead, column = divmod(cell, SIZE)
    return ahead + abs(column - HOME), -ahead, column


_OFFSETS = [_offsets(direction) for direction in range(4)]
_BITS = [[column for column in range(SIZE) if lit >> column & 1] for lit in range(1 << SIZE)]
_RANK = {cell: rank for rank, cell in enumerate(sorted(range(SIZE * SIZE), key=_nearness))}
