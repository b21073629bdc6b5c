"""Rollouts in TRL: an unmodified trainer, failing environments, and the recorded files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from agentgym_envs import register
from agentgym_envs.errors import EnvError, TemplateError, UsageError
from agentgym_envs.http.run import background_server
from agentgym_envs.trajectory import read_trajectories
from agentgym_trl.rollout import make_rollout_func
from agentgym_trl.trl_format import prompt_of, spec_of
from tests.adapters.trl.small import (
    FORGETFUL,
    ScoredCraft,
    broken_craft,
    dataset,
    first_batch,
    make_small_model,
    make_trainer,
    played,
    settings,
)
from tests.graded import KWARGS


@pytest.mark.train
def test_an_unmodified_trainer_trains_equally(tokenizer: Any, tmp_path: Path) -> None:
    """TRL's own trainer with our rollout, and our trainer on padded rows: equal episodes, advantages and weights.

    Without padding, sums have another order, which Adam magnifies where a gradient is close to zero.
    """
    rollout = make_rollout_func(ScoredCraft, tokenizer, schedule=2, max_tokens=200, max_turn_tokens=10)
    seen: list[torch.Tensor] = []

    class Theirs(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            seen.append(output["advantages"].clone())
            return output

    theirs = Theirs(
        make_small_model(tokenizer),
        rollout.reward,
        args=GRPOConfig(**settings(tmp_path / "theirs")),
        processing_class=tokenizer,
        train_dataset=dataset(),
        rollout_func=rollout,
    )
    theirs.train()
    ours = make_trainer(tmp_path / "ours", tokenizer, padding_free=False)
    ours.train()
    assert len(seen) == len(ours.outputs) == 2
    for one, other in zip(seen, ours.outputs, strict=True):
        assert one.abs().max() > 0.1
        torch.testing.assert_close(one, other["advantages"], atol=1e-5, rtol=1e-5)
    for name, weight in theirs.model.state_dict().items():
        torch.testing.assert_close(ours.model.state_dict()[name], weight, atol=1e-5, rtol=1e-4)
    assert theirs.state.log_history[0]["rollout/turns"] == 2


@pytest.mark.train
def test_a_run_over_a_server_equals_a_local_run(tokenizer: Any, tmp_path: Path) -> None:
    register("Toy/ScoredCraft-v0", f"{ScoredCraft.__module__}:ScoredCraft")
    local = make_trainer(tmp_path / "local", tokenizer)
    local.train()
    opened = []

    def make() -> gym.Env[str, str]:
        opened.append(gym.make("Toy/ScoredCraft-v0", base_url=url))
        return opened[-1]

    with background_server(["Toy/ScoredCraft-v0"]) as url:
        remote = make_trainer(tmp_path / "remote", tokenizer, make)
        remote.train()
        remote.rollout.runners.close()
    for name, weight in local.model.state_dict().items():
        assert torch.equal(remote.model.state_dict()[name], weight), name
    for step in range(2):
        one, other = (sorted(repr(t.turns) for t in played(tmp_path / run, step)) for run in ("local", "remote"))
        assert one == other, "they are written as they finish, so only their order may differ"
    assert len(opened) <= len(played(tmp_path / "local", 0)) + 1, "environments are kept from step to step"


@pytest.mark.train
def test_a_failed_episode_is_replayed(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, broken_craft(lambda number: number in (1, 5)), max_steps=1)
    trainer.train()
    episodes = played(tmp_path, 0)
    assert Counter(t.usable for t in episodes) == {True: 8, False: 2}
    assert all("the crafting table burns" in str(t.error) for t in episodes if not t.usable)
    assert all(t.error is None for t in episodes if t.usable)
    kept = [episode.trajectory for episode in trainer.rollout.last]
    assert all(t.usable for t in kept)
    assert Counter(Counter((t.task.id, t.seed) for t in kept).values()) == {4: 2}
    assert trainer.state.log_history[0]["rollout/turns"] == 2


@pytest.mark.train
@pytest.mark.parametrize("turn", [0, 1], ids=["before any answer", "after an answer"])
def test_an_episode_that_keeps_failing_is_not_trained_on(turn: int, tokenizer: Any, tmp_path: Path) -> None:
    """It has no reward and advantage 0, and the rest of the group is compared without it."""
    trainer = make_trainer(tmp_path, tokenizer, broken_craft(lambda n: n == 2, turn), env_retries=0)
    batch = first_batch(trainer)
    scores = [episode.trajectory.score for episode in trainer.rollout.last]
    others = torch.tensor([scores[0], scores[1], scores[3]])
    expected = (others - others.mean()) / (others.std() + 1e-4)
    assert batch["advantages"][2] == 0
    torch.testing.assert_close(batch["advantages"][[0, 1, 3]], expected)
    row = trainer.rollout.last[2]
    assert row.trajectory.stop_reason == "env_error"
    trained = int((batch["completion_mask"] * batch["tool_mask"])[2].sum())
    assert trained == 0 and sum(row.assistant_mask) == (10 if turn else 0)
    if turn == 0:
        assert row.ids == [] and trained == 0
        assert batch["completion_mask"][2].sum() == 1 and batch["tool_mask"][2][0] == 0
    trainer.train()  # and nothing crashes


@pytest.mark.train
def test_other_rewards_do_not_make_a_failed_episode_usable(tokenizer: Any, tmp_path: Path) -> None:
    def pleasant(completions: Any, **_: Any) -> list[float]:
        return [float(index) for index in range(len(completions))]

    trainer = make_trainer(
        tmp_path,
        tokenizer,
        broken_craft(lambda n: n == 2),
        env_retries=0,
        scale_rewards="none",
        extra={"reward_funcs": pleasant},
    )
    advantages = first_batch(trainer)["advantages"]
    scores = [episode.trajectory.score + index for index, episode in enumerate(trainer.rollout.last)]
    mean = (scores[0] + scores[1] + scores[3]) / 3
    assert advantages[2] == 0
    torch.testing.assert_close(advantages[[0, 1, 3]], torch.tensor([scores[i] - mean for i in (0, 1, 3)]))


@pytest.mark.train
def test_an_environment_that_always_fails_stops_the_run(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, broken_craft(lambda _: True), env_retries=1)
    with pytest.raises(EnvError, match=r"every episode of this step failed, the first with: .*table burns"):
        trainer.train()
    assert len(played(tmp_path, 0)) == 8 * 2  # all attempts are recorded


@pytest.mark.train
def test_an_error_in_our_own_code_is_not_retried(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("out of memory")

    trainer._generate_single_turn = broken
    limit = trainer.generation_config.max_new_tokens
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer.train()
    assert trainer.generation_config.max_new_tokens == limit


@pytest.mark.train
def test_token_budgets_are_respected(tokenizer: Any, tmp_path: Path) -> None:
    """No answer and no trajectory exceeds its budget; the limit of TRL's generation is restored."""
    trainer = make_trainer(tmp_path, tokenizer, max_turns="9", max_completion_length=50, max_turn_tokens=8)
    limit = trainer.generation_config.max_new_tokens
    batch = first_batch(trainer)
    assert trainer.generation_config.max_new_tokens == limit
    assert {len(answer) for _, answer in trainer.generated} <= set(range(1, 9))
    assert batch["completion_mask"].sum(1).max() <= 50
    assert {e.trajectory.stop_reason for e in trainer.rollout.last} == {"token_limit"}


@pytest.mark.train
def test_a_group_has_one_task_and_seed(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, tokenizer, max_steps=3)
    trainer.train()
    for step in range(3):
        starts = Counter((t.task.id, t.seed, t.turns[0].observation) for t in played(tmp_path, step))
        assert list(starts.values()) == [4, 4]
        meta = [(t.meta["max_turns"], t.meta["step"], t.meta["training"]) for t in played(tmp_path, step)]
        assert meta == [(2, step, True)] * 8
    known = {(row["task"], row["seed"]) for row in trainer.train_dataset}
    assert {(t.task.id, t.seed) for t in played(tmp_path, 0)} <= known


@pytest.mark.train
def test_a_full_disk_keeps_written_episodes(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from agentgym_envs.trajectory import TrajectoryWriter

    write = TrajectoryWriter.write

    def full(self: TrajectoryWriter, trajectory: Any) -> None:
        if trajectory.meta["step"] == 1 and len(list(read_trajectories(self.path))) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(self.path))
        write(self, trajectory)

    monkeypatch.setattr(TrajectoryWriter, "write", full)
    trainer = make_trainer(tmp_path, tokenizer)
    with pytest.raises(OSError, match="No space left"):
        trainer.train()
    assert len(played(tmp_path, 0)) == 8
    assert len(played(tmp_path, 1)) == 3


def test_a_row_of_another_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="make_dataset"):
        spec_of("just a prompt", {})
    with pytest.raises(UsageError, match="make_dataset"):
        spec_of([{"role": "user", "content": "a prompt"}], {})
    assert spec_of(prompt_of("count/2", 7, "count"), {"step": 1}).seed == 7


def test_a_template_that_cannot_be_trained_on_is_refused(tokenizer: Any) -> None:
    partial = FORGETFUL.replace(
        "{{ m.content }}", "{{ m.content if loop.last or m.role != 'user' else m.content[:7] }}"
    )
    with pytest.raises(TemplateError, match="shows parts of earlier messages"):
        make_rollout_func("AgentGym/TextCraft-v0", tokenizer, env_kwargs=KWARGS, chat_template=partial)
