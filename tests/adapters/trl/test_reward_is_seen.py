"""A single rewarded turn in a batch reaches the tokens of that turn, with every algorithm."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from agentgym_envs.core import Transition
from agentgym_trl.batch import local_rows
from tests.adapters.trl.small import REWARDED, ScoredCraft, first_batch, make_trainer

pytestmark = pytest.mark.train

ROW, TURN = 5, 1  # the paid episode of the batch, and which of its three turns


class PaysOnce(ScoredCraft):
    """One episode gets 0.5 for one turn; all other turns get 0."""

    def __init__(self, counter: Any) -> None:
        super().__init__()
        self._counter, self._number = counter, -1

    def _begin(self, *args: Any) -> str:
        self._number = next(self._counter)
        return super()._begin(*args)

    def _act(self, command: str) -> Transition:
        paid = self._number == ROW and self._turn == TURN + 1  # which counts this one
        return super()._act(command)._replace(reward=0.5 if paid else 0.0)


def rolled_out(name: str, tokenizer: Any, out: Path, **more: Any) -> tuple[Any, dict[str, torch.Tensor], torch.Tensor]:
    """A trainer, its batch, and (T,) the turn of every token of the paid episode, -1 on observations and padding."""
    counter = itertools.count()
    trainer = make_trainer(
        out, tokenizer, lambda: PaysOnce(counter), algorithm=name, max_turns="3", env_concurrency=1, **more
    )
    batch = first_batch(trainer)
    mask = trainer.rollout.last[ROW].assistant_mask
    mask = torch.tensor(mask + [0] * (batch["completion_ids"].size(1) - len(mask)))
    begins = mask * (1 - torch.nn.functional.pad(mask[:-1], (1, 0)))
    number = torch.where(mask.bool(), begins.cumsum(0) - 1, -1)
    assert number.max() == 2 and trainer.rollout.last[ROW].trajectory.turns[TURN].reward == 0.5
    assert sum(episode.trajectory.score for episode in trainer.rollout.last) == 0.5
    return trainer, batch, number


@pytest.mark.rotating(always=2)
@pytest.mark.parametrize("name", REWARDED)
def test_the_rewarded_turn_has_the_greatest_advantage(name: str, tokenizer: Any, tmp_path: Path) -> None:
    _, batch, number = rolled_out(name, tokenizer, tmp_path)
    advantages = batch["advantages"]
    if advantages.dim() == 1:
        advantages = advantages[:, None].expand(batch["completion_ids"].shape)
    paid = advantages[ROW][number == TURN]
    assert len(paid) and (paid > 0.3).all()
    assert torch.allclose(paid.max(), advantages.max())
    others = torch.ones(len(advantages), dtype=torch.bool)
    others[ROW] = False
    assert (advantages[others] < paid.min()).all()


@pytest.mark.parametrize("name", ["reinforce++", "ppo"])
def test_turns_after_the_rewarded_turn_get_no_credit(name: str, tokenizer: Any, tmp_path: Path) -> None:
    """Earlier turns share the reward; later ones have the return of the other episodes, 0."""
    _, batch, number = rolled_out(name, tokenizer, tmp_path, gamma=0.9)
    row = batch["advantages"][ROW]
    assert row[number == TURN].min() > row[number == 0].max() > row[number == 2].max()
    nothing = batch["advantages"][0][batch["tool_mask"][0].bool() & batch["completion_mask"][0].bool()]
    torch.testing.assert_close(row[number == 2], nothing[:1].expand(int((number == 2).sum())))
    assert (row[number == 2] < 0).all()


def test_value_targets_are_the_discounted_rewards(tokenizer: Any, tmp_path: Path) -> None:
    """A new critic has values of 0, so its targets are the discounted future rewards."""
    trainer, batch, number = rolled_out(
        "ppo", tokenizer, tmp_path, gamma=0.9, gae_lambda=0.5, critic_learning_rate=1e-3
    )
    targets = batch["value_targets"]
    expected = torch.tensor([0.5 * 0.9 * 0.5, 0.5, 0.0])
    for turn in range(3):
        tokens = number == turn
        torch.testing.assert_close(targets[ROW][tokens], expected[turn].expand(int(tokens.sum())))
    targets[ROW] = 0
    assert not targets[batch["value_mask"]].any()
    before = trainer.learner.values(batch, [[]] * 8, 8)[0]
    for _ in range(30):
        trainer.learner.learn({**batch, "value_targets": torch.where(number == TURN, 0.5, 0.0) * paid_row(batch)})
        trainer.learner.step()
    after = trainer.learner.values(batch, [[]] * 8, 8)[0]
    assert not before.any() and after[ROW][number == TURN].mean() > after[batch["value_mask"]].mean() + 0.01


def paid_row(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """(B, 1) 1 at the paid episode."""
    return (torch.arange(len(batch["completion_ids"])) == ROW)[:, None].float()


@pytest.mark.parametrize("name", ["reinforce++", "ppo"])
def test_other_rewards_are_on_the_last_answer_token(name: str, tokenizer: Any, tmp_path: Path) -> None:
    """With weights. They are per episode, so all of its turns share them."""

    def polite(completions: list[Any], **_: Any) -> list[float | None]:
        return [1.0 if number == 2 else None for number in range(len(completions))]

    _, batch, number = rolled_out(
        name, tokenizer, tmp_path, extra={"reward_funcs": polite}, reward_weights=[1.0, 2.0], gamma=1.0, gae_lambda=1.0
    )
    mask = (batch["tool_mask"] * batch["completion_mask"]).bool()
    best = batch["advantages"][2][mask[2]]
    torch.testing.assert_close(best, batch["advantages"].max().expand(len(best)))
    assert best[0] > batch["advantages"][ROW][number == TURN].max()  # 2.0 against 0.5


def test_rewards_by_token_add_up_to_the_returns() -> None:
    """For all reward functions: the episode's own rewards per turn, the others at the end, and no NaN."""
    inputs = [
        {"turn_numbers": [1, 1, 0, 2], "token_rewards": [0.0, 0.25, 0.0, 0.5], "state_keys": [0, 0, 0, 7]},
        {"turn_numbers": [1, 0, 2], "token_rewards": [0.25, 0.0, 0.0], "state_keys": [0, 0, 3]},
        {"turn_numbers": [1, 1], "token_rewards": [0.0, 0.25], "state_keys": [0, 0]},
        {"turn_numbers": [0], "token_rewards": [0.0], "state_keys": [0]},
    ]
    output = {"completion_ids": torch.ones(4, 5, dtype=torch.long)}
    returns = torch.tensor([1.5, -1.0, torch.nan, torch.nan])  # the episode's own rewards have weight 2
    rows = local_rows(inputs, output, returns, torch.tensor(2.0))
    assert rows["rewards"][0].tolist() == [0, 0.5, 0, 1.0, 0]  # no other rewards
    assert rows["rewards"][1].tolist() == [0.5, 0, -1.5, 0, 0]
    assert rows["usable"].tolist() == [True, True, False, False]
    assert rows["turn_numbers"].tolist()[0] == [1, 1, 0, 2, 0] and not rows["turn_numbers"][3].any()
    assert rows["states"][0].tolist() == [0, 0, 0, 7, 0]
    assert not rows["rewards"].isnan().any()
