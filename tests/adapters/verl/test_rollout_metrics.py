"""The metrics `rollout/NAME` of verl's runs have the values of TRL's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentgym_envs import Task, Trajectory, Turn
from agentgym_envs.rollout import EpisodeSpec

pytestmark = pytest.mark.slow


def episode(*turns: tuple[bool, bool], score: float) -> Trajectory:
    """An episode of turns that are invalid or not, and truncated or not."""
    made = tuple(
        Turn("", "", 0.0, {"invalid_action": "why" if invalid else None, "finish": "length" if cut else "stop"})
        for invalid, cut in turns
    )
    task, stop = Task("t/1", "train", "g", "goal", {}), "success" if score == 1 else "turn_limit"
    return Trajectory("E", task, 0, "", made, "", score, score == 1, stop, meta={"max_turns": len(made) + 2})


EPISODES = [
    episode((True, False), (False, False), (False, True), score=1.0),
    episode((False, False), score=0.25),
    episode(*[(True, True)] * 5, score=0.0),
]


def test_the_names_and_values_are_those_of_trl() -> None:
    pytest.importorskip("verl", reason="the extra verl is not installed")
    from agentgym_trl.rollout_metrics import facts, summarise
    from agentgym_verl.loop import _validation_metrics
    from agentgym_verl.rollout_metrics import rollout_metrics

    row: Any = SimpleNamespace(group="g")
    ours = rollout_metrics([_validation_metrics(row, played) for played in EPISODES])
    specs = [EpisodeSpec(max_turns=played.meta["max_turns"], env="E") for played in EPISODES]
    theirs = summarise(facts(specs, [SimpleNamespace(trajectory=played) for played in EPISODES]))  # type: ignore[misc]
    assert ours == {name: pytest.approx(value) for name, value in theirs.items() if "/stop/" not in name}


def test_no_episodes_have_no_metrics() -> None:
    pytest.importorskip("verl", reason="the extra verl is not installed")
    from agentgym_verl.rollout_metrics import rollout_metrics

    assert rollout_metrics([]) == {}
