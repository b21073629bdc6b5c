"""The directory of a training run: what it holds, whose it is, and where to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers.trainer_utils import get_last_checkpoint

from agentgym_envs.errors import UsageError

_FILE = "run.json"


def claim_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> str | None:
    """Make `path` the directory of a run with these settings; returns the checkpoint to go on from, if any.

    Raises:
        UsageError: the directory holds another run, or this one and `resume` was not asked for.
    """
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; --output_dir must be a directory")
    if directory.is_dir() and any(directory.iterdir()):
        _check_same_run(directory, settings, resume)
        checkpoint: str | None = get_last_checkpoint(str(directory))
        return checkpoint
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _FILE).write_text(json.dumps(dict(settings), indent=1) + "\n", encoding="utf-8")
    return None


def _check_same_run(directory: Path, settings: Mapping[str, Any], resume: bool) -> None:
    try:
        found = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{directory} is not empty and holds no run of ours; choose another --output_dir") from None
    if not resume:
        raise UsageError(f"{directory} holds a run already; go on with it by --resume, or choose another --output_dir")
    wanted = json.loads(json.dumps(dict(settings)))
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise UsageError(
                f"{directory} holds another run: its {key} is {found.get(key)!r}, not {wanted.get(key)!r}; "
                "choose another --output_dir, or give the same settings"
            )
