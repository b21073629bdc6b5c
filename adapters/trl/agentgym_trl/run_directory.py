"""The directory of a training run: what it holds, whose it is, and where to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError

_FILE = "run.json"


def check_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Whether a run with these settings may use `path`; writes nothing.

    Raises:
        UsageError: the directory holds another run, or this one and `resume` was not asked for.
    """
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; --output_dir must be a directory")
    if directory.is_dir() and any(directory.iterdir()):
        _check_same_run(directory, settings, resume)


def claim_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> str | None:
    """Make `path` the directory of a run with these settings; returns the checkpoint to go on from, if any.

    Raises:
        UsageError: as `check_run_directory`.
    """
    check_run_directory(path, settings, resume=resume)
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / _FILE).exists():
        (directory / _FILE).write_text(json.dumps(dict(settings), indent=1) + "\n", encoding="utf-8")
    return last_checkpoint(directory)


def last_checkpoint(path: str | Path) -> str | None:
    """The newest whole checkpoint in the directory of a run, if there is one.

    One that a full disk or a kill cut short is passed over: it has no trainer state yet, which is written last.
    """
    found = [directory for directory in Path(path).glob("checkpoint-*") if directory.name[11:].isdecimal()]
    whole = [directory for directory in found if _reads(directory / "trainer_state.json")]
    return str(max(whole, key=lambda directory: int(directory.name[11:]))) if whole else None


def _reads(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _check_same_run(directory: Path, settings: Mapping[str, Any], resume: bool) -> None:
    try:
        found = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{directory} is not empty and holds no run of ours; choose another --output_dir")
    if not resume:
        raise UsageError(f"{directory} holds a run already; go on with it by --resume, or choose another --output_dir")
    wanted = json.loads(json.dumps(dict(settings)))
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise UsageError(
                f"{directory} holds another run: its {key} is {found.get(key)!r}, not {wanted.get(key)!r}; "
                "choose another --output_dir, or give the same settings"
            )
