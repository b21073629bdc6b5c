"""BabyAI's panel: the grid, the agent's view, what it carries, and its path in the turn.

The observation only describes what is ahead, so the episode is replayed to show the full grid. If that is not possible,
the panel shows the view of the observation: seven by seven cells, with the agent at the lower edge, facing up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

from agentgym_envs.rollout.replay import observations, replay
from agentgym_envs.trajectory import Trajectory

SECONDS = 10.0
_SIZE, _HOME, _UP = 7, 3, 3
_SEEN = re.compile(
    r"There is an? (\w+ )?(?:(open|closed|locked) )?(door|key|ball|box)(?: (\d+))? "
    r"(?:right in front of you (\d+) steps away|(\d+) steps in front of you and (\d+) steps to your (left|right))"
)
_FACING = re.compile(r"You are facing a (wall|box|barrier) (\d+) steps away")
_HELD = re.compile(r"You are carrying an? (\w+ )?(?:(open|closed|locked) )?(door|key|ball|box)")
_GOAL = re.compile(r"Your goal: ([^\n]+)")

State = dict[str, Any]


def from_world(trajectory: Trajectory) -> list[State]:
    """Replay the episode for states of the full grid. Raises CannotReplay.

    `shared`: `width`, `height`, `mission`, `max_steps`, `walls` (rows of "#" and "."), and `egocentric` (False).

    A state has `agent` ([x, y, direction]; 0 is right, then clockwise), `trail` (the cells [x, y] of the last turn's
    path), `carrying` (a thing or None), `things` (each with `x`, `y`, `type`, `color`, `name`, for a door `state`, for
    a box `inside`), `visible` (rows with "1" for visible cells) and `steps`.
    """
    trails: list[list[list[int]]] = [[]]

    def look(env: Any, action: str | None) -> tuple[State, State]:
        state = _state(env, trails[-1])
        trails.append(_trail(env, action))
        return state, _shared(env)

    seen = replay(trajectory, look, seconds=SECONDS)
    states = [state for state, _ in seen]
    return [{**states[0], "shared": seen[0][1]}, *states[1:]]


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """States from the observations, in the same form. `egocentric` is True: the cells are those ahead of the agent.

    An observation that does not describe the room (for an impossible action) keeps the last state.
    """
    texts = observations(trajectory)
    states = list[State]()
    for number, text in enumerate(texts):
        steps = trajectory.turns[number - 1].info.get("steps") if number else 0
        if states and "room has walls" not in text:
            states.append({**states[-1], "trail": [], "steps": steps})
        else:
            states.append(_parse_state(text, steps))
    goal = _GOAL.search(texts[0])
    mission = goal[1] if goal else trajectory.task.goal
    shared = {"width": _SIZE, "height": _SIZE, "mission": mission, "walls": ["." * _SIZE] * _SIZE}
    states[0] = {**states[0], "shared": {**shared, "max_steps": None, "egocentric": True}}
    return states, None


def _shared(env: Any) -> State:
    world = env.world
    width, height = world.size
    signs = ["#" if cell is not None and cell.type == "wall" else "." for cell in world.cells]
    rows = ["".join(signs[row * width : (row + 1) * width]) for row in range(height)]
    known = {"mission": world.mission, "max_steps": world.max_steps, "egocentric": False}
    return {"width": width, "height": height, "walls": rows, **known}


def _state(env: Any, trail: list[list[int]]) -> State:
    world, scene = env.world, env.text_view
    names = {seen.thing.serial: name for name, seen in scene.named.items()}
    return {
        "agent": [*world.position, world.direction],
        "trail": trail,
        "carrying": None if world.carrying is None else _thing(world.carrying, names),
        "things": [{"x": x, "y": y, **_thing(thing, names)} for x, y, thing in world.things()],
        "visible": _visible(world, scene),
        "steps": world.steps,
    }


def _thing(thing: Any, names: Mapping[int, str]) -> State:
    from agentgym_envs.babyai.text_view import kind

    row: State = {"type": thing.type, "color": thing.color, "name": names.get(thing.serial, kind(thing))}
    row["seen"] = thing.serial in names
    if thing.type == "door":
        row["state"] = "open" if thing.is_open else "locked" if thing.is_locked else "closed"
    if thing.contains is not None:
        row["inside"] = kind(thing.contains)
    return row


def _visible(world: Any, scene: Any) -> list[str]:
    from agentgym_envs.babyai.view import grid_cells

    width, height = world.size
    signs = [["0"] * width for _ in range(height)]
    for cell, index in enumerate(chain.from_iterable(grid_cells(world.size, world.position, world.direction))):
        if index >= 0 and scene.view.lit >> cell & 1:
            signs[index // width][index % width] = "1"
    return ["".join(row) for row in signs]


def _trail(env: Any, action: str | None) -> list[list[int]]:
    """The cells of an action's path, including the first and the last one; computed in a copy of the world."""
    from agentgym_envs.babyai.commands import parse
    from agentgym_envs.errors import InvalidAction

    try:
        order = None if action is None else parse(env.grammar.parse(action).command)
    except InvalidAction:
        return []
    plan = None if order is None else env.text_view.plan(order)
    if not isinstance(plan, list):
        return []
    world = env.world.copy()
    trail = [list(world.position)]
    for primitive in plan:
        outcome = world.step(primitive)
        if list(world.position) != trail[-1]:
            trail.append(list(world.position))
        if outcome.terminated or outcome.truncated:
            break
    return trail if len(trail) > 1 else []


def _parse_state(text: str, steps: Any) -> State:
    things = [thing for found in _SEEN.finditer(text) if (thing := _ahead(found))]
    facing = _FACING.search(text)
    held = _HELD.search(text)
    if facing and facing[1] == "wall" and int(facing[2]) < _SIZE:
        things.append({"x": _HOME, "y": _SIZE - 1 - int(facing[2]), "type": "wall", "color": "grey", "name": "wall"})
    carrying = _named(held[1], held[2], held[3], None) if held else None
    agent = [_HOME, _SIZE - 1, _UP]
    visible = ["1" * _SIZE] * _SIZE
    return {"agent": agent, "trail": [], "carrying": carrying, "things": things, "visible": visible, "steps": steps}


def _ahead(found: re.Match[str]) -> State | None:
    """A thing in its cell; None outside of the seven by seven cells."""
    color, state, type_, number, straight, ahead, aside, side = found.groups()
    steps = int(straight or ahead)
    x = _HOME + (int(aside or 0) if side == "right" else -int(aside or 0))
    if steps >= _SIZE or not 0 <= x < _SIZE:
        return None
    return {"x": x, "y": _SIZE - 1 - steps, **_named(color, state, type_, number)}


def _named(color: str | None, state: str | None, type_: str, number: str | None) -> State:
    color = (color or "grey ").strip()
    name = " ".join(filter(None, (color, state, type_, number)))
    return {"type": type_, "color": color, "name": name, "seen": True, **({"state": state} if state else {})}
