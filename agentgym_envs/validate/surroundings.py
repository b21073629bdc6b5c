"""Checks of the surroundings: network, files, memory, processes, another process, and a server."""

from __future__ import annotations

import gc
import os
import threading
import time
import tracemalloc
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.registration import import_id
from agentgym_envs.validate.episodes import first_difference, play, replaying
from agentgym_envs.validate.findings import Finding, NotApplicable
from agentgym_envs.validate.subject import ValidationSubject
from agentgym_envs.validate.watch import written_outside

GROWTH_BYTES = 256 * 1024
"""The largest growth of Python's memory per episode."""
_REPEATS, _SHORT = 6, 8
"""The episodes after which growth is measured, and the turns of each."""
STEP_CPU_SECONDS = 0.25
"""The largest mean CPU time of a step of an environment that declares neither `heavy` nor `blocking`."""
FIRST_WORK_SECONDS = 60.0
"""The longest time until the first step in a new process."""


def network_policy(subject: ValidationSubject) -> Finding:
    """The environment contacts no other machine, except for the server of `base_url`."""
    allowed = urlsplit(str(subject.kwargs.get("base_url", ""))).hostname
    hosts = [host for host in subject.events.hosts if host != allowed]
    return Finding([f"it contacts {host}" for host in hosts], {"hosts": list(subject.events.hosts)})


def host_containment(subject: ValidationSubject) -> Finding:
    """The environment writes only temporary files and caches, and changes neither working directory nor variables."""
    outside = written_outside(subject.events)
    problems = [f"it writes {path}" for path in outside]
    # Imports of libraries set variables once, when the first environment is made.
    problems += [f"it changes {name}" for name in subject.watched.changed]
    return Finding(problems, {"written": len(subject.events.written), "outside": len(outside)})


def global_rng(subject: ValidationSubject) -> Finding:
    """The environment uses no global random generator, which would connect it with all other code."""
    used = subject.watched.global_rng
    return Finding([f"it draws from or seeds the global generator of {name}" for name in used], {"used": used})


def resource_bounds(subject: ValidationSubject) -> Finding:
    """Repeated episodes need no more memory, threads and open files than the first ones."""
    (start, actions), usages = subject.scripts[0], list[tuple[int, int, int]]()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        with subject.fresh() as env:
            for _ in range(_REPEATS):
                subject.check_time()
                play(env, start, replaying(actions[:_SHORT]))
                usages.append(_usage())
    finally:
        if not tracing:
            tracemalloc.stop()
    # A cache grows once, a leak in every episode. The first episode loads things.
    growth = [min(b[i] - a[i] for a, b in pairwise(usages[1:])) for i in range(3)]
    names, bounds = ("bytes of memory", "threads", "open files"), (GROWTH_BYTES, 0, 0)
    problems = [
        f"{grown} more {name} after each episode"
        for grown, name, bound in zip(growth, names, bounds, strict=True)
        if grown > bound
    ]
    measured = dict(zip(("bytes_per_episode", "threads_per_episode", "files_per_episode"), growth, strict=True))
    return Finding(problems, {**measured, "episodes": len(usages), "bound_bytes": GROWTH_BYTES})


def _usage() -> tuple[int, int, int]:
    gc.collect()
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return tracemalloc.get_traced_memory()[0], threading.active_count(), files


def resource_envelope(subject: ValidationSubject) -> Finding:
    """An environment that starts processes or needs much CPU per step declares it (`heavy`, `blocking`)."""
    script = subject.scripts[0]
    with subject.fresh() as env:
        base = text_env(env)
        declared = base.heavy or base.blocking
        began = time.process_time()
        episode = play(env, script[0], replaying(script[1]))
        cpu = (time.process_time() - began) / (1 + len(episode.steps))
    started = list(subject.events.processes)
    problems = [] if declared else [f"it starts {name} and declares neither `heavy` nor `blocking`" for name in started]
    if cpu > STEP_CPU_SECONDS and not declared:
        problems.append(f"a step needs {cpu:.2f} s of CPU, and the class declares neither `heavy` nor `blocking`")
    measured = {"cpu_s_per_step": round(cpu, 4), "processes": started, "declared": declared}
    return Finding(problems, {**measured, "bound_s": STEP_CPU_SECONDS})


def verifier_portability(subject: ValidationSubject) -> Finding:
    """Another process without a network scores the episodes equally."""
    problems = _differences(subject, [episode.verdicts for episode in subject.replays], subject.elsewhere.verdicts)
    return Finding(problems, {"episodes": len(subject.replays), "differs_in": subject.elsewhere.differs_in})


def cross_host_determinism(subject: ValidationSubject) -> Finding:
    """Another process with other hash seed, time zone and directory, in place of another host, gives the same texts."""
    there = subject.elsewhere
    problems = _differences(subject, [episode.transcript for episode in subject.replays], there.transcripts)
    with subject.fresh() as env:
        base = env.unwrapped
        if isinstance(base, TextEnv) and base.tasks.digest != there.digest:
            problems.append("the tasks have another digest")
    return Finding(problems, {"episodes": len(subject.replays), "differs_in": there.differs_in})


def _differences(subject: ValidationSubject, here: list[Any], there: list[Any]) -> list[str]:
    rows = zip(subject.scripts, here, there, strict=True)
    return [f"{start}: {first_difference(one, other)}" for (start, _), one, other in rows if one != other]


def time_to_first_work(subject: ValidationSubject) -> Finding:
    """A new process takes its first step within a minute, imports included."""
    seconds = subject.elsewhere.first_work_s
    problems = [f"the first step was done after {seconds:.0f} s"] if seconds > FIRST_WORK_SECONDS else []
    return Finding(problems, {"seconds": round(seconds, 3), "bound_s": FIRST_WORK_SECONDS})


def served(subject: ValidationSubject) -> Finding:
    """Behind a server of this suite, the environment gives the same results."""
    if import_id(subject.name) not in gym.registry:
        raise NotApplicable("only an environment with an id can be served")
    try:
        from agentgym_envs.http.run import background_server
    except ImportError as error:
        raise NotApplicable(f"the extra `serve` is not installed: {error}") from None
    with subject.fresh() as env:
        remote_options = {*getattr(env.unwrapped, "remote_options", ())}
    if closed := sorted(subject.kwargs.keys() - remote_options):
        raise NotApplicable(f"clients of a server cannot set {', '.join(closed)}")
    problems, env_id = [], import_id(subject.name)
    with background_server([env_id]) as url:
        remote = gym.make(env_id, base_url=url, **subject.kwargs)
        try:
            for script, here in subject.within(list(zip(subject.scripts, subject.replays, strict=True))[:2]):
                one, other = here.transcript, subject.replay(script, remote).transcript
                problems += [f"{script[0]}: {first_difference(one, other)}"] if one != other else []
        finally:
            remote.close()
    return Finding(problems, {"episodes": len(subject.scripts[:2])})
