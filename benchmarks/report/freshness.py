"""Show whether the code that a section measured has changed since: the commit of its figures, and a hash of the files.

`MEASURES` is the table: for each section, the files and folders whose code its figures measure. A change of anything
else leaves the figures valid.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.report.venvs import ROOT

_CORE = ("agentgym_envs/core.py", "agentgym_envs/seeding.py", "agentgym_envs/task.py", "agentgym_envs/grammar.py")

MEASURES: Mapping[str, tuple[str, ...]] = {
    "textcraft": ("agentgym_envs/textcraft", *_CORE),
    "babyai": ("agentgym_envs/babyai",),
    "sciworld": ("agentgym_envs/sciworld",),
    "search": ("agentgym_envs/search/retrieval", "agentgym_envs/http/retrieve.py"),
    "search-scale": ("agentgym_envs/search/retrieval",),
    "search-questions": ("agentgym_envs/search/retrieval",),
    "search-need": ("agentgym_envs/search", "agentgym_envs/corpus"),
    "web": ("agentgym_envs/webarena/browser",),
    "sites": ("agentgym_envs/webarena/sites",),
    "vector": ("agentgym_envs/vector",),
    "serving": ("agentgym_envs/http", "agentgym_envs/hosting"),
    "peers": ("agentgym_envs/http", "agentgym_envs/rollout"),
    "soak": ("agentgym_envs/http", "agentgym_envs/hosting"),
    "ray-hosts": ("adapters/verl",),
    "evaluate": ("agentgym_envs/evaluate", "agentgym_envs/rollout"),
    "viewer": ("agentgym_envs/viewer",),
    "scale": ("agentgym_envs/hosting", "agentgym_envs/vector"),
    "cores": ("agentgym_envs/hosting", "agentgym_envs/vector"),
    "lockstep": ("agentgym_envs/rollout", "agentgym_envs/vector"),
    "asynchronous": ("adapters/trl/agentgym_trl/asynchronous",),
    "overhead": ("agentgym_envs/rollout",),
    "training-step": ("adapters/trl/agentgym_trl",),
    "generation": ("adapters/trl/agentgym_trl/generation",),
    "startup": ("agentgym_envs/registration.py", "agentgym_envs/cli"),
    "footprint": ("pyproject.toml",),
    "algorithms": ("adapters/trl/agentgym_trl",),
    "algorithms-babyai": ("adapters/trl/agentgym_trl",),
    "staleness": ("adapters/trl/agentgym_trl/asynchronous",),
    "coop": ("agentgym_envs/multiagent",),
}


def measured(name: str) -> dict[str, str]:
    """Return what a record says about the measured code: `commit` (empty without git) and `code`, the hash."""
    return {"commit": _git("rev-parse", "HEAD"), "code": code_hash(name)}


def code_hash(name: str, root: Path = ROOT) -> str:
    """Return a hash of the code that a section measures. Comments, docstrings and line breaks do not change it."""
    digest = hashlib.sha256()
    for path in _files(name, root):
        digest.update(f"{path.relative_to(root)}\0{_code(path)}\0".encode())
    return digest.hexdigest()[:16]


def stale(name: str, record: Mapping[str, Any], root: Path = ROOT) -> bool:
    """True if measured code has changed since the figures, or if their record does not say what was measured."""
    return record.get("code") != code_hash(name, root)


def _files(name: str, root: Path) -> Iterator[Path]:
    for entry in MEASURES[name]:
        path = root / entry
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


@cache
def _code(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)]
    return ast.unparse(tree)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
