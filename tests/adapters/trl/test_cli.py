"""`agentgym train` and `agentgym tiny-model` from end to end, and one-line errors for invalid input.

test_mixed.py tests several environments in one run.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from trl import SFTConfig

import agentgym_trl
from agentgym_envs.cli import main
from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import FixedTurnLimit, TurnLimitCurriculum, parse_schedules
from agentgym_envs.trajectory import TrajectoryWriter, read_trajectories
from agentgym_trl.cli.agentevol import EvolArguments
from agentgym_trl.cli.arguments import EnvArguments, parse
from agentgym_trl.cli.dagger import DaggerArguments
from agentgym_trl.cli.environments import environments
from agentgym_trl.cli.sft import DemoArguments
from agentgym_trl.config import AgentConfig
from agentgym_trl.models import load_model, load_tokenizer, make_codec
from tests.adapters.trl.small import DEPTH, ENV, FORGETFUL, demonstrations, limits_by_step, metrics, played
from tests.graded import KWARGS

PLAY = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH]
SMALL = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--use_cpu", "--report_to", "none"]
ROLL = ["--num_generations", "2", "--max_completion_length", "200", "--max-turn-tokens", "8", "--max-turns", "2"]

ONLINE = ("grpo", "rloo", "reinforce++", "reinforce++-baseline", "ppo", "distill")
OFFLINE = ("sft", "dpo", "agentevol", "dagger")
LOGGED = {  # by every online algorithm, at every step
    "step", "epoch", "loss", "learning_rate", "grad_norm", "num_tokens",
    "reward", "reward_std", "frac_reward_zero_std", "entropy", "kl",
    "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean",
    "rollout/success", "rollout/score", "rollout/turns", "rollout/max_turns", "rollout/invalid_actions",
    "rollout/truncated_answers", "rollout/zero_variance_groups", "rollout/retried", "rollout/tokens",
    "rollout/tokens_per_second", "effective_sample_size", "sampler_kl",
    "rollout/stop/success", "rollout/stop/failure", "rollout/stop/turn_limit", "rollout/stop/token_limit",
    "rollout/stop/env_error", "time/generate", "time/env", "time/train",
}  # fmt: skip
CRITIC = {"critic/explained_variance", "critic/loss", "critic/clip_fraction", "critic/grad_norm", "critic/lr"}


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
def train(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:
    def call(name: str, *words: object) -> Outcome:
        fixed = [*PLAY, *SMALL, *ROLL, "--model", model_path, "--out", tmp_path / "out"]
        return agentgym("train", name, *fixed, *words)

    return call


@pytest.fixture
def grpo(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:
    def call(*words: object, model: object = model_path, out: object = tmp_path / "out") -> Outcome:
        return agentgym("train", "grpo", *PLAY, *SMALL, *ROLL, "--model", model, "--out", out, *words)

    return call


@pytest.fixture
def sft(agentgym: Any, model_path: Path, tmp_path: Path) -> Any:
    def call(*words: object, model: object = model_path, out: object = tmp_path / "out") -> Outcome:
        return agentgym("train", "sft", *PLAY, *SMALL, "--model", model, "--out", out, *words)

    return call


def refused(outcome: Outcome, *parts: str) -> None:
    """Exit code 2, and a single line of ours with all of `parts`, besides notes about the settings."""
    lines = [line for line in outcome.err.splitlines() if line.strip() and not line.startswith("note: ")]
    assert outcome.code == 2, outcome
    assert len(lines) == 1 and lines[0].startswith("agentgym: "), outcome.err
    assert "Traceback" not in outcome.err and len(lines[0]) < 700
    for part in parts:
        assert part in lines[0]


def test_tiny_model_creates_a_model(agentgym: Any, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_tiny_model_takes_sizes(agentgym: Any, tmp_path: Path) -> None:
    sizes = ("--hidden-size", "48", "--layers", "1", "--heads", "2")
    assert agentgym("tiny-model", tmp_path / "small", *sizes).code == 0
    config = load_model(str(tmp_path / "small")).config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (48, 1, 2)
    refused(agentgym("tiny-model", tmp_path / "x", "--hidden-size", "50"), "a multiple of twice the heads")
    refused(agentgym("tiny-model", tmp_path / "x", "--layers", "0"), "sizes must be positive")


@pytest.mark.train
def test_grpo_runs_and_resumes(grpo: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = grpo("--max-turns", "2,3", "--every", "1", "--save_steps", "1")
    assert done.code == 0, done.err
    assert "Done:" in done.err and done.out == ""
    assert limits_by_step(out) == {0: Counter({2: 4}), 1: Counter({3: 4})}
    assert [row["rollout/max_turns"] for row in metrics(out) if "rollout/max_turns" in row] == [2, 3]
    for name in ("config.json", "model.safetensors", "tokenizer.json", "checkpoint-2", "run.json"):
        assert (out / name).exists()
    assert make_codec(load_tokenizer(str(out))) and load_model(str(out))

    more = grpo("--max-turns", "2,3", "--every", "1", "--save_steps", "1", "--max_steps", "4", "--resume")
    assert more.code == 0, more.err
    assert limits_by_step(out) == {0: Counter({2: 4}), **{step: Counter({3: 4}) for step in (1, 2, 3)}}
    assert [row["step"] for row in metrics(out) if "loss" in row] == [1, 2, 3, 4]


@pytest.mark.train
def test_held_out_tasks_are_played_during_training(grpo: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--eval-every", "1", "--eval-tasks", "3", "--eval-max-turns", "1", "--keep-best", "--save_steps", "1"]
    done = grpo(*words)
    assert done.code == 0 and done.err.count("on 3 held-out tasks") == 3 and "highest held-out success" in done.err
    recorded = json.loads((out / "run.json").read_text())["evaluation"]
    assert recorded["last"]["step"] == 2 and recorded["best"] == json.loads(
        (out / "best" / "evaluation.json").read_text()
    )
    trained = {trajectory.task.id for step in (0, 1) for trajectory in played(out, step)}
    held_out = list(read_trajectories(out / "trajectories" / "eval-0.jsonl"))
    assert len(held_out) == 3 and trained.isdisjoint(trajectory.task.id for trajectory in held_out)
    assert {trajectory.task.split for trajectory in held_out} == {"validation"}
    assert load_model(str(out / "best"))
    more = grpo(*words, "--max_steps", "3", "--resume")
    assert more.code == 0 and more.err.count("held-out tasks") == 1, more.err


@pytest.mark.rotating(always=2)
@pytest.mark.train
@pytest.mark.parametrize("name", ONLINE)
def test_every_online_algorithm_runs(name: str, train: Any, tmp_path: Path) -> None:
    """Two steps from end to end, with all metrics; another algorithm cannot resume the run."""
    done = train(name, "--beta", "0.01")
    assert done.code == 0, done.err
    rows = [row for row in metrics(tmp_path / "out") if "loss" in row]
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        wanted = LOGGED | (CRITIC if name == "ppo" else set())
        assert not wanted - row.keys()
        assert all(isinstance(row[key], float | int) for key in wanted)
        assert sum(row[key] for key in row if key.startswith("rollout/stop/")) == pytest.approx(1)
        assert min(row["time/generate"], row["time/train"]) > 0 <= row["time/env"]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["algorithm"] == name
    other = "rloo" if name == "grpo" else "grpo"
    refused(train(other, "--resume"), f"holds another run: its algorithm is {name!r}, not {other!r}")


@pytest.mark.train
def test_a_config_file_holds_options(agentgym: Any, model_path: Path, tmp_path: Path) -> None:
    options = {
        "model": str(model_path),
        "env": ENV,
        "env_kwargs": KWARGS,
        "groups": "depth-1",
        "output_dir": "run",
        "max_steps": 3,
        "max_turns": 2,
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


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "text, part",
    [
        (None, "there is no config file"),
        ("a: [", "cannot be read"),
        ("- a\n- b", "must have one option per line"),
        ("speed: 3\nmax_steps: 4", "the config file sets speed, which is not an option"),
        ("env:\n  HOME: x", "must be the id of an environment"),
        ("algorithm: rloo", "the command sets --algorithm already (grpo)"),
    ],
)
def test_invalid_config_files_are_refused(text: str | None, part: str, grpo: Any, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "c.yaml").write_text(text)
    refused(grpo("--config", tmp_path / "c.yaml"), part)


def test_a_misspelt_config_of_ours_is_suggested(grpo: Any) -> None:
    refused(grpo("--config", "tiny-grop"), "there is no config file tiny-grop", "did you mean tiny-grpo")


@pytest.mark.parametrize(
    "value, max_turns",
    [(7, "7"), ([10, 20], "10,20"), ("10,20", "10,20"), ({"A": [1, 2], "B": 3}, "A=1,2;B=3"), ("A=1;B=2", "A=1;B=2")],
)
def test_a_schedule_may_be_a_yaml_value(value: Any, max_turns: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"env": ENV, "max_turns": value, "every": 5, "model": "m"}))
    words = ["--config", str(tmp_path / "c.yaml"), "--out", str(tmp_path), "--use_cpu"]
    assert parse(AgentConfig, words)[1].max_turns == max_turns


@pytest.mark.parametrize(
    "options",
    [
        {"credit": "vine", "branches": 2, "at": "surprising:3"},
        {"tree": "2x3", "num_generations": 8},
        {"process_reward": "oracle-agreement", "process_reward_weight": 0.5, "turn_level_advantage": True},
        {"process_reward": "regret", "oracle_seconds": 60.0, "turn_level_advantage": True},
        {"sampler": "success:0.1-0.9"},
    ],
    ids=lambda options: ", ".join(options),
)
def test_a_config_file_sets_every_method(options: dict[str, Any], tmp_path: Path) -> None:
    """As the command line does."""
    (tmp_path / "c.yaml").write_text(
        yaml.safe_dump({"env": ENV, "model": "m", "env_kwargs": '{"difficulty": [2, 3]}'} | options)
    )
    words = ["--out", str(tmp_path), "--use_cpu"]
    env_args, args, _ = parse(AgentConfig, ["--config", str(tmp_path / "c.yaml"), *words])
    assert {name: getattr(args, name) for name in options} == options
    assert environments(env_args)[0].kwargs == {"difficulty": [2, 3]}
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value).lower())]
    assert parse(AgentConfig, ["--env", ENV, "--model", "m", *flags, *words])[1] == args


PACKAGED = Path(agentgym_trl.__file__).parent / "configs"


@pytest.mark.parametrize("path", [p for p in sorted(PACKAGED.glob("*.yaml")) if "\nenv: " in p.read_text()], ids=str)
def test_our_own_configs_parse(path: Path) -> None:
    """By their names, with their algorithms."""
    kinds: dict[str, Any] = {
        "tiny-sft": (SFTConfig, DemoArguments),
        "tiny-agentevol": (SFTConfig, DemoArguments, EvolArguments),
        "tiny-dagger": (SFTConfig, DemoArguments, DaggerArguments),
    }
    config, *more = kinds.get(path.stem, (AgentConfig,))
    algorithm = "distill" if path.stem == "tiny-distill" else "grpo"
    fixed = {"algorithm": algorithm} if config is AgentConfig else None
    on_cpu = ["--use_cpu", "--bf16", "false", "--model", "m", "--out", "o"]
    env_args, args, *_ = parse(config, ["--config", path.stem, *on_cpu], *more, fixed=fixed)
    assert environments(env_args)[0].id == ENV
    if config is AgentConfig:
        assert args.algorithm == algorithm
        assert isinstance(parse_schedules(args.max_turns, args.every), FixedTurnLimit | TurnLimitCurriculum)


def test_every_field_of_trls_config_is_an_option(tmp_path: Path) -> None:
    words = ["--env", ENV, "--model", "some/model", "--out", str(tmp_path), "--use_cpu"]
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
        "env_retries": 5,
    }
    flags = [text for key, value in given.items() for text in (f"--{key}", str(value))]
    _, args, model = parse(AgentConfig, [*words, *flags, "--use_peft"])
    for key, value in given.items():
        assert getattr(args, key) == value, key
    assert model.use_peft and model.model_name_or_path == "some/model"
    dashed = [flag.replace("_", "-") if flag.startswith("--") else flag for flag in flags]
    assert parse(AgentConfig, [*words, *dashed])[1].loss_type == "dr_grpo"
    assert parse(AgentConfig, ["--env=" + ENV, "--model=m", "--out", "x", "--use_cpu"])[2].model_name_or_path == "m"


def test_defaults_for_a_gpu_are_off_on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = ["--env", ENV, "--model", "m", "--out", str(tmp_path)]
    args = parse(AgentConfig, words)[1]
    assert (args.bf16, args.gradient_checkpointing) == (False, False)
    args = parse(AgentConfig, [*words, "--gradient_checkpointing", "true"])[1]
    assert args.gradient_checkpointing is True
    (tmp_path / "c.yaml").write_text("gradient_checkpointing: true")
    assert parse(AgentConfig, [*words, "--config", str(tmp_path / "c.yaml")])[1].gradient_checkpointing is True


@pytest.mark.train
def test_sft_reads_demonstrations_from_the_oracle_or_a_file(sft: Any, tmp_path: Path) -> None:
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
    refused(sft(*words, out=tmp_path / "b"), "already holds a run", "--resume")
    refused(sft("--resume", "--tasks", "6", out=tmp_path / "b"), "holds another run: its demos is", "None")


@pytest.mark.train
def test_a_template_from_a_file_is_used_and_saved(grpo: Any, model_path: Path, tmp_path: Path) -> None:
    """Also for a model without a template of its own."""
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


@pytest.mark.slow
def test_directories_without_a_model_are_refused(grpo: Any, model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("weights")
    refused(grpo(model=tmp_path / "empty"), "is not a model", "config.json")
    refused(grpo(model=tmp_path / "file"), "is not a model")
    refused(grpo(model=tmp_path / "missing"), "is neither a directory with a model nor a model on the hub")
    refused(grpo(model="nobody/nothing"), "'nobody/nothing' is neither a directory")
    broken = copy_model(model_path, tmp_path / "broken")
    (broken / "config.json").write_text("{")
    refused(grpo(model=broken), "does not load")
    broken = copy_model(model_path, tmp_path / "wordless")
    (broken / "tokenizer.json").unlink()
    (broken / "tokenizer_config.json").unlink()
    refused(grpo(model=broken), "does not load")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_model_without_weights_is_refused(damage: str, grpo: Any, sft: Any, model_path: Path, tmp_path: Path) -> None:
    broken = copy_model(model_path, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.unlink() if damage == "missing" else weights.write_bytes(weights.read_bytes()[:5000])
    refused(grpo(model=broken, out=tmp_path / "a"), "model")
    refused(sft("--tasks", "3", model=broken, out=tmp_path / "b"), "model")


@pytest.mark.slow
def test_templates_that_cannot_be_trained_on_are_refused(grpo: Any, sft: Any, tmp_path: Path) -> None:
    (tmp_path / "forgetful.jinja").write_text(FORGETFUL)
    (tmp_path / "partial.jinja").write_text(
        FORGETFUL.replace("{{ m.content }}", "{{ m.content if loop.last or m.role != 'user' else m.content[:7] }}")
    )
    (tmp_path / "wrong.jinja").write_text("{% for m in messages %}")
    (tmp_path / "binary.jinja").write_bytes(b"\xff\xfe\xff")
    kept = ("--chat-template", tmp_path / "forgetful.jinja", "--keep-thoughts", "true")
    refused(grpo(*kept), "not prefix-preserving", "--chat-template FILE")
    refused(grpo("--chat-template", tmp_path / "partial.jinja"), "shows parts of earlier messages")
    refused(grpo("--chat-template", tmp_path / "wrong.jinja"), "does not render")
    refused(grpo("--chat-template", tmp_path / "none.jinja"), "cannot be read: No such file")
    refused(grpo("--chat-template", tmp_path / "binary.jinja"), "not UTF-8")
    refused(sft(*kept), "not prefix-preserving")


def test_environments_are_accepted_by_short_names() -> None:
    own = "examples.new_scenario:Tutorial/Bisect-v0"
    named = EnvArguments(["textcraft:2", "BabyAI", "AgentGym/Search-v0:0.5", own, f"{own}:3"]).env
    assert named == ["AgentGym/TextCraft-v0:2", "AgentGym/BabyAI-v0", "AgentGym/Search-v0:0.5", own, f"{own}:3"]


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(
    "words, parts",
    [
        (["--env", "textkraft"], ["there is no environment 'textkraft'; did you mean", ENV]),
        (["--env-kwargs", "{worlds}"], ["--env-kwargs must be a JSON object", "{worlds}"]),
        (["--env-kwargs", "[1]"], ["--env-kwargs must be a JSON object"]),
        (["--env-kwargs", '{"token": "s3cret"}'], ["AGENTGYM_TOKEN"]),
        (["--env-kwargs", '{"wrlds": 1}'], ["does not take these arguments", "wrlds"]),
        (["--env-kwargs", '{"worlds": "flat"}'], ["worlds", "flat"]),
        (["--split", "dev"], ["dev"]),
        (["--groups", "depth-9"], ["depth-9"]),
        (["--max-turns", "ten"], ["max turns must be whole numbers", "'ten'"]),
        (["--max-turns", "3,2", "--every", "5"], ["must not decrease", "3,2"]),
        (["--max-turns", "0"], ["at least 1"]),
        (["--max-turns", "2,3"], ["--every 100"]),
        (["--max-turns", "2,3", "--every", "0"], ["at least 1, got 0"]),
        (["--algorithm", "luck"], ["the command sets --algorithm already (grpo)", "leave it out"]),
        (["--algorithm=rloo"], ["the command sets --algorithm already (grpo)"]),
        (["--discount", "turn"], ["--discount"]),  # options cannot be abbreviated, as TRL may add names
        (["--speed", "3"], ["--speed"]),
        (["--max_steps", "few"], ["--max_steps", "few"]),
        (["--loss_type", "magic"], ["no loss_type 'magic'", "dapo"]),
        (["--scale_rewards", "magic"], ["no scale_rewards 'magic'", "batch"]),
        (["--max-turn-tokens", "0"], ["--max-turn-tokens must be at least 1, got 0"]),
        (["--env-concurrency", "0"], ["--env-concurrency must be at least 1, got 0"]),
        (["--use_vllm"], ["vLLM"]),
        (["--num_generations", "3"], ["divisible", "num_generations"]),
        (["--num_generations", "1"], ["grpo compares the episodes of a group", "--num_generations must be at least 2"]),
        (["--kl-in", "reward"], ["--kl-in reward needs the weight of the KL term", "--beta"]),
        (["--kl-in", "head", "--beta", "0.1"], ["no kl_in 'head'", "loss, reward"]),
        (["--gamma", "1.5"], ["--gamma must lie in [0, 1], got 1.5"]),
        (["--discount-per", "day"], ["no discount_per 'day'", "turn, token"]),
        (["--mask_truncated_completions"], ["--mask-truncated-answers"]),
        (["--tasks", "1"], ["a rollout plays 2 groups of 2", "only 1 tasks", "--tasks 2"]),
        (["--tasks", "0"], ["tasks to train on must be at least 1; got 0"]),
        (["--env", ENV + ":0"], ["the weight of an environment is a number above 0", ENV + ":0"]),
        (["--env", ENV + ":-1"], ["the weight of an environment is a number above 0"]),
        (["--env", ENV + ":much"], ["the weight of an environment is a number above 0"]),
        (["--env", ENV + ":inf"], ["the weight of an environment is a number above 0"]),
        (["--env", ENV + ":2", ENV], [f"{ENV} is named twice", ENV + ":2"]),
        (["--max-turns", "BabyAI=3"], ["must name them all: TextCraft; got BabyAI"]),
        (["--max-turns", "TextCraft=3;TextCraft=4"], ["name each environment once", "TextCraft=3;TextCraft=4"]),
        (["--max-turns", "TextCraft=3;"], ["name each environment once"]),
        (["--max-turns", "TextCraft=ten"], ["max turns must be whole numbers", "'ten'"]),
        (["--max-turns", "TextCraft=2,3"], ["--every 100"]),
        (["--multi_objective_aggregation", "normalize_then_sum"], ["--multi_objective_aggregation"]),
        (["--eval_strategy", "steps", "--eval_steps", "1"], ["--eval-every N"]),
        (["--eval-every", "0"], ["--eval-every must be at least 1, got 0"]),
        (["--eval-every", "1", "--eval-split", "train"], ["--eval-split train is the split that is trained on"]),
        (["--eval-every", "1", "--eval-split", "dev"], ["dev"]),
        (["--keep-best"], ["--keep-best needs evaluations", "--eval-every 50"]),
        (["--config"], ["--config"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_invalid_options_are_refused(words: list[str], parts: list[str], grpo: Any) -> None:
    refused(grpo(*words), *parts)


@pytest.mark.slow
def test_invalid_commands_are_refused(agentgym: Any) -> None:
    refused(agentgym("train", "reinforce"), "there is no algorithm 'reinforce'", *ONLINE, *OFFLINE)
    refused(agentgym("train", "gae"), "there is no algorithm 'gae'", "ppo")
    refused(agentgym("train", "--env", ENV), "there is no algorithm '--env'")
    for name in ONLINE:
        refused(agentgym("train", name, "--env", ENV), "no model was given", "--model")
        refused(agentgym("train", name, "--model", "m"), "--env")


@pytest.mark.slow
def test_help_lists_every_algorithm_and_its_options(agentgym: Any, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["train"], ["train", "--help"]):
        shown = agentgym(*words)
        assert shown.code == 0 and shown.err == ""
        assert all(f"  {name}  " in shown.out for name in (*ONLINE, *OFFLINE))
    for name in (*ONLINE, *OFFLINE):
        shown = agentgym("train", name, "--help")
        assert (shown.code, shown.err) == (0, ""), name
        assert all(option in shown.out for option in ("--env", "--resume", "--learning_rate", "--help-all")), name
        with pytest.raises(SystemExit) as end:
            agentgym("train", name, "--help-all")
        shown = capfd.readouterr()
        assert (end.value.code, shown.err) == (0, ""), name
        assert "--config FILE" in shown.out
        assert all(option in shown.out for option in ("--env", "--tasks", "--resume", "--learning_rate")), name
        assert ("--gae-lambda" in shown.out) is (name in ONLINE)
        assert "--algorithm" not in shown.out  # the command sets it
        assert "--out OUTPUT_DIR" in shown.out and "--env-kwargs" in shown.out and "--max_steps" in shown.out
        for other in ("--output_dir", "--env_kwargs", "--max-steps", "--gae_lambda"):
            assert other not in shown.out, other


@pytest.mark.parametrize("name", ["reinforce++", "ppo"])
@pytest.mark.parametrize("words", [["--turn-level-advantage"], ["--step-advantage-weight", "0.5"]])
def test_group_options_are_refused_without_groups(name: str, words: list[str], train: Any) -> None:
    refused(train(name, *words), "--turn-level-advantage and --step-advantage-weight are for algorithms that compare")


@pytest.mark.parametrize("name", ["rloo", "reinforce++-baseline"])
def test_a_group_of_one_is_refused_by_grouped_algorithms(name: str, train: Any) -> None:
    refused(train(name, "--num_generations", "1"), f"{name} compares the episodes of a group", "at least 2")


def test_a_critic_that_does_not_load_is_refused(train: Any, tmp_path: Path) -> None:
    refused(train("ppo", "--critic-model", tmp_path / "nothing"), "critic", "nothing")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_invalid_demonstrations_are_refused(sft: Any, tmp_path: Path) -> None:
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


def test_directories_of_other_programs_are_refused(grpo: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused(grpo(out=tmp_path / "file"), "is a file", "--out")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "notes").write_text("theirs")
    refused(grpo(out=tmp_path / "theirs"), "is not empty and holds no run of ours")
    refused(grpo("--resume", out=tmp_path / "theirs"), "is not empty and holds no run of ours")
    (tmp_path / "theirs" / "run.json").write_text("[]")
    refused(grpo("--resume", out=tmp_path / "theirs"), "is not empty and holds no run of ours")


@pytest.mark.train
def test_directories_of_other_runs_are_refused(grpo: Any, tmp_path: Path) -> None:
    assert grpo("--max_steps", "1").code == 0
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    refused(grpo("--max_steps", "1"), "already holds a run", "--resume")
    refused(grpo("--seed", "7", "--resume"), "holds another run: its seed is 42, not 7")
    refused(grpo("--split", "test", "--resume"), "its split is 'train', not 'test'")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights
    assert len(played(tmp_path / "out", 0)) == 4


def test_usage_errors_propagate_to_callers() -> None:
    with pytest.raises(UsageError):
        parse(AgentConfig, ["--env", ENV, "--model", "m", "--out", "x", "--num_generations", "x"])
