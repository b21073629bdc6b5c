"""The directory of a training run, and the check that no other run uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError

_FILE = "run.json"
_RESULTS = "evaluation"
_SCHEMA = 2
"""Raised when a setting gets another name, since a run with the old names cannot be resumed."""


def check_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool, option: str = "--out") -> None:
    """Check that a run with these settings may use `path`, which the user gave as `option`. Writes nothing.

    Raises:
        UsageError: the directory holds another run, or this one and `resume` is False; another version began the run.
    """
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; {option} must be a directory")
    if directory.is_dir() and any(directory.iterdir()):
        _check_same_run(directory, settings, resume, option)


def claim_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool, option: str = "--out") -> None:
    """Make `path` the directory of a run with these settings.

    Raises:
        UsageError: see `check_run_directory`.
    """
    check_run_directory(path, settings, resume=resume, option=option)
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / _FILE).exists():
        (directory / _FILE).write_text(json.dumps({"schema": _SCHEMA, **settings}, indent=1) + "\n", encoding="utf-8")


def record_results(path: str | Path, results: Mapping[str, Any]) -> None:
    """Write the results of a run into its `run.json`, next to its settings; they replace earlier ones."""
    file = Path(path) / _FILE
    run = json.loads(file.read_text(encoding="utf-8"))
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps({**run, _RESULTS: dict(results)}, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def _check_same_run(directory: Path, settings: Mapping[str, Any], resume: bool, option: str) -> None:
    try:
        found = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{directory} is not empty and holds no run of ours; choose another {option}")
    if not resume:
        raise UsageError(f"{directory} already holds a run; continue it with --resume, or choose another {option}")
    if found.pop("schema", 1) != _SCHEMA:
        raise UsageError(
            f"{directory} cannot be resumed: another version of agentgym-envs began this run, and its settings have "
            f"other names; resume it with that version, or choose another {option} for a new run"
        )
    found.pop(_RESULTS, None)
    wanted = json.loads(json.dumps(dict(settings)))
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise UsageError(
                f"{directory} holds another run: its {key} is {found.get(key)!r}, not {wanted.get(key)!r}; "
                f"choose another {option}, or give the same settings"
            )
