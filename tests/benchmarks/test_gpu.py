"""`benchmarks.gpu`: the commands it runs and what it makes of their logs; on a machine without a GPU, on the CPU."""

import json
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.gpu_runs import SCENARIOS, SIZES, Amounts, Bench, grpo, options, together
from benchmarks.report.venvs import ROOT, thread_limits

pytestmark = pytest.mark.slow

STEP = {"step_time": 3.0, "time/generate": 2.0, "time/train": 0.5, "rollout/tokens": 100, "loss": 0.1}


class Dry(Bench):
    """Notes the commands instead of running them."""

    def __init__(self, work: Path, has_gpu: bool) -> None:
        self.work, self.amounts, self._sizes, self.gpu = work, Amounts(), SIZES, has_gpu
        self.halves = ([0], [1])
        self.commands: dict[str, tuple[list[str], Any]] = {}

    def run(self, name: str, words: Any, **settings: Any) -> dict[str, float]:
        self.commands[name] = ([str(word) for word in words], settings)
        return {"seconds": 1.0, "peak, MiB": 5.0}

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [{**STEP, "step_time": 99.0}, STEP, STEP]


def value(words: list[str], name: str) -> str:
    """The last value of an option, which is the one that counts."""
    return [after for word, after in pairwise(words) if word == name][-1]


def test_speed_runs_every_precision_on_cores_of_its_own(tmp_path: Path) -> None:
    bench = Dry(tmp_path, has_gpu=True)
    found = gpu.speed(bench)
    assert len(found) == 7 and found["large, gpu bfloat16, gradient checkpointing"]["step, s"] == 3
    runs = {name: bench.commands[name] for name in bench.commands if name.startswith("speed")}
    assert {name for name, (_, settings) in runs.items() if settings["cores"] == [0]} == {
        "speed-small-cpu-float32",
        "speed-large-cpu-float32",
    }
    assert value(runs["speed-small-gpu-float32"][0], "--bf16") == "false"
    assert value(runs["speed-large-gpu-bfloat16"][0], "--bf16") == "true"
    assert value(runs["speed-small-cpu-float32"][0], "--use-cpu") == "true"


def test_without_a_gpu_all_is_on_the_cpu(tmp_path: Path) -> None:
    assert value(Dry(tmp_path, has_gpu=False).device("bfloat16"), "--use-cpu") == "true"


def test_batches_hold_all_episodes() -> None:
    words = grpo(SCENARIOS["babyai"], Amounts(), rate=1e-5, micro_batch=16, max_steps=2)
    assert (value(words, "--per-device-train-batch-size"), value(words, "--gradient-accumulation-steps")) == ("16", "8")
    assert value(words, "--max-steps") == "2"


def test_the_first_step_is_not_counted() -> None:
    figures = gpu.step_figures([{**STEP, "step_time": 99.0}, STEP, {**STEP, "loss": float("nan")}])
    assert figures["step, s"] == 3 and figures["tokens a second"] == 50
    assert figures["losses are finite"] is False


def test_calls_run_together_in_order() -> None:
    assert together(partial(abs, -n) for n in range(3)) == [0, 1, 2]
    assert options(max_steps=3, bf16="true") == ["--max-steps", "3", "--bf16", "true"]


def test_a_part_that_fails_leaves_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    def broken(bench: Bench) -> dict[str, Any]:
        raise RuntimeError("no memory")

    monkeypatch.setattr(gpu, "PARTS", {"speed": broken})
    monkeypatch.setattr(gpu, "probe", lambda: {"gpu": None})
    found = gpu.measure(Dry(tmp_path, has_gpu=True), ["speed"], Console(quiet=True))
    assert found["speed"] == {"error": "RuntimeError: no memory"}


@pytest.mark.train
@pytest.mark.rotating
def test_cpu_and_cpu_agree(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [sys.executable, "-m", "benchmarks.gpu", "--quick", "--only", "agreement"]
    command += ["--work", str(tmp_path / "work"), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=thread_limits(), check=True, capture_output=True, timeout=900)
    found = json.loads(out.read_text(encoding="utf-8"))
    if found["machine"]["gpu"] is None:
        assert found["agreement"]["gpu float32, largest apart"] < 1e-5
        assert found["agreement"]["gpu float32, same tokens"] == 1
    assert found["agreement"]["gpu float32, masks are of the answers"]
