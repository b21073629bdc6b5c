"""The processes that run the environments of an agent-loop worker."""

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
import pytest

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting import RemoteEnv
from agentgym_envs.registration import env_ids, register
from agentgym_verl.env_backends import EnvBackends
from agentgym_verl.settings import EpisodeSettings
from tests.children import lives
from tests.toy import CountEnv
from tests.toy_envs import HERE
from tests.waiting import until

REPO = Path(__file__).parents[3]
TRICKY = HERE + "Toy/Tricky-v0"
HEAVY = "Toy/Heavy-v0"


class HeavyEnv(CountEnv):
    """A `CountEnv` with `heavy` set."""

    heavy = True


register(HEAVY, f"{__name__}:HeavyEnv")


@pytest.mark.parametrize("env_id", [*env_ids(), HEAVY])
def test_only_heavy_environments_run_in_worker_processes(env_id: str) -> None:
    backends = EnvBackends(EpisodeSettings())
    assert backends._backend(env_id, {}) == ("process" if env_id == HEAVY else "local")
    assert backends._backend(env_id, {"base_url": "http://127.0.0.1:1"}) == "local"


@pytest.mark.parametrize("backend", ["local", "process", "ray"])
def test_an_explicit_backend_is_used_for_local_environments(backend: str) -> None:
    backends = EnvBackends(EpisodeSettings(backend=backend))
    assert backends._backend(TRICKY, {}) == backend
    assert backends._backend(TRICKY, {"base_url": "http://127.0.0.1:1"}) == "local"


def test_local_environments_are_made_in_process_with_their_arguments() -> None:
    with closing(EnvBackends(EpisodeSettings(workers=2))) as backends:
        backends.add("kind", TRICKY, {"instructions": "Count."})
        backends.add("kind", "AgentGym/NoSuch-v0", {})
        assert list(backends.makers) == ["kind"]
        first, second = backends.makers["kind"](), backends.makers["kind"]()
        assert not isinstance(first, RemoteEnv) and first is not second
        assert first.unwrapped.instructions == "Count."  # type: ignore[attr-defined]


@pytest.mark.slow
def test_ray_gets_the_settings() -> None:
    ray = pytest.importorskip("ray")
    backends = EnvBackends(EpisodeSettings(backend="ray", hosts=3, workers=5, placement="near"))
    pool: Any = backends._provider("ray")
    assert tuple(pool._terms)[:4] == (3, 5, "near", 5)
    assert backends._provider("ray") is pool
    with pytest.raises(UsageError, match=r"call ray\.init"):
        backends._provider("ray").open(TRICKY, {})
    backends.close()
    with pytest.raises(EnvError, match="closed"):
        backends._provider("ray").open(TRICKY, {})
    assert not ray.is_initialized()  # none of this starts a cluster


@pytest.fixture
def backends() -> Iterator[EnvBackends]:
    with closing(EnvBackends(EpisodeSettings(backend="process", workers=2))) as backends:
        backends.add("kind", TRICKY, {})
        yield backends


def pid_of(env: gym.Env[str, str]) -> int:
    env.reset(seed=0, options={"task": "count/9"})
    return int(env.step("who")[0].split()[0])


@pytest.mark.slow
def test_all_kinds_share_workers_which_end_with_the_backends(backends: EnvBackends) -> None:
    backends.add("other", TRICKY, {"instructions": "Count."})
    pids = {pid_of(backends.makers[kind]()) for kind in ("kind", "other", "kind", "other")}
    assert len(pids) == 2 and os.getpid() not in pids
    backends.close()
    until(lambda: not any(map(lives, pids)))


SCRIPT = f"""
import sys
from agentgym_verl.env_backends import EnvBackends
from agentgym_verl.settings import EpisodeSettings
backends = EnvBackends(EpisodeSettings(backend="process", workers=1))
backends.add("kind", {TRICKY!r}, {{}})
env = backends.makers["kind"]()
env.reset(seed=0)
print(env.step("who")[0].split()[0], flush=True)
sys.stdin.readline()
"""


@pytest.mark.rotating(always=1)
@pytest.mark.slow
@pytest.mark.parametrize("end", [None, signal.SIGKILL, signal.SIGTERM])
def test_worker_processes_end_with_the_agent_loop_worker(end: signal.Signals | None) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPO, REPO / "adapters" / "verl")))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environ}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], **pipes) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert lives(pid)
        if end is None:
            process.communicate("\n")
        else:
            process.send_signal(end)
        process.wait()
    until(lambda: not lives(pid))
