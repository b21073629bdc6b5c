"""The levels: their names, their groups, AgentGym's selection, and the minigrid environment of each."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import gymnasium as gym

from agentgym_envs.errors import MissingExtra, UnknownTask, UsageError, missing_extra

MINIGRID = "3.2"
"""The minor version of minigrid that defines the tasks: other versions generate other worlds."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "GoTo": (
        *("GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToRedBlueBall", "GoToDoor", "GoToObjDoor"),
        *("GoToObj", "GoToObjS4", "GoToObjS6", "GoToLocal", "GoToLocalS5N2", "GoToLocalS6N2", "GoToLocalS6N3"),
        *("GoToLocalS6N4", "GoToLocalS7N4", "GoToLocalS7N5", "GoToLocalS8N2", "GoToLocalS8N3", "GoToLocalS8N4"),
        *("GoToLocalS8N5", "GoToLocalS8N6", "GoToLocalS8N7", "GoTo", "GoToOpen", "GoToObjMaze", "GoToObjMazeOpen"),
        *("GoToObjMazeS4R2", "GoToObjMazeS4", "GoToObjMazeS5", "GoToObjMazeS6", "GoToObjMazeS7"),
    ),
    "Open": ("Open", "OpenRedDoor", "OpenDoor", "OpenDoorDebug", "OpenDoorColor", "OpenDoorLoc"),
    "PickUp": (
        *("Pickup", "UnblockPickup", "PickupLoc", "PickupDist", "PickupDistDebug", "PickupAbove"),
        *("FindObjS5", "FindObjS6", "FindObjS7", "OneRoomS8", "OneRoomS12", "OneRoomS16", "OneRoomS20"),
    ),
    "PutNext": (
        *("PutNextLocal", "PutNextLocalS5N3", "PutNextLocalS6N4", "PutNextS4N1", "PutNextS5N1", "PutNextS5N2"),
        *("PutNextS6N3", "PutNextS7N4", "PutNextS5N2Carrying", "PutNextS6N3Carrying", "PutNextS7N4Carrying"),
    ),
    "Unlock": (
        *("Unlock", "UnlockLocal", "UnlockLocalDist", "KeyInBox", "UnlockPickup", "UnlockPickupDist"),
        *("BlockedUnlockPickup", "UnlockToUnlock", "GoToImpUnlock", "KeyCorridor", "KeyCorridorS3R1"),
        *("KeyCorridorS3R2", "KeyCorridorS3R3", "KeyCorridorS4R3", "KeyCorridorS5R3", "KeyCorridorS6R3"),
    ),
    "Sequence": (
        *("GoToSeq", "GoToSeqS5R2", "OpenTwoDoors", "OpenRedBlueDoors", "OpenRedBlueDoorsDebug", "OpenDoorsOrderN2"),
        *("OpenDoorsOrderN4", "OpenDoorsOrderN2Debug", "OpenDoorsOrderN4Debug", "MoveTwoAcrossS5N2"),
        "MoveTwoAcrossS8N9",
    ),
    "Synth": ("ActionObjDoor", "Synth", "SynthS5R2", "SynthLoc", "SynthSeq"),
    "Boss": ("MiniBossLevel", "BossLevel", "BossLevelNoUnlock"),
}
"""Levels by group. A group collects missions of the same type; those with several clauses are grouped by structure.

`Unlock` holds the levels that are built around a locked door. `Sequence` has fixed patterns of two clauses, `Synth`
also draws the verb, and `Boss` draws everything.
"""
LEVELS = tuple(level for levels in GROUPS.values() for level in levels)
"""All BabyAI levels that minigrid registers, by id without `BabyAI-` and the version."""
GROUP_OF: Mapping[str, str] = {level: group for group, levels in GROUPS.items() for level in levels}

AGENTGYM_LEVELS = (
    *("GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToObjS4", "GoToLocalS8N7", "GoToObjMazeS7"),
    *("GoToImpUnlock", "GoToSeqS5R2", "GoToRedBlueBall", "GoToDoor", "GoToObjDoor", "Open", "OpenRedDoor"),
    *("OpenDoorLoc", "OpenRedBlueDoorsDebug", "OpenDoorsOrderN4Debug", "Pickup", "UnblockPickup", "PickupLoc"),
    *("PickupDistDebug", "PickupAbove", "PutNextLocalS6N4", "PutNextS7N4Carrying", "Unlock", "UnlockLocalDist"),
    *("KeyInBox", "UnlockPickupDist", "BlockedUnlockPickup", "UnlockToUnlock", "ActionObjDoor", "FindObjS7"),
    *("KeyCorridorS6R3", "OneRoomS20", "MoveTwoAcrossS8N9", "SynthS5R2", "SynthLoc", "SynthSeq", "MiniBossLevel"),
    *("BossLevel", "BossLevelNoUnlock"),
)
"""AgentGym's forty levels, in the order of its ids: `data_idx` is level `data_idx % 40` with seed `data_idx // 40`.

The fourth is `GoToObjS6-v0` of minigrid 2.3, whose rooms have size 4. Its name is now GoToObjS4.
"""
NAMED: Mapping[str, tuple[str, ...]] = {"all": LEVELS, "agentgym": AGENTGYM_LEVELS}


def agentgym_task(data_idx: int) -> str:
    """Return the task id of AgentGym's `data_idx` (at least 0). Raises UnknownTask."""
    if type(data_idx) is not int or data_idx < 0:
        raise UnknownTask(f"AgentGym numbers its BabyAI tasks from 0, got {data_idx!r:.80}")
    seed, index = divmod(data_idx, len(AGENTGYM_LEVELS))
    return f"babyai/{AGENTGYM_LEVELS[index]}/{seed}"


def choose_levels(levels: str | Sequence[str]) -> tuple[str, ...]:
    """Parse a selection of levels: "all", "agentgym", a level, several separated by commas, or a list of levels.

    Returns them in the order of `LEVELS`. Raises UsageError, with similar names.
    """
    given = levels.split(",") if isinstance(levels, str) else list(levels) if isinstance(levels, Iterable) else [levels]
    chosen: set[str] = set()
    for name in given:
        level = name.strip() if isinstance(name, str) else name
        if not isinstance(level, str) or (level not in NAMED and level not in GROUP_OF):
            raise UsageError(
                f"there is no BabyAI level {level!r:.80}; {similar_levels(level)}. 'all' and 'agentgym' select several"
            )
        chosen.update(NAMED.get(level, (level,)))
    if not chosen:
        raise UsageError("at least one BabyAI level is needed")
    return tuple(level for level in LEVELS if level in chosen)


def similar_levels(name: object) -> str:
    """Suggestions for an unknown level name."""
    known = {level.lower(): level for level in (*NAMED, *LEVELS)}
    plain = str(name)[:80].lower().removeprefix("babyai-").removesuffix("-v0").removesuffix("-v1")
    near = [known[match] for match in difflib.get_close_matches(plain, known, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{hint}There are {len(LEVELS)} levels, such as {LEVELS[0]!r}; docs/babyai.md lists them"


@cache
def blank_level(level: str) -> Any:
    """Return the minigrid environment of a level before its first reset. It is shared; copy it before use."""
    _load_minigrid()
    version = "v1" if level == "GoToObjS6" else "v0"
    spec = gym.spec(f"BabyAI-{level}-{version}")
    assert isinstance(spec.entry_point, str)
    module, name = spec.entry_point.split(":")
    return getattr(importlib.import_module(module), name)(**spec.kwargs)


@cache
def _load_minigrid() -> None:
    """Import minigrid without its output. Raises MissingExtra, also for another version."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # minigrid imports pygame, which prints an advertisement
    try:
        import minigrid
    except ImportError as error:
        raise missing_extra("BabyAI", "minigrid", "babyai") from error
    if minigrid.__version__.split(".")[:2] != MINIGRID.split("."):
        raise MissingExtra(
            f"BabyAI's tasks are worlds of minigrid {MINIGRID}, and minigrid {minigrid.__version__} generates others. "
            "Run: pip install 'agentgym-envs[babyai]'"
        )
    from minigrid.envs.babyai.core import verifier

    if verifier.use_done_actions:
        raise UsageError("BABYAI_DONE_ACTIONS is set, with which minigrid ends no mission by itself; unset it")
