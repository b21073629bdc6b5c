"""`--tree WxD`: episodes that share their beginnings, and advantages that average over the episodes of a turn."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import EpisodeSpec, Fork, TokenTrajectory
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_trl.advantages import AdvantageBatch, AdvantageConfig
from agentgym_trl.credit_methods import TreeShape
from agentgym_trl.fork_advantages import tree
from agentgym_trl.loss_statistics import trained_mask
from agentgym_trl.tree import grow_trees
from tests.adapters.trl.small import broken_craft, config, first_batch, make_trainer, played

TREE: dict[str, Any] = {"tree": "2x2", "max_turns": "4", "per_device_train_batch_size": 8}


def test_advantages_equal_hand_computed_values() -> None:
    """Two trees of two leaves in a group, with one token per turn: a-b and a-c; d-e and f."""
    returns = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    numbers = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 0]])
    rewards = torch.zeros(4, 2, dtype=torch.float64)
    rewards[:3, 1], rewards[3, 0] = returns[:3], 1.0
    owners = torch.tensor([[0, 0], [0, 1], [2, 2], [3, 0]])
    batch = AdvantageBatch(rewards, numbers, torch.ones(4, dtype=torch.bool), 4, turn_owners=owners)
    deviations = returns - 0.75 + torch.tensor([0.5, -0.5, 0.0, 0.0])  # from the group's mean, and the tree's
    expected: list[list[Any]] = [[deviations[:2].mean(), deviations[0]], [deviations[:2].mean(), deviations[1]]]
    expected += [[deviations[2], deviations[2]], [deviations[3], 0.0]]
    torch.testing.assert_close(tree(batch, AdvantageConfig(scale="none")), torch.tensor(expected, dtype=torch.float64))
    own, group = 0.5**0.5 + 1e-4, 0.5 + 1e-4
    scaled = (returns - 0.75) / group + torch.tensor([0.5, -0.5, 0.0, 0.0]) / own
    torch.testing.assert_close(tree(batch, AdvantageConfig())[:, -1], torch.tensor([*scaled[:3], 0.0]).double())


def test_unusable_episodes_enter_no_mean() -> None:
    numbers, owners = torch.tensor([[1, 2]] * 3), torch.tensor([[0, 0], [0, 1], [0, 2]])
    rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 9.0]], dtype=torch.float64)
    batch = AdvantageBatch(rewards, numbers, torch.tensor([True, True, False]), 3, turn_owners=owners)
    assert tree(batch, AdvantageConfig(scale="none")).tolist() == [[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]]


def owners_of(episodes: Sequence[Any]) -> list[list[int]]:
    """The first row with the same tokens up to the end of each turn, by comparing tokens."""
    first: dict[Any, int] = {}
    return [
        [first.setdefault((*e.prompt_ids, *e.ids[:end], tuple(e.logprobs[:end])), row) for _, end in e.turn_spans]
        for row, e in enumerate(episodes)
    ]


def test_every_sampled_token_is_trained_on_once(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, **TREE)
    batch = first_batch(trainer)
    episodes = trainer.rollout.last
    owners = owners_of(episodes)
    shared = sum(owner != row for row, own in enumerate(owners) for owner in own)
    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert logged["tree/shared_turns"] == shared > 0
    assert logged["rollout/tokens"] == int(trained_mask(batch).sum())
    for row, (episode, own) in enumerate(zip(episodes, owners, strict=True)):
        for (begin, end), owner in zip(episode.turn_spans, own, strict=True):
            assert trained_mask(batch)[row, begin:end].float().mean() == (owner == row)
    assert all(own[-1] == row for row, own in enumerate(owners))
    assert len(played(tmp_path, 0)) == 8


def test_a_rollout_has_the_advantages_of_its_trees(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, **TREE)
    batch = first_batch(trainer)
    episodes, owners = trainer.rollout.last, owners_of(trainer.rollout.last)
    scores = np.array([episode.trajectory.score for episode in episodes])
    leaves = np.zeros(8)
    for keys in (np.arange(8) // 4, np.array([own[0] for own in owners])):
        for key in set(keys):
            some = scores[keys == key]
            if len(some) > 1:
                leaves[keys == key] += (some - some.mean()) / (some.std(ddof=1) + 1e-4)
    below = defaultdict[tuple[int, int], list[float]](list)
    for row, own in enumerate(owners):
        for turn, owner in enumerate(own):
            below[owner, turn].append(leaves[row])
    for row, (episode, own) in enumerate(zip(episodes, owners, strict=True)):
        for turn, ((begin, end), owner) in enumerate(zip(episode.turn_spans, own, strict=True)):
            expected = torch.full((end - begin,), float(np.mean(below[owner, turn])))
            torch.testing.assert_close(batch["advantages"][row, begin:end], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("turn", [0, 3])
def test_failed_paths_are_replaced_and_failed_forks_left_out(turn: int, tokenizer: Any, tmp_path: Path) -> None:
    """The first root fails (turn 0), or some continuations do (turn 3)."""
    env = broken_craft(lambda number: number % 4 == 0, turn=turn)
    trainer = make_trainer(tmp_path, tokenizer, env, **{**TREE, "env_retries": 0})
    batch = first_batch(trainer)
    usable = [episode.trajectory.usable for episode in trainer.rollout.last]
    assert len(usable) == 8 and not all(usable) and any(usable)
    for row, episode in enumerate(trainer.rollout.last):
        mask = trained_mask(batch)[row]
        assert bool(mask.any()) == usable[row] and int(mask.sum()) <= sum(episode.assistant_mask)
    assert not batch["advantages"][~trained_mask(batch).any(1)].any()


class Session:
    """A `PlaySession` that plays episodes of six turns, and forks to the end of the forked episode."""

    trainer = SimpleNamespace(accelerator=SimpleNamespace(process_index=0))

    async def play(self, specs: Sequence[EpisodeSpec]) -> list[TokenTrajectory]:
        task, turns = Task("t", "train", "g", "goal"), tuple(Turn("", "", 0.0) for _ in range(6))
        trajectory = Trajectory("E-v0", task, 0, "", turns, "", 0.0, False, "failure")
        spans = tuple((turn, turn + 1) for turn in range(6))
        return [TokenTrajectory(trajectory, [1], [2] * 6, [1] * 6, [0.0] * 6, spans) for _ in specs]

    async def play_tree(self, forks: Sequence[Fork]) -> list[TokenTrajectory]:
        return [fork.played for fork in forks]


def test_a_path_is_forked_behind_its_latest_fork() -> None:
    """In trees of eight, row 4 leaves the path of row 0 first, then row 2, then row 1; so do 6 and 5 that of row 4."""
    session: Any = Session()
    _, owners = asyncio.run(grow_trees(session, [EpisodeSpec("t")] * 8 * 20, TreeShape(2, 3), (0,)))
    for root in range(0, len(owners), 8):
        begins = {row: owners[root + row].index(root + row) for row in range(8)}
        for earlier, later in ((4, 2), (2, 1), (4, 6), (6, 5), (2, 3), (6, 7)):
            assert begins[later] > begins[earlier] or begins[later] == 5, "the last turn, if none is left"


@pytest.mark.train
def test_trees_train(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, agent="act", context="last:1", **{**TREE, "max_completion_length": 600})
    before = {name: weights.clone() for name, weights in trainer.model.named_parameters()}
    trainer.train()
    assert any(not torch.equal(before[name], weights) for name, weights in trainer.model.named_parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tree": "2"}, "--tree is WxD, W branches .at least 2. at each of D levels .at least 1., as in 2x2, got '2'"),
        ({"tree": "1x2"}, "--tree is WxD"),
        ({"tree": "3x1"}, "trees of 3 episodes, so --num_generations must be a multiple, got 4"),
        ({"tree": "2x2", "dynamic_sampling_retries": 1}, "leave out --dynamic-sampling-retries"),
        ({"credit": "tree"}, "--credit tree and --tree WxD belong together"),
        ({"credit": "vine", "tree": "2x2"}, "--credit tree and --tree WxD belong together"),
        ({"tree": "2x2", "algorithm": "rloo"}, "--credit tree is for grpo, got rloo"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        config(tmp_path, **settings)


def test_a_tree_has_width_to_the_power_of_depth_leaves() -> None:
    assert TreeShape.parse("3x2").leaves == 9 and TreeShape.parse("2×4") == TreeShape(2, 4)
