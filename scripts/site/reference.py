"""The reference: the modules with a page, and the page's source for mkdocstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from repository import ROOT

PACKAGES = {
    "Core": ("agentgym_envs",),
    "Rollouts and agents": ("agentgym_envs/rollout",),
    "Evaluation": ("agentgym_envs/evaluate",),
    "Validation": ("agentgym_envs/validate", "agentgym_envs/audit"),
    "Vector environments": ("agentgym_envs/vector", "agentgym_envs/hosting"),
    "Serving": ("agentgym_envs/http",),
    "Teams": ("agentgym_envs/multiagent",),
    "Doors": ("agentgym_envs/mcp", "agentgym_envs/inspect_tasks", "adapters/verifiers/agentgym_verifiers"),
    "TextCraft": ("agentgym_envs/textcraft",),
    "BabyAI": ("agentgym_envs/babyai",),
    "SciWorld": ("agentgym_envs/sciworld",),
    "Search": ("agentgym_envs/search",),
    "WebArena and MiniWoB": ("agentgym_envs/webarena",),
    "Training with TRL": ("adapters/trl/agentgym_trl",),
    "Training with verl": ("adapters/verl/agentgym_verl",),
}
# What has a use by a page of its own (the commands, the viewer, the sites) or is the tasks themselves.
_LEFT_OUT = {"browser", "cli", "demo", "inspector", "oracle", "questions", "sites", "tasks", "viewer", "data"}


class Module(NamedTuple):
    """A module with a page."""

    name: str
    path: str
    uri: str
    summary: str


@cache
def sections() -> dict[str, list[Module]]:
    """The modules of each section, a package before what is in it."""
    return {
        title: [module for package in packages for module in _modules(package)] for title, packages in PACKAGES.items()
    }


def module_page(module: Module) -> str:
    """The page of a module. Guides come before it in the results of a search."""
    return f"---\ntitle: {module.name}\nsearch:\n  boost: 0.1\n---\n\n# `{module.name}`\n\n::: {module.name}\n"


def index_page(modules: dict[str, list[Module]]) -> str:
    """The first page: every module with its first sentence."""
    parts = [
        "# Reference",
        "Made from the docstrings. [The command line](commands.md) has a page of its own, made from the program.",
    ]
    for title, rows in modules.items():
        lines = [f"| [`{row.name}`]({row.uri.removeprefix('reference/')}) | {row.summary} |" for row in rows]
        parts.append("\n".join([f"## {title}", "", "| module | |", "|---|---|", *lines]))
    return "\n\n".join(parts) + "\n"


def _modules(package: str) -> Iterator[Module]:
    folder = ROOT / package
    nested = {path for paths in PACKAGES.values() for path in paths}
    for file in sorted(folder.rglob("*.py"), key=_package_first):
        inner = file.relative_to(folder).parts[:-1]
        elsewhere = any(str(parent.relative_to(ROOT)) in nested for parent in _parents(file, folder))
        top = package != "agentgym_envs" or not inner  # what is in no section of its own has no page
        if top and not elsewhere and not _LEFT_OUT & set(inner) and file.stem != "__main__":
            yield _module(file)


def _parents(file: Path, folder: Path) -> Iterator[Path]:
    yield from (parent for parent in file.parents if parent != folder and parent.is_relative_to(folder))


def _package_first(file: Path) -> tuple[str, bool, str]:
    return str(file.parent), file.stem != "__init__", file.stem


def _module(file: Path) -> Module:
    top = next(parent for parent in file.parents if not (parent / "__init__.py").exists())
    parts = file.relative_to(top).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    doc = ast.get_docstring(ast.parse(file.read_text())) or ""
    name = ".".join(parts)
    first = " ".join(doc.partition("\n\n")[0].split()).replace("|", "\\|")
    return Module(name, str(file.relative_to(ROOT)), f"reference/{'/'.join(parts)}.md", first)
