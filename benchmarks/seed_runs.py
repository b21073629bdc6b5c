"""Runs of several arms and seeds in one directory, which several processes share."""

from __future__ import annotations

import argparse
import fcntl
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.algorithms import figures_of, interval

RUN_SECONDS = 60
"""Approximate CPU seconds of a run or a warm start."""
Runs = dict[str, list[dict[str, Any]]]
"""The figures of each arm, one per seed."""


def options_parser(description: str | None, seeds: Sequence[int], work: str) -> argparse.ArgumentParser:
    """The options of every such script; `work` is the default directory."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--split", choices=("test", "validation"), default="test", help="validation for pilot seeds")
    parser.add_argument("--work", type=Path, default=Path(work), help="directory for the runs; finished ones are read")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    return parser


def run_all(
    options: argparse.Namespace, names: Sequence[str], run: Callable[[int, str], None], show: Callable[[Runs], None]
) -> None:
    """Do all runs that no other process has done or is doing; the last process shows and writes the figures.

    `names` are in the order in which the runs of a seed can be made.
    """
    from agentgym_trl.demo import arms
    from agentgym_trl.demo.quiet import quiet

    quiet()
    arms.use_one_thread()
    console = Console(stderr=True)
    paths = {(name, seed): figures_of(options.work, name, seed) for seed in options.seeds for name in names}
    missing = sum(not path.exists() for path in paths.values())
    console.print(f"{missing} runs are missing: about {missing * RUN_SECONDS / 60:.0f} CPU minutes")
    _work_off(options, names, run, console)
    if not all(path.exists() for path in paths.values()):
        console.print("other processes are still at work; the last one shows the result")
        return
    runs = {name: [json.loads(paths[name, seed].read_text("utf-8")) for seed in options.seeds] for name in names}
    show(runs)
    if options.out:
        options.out.write_text(json.dumps(_without_repeats(runs), indent=1) + "\n", encoding="utf-8")


def _without_repeats(figures: Any) -> Any:
    """The figures without the metrics of repeated attempts, which make three quarters of a file and are in no table."""
    if isinstance(figures, dict):
        return {k: _without_repeats(v) for k, v in figures.items() if not str(k).endswith(("_at_k", "_hat_k"))}
    return [_without_repeats(each) for each in figures] if isinstance(figures, list) else figures


def _work_off(
    options: argparse.Namespace, names: Sequence[str], run: Callable[[int, str], None], console: Console
) -> None:
    for seed in options.seeds:
        for number, name in enumerate(names):
            starts = [earlier for earlier in names[:number] if "start" in earlier]
            if not all(figures_of(options.work, start, seed).exists() for start in starts):
                break  # another process makes a warm start
            with claimed(figures_of(options.work, name, seed)) as mine:
                if mine:
                    run(seed, name)
                    console.print(f"{name}, seed {seed}: done")


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


def with_interval(values: Sequence[float]) -> str:
    """The mean over seeds with its 95 % interval, as a cell of a table."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*interval(values))


def differences(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """The paired differences of the seeds."""
    return [value - other for value, other in zip(values, base, strict=True)]
