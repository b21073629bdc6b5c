"""Every estimator against `reference_advantages`, known numbers, and changes that must have no effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig, token_returns, value_targets
from agentgym_trl.advantages import critic_advantages as raw_gae
from agentgym_trl.algorithms import ALGORITHMS, Algorithm
from tests.adapters.trl import reference_advantages as reference
from tests.adapters.trl.reference_advantages import Episode, Table
from tests.adapters.trl.small import REWARDED, broken_craft, config, first_batch, make_trainer
from tests.adapters.trl.turn_numbers import turn_numbers

NAMES = sorted(REWARDED)
GROUPED = [name for name in NAMES if ALGORITHMS[name].grouped]

credits_ = st.builds(
    AdvantageConfig,
    scale=st.sampled_from(["group", "batch", "none"]),
    gamma=st.sampled_from([1.0, 0.9, 0.5, 0.0]),
    gae_lambda=st.sampled_from([1.0, 0.95, 0.3, 0.0]),
    discount_per=st.sampled_from(["turn", "token"]),
    turn_level=st.booleans(),
    step_weight=st.sampled_from([0.0, 1.0, 0.3]),
)


@st.composite
def episodes_(draw: st.DrawFn) -> tuple[list[Episode], int]:
    """Groups of episodes with all kinds of masks (one turn, many, none, truncated or ended), and the group size."""
    size, groups, width = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 14))
    answered, broken = draw(st.sampled_from([0.3, 0.7, 1.0])), draw(st.sampled_from([0.0, 0.3, 1.0]))
    kind = draw(st.sampled_from(["dense", "sparse", "equal"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = []
    for group in range(groups):
        failed = rng.random() < broken * 0.5  # a whole group
        for _ in range(size):
            usable = not failed and bool(rng.random() >= broken)
            found.append(_episode(rng, group, rng.random(width) < answered, kind, usable))
    return found, size


def _episode(rng: np.random.Generator, group: int, mask: np.ndarray, kind: str, usable: bool) -> Episode:
    """An episode with junk outside the mask."""
    width = len(mask)
    rewards = {"dense": rng.normal(size=width), "sparse": (rng.random(width) < 0.1) * 1.0, "equal": np.ones(width)}
    states = rng.integers(-3, 3, width)
    for t in range(1, width):  # one state per turn
        states[t] = states[t - 1] if mask[t] and mask[t - 1] else states[t]
    return Episode(
        group=group,
        rewards=np.where(mask, rewards[kind], rng.normal(size=width) * 100).tolist(),
        mask=mask.tolist(),
        usable=usable,
        values=rng.normal(size=width).tolist(),
        next_value=float(rng.normal()) * float(rng.integers(2)),
        states=states.tolist(),
    )


def as_batch(episodes: Sequence[Episode], size: int, dtype: torch.dtype = torch.float64) -> AdvantageBatch:
    return AdvantageBatch(
        rewards=torch.tensor([e.rewards for e in episodes], dtype=dtype),
        turn_numbers=turn_numbers(torch.tensor([e.mask for e in episodes])),
        usable=torch.tensor([e.usable for e in episodes]),
        group_size=size,
        values=torch.tensor([e.values for e in episodes], dtype=dtype),
        next_values=torch.tensor([e.next_value for e in episodes], dtype=dtype),
        states=torch.tensor([e.states for e in episodes]),
    )


def by_token(name: str, batch: AdvantageBatch, options: AdvantageConfig) -> torch.Tensor:
    """(B, T) for any shape of the estimator's result; checks that it is 0 outside the trained tokens."""
    found = ALGORITHMS[name].estimate(batch, options)
    if found.dim() == 1:
        assert (found[~batch.usable] == 0).all()
        return torch.where(batch.trained_mask, found[:, None], 0.0)
    assert found.shape == batch.rewards.shape and (found[~batch.trained_mask] == 0).all()
    return found


def assert_table(got: torch.Tensor, expected: Table, atol: float = 1e-9, rtol: float = 1e-9) -> None:
    torch.testing.assert_close(got, torch.tensor(expected, dtype=got.dtype), atol=atol, rtol=rtol)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", NAMES)
@given(episodes_(), credits_)
def test_an_estimator_equals_its_formula(name: str, world: tuple[list[Episode], int], options: AdvantageConfig) -> None:
    episodes, size = world
    assert_table(by_token(name, as_batch(episodes, size), options), reference.estimate(name, episodes, options))


@given(episodes_(), credits_)
def test_returns_and_value_targets_equal_their_formulas(
    world: tuple[list[Episode], int], options: AdvantageConfig
) -> None:
    episodes, size = world
    batch = as_batch(episodes, size)
    assert_table(token_returns(batch, options), reference.token_returns(episodes, options))
    advantages = reference.generalised(episodes, options)
    assert_table(raw_gae(batch, options), advantages)
    targets = [[v + a for v, a in zip(e.values, row, strict=True)] for e, row in zip(episodes, advantages, strict=True)]
    assert_table(value_targets(batch, options), targets)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 2)
@given(episodes_(), credits_)
def test_float32_is_precise_enough(name: str, world: tuple[list[Episode], int], options: AdvantageConfig) -> None:
    episodes, size = world
    got = by_token(name, as_batch(episodes, size, torch.float32), options)
    assert_table(got, reference.estimate(name, episodes, options), atol=2e-3, rtol=1e-3)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", NAMES)
@given(episodes_(), credits_, st.sampled_from([math.nan, math.inf, -1e30]))
def test_observations_padding_and_unusable_episodes_have_no_effect(
    name: str, world: tuple[list[Episode], int], options: AdvantageConfig, junk: float
) -> None:
    batch = as_batch(*world)
    assert batch.values is not None and batch.next_values is not None and batch.states is not None
    failed = replace(
        batch,
        rewards=torch.where(batch.trained_mask, batch.rewards, junk),
        values=torch.where(batch.trained_mask, batch.values, junk),
        next_values=torch.where(batch.usable, batch.next_values, junk),
        states=torch.where(batch.trained_mask, batch.states, 7),
    )
    torch.testing.assert_close(by_token(name, failed, options), by_token(name, batch, options), atol=0, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 2)
@given(episodes_(), credits_, st.integers(0, 2**32 - 1))
def test_the_lengths_of_observations_and_padding_have_no_effect(
    name: str, world: tuple[list[Episode], int], options: AdvantageConfig, seed: int
) -> None:
    episodes, size = world
    rng = np.random.default_rng(seed)
    longer = padded([stretched(episode, rng) for episode in episodes])
    before, after = as_batch(episodes, size), as_batch(longer, size)
    ours, theirs = by_token(name, before, options)[before.mask], by_token(name, after, options)[after.mask]
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


def stretched(episode: Episode, rng: np.random.Generator) -> Episode:
    """Insert up to three junk tokens before every token that is not an answer's."""
    indices: list[int] = []
    for t, on in enumerate(episode.mask):
        indices += [t] * (1 if on else int(rng.integers(1, 4)))
    return _picked(episode, indices)


def padded(episodes: list[Episode]) -> list[Episode]:
    """Pad to one width and two more columns, with junk tokens."""
    width = max(len(e.mask) for e in episodes) + 2
    blank = [
        replace(e, rewards=[*e.rewards, 9.0], mask=[*e.mask, False], values=[*e.values, 9.0], states=[*e.states, 9])
        for e in episodes
    ]
    return [_picked(e, [min(t, len(e.mask) - 1) for t in range(width)]) for e in blank]


def _picked(episode: Episode, indices: list[int]) -> Episode:
    lists: dict[str, Any] = {
        name: [getattr(episode, name)[t] for t in indices] for name in ("rewards", "mask", "values", "states")
    }
    return replace(episode, **lists)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 2)
@given(episodes_(), credits_, st.randoms(use_true_random=False))
def test_the_order_of_groups_and_episodes_has_no_effect(
    name: str, world: tuple[list[Episode], int], options: AdvantageConfig, random: Any
) -> None:
    episodes, size = world
    groups = [list(range(first, first + size)) for first in range(0, len(episodes), size)]
    random.shuffle(groups)
    for group in groups:
        random.shuffle(group)
    order = [index for group in groups for index in group]
    before = by_token(name, as_batch(episodes, size), options)
    after = by_token(name, as_batch([episodes[index] for index in order], size), options)
    torch.testing.assert_close(after, before[order], atol=1e-9, rtol=1e-9)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", GROUPED)
@given(episodes_(), credits_)
def test_groups_of_one_and_equal_returns_have_zero_advantage(
    name: str, world: tuple[list[Episode], int], options: AdvantageConfig
) -> None:
    episodes, size = world
    plain = replace(options, turn_level=False, step_weight=0.0)
    assert not by_token(name, as_batch(episodes, 1), plain).any()
    mask = [False, *episodes[0].mask[1:], True]
    rewards = [0.0] * (len(mask) - 1) + [1.0]
    same = [Episode(0, rewards, mask, e.usable, rewards, 0.0, list(range(len(mask)))) for e in episodes]
    assert by_token(name, as_batch(same, size), options).abs().max() < 1e-6


@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_advantages_are_per_episode_unless_turns_are_compared(name: str) -> None:
    batch = as_batch(two_turns(), 2)
    assert ALGORITHMS[name].estimate(batch, AdvantageConfig()).shape == (2,)
    assert ALGORITHMS[name].estimate(batch, AdvantageConfig(turn_level=True)).shape == batch.rewards.shape
    assert ALGORITHMS[name].estimate(batch, AdvantageConfig(step_weight=0.5)).shape == batch.rewards.shape


def two_turns(reward_at: int = 6) -> list[Episode]:
    """A group of a success and a failure, each [a a a o o a a o] of two turns."""
    mask = [True, True, True, False, False, True, True, False]
    won = [float(t == reward_at) for t in range(8)]
    return [
        Episode(0, won, mask, True, [0.0] * 8, 0.0, [0] * 8),
        Episode(0, [0.0] * 8, mask, True, [0.0] * 8, 0.0, [0] * 8),
    ]


def test_every_estimator_uses_a_reward_on_the_last_answer_token() -> None:
    """AgentGym-RL puts it on the next observation, where its PPO and REINFORCE++ multiply it by 0."""
    batch, options = as_batch(two_turns(), 2), AdvantageConfig(gae_lambda=1.0)
    assert token_returns(batch, options).max() == 1.0
    assert value_targets(batch, options).max() == 1.0
    grpo, rloo = (ALGORITHMS[name].estimate(batch, options) for name in ("grpo", "rloo"))
    torch.testing.assert_close(grpo, torch.tensor([0.7070, -0.7070], dtype=grpo.dtype), atol=1e-4, rtol=0)
    assert rloo.tolist() == [1.0, -1.0]
    for name in ("ppo", "reinforce++"):
        advantages = by_token(name, batch, options)
        assert (advantages[0][batch.mask[0]] > 0.9).all() and (advantages[1][batch.mask[1]] < -0.9).all()


@pytest.mark.parametrize(
    "gamma, gae_lambda, advantages, returns",
    [
        (1.0, 1.0, [1.0, 1.1, 1.2, 0, 0, 0.8, 0.9, 0, 0], [1.5, 1.5, 1.5, 0, 0, 1, 1, 0, 0]),
        (0.9, 0.8, [0.164, 0.422, 0.767, 0, 0, 0.538, 0.9, 0, 0], [1.061, 1.179, 1.31, 0, 0, 0.9, 1, 0, 0]),
    ],
)
def test_gae_equals_hand_computed_values(
    gamma: float, gae_lambda: float, advantages: list[float], returns: list[float]
) -> None:
    """Two turns with an observation between and padding after them, both with junk values."""
    mask = [True] * 3 + [False] * 2 + [True] * 2 + [False] * 2
    values = [0.5, 0.4, 0.3, 7, 9, 0.2, 0.1, 5, 3]
    batch = as_batch([Episode(0, [0, 0, 0.5, 0, 0, 0, 1.0, 0, 0], mask, True, values, 0.0, [0] * 9)], 1)
    options = AdvantageConfig(gamma=gamma, gae_lambda=gae_lambda, discount_per="token")
    assert_table(raw_gae(batch, options), [advantages], atol=5e-4, rtol=0)
    assert_table(token_returns(batch, options), [returns], atol=5e-4, rtol=0)


def test_a_truncated_episode_adds_the_critics_value_of_its_last_state() -> None:
    """Three turns of one token; truncated and ended differ in the last advantage only."""
    mask = [True, False, True, False, True]
    truncated = Episode(0, [0.0] * 5, mask, True, [0.0] * 5, 0.8, [0] * 5)
    batch = as_batch([truncated, replace(truncated, next_value=0.0)], 1)
    for per in ("turn", "token"):
        options = AdvantageConfig(gamma=0.5, gae_lambda=1.0, discount_per=per)
        assert_table(value_targets(batch, options), [[0.1, 0, 0.2, 0, 0.4], [0.0] * 5])


def test_grpo_equals_hand_computed_values() -> None:
    scores = [math.nan, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    batch = AdvantageBatch(torch.tensor(scores)[:, None], torch.ones(8, 1).long(), ~torch.tensor(scores).isnan(), 4)
    got = ALGORITHMS["grpo"].estimate(batch, AdvantageConfig())
    torch.testing.assert_close(got, torch.tensor([0, 1.1545, -0.5773, -0.5773, 0, 0, 0, 0]), atol=1e-3, rtol=0)
    plain = ALGORITHMS["grpo"].estimate(batch, AdvantageConfig(scale="none"))
    torch.testing.assert_close(plain, torch.tensor([0, 2 / 3, -1 / 3, -1 / 3, 0, 0, 0, 0]))


def test_gigpo_equals_hand_computed_values() -> None:
    """Both episodes pass state 5, at different turns, with returns of 0.5 (two turns ahead, gamma 0.5) and 0."""
    won = Episode(0, [0, 0, 0, 0, 1.0], [True, False, True, False, True], True, [0.0] * 5, 0.0, [0, 0, 5, 5, 6])
    lost = Episode(0, [0.0] * 5, [True, False, True, False, True], True, [0.0] * 5, 0.0, [0, 0, 4, 4, 5])
    got = ALGORITHMS["rloo"].estimate(as_batch([won, lost], 2), AdvantageConfig(gamma=0.5, step_weight=2.0))
    # per episode +-1, not discounted; within equal states +-0.25 at the start, +-0.5 in state 5, 0 in 4 and 6
    assert got.tolist() == [[1.5, 0, 2, 0, 1], [-1.5, 0, -1, 0, -2]]


def test_a_turn_level_advantage_compares_turns_of_the_same_index() -> None:
    mask = [True, False, True]
    early = Episode(0, [1.0, 0, 0], mask, True, [0.0] * 3, 0.0, [0] * 3)
    late = Episode(0, [0.0, 0, 0.5], mask, True, [0.0] * 3, 0.0, [0] * 3)
    got = ALGORITHMS["rloo"].estimate(as_batch([early, late], 2), AdvantageConfig(turn_level=True))
    assert got.tolist() == [[0.5, 0, -0.5], [-0.5, 0, 0.5]]


@pytest.mark.train
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_grpo_equals_the_implementation_of_trl(scale: str, tokenizer: Any, tmp_path: Path) -> None:
    """In a rollout with a failed episode; TRL logs its own advantages of the same rewards."""
    trainer = make_trainer(tmp_path, tokenizer, broken_craft(lambda n: n == 2), env_retries=0, scale_rewards=scale)
    ours = first_batch(trainer)["advantages"]
    theirs = torch.tensor(list(trainer._logs["advantages"]))
    assert ours.abs().max() > 0.05 and ours[2] == 0
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


INPUTS: list[tuple[AdvantageBatch, AdvantageConfig]] = []


def row_index(batch: AdvantageBatch, config: AdvantageConfig) -> torch.Tensor:
    """An estimator whose advantages are the indices of the episodes; keeps its inputs."""
    INPUTS.append((batch, config))
    return torch.arange(len(batch.rewards)).float()


@pytest.mark.train
def test_a_table_row_and_a_function_register_an_algorithm(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its advantages replace TRL's; it gets the whole batch and the options."""
    INPUTS.clear()
    row = Algorithm(summary="a test", advantage="the index", estimator=f"{__name__}:row_index")
    monkeypatch.setitem(ALGORITHMS, "row-index", row)
    trainer = make_trainer(tmp_path, tokenizer, algorithm="row-index", gamma=0.9)
    assert first_batch(trainer)["advantages"].tolist() == list(range(8))
    batch, config = INPUTS[0]
    assert batch.group_size == 4 and config.gamma == 0.9
    scores = torch.tensor([e.trajectory.score for e in trainer.rollout.last])
    torch.testing.assert_close((batch.rewards * batch.mask).sum(1), scores)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"algorithm": "luck"}, "there is no online algorithm 'luck'; choose from grpo"),
        ({"algorithm": "rloo", "num_generations": 1}, "--num_generations must be at least 2"),
        ({"algorithm": "ppo", "turn_level_advantage": True}, "for algorithms that compare within groups"),
        ({"algorithm": "reinforce++", "step_advantage_weight": 1.0}, "that compare within groups"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "--multi_objective_aggregation"),
        ({"max_turns": "3,2", "every": 5}, "must not decrease"),
        ({"gamma": 1.1}, r"--gamma must lie in \[0, 1\], got 1.1"),
        ({"gae_lambda": -0.1}, r"--gae-lambda must lie in \[0, 1\]"),
        ({"discount_per": "episode"}, "there is no discount_per 'episode'; choose from turn, token"),
        ({"kl_in": "reward"}, "--kl-in reward needs the weight of the KL term"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        config(tmp_path, **settings)
