"""The directory of a training run: claimed, and where to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.rollout.run_directory import claim_directory


def claim_run_directory(path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> str | None:
    """Make `path` the directory of a run with these settings; returns the checkpoint to go on from, if any.

    Raises:
        UsageError: the directory holds another run, or this one and `resume` was not asked for.
    """
    claim_directory(path, settings, resume=resume)
    return last_checkpoint(path)


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
