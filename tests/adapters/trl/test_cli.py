"""`agentgym train` and `agentgym tiny-model` from end to end, and one line for everything that cannot be."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import TrajectoryWriter
from agentgym_trl.cli.arguments import parse as _parse
from agentgym_trl.models import load_model, load_tokenizer, make_codec
from agentgym_trl.trainer import AgentConfig
from tests.adapters.trl.small import DEPTH, ENV, FORGETFUL, KWARGS, demonstrations, limits_by_step, metrics, played

PLAY = ["--env", ENV, "--env_kwargs", json.dumps(KWARGS), "--groups", *DEPTH]
SMALL = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--use_cpu", "--report_to", "none"]
ROLL = ["--num_generations", "2", "--max_completion_length", "200", "--max_turn_tokens", "8", "--rounds", "2"]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def agentgym(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("AGENTGYM_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Outcome:
        code = main([str(word) for word in words])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture
def grpo(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:
    def call(*words: object, model: object = model_path, out: object = tmp_path / "out") -> Outcome:
        return agentgym("train", "grpo", *PLAY, *SMALL, *ROLL, "--model", model, "--output_dir", out, *words)

    return call


@pytest.fixture
def sft(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:
    def call(*words: object, model: object = model_path, out: object = tmp_path / "out") -> Outcome:
        return agentgym("train", "sft", *PLAY, *SMALL, "--model", model, "--output_dir", out, *words)

    return call


def refused(outcome: Outcome, *parts: str) -> None:
    """Exit code 2, and of ours a single line that says all of `parts`."""
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    assert outcome.code == 2, outcome
    assert len(lines) == 1 and lines[0].startswith("agentgym: "), outcome.err
    assert "Traceback" not in outcome.err and len(lines[0]) < 700
    for part in parts:
        assert part in lines[0]


def test_a_tiny_model_is_made(agentgym: Any, tmp_path: Path) -> None:
    made = agentgym("tiny-model", tmp_path / "tiny")
    assert made.code == 0 and "parameters" in made.err
    tokenizer = load_tokenizer(str(tmp_path / "tiny"))
    model = load_model(str(tmp_path / "tiny"))
    assert model.config.vocab_size == len(tokenizer)
    assert make_codec(tokenizer).turn_end == tokenizer.eos_token
    text = "Crafting commands: Zürich \N{SNOWMAN}\n\tGoal: craft oak planks."
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    refused(agentgym("tiny-model", tmp_path / "tiny"), "exists and is not an empty directory")
    refused(agentgym("tiny-model"), "required: out")
    refused(agentgym("tiny-model", tmp_path / "x", "--env", "Nothing-v0"), "there is no environment 'Nothing-v0'")
    refused(agentgym("tiny-model", tmp_path / "x", "--seed", "few"), "--seed")


@pytest.mark.train
def test_grpo_from_end_to_end_and_on(grpo: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = grpo("--rounds", "2,3", "--every", "1", "--save_steps", "1")
    assert done.code == 0, done.err
    assert "Done:" in done.err and done.out == ""
    assert limits_by_step(out) == {0: Counter({2: 4}), 1: Counter({3: 4})}
    assert [row["rollout/max_turns"] for row in metrics(out) if "rollout/max_turns" in row] == [2, 3]
    for name in ("config.json", "model.safetensors", "tokenizer.json", "checkpoint-2", "run.json"):
        assert (out / name).exists()
    assert make_codec(load_tokenizer(str(out))) and load_model(str(out))

    more = grpo("--rounds", "2,3", "--every", "1", "--save_steps", "1", "--max_steps", "4", "--resume")
    assert more.code == 0, more.err
    assert limits_by_step(out) == {0: Counter({2: 4}), **{step: Counter({3: 4}) for step in (1, 2, 3)}}
    assert [row["step"] for row in metrics(out) if "loss" in row] == [1, 2, 3, 4]


@pytest.mark.train
def test_a_config_file_holds_options(agentgym: Any, model_path: Path, tmp_path: Path) -> None:
    options = {
        "model": str(model_path),
        "env": ENV,
        "env_kwargs": KWARGS,
        "groups": "depth-1",
        "output_dir": "run",
        "max_steps": 3,
        "rounds": 2,
        "max-turn-tokens": 8,
        "learning_rate": "1e-4",
        "num_generations": 2,
        "per_device_train_batch_size": 2,
        "max_completion_length": 100,
        "use_cpu": True,
        "report_to": "none",
    }
    (tmp_path / "options.yaml").write_text(yaml.safe_dump(options))
    done = agentgym("train", "grpo", "--config", "options.yaml", "--max_steps", "1")
    assert done.code == 0, done.err
    assert limits_by_step(tmp_path / "run") == {0: Counter({2: 2})}  # the command line wins
    assert metrics(tmp_path / "run")[0]["learning_rate"] == 1e-4


@pytest.mark.parametrize(
    "text, part",
    [
        (None, "does not read"),
        ("a: [", "does not read"),
        ("- a\n- b", "must hold options"),
        ("speed: 3\nmax_steps: 4", "the config file sets speed, which is no option"),
        ("env:\n  HOME: x", "must be the id of an environment"),
    ],
)
def test_a_config_file_that_does_not_read(text: str | None, part: str, grpo: Any, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "c.yaml").write_text(text)
    refused(grpo("--config", tmp_path / "c.yaml"), part)


def test_every_field_of_trls_config_is_an_option(tmp_path: Path) -> None:
    words = ["--env", ENV, "--model", "some/model", "--output_dir", str(tmp_path), "--use_cpu"]
    given = {
        "loss_type": "dr_grpo",
        "beta": 0.25,
        "scale_rewards": "batch",
        "epsilon_high": 0.28,
        "num_iterations": 2,
        "importance_sampling_level": "sequence",
        "temperature": 0.7,
        "top_p": 0.9,
        "learning_rate": 3e-6,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 7,
        "save_strategy": "no",
        "gradient_accumulation_steps": 4,
        "vllm_mode": "colocate",
        "advantage_estimator": "grpo",
        "env_retries": 5,
    }
    flags = [text for key, value in given.items() for text in (f"--{key}", str(value))]
    _, args, model = _parse(AgentConfig, [*words, *flags, "--use_peft"])
    for key, value in given.items():
        assert getattr(args, key) == value, key
    assert model.use_peft and model.model_name_or_path == "some/model"
    dashed = [flag.replace("_", "-") if flag.startswith("--") else flag for flag in flags]
    assert _parse(AgentConfig, [*words, *dashed])[1].loss_type == "dr_grpo"
    assert (
        _parse(AgentConfig, ["--env=" + ENV, "--model=m", "--output_dir", "x", "--use_cpu"])[2].model_name_or_path
        == "m"
    )


def test_nobody_is_told_to_use_bf16_on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = ["--env", ENV, "--model", "m", "--output_dir", str(tmp_path)]
    args = _parse(AgentConfig, words)[1]
    assert (args.bf16, args.gradient_checkpointing) == (False, False)
    args = _parse(AgentConfig, [*words, "--gradient_checkpointing", "true"])[1]
    assert args.gradient_checkpointing is True
    (tmp_path / "c.yaml").write_text("gradient_checkpointing: true")
    assert _parse(AgentConfig, [*words, "--config", str(tmp_path / "c.yaml")])[1].gradient_checkpointing is True


@pytest.mark.train
def test_sft_from_the_oracle_and_from_a_file(sft: Any, tmp_path: Path) -> None:
    oracle = sft("--tasks", "6", out=tmp_path / "a")
    assert oracle.code == 0, oracle.err
    assert (tmp_path / "a" / "model.safetensors").exists()
    with TrajectoryWriter(tmp_path / "demos.jsonl") as writer:
        for trajectory in demonstrations():
            writer.write(trajectory)
    words = ["--demos", tmp_path / "demos.jsonl", "--save_steps", "1"]
    assert sft(*words, out=tmp_path / "b").code == 0
    assert [row["step"] for row in metrics(tmp_path / "b") if "train_loss" in row] == [2]
    more = sft(*words, "--max_steps", "3", "--logging_steps", "1", "--resume", out=tmp_path / "b")
    assert more.code == 0, more.err
    assert (tmp_path / "b" / "checkpoint-3").is_dir()
    refused(sft(*words, out=tmp_path / "b"), "holds a run already", "--resume")
    refused(sft("--resume", "--tasks", "6", out=tmp_path / "b"), "holds another run: its demos is", "None")


@pytest.mark.train
def test_a_template_from_a_file_is_used_and_saved(grpo: Any, model_path: Path, tmp_path: Path) -> None:
    """Also for a model that has none of its own."""
    bare = copy_model(model_path, tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    refused(grpo(model=bare), "no chat template", "--chat-template FILE")
    template = (model_path / "chat_template.jinja").read_text()
    (tmp_path / "t.jinja").write_text(template)
    done = grpo("--chat-template", tmp_path / "t.jinja", model=bare)
    assert done.code == 0, done.err
    assert load_tokenizer(str(tmp_path / "out")).chat_template == template


def copy_model(model: Path, to: Path) -> Path:
    shutil.copytree(model, to)
    return to


def test_models_that_are_none(grpo: Any, model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("weights")
    refused(grpo(model=tmp_path / "empty"), "is not a model", "config.json")
    refused(grpo(model=tmp_path / "file"), "is not a model")
    refused(grpo(model=tmp_path / "missing"), "is neither a directory with a model nor a model that the hub gives")
    refused(grpo(model="nobody/nothing"), "'nobody/nothing' is neither a directory")
    broken = copy_model(model_path, tmp_path / "broken")
    (broken / "config.json").write_text("{")
    refused(grpo(model=broken), "does not load")
    broken = copy_model(model_path, tmp_path / "wordless")
    (broken / "tokenizer.json").unlink()
    (broken / "tokenizer_config.json").unlink()
    refused(grpo(model=broken), "does not load")


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_model_without_its_weights(damage: str, grpo: Any, sft: Any, model_path: Path, tmp_path: Path) -> None:
    broken = copy_model(model_path, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.unlink() if damage == "missing" else weights.write_bytes(weights.read_bytes()[:5000])
    refused(grpo(model=broken, out=tmp_path / "a"), "model")
    refused(sft("--tasks", "3", model=broken, out=tmp_path / "b"), "model")


def test_templates_that_cannot_be_trained_on(grpo: Any, sft: Any, tmp_path: Path) -> None:
    (tmp_path / "forgetful.jinja").write_text(FORGETFUL)
    (tmp_path / "wrong.jinja").write_text("{% for m in messages %}")
    (tmp_path / "binary.jinja").write_bytes(b"\xff\xfe\xff")
    refused(grpo("--chat_template", tmp_path / "forgetful.jinja"), "not prefix-preserving", "--chat-template FILE")
    refused(grpo("--chat_template", tmp_path / "wrong.jinja"), "does not render")
    refused(grpo("--chat_template", tmp_path / "none.jinja"), "cannot be read: No such file")
    refused(grpo("--chat_template", tmp_path / "binary.jinja"), "not UTF-8")
    refused(sft("--chat-template", tmp_path / "forgetful.jinja"), "not prefix-preserving")


@pytest.mark.parametrize(
    "words, parts",
    [
        (["--env", "AgentGym/Nothing-v0"], ["there is no environment 'AgentGym/Nothing-v0'", ENV]),
        (["--env_kwargs", "{worlds}"], ["--env_kwargs must be a JSON object", "{worlds}"]),
        (["--env_kwargs", "[1]"], ["--env_kwargs must be a JSON object"]),
        (["--env_kwargs", '{"wrlds": 1}'], ["does not take these arguments", "wrlds"]),
        (["--env_kwargs", '{"worlds": "flat"}'], ["worlds", "flat"]),
        (["--split", "dev"], ["dev"]),
        (["--groups", "depth-9"], ["depth-9"]),
        (["--rounds", "ten"], ["rounds must be whole numbers", "'ten'"]),
        (["--rounds", "3,2", "--every", "5"], ["may not shrink", "3,2"]),
        (["--rounds", "0"], ["at least 1"]),
        (["--rounds", "2,3"], ["--every 100"]),
        (["--rounds", "2,3", "--every", "0"], ["at least 1, got 0"]),
        (["--advantage_estimator", "luck"], ["no advantage estimator 'luck'", "grpo"]),
        (["--speed", "3"], ["--speed"]),
        (["--max_steps", "few"], ["--max_steps", "few"]),
        (["--loss_type", "magic"], ["no loss_type 'magic'", "dapo"]),
        (["--scale_rewards", "magic"], ["no scale_rewards 'magic'", "batch"]),
        (["--max_turn_tokens", "0"], ["--max_turn_tokens must be at least 1, got 0"]),
        (["--env_concurrency", "0"], ["--env_concurrency must be at least 1, got 0"]),
        (["--use_vllm"], ["vLLM"]),
        (["--num_generations", "3"], ["divisible", "num_generations"]),
        (["--num_generations", "1"], ["2"]),
        (["--multi_objective_aggregation", "normalize_then_sum"], ["--multi_objective_aggregation"]),
        (["--eval_strategy", "steps", "--eval_steps", "1"], ["eval"]),
        (["--config"], ["--config"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_options_that_cannot_be(words: list[str], parts: list[str], grpo: Any) -> None:
    refused(grpo(*words), *parts)


def test_commands_that_cannot_be(agentgym: Any) -> None:
    refused(agentgym("train", "dpo"), "there is no algorithm 'dpo'", "grpo", "sft")
    refused(agentgym("train", "grpo", "--env", ENV), "no model was given", "--model")
    refused(agentgym("train", "grpo", "--model", "m"), "--env")
    for words in (["train"], ["train", "--help"]):
        shown = agentgym(*words)
        assert shown.code == 0 and "algorithms:" in shown.out


def test_demonstrations_that_do_not_read(sft: Any, tmp_path: Path) -> None:
    refused(sft("--demos", tmp_path / "none.jsonl"), "cannot be read: No such file")
    refused(sft("--demos", tmp_path), "cannot be read")
    good = demonstrations()[0].to_json()
    (tmp_path / "bad.jsonl").write_text(f"{good}\n{{}}\n{good}\n")
    refused(sft("--demos", tmp_path / "bad.jsonl"), "bad.jsonl:2:", "not a trajectory")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\n")
    refused(sft("--demos", tmp_path / "binary.jsonl"), "binary.jsonl:1:")
    (tmp_path / "empty.jsonl").write_text("")
    refused(sft("--demos", tmp_path / "empty.jsonl"), "no trajectory to train on")
    (tmp_path / "long.jsonl").write_text(good + "\n")
    refused(sft("--demos", tmp_path / "long.jsonl", "--max_length", "9"), "more than --max_length 9")
    refused(sft(), "--tasks")
    assert not (tmp_path / "out").exists(), "a run that could not begin must not leave a directory that looks like one"


def test_directories_of_others(grpo: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused(grpo(out=tmp_path / "file"), "is a file", "--output_dir")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "notes").write_text("theirs")
    refused(grpo(out=tmp_path / "theirs"), "is not empty and holds no run of ours")
    refused(grpo("--resume", out=tmp_path / "theirs"), "is not empty and holds no run of ours")
    (tmp_path / "theirs" / "run.json").write_text("[]")
    refused(grpo("--resume", out=tmp_path / "theirs"), "is not empty and holds no run of ours")


@pytest.mark.train
def test_directories_of_other_runs(grpo: Any, tmp_path: Path) -> None:
    assert grpo("--max_steps", "1").code == 0
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    refused(grpo("--max_steps", "1"), "holds a run already", "--resume")
    refused(grpo("--seed", "7", "--resume"), "holds another run: its seed is 42, not 7")
    refused(grpo("--split", "test", "--resume"), "its split is 'train', not 'test'")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights
    assert len(played(tmp_path / "out", 0)) == 4


def test_usage_errors_reach_callers_as_such() -> None:
    with pytest.raises(UsageError):
        _parse(AgentConfig, ["--env", ENV, "--model", "m", "--output_dir", "x", "--num_generations", "x"])
