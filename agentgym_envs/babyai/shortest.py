"""Shortest command sequences with a proof, for missions with one clause.

With macro actions, a breadth-first search over the states of the world, turn by turn; a state whose next command can
complete the mission ends it without another copy of the world. With primitive actions, a lower bound that the oracle's
plan meets: the shortest path if only walls stop the agent and moving anything takes one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agentgym_envs.babyai.commands import Verb, parse
from agentgym_envs.babyai.oracle import solve
from agentgym_envs.babyai.pathfinding import PathSearch, TerrainCosts, pose_of, strides
from agentgym_envs.babyai.text_view import Actions, ObjectNames, TextView
from agentgym_envs.babyai.view import HOME, SIZE
from agentgym_envs.babyai.world import AHEAD, GridAction, GridWorld

MAX_STATES = 120
"""States after which the search gives up its proof, in a world of one room or two; about 20 ms."""
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
_MOVES_THINGS = {GridAction.PICKUP, GridAction.DROP, GridAction.TOGGLE}


class ShortestCommands(NamedTuple):
    """Commands that fulfil the mission, and true if no sequence is shorter."""

    commands: list[str]
    proven: bool


def shortest_plan(
    world: GridWorld, names: ObjectNames, actions: Actions, max_states: int | None = None
) -> ShortestCommands:
    """Search for the shortest sequence of commands, leaving the limit of steps aside. Changes nothing.

    Raises NoOracle if the search is not finished after `max_states` states (default: by the size of the world) and the
    oracle has no plan either.
    """
    world = world.copy()
    world.level.max_steps = _NO_LIMIT
    if actions == "macro" and not hasattr(world.level.instrs, "instr_a"):
        found = _search(world, names, _budget(world) if max_states is None else max_states)
        if found is not None:
            return ShortestCommands(found, True)
    commands = solve(world, names, actions)
    return ShortestCommands(commands, actions == "primitive" and len(commands) <= _least_steps(world))


def _budget(world: GridWorld) -> int:
    hard = len(world.cells) > _SMALL_CELLS or type(world.level.instrs).__name__ == "PutNextInstr"
    return _MAX_HARD_STATES if hard else MAX_STATES


class _Node:
    """A reached state: its world and names, the objects as text, and the commands that led there.

    Most nodes of a search are never expanded, and a view costs more than the rest of a node.
    """

    __slots__ = ("_view", "commands", "names", "things", "world")

    def __init__(self, world: GridWorld, names: ObjectNames, things: str, commands: tuple[str, ...]) -> None:
        self.world, self.names, self.things, self.commands = world, names, things, commands
        self._view = TextView(world, names, "macro") if names.numbering == "stable" else None  # it numbers new objects

    @property
    def view(self) -> TextView:
        """The view of the state."""
        if self._view is None:
            self._view = TextView(self.world, self.names, "macro")
        return self._view


def _search(world: GridWorld, names: ObjectNames, max_states: int) -> list[str] | None:
    """Return the shortest sequence of macro commands, or None if it is not found within `max_states` states."""
    layer = [_Node(world, names.copy(), world.describe_things(), ())]
    known, states = {_key(layer[0])}, 1
    while layer:
        for node in layer:
            if (last := _finish(node)) is not None:
                return [*node.commands, last]
        following = list[_Node]()
        for node in layer:
            for child in _children(node):
                if (key := _key(child)) in known:
                    continue
                known.add(key)
                following.append(child)
                if (states := states + 1) > max_states:
                    return None
        layer = following
    return None


def _key(node: _Node) -> tuple[Any, ...]:
    return pose_of(node.world), node.things, node.world.progress(), tuple(node.names.known.items())


def _children(node: _Node) -> Iterator[_Node]:
    """Yield the states after each possible command that does not end the episode."""
    for command, plan in _plans(node.view):
        walks, names = _MOVES_THINGS.isdisjoint(plan), node.names.copy()
        world = node.world.copy_agent() if walks else node.world.copy()
        outcome = world.run(plan)
        if not outcome.terminated:
            things = node.things if walks else world.describe_things()
            yield _Node(world, names, things, (*node.commands, command))


def _plans(view: TextView, beginning: str = "") -> Iterator[tuple[str, list[GridAction]]]:
    """Yield the offered commands with this beginning that take steps, with their primitive actions."""
    for command in view.available:
        if not command.startswith(beginning):
            continue
        parsed = parse(command)
        plan = None if parsed is None or parsed.verb is Verb.CHECK else view.plan(parsed)
        if isinstance(plan, list):
            yield command, plan


def _finish(node: _Node) -> str | None:
    """Return a command that fulfils the mission at once, if there is one."""
    clause = node.world.level.instrs
    if type(clause).__name__ == "GoToInstr" and not _can_face(node, clause.desc.obj_poss):
        return None
    wanted = {id(thing) for thing in getattr(getattr(clause, "desc", None), "obj_set", ())}
    for command, plan in _plans(node.view, _LAST_VERBS[type(clause).__name__]):
        if _may_fulfil(node, clause, wanted, plan) and _fulfils(node.world, plan):
            return command
    return None


def _may_fulfil(node: _Node, clause: Any, wanted: set[int], plan: list[GridAction]) -> bool:
    """Return false only if these actions cannot fulfil the clause."""
    match type(clause).__name__:
        case "GoToInstr":
            width = node.world.size[0]
            goals = {int(y) * width + int(x) for x, y in clause.desc.obj_poss}
            return not goals.isdisjoint(_faced(node.world, plan))
        case "PickupInstr":
            return plan[-1] is GridAction.PICKUP and id(_thing_ahead(node.world, plan)) in wanted
        case "OpenInstr":
            return GridAction.TOGGLE in plan
    return plan[-1] is GridAction.DROP


def _thing_ahead(world: GridWorld, plan: list[GridAction]) -> Any:
    return world.cells[_faced(world, plan)[-1]]


def _faced(world: GridWorld, plan: list[GridAction]) -> list[int]:
    """Return the cell that the agent faces after each action of a plan that nothing stops."""
    pose, steps, faced = pose_of(world), strides(world), []
    for action in plan:
        if action is GridAction.LEFT:
            pose = (pose & ~3) | (pose - 1 & 3)
        elif action is GridAction.RIGHT:
            pose = (pose & ~3) | (pose + 1 & 3)
        elif action is GridAction.FORWARD:
            pose += 4 * steps[pose & 3]
        faced.append((pose >> 2) + steps[pose & 3])
    return faced


def _fulfils(world: GridWorld, plan: list[GridAction]) -> bool:
    walks = _MOVES_THINGS.isdisjoint(plan)
    outcome = (world.copy_agent() if walks else world.copy()).run(plan)
    return outcome.terminated and outcome.reward > 0


def _can_face(node: _Node, positions: Any) -> bool:
    """Return false if no cell beside one of the positions can be reached within sight."""
    (x, y), (fx, fy) = node.world.position, AHEAD[node.world.direction]
    rx, ry = AHEAD[(node.world.direction + 1) % 4]
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
