"""Importance weights: the default for vLLM, and the statistics of the weights in the log."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentgym_envs.errors import UsageError
from agentgym_trl.loss_statistics import LossStatistics
from tests.adapters.trl.small import config, make_trainer

PAGE = Path(__file__).parents[3] / "docs" / "training-one-machine.md"
ONE_PROCESS = SimpleNamespace(device="cpu", reduce=lambda sums, reduction: sums)
CDF = NormalDist().cdf


def batch(mask: list[list[int]], **columns: list[list[float]]) -> dict[str, torch.Tensor]:
    tensors = {name: torch.tensor(value) for name, value in columns.items()}
    return {"completion_mask": torch.ones(len(mask), len(mask[0])).int(), "tool_mask": torch.tensor(mask), **tensors}


def statistics(
    logprobs: list[list[float]], *batches: dict[str, torch.Tensor], level: str = "token"
) -> dict[str, float]:
    found = LossStatistics(level)
    for each in batches:
        found.add(torch.tensor(logprobs), each)
    return found.take(ONE_PROCESS)


def test_the_statistics_equal_hand_computed_values() -> None:
    old = [[-1.0, -9.0, -1.0 - math.log(2)]]  # the second token is not in the loss
    found = statistics([[-1.0, 0.0, -1.0]], batch([[1, 0, 1]], old_per_token_logps=old))
    assert found["effective_sample_size"] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    assert found["sampler_kl"] == pytest.approx((2 - 1 - math.log(2)) / 2)


def test_the_correction_for_vllm_is_part_of_the_weight() -> None:
    columns = {"old_per_token_logps": [[-1.0, -1.0]], "importance_sampling_ratio": [[0.5, 2.0]]}
    found = statistics([[-1.0, -1.0]], batch([[1, 1]], **columns, sampling_per_token_logps=[[-1.0, math.nan]]))
    assert found["effective_sample_size"] == pytest.approx(2.5**2 / (2 * (0.25 + 4)))
    assert found["sampler_kl"] == 0


def test_micro_batches_add_up_and_a_step_begins_with_nothing() -> None:
    one = batch([[1]], old_per_token_logps=[[-1.0]])
    two = batch([[1]], old_per_token_logps=[[-1.0 - math.log(3)]])
    assert statistics([[-1.0]], one, two)["effective_sample_size"] == pytest.approx(16 / 20)
    found = LossStatistics()
    found.add(torch.tensor([[-1.0]]), one)
    assert found.take(ONE_PROCESS) and not found.take(ONE_PROCESS)


def test_weights_of_sequences_are_geometric_means() -> None:
    old = [[-1.0, -1.0 - math.log(4)], [-1.0, -1.0]]
    found = statistics([[-1.0, -1.0]] * 2, batch([[1, 1]] * 2, old_per_token_logps=old), level="sequence")
    assert found["effective_sample_size"] == pytest.approx(6**2 / (4 * 10))


def test_masked_tokens_are_those_of_bad_episodes_far_from_the_policy() -> None:
    """Episodes with mean differences of 0.3, 0.1 and 0.3 nats, and only the last one better than its group."""
    sampled = [[-1.0, -1.4, 5.0], [-1.0, -1.2, 5.0], [-1.0, -1.4, 5.0]]
    columns = {"sampling_per_token_logps": sampled, "advantages": [[-1.0], [-1.0], [1.0]]}
    found = LossStatistics(off_policy_threshold=0.2)
    found.add(
        torch.tensor([[-1.3, -1.7, 0.0], [-1.1, -1.3, 0.0], [-1.3, -1.7, 0.0]]), batch([[1, 1, 0]] * 3, **columns)
    )
    assert found.take(ONE_PROCESS)["off_policy_masked"] == pytest.approx(1 / 3)
    assert "off_policy_masked" not in statistics([[-1.0]], batch([[1]]))


def test_weights_for_vllm_are_per_token_and_truncated(tmp_path: Path) -> None:
    ours = config(tmp_path)
    assert (ours.vllm_importance_sampling_mode, ours.vllm_importance_sampling_clip_max) == ("token_truncate", 2.0)
    theirs = config(tmp_path, vllm_importance_sampling_mode="sequence_mask", vllm_importance_sampling_clip_max=3.0)
    assert theirs.vllm_importance_sampling_mode == "sequence_mask"
    with pytest.raises(UsageError, match="no vllm_importance_sampling_mode 'token'"):
        config(tmp_path, vllm_importance_sampling_mode="token")


def test_the_table_of_the_page_is_right() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| (\d+) % \| (\d+) % \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 3
    for tokens, median, masked, truncated in rows:
        spread = 0.03 * math.sqrt(int(tokens.replace(",", "")))
        assert float(median) == pytest.approx(math.exp(-(spread**2) / 2), abs=0.005)
        assert int(masked) == pytest.approx(100 * share(spread, 3, masks=True), abs=0.5)
        assert int(truncated) == pytest.approx(100 * share(0.03, 2, masks=False), abs=0.5)


def share(spread: float, limit: float, *, masks: bool) -> float:
    """The effective sample size of log-normal weights with mean 1 that are masked, or truncated, at `limit`."""
    mean = -(spread**2) / 2

    def moment(k: int) -> float:
        below = math.exp(k * mean + (k * spread) ** 2 / 2) * CDF((math.log(limit) - mean - k * spread**2) / spread)
        return below + (0 if masks else limit**k * (1 - CDF((math.log(limit) - mean) / spread)))

    return moment(1) ** 2 / moment(2)


@pytest.mark.train
def test_a_step_on_its_own_rollout_has_the_whole_sample(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, max_steps=2, num_iterations=2, learning_rate=1e-2)
    trainer.train()
    first, second = (log for log in trainer.state.log_history if "effective_sample_size" in log)
    assert first["effective_sample_size"] == pytest.approx(1, abs=1e-4) and first["sampler_kl"] < 1e-5
    assert 0 < second["effective_sample_size"] < 1 - 1e-4 and second["sampler_kl"] > 1e-5
