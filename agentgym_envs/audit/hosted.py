"""Attackers of hosted environments: a second client of a session, and a worker process that dies."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agentgym_envs.audit.attempts import AttackAttempt, Attacker, AttackFamily, AuditScene, Host
from agentgym_envs.core import text_env
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerProcess
from agentgym_envs.http.wire import PREFIX
from agentgym_envs.registration import entry_point_of
from agentgym_envs.validate.episodes import NextAction, RecordedEpisode

_MOMENT = 0.0005
"""Seconds after which a worker is killed: some steps are finished then, and others are not."""


class TwoClients(Attacker):
    """Behind a server, a second client repeats and reorders the calls of a session."""

    name = "two clients"
    family = AttackFamily.STATE
    once_per_group = True

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The oracle's plan earns neither more nor less than alone, and counts the same turns."""
        plan = scene.messages(*scene.plan)
        if plan and _can_be_hosted(scene) and importlib.util.find_spec("uvicorn") is not None:
            act = _before_each(plan, _meddle)
            yield AttackAttempt(
                "meddling",
                policy=act,
                turns=len(plan),
                host=Host.SERVER,
                references=[plan],
                least=scene.oracle_score,
            )


class KilledWorker(Attacker):
    """Kills the worker process of the environment when the last step of the plan is scored."""

    name = "killed worker"
    family = AttackFamily.STATE
    once_per_group = True

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """The worker dies before the last step, which then earns nothing, or within it."""
        plan = scene.messages(*scene.plan)
        if not plan or not _can_be_hosted(scene):
            return
        for label, kill, reference in (("before", _kill, plan[:-1]), ("within", _kill_soon, plan)):
            act = _before_each(plan, kill, only=len(plan) - 1)
            yield AttackAttempt(
                label, policy=act, turns=len(plan), host=Host.WORKER, references=[reference], may_fail=True
            )


def _can_be_hosted(scene: AuditScene) -> bool:
    """True if the environment can be made again in another process, which knows its id."""
    spec = scene.env.spec
    return spec is not None and entry_point_of(spec.id) is not None and "base_url" not in spec.kwargs


def _before_each(
    plan: Sequence[str], happens: Callable[[RemoteEnv, RecordedEpisode], None], only: int | None = None
) -> NextAction:
    """A policy that plays a plan, and does something before each step, or before one only."""

    def act(env: Any, episode: RecordedEpisode) -> str | None:
        base, turn = text_env(env), len(episode.steps)
        if isinstance(base, RemoteEnv) and only in (None, turn):
            happens(base, episode)
        return plan[turn] if turn < len(plan) else None

    return act


def _meddle(env: RemoteEnv, episode: RecordedEpisode) -> None:
    """Repeat the last step, and send one that is too late, too early, or without a session."""
    if env.session is None or not episode.steps:
        return
    action, number = episode.steps[-1].action, len(episode.steps) + 1  # the first call was the reset
    address = f"{env.session.connection.url}{PREFIX}/sessions"  # type: ignore[attr-defined]
    for session, sequence in ((env.session.session, number + shift) for shift in (0, -1, 5)):
        _post(f"{address}/{session}/step", {"action": action, "seq": sequence})
    _post(f"{address}/{env.session.session[:-1]}/step", {"action": action, "seq": number + 1})


def _post(url: str, body: Any) -> None:
    """Send a request; a refusal is as good as a reply."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(request, timeout=30) as reply:
        reply.read()


def _kill(env: RemoteEnv, episode: RecordedEpisode) -> None:
    if env.session is not None and isinstance(env.session.connection, WorkerProcess):
        env.session.connection.kill()


def _kill_soon(env: RemoteEnv, episode: RecordedEpisode) -> None:
    threading.Timer(_MOMENT, _kill, [env, episode]).start()
