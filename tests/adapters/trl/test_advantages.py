"""The estimator against one that is written as the formula reads, and against TRL's own numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_trl.advantages import ESTIMATORS, Batch, grpo
from tests.adapters.trl.small import broken_craft, config, first_batch, make_trainer

Scale = Literal["group", "batch", "none"]
scores = st.one_of(st.just(math.nan), st.sampled_from([0.0, 1.0]), st.floats(-10, 10, width=32))


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[float], int]:
    size = draw(st.integers(1, 6))
    groups = draw(st.integers(1, 5))
    equal = draw(st.booleans())
    rows = [
        [draw(scores)] * size if equal else draw(st.lists(scores, min_size=size, max_size=size)) for _ in range(groups)
    ]
    return [score for row in rows for score in row], size


def slow(returns: list[float], size: int, scale: Scale) -> list[float]:
    advantages = []
    for place, score in enumerate(returns):
        group = [r for r in returns[place // size * size : place // size * size + size] if not math.isnan(r)]
        if math.isnan(score):
            advantages.append(0.0)
            continue
        centred = score - math.fsum(group) / len(group)
        everyone = [r for r in returns if not math.isnan(r)]
        divisor = {"group": deviation(group) + 1e-4, "batch": deviation(everyone) + 1e-4, "none": 1.0}[scale]
        advantages.append(centred / divisor)
    return advantages


def deviation(numbers: list[float]) -> float:
    """Unbiased; 0 for a single number."""
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((n - mean) ** 2 for n in numbers) / max(len(numbers) - 1, 1))


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@given(batches())
def test_grpo_is_its_formula(scale: Scale, batch: tuple[list[float], int]) -> None:
    returns, size = batch
    got = grpo(Batch(torch.tensor(returns, dtype=torch.float64), size, scale))
    expected = torch.tensor(slow(returns, size, scale), dtype=torch.float64)
    torch.testing.assert_close(got, expected, atol=1e-8, rtol=1e-6)


def test_known_numbers() -> None:
    returns = torch.tensor([math.nan, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    got = grpo(Batch(returns, 4))
    torch.testing.assert_close(got, torch.tensor([0, 1.1545, -0.5773, -0.5773, 0, 0, 0, 0]), atol=1e-3, rtol=0)
    plain = grpo(Batch(returns, 4, "none"))
    torch.testing.assert_close(plain, torch.tensor([0, 2 / 3, -1 / 3, -1 / 3, 0, 0, 0, 0]))
    assert grpo(Batch(torch.full((4,), math.nan), 4, "batch")).tolist() == [0, 0, 0, 0]


@pytest.mark.train
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_grpo_is_trls(scale: Scale, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a rollout with a failed episode; TRL logs its own advantages of the same rewards."""
    trainer = make_trainer(tmp_path, tokenizer, broken_craft(lambda n: n == 2), env_retries=0, scale_rewards=scale)
    ours = first_batch(trainer)["advantages"]
    theirs = torch.tensor(list(trainer._logs["advantages"]))
    assert ours.abs().max() > 0.05 and ours[2] == 0
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.train
def test_an_estimator_of_ones_own(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides, whatever TRL would have done; it sees the whole batch and the size of a group."""
    seen: list[Batch] = []

    def place(batch: Batch) -> torch.Tensor:
        seen.append(batch)
        return torch.arange(len(batch.returns)).float()

    monkeypatch.setitem(ESTIMATORS, "place", place)
    trainer = make_trainer(tmp_path, tokenizer, advantage_estimator="place")
    assert first_batch(trainer)["advantages"].tolist() == list(range(8))
    assert seen[0].group_size == 4 and seen[0].scale == "group"
    torch.testing.assert_close(seen[0].returns, torch.tensor([e.trajectory.score for e in trainer.rollout.last]))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"advantage_estimator": "luck"}, "there is no advantage estimator 'luck'; choose from grpo"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "--multi_objective_aggregation"),
        ({"rounds": "3,2", "every": 5}, "may not shrink"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        config(tmp_path, **settings)
