"""Shortest paths through a known world: step costs, obstacles to move first, and cells to put an object down.

A cell is numbered `y * width + x`; a pose is `4 * cell + direction`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from agentgym_envs.babyai.world import AHEAD, GridAction, GridWorld, Thing

FAR = 1 << 30
"""More than any path costs."""
_NOTHING, _DOOR, _MOVABLE, _FIXED = range(4)
"""The content of a cell, as far as it matters where an object is put down."""
_SIDES = (0, 2, 4, 6)


class TerrainCosts(NamedTuple):
    """The cost of entering each cell beyond the step itself, or -1 if it is impossible.

    The cells of `toggles` are opened before they are entered. Those of `blocked` cannot be entered in the current
    state; their cost is an estimate of the steps to clear them.
    """

    enter: list[int]
    toggles: frozenset[int]
    blocked: frozenset[int]


class PathStep(NamedTuple):
    """A primitive action and the pose after it."""

    action: GridAction
    pose: int


class GridPath(NamedTuple):
    """A path to face a cell. `blocked` holds its cells that cannot be entered in the current state, in order."""

    steps: list[PathStep]
    cost: int
    end: int
    faced: int
    cells: frozenset[int]
    blocked: list[int]

    def then(self, *actions: GridAction) -> GridPath:
        """Return the path with further actions at its end; they must not change the pose."""
        return self._replace(steps=self.steps + [PathStep(action, self.end) for action in actions])


def pose_of(world: GridWorld) -> int:
    """Return the pose of the agent."""
    x, y = world.position
    return 4 * (y * world.size[0] + x) + world.direction


def strides(world: GridWorld) -> tuple[int, ...]:
    """Return the change of a cell's number by a step in each direction."""
    return _strides(world.size[0])


@cache
def _strides(width: int) -> tuple[int, ...]:
    return tuple(dx + dy * width for dx, dy in AHEAD)


def faced_cell(pose: int, steps: Sequence[int]) -> int:
    """Return the cell that the agent faces."""
    return (pose >> 2) + steps[pose & 3]


def advance(pose: int, action: GridAction, steps: Sequence[int]) -> int:
    """Return the pose after a turn or a step forward that nothing blocks."""
    if action is GridAction.FORWARD:
        return pose + 4 * steps[pose & 3]
    turn = 1 if action is GridAction.RIGHT else -1
    return pose & ~3 | pose + turn & 3


class PathSearch:
    """Finds the cheapest path to face a cell.

    With two `grounds`, the carried object is put down on the way, on one of the cells of `drops` at its cost. The first
    ground applies before that, the second one after. A state is a pose before that, and a pose plus `poses` after.
    """

    def __init__(
        self, steps: Sequence[int], grounds: Sequence[TerrainCosts], drops: Mapping[int, int] | None = None
    ) -> None:
        """Take the strides (`steps`), the terrain and the costs of drops."""
        self.steps, self.grounds, self.drops = steps, grounds, dict(drops or {})
        self.poses = 4 * len(grounds[0].enter)
        self._enter = [cost for ground in grounds for cost in ground.enter]

    def find(self, start: int, faces: Mapping[int, int], max_cost: int = FAR) -> GridPath | None:
        """Return the cheapest path from a pose to face one of the cells, including its extra cost in `faces`.

        Returns None if every path costs `max_cost` or more.
        """
        while (found := self._run(start, faces, max_cost)) is not None:
            cost, states = found
            path, dropped_at = self._retrace(states, cost)
            if dropped_at not in path.cells:
                return path
            del self.drops[dropped_at]  # the object would block the path
        return None

    def _run(self, start: int, faces: Mapping[int, int], max_cost: int) -> tuple[int, list[int]] | None:
        """Return the cost and states of the cheapest path: Dijkstra's algorithm, with a list of states per cost.

        This loop takes most of the oracle's time, so it has no calls but `append`.
        """
        steps, poses, enter, leave = self.steps, self.poses, self._enter, self._leave(faces)
        goal, last = poses * len(self.grounds), poses * (len(self.grounds) - 1)
        best, came, cost = [max_cost] * (goal + 1), [-1] * (goal + 1), 0
        best[start] = 0
        waiting: defaultdict[int, list[int]] = defaultdict(list, {0: [start]})
        while waiting:
            total, now, soon = cost + 1, waiting[cost], waiting[cost + 1]
            for state in now:
                if best[state] < cost:
                    continue
                if state == goal:
                    return cost, _states_to(came, goal)
                facing = state & 3
                after = state - 1 if facing else state + 3
                if total < best[after]:
                    best[after], came[after] = total, state
                    soon.append(after)
                after = state + 1 if facing < 3 else state - 3
                if total < best[after]:
                    best[after], came[after] = total, state
                    soon.append(after)
                stride = steps[facing]
                ahead = (state >> 2) + stride
                if (extra := enter[ahead]) >= 0 and (price := total + extra) < best[after := state + 4 * stride]:
                    best[after], came[after] = price, state
                    (waiting[price] if extra else soon).append(after)
                if (extra := leave[ahead]) < FAR and (price := cost + extra) < best[
                    after := goal if state >= last else state + poses
                ]:
                    best[after], came[after] = price, state
                    waiting[price].append(after)
            del waiting[cost]
            if not soon:
                del waiting[total]
            cost += 1
        return None

    def _leave(self, faces: Mapping[int, int]) -> list[int]:
        """Return the cost to drop at a cell or, on the last ground, to end the path facing it; by cell and ground."""
        cells = self.poses >> 2
        leave = [FAR] * (cells * len(self.grounds))
        for cell, cost in self.drops.items():
            leave[cell] = cost + 1
        for cell, cost in faces.items():
            if cell >= 0:  # a lost object is nowhere
                leave[cell - cells] = cost
        return leave

    def _retrace(self, states: list[int], cost: int) -> tuple[GridPath, int]:
        """Return the path through some states, and the cell where an object is put down, or -1.

        The `cells` of the path are those after the drop.
        """
        steps, blocked, dropped_at = list[PathStep](), list[int](), -1
        cells = [states[0] % self.poses >> 2]
        opened = set[int]()
        for state, after in pairwise(states):
            (layer, pose), (cell, facing) = divmod(after, self.poses), divmod(state % self.poses, 4)
            ground = self.grounds[layer]
            if state + self.poses == after:
                dropped_at, cells = cell + self.steps[facing], [cell]
                steps.append(PathStep(GridAction.DROP, pose))
            elif pose >> 2 == cell:
                steps.append(PathStep(GridAction.RIGHT if (facing + 1) & 3 == pose & 3 else GridAction.LEFT, pose))
            else:
                ahead = pose >> 2
                cells.append(ahead)
                if ahead in ground.blocked and ahead not in blocked and ahead not in opened:
                    blocked.append(ahead)
                if ahead in ground.toggles and ahead not in opened:
                    steps.append(PathStep(GridAction.TOGGLE, state % self.poses))
                    opened.add(ahead)
                steps.append(PathStep(GridAction.FORWARD, pose))
        end = states[-1] % self.poses
        faced = (end >> 2) + self.steps[end & 3]
        cells.append(faced)
        return GridPath(steps, cost, end, faced, frozenset(cells), blocked), dropped_at


def _states_to(came: Sequence[int], goal: int) -> list[int]:
    """States that led to the goal, without the goal."""
    states, state = list[int](), goal
    while (state := came[state]) >= 0:
        states.append(state)
    return states[::-1]


def drop_costs(world: GridWorld, keep: Collection[int]) -> dict[int, int]:
    """Return the empty cells where an object may be put down, each with a penalty for blocking the way."""
    right, down, left, up = strides(world)
    ring = (right, right + down, down, down + left, left, left + up, up, up + right)
    kinds = [_content(thing) for thing in world.cells]
    costs = {}
    for cell, kind in enumerate(kinds):
        if kind == _NOTHING:
            costs[cell] = _blocking(tuple([kinds[cell + step] for step in ring])) + 20 * (cell in keep)
    return costs


def _content(thing: Thing | None) -> int:
    if thing is None:
        return _NOTHING
    if thing.type == "door":
        return _DOOR
    return _MOVABLE if thing.can_pickup() else _FIXED


@lru_cache(maxsize=4096)
def _blocking(around: tuple[int, ...]) -> int:
    """Return the penalty of an object between these eight cells, clockwise from the right one.

    It is higher next to a door, and where the object may separate neighbouring cells or objects from each other.
    """
    free = [kind in (_NOTHING, _DOOR) for kind in around]
    parts = sum(free[side] and not (free[side - 1] and free[side - 2]) for side in _SIDES)
    hidden = any(around[side] == _MOVABLE and not (free[side - 1] or free[side + 1]) for side in _SIDES)
    return 4 * any(around[side] == _DOOR for side in _SIDES) + 4 * (parts > 1 or hidden)
