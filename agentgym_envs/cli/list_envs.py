"""`agentgym list`: the environments and their tasks."""

from __future__ import annotations

from typing import Any

from agentgym_envs.cli.common import Json, few_groups, make_env, print_json, stdout
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.registration import REGISTRATIONS, Registration
from agentgym_envs.task import SPLITS


def list_command(as_json: Json = False) -> None:
    """List the environments: their groups of tasks, how many tasks a split has, and the hash of the task table."""
    rows = [describe(row) for row in REGISTRATIONS]
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("environment", "groups", *SPLITS, "sha256"):
        plain = name in ("environment", "groups")
        table.add_column(name, justify="right" if name in SPLITS else "left", overflow="fold", no_wrap=not plain)
    table.columns[0].min_width, table.columns[-1].min_width = max(len(row["id"]) for row in rows), 8
    for row in rows:
        name = f"[bold]{row['id']}[/]\n[dim]{row['summary']}[/]"
        if "error" in row:
            table.add_row(name, "[yellow]cannot be made here, see below[/]")
            continue
        counts = [f"{row['tasks'][split]:,}" if row["tasks"] else "∞" for split in SPLITS]
        table.add_row(name, "\n".join(few_groups(row["groups"])), *counts, f"[dim]{row['digest'][:8]}[/]")
    stdout().print(table)
    for row in rows:
        if "error" in row:
            stdout().print(f"[yellow]{row['id']}[/] {escape(row['error'])}", soft_wrap=True)


def describe(row: Registration) -> dict[str, Any]:
    """What `list` tells of an environment; `tasks` is a number for each split, or None if there is no end of them.

    Of one that cannot be made, for example without its extra, it tells the `error` instead.
    """
    try:
        env = make_env(row.id, {})
    except AgentGymError as error:
        return {"id": row.id, "summary": row.summary, "error": str(error)}
    tasks = text_env(env).tasks
    counts = tasks.counts()
    env.close()
    return {
        "id": row.id,
        "summary": row.summary,
        "groups": list(tasks.groups),
        "tasks": None if counts is None else {split: sum(of[split] for of in counts.values()) for split in SPLITS},
        "digest": tasks.digest,
    }
