"""AgentEvol: its kept episodes, data and base model, and the resume of a stopped run."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import TrainerCallback
from trl import SFTConfig

from agentgym_envs.cli import main
from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import Limits
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn, read_trajectories
from agentgym_trl.agentevol import EvolSettings, _Run, agentevol, keep, training_set
from agentgym_trl.engines import HFEngine
from agentgym_trl.exploration import PlaySettings, derive_seed, episode_key, evaluator, exploration_specs, explore
from agentgym_trl.models import load_engine, load_model, load_tokenizer, make_codec
from agentgym_trl.rounds import Round
from agentgym_trl.sft import make_sft_trainer, sft_dataset
from tests.adapters.trl.small import DEPTH, ENV, ScoredCraft, broken_craft, craft, demonstrations
from tests.adapters.trl.test_sft import sft_config
from tests.episodes import without_times
from tests.graded import KWARGS

train = pytest.mark.train
DEMOS = demonstrations()[:6]
PLAY = PlaySettings(Limits(max_turns=2, max_tokens=120, max_turn_tokens=6), batch=6)
SETTINGS = EvolSettings(rounds=2, tasks=6, episodes_per_task=2, threshold=0.2, groups=DEPTH, play=PLAY, seed=3)
EPISODES = 12


def config(out: Path, **more: Any) -> SFTConfig:
    return sft_config(out, **{"max_steps": 3, "per_device_train_batch_size": 4, "seed": 5, **more})


def evolve(out: Path, model: Path, settings: EvolSettings = SETTINGS, **more: Any) -> list[Round]:
    """A run of two rounds, in an environment that pays for the spelling of answers."""
    arguments: dict[str, Any] = {"demonstrations": DEMOS, "make_env": ScoredCraft, "args": config(out), **more}
    codec = make_codec(load_tokenizer(str(model)))
    return agentevol(model, codec=codec, settings=settings, **arguments)


@pytest.fixture(scope="module")
def run(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Round]:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("evol") / "run"
    return evolve(out, model_path, evaluate=lambda model: {"files": len(list(model.iterdir()))})


def weights(model: Path) -> dict[str, Any]:
    found: dict[str, Any] = load_model(str(model)).state_dict()
    return found


def equal_weights(one: Path, other: Path) -> bool:
    mine, theirs = weights(one), weights(other)
    return all(torch.equal(mine[name], theirs[name]) for name in mine)


def lines(trajectories: Sequence[Trajectory]) -> list[str]:
    return without_times(trajectory.to_json() for trajectory in trajectories)


def copy_of(run: Sequence[Round], out: Path) -> Path:
    shutil.copytree(run[0].directory.parent, out)
    return out


def forget(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@train
def test_every_round_is_saved_to_disk(run: list[Round]) -> None:
    out = run[0].directory.parent
    assert lines(list(read_trajectories(out / "demos.jsonl"))) == lines(DEMOS)
    assert not (run[0].directory / "explored.jsonl").exists()
    for number, found in enumerate(run):
        assert found.directory == out / f"round-{number}" and found.number == number
        assert {"config.json", "model.safetensors", "tokenizer.json", "metrics.jsonl"} <= {
            path.name for path in found.model.iterdir()
        }
        assert found.metrics["eval/files"] > 3 and found.metrics["steps"] == 3
        assert {episode_key(t) for t in found.explored()} == {(i, s) for i in range(6 * (number > 0)) for s in range(2)}
        assert len(found.explored()) == found.metrics["explored"] == EPISODES * (number > 0)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"round": found.number, **found.metrics} for found in run]


@train
def test_it_trains_on_tasks_without_demonstrations(run: list[Round]) -> None:
    """This distinguishes AgentEvol from behaviour cloning."""
    shown = {trajectory.task.id for trajectory in DEMOS}
    assert run[0].metrics["trained_on"] == len(DEMOS) and run[0].metrics["new_tasks"] == 0
    kept: list[Trajectory] = []
    for found in run[1:]:
        assert 0 < found.metrics["kept"] < EPISODES  # both sides of the threshold occur
        assert {episode_key(t) for t in found.kept()} == {episode_key(t) for t in found.explored() if t.score >= 0.2}
        kept += found.kept()
        data = training_set(DEMOS, kept)
        assert found.metrics["trained_on"] == len(data) > len(DEMOS)
        assert found.metrics["new_tasks"] == len({t.task.id for t in data} - shown) > 0


@train
def test_every_round_trains_the_base_model(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    """Its weights equal the base model trained on that data, bit for bit, whatever the previous round learned."""
    data = training_set(DEMOS, run[1].kept() + run[2].kept())
    codec = make_codec(load_tokenizer(str(model_path)))
    for name, start in (("base", model_path), ("last", run[1].model)):
        trainer = make_sft_trainer(str(start), data, codec, config(tmp_path / name))
        trainer.train()
        trainer.save_model()
    assert equal_weights(run[2].model, tmp_path / "base")
    assert not equal_weights(run[2].model, tmp_path / "last")
    assert not equal_weights(run[2].model, run[1].model)


@train
def test_a_round_explores_with_the_previous_rounds_model(model_path: Path, tmp_path: Path) -> None:
    models = []
    codec = make_codec(load_tokenizer(str(model_path)))

    def engine(model: Path) -> HFEngine:
        models.append(model)
        return HFEngine(load_model(str(model)), codec.tokenizer)

    last = replace(SETTINGS, keep="last")
    run = evolve(tmp_path / "out", model_path, last, make_engine=engine, args=config(tmp_path / "out", max_steps=1))
    assert models == [run[0].model, run[1].model]
    assert run[2].metrics["trained_on"] == len(training_set(DEMOS, run[2].kept()))


@train
def test_resuming_a_finished_run_only_reads_it(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("round-*/**/*")}
    assert [r.metrics for r in evolve(out, model_path)] == [r.metrics for r in run]
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("round-*/**/*")}


@pytest.mark.rotating(always=1)
@train
@pytest.mark.parametrize("ended", [PLAY.batch, 4], ids=["between batches", "inside a batch"])
def test_a_run_killed_during_exploration_resumes(
    ended: int, run: list[Round], model_path: Path, tmp_path: Path
) -> None:
    out = copy_of(run, tmp_path / "out") / "round-2"
    forget(out, "round.json", "training.json", "kept.jsonl", "model")
    path = out / "explored.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:ended]) + whole[ended][:50])
    again = evolve(out.parent, model_path)[2]
    played = path.read_bytes().splitlines(keepends=True)
    assert played[:ended] == whole[:ended] and len(played) == EPISODES
    assert {episode_key(t) for t in again.explored()} == {episode_key(t) for t in run[2].explored()}
    if ended == PLAY.batch:
        assert sorted(without_times(played)) == sorted(without_times(whole))
        assert lines(again.kept()) == lines(run[2].kept())
        assert equal_weights(again.model, run[2].model)


class StopAt(TrainerCallback):  # type: ignore[misc]
    """Ctrl-C in the middle of training."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self._step:
            signal.raise_signal(signal.SIGINT)


@train
def test_a_run_interrupted_during_training_resumes(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out") / "round-2"
    forget(out, "round.json", "training.json", "model")
    with pytest.raises(KeyboardInterrupt):
        evolve(out.parent, model_path, callbacks=[StopAt(1)])
    assert (out / "model" / "checkpoint-2").is_dir() and not (out / "training.json").exists()
    again = evolve(out.parent, model_path)[2]
    assert again.metrics["steps"] == 3 and again.metrics["loss"] == pytest.approx(run[2].metrics["loss"])
    assert equal_weights(again.model, run[2].model)


@train
def test_a_finished_run_may_add_rounds(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out")
    more = evolve(out, model_path, replace(SETTINGS, rounds=3))
    assert [r.metrics for r in more[:3]] == [r.metrics for r in run]
    tasks = [{t.task.id for t in found.explored()} for found in more[1:]]
    assert len(tasks) == 3 and not set.intersection(*tasks)  # fictional worlds are endless: each round gets new ones


@train
def test_failed_episodes_are_not_kept(model_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = replace(SETTINGS, rounds=1, threshold=0.01)
    with pytest.raises(
        EnvError, match=r"every episode of round 1 failed, the first with: EnvError: the crafting table"
    ):
        evolve(out, model_path, one, make_env=broken_craft(lambda number: True))
    some = evolve(out, model_path, one, make_env=broken_craft(lambda number: number % 3 == 0))[1]
    assert some.metrics["explored"] == EPISODES and some.metrics["failed"] == 4
    assert all(trajectory.usable for trajectory in some.kept())


@train
def test_over_long_episodes_are_not_kept(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out")
    forget(out / "round-1", "round.json", "training.json", "model", "kept.jsonl")
    codec = make_codec(load_tokenizer(str(model_path)))
    lengths = {episode_key(t): len(row) for t in run[1].kept() for row in sft_dataset([t], codec)["input_ids"]}
    limit = max(*map(len, sft_dataset(DEMOS, codec)["input_ids"]), sorted(lengths.values())[len(lengths) // 2])
    again = evolve(out, model_path, replace(SETTINGS, rounds=1), args=config(out, max_length=limit))[1]
    assert {episode_key(t) for t in again.kept()} == {key for key, length in lengths.items() if length <= limit}


@pytest.mark.rotating
@train
def test_a_round_without_kept_episodes_continues(model_path: Path, tmp_path: Path) -> None:
    """No episode succeeds: the data stays the demonstrations, and equal data gives an equal model."""
    run = evolve(tmp_path / "out", model_path, replace(SETTINGS, rounds=1, threshold=None))
    assert run[1].metrics["kept"] == 0 and run[1].metrics["trained_on"] == len(DEMOS)
    assert equal_weights(run[0].model, run[1].model)


@train
def test_a_directory_with_other_demonstrations_is_refused(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out")
    with pytest.raises(UsageError, match="holds other demonstrations"):
        evolve(out, model_path, demonstrations=DEMOS[1:])
    with pytest.raises(UsageError, match="no usable demonstration to start from"):
        evolve(tmp_path / "x", model_path, demonstrations=[])
    assert not (tmp_path / "x").exists()


@train
def test_an_evaluation_is_repeatable(run: list[Round]) -> None:
    tasks = text_env(ScoredCraft()).tasks.sample(5, split="validation", groups=DEPTH, seed=1)
    measure = evaluator(tasks, ScoredCraft, load_engine, PLAY, episodes_per_task=2)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = measure(run[2].model)
    assert torch.equal(state, torch.get_rng_state())  # a training in progress is not disturbed
    torch.manual_seed(1)
    assert measure(run[2].model) == first and first != measure(run[0].model)
    assert first["success"] == 0 and 0 < first["score"] < 1 and 1 <= first["turns"] <= 2


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=4), st.integers(0, 2**40))
def test_seeds_are_pure_and_distinct(numbers: list[int], other: int) -> None:
    assert 0 <= derive_seed(*numbers) < 2**31
    assert derive_seed(*numbers) == derive_seed(*numbers)
    if other != numbers[0]:
        assert derive_seed(other, *numbers[1:]) != derive_seed(*numbers)


def test_episode_seeds_follow_from_seed_round_and_index() -> None:
    tasks = text_env(craft()).tasks.sample(4, groups=DEPTH)
    specs = exploration_specs(tasks, 3, seed=1, number=2)
    assert [spec.task for spec in specs] == [task.id for task in tasks for _ in range(3)]
    assert len({(spec.task, spec.seed) for spec in specs}) == 4
    assert specs[:6] == exploration_specs(tasks[:2], 3, seed=1, number=2)
    assert not {s.seed for s in specs} & {s.seed for s in exploration_specs(tasks, 3, seed=1, number=3)}
    assert not {s.seed for s in specs} & {s.seed for s in exploration_specs(tasks, 3, seed=2, number=2)}


def test_every_round_samples_with_its_own_seed(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def explored(*_: Any, seed: int, **__: Any) -> list[Trajectory]:
        seeds.append(seed)
        return list(DEMOS)

    monkeypatch.setattr("agentgym_trl.rounds.explore", explored)
    codec = make_codec(tokenizer)
    run = _Run("unused", DEMOS, ScoredCraft, codec, config(tmp_path), SETTINGS, None, None, None, {})
    for number in (1, 2, 1):
        run.explore(tmp_path, number, "unused")
    assert seeds[0] == seeds[2] != seeds[1]


def test_no_engine_is_made_if_all_episodes_are_played(tmp_path: Path, tokenizer: Any) -> None:
    meta = {"index": 0, "sample": 0}
    shown = replace(DEMOS[0], meta=meta)
    with TrajectoryWriter(tmp_path / "explored.jsonl") as writer:
        writer.write(shown)
    specs = exploration_specs([shown.task], 1, seed=0, number=1)
    found = explore(tmp_path / "explored.jsonl", specs, craft, lambda: pytest.fail("made"), make_codec(tokenizer), PLAY)
    assert lines(found) == lines([shown])


def record(task: int, seed: int, actions: tuple[str, ...], score: float = 1.0, stop: str = "success") -> Trajectory:
    turns = tuple(Turn("look", action, 0.0) for action in actions)
    found = Task(f"t/{task}", "train", "g", "goal")
    return Trajectory("E-v0", found, seed, "", turns, "done", score, score == 1.0, stop)


RECORDS = st.lists(
    st.builds(
        record,
        st.integers(0, 3),
        st.integers(0, 1),
        st.lists(st.sampled_from("ab"), max_size=3).map(tuple),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from(["success", "turn_limit", "env_error"]),
    ),
    max_size=20,
)


def identity(trajectory: Trajectory) -> tuple[str, int, tuple[str, ...]]:
    return trajectory.task.id, trajectory.seed, tuple(trajectory.actions)


@given(RECORDS, RECORDS, st.none() | st.integers(1, 3))
@settings(deadline=None)
def test_a_round_trains_on_demonstrations_and_kept_episodes(
    shown: list[Trajectory], kept: list[Trajectory], most: int | None
) -> None:
    data = training_set(shown, kept, most)
    names = [identity(trajectory) for trajectory in data]
    assert len(set(names)) == len(names)
    first = {identity(t) for t in shown if t.usable}
    assert set(names[: len(first)]) == first  # all demonstrations, and they come first
    rest = data[len(first) :]
    new = {identity(t) for t in kept if t.usable} - first
    assert {identity(t) for t in rest} <= new
    for task in {name[0] for name in new}:
        lengths = sorted(len(name[2]) for name in new if name[0] == task)
        taken = sorted(len(t.turns) for t in rest if t.task.id == task)
        assert taken == lengths[:most]
    assert training_set(shown, [*kept, *kept], most) == data


@given(RECORDS, st.none() | st.sampled_from([0.1, 0.5, 1.0]))
def test_keep_selects_usable_episodes_by_success_or_score(explored: list[Trajectory], threshold: float | None) -> None:
    wanted = [t for t in explored if t.usable and (t.success if threshold is None else t.score >= threshold)]
    assert keep(explored, threshold) == wanted


@pytest.mark.parametrize(
    "more, part",
    [
        ({"rounds": -1}, "rounds must be at least 0"),
        ({"episodes_per_task": 0}, "episodes_per_task must be at least 1"),
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"max_per_task": 0}, "max_per_task must be at least 1"),
        ({"threshold": 0.0}, "threshold must be above 0"),
        ({"threshold": 90}, "threshold must be above 0 and at most 1"),
        ({"keep": "some"}, "keep must be 'all' or 'last'"),
        ({"play": PlaySettings(temperature=0.0)}, "needs a temperature above 0"),
    ],
)
def test_invalid_settings_are_refused(more: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        EvolSettings(**more)


@pytest.fixture
def command(model_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> Any:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "160")
    fixed = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH, "--tasks", "4"]
    fixed += ["--max_steps", "1", "--use_cpu", "--report_to", "none", "--save_strategy", "no"]
    fixed += ["--explore-tasks", "2", "--episodes-per-task", "2", "--max-turns", "2", "--max-turn-tokens", "6"]
    fixed += ["--model", str(model_path), "--out", str(tmp_path / "out")]

    def call(*words: object) -> tuple[int, str]:
        code = main(["train", "agentevol", *fixed, *map(str, words)])
        return code, capfd.readouterr().err

    return call


@train
def test_the_command_runs_and_resumes(command: Any, tmp_path: Path) -> None:
    code, err = command("--rounds", 1, "--eval-tasks", 2)
    assert code == 0, err
    assert "Done:" in err and "eval/success" in err and "without demo" in err
    assert json.loads((tmp_path / "out" / "run.json").read_text())["algorithm"] == "agentevol"
    code, err = command("--rounds", 2, "--eval-tasks", 2)
    assert code == 2 and "--resume" in err
    code, err = command("--rounds", 2, "--eval-tasks", 2, "--resume")
    assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [0, 1, 2] and all("eval/success" in row for row in rows)
    code, err = command("--episodes-per-task", 3, "--eval-tasks", 2, "--resume")
    assert code == 2 and "its episodes_per_task is 2, not 3" in err


@pytest.mark.rotating
@train
def test_a_lora_adapter_explores_merged(command: Any, tmp_path: Path, model_path: Path) -> None:
    """A round's model is saved with its adapter merged, so it can explore and differs from the base model."""
    code, err = command("--rounds", 1, "--use_peft", "--learning_rate", "1e-2")
    assert code == 0, err
    model = tmp_path / "out" / "round-1" / "model"
    assert (model / "adapter" / "adapter_config.json").exists() and not (model / "adapter_config.json").exists()
    assert not equal_weights(model, model_path)
    code, err = command("--out", tmp_path / "x", "--use_peft", "--lora_target_modules", "nothing")
    assert code == 2 and "nothing" in err and "Traceback" not in err, err


@pytest.mark.rotating(always=1)
@train
@pytest.mark.parametrize(
    "where",
    [
        (HFEngine, "generate_batch"),
        (TextEnv, "step"),
    ],
    ids=["generating", "playing"],
)
def test_ctrl_c_stops_the_command(where: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name = where
    whole = getattr(owner, name)

    def interrupted(*words: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return whole(*words)

    demos = tmp_path / "demos.jsonl"
    with TrajectoryWriter(demos) as writer:
        for trajectory in DEMOS:
            writer.write(trajectory)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        code, err = command("--rounds", 1, "--demos", demos)
    assert code == 130 and "--resume" in err and "Traceback" not in err, err
    assert (tmp_path / "out" / "round-0" / "round.json").exists()
    code, err = command("--rounds", 1, "--demos", demos, "--resume")
    assert code == 0, err


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "words, part",
    [
        (["--max-turns", "0"], "--max-turns must be at least 1"),
        (["--threshold", "2"], "threshold must be above 0"),
        (["--rounds", "-1"], "rounds must be at least 0"),
        (["--demos", "none.jsonl"], "none.jsonl"),
        (["--keep", "some"], "keep"),
        (["--explore-tasks", "0"], "tasks to explore (--explore-tasks)"),  # all of an endless set
        (["--env-kwargs", "{}", "--explore-tasks", "100000"], "100000 tasks were asked for"),
    ],
)
def test_invalid_commands_are_refused(words: list[str], part: str, command: Any, tmp_path: Path) -> None:
    code, err = command(*words)
    shown = [line for line in err.splitlines() if line.strip()]
    assert code == 2 and len(shown) == 1 and part in shown[0], err
    assert not (tmp_path / "out").exists()


def test_conversations_are_refused(command: Any, tmp_path: Path) -> None:
    messages = [{"from": "human", "loss": None, "value": "Go."}, {"from": "gpt", "loss": True, "value": "I go."}]
    (tmp_path / "demos.json").write_text(json.dumps([{"item_id": "textcraft_0", "conversations": messages}]))
    code, err = command("--demos", tmp_path / "demos.json")
    assert code == 2 and "agentevol needs --demos with trajectories" in err
