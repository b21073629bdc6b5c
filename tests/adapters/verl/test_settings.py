"""The block `agentgym` of a run's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_verl.settings import EpisodeSettings, read_settings, turn_limit

COUNT, TRICKY = "Toy/Count-v0", "Toy/Tricky-v0"


def test_a_missing_block_has_the_defaults() -> None:
    assert read_settings(None) == read_settings({}) == EpisodeSettings()
    assert turn_limit(EpisodeSettings(), COUNT, 1, False) == 30


def test_values_are_parsed_as_hydra_parses_them() -> None:
    found = read_settings({"max_turns": [10, 20, 30], "every": 100, "env_seconds": 5, "trajectories": None})
    assert found == EpisodeSettings(max_turns="10,20,30", every=100, env_seconds=5.0)
    assert isinstance(found.env_seconds, float)
    assert read_settings({"max_turns": 12}) == read_settings({"max_turns": "12"}) == EpisodeSettings(max_turns="12")
    assert read_settings({"env_seconds": None}).env_seconds is None


@pytest.mark.parametrize(
    "block, message",
    [
        ({"round": 3}, r"no setting agentgym\.round; choose from max_turns, every"),
        ({"max_turns": None}, r"agentgym\.max_turns must have a value"),
        ({"max_turns": True}, r"agentgym\.max_turns must be str, got True"),
        ({"max_turns": {"a": 1}}, r"agentgym\.max_turns must be str"),
        ({"max_turns": "ten"}, "whole numbers"),
        ({"max_turns": "10,20"}, "--every 100"),
        ({"max_turns": "20,10", "every": 5}, "decrease"),
        ({"max_turns": "Count=3;Count=4"}, "each environment once"),
        ({"every": 1.5}, r"agentgym\.every must be int, got 1\.5"),
        ({"every": True}, r"agentgym\.every must be int, got True"),
        ({"every": 0, "max_turns": "1,2"}, "at least 1"),
        ({"eval_max_turns": 0}, r"agentgym\.eval_max_turns must be at least 1, got 0"),
        ({"max_turn_tokens": 0}, r"agentgym\.max_turn_tokens must be at least 1"),
        ({"max_turn_tokens": None}, r"agentgym\.max_turn_tokens must have a value"),
        ({"env_concurrency": 0}, r"agentgym\.env_concurrency must be at least 1"),
        ({"env_seconds": 0}, r"agentgym\.env_seconds must be at least 0\.001"),
        ({"env_seconds": "long"}, r"agentgym\.env_seconds must be float, got 'long'"),
        ({"env_retries": -1}, r"agentgym\.env_retries must be at least 0"),
        ({"workers": 0}, r"agentgym\.workers must be at least 1"),
        ({"hosts": 0}, r"agentgym\.hosts must be at least 1"),
        ({"context": "last:2"}, r"agentgym\.context last:2 needs an agent, for example agentgym\.agent=act"),
        ({"agent": "sage"}, "there is no agent 'sage'"),
        ({"agent": "act", "context": "first:2"}, "there is no context policy 'first:2'"),
        ({"attempts": 0}, r"agentgym\.attempts must be at least 1"),
        ({"reward": "shaped"}, r"agentgym\.reward must be one of per_turn, final, got 'shaped'"),
        ({"backend": "slurm"}, r"agentgym\.backend must be one of auto, local, process, ray"),
        ({"record_tokens": 1}, r"agentgym\.record_tokens must be bool, got 1"),
        ({"trajectories": False}, r"agentgym\.trajectories must be str, got False"),
    ],
)
def test_invalid_settings_are_refused(block: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(block)


def test_the_step_of_the_schedule_counts_from_1() -> None:
    settings = EpisodeSettings(max_turns="10,20,30", every=100)
    limits = {step: turn_limit(settings, COUNT, step, False) for step in (0, 1, 100, 101, 200, 201, 900)}
    assert limits == {0: 10, 1: 10, 100: 10, 101: 20, 200: 20, 201: 30, 900: 30}
    assert turn_limit(settings, COUNT, 101, True) == 20
    evaluated = EpisodeSettings(max_turns="10,20,30", every=100, eval_max_turns=4)
    assert turn_limit(evaluated, COUNT, 900, True) == 4 and turn_limit(evaluated, COUNT, 900, False) == 30


def test_each_environment_has_its_own_schedule() -> None:
    settings = EpisodeSettings(max_turns=f"Count=2,4;{TRICKY}=3", every=10)
    assert [turn_limit(settings, COUNT, step, False) for step in (10, 11)] == [2, 4]
    assert turn_limit(settings, TRICKY, 11, False) == 3
    with pytest.raises(UsageError, match=r"must name them all: Slow; got Count, Toy/Tricky-v0"):
        turn_limit(settings, "Toy/Slow-v0", 1, False)


@pytest.mark.parametrize(
    "block, several",
    [
        ({}, False),
        ({"agent": "plan"}, False),
        ({"agent": "act", "context": "last:2"}, True),
        ({"agent": "reflect"}, True),
        ({"agent": "reflect", "attempts": 1}, False),
    ],
)
def test_an_agent_rewrites_its_context_or_not(block: dict[str, Any], several: bool) -> None:
    assert read_settings(block).agent_rewrites == several
