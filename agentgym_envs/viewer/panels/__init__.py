"""What the viewer shows beside the turns of an episode: the state of its world, turn by turn, drawn by scenario.

A panel is `{"kind", "note", "states"}`. `kind` names the scenario whose script (`static/panels_<kind>.js`) draws it, or
is None; `note` says in a sentence what the reader should know of where it comes from, or is None. `states` are one
before the first action and one after each; what they have in common is `shared` in the first one, so that the size of a
panel grows with what changes and not with the world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from agentgym_envs.core import describe
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.panels.actor import actor_of
from agentgym_envs.viewer.panels.replay import CannotReplay

MOST_CHARS = 3_000_000
"""How long a panel may be as JSON; of a longer one only the note is sent."""
Panel = dict[str, Any]
States = list[dict[str, Any]]

_MODULES = {
    "textcraft": "textcraft",
    "textcraftcoop": "textcraftcoop",
    "babyai": "babyai",
    "sciworld": "sciworld",
    "search": "search",
    "searchretry": "search",
    "webarena": "webarena",
    "webarenaofficial": "webarena",
    "miniwob": "webarena",
}
"""Which module of this folder reads the episodes of an environment, by its name in small letters."""


def panels_of(trajectory: Trajectory) -> Panel:
    """The panel of an episode; of a planner and an actor, that of the world which the actor acts in.

    Raises nothing: what goes wrong is told in `note`.
    """
    actor = actor_of(trajectory) if _name(trajectory.env_id) == "planneractor" else None
    if actor is None:
        return _of_world(trajectory)
    panel = _of_world(actor.trajectory)
    return {**panel, "states": _repeated(panel["states"], actor.places)}


def _repeated(states: States, places: Sequence[int]) -> States:
    """The states of these places; what they share stays in the first one alone."""
    rest = [{name: value for name, value in state.items() if name != "shared"} for state in states]
    return [states[0], *(rest[place] for place in places[1:])] if states else []


def _of_world(trajectory: Trajectory) -> Panel:
    module = _MODULES.get(_name(trajectory.env_id))
    if module is None:
        return _nothing(None)
    try:
        found = import_module(f"{__name__}.{module}")
        panel = _panel(module, found, trajectory)
        json_chars = len(json.dumps(panel, separators=(",", ":"), allow_nan=False))
    except Exception as error:  # a record may hold anything, and the turns can be read without a panel
        return _nothing(f"The state of the world could not be worked out ({describe(error)[:200]}).")
    if json_chars > MOST_CHARS:
        return _nothing("The states of this episode are too large to be shown beside it.")
    return panel


def _panel(kind: str, module: Any, trajectory: Trajectory) -> Panel:
    """The panel from the world, played again, where that tells more than the record; else from the record."""
    from_world: Callable[[Trajectory], States] | None = getattr(module, "from_world", None)
    note: str | None = None
    if from_world is not None:
        try:
            return {"kind": kind, "note": None, "states": from_world(trajectory)}
        except CannotReplay as error:
            note = f"{error} So this shows what the record itself tells."
    states, remark = module.from_record(trajectory)
    return {"kind": kind, "note": " ".join(filter(None, (note, remark))) or None, "states": states}


def _name(env_id: str) -> str:
    """`AgentGym/BabyAI-v0`, `BabyAI` and `babyai` are all "babyai"."""
    return env_id.rpartition("/")[2].rpartition(":")[2].partition("-")[0].lower()


def _nothing(note: str | None) -> Panel:
    return {"kind": None, "note": note, "states": []}
