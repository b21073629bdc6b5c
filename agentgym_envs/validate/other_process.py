"""Episodes in another process: other hash seed, time zone and working directory, and no network.

python -m agentgym_envs.validate.other_process < request.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.validate.episodes import EpisodeStart, play, replaying
from agentgym_envs.validate.findings import BudgetUsed

_MARK = "agentgym-validate:"
"""Begins the line with the results, since an environment may print."""


@dataclass(frozen=True)
class OtherProcess:
    """The results of the other process, and what differs in it."""

    transcripts: list[Any]
    verdicts: list[Any]
    digest: str | None
    first_work_s: float
    differs_in: list[str]


def play_elsewhere(
    name: str, kwargs: Mapping[str, Any], scripts: Sequence[tuple[EpisodeStart, list[str]]], seconds: float
) -> OtherProcess:
    """Play scripts in another process. Raises EnvError if it fails, BudgetUsed if it takes too long."""
    episodes = [{"seed": start.seed, "task": start.task_id, "actions": actions} for start, actions in scripts]
    request = {"name": name, "kwargs": kwargs, "episodes": episodes, "began": time.time()}
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    zone = "Asia/Tokyo" if os.environ.get("TZ") == "Pacific/Apia" else "Pacific/Apia"
    path = os.pathsep.join([entry or os.getcwd() for entry in sys.path])
    environ = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": path}
    command = [sys.executable, "-m", __name__]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command,
                input=json.dumps(request),
                env=environ,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=max(seconds, 1.0),
            )
        except subprocess.TimeoutExpired:
            raise BudgetUsed("the other process took longer than the budget") from None
    found = [line.removeprefix(_MARK) for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise EnvError(f"another process could not play the episodes: {last}")
    differs_in = [f"PYTHONHASHSEED={seed}", f"TZ={zone}", "the working directory", "no network"]
    return OtherProcess(**json.loads(found[-1]), differs_in=differs_in)


def main() -> None:
    """Play the episodes of the request on stdin, and print one line of JSON."""
    from agentgym_envs.core import TextEnv
    from agentgym_envs.validate.subject import load_subject
    from agentgym_envs.validate.watch import refuse_network

    request = json.load(sys.stdin)
    refuse_network()
    played, first_work = [], 0.0
    with load_subject(request["name"], request["kwargs"], seconds=1e9).fresh() as env:
        for row in request["episodes"]:
            episode = play(env, EpisodeStart(row["seed"], row["task"]), replaying(row["actions"]))
            first_work = first_work or (time.time() - request["began"])
            played.append(episode)
        base = env.unwrapped
        digest = base.tasks.digest if isinstance(base, TextEnv) else None
    results = {
        "transcripts": [episode.transcript for episode in played],
        "verdicts": [episode.verdicts for episode in played],
        "digest": digest,
        "first_work_s": first_work,
    }
    sys.stdout.write(f"\n{_MARK}{json.dumps(results)}\n")


if __name__ == "__main__":
    main()
