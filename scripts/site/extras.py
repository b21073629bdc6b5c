"""The table of extras on the page Install, made from pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from repository import ROOT

GOALS = {
    "textcraft": "TextCraft (part of the core)",
    "babyai": "BabyAI",
    "sciworld": "SciWorld, with a Java",
    "search": "Search",
    "search-fast": "Search: the engine bm25s",
    "search-dense": "Search: encoders",
    "webarena": "WebArena; also needs a Chromium",
    "miniwob": "MiniWoB and WebArena; also needs a Chromium",
    "webarena-verified": "scores of WebArena's own tasks; in an environment of its own",
    "images": "animations of episodes",
    "parquet": "data sets for the Hugging Face Hub",
    "pixels": "screenshots as observations",
    "multiagent": "teams on PettingZoo",
    "serve": "the HTTP server",
    "mcp": "the MCP server; in an environment of its own",
    "inspect": "tasks for Inspect AI; in an environment of its own",
    "verifiers": "environments for verifiers; in an environment of its own",
    "view": "the viewer",
    "trl": "models in this process, and training on one machine",
    "verl": "training on a cluster; Python 3.11 or 3.12",
    "docs": "this site",
    "dev": "everything that the tests need",
    "all": "all scenarios, serving, the viewer and TRL",
}
"""The use of each extra. Adding one to pyproject.toml takes a row here."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def extras_table() -> str:
    """Every extra with its use and the packages that it names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = [f"| `{name}` | {GOALS[name]} | {_packages(found)} |" for name, found in _extras(project).items()]
    return "\n".join(["| extra | for | installs |", "|---|---|---|", *rows])


def _extras(project: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    return project["optional-dependencies"]


def _packages(requirements: list[str]) -> str:
    """The names of packages and of our own extras. A long list is truncated."""
    names = [name for requirement in requirements for name in _names(requirement)]
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return ", ".join(shown)


def _names(requirement: str) -> list[str]:
    if own := re.match(r"agentgym-envs\[(.+?)\]", requirement):
        return [f"`[{extra}]`" for extra in own[1].split(",")]
    found = _NAME.match(requirement)
    assert found is not None
    return [found[0]]
