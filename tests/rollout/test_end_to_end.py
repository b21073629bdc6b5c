"""A real (tiny, untrained) model plays TextCraft, from weights to trajectories."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
import torch

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.rollout import EpisodeSpec, Limits, Sampling, TokenTrajectory, play_many
from agentgym_trl.engines import HFEngine
from agentgym_trl.models import make_codec
from agentgym_trl.tiny import make_model, make_tokenizer

LIMITS = Limits(max_turns=3, max_tokens=200, max_turn_tokens=8)
SPECS = [EpisodeSpec(seed=1), EpisodeSpec(seed=1), EpisodeSpec(seed=2)]


def craft() -> Any:
    return gym.make("AgentGym/TextCraft-v0", disable_env_checker=True)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    env = craft()
    observation, _ = env.reset(seed=1)
    return make_tokenizer([env.unwrapped.instructions, observation])


def rollouts(tokenizer: Any, temperature: float) -> list[TokenTrajectory]:
    engine = HFEngine(make_model(tokenizer, hidden_size=32, layers=2), tokenizer)
    sampling = Sampling(LIMITS.max_turn_tokens, temperature)
    return asyncio.run(play_many(SPECS, craft, engine, make_codec(tokenizer), limits=LIMITS, sampling=sampling))


@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=pytest.mark.slow), 1.0])
def test_a_model_plays_episodes(tokenizer: Any, temperature: float) -> None:
    for tokens in rollouts(tokenizer, temperature):
        ids = tokens.prompt_ids + tokens.ids
        assert set(ids) <= set(range(len(tokenizer)))
        assert 1 <= len(tokens.trajectory.turns) <= 3
        assert sum(tokens.assistant_mask) <= 8 * len(tokens.trajectory.turns)
        assert tokens.trajectory.stop_reason in ("turn_limit", "token_limit", "success")
        assert tokens.logprobs is not None
        text = tokenizer.decode(ids)
        assert all(turn.observation in text for turn in tokens.trajectory.turns)


@pytest.mark.slow
def test_greedy_play_is_repeatable(tokenizer: Any) -> None:
    first, again = rollouts(tokenizer, 0.0), rollouts(tokenizer, 0.0)
    assert first == again
    assert first[0] == first[1]  # the same start in the same batch


def test_log_probabilities_are_those_of_the_model(tokenizer: Any) -> None:
    """Answers of several lengths, padded in one batch: each token has its probability under the model."""
    model = make_model(tokenizer, hidden_size=32, layers=2)
    engine = HFEngine(model, tokenizer, logprobs=True)
    sampling = Sampling(LIMITS.max_turn_tokens, 1.0)
    played = asyncio.run(play_many(SPECS, craft, engine, make_codec(tokenizer), limits=LIMITS, sampling=sampling))
    for tokens in played:
        ids = torch.tensor([tokens.prompt_ids + tokens.ids])
        with torch.no_grad():
            scores = model(ids).logits[0, :-1].log_softmax(-1)
        expected = scores.gather(1, ids[0, 1:, None])[-len(tokens.ids) :, 0] * torch.tensor(tokens.assistant_mask)
        torch.testing.assert_close(torch.tensor(tokens.logprobs), expected, atol=1e-4, rtol=0)
        assert expected.min() < -1
