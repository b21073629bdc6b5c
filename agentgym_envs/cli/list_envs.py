"""`agentgym list`: the environments and their tasks."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import EnvArgs, Json, few_groups, print_json, stdout
from agentgym_envs.cli.doctor_scenarios import extra_of
from agentgym_envs.cli.envs import find_env, make_env, parse_env_args
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError, MissingExtra, UsageError
from agentgym_envs.registration import REGISTRATIONS
from agentgym_envs.task import SPLITS

if TYPE_CHECKING:
    from rich.table import Table

_MIN_GROUP_WIDTH = 12
"""The column of groups has at least this many characters, even if the terminal is too narrow."""
_ROWS = {row.id: row for row in REGISTRATIONS}


EnvIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENV",
        help="Environment ids or short names, MODULE:ID for one of your own; default: all of this suite.",
        autocompletion=completion.envs,
    ),
]


def list_command(env: EnvIds = None, env_arg: EnvArgs = None, as_json: Json = False) -> None:
    """List the environments: groups of tasks, number of tasks per split, and the hash of the task table."""
    arguments = parse_env_args(env_arg)
    if arguments and not env:
        raise UsageError(
            "--env-arg is given to the environments that are named; name one, as in: agentgym list textcraft"
        )
    rows = (
        [_describe(env_id, arguments) for env_id in dict.fromkeys(map(find_env, env))]
        if env
        else [_describe_or_error(row.id) for row in REGISTRATIONS]
    )
    if as_json:
        print_json(rows)
        return
    console = stdout()
    console.print(_table(rows, console.width), "")
    for row in rows:
        if "error" in row:
            console.print(f"[yellow]{row['id']}[/] {_escape(row['error'])}", soft_wrap=True)


def _table(rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    """One row per environment. The column of groups takes the width that the other columns leave."""
    from rich import box
    from rich.table import Table

    ids = max(len(row["id"]) for row in rows)
    counts = [_counts(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(SPLITS, *filter(None, counts), strict=True)]
    room = max(width - ids - sum(widths) - 2 * len(SPLITS) - 2, _MIN_GROUP_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("environment", width=ids)
    table.add_column("groups")
    for split in SPLITS:
        table.add_column(split, justify="right", no_wrap=True)
    for row, cells in zip(rows, counts, strict=True):
        lines = [f"[bold]{row['id']}[/]", f"[dim]{_escape(row['summary'])}[/]"]
        if "error" in row:
            table.add_row("\n".join(lines), "[yellow]cannot be made here, see below[/]")
            continue
        groups = "\n".join(_fold(name, room) for name in few_groups(row["groups"]))
        table.add_row("\n".join([*lines, f"[dim]sha256 {row['digest'][:8]}[/]"]), groups, *cells)
    return table


def _counts(row: Mapping[str, Any]) -> list[str]:
    """Number of tasks per split, as text; empty for an environment that cannot be made."""
    if "error" in row:
        return []
    return [f"{row['tasks'][split]:,}" if row["tasks"] else "∞" for split in SPLITS]


def _fold(name: str, width: int) -> str:
    """Wrap a long name at its hyphens; Rich would break it anywhere."""
    return _escape("\n".join(textwrap.wrap(name, width, subsequent_indent="  ")))


def _describe_or_error(env_id: str) -> dict[str, Any]:
    """The description of an environment; with `error` if it cannot be made, for example without its extra."""
    try:
        return _describe(env_id, {})
    except AgentGymError as error:
        extra = extra_of(_ROWS[env_id])
        # A part of it names its own extra; `webarena-verified` is more than `webarena`.
        if isinstance(error, MissingExtra) and error.extra and extra and not error.extra.startswith(f"{extra}-"):
            error = error.naming(extra)
        return {"id": env_id, "summary": _ROWS[env_id].summary, "error": str(error)}


def _describe(env_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The description of an environment. `tasks` is the number per split, None if it is unlimited.

    Errors from making the environment propagate.
    """
    env = make_env(env_id, arguments)
    tasks = text_env(env).tasks
    own = (type(text_env(env)).__doc__ or "").strip().partition("\n")[0]
    summary = _ROWS[env_id].summary if env_id in _ROWS else own
    counts = tasks.counts()
    env.close()
    return {
        "id": env_id,
        "summary": summary,
        "groups": list(tasks.groups),
        "tasks": None if counts is None else {split: sum(of[split] for of in counts.values()) for split in SPLITS},
        "digest": tasks.digest,
    }


def _escape(text: str) -> str:
    """Escape Rich's markup."""
    from rich.markup import escape

    return escape(text)
