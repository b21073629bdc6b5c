"""DAgger: its mixture, labels and aggregate, and the resume of a stopped run."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset

from agentgym_envs.cli import main
from agentgym_envs.core import Solution, TextEnv
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import Limits, OracleLabel
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from agentgym_trl.cli.dagger import DaggerArguments
from agentgym_trl.dagger import DaggerSettings, OracleShare, dagger
from agentgym_trl.engines import HFEngine
from agentgym_trl.exploration import PlaySettings, episode_key
from agentgym_trl.imitation import ImitationRows
from agentgym_trl.models import load_model, load_tokenizer, make_codec
from agentgym_trl.rounds import Round
from agentgym_trl.sft import make_row_trainer, sft_dataset
from tests.adapters.trl.small import DEPTH, ENV, ScoredCraft, broken_craft, craft, demonstrations
from tests.adapters.trl.test_agentevol import StopAt, config, copy_of, equal_weights, forget, lines
from tests.episodes import without_times
from tests.graded import KWARGS

train = pytest.mark.train
PLAY = PlaySettings(Limits(max_turns=3, max_tokens=160, max_turn_tokens=12), batch=4)
SETTINGS = DaggerSettings(
    rounds=2, tasks=4, episodes_per_task=2, oracle_share=OracleShare((0.5, 0.0)), groups=DEPTH, play=PLAY, seed=3
)
EPISODES = 8


def learn(out: Path, model: Path, settings: DaggerSettings = SETTINGS, **more: Any) -> list[Round]:
    arguments: dict[str, Any] = {"demonstrations": [], "make_env": craft, "args": config(out), **more}
    return dagger(model, codec=make_codec(load_tokenizer(str(model))), settings=settings, **arguments)


@pytest.fixture(scope="module")
def run(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Round]:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("dagger") / "run"
    return learn(out, model_path, evaluate=lambda model: {"files": len(list(model.iterdir()))})


def labels(trajectories: list[Trajectory]) -> list[OracleLabel | None]:
    return [OracleLabel.of(turn) for trajectory in trajectories for turn in trajectory.turns]


def without_seconds(found: Round) -> dict[str, float]:
    return {name: value for name, value in found.metrics.items() if name != "oracle_seconds"}


def rows_of(run: list[Round], model: Path) -> ImitationRows:
    data = ImitationRows()
    for trajectory in (t for found in run for t in sorted(found.explored(), key=episode_key)):
        data.add(trajectory, make_codec(load_tokenizer(str(model))), 1024)
    return data


@train
def test_every_round_is_saved_to_disk(run: list[Round]) -> None:
    out = run[0].directory.parent
    assert [found.directory for found in run] == [out / "round-1", out / "round-2"]
    for found in run:
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in found.model.iterdir()}
        assert {episode_key(t) for t in found.explored()} == {
            (task, sample) for task in range(4) for sample in range(2)
        }
        assert found.metrics["explored"] == EPISODES and found.metrics["eval/files"] > 3
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"round": found.number, **found.metrics} for found in run]


@train
def test_every_visited_state_has_the_oracles_label(run: list[Round]) -> None:
    for found in run:
        every = labels(found.explored())
        assert len(every) == found.metrics["states"] and None not in every
        assert found.metrics["labelled"] == sum(label is not None and label.answer is not None for label in every) > 0


@train
def test_the_oracle_plays_its_share_of_the_turns(run: list[Round]) -> None:
    shares = [found.metrics["oracle_turns"] for found in run]
    assert 0.2 < shares[0] < 0.8 and shares[1] == 0
    for found in run:
        played = [label.played for label in labels(found.explored()) if label]
        assert sum(played) / len(played) == pytest.approx(found.metrics["oracle_turns"])


@train
def test_the_base_model_imitates_the_labels_of_all_rounds(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    """Its weights equal the base model trained on these rows, bit for bit."""
    data = rows_of(run, model_path)
    assert run[1].metrics["trained_on"] == data.labels == sum(found.metrics["labelled"] for found in run)
    assert run[1].metrics["rows"] == len(data.rows) > run[0].metrics["rows"]
    codec = make_codec(load_tokenizer(str(model_path)))
    trainer = make_row_trainer(str(model_path), Dataset.from_list(data.rows), codec, config(tmp_path / "base"))
    trainer.train()
    trainer.save_model()
    assert equal_weights(run[1].model, tmp_path / "base")
    assert not equal_weights(run[1].model, run[0].model)


@train
def test_a_round_may_train_the_last_model_on_its_own_labels(model_path: Path, tmp_path: Path) -> None:
    models = []
    codec = make_codec(load_tokenizer(str(model_path)))

    def engine(model: Path) -> HFEngine:
        models.append(model)
        return HFEngine(load_model(str(model)), codec.tokenizer)

    own = replace(SETTINGS, keep="last", start="last")
    found = learn(tmp_path / "out", model_path, own, make_engine=engine)
    assert models == [model_path, found[0].model]
    assert found[1].metrics["trained_on"] == found[1].metrics["labelled"]
    data = rows_of(found[1:], model_path)
    trainer = make_row_trainer(str(found[0].model), Dataset.from_list(data.rows), codec, config(tmp_path / "last"))
    trainer.train()
    trainer.save_model()
    assert equal_weights(found[1].model, tmp_path / "last")


@pytest.mark.rotating
@train
def test_demonstrations_are_part_of_the_data(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    shown = list(demonstrations()[:2])
    found = learn(tmp_path / "out", model_path, replace(SETTINGS, rounds=1), demonstrations=shown)[0]
    assert lines(found.explored()) == lines(run[0].explored())
    codec = make_codec(load_tokenizer(str(model_path)))
    data = [*sft_dataset(shown, codec), *rows_of([found], model_path).rows]
    trainer = make_row_trainer(str(model_path), Dataset.from_list(data), codec, config(tmp_path / "both"))
    trainer.train()
    trainer.save_model()
    assert equal_weights(found.model, tmp_path / "both")


@train
def test_resuming_a_finished_run_only_reads_it(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("round-*/**/*")}
    assert [r.metrics for r in learn(out, model_path)] == [r.metrics for r in run]
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("round-*/**/*")}


@pytest.mark.rotating(always=1)
@train
@pytest.mark.parametrize("ended", [PLAY.batch, 2], ids=["between batches", "inside a batch"])
def test_a_run_killed_while_playing_resumes(ended: int, run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out") / "round-1"
    shutil.rmtree(out.parent / "round-2")
    forget(out, "round.json", "training.json", "model")
    path = out / "explored.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:ended]) + whole[ended][:50])
    again = learn(out.parent, model_path)
    played = path.read_bytes().splitlines(keepends=True)
    assert played[:ended] == whole[:ended] and len(played) == EPISODES
    if ended == PLAY.batch:
        assert sorted(without_times(played)) == sorted(without_times(whole))
        assert equal_weights(again[1].model, run[1].model)
        wanted = [{k: v for k, v in without_seconds(r).items() if k != "eval/files"} for r in run]
        assert [without_seconds(r) for r in again] == wanted


@train
def test_a_run_interrupted_during_training_resumes(run: list[Round], model_path: Path, tmp_path: Path) -> None:
    out = copy_of(run, tmp_path / "out") / "round-2"
    forget(out, "round.json", "training.json", "model")
    with pytest.raises(KeyboardInterrupt):
        learn(out.parent, model_path, callbacks=[StopAt(1)])
    assert (out / "model" / "checkpoint-2").is_dir() and not (out / "training.json").exists()
    assert equal_weights(learn(out.parent, model_path)[1].model, run[1].model)


@train
def test_failed_episodes_are_not_trained_on(model_path: Path, tmp_path: Path) -> None:
    one = replace(SETTINGS, rounds=1)
    with pytest.raises(EnvError, match="every episode of round 1 failed, the first with: EnvError: the crafting table"):
        learn(tmp_path / "out", model_path, one, make_env=broken_craft(lambda number: True))
    found = learn(tmp_path / "out", model_path, one, make_env=broken_craft(lambda number: number % 4 == 0))[0]
    assert found.metrics["failed"] == 2
    usable = [trajectory for trajectory in found.explored() if trajectory.usable]
    assert found.metrics["states"] == len(labels(usable)) < len(labels(found.explored()))
    assert found.metrics["trained_on"] == found.metrics["labelled"]


class LostCraft(ScoredCraft):
    """The goal is out of reach after the first turn."""

    _state = TextEnv._state  # every turn changes the state

    def _solution(self) -> Solution:
        return Solution(None, True) if self._turn else super()._solution()


class OraclelessCraft(ScoredCraft):
    _solution = TextEnv._solution
    _plan = TextEnv._plan


@train
def test_states_out_of_reach_are_left_out_and_counted(model_path: Path, tmp_path: Path) -> None:
    own = replace(SETTINGS, rounds=1, oracle_share=OracleShare((0.0,)))
    found = learn(tmp_path / "out", model_path, own, make_env=LostCraft)[0]
    assert found.metrics["labelled"] == EPISODES == found.metrics["trained_on"]
    assert found.metrics["out_of_reach"] == found.metrics["states"] - EPISODES > 0


@train
def test_the_oracles_seconds_bound_the_labels(model_path: Path, tmp_path: Path) -> None:
    found = learn(tmp_path / "out", model_path, replace(SETTINGS, rounds=1, oracle_seconds=1e-9))[0]
    assert found.metrics["labelled"] >= 1 and found.metrics["unasked"] > 0
    assert found.metrics["labelled"] + found.metrics["unasked"] == found.metrics["states"]


def test_an_environment_without_an_oracle_is_refused(model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"labelled none of the \d+ visited states .*choose an environment with an"):
        learn(tmp_path / "out", model_path, make_env=OraclelessCraft)


def test_the_schedule_of_the_oracles_share() -> None:
    assert [OracleShare.parse("1,0.5,0").of(number) for number in (1, 2, 3, 9)] == [1, 0.5, 0, 0]
    assert [OracleShare.parse("decay:0.5").of(number) for number in (1, 2, 3)] == [1, 0.5, 0.25]
    assert [OracleShare.parse("decay:0").of(number) for number in (1, 2)] == [1, 0]
    assert OracleShare.parse("0.25").of(7) == 0.25


def test_a_config_file_may_have_a_number_or_a_list_of_shares() -> None:
    shares: list[Any] = [[1, 0.5], 0, "decay:0.5"]
    assert [DaggerArguments(oracle_share=share).oracle_share for share in shares] == ["1,0.5", "0", "decay:0.5"]


@pytest.mark.parametrize("text", ["", "one", "2", "1,-0.1", "decay:1,0", "decay:2", "decay:", "nan"])
def test_invalid_schedules_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="share"):
        OracleShare.parse(text)


@pytest.mark.parametrize(
    "more, part",
    [
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"keep": "some"}, "keep must be 'all' or 'last'"),
        ({"start": "first"}, "start must be 'base' or 'last'"),
        ({"oracle_seconds": 0.0}, "oracle_seconds must be above 0"),
    ],
)
def test_invalid_settings_are_refused(more: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        DaggerSettings(**more)


@pytest.fixture
def command(model_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> Any:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "160")
    fixed = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH]
    fixed += ["--max_steps", "1", "--use_cpu", "--report_to", "none", "--save_strategy", "no"]
    fixed += ["--explore-tasks", "2", "--max-turns", "2", "--max-turn-tokens", "30"]
    fixed += ["--model", str(model_path), "--out", str(tmp_path / "out")]

    def call(*words: object) -> tuple[int, str]:
        code = main(["train", "dagger", *fixed, *map(str, words)])
        return code, capfd.readouterr().err

    return call


@train
def test_the_command_runs_and_resumes(command: Any, tmp_path: Path) -> None:
    code, err = command("--rounds", 1, "--eval-tasks", 2)
    assert code == 0, err
    assert "Done:" in err and "eval/success" in err and "agreement" in err
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["algorithm"] == "dagger" and facts["oracle_share"] == "1,0"
    code, err = command("--rounds", 2, "--eval-tasks", 2, "--resume")
    assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [1, 2] and [row["oracle_turns"] for row in rows] == [1, 0]
    code, err = command("--oracle-share", "0", "--eval-tasks", 2, "--resume")
    assert code == 2 and "its oracle_share is '1,0', not '0'" in err


@pytest.mark.rotating
@train
def test_ctrl_c_stops_the_command(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TextEnv.step

    def interrupted(*words: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return whole(*words)

    with monkeypatch.context() as patch:
        patch.setattr(TextEnv, "step", interrupted)
        code, err = command("--rounds", 1)
    assert code == 130 and "--resume" in err and "Traceback" not in err, err
    code, err = command("--rounds", 1, "--resume")
    assert code == 0, err


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "words, part",
    [
        (["--oracle-share", "2"], "between 0 and 1"),
        (["--tasks", "4"], "leave out --tasks"),
        (["--max-turns", "0"], "--max-turns must be at least 1"),
        (["--oracle-seconds", "0"], "oracle_seconds must be above 0"),
        (["--demos", "none.jsonl"], "none.jsonl"),
        (["--start", "some"], "start"),
    ],
)
def test_invalid_commands_are_refused(words: list[str], part: str, command: Any, tmp_path: Path) -> None:
    code, err = command(*words)
    shown = [line for line in err.splitlines() if line.strip()]
    assert code == 2 and len(shown) == 1 and part in shown[0], err
    assert not (tmp_path / "out").exists()


@train
def test_the_command_takes_demonstrations(command: Any, tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path / "demos.jsonl") as writer:
        writer.write(demonstrations()[0])
    code, err = command("--rounds", 1, "--demos", tmp_path / "demos.jsonl")
    assert code == 0, err
    assert (tmp_path / "out" / "demos.jsonl").read_bytes() == (tmp_path / "demos.jsonl").read_bytes()
