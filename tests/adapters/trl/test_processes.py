"""Several launched processes: they train like one process, wait for each other, stop and resume together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from safetensors.torch import load_file

from agentgym_envs.trajectory import read_trajectories
from tests.adapters.trl import processes
from tests.adapters.trl.forked import Forked
from tests.adapters.trl.small import DEPTH, ENV, metrics
from tests.graded import KWARGS
from tests.plugins.startup import python_path
from tests.ports import free_port

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="gloo and POSIX signals"),
]
ROOT = Path(__file__).parents[3]
CONFIGS = Path(str(resources.files("agentgym_trl") / "configs"))
LAUNCHERS = ["ddp-cpu-2", "fsdp-8gpu", "deepspeed-zero2-8gpu", "deepspeed-zero3-8gpu"]
SECONDS = 300
"""After which a launch counts as hung; it takes 15 s on an idle machine."""


def launch(*words: object, config: str = "ddp-cpu-2", more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """`accelerate launch` with one of our configurations; the processes end with their launcher."""
    options = ["--config_file", str(CONFIGS / f"{config}.yaml"), "--main_process_port", "0", *more]
    path = python_path(ROOT, ROOT / "adapters" / "trl")
    return subprocess.Popen(
        [sys.executable, "-m", "accelerate.commands.launch", *options, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "AGENTGYM_DEBUG": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = SECONDS) -> tuple[int, str]:
    """The exit code and stderr. Sends the launcher a signal first if needed, since it then ends its processes."""
    try:
        _, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
        pytest.fail(f"hung for {seconds} s:\n{err[-5000:]}")
    return process.returncode, err


def run(*words: object, **kwargs: Any) -> str:
    code, err = finish(launch(*words, **kwargs))
    assert code == 0, err[-5000:]
    return err


def left(out: Path, name: str) -> list[dict[str, Any]]:
    """The state that each process wrote for a task."""
    return [torch.load(path, weights_only=False) for path in sorted(out.glob(f"{name}.?.pt"))]


def run_forked(*words: object, folder: Path) -> None:
    """Run the program in two processes, as `accelerate launch` does, but forked from one that has imported TRL."""
    code = f"import runpy; runpy.run_module({processes.__name__!r}, run_name='__main__')"
    path = python_path(ROOT, ROOT / "adapters" / "trl")
    fixed = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    fixed |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        Forked(code, [*map(str, words)], fixed | {"RANK": rank, "LOCAL_RANK": rank}, folder / f"rank{rank}.err")
        for rank in "01"
    ]
    deadline = time.monotonic() + SECONDS
    try:
        while {rank.poll() for rank in ranks} in ({None}, {None, 0}) and time.monotonic() < deadline:
            time.sleep(0.1)  # if one fails, the other would wait for it
    finally:
        for rank in ranks:
            rank.kill()
    errors = [rank.communicate(60)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Path:
    out = tmp_path_factory.mktemp("two")
    run_forked(out, model_path, "compare", "together", folder=out)
    return out


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Path:
    out = tmp_path_factory.mktemp("one")
    processes.compare(out, model_path)
    return out


def joined(parts: list[torch.Tensor], width: int) -> torch.Tensor:
    """The batches of two processes; each pads to its own longest episode."""
    if parts[0].dim() == 1:
        return torch.cat(parts)
    return torch.cat([torch.nn.functional.pad(part, (0, width - part.size(1))) for part in parts])


VALUES = ("value_mask", "value_targets", "old_values")


@pytest.mark.parametrize("case", list(processes.CASES))
def test_two_processes_train_like_one(case: str, one: Path, two: Path) -> None:
    (alone,), both = left(one, case), left(two, case)
    assert len(both) == 2 and len(alone["outputs"]) == processes.STEPS
    for step, output in enumerate(alone["outputs"]):
        for name in ("advantages", *(VALUES if case == "ppo" else ())):
            found = joined([part["outputs"][step][name] for part in both], output["completion_ids"].size(1))
            read = output["value_mask"] if name in VALUES else torch.ones(())  # the values of padding differ
            torch.testing.assert_close(found * read, output[name] * read, atol=1e-5, rtol=1e-5)
        assert output["advantages"].abs().max() > 0.1
    for part in both:
        for model in ("policy", "critic"):
            torch.testing.assert_close(part[model], alone[model], atol=1e-5, rtol=1e-4)


PREFIXES = ("effective_sample_size", "sampler_kl", "rollout/", "reward", "critic/", "num_tokens", "grad_norm")


@pytest.mark.parametrize("case", list(processes.CASES))
def test_two_processes_log_the_metrics_of_one(case: str, one: Path, two: Path) -> None:
    (alone,), both = left(one, case), left(two, case)
    for row, *others in zip(alone["log"], *(part["log"] for part in both), strict=True):
        names = [name for name in row if name.startswith(PREFIXES) and not name.endswith("_per_second")]
        for other in others:
            assert {name: other[name] for name in names} == pytest.approx({name: row[name] for name in names}, abs=1e-4)
    assert len(alone["log"]) > processes.STEPS


def test_a_process_without_episodes_keeps_generating(two: Path) -> None:
    """Six turns in one process and one in the other, failures and retries in one: equal numbers of calls."""
    first, second = left(two, "together")
    row = first["log"][0]
    assert row["rollout/resampled_groups"] == 1 and row["rollout/zero_variance_groups"] == 1.0
    assert row["rollout/retried"] == 3
    assert first["idle"] > 0 and second["idle"] == 0
    assert first["calls"] + first["idle"] == second["calls"] + second["idle"]
    assert row == pytest.approx(second["log"][0] | {name: row[name] for name in row if "time" in name}, abs=1e-6)


@pytest.mark.rotating
def test_sharded_weights_are_trained_and_saved_whole(model_path: Path, tmp_path: Path) -> None:
    more = ("--num_processes", "2", "--mixed_precision", "no")
    run(processes.__file__, tmp_path, model_path, "sharded", config="fsdp-8gpu", more=more)
    first, second = left(tmp_path, "sharded")
    assert first["shards"] and first["idle"] > 0
    assert first["calls"] + first["idle"] == second["calls"] + second["idle"]
    whole = load_file(model_path / "model.safetensors")
    saved = load_file(tmp_path / "sharded" / "checkpoint-2" / "model.safetensors")
    assert saved.keys() - {"lm_head.weight"} == whole.keys()  # which is tied to the embedding
    for name, (rows, *_) in first["shards"].items():
        assert rows + second["shards"][name][0] == whole[name].shape[0], name
        assert saved[name].shape == whole[name].shape
    assert any(not torch.equal(saved[name], whole[name]) for name in whole)
    assert [row["step"] for row in first["resumed"] if "loss" in row] == [1, 2, 3]
    for part in (first, second):  # only one process loads the weights
        for name, weight in part["critic"].items():
            if name.startswith("backbone."):
                torch.testing.assert_close(weight, whole[name.replace("backbone.", "model.")])


@pytest.mark.rotating
def test_processes_share_the_held_out_tasks(model_path: Path, tmp_path: Path) -> None:
    more = ("--num_processes", "2", "--mixed_precision", "no")
    run(processes.__file__, tmp_path, model_path, "evaluated", config="fsdp-8gpu", more=more)
    first, second = left(tmp_path, "evaluated")
    rows = [[row for row in part["log"] if "eval/success" in row] for part in (first, second)]
    assert rows[0] == rows[1] and [(row["step"], row["eval/tasks"]) for row in rows[0]] == [(0, 5), (1, 5)]
    assert first["calls"] + first["idle"] == second["calls"] + second["idle"] and first["idle"] > 0
    names = ("eval-1.jsonl", "eval-1.rank1.jsonl")
    folder = tmp_path / "evaluated"
    assert [len(list(read_trajectories(folder / "trajectories" / name))) for name in names] == [3, 2]
    whole, best = (load_file(path / "model.safetensors") for path in (model_path, folder / "best"))
    for name, weight in whole.items():  # no episode is won, so the first model stays the best
        torch.testing.assert_close(best[name], weight)


def words(model: Path, out: Path, *more: object) -> list[object]:
    small = ["--per_device_train_batch_size", 2, "--num_generations", 4, "--max_completion_length", 200]
    env = ["--env", ENV, "--env-kwargs", json.dumps(KWARGS), "--groups", *DEPTH, "--model", model, *small]
    fixed = ["--max-turns", 2, "--max-turn-tokens", 8, "--use_cpu", "--report_to", "none", "--out", out]
    return ["-m", "agentgym_envs", "train", "grpo", *env, *fixed, *more]


def played(out: Path, step: int) -> list[int]:
    """The number of episodes of a step that each process recorded."""
    names = [f"step-{step}.jsonl", f"step-{step}.rank1.jsonl"]
    return [len(list(read_trajectories(out / "trajectories" / name))) for name in names]


@pytest.mark.rotating
def test_the_command_stops_and_resumes(model_path: Path, tmp_path: Path) -> None:
    """The launcher forwards Ctrl-C; after one more step there is one checkpoint of both processes."""
    out = tmp_path / "out"
    process = launch(*words(model_path, out, "--max_steps", 2000))
    deadline = time.monotonic() + SECONDS
    while not (out / "trajectories" / "step-2.jsonl").exists():
        assert process.poll() is None and time.monotonic() < deadline, finish(process, 1)
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = finish(process)
    assert err.count("Stopping after this step") == err.count("Stopped at step") == 1, err
    assert "KeyboardInterrupt" not in err
    (checkpoint,) = out.glob("checkpoint-*")
    done = int(checkpoint.name[11:])
    assert 3 <= done < 2000
    assert {"agentgym-rank0.pt", "agentgym-rank1.pt", "trainer_state.json"} <= {p.name for p in checkpoint.iterdir()}

    err = run(*words(model_path, out, "--max_steps", done + 2, "--resume"))
    assert err.count("Done:") == 1, err
    assert [played(out, step) for step in range(done + 2)] == [[2, 2]] * (done + 2)
    assert not (out / "trajectories" / f"step-{done + 2}.jsonl").exists()
    assert [row["step"] for row in metrics(out) if "loss" in row] == list(range(1, done + 3))
    assert (out / "model.safetensors").exists()


@pytest.mark.parametrize("name", LAUNCHERS)
def test_accelerate_reads_the_launcher_configurations(name: str) -> None:
    path = str(CONFIGS / f"{name}.yaml")
    config = load_config_from_file(path)  # raises on keys that it does not know
    args = launch_command_parser().parse_args(["--config_file", path, "script.py"])
    inner = {**(getattr(config, "fsdp_config", None) or {}), **(getattr(config, "deepspeed_config", None) or {})}
    assert inner.keys() <= vars(args).keys(), "accelerate would pass over the others without a word"
    args, *_ = _validate_launch_command(args)
    assert args.num_processes == (2 if "cpu" in name else 8)
    args.main_process_port = None
    if args.use_deepspeed:
        args.deepspeed_fields_from_accelerate_config = ""
        env = prepare_deepspeed_cmd_env(args)[1]
        assert env["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == name[len("deepspeed-zero")]
        return
    env = prepare_multi_gpu_env(args)
    assert env.get("FSDP_VERSION") == ("2" if "fsdp" in name else None)
    assert args.multi_gpu == ("ddp" in name)
