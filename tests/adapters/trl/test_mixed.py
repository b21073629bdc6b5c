"""Several environments in one run: shares, max turns, metrics, and errors."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from transformers import TrainerCallback

from agentgym_envs.cli import main
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import draw_tasks
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.cli.arguments import EnvArguments
from agentgym_trl.cli.environments import environments, only_environment
from agentgym_trl.dataset import as_dataset, make_dataset
from agentgym_trl.rollout import make_rollout_func
from tests.adapters.trl.small import DEPTH, ENV, ScoredCraft, craft, make_trainer, metrics, played
from tests.graded import KWARGS
from tests.toy import CountEnv

TOY = "Second/Count-v0"


@pytest.fixture(autouse=True)
def toy_id() -> Iterator[None]:
    """A second id, since a run takes ids."""
    gym.register(TOY, entry_point=CountEnv)
    yield
    del gym.registry[TOY]


@pytest.fixture
def train(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    """Run `agentgym train` on both environments; return the exit code and its stderr."""
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: object, env: tuple[str, ...] = (ENV + ":2", TOY), kwargs: Any = None) -> tuple[int, str]:
        arguments = {ENV: KWARGS} if kwargs is None else kwargs
        fixed = ["--env", *env, "--env-kwargs", json.dumps(arguments), "--groups", *DEPTH, "--model", model_path]
        small = ["--max_steps", 2, "--per_device_train_batch_size", 12, "--num_generations", 2, "--use_cpu"]
        small += ["--max_completion_length", 200, "--max-turn-tokens", 8, "--report_to", "none"]
        code = main([str(word) for word in ["train", "rloo", *fixed, *small, "--out", tmp_path / "out", *words]])
        return code, capfd.readouterr().err

    return call


def by_env(trajectories: list[Trajectory]) -> dict[str, list[Trajectory]]:
    return {env: [t for t in trajectories if t.env_id == env] for env in sorted({t.env_id for t in trajectories})}


@pytest.mark.train
def test_the_command_trains_on_two_environments(train: Any, tmp_path: Path) -> None:
    """Two epochs of one step; in each, two thirds of the groups are of one environment, with its own max turns."""
    code, err = train("--max-turns", "TextCraft=1,3;Count=2,4", "--every", "1", "--tasks", "6")
    assert code == 0, err
    out = tmp_path / "out"
    for step, limits in enumerate([{ENV: 1, TOY: 2}, {ENV: 3, TOY: 4}]):
        found = by_env(played(out, step))
        assert {env: len(own) for env, own in found.items()} == {ENV: 8, TOY: 4}
        for env, own in found.items():
            assert {t.meta["max_turns"] for t in own} == {limits[env]}
            assert {len(t.turns) for t in own} == {limits[env]}  # an untrained model solves nothing
            assert set(Counter((t.task.id, t.seed) for t in own).values()) == {2}
        assert {t.task.group for t in found[ENV]} == {"depth-1"}
        assert all(t.env_kwargs == (KWARGS if t.env_id == ENV else {}) for own in found.values() for t in own)
    rows = [row for row in metrics(out) if "loss" in row]
    for row, craft_turns, toy_turns in zip(rows, (1, 3), (2, 4), strict=True):
        assert (row["rollout/TextCraft/turns"], row["rollout/TextCraft/max_turns"]) == (craft_turns, craft_turns)
        assert (row["rollout/Count/turns"], row["rollout/Count/max_turns"]) == (toy_turns, toy_turns)
        assert row["rollout/turns"] == pytest.approx((2 * craft_turns + toy_turns) / 3)
        assert row["rollout/Count/success"] == row["rollout/Count/score"] == 0
        assert row["rollout/Count/invalid_actions"] == 1
    assert json.loads((out / "run.json").read_text())["env"] == [ENV + ":2", TOY]

    code, err = train("--resume", env=(TOY, ENV))
    assert code == 2 and "holds another run: its env is" in err


@pytest.mark.train
def test_a_single_environment_accepts_a_weight_and_keyed_arguments(train: Any, tmp_path: Path) -> None:
    code, err = train("--max-turns", "TextCraft=1", "--max_steps", "1", env=(ENV + ":3",))
    assert code == 0, err
    assert {(t.env_id, t.meta["max_turns"]) for t in played(tmp_path / "out", 0)} == {(ENV, 1)}
    assert not [key for key in metrics(tmp_path / "out")[0] if key.startswith("rollout/TextCraft/")]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "words, options, part",
    [
        (["--max-turns", "TextCraft=10"], {}, "must name them all: TextCraft, Count; got TextCraft"),
        (["--max-turns", "TextCraft=10;Maze=3"], {}, "must name them all: TextCraft, Count; got TextCraft, Maze"),
        (["--max-turns", "TextCraft=10;Count"], {}, "max turns name each environment once"),
        ([], {"env": (ENV, TOY, ENV + ":2")}, f"{ENV} is named twice"),
        ([], {"env": (ENV, TOY + ":0")}, f"the weight of an environment is a number above 0, as in {ENV}:2; got"),
        ([], {"env": (ENV, "Toy/Maze-v0")}, "there is no environment 'Toy/Maze-v0'"),
        ([], {"kwargs": KWARGS}, "with several environments --env-kwargs is keyed by id"),
        ([], {"kwargs": {ENV: KWARGS, "Toy/Maze-v0": {}}}, "wrong: Toy/Maze-v0"),
        ([], {"kwargs": {ENV: "fictional"}}, f"must hold an object for each; wrong: {ENV}"),
        ([], {"kwargs": {TOY: {"speed": 3}}}, f"{TOY} does not take these arguments"),
        (["--groups", "depth-1", "tiny"], {}, "no environment of this run has the groups tiny"),
        (["--tasks", "1"], {}, "tasks to train on must be at least 2, since each of 2 environments gives one; got 1"),
    ],
)
def test_errors_print_one_line(words: list[str], options: Any, part: str, train: Any, tmp_path: Path) -> None:
    code, err = train(*words, **options)
    assert (code, len(err.splitlines())) == (2, 1), err
    assert part in err
    assert not (tmp_path / "out").exists()


def test_environment_arguments_are_parsed() -> None:
    found = environments(EnvArguments(env=[ENV + ":0.5", TOY], env_kwargs=json.dumps({ENV: KWARGS})))
    assert [(e.id, e.weight, e.kwargs) for e in found] == [(ENV, 0.5, KWARGS), (TOY, 1.0, {})]
    assert text_env(found[1].make()).spec.id == TOY  # type: ignore[union-attr]
    with pytest.raises(UsageError, match=f"takes one environment, got {ENV}, {TOY}"):
        only_environment(EnvArguments(env=[ENV, TOY]))


def makers() -> dict[str, Any]:
    return {ENV: craft, TOY: lambda: gym.make(TOY)}


def rows(total: int = 12, *, craft_weight: float = 1.0) -> Any:
    envs = {name: text_env(make()) for name, make in makers().items()}
    return as_dataset(draw_tasks(envs, {ENV: craft_weight, TOY: 1.0}, total, enough=1, groups=[*DEPTH, "small"]))


def make_mixed(out: Path, tokenizer: Any, data: Any, env: Any = None, model: Any = None, **more: Any) -> Any:
    options = {"per_device_train_batch_size": 8, "num_generations": 2, **more}
    return make_trainer(out, tokenizer, env or makers(), data=data, model=model, **options)


@pytest.mark.train
def test_an_epoch_keeps_the_shares_and_each_step_is_drawn(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_mixed(tmp_path, tokenizer, rows(12, craft_weight=3), max_steps=3)
    trainer.train()
    episodes = [t for step in range(3) for t in played(tmp_path, step)]
    assert Counter(t.env_id for t in episodes) == {ENV: 18, TOY: 6}
    logs = [log for log in trainer.state.log_history if "loss" in log]
    for step, log in enumerate(logs):
        present = {t.env_id for t in played(tmp_path, step)}
        assert {name for name in (ENV, TOY) if f"rollout/{name[name.index('/') + 1 : -3]}/score" in log} == present


@pytest.mark.train
def test_a_step_with_one_environment_has_its_metrics(tokenizer: Any, tmp_path: Path) -> None:
    """Otherwise the curve of an environment would have gaps."""
    data = make_dataset(CountEnv(), 8, name=TOY)
    trainer = make_mixed(tmp_path, tokenizer, data, max_steps=1)
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["rollout/Count/score"] == log["rollout/score"] and "rollout/TextCraft/score" not in log


@pytest.mark.train
def test_replacing_groups_may_be_of_another_environment(tokenizer: Any, tmp_path: Path) -> None:
    """The untrained model scores 0 when counting: those groups are replaced until the others remain."""
    env = {ENV: ScoredCraft, TOY: CountEnv}
    data = rows(40, craft_weight=3)
    noted: dict[str, list[Any]] = {}

    def note(completions: Any, **columns: Any) -> list[None]:
        noted.update(columns)
        return [None] * len(completions)

    sizes: dict[str, Any] = {"num_generations": 4, "per_device_train_batch_size": 32, "dynamic_sampling_retries": 6}
    trainer = make_trainer(tmp_path, tokenizer, env, data=data, extra={"reward_funcs": note}, **sizes, max_steps=1)
    trainer.train()
    first = {t.env_id for t in played(tmp_path, 0)}
    assert first == {"ScoredCraft", "CountEnv"}
    assert {e.trajectory.env_id for e in trainer.rollout.last} == {"ScoredCraft"}
    assert noted["env"] == [ENV] * 32 and set(noted["group"]) == {"depth-1"}
    log = trainer.state.log_history[0]
    assert log["rollout/zero_variance_groups"] > 0 and "rollout/Count/score" not in log


@pytest.mark.train
def test_a_row_of_an_unknown_environment_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    trainer = make_mixed(tmp_path, tokenizer, make_dataset(CountEnv(), 8, name="Toy/Maze-v0"), max_steps=1)
    with pytest.raises(UsageError, match=f"needs the environment 'Toy/Maze-v0'; known here: {ENV}, {TOY}"):
        trainer.train()


def test_each_environment_follows_its_own_schedule(tokenizer: Any) -> None:
    def rollout(schedule: Any, env: Any = None) -> Any:
        return make_rollout_func(env or makers(), tokenizer, schedule=schedule, eval_max_turns=None)

    short = rollout({"TextCraft": lambda step: step + 1, "Count": lambda step: 7})
    by_id = rollout({ENV: lambda step: step + 1, TOY: lambda step: 7})
    for step, found in itertools.product((0, 5), (short, by_id)):
        assert (found.max_turns(ENV, step, True), found.max_turns(TOY, step, True)) == (step + 1, 7)
        assert rollout(lambda s: s + 2).max_turns(TOY, step, True) == step + 2
    with pytest.raises(UsageError, match="must name them all: TextCraft, Count; got Count"):
        rollout({"Count": lambda step: 7})
    with pytest.raises(UsageError, match="must name them all: there is only one; got Count"):
        rollout({"Count": lambda step: 7}, craft)


@pytest.mark.train
def test_metrics_reach_every_reporter(tokenizer: Any, model_path: Path, tmp_path: Path) -> None:
    """Tensorboard's files, and callbacks (such as those of wandb and trackio), get the metrics of each step."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    logged: list[dict[str, Any]] = []

    class LogRecorder(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            logged.append({"step": state.global_step, **logs})

    options = {"report_to": ["tensorboard"], "beta": 0.01, "per_device_train_batch_size": 12}
    trainer = make_mixed(tmp_path, tokenizer, rows(12), model=str(model_path), **options)
    trainer.add_callback(LogRecorder())
    trainer.train()
    steps = [log for log in logged if "loss" in log]
    assert [log["step"] for log in steps] == [1, 2]
    events = next(path.parent for path in tmp_path.rglob("events.out.tfevents.*"))
    board = EventAccumulator(str(events))
    board.Reload()
    names = ["reward", "entropy", "kl", "clip_ratio/region_mean", "time/train", "time/generate", "time/env"]
    names += [f"rollout/{name}" for name in ("success", "turns", "max_turns", "invalid_actions", "tokens")]
    names += ["rollout/stop/turn_limit", "rollout/TextCraft/turns", "rollout/Count/turns"]
    for name in names:
        written = [(event.step, event.value) for event in board.Scalars(f"train/{name}")]
        assert written == [(log["step"], pytest.approx(float(log[name]), rel=1e-5)) for log in steps], name


@pytest.mark.train
def test_metrics_equal_those_of_the_recorded_episodes(tokenizer: Any, tmp_path: Path) -> None:
    """Every metric of a step, recomputed from the trajectories on disk."""
    trainer = make_mixed(tmp_path, tokenizer, rows(12), env={ENV: ScoredCraft, TOY: CountEnv}, max_steps=2)
    trainer.train()
    for step, log in enumerate(log for log in trainer.state.log_history if "loss" in log):
        found = list(read_trajectories(tmp_path / "trajectories" / f"step-{step}.jsonl"))
        turns = [turn for t in found for turn in t.turns]
        assert log["reward"] == pytest.approx(sum(t.score for t in found) / 8, abs=1e-6)
        assert log["rollout/score"] == pytest.approx(log["reward"], abs=1e-6)
        assert log["rollout/turns"] == len(turns) / 8
        assert log["rollout/invalid_actions"] == pytest.approx(
            sum(turn.info["invalid_action"] is not None for turn in turns) / len(turns)
        )
        assert log["rollout/truncated_answers"] == pytest.approx(
            sum(t.info["finish"] == "length" for t in turns) / len(turns)
        )
        stops = Counter(t.stop_reason for t in found)
        assert all(log[f"rollout/stop/{reason}"] == count / 8 for reason, count in stops.items())
        groups: dict[Any, set[float]] = {}
        for t in found:
            groups.setdefault((t.env_id, t.task.id, t.seed), set()).add(t.score)
        assert len(groups) == 4
        assert log["rollout/zero_variance_groups"] == sum(len(scores) == 1 for scores in groups.values()) / 4
        sampled = sum(sum(e.assistant_mask) for e in trainer.rollout.last)
        assert step == 0 or log["rollout/tokens"] == sampled
