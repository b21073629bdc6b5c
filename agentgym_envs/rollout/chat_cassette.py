"""Recordings of chat completions, with which an evaluation repeats offline: a JSONL file, one reply a line.

    {"episode": "textcraft/198 0", "request": "5f0c…", "reply": {"choices": [...], "usage": {...}}}

`request` is a hash of the request without its address, so a recording holds no key and serves any server.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import EngineError, UsageError
from agentgym_envs.recording import Recording
from agentgym_envs.rollout.engines import current_episode
from agentgym_envs.task import canonical_hash

_Key = tuple[str, str]
_KEPT = ("choices", "usage", "model")
"""The parts of a reply that are recorded."""


class ChatCassette:
    """Recorded replies by episode and request. Equal requests of an episode get their replies in order."""

    def __init__(self, path: Path, *, replay: bool = False) -> None:
        """Open or begin a recording. With `replay`, only recorded requests are answered.

        Raises UsageError if it cannot be read, a line is malformed, or there is none to replay.
        """
        self.path, self.replay = path, replay
        self._replies: defaultdict[_Key, list[dict[str, Any]]] = defaultdict(list)
        self._given: Counter[_Key] = Counter()
        if replay and not path.is_file():
            raise UsageError(f"there is no cassette {path} to replay; record it first, without --replay")
        self._file = Recording(path, self._add, "a recorded chat completion")

    def find(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the recorded reply to a request of the current episode; None if it must be sent.

        Raises UsageError if it was not recorded and the cassette is replayed.
        """
        key = _key(body)
        number, replies = self._given[key], self._replies[key]
        if number < len(replies):
            self._given[key] += 1
            return replies[number]
        if self.replay:
            raise UsageError(
                f"the cassette {self.path} holds no reply to this request of the episode {key[0]!r}: the options, "
                "the prompts or the model differ from the recorded run's, or it was not complete"
            )
        return None

    def record(self, body: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Append the reply to a request that `find` did not know. Raises EngineError if it cannot be written."""
        key = _key(body)
        kept = {name: reply[name] for name in _KEPT if name in reply}
        try:
            self._file.append({"episode": key[0], "request": key[1], "reply": kept})
        except OSError as error:
            raise EngineError(f"the cassette {self.path} cannot be written: {error.strerror}") from None
        self._replies[key].append(kept)
        self._given[key] += 1

    def _add(self, row: Any) -> None:
        key, reply = (row["episode"], row["request"]), row["reply"]
        if not all(isinstance(part, str) for part in key) or not isinstance(reply, dict):
            raise TypeError(key)
        self._replies[key].append(reply)


def _key(body: Mapping[str, Any]) -> _Key:
    return current_episode.get(), canonical_hash(body)
