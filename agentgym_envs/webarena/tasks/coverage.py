"""WebArena's intents, and the templates of the embedded sites that need the same skill.

`data/coverage.toml` names WebArena's intent templates by their public numbers only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from agentgym_envs.webarena.tasks.table import VERSIONS, templates

Verdict: TypeAlias = Literal["yes", "partly", "no"]
SITES = ("shopping", "shopping_admin", "gitlab", "map", "reddit", "several")


@dataclass(frozen=True)
class Intent:
    """One of WebArena's intent templates.

    Attributes:
        number: its `intent_template_id`.
        sites: the sites that all of its tasks need.
        tasks: the number of its tasks.
        verdict: "yes" if a template needs the same steps and the same kind of answer or change.
        templates: the names of these templates, or of the most similar ones.
        start: "page" or "tabs" if its tasks begin on a page of their subject, or with several tabs; "" otherwise.
        reason: the reason of a verdict other than "yes".
    """

    number: int
    sites: tuple[str, ...]
    tasks: int
    verdict: Verdict
    templates: tuple[str, ...] = ()
    start: str = ""
    reason: str = ""

    @property
    def site(self) -> str:
        """One of `SITES`."""
        return self.sites[0] if len(self.sites) == 1 else "several"

    def covered(self, version: int) -> bool:
        """Return whether a version of the task table has tasks that need the same skill."""
        return self.verdict == "yes" and any(templates()[name].since <= version for name in self.templates)


@cache
def intents() -> tuple[Intent, ...]:
    """Return all of WebArena's intent templates."""
    text = files(f"{__package__}.data").joinpath("coverage.toml").read_text(encoding="utf-8")
    return tuple(_read(int(number), row) for number, row in tomllib.loads(text).items())


def _read(number: int, row: dict[str, Any]) -> Intent:
    names: dict[str, Any] = {name: tuple(row.pop(name, ())) for name in ("sites", "templates")}
    return Intent(number, **names, **row)


def coverage_table() -> Iterator[str]:
    """Yield the lines of a Markdown table: the coverage by site and by version of the task table."""
    yield "| WebArena's site | intents | tasks | " + " | ".join(f"covered by version {one}" for one in VERSIONS) + " |"
    yield "|---" * (3 + len(VERSIONS)) + "|"
    for site in SITES:
        yield _row(site.replace("_", " "), [one for one in intents() if one.site == site])
    yield _row("all", intents())


def _row(name: str, found: Iterable[Intent]) -> str:
    found = list(found)
    tasks = sum(one.tasks for one in found)
    cells = [name, str(len(found)), str(tasks)]
    for version in VERSIONS:
        covered = [one for one in found if one.covered(version)]
        count = sum(one.tasks for one in covered)
        cells.append(f"{len(covered)} intents, {count} tasks: {count / tasks:.0%}")
    return f"| {' | '.join(cells)} |"
