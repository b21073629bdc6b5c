"""The arms of the comparison: ways to spend the same CPU time after the same warm start.

The controls (more imitation) run in a process of their own beside reinforcement learning, with one thread each.
"""

from __future__ import annotations

import json
import multiprocessing
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from agentgym_envs.errors import EngineError
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.callbacks import read_metrics
from agentgym_trl.demo import stages
from agentgym_trl.demo.quiet import quiet
from agentgym_trl.demo.settings import DemoSettings

WARM, GRPO, AGENTEVOL = "warm start", "GRPO", "AgentEvol"
MORE, WON = "more imitation", "imitation of wins"
CONTROLS = (MORE, WON)
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Arm:
    """A trained model, the CPU seconds of its training, and its evaluation on each set of held-out tasks."""

    name: str
    cpu_seconds: float
    measurements: list[stages.Measurement]


def train_arm(name: str, out: Path, settings: DemoSettings, console: Console) -> Path:
    """Train one arm from the warm start; return the directory of its model."""
    warm, model = out / folder(WARM), out / folder(name)
    if name == GRPO:
        return stages.reinforce(warm, model, settings, console, GRPO)
    demonstrations = list(read_trajectories(out / "demos.jsonl"))
    won = stages.won_in_time(demonstrations, settings)
    if name == AGENTEVOL:
        return stages.evolve(warm, model, won, settings, console)
    rows, steps = (demonstrations, settings.imitation_steps) if name == MORE else (won, settings.won_steps)
    args = stages.sft_config(model, settings, steps=steps, learning_rate=settings.imitation_learning_rate)
    return stages.imitate(warm, model, rows, args, console, name)


def run_arm(name: str, out: Path, settings: DemoSettings, console: Console) -> Arm:
    """Train an arm, measure it, and write its episodes and its CPU time."""
    began = time.process_time()
    model = train_arm(name, out, settings, console)
    return finish_arm(name, out, settings, model, time.process_time() - began)


def finish_arm(name: str, out: Path, settings: DemoSettings, model: Path, cpu_seconds: float) -> Arm:
    """Measure a trained arm, and write its episodes and its CPU time."""
    measured = stages.measure(model, settings)
    place = out / "evaluation" / folder(name)
    stages.write_measurements(place, measured)
    facts = {"cpu_seconds": round(cpu_seconds, 1), "measurements": [m.name for m in measured]}
    (place / "arm.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    return Arm(name, facts["cpu_seconds"], measured)  # type: ignore[arg-type]


def read_arm(name: str, out: Path) -> Arm:
    """Read an arm that another process has run."""
    place = out / "evaluation" / folder(name)
    facts = json.loads((place / "arm.json").read_text(encoding="utf-8"))
    measured = [stages.Measurement(m, _episodes(place, m)) for m in facts["measurements"]]
    return Arm(name, facts["cpu_seconds"], measured)


def folder(name: str) -> str:
    """The folder of an arm in the output directory."""
    return name.lower().replace(" ", "-")


class Background:
    """Arms that run in another process, which loads its libraries before they can begin."""

    def __init__(self, names: Sequence[str], out: Path, settings: DemoSettings) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        self._names, self._out, self._may_begin = names, out, context.Event()
        arguments = (tuple(names), out, settings, self._may_begin)
        self._process = context.Process(target=_run_controls, args=arguments, daemon=True)
        self._process.start()

    def begin(self) -> None:
        """Begin with the arms: the warm start is there."""
        self._may_begin.set()

    def wait(self, console: Console) -> list[Arm]:
        """Wait for the arms. Raises EngineError if one failed."""
        with console.status("") as status:
            while self._process.is_alive():
                status.update("waiting for the controls: " + _progress(self._names, self._out))
                self._process.join(_POLL_SECONDS)
        if self._process.exitcode:
            raise EngineError(f"the controls failed; {self._out / 'controls.log'} has the reason")
        return [read_arm(name, self._out) for name in self._names]

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()


def use_one_thread() -> None:
    """Prepare torch and transformers: two processes share the machine, and the demo has its own progress bars."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    torch.set_num_threads(1)


def _run_controls(names: Sequence[str], out: Path, settings: DemoSettings, may_begin: Any) -> None:
    quiet()
    use_one_thread()
    may_begin.wait()
    with open(out / "controls.log", "w", encoding="utf-8") as log:
        try:
            for name in names:
                run_arm(name, out, settings, Console(file=log))
        except BaseException:
            traceback.print_exc(file=log)
            raise SystemExit(1) from None


def _progress(names: Sequence[str], out: Path) -> str:
    steps = [(name, read_metrics(out / folder(name) / "metrics.jsonl")) for name in names]
    return ", ".join(f"{name} at step {int(rows[-1]['step'])}" for name, rows in steps if rows) or "starting"


def _episodes(place: Path, measurement: str) -> list[Trajectory]:
    return list(read_trajectories(place / stages.file_name(measurement)))
