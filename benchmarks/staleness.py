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

import argparse
import fcntl
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.algorithms import START, figures_of, interval, success

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

UNMASKED = {"off_policy_mask_threshold": float("inf")}
ARMS: dict[str, dict[str, Any]] = {
    **{f"staleness {bound}": {"max_staleness": bound} for bound in (0, 1, 2, 4, 8)},
    **{f"staleness {bound}, unmasked": {"max_staleness": bound, **UNMASKED} for bound in (2, 4)},
}
"""The options of every arm; the first is synchronous."""
RUN_SECONDS = 60
"""Approximate CPU seconds of a run or a warm start."""


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """True for the only process that may write a file; the system ends a claim with its process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield not path.exists()


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


def work_off(work: Path, seeds: Sequence[int], split: str) -> None:
    """Do all runs that no other process has done or is doing."""
    for seed in seeds:
        for name in (START, *ARMS):
            if name != START and not figures_of(work, START, seed).exists():
                break  # another process makes the warm start
            with claimed(figures_of(work, name, seed)) as mine:
                if mine:
                    run(work, seed, name, split)
                    Console(stderr=True).print(f"{name}, seed {seed}: done")


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    label = next(iter(runs[START][0]["results"]))
    table = Table("max staleness", "success, % [95 %]", "less 0, points [95 %]", "mean staleness", "ESS", title=label)
    base = success(runs[next(iter(ARMS))], label)
    for name, own in runs.items():
        values = success(own, label)
        difference = interval([value - other for value, other in zip(values, base, strict=True)])
        cells = [f"{middle:.1f} [{low:.1f}, {high:.1f}]" for middle, low, high in (interval(values), difference)]
        ages = [f"{mean(run.get(key, 0.0) for run in own):.2f}" for key in ("staleness", "effective_sample_size")]
        table.add_row(name, *cells, *ages)
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[111, 112, 113, 114, 115])
    parser.add_argument("--split", choices=("test", "validation"), default="test", help="validation for pilot seeds")
    parser.add_argument(
        "--work", type=Path, default=Path("runs/staleness"), help="directory for the runs; finished ones are read"
    )
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    from agentgym_trl.demo import arms
    from agentgym_trl.demo.quiet import quiet

    quiet()
    arms.use_one_thread()
    names = [START, *ARMS]
    missing = [(n, s) for s in options.seeds for n in names if not figures_of(options.work, n, s).exists()]
    Console(stderr=True).print(
        f"{len(missing)} runs are missing: about {len(missing) * RUN_SECONDS / 60:.0f} CPU minutes"
    )
    work_off(options.work, options.seeds, options.split)
    if any(not figures_of(options.work, name, seed).exists() for name, seed in missing):
        Console(stderr=True).print("other processes are still at work; the last one shows the result")
        return
    runs = {n: [json.loads(figures_of(options.work, n, s).read_text("utf-8")) for s in options.seeds] for n in names}
    show(runs)
    if options.out:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
