"""Options, consoles and checks that several commands share."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.envs import SHORT_NAMES, json_or_text
from agentgym_envs.errors import UsageError
from agentgym_envs.registration import default_max_turns
from agentgym_envs.task import SPLITS, Task, TaskSet
from agentgym_envs.trajectory import strict_json

if TYPE_CHECKING:
    from rich.console import Console

_MAX_GROUPS = 9
"""The longest list of groups that is shown in full."""

EnvId = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help=f"Environment id or short name: {', '.join(SHORT_NAMES)}.",
        autocompletion=completion.envs,
    ),
]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="KEY=VALUE",
        help="Argument of the environment; the value is JSON or text. base_url=http://... uses a server.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Groups of tasks, separated by commas; default: all.",
        autocompletion=completion.group_list,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON on stdout.")]
Split = Annotated[str, typer.Option(help="train, validation, test, or all.", autocompletion=completion.splits)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
MaxTurns = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of turns per episode; default: that of the environment."),
]
_LENIENT_MAX_TURNS = 100
LenientMaxTurns = Annotated[
    int | None,
    typer.Option(
        "--max-turns",
        min=1,
        help=f"Maximum number of turns per episode; default: that of the environment, at least {_LENIENT_MAX_TURNS}.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output of an earlier run.")]


def stdout() -> Console:
    """A console on the current `sys.stdout`."""
    return _console(sys.stdout)


def stderr() -> Console:
    """A console on the current `sys.stderr`."""
    return _console(sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout; see `strict_json`."""
    typer.echo(strict_json(value, indent=2))


def json_object(option: str, given: Any) -> dict[str, Any] | None:
    """Return the value of an option that takes a JSON object, given as text or already parsed. Raises UsageError."""
    found = json_or_text(given) if isinstance(given, str) else given
    if isinstance(found, dict | None):
        return found
    raise UsageError(f"{option} must be a JSON object, as in '{{\"enable_thinking\": false}}'; got {given!r}")


def few_groups(groups: list[str]) -> list[str]:
    """The groups; of a long list the first ones and the total."""
    return groups if len(groups) <= _MAX_GROUPS else [*groups[: _MAX_GROUPS - 1], f"… {len(groups)} in all"]


def check_writable(option: str, path: Path) -> None:
    """Check that a file can be written, before any work is done. Raises UsageError.

    Missing parent folders are created. A file that did not exist is removed again. A path that is neither a file nor a
    folder is not opened: closing a pipe would signal the end of the data to its reader.
    """
    if path.is_dir():
        raise UsageError(f"{option} takes a file to write, and {path} is a folder")
    file = path.resolve()  # a link may point to a file that does not exist yet
    new = not file.exists()
    if not new and not file.is_file():
        return
    try:
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
        with file.open("ab"):
            pass
    except OSError as error:
        raise cannot_write(option, path, error) from None
    if new:
        file.unlink()


def cannot_write(option: str, path: Path, error: OSError) -> UsageError:
    """The error for an output path that cannot be written."""
    return UsageError(f"cannot write to {option} {path}: {error.strerror or error}; choose another path")


def finite(value: float) -> float:
    """Validate an option: `nan` and `inf` are refused, though they pass the check of its range."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number; give one such as 1.5")
    return value


def lenient_max_turns(given: int | None, env_id: str) -> int:
    """The turn limit of --max-turns for people and oracles; by default at least that of the environment, and 100."""
    return given or max(_LENIENT_MAX_TURNS, default_max_turns(env_id))


def note(text: str) -> None:
    """Print a note on stderr, as one line."""
    stderr().print(f"note: {text}", style="yellow", markup=False, soft_wrap=True)


def finite_or_none(value: float | None) -> float | None:
    """Validate an option that may be left out; see `finite`."""
    return None if value is None else finite(value)


def choose_tasks(
    tasks: TaskSet, count: int | None, *, split: str, groups: tuple[str, ...] | None, seed: int
) -> list[Task]:
    """Select the tasks for --tasks, --split, --groups and --seed. Raises UsageError."""
    chosen = split_of(split)
    if count is None and tasks.counts() is None:
        raise UsageError(f"{tasks.name!r} has an unlimited number of tasks; give a number: --tasks 300, for example")
    return tasks.sample(count, split=chosen, groups=groups, seed=seed)


def split_of(name: str) -> str | None:
    """Convert the value of --split for an environment, where None selects all splits. Raises UsageError."""
    if name not in (*SPLITS, "all"):
        raise UsageError(f"there is no split {name!r}; choose one of {', '.join(SPLITS)}, all")
    return None if name == "all" else name


def names_of(text: str | None) -> tuple[str, ...] | None:
    """Split names at the commas."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, soft_wrap=False)
