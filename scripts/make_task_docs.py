"""Writes docs/tasks.md: every registered environment with the version, digest and size of its task table.

    python scripts/make_task_docs.py            # write it
    python scripts/make_task_docs.py --check    # only check it; exit code 1 if it is out of date

It needs the extra `all`. `tests/test_release.py` compares the page with the environments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgym_envs.core import text_env
from agentgym_envs.registration import REGISTRATIONS, Registration
from agentgym_envs.task import SPLITS

PAGE = Path(__file__).parents[1] / "docs" / "tasks.md"
NOT_OURS = {"AgentGym/WebArenaOfficial-v0": "read from WebArena's own file, which is not part of this package"}
"""Environments with the user's own task files, whose digest is unknown."""
_HEAD = """# Task tables

<!-- Written by scripts/make_task_docs.py. Do not edit. -->

The default tasks of each environment, as in `gym.make(id)`. A digest is the SHA-256 of everything that determines the
tasks: equal digests mean equal tasks. `agentgym list --json` prints the digests of installed environments,
`agentgym eval` records them in every run, and `--resume` requires the same ones. Arguments that choose other tasks,
such as `worlds="fictional"`, change the digest. ∞ marks an unlimited number of tasks, each generated from its number.
"""


def page() -> str:
    """The text of the page."""
    described = {row.id: None if row.id in NOT_OURS else describe(row) for row in REGISTRATIONS}
    lines = [_HEAD, "| environment | table | version | train | validation | test | groups |", "|" + "---|" * 7]
    lines += [_row(env_id, tasks) for env_id, tasks in described.items()]
    lines += ["", "## Digests", "", "| environment | SHA-256 of the task table |", "|---|---|"]
    lines += [f"| `{env_id}` | `{tasks['digest']}` |" for env_id, tasks in described.items() if tasks]
    lines += ["", "## Groups", "", *_all_groups({env_id: tasks for env_id, tasks in described.items() if tasks})]
    return "\n".join(lines).rstrip() + "\n"


def describe(row: Registration) -> dict[str, Any]:
    """The task table of an environment. Raises MissingExtra."""
    env = gym.make(row.id)
    tasks = text_env(env).tasks
    env.close()
    return {
        "name": tasks.name,
        "version": tasks.version,
        "digest": tasks.digest,
        "counts": tasks.counts(),
        "groups": tasks.groups,
    }


def _row(env_id: str, tasks: Mapping[str, Any] | None) -> str:
    if tasks is None:
        return f"| `{env_id}` | {NOT_OURS[env_id]} | | | | | |"
    sizes = " | ".join(_sizes(tasks["counts"]))
    return f"| `{env_id}` | {tasks['name']} | {tasks['version']} | {sizes} | {len(tasks['groups'])} |"


def _sizes(counts: Mapping[str, Mapping[str, int]] | None) -> list[str]:
    if counts is None:
        return ["∞"] * len(SPLITS)
    return [f"{sum(of[split] for of in counts.values()):,}" for split in SPLITS]


def _all_groups(described: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A table for each environment; only a reference if another one has the same tasks."""
    lines: list[str] = []
    first: dict[str, str] = {}
    for env_id, tasks in described.items():
        same = first.setdefault(tasks["digest"], env_id)
        lines += _groups(env_id, tasks) if same == env_id else [f"`{env_id}`: as `{same}`.", ""]
    return lines


def _groups(env_id: str, tasks: Mapping[str, Any]) -> list[str]:
    """One line per group with the number of tasks per split; only the names if the number is unlimited."""
    counts = tasks["counts"]
    if counts is None:
        return [f"`{env_id}`: {', '.join(tasks['groups'])}.", ""]
    cells = [
        f"| {group} | {' | '.join(f'{counts[group][split]:,}' for split in SPLITS)} |" for group in tasks["groups"]
    ]
    return [f"| `{env_id}` | {' | '.join(SPLITS)} |", "|---|---:|---:|---:|", *cells, ""]


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the page is out of date")
    check, found = parser.parse_args().check, page()
    if not check:
        PAGE.write_text(found, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == found:
        return 0
    print("docs/tasks.md is out of date; run python scripts/make_task_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
