"""Panels: the state of the world at each turn of an episode, drawn next to the turns by a script per scenario.

A panel is `{"kind", "note", "states"}`. `kind` is the scenario whose script (`static/panels_<kind>.js`) draws it, or
None. `note` is a sentence on the origin of the states, or None. There is one state before the first action and one
after each action. Their common part is `shared` of the first state, so that the size of a panel grows with the changes
and not with the world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from agentgym_envs.core import describe
from agentgym_envs.rollout.replay import CannotReplay
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.panels.actor import actor_of

MAX_CHARS = 3_000_000
"""The most characters of a panel as JSON; of a longer one only a note is sent."""
Panel = dict[str, Any]
States = list[dict[str, Any]]

_MODULES = {
    "textcraft": "textcraft",
    "textcraftcoop": "textcraftcoop",
    "babyai": "babyai",
    "sciworld": "sciworld",
    "search": "search",
    "searchretry": "search",
    "searchpages": "searchpages",
    "webarena": "webarena",
    "webarenaofficial": "webarena",
    "webarenapixels": "webarena",
    "miniwob": "webarena",
    "miniwobpixels": "webarena",
}
"""The module of this folder for each environment, by its name in lower case."""


def panels_of(trajectory: Trajectory) -> Panel:
    """Make the panel of an episode. For a planner and an actor, it shows the world of the actor.

    It raises no errors; they are described in `note`.
    """
    actor = actor_of(trajectory) if _name(trajectory.env_id) == "planneractor" else None
    if actor is None:
        return _of_world(trajectory)
    panel = _of_world(actor.trajectory)
    return {**panel, "states": _repeated(panel["states"], actor.turn_counts)}


def _repeated(states: States, indices: Sequence[int]) -> States:
    """The states with these indices. Only the first one keeps `shared`."""
    rest = [{name: value for name, value in state.items() if name != "shared"} for state in states]
    return [states[0], *(rest[index] for index in indices[1:])] if states else []


def _of_world(trajectory: Trajectory) -> Panel:
    module = _MODULES.get(_name(trajectory.env_id))
    if module is None:
        return _nothing(None)
    try:
        found = import_module(f"{__name__}.{module}")
        panel = _panel(module, found, trajectory)
        json_chars = len(json.dumps(panel, separators=(",", ":"), allow_nan=False))
    except Exception as error:  # a record may contain anything, and the turns are readable without a panel
        return _nothing(f"The state of the world is not available ({describe(error)[:200]}).")
    if json_chars > MAX_CHARS:
        return _nothing("The states of this episode are too large to be shown.")
    return panel


def _panel(kind: str, module: Any, trajectory: Trajectory) -> Panel:
    """Make the panel from the replayed world if the module supports it, else from the record."""
    from_world: Callable[[Trajectory], States] | None = getattr(module, "from_world", None)
    note: str | None = None
    if from_world is not None:
        try:
            return {"kind": kind, "note": None, "states": from_world(trajectory)}
        except CannotReplay as error:
            note = f"{error} The panel shows the information in the record instead."
    states, remark = module.from_record(trajectory)
    return {"kind": kind, "note": " ".join(filter(None, (note, remark))) or None, "states": states}


def _name(env_id: str) -> str:
    """The short name of an environment: "babyai" for `AgentGym/BabyAI-v0`, `BabyAI` and `babyai`."""
    return env_id.rpartition("/")[2].rpartition(":")[2].partition("-")[0].lower()


def _nothing(note: str | None) -> Panel:
    return {"kind": None, "note": note, "states": []}
