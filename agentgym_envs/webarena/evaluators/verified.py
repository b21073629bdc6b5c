"""WebArena Verified's own evaluation, from the agent's JSON response and its browser's requests.

Source: https://github.com/ServiceNow/webarena-verified (1.2.3). The package pins its dependencies, so it may be
installed in a separate environment. Its Python then runs as one worker process.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.evaluators import verified_worker
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict

PYTHON = "AGENTGYM_WEBARENA_VERIFIED_PYTHON"
"""Environment variable: the Python of an environment that has webarena-verified."""

UNSOLVABLE = frozenset((319, 429, *range(562, 571), 699, 700, 742, 743, 745, 746, 811))
"""Tasks that webarena-verified 1.2.3 always scores 0, or always fails on (699, 700 and 811).

It requires a key that it does not extract (319), different requests that are each the last to the same URL (429, 567 to
570, 742, 743, 745, 746), or Markdown that contains its own site placeholders (562 to 566).
"""

_DEADLINE = 60.0  # seconds; the first reply takes three, for imports


@dataclass(frozen=True, slots=True)
class Verified:
    """The package webarena-verified scores one of its tasks (0 to 811) with 0 or 1.

    The agent's answer must be JSON with task_type, status and retrieved_data. The episode must provide `urls` for the
    task's sites. 15 tasks also need the contents of JSON responses, and 5 the cookies.

    Attributes:
        task: the number of the task.
        python: the Python of an environment with the package; by default the one that the environment variable
            AGENTGYM_WEBARENA_VERIFIED_PYTHON names, else this process.
    """

    task: int
    python: str | None = None

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode. Raises UsageError if the package or a site's address is missing."""
        python = find_python(self.python)
        requests = [complete(entry) for entry in episode.requests]
        request = {"task": self.task, "answer": episode.answer, "requests": requests, "urls": dict(episode.urls)}
        result = await (asyncio.to_thread(verified_worker.score, request) if python is None else _ask(python, request))
        if "usage" in result:
            raise UsageError(result["usage"])
        if "error" in result:
            raise EnvError(result["error"])
        return Verdict(result["score"], result["reason"] if result["score"] < 1.0 else "")


def find_python(python: str | None = None) -> str | None:
    """Return the Python that has the package; None for this process. Raises UsageError without one."""
    wanted = python or os.environ.get(PYTHON)
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise UsageError(f"there is no Python at {wanted!r}, where webarena-verified was to be asked")
        return found
    if importlib.util.find_spec("webarena_verified") is None:
        raise UsageError(
            "tasks of WebArena Verified are scored by the package webarena-verified. Run: pip install "
            f"webarena-verified, or install it in another environment and set {PYTHON} to its Python"
        )
    return None


def complete(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields that the package reads in every entry of an HTTP archive."""
    request, response = entry["request"], entry.get("response", {})
    headers: Sequence[Mapping[str, str]] = response.get("headers", ())
    location = next((header["value"] for header in headers if header["name"].lower() == "location"), "")
    filled = {
        "status": 0,
        "headers": [],
        "redirectURL": location,
        "cookies": [cookie for header in headers for cookie in _cookies(header)],
        "content": {},
    }
    return {**entry, "request": {"headers": [], **request}, "response": {**filled, **response}}


def _cookies(header: Mapping[str, str]) -> list[dict[str, str]]:
    """The cookies that a header sets. Browsers combine several in one header, one per line."""
    if header["name"].lower() != "set-cookie":
        return []
    pairs = (line.partition(";")[0].partition("=") for line in header["value"].splitlines())
    return [{"name": name.strip(), "value": value.strip()} for name, _, value in pairs]


async def _ask(python: str, request: Mapping[str, Any]) -> dict[str, Any]:
    worker = _worker(python)
    try:
        return await asyncio.wait_for(asyncio.to_thread(worker.ask, json.dumps(request)), _DEADLINE)
    except TimeoutError:
        worker.close()
        raise EnvError(f"webarena-verified, run by {python}, did not answer within {_DEADLINE:g} s") from None


class _Worker:
    """A process that scores one request at a time."""

    def __init__(self, python: str) -> None:
        self._python, self._lock = python, threading.Lock()
        command = [python, "-I", str(Path(verified_worker.__file__))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: str) -> dict[str, Any]:
        with self._lock:  # held until the reply is read, even after the caller's timeout
            reply = self._exchange(request)
        if not reply:
            raise EnvError(f"webarena-verified, run by {self._python}, stopped with {self._process.wait()}")
        result: dict[str, Any] = json.loads(reply)
        return result

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _exchange(self, request: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except (OSError, ValueError):  # the process has ended
            return ""


_workers: dict[tuple[int, str], _Worker] = {}
_starting = threading.Lock()


def _worker(python: str) -> _Worker:
    """The worker of this process; a forked child must not use its parent's."""
    with _starting:
        key = os.getpid(), python
        if key not in _workers or not _workers[key].alive:
            _workers[key] = _Worker(python)
        return _workers[key]


@atexit.register
def _close_all() -> None:
    for (process, _), worker in _workers.items():
        if process == os.getpid():
            worker.close()
