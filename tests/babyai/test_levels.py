import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.babyai import levels
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import (
    AGENTGYM_LEVELS,
    GROUP_OF,
    GROUPS,
    LEVELS,
    agentgym_task,
    blank_level,
    choose_levels,
)
from agentgym_envs.babyai.world import make_world
from agentgym_envs.errors import MissingExtra, UnknownTask, UsageError
from tests.babyai.tools import minigrid_id

AGENTGYMS_FORTY = """
GoToRedBallGrey GoToRedBall GoToRedBallNoDists GoToObjS6 GoToLocalS8N7 GoToObjMazeS7 GoToImpUnlock GoToSeqS5R2
GoToRedBlueBall GoToDoor GoToObjDoor Open OpenRedDoor OpenDoorLoc OpenRedBlueDoorsDebug OpenDoorsOrderN4Debug Pickup
UnblockPickup PickupLoc PickupDistDebug PickupAbove PutNextLocalS6N4 PutNextS7N4Carrying Unlock UnlockLocalDist
KeyInBox UnlockPickupDist BlockedUnlockPickup UnlockToUnlock ActionObjDoor FindObjS7 KeyCorridorS6R3 OneRoomS20
MoveTwoAcrossS8N9 SynthS5R2 SynthLoc SynthSeq MiniBossLevel BossLevel BossLevelNoUnlock
"""
"""Levels by index modulo 40, with the names of minigrid 2.3."""
SILENT = """
import sys, agentgym_envs
print([name for name in sys.modules if name.partition(".")[0] in ("minigrid", "pygame") or "babyai" in name])
import gymnasium
env = gymnasium.make("AgentGym/BabyAI-v0").unwrapped
assert "minigrid" in sys.modules
for seed in range(40):
    env.reset(options={"task": f"babyai/Unlock/{seed}"})
    env.reset(seed=seed)
"""


@pytest.fixture
def cleared_caches() -> Iterator[None]:
    """Clear the caches, so that minigrid is imported again in the test and after it."""
    caches = levels._load_minigrid, levels.blank_level
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_each_level_of_minigrid_is_in_one_group() -> None:
    blank_level("GoToObj")
    registered = sorted(name for name in gym.registry if name.startswith("BabyAI-"))
    ours = [level for group in GROUPS.values() for level in group]
    newest = {re.sub(r"-v\d+$", "", name): name for name in registered}
    assert sorted(map(minigrid_id, ours)) == sorted(newest.values())
    assert len(ours) == len(set(ours)) == 96 and tuple(ours) == LEVELS
    assert all(level in GROUPS[GROUP_OF[level]] for level in LEVELS) and len(GROUP_OF) == 96


def test_agentgym_levels_are_the_forty_of_agentgym() -> None:
    expected = ["GoToObjS4" if level == "GoToObjS6" else level for level in AGENTGYMS_FORTY.split()]
    assert list(AGENTGYM_LEVELS) == expected
    assert len(set(AGENTGYM_LEVELS)) == 40 and set(AGENTGYM_LEVELS) < set(LEVELS)


def test_the_renamed_level_is_small() -> None:
    for seed in range(5):
        assert make_world("GoToObjS4", seed).size == (4, 4)
        assert make_world("GoToObjS4", seed).max_steps == 16
        assert make_world("GoToObjS6", seed).size == (6, 6)


@pytest.mark.parametrize(
    ("data_idx", "task"),
    [
        (0, "babyai/GoToRedBallGrey/0"),
        (3, "babyai/GoToObjS4/0"),
        (39, "babyai/BossLevelNoUnlock/0"),
        (40, "babyai/GoToRedBallGrey/1"),
        (1_234, "babyai/SynthS5R2/30"),
    ],
)
def test_agentgym_indices_map_to_tasks(data_idx: int, task: str) -> None:
    assert agentgym_task(data_idx) == task


@pytest.mark.parametrize("data_idx", [-1, True, 1.0, "3", None])
def test_invalid_agentgym_indices_are_unknown(data_idx: int) -> None:
    with pytest.raises(UnknownTask, match=f"numbers its BabyAI tasks from 0, got {data_idx!r}"):
        agentgym_task(data_idx)


def test_levels_are_selected_by_name() -> None:
    assert choose_levels("all") == LEVELS
    assert choose_levels("BossLevel") == ("BossLevel",)
    assert choose_levels(["KeyInBox", "GoToObj", "KeyInBox"]) == ("GoToObj", "KeyInBox")
    assert choose_levels("agentgym") == tuple(level for level in LEVELS if level in AGENTGYM_LEVELS)
    assert len(choose_levels("agentgym")) == 40
    assert choose_levels("BossLevel, GoToObj") == choose_levels(["GoToObj", "BossLevel"]) == ("GoToObj", "BossLevel")
    assert len(choose_levels(["agentgym", "GoToObjS6"])) == 41


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("gotoobj", "no BabyAI level 'gotoobj'; did you mean 'GoToObj'"),
        ("GoToObj,Nothing", "no BabyAI level 'Nothing'; "),
        (["GoToObj", 3], "no BabyAI level 3"),
        ([["GoToObj"]], "no BabyAI level .'GoToObj'.;"),
        (5, "no BabyAI level 5;"),
        (None, "no BabyAI level None;"),
        ("", "no BabyAI level ''"),
        ([], "at least one BabyAI level"),
    ],
)
def test_unknown_levels_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_levels(wrong)


def test_a_missing_minigrid_is_a_missing_extra(cleared_caches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'minigrid'.* pip install 'agentgym-envs\[babyai\]'"):
        BabyAIEnv()


@pytest.mark.parametrize("version", ["2.3.1", "3.1.0", "3.20.0", "4.2.0"])
def test_another_minor_version_of_minigrid_is_refused(
    cleared_caches: None, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr("minigrid.__version__", version)
    with pytest.raises(MissingExtra, match=rf"minigrid 3\.2, .*{version} .* pip install 'agentgym-envs\[babyai\]'"):
        BabyAIEnv()


def test_a_patch_release_of_minigrid_is_accepted(cleared_caches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigrid.__version__", "3.2.7")
    BabyAIEnv()


def test_rejected_missions_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for seed in range(7, 12):
        assert make_world("Unlock", seed).mission
    assert capfd.readouterr() == ("", "")
    for seed in range(7, 12):
        blank_level("Unlock").__class__().reset(seed=seed)
    assert capfd.readouterr().out.count("Sampling rejected") > 5


@pytest.mark.slow
def test_the_import_loads_nothing_heavy_and_nothing_is_printed() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", SILENT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
