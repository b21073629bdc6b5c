"""Where the environments of an agent-loop worker run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import psutil
import pytest

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting import RemoteEnv
from agentgym_envs.registration import env_ids, register
from agentgym_verl.env_backends import EnvBackends
from agentgym_verl.settings import EpisodeSettings
from tests.toy import CountEnv
from tests.toy_envs import HERE
from tests.waiting import until

REPO = Path(__file__).parents[3]
TRICKY = HERE + "Toy/Tricky-v0"
HEAVY = "Toy/Heavy-v0"


class HeavyEnv(CountEnv):
    """`CountEnv` that says it burns CPU."""

    heavy = True


register(HEAVY, f"{__name__}:HeavyEnv")


@pytest.mark.parametrize("env_id", [*env_ids(), HEAVY])
def test_what_burns_cpu_here_is_put_aside_and_nothing_else(env_id: str) -> None:
    places = EnvBackends(EpisodeSettings())
    assert places._backend(env_id, {}) == ("process" if env_id == HEAVY else "local")
    assert places._backend(env_id, {"base_url": "http://127.0.0.1:1"}) == "local"


@pytest.mark.parametrize("backend", ["local", "process", "ray"])
def test_the_backend_that_was_asked_for(backend: str) -> None:
    places = EnvBackends(EpisodeSettings(backend=backend))
    assert places._backend(TRICKY, {}) == backend
    assert places._backend(TRICKY, {"base_url": "http://127.0.0.1:1"}) == "local"


def test_local_environments_are_made_here_with_their_arguments() -> None:
    with closing(EnvBackends(EpisodeSettings(workers=2))) as places:
        places.add("kind", TRICKY, {"instructions": "Count."})
        places.add("kind", "AgentGym/NoSuch-v0", {})
        assert list(places.makers) == ["kind"]
        first, second = places.makers["kind"](), places.makers["kind"]()
        assert not isinstance(first, RemoteEnv) and first is not second
        assert first.unwrapped.instructions == "Count."  # type: ignore[attr-defined]


@pytest.mark.slow
def test_ray_gets_what_the_settings_say() -> None:
    ray = pytest.importorskip("ray")
    places = EnvBackends(EpisodeSettings(backend="ray", hosts=3, workers=5, placement="near"))
    pool: Any = places._place("ray")
    assert tuple(pool._terms)[:4] == (3, 5, "near", 5)
    assert places._place("ray") is pool
    with pytest.raises(UsageError, match=r"call ray\.init"):
        places._place("ray").open(TRICKY, {})
    places.close()
    with pytest.raises(EnvError, match="closed"):
        places._place("ray").open(TRICKY, {})
    assert not ray.is_initialized()  # nothing of all this starts a cluster


@pytest.fixture
def places() -> Iterator[EnvBackends]:
    with closing(EnvBackends(EpisodeSettings(backend="process", workers=2))) as places:
        places.add("kind", TRICKY, {})
        yield places


def pid_of(env: gym.Env[str, str]) -> int:
    env.reset(seed=0, options={"task": "count/9"})
    return int(env.step("who")[0].split()[0])


@pytest.mark.slow
def test_worker_processes_are_shared_by_all_kinds_and_end_with_the_places(places: EnvBackends) -> None:
    places.add("other", TRICKY, {"instructions": "Count."})
    pids = {pid_of(places.makers[kind]()) for kind in ("kind", "other", "kind", "other")}
    assert len(pids) == 2 and os.getpid() not in pids
    places.close()
    until(lambda: not any(map(psutil.pid_exists, pids)))


SCRIPT = f"""
import sys
from agentgym_verl.env_backends import Places
from agentgym_verl.settings import Settings
places = Places(Settings(backend="process", workers=1))
places.add("kind", {TRICKY!r}, {{}})
env = places.makers["kind"]()
env.reset(seed=0)
print(env.step("who")[0].split()[0], flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [None, signal.SIGKILL, signal.SIGTERM])
def test_worker_processes_end_with_the_agent_loop_worker(end: signal.Signals | None) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPO, REPO / "adapters" / "verl")))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environ}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], **pipes) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert psutil.pid_exists(pid)
        if end is None:
            process.communicate("\n")
        else:
            process.send_signal(end)
        process.wait()
    until(lambda: not psutil.pid_exists(pid))
