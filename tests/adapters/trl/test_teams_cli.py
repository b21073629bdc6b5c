"""`agentgym train` over teams, from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_trl.models import load_model
from tests.adapters.trl.crews import AGENTS, COOP, EASY, OPTIONS
from tests.adapters.trl.small import metrics, played
from tests.adapters.trl.test_cli import ROLL, SMALL, agentgym, refused  # noqa: F401

PLAY = ["--env", COOP, "--env-kwargs", json.dumps(OPTIONS), "--groups", *EASY]
FOUR = [*ROLL, "--num_generations", "4"]


@pytest.fixture
def train(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:  # noqa: F811
    def call(name: str, *words: object) -> Any:
        fixed = [*PLAY, *SMALL, "--model", model_path, "--out", tmp_path / "out"]
        return agentgym("train", name, *fixed, *words)

    return call


@pytest.mark.train
@pytest.mark.slow
def test_members_are_trained_in_turn_with_a_partner(
    train: Any,
    agentgym: Any,  # noqa: F811
    model_path: Path,
    tmp_path: Path,
) -> None:
    first = train("grpo", *FOUR, "--train-agents", "crafter_0", "--partner", model_path, "--max_steps", 1)
    assert first.code == 0, first.err
    assert set(per_agent_trajectories(played(tmp_path / "out", 0)[0])) == set(AGENTS)
    assert {"rollout/success", "rollout/crafter_0/score", "rollout/crafter_1/score"} <= set(
        metrics(tmp_path / "out")[0]
    )
    other = ["--train-agents", "crafter_1", "--partner", tmp_path / "out", "--max_steps", 1]
    second = agentgym("train", "grpo", *PLAY, *SMALL, *FOUR, "--model", model_path, "--out", tmp_path / "two", *other)
    assert second.code == 0, second.err
    load_model(str(tmp_path / "two"))
    refused(train("grpo", *FOUR, "--train-agents", "crafter_1", "--partner", model_path, "--resume"), "train_agents")


@pytest.mark.train
@pytest.mark.slow
def test_a_team_is_warmed_up_by_its_oracle_and_trained(train: Any, agentgym: Any, tmp_path: Path) -> None:  # noqa: F811
    warm = train("sft", "--tasks", 4, "--max_steps", 1)
    assert warm.code == 0, warm.err
    trained = agentgym(
        "train", "ppo", *PLAY, *SMALL, *ROLL, "--model", tmp_path / "out", "--out", tmp_path / "ppo",
        "--max_steps", 1,
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert len(played(tmp_path / "ppo", 0)) == 2  # four rows


@pytest.mark.train
def test_unsupported_commands_of_teams_are_refused(train: Any, tmp_path: Path) -> None:
    refused(train("grpo", *ROLL), "--num_generations must be at least 4, got 2")
    refused(train("grpo", *FOUR, "--per_device_train_batch_size", 2, "--gradient_accumulation_steps", 3), "divisible")
    refused(train("grpo", *FOUR, "--train-agents", "crafter_7"), "crafter_0, crafter_1", "crafter_7")
    refused(train("grpo", *FOUR, "--partner", "nowhere"), "--train-agents")
    refused(train("dpo", "--trajectories", tmp_path / "none.jsonl"), "is a team", "grpo")
    refused(train("agentevol", "--tasks", 4), "is a team")
    refused(train("dagger"), "is a team")
    refused(train("distill", *FOUR), "the turns of a single agent", "crafter_0")
    assert not (tmp_path / "out").exists()
