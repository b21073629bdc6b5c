"""Which share of a training step is spent outside the model: what do the environments and the suite cost?

    python -m benchmarks.overhead [--out FILE.json] [--only TextCraft ...] [--steps 8] [--repeats 3]

Real training steps of `AgentTrainer` (GRPO) on the CPU, one thread, with a model of 0.6 million
parameters after a short warm start. Wall time of a step, as the trainer logs it: "generate" is the model that answers,
"train" the passes forward and backward, "environment" what of the rollout is not the model's: environments, prompts,
tokens and masks, records; "other" is the rest: advantages, padding. The optimizer's own step and the log come after
what the trainer times, and are in none of them. The first step of a run is not counted. Each repeat is a run of its
own, with another seed, in a process of its own.

A model this small answers in a millisecond or two a turn, so the same environments take a larger share here than beside
a model that one would want to train on the same core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.invented_worlds import InventedWorlds

PARTS = ("generate", "train", "environment", "other")
EPISODES = 64


@dataclass(frozen=True, slots=True)
class TextCraftSettings(InventedWorlds):
    """Invented worlds with fewer episodes a step."""

    demonstrations: int = 100
    warm_steps: int = 60
    steps: int = 8
    tasks_per_step: int = EPISODES // 8
    max_turns: str = "6"
    every: int = 1000


@dataclass(frozen=True, slots=True)
class BabyAISettings(TextCraftSettings):
    """A room in which something is to be gone to, by macro actions."""

    max_turn_tokens: int = 16
    max_tokens: int = 1024
    max_prompt_chars: int = 1200
    max_turns: str = "4"

    @property
    def env_id(self) -> str:
        """The environment and its settings."""
        return "AgentGym/BabyAI-v0"

    @property
    def groups(self) -> tuple[str, ...]:
        """Those of the level."""
        return ("GoTo",)

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """One level, without rules in English."""
        return {"levels": "GoToLocalS5N2", "groups": self.groups, "instructions": ""}


@dataclass(frozen=True, slots=True)
class SearchSettings(TextCraftSettings):
    """Questions of one hop over the packaged corpus, with one passage a search."""

    max_turn_tokens: int = 32
    max_tokens: int = 1024
    max_prompt_chars: int = 400
    max_turns: str = "2"

    @property
    def env_id(self) -> str:
        """The environment and its settings."""
        return "AgentGym/Search-v0"

    @property
    def groups(self) -> tuple[str, ...]:
        """Of one hop."""
        return ("1hop-country",)

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Without rules in English."""
        return {"groups": self.groups, "instructions": "", "top_k": 1}


SETTINGS: Mapping[str, Callable[..., TextCraftSettings]] = {
    "TextCraft": TextCraftSettings,
    "BabyAI": BabyAISettings,
    "Search": SearchSettings,
}


def run_one(name: str, steps: int, seed: int, out: Path) -> list[dict[str, Any]]:
    """Train in this process; what the trainer logged, a row a step."""
    from agentgym_trl.demo import stages

    settings, console = SETTINGS[name](seed=seed, steps=steps + 1), Console(stderr=True)
    tiny = stages.make_tiny_model(out, settings)
    warm = stages.warm_start(tiny, out / "warm", stages.make_demonstrations(out, settings), settings, console)
    stages.reinforce(warm, out / "run", settings, console, title=name)
    return stages.training_curve(out / "run")


def launch(name: str, steps: int, seed: int) -> list[dict[str, Any]]:
    """The same in a process of its own, with one thread."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        command = [sys.executable, "-m", "benchmarks.overhead", "--steps", str(steps)]
        quiet = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}
        environ = {**os.environ, **quiet, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        subprocess.run([*command, "--one", name, str(seed), folder], check=True, env=environ)
        return json.loads(Path(folder, "curve.json").read_text(encoding="utf-8"))


def parts_of(row: Mapping[str, float]) -> dict[str, float]:
    """Seconds of a step, by part; those of `other` are what is left."""
    parts = {"generate": row["time/generate"], "train": row["time/train"], "environment": row["time/env"]}
    return {**parts, "other": max(0.0, row["step_time"] - sum(parts.values()))}


def figures_of(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of a run: medians over its steps without the first, and shares of their sum."""
    steps = [parts_of(row) for row in rows if "time/env" in row][1:]
    seconds = {part: statistics.median(step[part] for step in steps) for part in PARTS}
    whole = sum(seconds.values())
    turns = statistics.median(row["rollout/turns"] for row in rows if "time/env" in row)
    figures = {f"{part}, s": value for part, value in seconds.items()}
    figures |= {f"{part}, %": 100 * value / whole for part, value in seconds.items()}
    figures["environment and other, %"] = figures["environment, %"] + figures["other, %"]
    figures["environment, ms a turn"] = 1e3 * seconds["environment"] / (EPISODES * turns)
    step_time = statistics.median(row["step_time"] for row in [row for row in rows if "time/env" in row][1:])
    return {**figures, "step, s": step_time, "turns an episode": turns}


def scenario(name: str, steps: int, repeats: int) -> dict[str, Any]:
    """Medians over runs, and every run."""
    runs = [figures_of(launch(name, steps, seed)) for seed in range(repeats)]
    samples = {figure: [round(run[figure], 5) for run in runs] for figure in runs[0]}
    median = {figure: statistics.median(values) for figure, values in samples.items()}
    settings = asdict(SETTINGS[name](steps=steps))
    return {"median": median, "samples": samples, "settings": settings}


def show(result: Mapping[str, Any]) -> None:
    table = Table("scenario", "step, s", title=f"A training step of {EPISODES} episodes, tiny model, CPU; shares in %")
    for part in (*PARTS, "environment and other"):
        table.add_column(part, justify="right")
    for name, row in result["scenarios"].items():
        median = row["median"]
        shares = (f"{median[f'{part}, %']:.1f}" for part in (*PARTS, "environment and other"))
        table.add_row(name, f"{median['step, s']:.2f}", *shares)
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="SCENARIO")
    parser.add_argument("--steps", type=int, default=8, help="training steps that are counted (default: 8)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of a scenario (default: 3)")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--one", nargs=3, metavar=("SCENARIO", "SEED", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, seed, folder = options.one
        curve = run_one(name, options.steps, int(seed), Path(folder))
        Path(folder, "curve.json").write_text(json.dumps(curve), encoding="utf-8")
        return
    steps, repeats = (2, 1) if options.quick else (options.steps, options.repeats)
    rows = {name: scenario(name, steps, repeats) for name in options.only}
    result = {"machine": machine(), "repeats": repeats, "steps": steps, "scenarios": rows}
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
