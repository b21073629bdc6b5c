"""Ways through a known world: what each step costs, what has to be moved first, and where a thing may be put down.

A cell is numbered `y * width + x`; a pose is `4 * cell + direction`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentgym_envs.babyai.world import AHEAD, Action, Thing, World

FAR = 1 << 30
"""More than any way costs."""


class Ground(NamedTuple):
    """What entering each cell costs beyond the step itself, or -1 where that cannot be.

    The cells of `toggles` are opened before they are entered. Those of `blocked` cannot be entered as things are: their
    price is a guess at what it takes to change that.
    """

    enter: list[int]
    toggles: frozenset[int]
    blocked: frozenset[int]


class Step(NamedTuple):
    """A primitive action and the pose that it leads to."""

    action: Action
    pose: int


class Route(NamedTuple):
    """A way to face a cell. `blocked` are the cells on it that cannot be entered as things are, the first one first."""

    steps: list[Step]
    cost: int
    end: int
    faced: int
    cells: frozenset[int]
    blocked: list[int]

    def then(self, *actions: Action) -> Route:
        """The same with actions at the end, none of which changes the pose."""
        return self._replace(steps=self.steps + [Step(action, self.end) for action in actions])


def pose_of(world: World) -> int:
    """Where the agent stands and looks."""
    x, y = world.position
    return 4 * (y * world.size[0] + x) + world.direction


def strides(world: World) -> list[int]:
    """How the number of a cell changes by a step in each direction."""
    return [dx + dy * world.size[0] for dx, dy in AHEAD]


class Search:
    """The cheapest ways to face a cell.

    With two grounds what is held is put down on the way, on one of the cells of `drops` at its price: before that the
    first ground holds, from then on the second. A state is a pose, and from then on a pose plus `poses`.
    """

    def __init__(self, steps: Sequence[int], grounds: Sequence[Ground], drops: Mapping[int, int] | None = None) -> None:
        """`steps`: see `strides`."""
        self.steps, self.grounds, self.drops = steps, grounds, dict(drops or {})
        self.poses = 4 * len(grounds[0].enter)

    def find(self, start: int, faces: Mapping[int, int], most: int = FAR) -> Route | None:
        """The way from a pose to face one of the cells, at its extra cost; None if none costs less than `most`."""
        while (found := self._run(start, faces, most)) is not None:
            cost, states = found
            route, dropped_at = self._retrace(states, cost)
            if dropped_at not in route.cells:
                return route
            del self.drops[dropped_at]  # it would be in the way
        return None

    def _run(self, start: int, faces: Mapping[int, int], most: int) -> tuple[int, list[int]] | None:
        """Cost and states of the cheapest way. Source: Dijkstra's algorithm, with a list of states for each cost."""
        steps, poses, grounds, drops = self.steps, self.poses, self.grounds, self.drops
        goal, last = poses * len(grounds), poses * (len(grounds) - 1)
        best, came, cost = [most] * (goal + 1), [-1] * (goal + 1), 0
        best[start] = 0
        waiting = {0: [start]}
        while waiting:
            for state in waiting.get(cost, ()):
                if best[state] < cost:
                    continue
                if state == goal:
                    return cost, _chain(came, goal)
                facing = state & 3
                stride, corner = steps[facing], state - facing
                ahead = (state % poses >> 2) + stride
                moves = [(1, corner + (facing - 1 & 3)), (1, corner + (facing + 1 & 3))]
                if (price := grounds[state // poses].enter[ahead]) >= 0:
                    moves.append((price + 1, state + 4 * stride))
                if state >= last:
                    if ahead in faces:
                        moves.append((faces[ahead], goal))
                elif ahead in drops:
                    moves.append((drops[ahead] + 1, state + poses))
                for price, after in moves:
                    total = cost + price
                    if total < best[after]:
                        best[after], came[after] = total, state
                        if total in waiting:
                            waiting[total].append(after)
                        else:
                            waiting[total] = [after]
            waiting.pop(cost, None)
            cost += 1
        return None

    def _retrace(self, states: list[int], cost: int) -> tuple[Route, int]:
        """The way through some states, and on which cell a thing is put down, or -1; `cells` are those after that."""
        steps, blocked, dropped_at = list[Step](), list[int](), -1
        cells = [states[0] % self.poses >> 2]
        opened = set[int]()
        for state, after in pairwise(states):
            (layer, pose), (cell, facing) = divmod(after, self.poses), divmod(state % self.poses, 4)
            ground = self.grounds[layer]
            if state + self.poses == after:
                dropped_at, cells = cell + self.steps[facing], [cell]
                steps.append(Step(Action.DROP, pose))
            elif pose >> 2 == cell:
                steps.append(Step(Action.RIGHT if (facing + 1) & 3 == pose & 3 else Action.LEFT, pose))
            else:
                ahead = pose >> 2
                cells.append(ahead)
                if ahead in ground.blocked and ahead not in blocked and ahead not in opened:
                    blocked.append(ahead)
                if ahead in ground.toggles and ahead not in opened:
                    steps.append(Step(Action.TOGGLE, state % self.poses))
                    opened.add(ahead)
                steps.append(Step(Action.FORWARD, pose))
        end = states[-1] % self.poses
        faced = (end >> 2) + self.steps[end & 3]
        cells.append(faced)
        return Route(steps, cost, end, faced, frozenset(cells), blocked), dropped_at


def _chain(came: Sequence[int], goal: int) -> list[int]:
    """The states that led to the goal, without it."""
    states, state = list[int](), goal
    while (state := came[state]) >= 0:
        states.append(state)
    return states[::-1]


def spots(world: World, keep: Collection[int]) -> dict[int, int]:
    """The empty cells where a thing may be put down, each with a price for being in the way there."""
    steps, cells = strides(world), world.cells
    prices = {}
    for cell, thing in enumerate(cells):
        if thing is None:
            by_door = any(_is_door(cells[cell + step]) for step in steps)
            prices[cell] = 4 * by_door + 4 * _pinches(cells, cell, steps) + 20 * (cell in keep)
    return prices


def _is_door(thing: Thing | None) -> bool:
    return thing is not None and thing.type == "door"


def _pinches(cells: Sequence[Thing | None], cell: int, steps: Sequence[int]) -> bool:
    """Whether a thing on this cell may part cells or things next to it from one another."""
    right, down, left, up = steps
    ring = (right, right + down, down, down + left, left, left + up, up, up + right)
    around = [cells[cell + step] for step in ring]
    free = [thing is None or thing.type == "door" for thing in around]
    things = [thing is not None and thing.can_pickup() for thing in around]
    parts = sum(free[side] and not (free[side - 1] and free[side - 2]) for side in (0, 2, 4, 6))
    return parts > 1 or any(things[side] and not (free[side - 1] or free[side + 1]) for side in (0, 2, 4, 6))
