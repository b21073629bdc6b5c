"""Runs of stock `python -m verl.trainer.main_ppo` on the CPU, each in its own folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_verl.rows import TaskRow
from tests.graded import KWARGS
from tests.plugins.leftovers import folder_with_short_path
from tests.plugins.startup import python_path

ROOT = Path(__file__).parents[3]
_MARK = "AGENTGYM_TEST_RUN"
_ENVIRONMENT = {
    "VERL_USE_EXTERNAL_MODULES": "tests.adapters.verl.cpu.plugin",
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "PYTHONPATH": python_path(*(ROOT / path for path in (".", "adapters/trl", "adapters/verl"))),
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_worker_prestart": "0",  # one process per logical CPU
    "RAY_worker_niceness": "0",  # Ray's 15 lets the tests of the other worker go first, and this one wait for minutes
    "HYDRA_FULL_ERROR": "1",
}
_OURS = ROOT / "adapters/verl/agentgym_verl/config"
_CPU = Path(__file__).parent / "cpu/config"
STOCK = ("+hardware=cpu", f"hydra.searchpath=[file://{_CPU}]")
"""verl's own configuration."""
OURS = (
    *("--config-path", str(_OURS), "--config-name", "agentgym", "hardware=cpu"),
    f"hydra.searchpath=[pkg://verl.trainer.config,file://{_CPU}]",
)
"""The adapter's."""
DUMP = "trainer.rollout_data_dir=rows"
"""Lets verl write the rows that each step trains on."""


@dataclass(frozen=True)
class Run:
    """The files of a run."""

    folder: Path
    returncode: int
    seconds: float
    metrics: dict[int, dict[str, Any]]
    """By verl's global step; 0 is the validation before training."""
    killed: list[str]
    """Processes that would have outlived the run."""

    @property
    def steps(self) -> list[int]:
        """The finished training steps."""
        return [step for step, metrics in self.metrics.items() if "training/global_step" in metrics]

    def played(self, name: str) -> list[Trajectory]:
        """The trajectories of `step-N` or `eval-N`."""
        return list(read_trajectories(self.folder / "trajectories" / f"{name}.rank0.jsonl"))

    def recorded(self) -> dict[str, list[Trajectory]]:
        """The usable trajectories of all training steps of the folder by the name of the episode in verl."""
        found: dict[str, list[Trajectory]] = defaultdict(list)
        for path in sorted((self.folder / "trajectories").glob("step-*.jsonl")):
            for trajectory in read_trajectories(path):
                found[str(trajectory.meta["uid"])] += [trajectory] if trajectory.usable else []
        return found

    def trained(self, step: int) -> list[str]:
        """The names of the episodes that a step trained on; needs `DUMP`. Fails if a row is used twice."""
        lines = (self.folder / "rows" / f"{step}.jsonl").read_text().splitlines()
        rows = [json.loads(line)["uid"] for line in lines]
        assert len(set(rows)) == len(rows), rows
        return [*dict.fromkeys(row.rpartition("_")[0] for row in rows if not row.startswith("pad"))]

    @property
    def log(self) -> str:
        """The end of the output."""
        return (self.folder / "run.log").read_text(errors="replace")[-6000:]


def make_rows(env_id: str, split: str, count: int, *, group: str = "depth-1", **kwargs: Any) -> list[TaskRow]:
    """The first tasks of a group of TextCraft, in TextCraft or an environment derived from it."""
    tasks = TextCraftEnv(**KWARGS).tasks.sample(count, split=split, groups=[group])
    return [
        TaskRow(env_id, task.id, seed, group, task.split, split != "train", {**KWARGS, **kwargs}, task.goal)
        for seed, task in enumerate(tasks)
    ]


def prepare(folder: Path, train: Sequence[TaskRow], val: Sequence[TaskRow]) -> Path:
    """A folder with a tiny untrained model and the datasets of a run."""
    from agentgym_trl.tiny import make_model, make_tokenizer  # takes seconds, and may not be installed
    from agentgym_verl.dataset import write_rows

    write_rows(folder / "train.parquet", train)
    write_rows(folder / "val.parquet", val)
    tokenizer = make_tokenizer(row.goal for row in train)
    make_model(tokenizer, hidden_size=64, layers=2).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder


def launch(
    folder: Path, *overrides: str, seconds: float = 900, until: Callable[[], bool] | None = None, name: str = "run"
) -> Run:
    """Train until the run ends; with `until`, interrupt it as Ctrl-C does once that is true.

    `overrides` are Hydra's: `STOCK` or `OURS`, and more.

    Raises AssertionError if it has not ended after that many seconds. No process outlives the call.
    """
    began, metrics, mark = time.monotonic(), folder / f"{name}.jsonl", {_MARK: uuid4().hex}
    environment = {**os.environ, **_ENVIRONMENT, **mark, "VERL_FILE_LOGGER_PATH": str(metrics)}
    with folder_with_short_path("agv-") as temp, (folder / "run.log").open("ab") as log:
        environment["RAY_TMPDIR"] = temp  # /tmp/ray may have the cluster of another user or run
        environment.pop("RAY_ADDRESS", None)
        command = [sys.executable, "-m", "verl.trainer.main_ppo", *overrides, "+size=tiny"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(process, began + seconds, until)
            ended = process.poll() is not None
        finally:
            killed = _end_all(mark[_MARK], connect_timeout=0 if process.poll() is None else 60)
    run = Run(folder, process.wait(), time.monotonic() - began, _read_metrics(metrics), killed)
    assert ended, f"it had not ended after {seconds} s:\n{run.log}"
    return run


def _wait(process: subprocess.Popen[bytes], deadline: float, until: Callable[[], bool] | None) -> None:
    while process.poll() is None and time.monotonic() < deadline:
        if until is not None and until():
            process.send_signal(signal.SIGINT)
            until = None
        time.sleep(0.2)


def _end_all(mark: str, connect_timeout: float) -> list[str]:
    """Wait for Ray's processes, which end a moment after their parent; returns those that did not."""
    deadline, killed = time.monotonic() + connect_timeout, set[str]()
    while left := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        if time.monotonic() > deadline:
            killed.update(name for process in left if (name := _kill(process)))
        time.sleep(0.2)
    return sorted(killed)


def _kill(process: psutil.Process) -> str:
    try:
        name = " ".join(process.cmdline())
        process.kill()
    except psutil.NoSuchProcess:
        return ""
    return name


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _read_metrics(path: Path) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        found[record["step"]].update(record["data"])
    return dict(found)
