"""`agentgym verl train`: the command that it starts, and its checks before anything heavy starts."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentgym_envs.cli import main
from agentgym_envs.viewer.training import training_of

pytest.importorskip("pyarrow")

from agentgym_verl.cli.launch import command_of, launch, shown
from agentgym_verl.cli.overrides import CONFIG_DIR
from agentgym_verl.dataset import read_rows, write_rows
from agentgym_verl.rows import TaskRow
from tests.rollout.families import trl_template
from tests.waiting import SECONDS

CRAFT, BABY = "AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"
REACT = ["--env", "textcraft", "--agent", "react"]
AGENT = [*REACT, "--context", "last:2"]
Train = Callable[..., tuple[int, str, str]]


@pytest.fixture
def agentgym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Train:
    """Run `agentgym ...` in an empty folder; returns the exit code, its stdout and its stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("AGENTGYM_DEBUG", "")

    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def train(agentgym: Train, request: pytest.FixtureRequest) -> Train:
    """`agentgym verl train grpo` with `--out out` and a model, which exists if it is needed."""
    needed = request.node.get_closest_marker("slow") is not None
    model = request.getfixturevalue("model_path") if needed else "model"
    return lambda *words: agentgym("verl", "train", "grpo", "--model", model, "--out", "out", *words)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """The commands and environments of the processes that would be started; none is, and each counts as failed."""
    found: list[tuple[list[str], dict[str, str]]] = []

    def note(command: list[str], environ: dict[str, str]) -> int:
        found.append((command, environ))
        return 1

    monkeypatch.setattr("agentgym_verl.cli.runs.launch", note)
    return found


def test_the_commands_are_listed(agentgym: Train) -> None:
    assert "verl" in agentgym("--help")[1]
    for words in ([], ["--help"]):
        code, out, _ = agentgym("verl", *words)
        assert code == 0 and all(name in out for name in ("data", "train", "config-path"))
    assert all(option in agentgym("verl", "train", "--help")[1] for option in ("--scenario", "--dry-run", "KEY=VALUE"))
    assert agentgym("verl", "config-path")[1].strip() == CONFIG_DIR


def test_without_verl_the_extra_is_named(agentgym: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec
    monkeypatch.delitem(sys.modules, "verl", raising=False)
    monkeypatch.setattr(PathFinder, "find_spec", lambda name, *rest: None if name == "verl" else find(name, *rest))
    code, _, err = agentgym("verl", "data", "textcraft", "--out", "out")
    assert code == 1 and "pip install 'agentgym-envs[verl]'" in err and not Path("out").exists()


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    "words, part",
    [
        ([], "no tasks were given: give --scenario, --env or --data"),
        (["--scenario", "chess"], "--scenario must be one of babyai, sciworld, search, textcraft, webarena; got"),
        (["--env", "textcraft", "--horizon", "fixed"], "--horizon selects settings of a --scenario; give a scenario"),
        (["--scenario", "textcraft", "--horizon", "short"], "--horizon must be one of fixed, scaling; got 'short'"),
        (["--env", "textcraft", "--hardware", "gpu3"], "--hardware must be one of gpu1, gpu8, nodes; got 'gpu3'"),
        (["--env", "textcraft", "--engine", "hf"], "--engine must be one of sglang, vllm; got 'hf'"),
        (["--env", "textcraft", "--mode", "async"], "--mode must be one of colocate_async, separate_async, sync"),
        (["--env", "textcraft", "--data", "x"], "--data has the tasks already; leave out --env"),
        (["--env", "textcraft", "trainer"], "have the form KEY=VALUE, as in trainer.total_epochs=3; got 'trainer'"),
        (["--env", "textcraft", "--every", "0"], "--every"),
        (["--env", "textcraft", "--loss-average", "turn"], "agentgym train ALGORITHM --loss-average turn"),
        (["--env", "textcraft", "--loss-average", "row"], "no --loss-average 'row'; choose from token, episode"),
        (["--env", "textcraft", "--chat-template", "none.jinja"], "the chat template none.jinja cannot be read"),
    ],
)
def test_invalid_options_print_one_line(words: list[str], part: str, train: Train) -> None:
    code, _, err = train(*words)
    lines = [line for line in err.splitlines() if line.strip()]
    assert code == 2 and len(lines) == 1 and part in lines[0], err
    assert not Path("out").exists()


def test_an_unknown_algorithm_is_refused(agentgym: Train) -> None:
    code, _, err = agentgym("verl", "train", "dqn", "--model", "m", "--out", "out", "--env", "textcraft")
    assert (
        code == 2
        and "there is no algorithm 'dqn'; choose from grpo, rloo, reinforce++, reinforce++-baseline, ppo" in err
    )


def test_the_command_runs_the_entry_point_of_verl() -> None:
    command = command_of(["a=b", "c='d e'"])
    assert command[1:3] == ["-m", "verl.trainer.main_ppo"] and command[0] == sys.executable
    assert shlex.split(shown(command).replace("\\\n", "")) == command


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_exit_code_is_that_of_the_process() -> None:
    assert launch(python("import os, sys; sys.exit(int(os.environ['CODE']))"), {"CODE": "7"}) == 7
    assert launch(python("import os; os.kill(os.getpid(), 9)"), {}) == 137
    assert launch(python(""), {}) == 0


_WAIT = """
import signal, sys, time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(5)
"""


def ours(code: str, before: str = "") -> dict[str, Any]:
    """Arguments of `Popen`: a process of ours that launches one with that code; `before` runs first.

    Signals are as in a terminal, even if the tests were started with ignored ones (nohup, a background shell).
    """
    text = (
        "import signal, sys\nfrom agentgym_verl.cli.launch import launch\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        f"{before}\nsys.exit(launch([sys.executable, '-c', {code!r}], {{}}))"
    )
    return {"args": python(text), "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "number, code, printed",
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_signals_are_forwarded(number: int, code: int, printed: str) -> None:
    """Once, to the subprocess; our process lives until that one has ended."""
    with subprocess.Popen(**ours(_WAIT), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(SECONDS) == code
        assert process.stdout.read().strip() == printed


@pytest.mark.slow
def test_ignored_signals_are_not_forwarded() -> None:
    code = "import os, signal; os.kill(os.getppid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGHUP)"
    process = subprocess.run(**ours(code, "signal.signal(signal.SIGHUP, signal.SIG_IGN)"), timeout=SECONDS)
    assert process.returncode == 0


def test_the_viewer_reads_verls_metrics(tmp_path: Path) -> None:
    """Also those of a resumed run, for which verl starts another file."""
    lines = [{"step": step, "data": {"actor/loss": step / 10, "training/x": None}} for step in (1, 2, 3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = {"step": 3, "data": {"actor/loss": 9.0}}
    (tmp_path / "metrics.jsonl.2").write_text(json.dumps(again) + "\n")
    (tmp_path / "metrics.jsonl.10").write_text(json.dumps({"step": 4, "data": {"actor/loss": 10.0}}) + "\n")
    (run,) = training_of([tmp_path], [])["runs"]
    assert [(row["step"], row["actor/loss"]) for row in run["rows"]] == [(1, 0.1), (2, 0.2), (3, 9.0), (4, 10.0)]
    assert run["series"] == ["actor/loss"]


def stock(words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    """The configuration that verl's own `main_ppo` composes of a command."""
    monkeypatch.setattr(sys, "argv", [*words, "--cfg", "job", "--resolve"])
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    return yaml.safe_load(capfd.readouterr().out)


class TestComposed:
    """Tests that need verl's configuration: ten seconds once, and two per test."""

    pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stub", "parsed_once")]  # noqa: RUF012

    def test_a_dry_run_prints_everything_and_writes_nothing(self, train: Train, model_path: Path) -> None:
        more = ("trainer.total_epochs=3", "actor_rollout_ref.rollout.n=4", "trainer.total_epochs=4")
        code, out, err = train("--scenario", "babyai", "--tasks", "40", "--hardware", "gpu8", *more, "--dry-run")
        assert code == 0, err
        assert not Path("out").exists()
        command = shlex.split(out[: out.index("\nmodel_engine")].replace("\n#", "\n").replace("\\\n", "")[1:])
        assert command[1:4] == ["-m", "verl.trainer.main_ppo", "--config-path"]
        assert command[-3:] == list(more)  # the user's overrides come last
        config = yaml.safe_load(out)
        folder = Path("out").absolute()
        assert config["actor_rollout_ref"]["model"]["path"] == str(model_path)
        assert config["actor_rollout_ref"]["rollout"]["n"] == 4 and config["trainer"]["total_epochs"] == 4
        assert config["agentgym"]["max_turns"] == "6,13,20" and config["trainer"]["n_gpus_per_node"] == 8
        assert config["data"]["train_files"] == str(folder / "data" / "train.parquet")
        assert config["trainer"]["default_local_dir"] == str(folder / "checkpoints")
        assert config["agentgym"]["trajectories"] == str(folder / "trajectories")
        environ = config["ray_kwargs"]["ray_init"]["runtime_env"]["env_vars"]
        assert environ == {"VERL_FILE_LOGGER_PATH": str(folder / "metrics.jsonl")}

    def test_ppo_has_a_critic(self, agentgym: Train, model_path: Path) -> None:
        words = ("verl", "train", "ppo", "--env", "textcraft", "--out", "out", "--dry-run", "--model")
        code, out, err = agentgym(*words, model_path)
        assert code == 0, err
        config = yaml.safe_load(out)
        assert config["critic"]["model"]["path"] == str(model_path)
        assert config["algorithm"]["adv_estimator"] == "gae"
        code, _, err = agentgym(*words, "/no/model")
        assert code == 2 and "the tokenizer of '/no/model' does not load" in err

    def test_stock_verl_composes_the_same_configuration(
        self, train: Train, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        out = train("--env", "textcraft", "--dry-run")[1]
        command = shlex.split(out[: out.index("\nmodel_engine")].replace("\n#", "\n").replace("\\\n", "")[1:])
        assert command[1:3] == ["-m", "verl.trainer.main_ppo"]
        beside = [word.replace("--config-path", "--config-dir") for word in command]
        for words in (command, beside):
            assert stock(words[2:], monkeypatch, capfd) == yaml.safe_load(out)

    def test_max_turns_and_lengths_are_set_without_a_scenario(self, train: Train) -> None:
        words = ("--env", "textcraft:3", "--env", "babyai", "--max-turns", "TextCraft=5,10;BabyAI=6", "--every", "7")
        code, out, err = train(*words, "--eval-max-turns", "9", "--backend", "local", "--tasks", "40", "--dry-run")
        assert code == 0, err
        config = yaml.safe_load(out)
        block = config["agentgym"]
        assert (block["max_turns"], block["every"]) == ("TextCraft=5,10;BabyAI=6", 7)
        assert (block["eval_max_turns"], block["backend"]) == (9, "local")
        assert config["actor_rollout_ref"]["rollout"]["max_model_len"] == 1024 + 8192
        assert "paper" not in config

    @pytest.mark.rotating(always=4)
    @pytest.mark.parametrize(
        "words, part",
        [
            (["--env", "chess"], "there is no environment 'chess'"),
            (["--env", "textcraft", "--env-kwargs", '{"speed": 1}'], f"{CRAFT} does not take these arguments"),
            (["--env", "textcraft", "--max-turns", "30,10", "--every", "3"], "turn limits must not decrease"),
            (["--env", "textcraft", "--max-turns", "10,30"], "need the number of training steps of a stage"),
            (["--env", "textcraft", "--max-turns", "BabyAI=3"], "schedules for each environment must name them all"),
            (["--env", "textcraft", "--backend", "moon"], "agentgym.backend must be one of auto, local, process, ray"),
            (["--env", "textcraft", "agentgym.round=3"], "Could not override 'agentgym.round'"),
            (["--env", "textcraft", "trainer.epochs=3"], "Could not override 'trainer.epochs'"),
            (["--env", "textcraft", "trainer.total_epochs={"], "does not compose"),
            (["--env", "textcraft", "+agentgym.round=3"], "there is no setting agentgym.round"),
            (["--env", "textcraft", "--tasks", "20"], "a step has 32 tasks (data.train_batch_size), and there are"),
            (["--env", "textcraft", "data.train_batch_size=12"], "(12) must be a multiple of"),
            (["--env", "textcraft", "--hardware", "gpu8", "trainer.nnodes=3"], "24 processes cannot divide evenly"),
            (["--env", "textcraft", "actor_rollout_ref.rollout.n=1"], "grpo compares episodes"),
            (["--env", "textcraft", "--mode", "separate_async", "data.train_batch_size=16"], "parameter_sync_step (4)"),
            (
                ["--env", "textcraft", "--mode", "separate_async", "actor_rollout_ref.actor.strategy=fsdp2"],
                "loses optimizer steps",
            ),
            (["--env", "textcraft", "data.max_response_length=20000"], "increase it"),
            (["--env", "textcraft", "actor_rollout_ref.rollout.max_model_len=99"], "(99) is less than"),
            (["--env", "textcraft", "trainer.use_v1=false"], "verl's older trainer"),
            (["--env", "textcraft", "actor_rollout_ref.actor.use_dynamic_bsz=false"], "ppo_micro_batch_size_per_gpu"),
            (["--env", "textcraft", "--groups", "depth-9"], "has no group 'depth-9'"),
            (["--env", "textcraft", "--context", "last:2"], "agentgym.context last:2 needs an agent"),
            ([*REACT, "--env-kwargs", '{"grammar": "bare"}'], "the grammar 'bare' cannot hold a thought"),
            (
                [*AGENT, "algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=reward"],
                "set it to score",
            ),
            ([*AGENT, "actor_rollout_ref.rollout.enable_rollout_routing_replay=true"], "experts of one sequence"),
            (["--data", "nowhere"], "nowhere/train.parquet cannot be read"),
            (["--data", "nowhere", "--tools"], "leave out --env, --env-kwargs and --tools"),
            (["--env", "textcraft", "--tools", "--env-kwargs", '{"grammar": "react"}'], "--tools selects the grammar"),
        ],
    )
    def test_invalid_settings_are_refused_before_verl_starts(self, words: list[str], part: str, train: Train) -> None:
        code, _, err = train(*words)
        lines = [line for line in err.splitlines() if line.strip()]
        assert code == 2 and len(lines) == 1 and part in lines[0], err
        assert not Path("out").exists()

    def test_agents_contexts_and_templates_are_options(self, train: Train, tmp_path: Path) -> None:
        template = tmp_path / "thinking.jinja"
        template.write_text(trl_template("qwen3"))
        words = ("--agent", "reflect", "--context", "summarise:3", "--attempts", "2", "--loss-average", "token")
        code, out, err = train("--env", "textcraft", *words, "--chat-template", template, "--dry-run")
        assert code == 0, err
        config = yaml.safe_load(out)
        block, policy = config["agentgym"], config["actor_rollout_ref"]
        assert [block[name] for name in ("agent", "context", "attempts")] == ["reflect", "summarise:3", 2]
        assert policy["actor"]["loss_agg_mode"] == "token-mean" == config["critic"]["loss_agg_mode"]
        assert policy["model"]["custom_chat_template"] == template.read_text()
        code, _, err = train("--env", "textcraft", "--chat-template", template, "--keep-thoughts", "--dry-run")
        assert code == 2 and "not prefix-preserving" in err

    def test_a_model_that_cannot_be_trained_is_refused(self, agentgym: Train, model_path: Path) -> None:
        words = ["verl", "train", "grpo", "--env", "textcraft", "--out", "out", "--model"]
        code, _, err = agentgym(*words, "/no/model")
        assert code == 2 and "the tokenizer of '/no/model' does not load" in err
        bad = "{% for m in messages %}{{ m.content[:20] }}<|im_end|>{% endfor %}"
        template = f"actor_rollout_ref.model.custom_chat_template='{bad}'"
        code, _, err = agentgym(*words, model_path, template)
        assert code == 2 and "the chat template shows parts of earlier messages" in err, err
        plain = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        plain += "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
        template = f"actor_rollout_ref.model.custom_chat_template='{plain}'"
        code, _, err = agentgym(*words, model_path, template, "--tools")
        assert code == 2 and "cannot be used with native tools" in err, err
        assert not Path("out").exists()

    def test_an_unregistered_agent_loop_is_refused(self, train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VERL_USE_EXTERNAL_PLUGINS", "none")
        code, _, err = train("--env", "textcraft")
        assert code == 2 and "VERL_USE_EXTERNAL_PLUGINS=none stops verl from loading the agent loop" in err

    def test_a_run_claims_its_directory_and_resumes(
        self, train: Train, launched: list[Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        words, environ = ("--env", "textcraft", "--tasks", "32", "--groups", "depth-1"), dict(os.environ)
        code, _, err = train(*words)
        assert code == 1 and "run the same command with --resume" in err
        out, (command, given) = Path("out"), launched.pop()
        assert command[0] == sys.executable and given == environ
        assert stock(command[2:], monkeypatch, capfd) == yaml.safe_load((out / "config.yaml").read_text())
        settings = json.loads((out / "run.json").read_text())
        assert (settings["algorithm"], settings["env"], settings["groups"]) == ("grpo", [f"{CRAFT}:1"], ["depth-1"])
        files = [out / "data" / name for name in ("train.parquet", "val.parquet")]
        before = [path.stat().st_mtime_ns for path in files]
        assert len(read_rows(files[0])) == 32

        assert "already holds a run; continue it with --resume, or choose another --out" in train(*words)[2]
        code, _, err = train(*words, "--seed", "1", "--resume")
        assert code == 2 and "holds another run: its seed is 0, not 1" in err
        assert not launched
        (out / "metrics.jsonl").touch()
        code, _, err = train(*words, "--resume")
        log = f"VERL_FILE_LOGGER_PATH={out.absolute()}/metrics.jsonl.1"
        assert code == 1 and log in err and any(word.endswith(log) for word in launched[0][0])
        assert [path.stat().st_mtime_ns for path in files] == before

    def test_an_existing_dataset_is_used(self, train: Train, tmp_path: Path) -> None:
        rows = [TaskRow(env, task, 0) for env, task in ((CRAFT, "textcraft/1"), (BABY, "x")) for _ in range(20)]
        for name in ("train.parquet", "val.parquet"):
            write_rows(tmp_path / "data" / name, rows)
        code, out, err = train("--data", "data", "--dry-run")
        assert code == 0, err
        assert yaml.safe_load(out)["data"]["val_files"] == str(tmp_path / "data" / "val.parquet")
        code, _, err = train("--data", "data", "--max-turns", "TextCraft=3")
        assert code == 2 and "schedules for each environment must name them all: BabyAI; got TextCraft" in err
        write_rows(tmp_path / "data" / "train.parquet", [*rows, TaskRow("Toy/Maze-v0", "x", 0)])
        code, _, err = train("--data", "data")
        assert code == 2 and "there is no environment 'Toy/Maze-v0'" in err
