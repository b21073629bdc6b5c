"""Copies text from the code into pages, between two comments.

    python scripts/site/sections.py

A page of a scenario names the sections of a docstring: `<!-- docstring PATH CLASS: SECTION; SECTION -->` up to
`<!-- end of docstring -->`. A table of the TRL adapter (algorithms, credit, samplers) is between `<!-- algorithms -->`
and `<!-- end of algorithms -->`; so are those of `benchmarks.grading`, `benchmarks.audit`, `agentgym_envs.validate`,
`agentgym_envs.audit` and of the search engines. `tests/docs` fails when a page differs from the code.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_MARKED = re.compile(r"(<!-- docstring (\S+) (\w+): ([^>]+?) -->\n).*?(<!-- end of docstring -->)", re.DOTALL)
_TABLES = {
    "algorithms": lambda: _load("algorithms").algorithm_table(),
    "credit": lambda: _load("credit_methods").credit_table(),
    "samplers": lambda: _load("samplers").sampler_table(),
    "grading": lambda: _grading_table(),
    "validation checks": lambda: _check_table(),
    "retrievers": lambda: _retriever_table(),
    "rerank protocols": lambda: _rerank_table(),
    "attackers": lambda: _attacker_table(),
    "audit": lambda: _audit_table(),
    "extras": lambda: _own("extras", "extras_table"),
    "cheat names": lambda: _own("cheatsheet", "name_table"),
    "cheat arguments": lambda: _own("cheatsheet", "common_arguments"),
    "cheat environments": lambda: _own("cheatsheet", "environment_table"),
    "cheat grammars": lambda: _own("cheatsheet", "grammar_table"),
    "cheat commands": lambda: _own("cheatsheet", "command_table"),
    "cheat eval": lambda: _own("cheatsheet", "eval_table"),
    "cheat files": lambda: _own("cheatsheet", "file_table"),
    "cheat fields": lambda: _own("cheatsheet", "field_table"),
    "leaderboard": lambda: _leaderboard(),
}


def fill_in(page: str) -> str:
    """The page with the current docstrings and table."""
    page = _MARKED.sub(lambda match: match[1] + _wanted(match[2], match[3], match[4]) + match[5], page)
    for name, table in _TABLES.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page = marked.sub(lambda match, table=table: f"{match[1]}\n{table()}\n{match[2]}", page)  # type: ignore[misc]
    return page


def _grading_table() -> str:
    sys.path.insert(0, str(ROOT))
    from benchmarks.grading import table

    return table(json.loads((ROOT / "benchmarks/results/grading.json").read_text(encoding="utf-8")))


def _check_table() -> str:
    sys.path.insert(0, str(ROOT))
    from agentgym_envs.validate import check_table

    return check_table()


def _retriever_table() -> str:
    sys.path.insert(0, str(ROOT))
    from agentgym_envs.search.retrieval.tables import retriever_table

    return retriever_table()


def _rerank_table() -> str:
    sys.path.insert(0, str(ROOT))
    from agentgym_envs.search.retrieval.tables import rerank_table

    return rerank_table()


def _attacker_table() -> str:
    sys.path.insert(0, str(ROOT))
    from agentgym_envs.audit import attacker_table

    return attacker_table()


def _audit_table() -> str:
    sys.path.insert(0, str(ROOT))
    from benchmarks.audit import table

    return table(json.loads((ROOT / "benchmarks/results/audit.json").read_text(encoding="utf-8")))


def _own(module: str, function: str) -> str:
    """A table of a module in this folder."""
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts/site")]
    table: str = getattr(importlib.import_module(module), function)()
    return table


def _leaderboard() -> str:
    sys.path.insert(0, str(ROOT))
    from benchmarks.leaderboard import read_rows, tables

    return tables(read_rows())


def _load(name: str) -> Any:
    """A module with a table, loaded by its path: importing its package needs TRL."""
    spec = importlib.util.spec_from_file_location(f"_{name}", ROOT / f"adapters/trl/agentgym_trl/{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[f"_{name}"] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _wanted(path: str, name: str, wanted: str) -> str:
    sections = _sections(_docstring(path, name))
    return "\n" + "".join(f"### {title}\n{sections[title]}\n\n" for title in wanted.split("; "))


def _docstring(path: str, name: str) -> str:
    tree = ast.parse((ROOT / path).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return inspect.cleandoc(ast.get_docstring(found) or "")


def _sections(docstring: str) -> dict[str, str]:
    pieces = re.split(r"^## (.+)$", docstring, flags=re.MULTILINE)
    return {title: text.strip() for title, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def main() -> None:
    """Bring every page up to date."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text()
        if (filled := fill_in(text)) != text:
            page.write_text(filled)


if __name__ == "__main__":
    main()
