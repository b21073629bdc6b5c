"""ATIF documents as episodes of the viewer: a file holds one document, a list of them, or one per line.

Each document is an episode, and so is each sub-agent of one that another program wrote. The agents of our own teams are
left out, since the team's episode shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.export.atif_import import from_atif, is_atif, tokens_of_atif
from agentgym_envs.rollout.token_file import TokenRecord
from agentgym_envs.trajectory import Trajectory

_HEAD = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')


class _Document(msgspec.Struct):
    """The parts of a document that lead to its sub-agents."""

    schema_version: str
    subagent_trajectories: list[msgspec.Raw] | None = None
    extra: dict[str, msgspec.Raw] | None = None


def find_documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the documents of a file with their offsets. Raises TrajectoryError if it is not valid JSON."""
    offset = 0
    for text in _top(data):
        offset = data.find(text, offset)
        yield from _with_agents(text, offset)
        offset += len(text)


def mentions_tokens(data: bytes) -> bool:
    """True if a file has token ids."""
    return b'"completion_token_ids"' in data or b'"turn_spans"' in data


def read_document(text: bytes) -> Trajectory:
    """Convert the text of a document. Raises TrajectoryError."""
    return from_atif(_parse(text))


def read_tokens(text: bytes) -> list[TokenRecord]:
    """The tokens of a document. Raises TrajectoryError."""
    return tokens_of_atif(_parse(text))


def _top(data: bytes) -> list[bytes]:
    """The documents that are not sub-agents."""
    text = data.strip()
    try:
        if text.startswith(b"["):
            return [bytes(each) for each in msgspec.json.decode(text, type=list[msgspec.Raw])]
        return [bytes(msgspec.json.decode(text, type=msgspec.Raw))]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        lines = [line for line in text.split(b"\n") if line.strip()]
        if len(lines) > 1 and all(_HEAD.search(line) for line in lines):
            return lines
        raise TrajectoryError(f"not a complete JSON document: {error}") from None


def _with_agents(text: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    yield offset, text
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):  # reading the document says what is wrong
        return
    if "agentgym" in (document.extra or {}):
        return
    position = 0
    for agent in document.subagent_trajectories or ():
        inner = bytes(agent)
        position = text.find(inner, position)
        yield from _with_agents(inner, offset + position)
        position += len(inner)


def _parse(text: bytes) -> Any:
    try:
        document = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise TrajectoryError(f"not JSON: {error}") from None
    if not is_atif(document):
        raise TrajectoryError("not an ATIF document: it has no schema_version ATIF-v...")
    return document
