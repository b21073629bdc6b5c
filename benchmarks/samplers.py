"""Sampled tokens to a held-out success by the sampler of tasks, where tasks differ in difficulty.

    python -m benchmarks.samplers [--work DIR] [--out benchmarks/results/samplers.json] [--seeds 101 102 103 104 105]

The table has 48 goals of depth 1 to 4: the quick start's twelve chains of crafts, each with one more product. Every
seed has its own warm start, from which GRPO continues with each sampler for the same number of steps. Held-out tasks
are known goals in new prompts, drawn evenly from all depths, the same for all runs; they are played every few steps.

Tokens are those that the policy sampled in training, until the mean of three evaluations reaches the target. The
target lies between the warm start and the end of uniform sampling (`SHARE` of the way), for each seed. A run that never
reaches it counts with all of its tokens. The saving compares means over seeds, and its interval is of the paired
logarithms of the ratio.

A run takes one process, one thread and a few minutes of CPU time. Finished runs in `--work` are read. Several processes
with the same `--work` share the runs.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from agentgym_trl.demo.settings import DemoSettings, HeldOut
from benchmarks import recipe_tables
from benchmarks.algorithms import START, figures_of, interval
from benchmarks.seed_runs import Runs, options_parser, run_all

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

SAMPLERS = ("uniform", "success:0.2-0.8", "learnability")
SHARE = 0.8
"""The share of uniform sampling's gain that is the target."""
EVERY = 2
"""Steps between two evaluations."""
_SEEDS = {"test": 9_000_000, "validation": 8_000_000}
"""Seeds of the held-out tasks: fresh ones for the result, others for settings and pilot seeds."""


@dataclass(frozen=True, slots=True)
class Graded(DemoSettings):
    """Goals of four depths, from two turns to five, with a turn limit of seven."""

    depths: tuple[str, ...] = ("depth-1", "depth-2", "depth-3", "depth-4")
    waste_rate: float = 0.5
    demonstrations: int = 400
    warm_steps: int = 500
    steps: int = 40
    learning_rate: float = 6e-4
    max_turns: str = "7"
    teacher_turns: int = 20
    eval_turns: int = 7
    eval_tasks: int = 144
    recipes: str = ""

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The table with longer chains."""
        return {"recipe_table": self.recipes, "groups": self.groups, "max_distractors": 2, "instructions": ""}

    @property
    def held_out(self) -> tuple[HeldOut, ...]:
        """New prompts."""
        return (HeldOut("known goals, new prompts", "train", self.eval_tasks),)


def write_recipes(path: Path) -> str:
    """Write the quick start's table with one more product at the end of each chain, and goals of depth 1 to 4."""
    return recipe_tables.write(path, recipe_tables.graded(["stall"]))


def run(work: Path, seed: int, sampler: str, split: str = "test") -> None:
    """Make a warm start, or train from it with a sampler, and write the figures down."""
    from agentgym_trl.demo import arms, stages

    settings = Graded(seed=seed, recipes=write_recipes(work / "recipes.json"))
    out, console, began = work / f"seed-{seed}", Console(quiet=True), time.process_time()
    warm = out / arms.folder(arms.WARM)
    curve: list[dict[str, float]] = []
    if sampler == START:
        demonstrations = stages.make_demonstrations(out, settings)
        tiny = stages.make_tiny_model(out, settings, demonstrations)
        stages.warm_start(tiny, warm, demonstrations, settings, console)
    else:
        model = out / sampler.replace(":", "-")
        options = {"trainer_class": _trainer_class(settings, split), "sampler": sampler, "eval_every": EVERY}
        stages.reinforce(warm, model, settings, console, sampler, **options)
        curve = curve_of(stages.training_curve(model))
    figures = {"arm": sampler, "seed": seed, "cpu_seconds": round(time.process_time() - began, 1), "curve": curve}
    figures_of(work, sampler, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _trainer_class(settings: Graded, split: str) -> Any:
    """The trainer with the held-out tasks of the study."""
    from agentgym_envs.core import text_env
    from agentgym_trl.dataset import make_dataset
    from agentgym_trl.demo import stages
    from agentgym_trl.trainer import AgentTrainer

    held_out = make_dataset(
        text_env(stages.make_env(settings)()), settings.eval_tasks, split="train", seed=_SEEDS[split]
    )

    class Evaluated(AgentTrainer):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, eval_dataset=held_out, **kwargs)

    return Evaluated


def curve_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """Held-out success after a number of sampled tokens, and the groups without a gradient since the last one."""
    found, before = list[dict[str, float]](), 0
    for step, success in sorted((row["step"], row["eval/success"]) for row in rows if "eval/success" in row):
        played = [row for row in rows if "rollout/tokens" in row and row["step"] <= step]
        equal = [row["rollout/zero_variance_groups"] for row in played if row["step"] > before]
        point = {"step": step, "tokens": sum(row["rollout/tokens"] for row in played), "success": success}
        found.append(point | {"zero_variance_groups": mean(equal) if equal else 0.0})
        before = step
    return found


def tokens_to(curve: Sequence[dict[str, float]], target: float) -> float:
    """Tokens at which the mean of three evaluations first reaches a success, interpolated; all if it never does."""
    before = (0.0, 0.0)
    for index in range(len(curve)):
        near = curve[max(0, index - 1) : index + 2]
        now = (curve[index]["tokens"], mean(point["success"] for point in near))
        if now[1] >= target:
            rise = now[1] - before[1]
            return now[0] - (now[0] - before[0]) * (now[1] - target) / rise if rise > 0 else now[0]
        before = now
    return curve[-1]["tokens"]


def target_of(uniform: Sequence[dict[str, float]]) -> float:
    """The target of a seed: `SHARE` of the way from the first evaluation to the mean of the last three."""
    first, last = uniform[0]["success"], mean(point["success"] for point in uniform[-3:])
    return first + SHARE * (last - first)


def show(runs: Runs) -> None:
    """Print tokens to the target, the saving, the final success and the share of groups without a gradient."""
    title = f"Tokens to {SHARE:.0%} of the gain of uniform sampling"
    table = Table(
        *("sampler", "tokens", "saving, % [95 %]", "final success, %", "zero-variance groups, %"), title=title
    )
    targets = [target_of(own["curve"]) for own in runs["uniform"]]
    needed = {
        name: [tokens_to(own["curve"], target) for own, target in zip(runs[name], targets, strict=True)]
        for name in SAMPLERS
    }
    for name in SAMPLERS:
        logs = [math.log(ours / base) for ours, base in zip(needed[name], needed["uniform"], strict=True)]
        saving = [100 * (1 - math.exp(value)) for value in interval(logs)]
        final = mean(mean(point["success"] for point in own["curve"][-3:]) for own in runs[name])
        wasted = mean(mean(point["zero_variance_groups"] for point in own["curve"][1:]) for own in runs[name])
        text = f"{saving[0]:.0f} [{saving[2]:.0f}, {saving[1]:.0f}]"
        table.add_row(name, f"{mean(needed[name]):,.0f}", text, f"{100 * final:.1f}", f"{100 * wasted:.0f}")
    Console(width=120).print(table)


def main() -> None:
    options = options_parser(__doc__, [101, 102, 103, 104, 105], "runs/samplers").parse_args()
    one = partial(run, options.work, split=options.split)
    run_all(options, [START, *SAMPLERS], one, show)


if __name__ == "__main__":
    main()
