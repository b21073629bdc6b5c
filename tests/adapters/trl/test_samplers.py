"""Task samplers: rates and probabilities against hand-computed values, exact resume, and their place in a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import draw_tasks
from agentgym_trl import step_rollout, task_sampler
from agentgym_trl.config import AgentConfig
from agentgym_trl.dataset import as_dataset
from agentgym_trl.samplers import SAMPLERS, parse_sampler, sampler_table
from agentgym_trl.step_rollout import StepRollout
from agentgym_trl.task_sampler import Outcome, TaskKey, TaskSampler, make_task_sampler
from agentgym_trl.trl_format import prompt_of
from tests.adapters.trl import test_asynchronous, test_resume
from tests.adapters.trl.small import DEPTH, ENV, ScoredCraft, broken_craft, dataset, make_trainer, played
from tests.adapters.trl.test_dynamic_sampling import DullCraft
from tests.toy import CountEnv

KEYS = [TaskKey("", f"t{n}", "easy" if n < 2 else "hard") for n in range(4)]


def make(text: str, keys: list[TaskKey] = KEYS, seed: int = 0) -> TaskSampler:
    weights = parse_sampler(text)
    assert weights is not None
    return TaskSampler(keys, lambda row: row, weights, seed=seed)


def shares(sampler: TaskSampler, env: str = "", count: int = 4000) -> list[float]:
    """The frequency of each task in draws from the present state."""
    state, drawn = sampler.state(), Counter[int]()
    for number in range(10_000, 10_000 + count):
        drawn[sampler.draw(env, number)] += 1
        sampler.load(state)
    return [drawn[row] / count for row in range(max(drawn) + 1)]


def test_rates_are_hand_computed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a task with 3 of 4 successes, a task of its group without any, and a group that was never played."""
    monkeypatch.setattr(task_sampler, "HALF_LIFE", 1.0)
    sampler = make("learnability")
    assert sampler.rates().tolist() == [0.5] * 4
    sampler.record([Outcome("", "t0", success) for success in (True, True, True, False)])
    group = (3 + 1) / (4 + 2)
    assert sampler.rates() == pytest.approx([(3 + 4 * group) / (4 + 4), group, 0.5, 0.5])
    sampler.record([])  # a rollout later, all outcomes count half
    group = (1.5 + 1) / (2 + 2)
    assert sampler.rates() == pytest.approx([(1.5 + 4 * group) / (2 + 4), group, 0.5, 0.5])


def test_draws_follow_the_probabilities_of_the_formula() -> None:
    found: dict[str, list[float]] = {}
    for text in ("success:0.2-0.8", "learnability"):
        sampler = make(text)
        sampler.record([Outcome("", "t0", True)] * 40 + [Outcome("", "t2", False)] * 2)
        rates = sampler.rates()
        assert (rates > 0.8).tolist() == [True, True, False, False]
        weights = {"success:0.2-0.8": np.array([0.0, 0.0, rates[2] >= 0.2, 1.0]), "learnability": rates * (1 - rates)}
        expected = 0.9 * weights[text] / weights[text].sum() + 0.1 / 4
        found[text] = shares(sampler)
        assert found[text] == pytest.approx(expected, abs=0.03)
    assert min(found["success:0.2-0.8"]) > 0.01  # retired tasks come back


def test_without_a_task_in_the_range_draws_are_uniform() -> None:
    sampler = make("success:0.2-0.8")
    sampler.record([Outcome("", f"t{n}", False) for n in range(4) for _ in range(50)])
    assert sampler.metrics()["sampler/too_hard"] == 4
    assert shares(sampler) == pytest.approx([0.25] * 4, abs=0.03)


def test_a_batch_repeats_no_task_as_long_as_there_are_others() -> None:
    sampler = make("learnability")
    assert sorted(sampler.draw("") for _ in range(4)) == [0, 1, 2, 3]
    assert sampler.draw("") in range(4)
    sampler.record([], numbers=[0])
    assert len(sampler.state()["pending"]) == 4


def test_rows_of_one_task_share_its_rate_and_take_turns() -> None:
    sampler = make("learnability", [TaskKey("", "t", "g")] * 3)
    assert [sampler.draw("") for _ in range(4)] == [0, 1, 2, 0]


def test_a_draw_stays_in_its_environment() -> None:
    keys = [TaskKey("a", "t", "g"), TaskKey("b", "t", "g"), TaskKey("b", "u", "g")]
    sampler = make("learnability", keys)
    sampler.record([Outcome("b", "t", True)] * 30)
    assert sampler.rates()[0] == 0.5  # the same names in another environment
    assert {sampler.draw("a") for _ in range(9)} == {0}
    assert {sampler.draw("b") for _ in range(9)} == {1, 2}


@pytest.mark.parametrize("text", ["success:0.2-0.8", "learnability"])
def test_a_restored_sampler_continues_exactly(text: str) -> None:
    def rollouts(sampler: TaskSampler, numbers: range) -> list[list[int]]:
        drawn = []
        for number in numbers:
            drawn.append([sampler.draw("") for _ in range(2)])
            sampler.record([Outcome("", f"t{row}", (row + number) % 3 == 0) for row in drawn[-1]])
        return drawn

    whole, first, second = make(text), make(text), make(text)
    expected = rollouts(whole, range(12))
    assert rollouts(first, range(5)) == expected[:5]
    second.load(json.loads(json.dumps(first.state()), object_pairs_hook=_numbers))
    assert rollouts(second, range(5, 12)) == expected[5:]
    assert second.state() == whole.state()
    assert rollouts(make(text, seed=1), range(12)) != expected


def _numbers(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """JSON has no numbers as keys."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("prioritised", "there is no sampler 'prioritised'; choose from uniform, success:LOW-HIGH, learnability"),
        ("success", "needs two success rates"),
        ("success:", "nothing follows the colon"),
        ("success:0.8-0.2", r"must rise and lie in \[0, 1\]"),
        ("success:0.2-1.5", r"must rise and lie in \[0, 1\]"),
        ("success:low-high", "needs two success rates"),
        ("learnability:2", "takes no argument"),
        ("uniform:1", "takes no argument"),
    ],
)
def test_a_malformed_sampler_is_an_error(text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=part):
        AgentConfig(str(tmp_path), sampler=text)


def test_a_dataset_without_tasks_is_an_error() -> None:
    data = Dataset.from_list([{"prompt": "go"}])
    assert make_task_sampler("uniform", data, seed=0) is None
    with pytest.raises(UsageError, match="no columns env, task and group"):
        make_task_sampler("learnability", data, seed=0)


def test_every_sampler_is_in_the_table() -> None:
    assert all(f"| `{sampler.form}` |" in sampler_table() for sampler in SAMPLERS.values())


@pytest.mark.train
def test_outcomes_of_failed_episodes_are_not_recorded(tokenizer: Any, tmp_path: Path) -> None:
    """And the metrics describe all tasks of the run."""
    broken = broken_craft(lambda number: number % 4 == 0)
    trainer = make_trainer(tmp_path, tokenizer, broken, sampler="success:0.2-0.8", max_steps=1, env_retries=0)
    trainer.train()
    sampler, usable = trainer.rollout.sampler, [t for t in played(tmp_path, 0) if t.usable]
    assert 0 < len(usable) < 8
    assert sum(sampler.state()["played"]) == len(usable)
    assert sum(sampler.state()["won"]) == sum(bool(t.success) for t in usable)
    log = trainer.state.log_history[0]
    assert sum(log[f"sampler/{pool}"] for pool in ("too_hard", "in_range", "too_easy")) == len(sampler.rates())
    assert log["sampler/unseen"] == len(sampler.rates()) - len({t.task.id for t in usable})
    assert log["sampler/mean_p"] == pytest.approx(sampler.rates().mean()) and 0 < log["sampler/drawn_p"] < 1


@pytest.mark.train
def test_dynamic_sampling_asks_the_sampler_for_new_tasks(tokenizer: Any, tmp_path: Path) -> None:
    more: dict[str, Any] = {"sampler": "learnability", "dynamic_sampling_retries": 1, "max_steps": 1}
    trainer = make_trainer(tmp_path, tokenizer, DullCraft, **more)
    trainer.train()
    assert len(played(tmp_path, 0)) == 16 == sum(trainer.rollout.sampler.state()["played"])
    assert trainer.rollout.sampler.state()["next"] == 4 and not trainer.rollout.sampler.state()["pending"]


@pytest.mark.rotating(always=1)
@pytest.mark.train
@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("success:0.2-0.8", {"tree": "2x2"}),
        ("learnability", {"process_reward": "regret", "turn_level_advantage": True}),
    ],
)
def test_a_resumed_run_with_a_sampler_equals_the_whole_run(
    sampler: str, options: dict[str, Any], tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """On two environments, and with a method that has no other test of its resume."""
    envs: dict[str, Any] = {ENV: ScoredCraft, "Second/Count-v0": CountEnv}
    made = {name: text_env(env()) for name, env in envs.items()}
    data = as_dataset(draw_tasks(made, dict.fromkeys(envs, 1.0), 8, enough=1, groups=[*DEPTH, "small"]))
    no_vine: dict[str, Any] = {"credit": "episode", "branches": None, "at": None}
    more = {"sampler": sampler, "max_steps": 6, "env": envs, "data": data, **no_vine, **options}
    first, second = tmp_path / "whole", tmp_path / "resumed"
    whole = test_resume.make(first, tokenizer, model_path, "grpo", save_strategy="steps", **more)
    whole.train()
    trainer = test_resume.make(second, tokenizer, model_path, "grpo", **more)
    trainer.train(resume_from_checkpoint=str(first / "checkpoint-3"))
    test_resume.assert_equal(test_resume.state_of(trainer), test_resume.state_of(whole))
    assert test_resume.episodes(second, 3) == test_resume.episodes(first, 3) != {}
    assert test_resume.logged(trainer, 3) == test_resume.logged(whole, 3) != []
    assert {outcome.env_id for step in range(0, 6, 2) for outcome in played(first, step)} == {"ScoredCraft", "CountEnv"}
    assert trainer.rollout.sampler.state() == whole.rollout.sampler.state()
    other = test_resume.make(tmp_path / "other", tokenizer, model_path, "grpo", **{**more, "sampler": "uniform"})
    with pytest.raises(UsageError, match=f"was made with sampler {sampler}, not uniform"):
        other.train(resume_from_checkpoint=str(first / "checkpoint-3"))


@pytest.mark.train
def test_asynchronous_training_samples_as_synchronous_training_does(
    tokenizer: Any, model_path: Path, tmp_path: Path
) -> None:
    """Without staleness, the same tasks; with it, a resumed run plays those of the whole run."""
    make = test_asynchronous.make
    more: dict[str, Any] = {"sampler": "learnability", "max_steps": 6}
    synchronous = make(tmp_path / "synchronous", tokenizer, model_path, "grpo", **more)
    synchronous.train()
    virtual = {"times": test_asynchronous.TIMES, "asynchronous": True, **more}
    exact = make(tmp_path / "exact", tokenizer, model_path, "grpo", max_staleness=0, **virtual)
    exact.train()
    assert test_asynchronous.losses(exact) == test_asynchronous.losses(synchronous) != []
    assert exact.rollout.sampler.state() == synchronous.rollout.sampler.state()

    saved = {"save_strategy": "steps", "save_steps": 1, "max_staleness": 2, **virtual}
    whole = make(tmp_path / "whole", tokenizer, model_path, "grpo", **saved)
    whole.train()
    resumed = make(tmp_path / "resumed", tokenizer, model_path, "grpo", **saved)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    test_resume.assert_equal(test_resume.state_of(resumed), test_resume.state_of(whole))
    assert resumed.rollout.sampler.state() == whole.rollout.sampler.state()


class _Ranks:
    """`gathered` for two processes whose calls are made one after the other."""

    def __init__(self, everywhere: list[str]) -> None:
        self._everywhere = everywhere

    def __call__(self, values: list[str]) -> list[str]:
        return self._everywhere


@pytest.mark.parametrize("size", [2, 4])
def test_processes_draw_the_same_groups_and_take_their_rows(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of four reach over the border between two processes of two rows."""
    prompts = [prompt_of(f"t{row}", row, "goal") for row in range(4)]
    monkeypatch.setattr(step_rollout, "gathered", _Ranks([""] * 4))
    rows: list[int] = []
    for rank in range(2):
        rollout: Any = object.__new__(StepRollout)
        rollout._sampler, rollout._num_generations = make("learnability", seed=3), size
        rollout._trainer = _trainer(rank)
        rows += rollout._sampled(prompts[2 * rank : 2 * rank + 2])
    groups = [rows[first : first + size] for first in range(0, 4, size)]
    assert all(len(set(group)) == 1 for group in groups) and len({group[0] for group in groups}) == len(groups)


def _trainer(rank: int) -> Any:
    return SimpleNamespace(accelerator=SimpleNamespace(process_index=rank))


def test_a_uniform_run_has_no_sampler(tokenizer: Any, tmp_path: Path) -> None:
    assert make_trainer(tmp_path, tokenizer, data=dataset(4)).rollout.sampler is None
