"""`agentgym export`: recorded episodes in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import (
    EnvArgs,
    Groups,
    Json,
    Overwrite,
    Seed,
    Split,
    choose_tasks,
    names_of,
    print_json,
    stderr,
)
from agentgym_envs.cli.envs import find_env, make_env, parse_env_args
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.errors import UsageError
from agentgym_envs.export.formats import FORMATS, ExportCounts, ExportFormat, ExportOptions
from agentgym_envs.task import SPLITS

if TYPE_CHECKING:
    from agentgym_envs.export.tasks import ExportTasks

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[RUN]...", help="Folders of runs, or files of trajectories (JSONL)."),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="; ".join(f"{name}: {row.summary}" for name, row in FORMATS.items()) + ".",
        autocompletion=completion.choices(*FORMATS),
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help=f"The folder or file to write; default: {', '.join(f'NAME{row.out}' for row in FORMATS.values())} in this "
        "folder. A file *.jsonl takes ATIF as one document per line.",
    ),
]
AtifVersion = Annotated[str | None, typer.Option(metavar="1.8|1.7", help="atif: the version; NeMo-Gym reads 1.7.")]
Content = Annotated[
    bool | None,
    typer.Option("--content/--no-content", help="otlp: with observations, answers and instructions; default: without."),
]
_OF_TASKS = [name for name, row in FORMATS.items() if row.task_writer is not None]
EnvName = Annotated[
    str | None,
    typer.Option(
        "--env",
        help=f"{', '.join(_OF_TASKS)}, without RUN: the environment of the tasks.",
        autocompletion=completion.envs,
    ),
]
Tasks = Annotated[int | None, typer.Option(min=1, help="With --env: number of tasks; default: all of the split.")]
Host = Annotated[str | None, typer.Option(help="nemo: address of agentgym serve; default: 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="nemo: its port; default: 8000.")]
MaxTurns = Annotated[int | None, typer.Option(min=1, help="nemo: maximum number of turns; default: 30.")]


def export_command(
    runs: Paths = None,
    format: Format = "atif",
    out: Out = None,
    atif_version: AtifVersion = None,
    content: Content = None,
    env: EnvName = None,
    split: Split = "train",
    tasks: Tasks = None,
    groups: Groups = None,
    seed: Seed = 0,
    env_arg: EnvArgs = None,
    host: Host = None,
    port: Port = None,
    max_turns: MaxTurns = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Export recorded episodes to ATIF (Harbor), OpenTelemetry, NeMo-Gym or the Hugging Face Hub.

    RUN is the --out folder of eval, a training run, or a file of trajectories. A file appears once it is complete.
    For NeMo-Gym, the recorded tasks become rows. With nemo and hf-dataset, --env takes tasks of an environment in place
    of RUN, and --split, --tasks, --groups and --seed select them.
    """
    row = _format_of(format)
    given = {"atif_version": atif_version, "content": content, "host": host, "port": port, "max_turns": max_turns}
    options = ExportOptions(**_accepted(format, row, given))
    counts = ExportCounts()
    if env is not None:
        if row.task_writer is None or runs:
            raise UsageError(
                f"--env takes the place of RUN, for --format {' or '.join(_OF_TASKS)} only; give one of them"
            )
        target = _target(out, Path(env.lower().replace("/", "-")), row, overwrite)
        chosen = _tasks_of(env, split, tasks, names_of(groups), seed, parse_env_args(env_arg))
        write = row.load(tasks=True)
        _guarded(lambda: write(chosen, target, options, counts), target, row, counts)
    elif runs:
        target = _target(out, runs[0], row, overwrite)
        _export(runs, target, row, options, counts)
    else:
        raise UsageError("give a RUN to export: the --out folder of eval, or a file of trajectories")
    _report(target, row, counts, as_json)


def _format_of(name: str) -> ExportFormat:
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _accepted(name: str, row: ExportFormat, given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given. Raises UsageError for one that the format does not take."""
    chosen = {option: value for option, value in given.items() if value is not None}
    if refused := sorted(chosen.keys() - row.options):
        option = f"--{refused[0].replace('_', '-')}"
        owner = next(other for other, each in FORMATS.items() if refused[0] in each.options)
        raise UsageError(f"{option} is an option of --format {owner}, not of {name}; leave it out")
    return chosen


def _target(out: Path | None, source: Path, row: ExportFormat, overwrite: bool) -> Path:
    """The path to write. Raises UsageError if there is something and `overwrite` is False."""
    name = source.resolve().name.removesuffix(".jsonl")
    target = out or Path(f"{name}{row.out}")
    takes_file = row.out.endswith(".jsonl")
    if takes_file and target.is_dir():
        target = target / f"{name}{row.out}"
    if not takes_file and target.is_file() and target.suffix != ".jsonl":
        raise UsageError(f"--out {target} is a file; this format needs a folder")
    if not overwrite and target.exists() and (target.is_file() or any(target.iterdir())):
        raise UsageError(f"{target} already exists; choose another --out, or pass --overwrite to replace it")
    return target


def _export(runs: list[Path], target: Path, row: ExportFormat, options: ExportOptions, counts: ExportCounts) -> None:
    from agentgym_envs.export.episodes import find_files, read_files

    files = find_files(runs)
    with stderr().status("exporting"):
        episodes = read_files(files, tokens=row.tokens)
        write = row.load()
        _guarded(lambda: write(episodes, target, options, counts), target, row, counts)


def _guarded(write: Any, target: Path, row: ExportFormat, counts: ExportCounts) -> None:
    """Write, and say after Ctrl-C or a full disk what is there."""
    try:
        write()
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_written(target, row, counts)}") from None
    except OSError as error:
        error.add_note(_written(target, row, counts))
        raise


def _written(target: Path, row: ExportFormat, counts: ExportCounts) -> str:
    if target.is_dir() and not row.at_once:
        return f"{counts.episodes} episodes are complete in {target}"
    return f"{target} is as it was before" if target.exists() else "nothing was written"


def _tasks_of(
    env: str, split: str, count: int | None, groups: tuple[str, ...] | None, seed: int, arguments: dict[str, Any]
) -> ExportTasks:
    """The tasks of an environment."""
    from agentgym_envs.core import text_env
    from agentgym_envs.export.tasks import ExportTasks
    from agentgym_envs.grammar import tools_of

    if split not in (*SPLITS, "all"):
        raise UsageError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}, all")
    env_id = find_env(env)
    made = make_env(env_id, arguments)
    try:
        base = text_env(made)
        chosen = choose_tasks(base.tasks, count, split=split, groups=groups, seed=seed)
        return ExportTasks(
            env_id, arguments, base.tasks, chosen, seed, base.instructions, tuple(tools_of(base.grammar))
        )
    finally:
        made.close()


def _report(target: Path, row: ExportFormat, counts: ExportCounts, as_json: bool) -> None:
    if as_json:
        shown = {"out": str(target), "episodes": counts.episodes, "without_times": counts.without_times}
        if counts.left_out:
            shown["left_out"] = counts.left_out
        print_json({**shown, **({} if counts.rows is None else {"rows": counts.rows})})
        return
    what = f"{counts.episodes:,} episodes" if counts.rows is None else f"{counts.rows:,} rows"
    typer.echo(f"{what} in {target}, for {row.needs}")
    if counts.left_out:
        typer.echo(f"left out: {counts.left_out:,} episodes that failed in their environment or have no turn")
    if counts.without_times and row is FORMATS["otlp"]:
        typer.echo(
            f"{counts.without_times:,} of them have no times (demonstrations, or records of an earlier version): their "
            "spans show only the order",
            err=True,
        )
