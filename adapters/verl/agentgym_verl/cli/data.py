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
        metavar="ENV[:WEIGHT]...", help="Environments; with several, the weights are their shares of the tasks."
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for train.parquet and val.parquet.")]


def data_command(
    envs: Envs,
    out: Out,
    env_kwargs: opt.EnvKwargs = None,
    tools: opt.Tools = False,
    split: opt.Split = "train",
    eval_split: opt.EvalSplit = None,
    tasks: opt.Tasks = None,
    eval_tasks: opt.EvalTasks = None,
    groups: opt.Groups = None,
    seed: opt.Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write a dataset with one row per task. Equal arguments write equal bytes."""
    if not overwrite and (existing := [name for name in (dataset.TRAIN, dataset.VAL) if (out / name).exists()]):
        raise UsageError(f"{out} has {' and '.join(existing)} already; --overwrite replaces them")
    members, chosen = opt.members(envs, env_kwargs, tools=tools), names_of(groups)
    draws = {
        dataset.TRAIN: partial(dataset.draw_train, members, tasks, split=split, groups=chosen, seed=seed),
        dataset.VAL: partial(dataset.draw_val, members, eval_tasks, split=eval_split, groups=chosen, seed=seed),
    }
    console = stderr()
    rows = draw(draws, console)
    write(out, rows, console)


def draw(draws: Mapping[str, Callable[[], list[TaskRow]]], console: Console) -> dict[str, list[TaskRow]]:
    """Draw the rows of each file, with a progress bar."""
    return {name: draws[name]() for name in track(draws, "drawing tasks", console=console, transient=True)}


def write(out: Path, rows: Mapping[str, Sequence[TaskRow]], console: Console) -> None:
    """Write the files, and print a table of their contents."""
    for name, part in rows.items():
        dataset.write_rows(out / name, part)
    console.print(_table(rows))
    console.print(f"[green]Written:[/] {', '.join(str(out / name) for name in rows)}")


def _table(files: Mapping[str, Sequence[TaskRow]]) -> Table:
    table = Table("file", "environment", "split", "groups")
    table.add_column("rows", justify="right")
    for name, rows in files.items():
        parts: dict[tuple[str, str], list[TaskRow]] = defaultdict(list)
        for row in rows:
            parts[row.env_id, row.split].append(row)
        for (env_id, split), part in parts.items():
            groups = ", ".join(few_groups(sorted({row.group for row in part})))
            table.add_row(name, short_name(env_id), split, groups, f"{len(part):,}")
    return table
