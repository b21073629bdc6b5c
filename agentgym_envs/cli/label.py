"""`agentgym label`: label each turn of recorded episodes with its distance to the goal and its regret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli.common import EnvArgs, Json, print_json, stderr
from agentgym_envs.cli.envs import parse_env_args
from agentgym_envs.cli.run_store import TRAJECTORIES
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.labels import LabelTable

_SECONDS = 600.0
Paths = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or files of trajectories (JSONL).")
]
Workers = Annotated[int, typer.Option(min=1, help="Number of processes.")]
Seconds = Annotated[float, typer.Option(min=0, help="Time limit of one episode; it is then left without labels.")]


def label_command(
    runs: Paths, workers: Workers = 1, seconds: Seconds = _SECONDS, env_arg: EnvArgs = None, as_json: Json = False
) -> None:
    """Label each turn: turns to go before and after, regret, whether the goal is in reach, the first mistake.

    Episodes are replayed here, also those of a server. Labels are proven in TextCraft and in BabyAI's small levels;
    elsewhere they are lengths of the oracle's plans, and say so. They are appended to trajectories.labels.jsonl next to
    trajectories.jsonl, and a repeated call adds the missing ones. Environments with a slow oracle (SciWorld, the web)
    come last. --env-arg gives arguments that records leave out,
    such as a recipe table.
    """
    from agentgym_envs.labels.running import slow_oracles_last

    files = slow_oracles_last([trajectories_of(run) for run in runs])
    rows = [label_with_progress(file, workers, seconds, parse_env_args(env_arg)) for file in files]
    if as_json:
        print_json({"files": rows})
        return
    for row in rows:
        typer.echo(_summary(row))


def trajectories_of(run: Path) -> Path:
    """The file of trajectories of a run: the path itself, or that in a folder. Raises UsageError."""
    file = run / TRAJECTORIES if run.is_dir() else run
    if not file.is_file():
        raise UsageError(f"{file} is not a file of trajectories; give the folder of a run, or a JSONL file")
    return file


def label_missing(files: Sequence[Path]) -> None:
    """Label the episodes of some files that have no labels; print on stderr how many could not be replayed."""
    for file in files:
        row = label_with_progress(file, 1, _SECONDS, {})
        if row["failed"]:
            stderr().print(f"note: {_summary(row)}", style="yellow", markup=False, soft_wrap=True)


def read_label_table(files: Sequence[Path]) -> LabelTable:
    """Read the labels of some files; empty if there are none."""
    from agentgym_envs.labels import LabelTable, read_labels

    return LabelTable(labels for file in files for labels in read_labels(file).values())


def label_with_progress(file: Path, workers: int, seconds: float, env_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Label a file with a progress bar on stderr. Returns its counts, with the file of the labels as `out`."""
    from rich.progress import Progress

    from agentgym_envs.labels import labels_path
    from agentgym_envs.labels.running import label_file

    with Progress(console=stderr(), transient=True) as progress:
        bar = progress.add_task("labels", total=None)
        counts = label_file(
            file,
            workers=workers,
            seconds=seconds,
            env_kwargs=env_kwargs,
            on_done=lambda done: progress.advance(bar, done),
        )
    return {"out": str(labels_path(file)), **asdict(counts)}


def _summary(row: dict[str, Any]) -> str:
    exact = f", {100 * row['exact_turns'] / row['turns']:.0f}% of them exact" if row["turns"] else ""
    there = f"; {row['present']} episodes had labels already" if row["present"] else ""
    failed = f"; {row['failed']} could not be replayed: {row['first_failure']}" if row["failed"] else ""
    return f"{row['turns']} turns of {row['episodes']} episodes in {row['out']}{exact}{there}{failed}"
