"""Shortest command sequences with a proof, for missions with one clause.

With macro actions, a breadth-first search over the states of the world, turn by turn; a state whose next command can
complete the mission ends it. With primitive actions, a lower bound that the oracle's plan meets: the shortest path if
only walls stop the agent and moving anything takes one step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from agentgym_envs.babyai.commands import Verb, parse_known
from agentgym_envs.babyai.oracle import PlanSuffixes, solve
from agentgym_envs.babyai.pathfinding import PathSearch, TerrainCosts, advance, faced_cell, pose_of, strides
from agentgym_envs.babyai.states import Reached, States
from agentgym_envs.babyai.text_view import Actions, ObjectNames, TextView
from agentgym_envs.babyai.view import HOME, SIZE
from agentgym_envs.babyai.world import AHEAD, GridAction, GridWorld
from agentgym_envs.core import Solution

MAX_STATES = 120
"""States after which the search gives up its proof, in a world of one room or two."""
_MAX_HARD_STATES = 40
"""The same in larger worlds, and where an object must be put next to another: few of these searches end in time."""
_SMALL_CELLS = 120
_LAST_VERBS = {
    "GoToInstr": "",
    "PickupInstr": Verb.PICKUP.value,
    "OpenInstr": Verb.TOGGLE.value,
    "PutNextInstr": Verb.DROP.value,
}
"""The beginning of the commands that can fulfil each kind of clause."""
_NO_LIMIT = 1 << 30
_MAX_ARRANGEMENTS = 100
_MAX_ENTRIES = 500


class SearchCache:
    """Results of earlier searches in one world: they save time and never change a result.

    Start another one when it is full. Trainers hold hundreds of environments, and each arrangement is a copy of the
    objects of a world, so that a full cache takes one or two megabytes.
    """

    def __init__(self) -> None:
        self.solutions: dict[Hashable, Solution] = {}
        self.suffixes: PlanSuffixes = {}
        self.states = States()

    @property
    def full(self) -> bool:
        """True if as much is kept as about twenty turns need."""
        return len(self.states) > _MAX_ARRANGEMENTS or max(len(self.solutions), len(self.suffixes)) > _MAX_ENTRIES


class ShortestCommands(NamedTuple):
    """Commands that fulfil the mission, and true if no sequence is shorter."""

    commands: list[str]
    proven: bool


def shortest_plan(
    world: GridWorld,
    names: ObjectNames,
    actions: Actions,
    max_states: int | None = None,
    cache: SearchCache | None = None,
) -> ShortestCommands:
    """Search for the shortest sequence of commands, leaving the limit of steps aside. Changes only `cache`.

    Raises NoOracle if the search is not finished after `max_states` states (default: by the size of the world) and the
    oracle has no plan either.
    """
    cache = SearchCache() if cache is None else cache
    world = world.copy()
    world.level.max_steps = _NO_LIMIT
    if actions == "macro" and not hasattr(world.level.instrs, "instr_a"):
        found = _search(cache.states, world, names, _budget(world) if max_states is None else max_states)
        if found is not None:
            return ShortestCommands(found, True)
    commands = solve(world, names, actions, cache.suffixes)
    return ShortestCommands(commands, actions == "primitive" and len(commands) <= _least_steps(world))


def _budget(world: GridWorld) -> int:
    hard = len(world.cells) > _SMALL_CELLS or type(world.level.instrs).__name__ == "PutNextInstr"
    return _MAX_HARD_STATES if hard else MAX_STATES


class _Node:
    """A reached state: arrangement, pose and names, and the commands that led there.

    Most nodes of a search are never expanded, and a view costs more than the rest of a node.
    """

    __slots__ = ("_plans", "_view", "arrangement", "commands", "names", "pose")

    def __init__(self, at: Reached, names: ObjectNames, commands: tuple[str, ...]) -> None:
        self.arrangement, self.pose, self.names, self.commands = at.arrangement, at.pose, names, commands
        stable = names.numbering == "stable"  # the view numbers new objects
        self._view = self.arrangement.view(self.pose, names) if stable else None

    @property
    def view(self) -> TextView:
        """The view of the state."""
        if self._view is None:
            self._view = self.arrangement.view(self.pose, self.names)
        return self._view

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal states of a search."""
        return self.pose, self.arrangement, tuple(self.names.known.items())


def _search(states: States, world: GridWorld, names: ObjectNames, max_states: int) -> list[str] | None:
    """Return the shortest sequence of macro commands, or None if it is not found within `max_states` states."""
    layer = [_Node(Reached(states.arrange(world.copy_agent()), pose_of(world)), names.copy(), ())]
    known = {layer[0].key}
    while layer:
        for node in layer:
            if (last := _finish(states, node)) is not None:
                return [*node.commands, last]
        following = list[_Node]()
        for node in layer:
            for child in _children(states, node):
                if child.key in known:
                    continue
                known.add(child.key)
                following.append(child)
                if len(known) > max_states:
                    return None
        layer = following
    return None


def _children(states: States, node: _Node) -> Iterator[_Node]:
    """Yield the states after each possible command that does not end the episode."""
    for command, plan in _plans(node.view):
        reached = states.run(node.arrangement, node.pose, plan)
        if not reached.ended:
            yield _Node(reached, node.names.copy(), (*node.commands, command))


def _plans(view: TextView, beginning: str = "") -> Iterator[tuple[str, list[GridAction]]]:
    """Yield the offered commands with this beginning that take steps, with their primitive actions."""
    for command in view.available:
        if not command.startswith(beginning):
            continue
        parsed = parse_known(command)
        plan = None if parsed is None or parsed.verb is Verb.CHECK else view.plan(parsed)
        if isinstance(plan, list):
            yield command, plan


def _finish(states: States, node: _Node) -> str | None:
    """Return a command that fulfils the mission at once, if there is one."""
    clause = node.arrangement.world.level.instrs
    if type(clause).__name__ == "GoToInstr" and not _can_face(node, clause.desc.obj_poss):
        return None
    for command, plan in _plans(node.view, _LAST_VERBS[type(clause).__name__]):
        if _may_fulfil(node, clause, plan) and states.run(node.arrangement, node.pose, plan).success:
            return command
    return None


def _may_fulfil(node: _Node, clause: Any, plan: list[GridAction]) -> bool:
    """Return false only if these actions cannot fulfil the clause."""
    match type(clause).__name__:
        case "PickupInstr":
            ahead = _thing_ahead(node, plan)
            return plan[-1] is GridAction.PICKUP and any(thing is ahead for thing in clause.desc.obj_set)
        case "OpenInstr":
            return GridAction.TOGGLE in plan
        case "PutNextInstr":
            return plan[-1] is GridAction.DROP
    return True


def _thing_ahead(node: _Node, plan: list[GridAction]) -> Any:
    """Return the thing that the agent faces after a walk."""
    pose, steps = node.pose, node.arrangement.strides
    for action in plan[:-1]:
        pose = advance(pose, action, steps)
    return node.arrangement.world.cells[faced_cell(pose, steps)]


def _can_face(node: _Node, positions: Any) -> bool:
    """Return false if no cell beside one of the positions can be reached within sight."""
    (y, x), facing = divmod(node.pose >> 2, node.arrangement.world.size[0]), node.pose & 3
    (fx, fy), (rx, ry) = AHEAD[facing], AHEAD[(facing + 1) % 4]
    reach = node.view.near | 1 << HOME
    for goal_x, goal_y in positions:
        for dx, dy in AHEAD:
            to_x, to_y = int(goal_x) + dx - x, int(goal_y) + dy - y
            ahead, column = to_x * fx + to_y * fy, to_x * rx + to_y * ry + HOME
            if 0 <= ahead < SIZE and 0 <= column < SIZE and reach >> (SIZE * ahead + column) & 1:
                return True
    return False


def _least_steps(world: GridWorld) -> int:
    """A lower bound of the steps to fulfil the mission."""
    clause, width = world.level.instrs, world.size[0]
    match type(clause).__name__:
        case "GoToInstr":
            faces, last = {int(y) * width + int(x): 0 for x, y in clause.desc.obj_poss}, 0
        case "PickupInstr" | "OpenInstr":
            wanted = {id(thing) for thing in clause.desc.obj_set}
            faces, last = {cell: 0 for cell, thing in enumerate(world.cells) if id(thing) in wanted}, 1
        case _:
            return 1
    enter = [0 if thing is None or thing.can_overlap() else -1 if thing.type == "wall" else 1 for thing in world.cells]
    path = PathSearch(strides(world), [TerrainCosts(enter, frozenset(), frozenset())]).find(pose_of(world), faces)
    return 1 if path is None else max(1, path.cost + last)
