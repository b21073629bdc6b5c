"""Process rewards: differences of a potential of the oracle's labels, which change no return of an episode."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.core import Solution, TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import OracleLabel
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_trl.advantages import AdvantageBatch
from agentgym_trl.oracle_options import ProcessReward, ProcessRewardKind
from agentgym_trl.process_reward import potentials, process_rewards
from tests.adapters.trl.small import ScoredCraft, broken_craft, config, first_batch, make_trainer

TASK = Task("t/1", "train", "g", "goal")
LOST = "lost"
UNASKED = "unasked"


def episode(*distances: int | str | None, agrees: str = "") -> Trajectory:
    """An episode with these turns to go before its turns; `agrees` has a + for each turn with the oracle's command."""
    turns = []
    for number, distance in enumerate(distances):
        togo = distance if isinstance(distance, int) else None
        agreed = agrees[number : number + 1] == "+"
        label = OracleLabel(None if togo is None else "go", togo, distance == LOST, agrees=agreed)
        turns.append(Turn("look", "go", 0.0, {} if distance == UNASKED else {"oracle": asdict(label)}))
    return Trajectory("E-v0", TASK, 0, "", tuple(turns), "done", 0.0, False, "turn_limit")


def test_regret_pays_for_turns_closer_to_the_goal() -> None:
    played = episode(4, 3, 5, 4, 3)  # the second turn goes the wrong way and back again
    reward = ProcessReward("regret", weight=2.0)
    assert potentials(played, reward) == [0, 0.5, -0.5, 0, 0.5]
    assert process_rewards(played, reward) == [0.5, -1.0, 0.5, 0.5, -0.5]
    half = ProcessReward("regret", weight=2.0, gamma=0.5)
    assert process_rewards(played, half) == [0.25, -0.75, 0.5, 0.25, -0.5]


def test_regret_is_bounded_and_knows_lost_goals() -> None:
    reward = ProcessReward("regret")
    assert potentials(episode(2, 9, LOST, 1), reward) == [0, -1, -1, 0.5]
    assert potentials(episode(2, 1, None, UNASKED), reward) == [0, 0.5, 0.5, 0.5]


def test_agreement_pays_for_the_oracles_commands() -> None:
    played = episode(2, 1, 2, UNASKED, 1, agrees="+- -+")
    reward = ProcessReward("oracle-agreement")
    assert potentials(played, reward) == [0, 0.5, 0.5, 0.5, 0.5]
    assert process_rewards(played, reward) == [0.5, 0, 0, 0, -0.5]
    assert potentials(episode(2, 1, 2, agrees="++ "), reward) == [0, 0.5, 1]


@pytest.mark.parametrize("kind", ["regret", "oracle-agreement"])
def test_without_a_known_way_from_the_start_there_is_no_reward(kind: ProcessRewardKind) -> None:
    for played in (episode(None, 3, 2), episode(UNASKED, 3), episode(LOST, LOST), episode()):
        assert process_rewards(played, ProcessReward(kind)) == [0.0] * len(played.turns)


@given(
    st.lists(st.integers(1, 9) | st.sampled_from([LOST, UNASKED, None]), min_size=1, max_size=8),
    st.text("+-", min_size=8, max_size=8),
    st.sampled_from(["regret", "oracle-agreement"]),
    st.floats(0, 1),
)
def test_returns_from_a_turn_on_fall_by_the_potential_before_it(
    distances: list[Any], agrees: str, kind: ProcessRewardKind, gamma: float
) -> None:
    """So the return of an episode stays, and what the policy does from a turn on is compared as without rewards."""
    played, reward = episode(*distances, agrees=agrees), ProcessReward(kind, 1.5, gamma)
    before, paid = potentials(played, reward), process_rewards(played, reward)
    assert before[0] == 0
    for turn in range(len(paid)):
        total = sum(gamma**later * value for later, value in enumerate(paid[turn:]))
        assert total == pytest.approx(-before[turn], abs=1e-9)


class WalkingCraft(ScoredCraft):
    """The goal is 4, 3 and then 6 turns away, whatever the policy does."""

    _state = TextEnv._state  # every turn changes the state

    def _solution(self) -> Solution:
        return Solution(("get 1 oak log",) * (4, 3, 6, 6)[self._turn], True)


@pytest.mark.train
def test_the_rewards_reach_the_estimator_at_the_ends_of_turns(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[AdvantageBatch]()
    options: dict[str, Any] = {"process_reward": "regret", "process_reward_weight": 8.0, "gamma": 0.5}
    trainer = make_trainer(tmp_path, tokenizer, WalkingCraft, algorithm="reinforce++", max_turns="3", **options)
    store = trainer._store_advantages

    def watched(output: Any, batch: AdvantageBatch, local: slice) -> None:
        seen.append(batch)
        store(output, batch, local)

    monkeypatch.setattr(trainer, "_store_advantages", watched)
    first_batch(trainer)
    for row, played in enumerate(trainer.rollout.last):
        own = [turn.reward for turn in played.trajectory.turns]
        found = [float(seen[0].rewards[row, end - 1]) for _, end in played.turn_spans]
        assert found == pytest.approx([own[0] + 1, own[1] - 4, own[2] + 4], abs=1e-5)  # potentials 0, 2, -4
        assert float(seen[0].rewards[row].sum()) == pytest.approx(sum(found), abs=1e-5)


@pytest.mark.train
def test_failed_episodes_have_no_process_rewards(tokenizer: Any, tmp_path: Path) -> None:
    """And their labels are not counted."""
    env = broken_craft(lambda number: number % 3 == 0)
    options: dict[str, Any] = {"process_reward": "regret", "turn_level_advantage": True, "env_retries": 0}
    trainer = make_trainer(tmp_path, tokenizer, env, max_turns="3", **options)
    batch = first_batch(trainer)
    usable = [episode.trajectory.usable for episode in trainer.rollout.last]
    assert 0 < sum(usable) < len(usable)
    assert [bool(row.any()) for row in batch["advantages"]] == usable
    logged = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    turns = [len(episode.trajectory.turns) for episode in trainer.rollout.last if episode.trajectory.usable]
    assert logged["oracle/states"] == sum(turns)


@pytest.mark.train
def test_the_return_of_an_episode_is_its_score(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path, tokenizer, process_reward="regret", turn_level_advantage=True, max_turns="3", max_steps=1
    )
    trainer.train()
    row = next(row for row in trainer.state.log_history if "reward" in row)
    assert row["reward"] == pytest.approx(row["rollout/score"], abs=1e-4)
    assert row["oracle/labelled"] == row["oracle/states"] and row["time/oracle"] > 0


@pytest.mark.train
def test_ppo_trains_with_process_rewards(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path, tokenizer, algorithm="ppo", process_reward="regret", bootstrap_truncated_episodes=False, max_turns="2"
    )
    assert torch.isfinite(trainer._compute_loss(trainer.model, first_batch(trainer)))


@pytest.mark.parametrize(
    "more, part",
    [
        ({"process_reward": "luck"}, "there is no process reward 'luck'; choose from oracle-agreement, regret"),
        ({"process_reward_weight": 0.0}, "--process-reward-weight must be above 0"),
        ({"algorithm": "grpo"}, "sum to 0, so grpo does not see them"),
        ({"algorithm": "rloo"}, "sum to 0, so rloo does not see them"),
        ({"algorithm": "ppo"}, "--bootstrap-truncated-episodes false"),
        ({"algorithm": "distill"}, "for algorithms that learn from rewards"),
        ({"discount_per": "token"}, "--discount-per token"),
        ({"asynchronous": True}, "--async"),
        ({"agent": "react"}, "--agent"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(more: dict[str, Any], part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=part):
        config(tmp_path, **{"algorithm": "reinforce++", "process_reward": "regret", **more})
