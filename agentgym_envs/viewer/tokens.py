"""The tokens of an episode, for the tokens view."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.rollout.token_file import TokenFile, TokenRecord, tokens_path
from agentgym_envs.trajectory import line_mark

_HOW = (
    "No tokens were recorded for this episode. Training keeps them with --record-tokens, and agentgym eval with "
    "--tokens and a model whose token ids are known (hf:MODEL)."
)
_NO_LOGPROBS = "The engine returned no log-probabilities, so tokens are not coloured by probability."


def has_tokens(path: Path) -> bool:
    """True if a file of trajectories has a file of tokens next to it."""
    return tokens_path(path).is_file()


def tokens_of(path: Path, line: bytes) -> dict[str, Any]:
    """Return the segments of an episode, and a note on missing data.

    `path` is the file of the trajectories, `line` that of the episode. A segment has `prompt` (one text per token),
    `prompt_ids`, `pieces` (one text per token), `ids`, `mask`, `logprobs` (or None) and `rewards`.
    """
    mark, file = line_mark(line.rstrip(b"\r\n")), _file(path)
    try:
        records = file.read(mark)
    except (TrajectoryError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error  # without the path, as exports must not have it
        return {"segments": [], "note": f"The tokens of this episode cannot be read: {why}"}
    if records is None:
        return {"segments": [], "note": _HOW}
    return {"segments": [_segment(record) for record in records], "note": _note(records, file.count(mark))}


def tokens_inside(document: bytes) -> dict[str, Any]:
    """The same for an ATIF document, which has its tokens inside; of these only the ids are known."""
    from agentgym_envs.viewer.atif import read_tokens

    records = read_tokens(document)
    note = _note(records, 1) if records else "This document has no token ids."
    return {"segments": [_segment(record) for record in records], "note": note}


@lru_cache(maxsize=256)
def _file(path: Path) -> TokenFile:
    return TokenFile(path)


def _segment(record: TokenRecord) -> dict[str, Any]:
    return {
        "prompt": record.prompt_pieces,
        "prompt_ids": record.prompt_ids,
        "pieces": record.pieces,
        "ids": record.ids,
        "mask": record.mask,
        "logprobs": record.logprobs,
        "rewards": record.rewards,
    }


def _note(records: Sequence[TokenRecord], equal: int) -> str | None:
    notes = [_NO_LOGPROBS] if all(record.logprobs is None for record in records) else []
    if equal > 1:
        notes.append(f"{equal} episodes of this file are identical; these are the tokens of the first one.")
    return " ".join(notes) or None
