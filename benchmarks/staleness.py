"""Success after asynchronous training by the bound on staleness, with the quick start's policy and task.

    python -m benchmarks.staleness [--work DIR] [--out benchmarks/results/staleness.json] [--seeds 111 112 113 114 115]

Every seed has its own warm start, from which GRPO continues for the same number of steps with each bound. The runs are
on the virtual clock, so that staleness does not depend on this machine: an update lasts as long as an episode, and
tokens get as old as the bound allows. The mean staleness of tokens is in the result. Staleness 0 is synchronous
training. "Unmasked" arms train without `--off_policy_mask_threshold`, so on failed episodes at any distance from the
policy.

A run takes one process, one thread and about a minute of CPU time, a warm start too: 40 minutes for all 40. Finished
runs in `--work` are read. Several processes with the same `--work` share the runs: each takes one that no other has
begun.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.algorithms import START, figures_of, success
from benchmarks.seed_runs import differences, options_parser, run_all, with_interval

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

UNMASKED = {"off_policy_mask_threshold": float("inf")}
ARMS: dict[str, dict[str, Any]] = {
    **{f"staleness {bound}": {"max_staleness": bound} for bound in (0, 1, 2, 4, 8)},
    **{f"staleness {bound}, unmasked": {"max_staleness": bound, **UNMASKED} for bound in (2, 4)},
}
"""The options of every arm; the first is synchronous."""


def run(work: Path, seed: int, name: str, split: str) -> None:
    """Make a warm start or train an arm from it, measure, and write the figures down."""
    from agentgym_trl.demo import arms, stages
    from agentgym_trl.demo.settings import DemoSettings
    from benchmarks import algorithms

    settings, out, console = DemoSettings(seed=seed), work / f"seed-{seed}", Console(quiet=True)
    began, facts = time.process_time(), dict[str, Any]()
    if name == START:
        model, facts = algorithms.train(START, out, settings, console)
    else:
        model = out / name.replace(", ", " ").replace(" ", "-")
        options = {"asynchronous": True, "trainer_class": _trainer_class(), **ARMS[name]}
        stages.reinforce(out / arms.folder(arms.WARM), model, settings, console, name, **options)
        facts = _facts(stages.training_curve(model))
    results = {m.name: asdict(m.metrics) for m in stages.measure(model, settings, split)}
    figures = {
        "arm": name,
        "seed": seed,
        "cpu_seconds": round(time.process_time() - began, 1),
        **facts,
        "results": results,
    }
    figures_of(work, name, seed).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _trainer_class() -> Any:
    """The trainer on a virtual clock."""
    from dataclasses import replace

    from agentgym_trl.asynchronous.settings import VirtualTimes
    from agentgym_trl.trainer import AgentTrainer

    class VirtualTrainer(AgentTrainer):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            times = VirtualTimes(seed=self.args.seed, env=1.0, env_sigma=1.0, batch=0.3, token=0.005, train=8.0)
            self.rollout: Any
            self.rollout.settings = replace(self.rollout.settings, times=times)

    return VirtualTrainer


def _facts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rows = [row for row in rows if "rollout/success" in row]
    return {
        "curve": [[int(row["step"]), row["rollout/success"]] for row in rows],
        "staleness": mean(row["async/staleness"] for row in rows),
        "effective_sample_size": mean(row["effective_sample_size"] for row in rows),
    }


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    label = next(iter(runs[START][0]["results"]))
    table = Table("max staleness", "success, % [95 %]", "less 0, points [95 %]", "mean staleness", "ESS", title=label)
    base = success(runs[next(iter(ARMS))], label)
    for name, own in runs.items():
        values = success(own, label)
        cells = [with_interval(values), with_interval(differences(values, base))]
        ages = [f"{mean(run.get(key, 0.0) for run in own):.2f}" for key in ("staleness", "effective_sample_size")]
        table.add_row(name, *cells, *ages)
    Console(width=120).print(table)


def main() -> None:
    options = options_parser(__doc__, [111, 112, 113, 114, 115], "runs/staleness").parse_args()
    run_all(options, [START, *ARMS], lambda seed, name: run(options.work, seed, name, options.split), show)


if __name__ == "__main__":
    main()
