"""The scenario of the tutorial passes the contract of the suite, local and served."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium as gym
import pytest

from agentgym_envs.core import text_env
from examples.new_scenario import SIZES, BisectEnv
from tests import contract

ID = "examples.new_scenario:Tutorial/Bisect-v0"
MAKE = partial(gym.make, ID)


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_the_scenario_keeps_the_contract(check: Callable[[contract.Make], None]) -> None:
    check(MAKE)


@pytest.mark.slow
def test_processes_agree() -> None:
    contract.processes_agree(ID, {}, contract.transcript_hash(MAKE))


@pytest.mark.slow
def test_the_oracle_needs_no_more_builds_than_binary_search() -> None:
    env = BisectEnv()
    for task in env.tasks:
        env.reset(seed=1, options={"task": task.id})
        builds = [command for command in env.oracle() if command.startswith("build")]
        assert len(builds) <= math.ceil(math.log2(task.data["size"] - 1))


def test_unneeded_builds_lower_the_score() -> None:
    env = BisectEnv()
    env.reset(seed=1, options={"task": "bisect/8/0"})
    culprit = env.tasks.get("bisect/8/0").data["culprit"]
    for _ in range(6):
        env.step("build 4")
    _, reward, terminated, _, info = env.step(f"blame {culprit}")
    assert terminated and info["success"] and reward == info["score"] == 0.5


def test_a_wrong_answer_ends_the_episode() -> None:
    env = BisectEnv()
    env.reset(seed=1, options={"task": "bisect/8/0"})
    wrong = env.tasks.get("bisect/8/0").data["culprit"] % 7 + 1
    _, reward, terminated, _, info = env.step(f"blame {wrong}")
    assert terminated and reward == 0.0 and not info["success"] and info["stop_reason"] == "failure"


def test_splits_share_no_culprit_and_seeds_give_different_histories() -> None:
    env = text_env(MAKE())
    for size in SIZES:
        culprits = [t.data["culprit"] for t in env.tasks.sample(groups=(f"commits-{size}",))]
        assert len(set(culprits)) == len(culprits)
    one, other = (env.reset(seed=seed, options={"task": "bisect/8/0"})[0] for seed in (1, 2))
    assert one != other


@pytest.mark.slow
def test_the_commands_accept_its_id() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "agentgym_envs", "solve", ID, "--task", "bisect/64/3"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=True)
    assert "blame" in done.stdout
