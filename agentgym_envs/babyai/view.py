"""The field of view: seven by seven cells ahead of the agent, without objects behind walls and closed doors.

A cell of the view is numbered `7 * ahead + column`, from 0 to 48. `ahead` counts the steps forward (0 is the agent's
own row), and `column` goes from left (0) to right (6); the agent is in cell 3. A set of cells is a bit mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from agentgym_envs.babyai.world import AHEAD, GridAction, GridWorld, Thing

SIZE = 7
"""The number of rows of the view, and of cells in a row."""
HOME = SIZE // 2
"""The cell of the agent."""
_ALL = (1 << SIZE * SIZE) - 1
_LEFTMOST = sum(1 << SIZE * row for row in range(SIZE))
_RIGHTMOST = _LEFTMOST << SIZE - 1
_STEPS = (SIZE, 1, -SIZE, -1)
"""The change of a cell's number by a step forward, right, back and left."""

Pose = tuple[int, int]
"""A cell of the view and the direction that the agent faces, as in `next_cell`."""


class VisibleObject(NamedTuple):
    """An object in sight. `rank` orders objects by distance, then farther ahead first, then from left to right."""

    rank: int
    cell: int
    thing: Thing


class FieldOfView(NamedTuple):
    """The field of view: objects, nearest first; the set of free cells; and `lit`, the set of all cells in sight.

    `barrier` is the first wall or box straight ahead: its type and its distance in steps, or None.
    """

    seen: list[VisibleObject]
    free: int
    barrier: tuple[str, int] | None
    lit: int

    def reach(self) -> int:
        """Return the cells in sight that the agent can walk to."""
        reached, free = 0, self.free | 1 << HOME
        wave = 1 << HOME
        while wave:
            reached |= wave
            wave = beside(wave) & free & ~reached
        return reached

    def path(self, target: int, *, onto: bool) -> list[GridAction] | None:
        """Return the shortest path to face the target cell, or to enter it if `onto`; None if there is no path.

        Turns count as steps. Among equally short paths, moving forward early is preferred, then turning left early.
        """
        found = _shortest_path(self.free, target, onto)
        return None if found is None else list(found)


def look(world: GridWorld) -> FieldOfView:
    """Return the field of view: the cells that minigrid's `gen_obs` shows, computed without building a grid.

    Light starts at the agent and spreads row by row. Source: `Grid.process_vis` of minigrid.
    """
    seen: list[VisibleObject] = []
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
                seen.append(VisibleObject(_RANK[base + column], base + column, thing))
        if not next_lit:
            break
        lit, base = next_lit, base + SIZE
    seen.sort()
    return FieldOfView(seen, free, barrier, all_lit)


def beside(cells: int) -> int:
    """Return the cells of the view next to a set of cells."""
    sideways = (cells & ~_LEFTMOST) >> 1 | (cells & ~_RIGHTMOST) << 1
    return (sideways | cells >> SIZE | cells << SIZE) & _ALL


@cache
def next_cell(cell: int, facing: int) -> int | None:
    """Return the cell after `cell` when facing ahead (0), right (1), back (2) or left (3); None outside the view."""
    after = cell + _STEPS[facing]
    inside = 0 <= after < SIZE * SIZE and (facing % 2 == 0 or after // SIZE == cell // SIZE)
    return after if inside else None


def _rows(world: GridWorld) -> Iterator[tuple[list[Thing | None], int]]:
    """Yield the rows of the view, starting at the agent: the objects, and the set of columns that light passes."""
    cells = world.cells
    for numbers in grid_cells(world.size, world.position, world.direction):
        row, clear = [cells[number] for number in numbers], 0
        for column, thing in enumerate(row):
            if thing is None or thing.see_behind():
                clear |= 1 << column
        yield row, clear


@cache
def _spread(lit: int, clear: int) -> tuple[int, int]:
    """Return the lit columns of a row and of the next row.

    `lit` holds the columns lit from behind, and `clear` the columns that light passes. A lit, clear cell lights its
    neighbour, the cell ahead of it and the cell ahead of its neighbour, first towards the right, then towards the left.
    """
    ahead = 0
    for step, columns in ((1, range(SIZE - 1)), (-1, range(SIZE - 1, 0, -1))):
        for column in columns:
            if (lit & clear) >> column & 1:
                lit |= 1 << column + step
                ahead |= 1 << column | 1 << column + step
    return lit, ahead


@lru_cache(maxsize=4096)
def _shortest_path(free: int, target: int, onto: bool) -> tuple[GridAction, ...] | None:
    """Return `FieldOfView.path` for a set of free cells. It is cached because searches meet the same views again."""
    start = (HOME, 0)
    came: dict[Pose, tuple[Pose, GridAction] | None] = {start: None}
    queue = [start]
    for pose in queue:
        ahead, left, right = _MOVES[pose]
        if (pose[0] if onto else ahead) == target:
            return _trace(came, pose)
        if ahead is not None and free >> ahead & 1 and (step := (ahead, pose[1])) not in came:
            came[step] = pose, GridAction.FORWARD
            queue.append(step)
        if left not in came:
            came[left] = pose, GridAction.LEFT
            queue.append(left)
        if right not in came:
            came[right] = pose, GridAction.RIGHT
            queue.append(right)
    return None


def _trace(came: Mapping[Pose, tuple[Pose, GridAction] | None], pose: Pose) -> tuple[GridAction, ...]:
    actions = []
    while before := came[pose]:
        pose, action = before
        actions.append(action)
    return tuple(reversed(actions))


@lru_cache(maxsize=4096)
def grid_cells(size: tuple[int, int], position: tuple[int, int], direction: int) -> tuple[tuple[int, ...], ...]:
    """Return the grid cell of each cell of the view, by row and column.

    Outside the grid it is -1, which indexes the last cell, a corner and therefore a wall.
    """
    (width, height), (x, y) = size, position
    (fx, fy), (rx, ry) = AHEAD[direction], AHEAD[(direction + 1) % 4]

    def number(ahead: int, side: int) -> int:
        i, j = x + fx * ahead + rx * side, y + fy * ahead + ry * side
        return j * width + i if 0 <= i < width and 0 <= j < height else -1

    return tuple(tuple(number(ahead, side) for side in range(-HOME, HOME + 1)) for ahead in range(SIZE))


def _nearness(cell: int) -> tuple[int, int, int]:
    ahead, column = divmod(cell, SIZE)
    return ahead + abs(column - HOME), -ahead, column


_MOVES = {
    (cell, facing): (next_cell(cell, facing), (cell, (facing - 1) % 4), (cell, (facing + 1) % 4))
    for cell in range(SIZE * SIZE)
    for facing in range(4)
}
"""For each pose, the cell ahead (None outside the view), and the poses after a turn to the left and to the right."""
_BITS = [[column for column in range(SIZE) if lit >> column & 1] for lit in range(1 << SIZE)]
_RANK = {cell: rank for rank, cell in enumerate(sorted(range(SIZE * SIZE), key=_nearness))}
