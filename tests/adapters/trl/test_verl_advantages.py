"""The estimators equal verl's where both compute the same: whole groups, discounts per token, no truncation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig, token_returns, value_targets, whiten
from agentgym_trl.algorithms import ALGORITHMS
from tests.adapters.trl.turn_numbers import turn_numbers

pytestmark = pytest.mark.slow

Case = dict[str, Any]


def make_cases(count: int = 60) -> list[Case]:
    """Random masks and rewards, with junk values on observations and padding."""
    generator = torch.Generator().manual_seed(5)
    return [_case(generator, number) for number in range(count)]


def _case(generator: torch.Generator, number: int) -> Case:
    size = 2 + number % 3
    shape = (size * (1 + number % 4), 3 + number % 17)
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[:, 0] = True  # every episode has an answer
    rewards = torch.randn(shape, generator=generator, dtype=torch.float64) * mask
    if number % 2:  # one reward per episode, on its last answer token
        last = mask & (mask.flip(1).cumsum(1).flip(1) == 1)
        rewards = last * (torch.rand(shape, generator=generator, dtype=torch.float64) < 0.5)
    return {
        "rewards": rewards.double(),
        "mask": mask,
        "values": torch.randn(shape, generator=generator, dtype=torch.float64) * torch.where(mask, 1.0, 100.0),
        "group_size": size,
        "gamma": (1.0, 0.9, 0.95)[number % 3],
        "lam": (1.0, 0.8, 0.9, 0.0)[number % 4],
    }


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Case, dict[str, torch.Tensor]]]:
    """The cases with verl's results."""
    folder, cases = tmp_path_factory.mktemp("verl"), make_cases()
    torch.save(cases, folder / "cases.pt")
    program = Path(__file__).with_name("verl_answers.py")
    command = [sys.executable, "-W", "ignore", str(program), str(folder / "cases.pt"), str(folder / "answers.pt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return list(zip(cases, torch.load(folder / "answers.pt"), strict=True))


def as_batch(case: Case) -> AdvantageBatch:
    rows = len(case["rewards"])
    nothing = case["rewards"].new_zeros(rows)
    usable = torch.ones(rows, dtype=torch.bool)
    numbers = turn_numbers(case["mask"])
    return AdvantageBatch(case["rewards"], numbers, usable, case["group_size"], case["values"], nothing)


def as_options(case: Case, **more: Any) -> AdvantageConfig:
    return AdvantageConfig(gamma=case["gamma"], gae_lambda=case["lam"], discount_per="token", **more)


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, mask: torch.Tensor) -> None:
    ours = ours[:, None] * mask if ours.dim() == 1 else torch.where(mask, ours, 0.0)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)  # verl adds 1e-8 to counts


Answered = list[tuple[Case, dict[str, torch.Tensor]]]


@pytest.mark.parametrize("name", ["ppo", "reinforce++"])
def test_per_token_estimators_equal_verls(name: str, answered: Answered) -> None:
    for case, theirs in answered:
        assert_same(ALGORITHMS[name].estimate(as_batch(case), as_options(case)), theirs[name], case["mask"])


@pytest.mark.parametrize("name", ["rloo", "reinforce++-baseline"])
def test_grouped_estimators_equal_verls(name: str, answered: Answered) -> None:
    """verl's do not discount."""
    for case, theirs in answered:
        assert_same(ALGORITHMS[name].estimate(as_batch(case), AdvantageConfig()), theirs[name], case["mask"])


def test_grpo_equals_verls_except_for_its_epsilon(answered: Answered) -> None:
    for case, theirs in answered:
        totals = case["rewards"].sum(1).view(-1, case["group_size"])
        deviation = totals.std(1).repeat_interleave(case["group_size"])
        ours = ALGORITHMS["grpo"].estimate(as_batch(case), AdvantageConfig()) * (deviation + 1e-4)
        assert_same(ours, theirs["grpo"] * (deviation + 1e-6)[:, None], case["mask"])
        plain = ALGORITHMS["grpo"].estimate(as_batch(case), AdvantageConfig(scale="none"))
        assert_same(plain, theirs["dr_grpo"], case["mask"])


def test_returns_value_targets_and_whitening_equal_verls(answered: Answered) -> None:
    for case, theirs in answered:
        batch, options, mask = as_batch(case), as_options(case), case["mask"]
        assert_same(token_returns(batch, options), theirs["token_returns"], mask)
        assert_same(value_targets(batch, options), theirs["value_targets"], mask)
        assert_same(whiten(case["values"], mask), theirs["whiten"], mask)
