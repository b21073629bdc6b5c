"""`agentgym verl data`: the tasks of a run as parquet files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from agentgym_envs.cli.common import Overwrite, few_groups, names_of, stderr
from agentgym_envs.errors import UsageError
from agentgym_verl import dataset
from agentgym_verl.cli import options as opt
from agentgym_verl.rows import TaskRow, short_name

Envs = Annotated[
    list[str],
    typer.Argument(
        metavar="ENV[:WEIGHT]", help="Environments; with several, a weight says how many of the tasks each gives."
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Gets train.parquet and val.parquet.")]


def data_command(
    envs: Envs,
    out: Out,
    env_kwargs: opt.EnvKwargs = None,
    split: opt.Split = "train",
    eval_split: opt.EvalSplit = None,
    tasks: opt.Tasks = None,
    eval_tasks: opt.EvalTasks = None,
    groups: opt.Groups = None,
    seed: opt.Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write a dataset: a row is a task, whose episodes verl compares. Equal arguments write equal bytes."""
    if not overwrite and (there := [name for name in (dataset.TRAIN, dataset.VAL) if (out / name).exists()]):
        raise UsageError(f"{out} holds {' and '.join(there)} already; --overwrite replaces them")
    found, chosen = opt.members(envs, env_kwargs), names_of(groups)
    draws = {
        dataset.TRAIN: partial(dataset.draw_train, found, tasks, split=split, groups=chosen, seed=seed),
        dataset.VAL: partial(dataset.draw_val, found, eval_tasks, split=eval_split, groups=chosen, seed=seed),
    }
    console = stderr()
    rows = draw(draws, console)
    write(out, rows, console)


def draw(draws: Mapping[str, Callable[[], list[TaskRow]]], console: Console) -> dict[str, list[TaskRow]]:
    """The rows of each file, drawn with a progress bar."""
    return {name: draws[name]() for name in track(draws, "drawing tasks", console=console, transient=True)}


def write(out: Path, rows: Mapping[str, Sequence[TaskRow]], console: Console) -> None:
    """Write the files, and say what is in them."""
    for name, own in rows.items():
        dataset.write_rows(out / name, own)
    console.print(_table(rows))
    console.print(f"[green]Written:[/] {', '.join(str(out / name) for name in rows)}")


def _table(files: Mapping[str, Sequence[TaskRow]]) -> Table:
    table = Table("file", "environment", "split", "groups")
    table.add_column("rows", justify="right")
    for name, rows in files.items():
        parts: dict[tuple[str, str], list[TaskRow]] = defaultdict(list)
        for row in rows:
            parts[row.env_id, row.split].append(row)
        for (env_id, split), own in parts.items():
            groups = ", ".join(few_groups(sorted({row.group for row in own})))
            table.add_row(name, short_name(env_id), split, groups, f"{len(own):,}")
    return table
