"""The directory of a training run, and its last checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.rollout.run_directory import claim_directory


def claim_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> str | None:
    """Make `path` the directory of a run with these settings; return the checkpoint to resume from, if any.

    Raises:
        UsageError: the directory holds another run, or this run and `resume` is false.
    """
    claim_directory(path, settings, resume=resume)
    return last_checkpoint(path)


def last_checkpoint(path: str | Path) -> str | None:
    """The newest complete checkpoint in the directory of a run, if there is one.

    A checkpoint that a full disk or a kill interrupted has no trainer state, which is written last.
    """
    checkpoints = [directory for directory in Path(path).glob("checkpoint-*") if directory.name[11:].isdecimal()]
    complete = [directory for directory in checkpoints if _is_json(directory / "trainer_state.json")]
    return str(max(complete, key=lambda directory: int(directory.name[11:]))) if complete else None


def _is_json(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False
