"""Checks of the environments: requirements (`check_environment`), or an episode of the oracle (`play`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentgym_envs.cli import doctor_machine as machine
from agentgym_envs.cli import doctor_packages as packages
from agentgym_envs.cli.envs import begin, make_env
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError, EnvError, UsageError
from agentgym_envs.registration import Registration

_QUICK: Mapping[str, Mapping[str, Any]] = {"AgentGym/SciWorld-v0": {"group": "find-plant"}}
"""Options of `reset` for environments in which the oracle may need minutes to plan some tasks."""


class Need(NamedTuple):
    """A missing requirement of an environment, and the command that installs it."""

    what: str
    get: str


class EnvironmentStatus(NamedTuple):
    """The missing requirements of an environment and, after `play`, the outcome of its episode."""

    id: str
    summary: str
    extra: str | None
    needs: tuple[Need, ...]
    played: Mapping[str, Any] | None = None

    @property
    def ready(self) -> bool:
        """True if nothing is missing and the oracle solved its episode, if one was played."""
        return not self.needs and (self.played is None or bool(self.played["success"]))


def check_environment(row: Registration, components: Mapping[str, machine.Component]) -> EnvironmentStatus:
    """Find the missing requirements of an environment without importing it."""
    extra = extra_of(row)
    faults = [r.fault for r in packages.extras().get(extra or "", ()) if r.applies and r.fault]
    needs = [Need(", ".join(map(packages.short, faults)), packages.install_command(extra or ""))] if faults else []
    needs += _missing_programs(row, faults, components)
    if ".official." in row.entry_point:
        needs += _missing_official()
    return EnvironmentStatus(row.id, row.summary, extra, tuple(needs))


def extra_of(row: Registration) -> str | None:
    """The extra that an environment's module is named after: `webarena.miniwob.env` needs `miniwob`."""
    words = row.entry_point.partition(":")[0].split(".")
    return next((word for word in reversed(words) if word in packages.extras()), None)


def _missing_programs(row: Registration, faults: list[str], components: Mapping[str, machine.Component]) -> list[Need]:
    """Missing programs that are not Python packages."""
    name = {"sciworld": "Java", "webarena": "Chromium"}.get(row.entry_point.split(".")[1])
    component = components.get(name or "")
    if component is None or component.installed or (faults and name == "Java"):  # the missing packages bring a Java
        return []
    return [Need(component.found, component.get)]


def _missing_official() -> list[Need]:
    from agentgym_envs.webarena.official.sites import SiteAddresses, variables

    needs = []
    if lacks := machine.official_tasks():
        needs.append(Need(lacks, f"{packages.install_command('webarena-verified')}  # in a separate venv"))
    try:
        some = bool(SiteAddresses.of().urls)
    except UsageError as error:
        return [*needs, Need(str(error), "see docs/webarena.md")]
    return needs if some else [*needs, Need("sites that you run", f"export {variables('shopping')[0]}=http://…")]


def play(found: EnvironmentStatus, clock: Callable[[], float] = time.perf_counter) -> EnvironmentStatus:
    """Play an episode with the environment's oracle and add its outcome and duration."""
    if found.needs:
        return found
    began = clock()
    try:
        turns, success, error = *_episode(found.id), None
    except AgentGymError as caught:
        turns, success, error = 0, False, str(caught)
    except Exception as caught:  # a bug in one scenario must not hide the results of the others
        turns, success, error = 0, False, f"{type(caught).__name__}: {caught}"
    played = {"success": success, "turns": turns, "seconds": round(clock() - began, 2), "error": error}
    return found._replace(played=played)


def _episode(env_id: str) -> tuple[int, bool]:
    """Return the number of turns, and the success. Raises AgentGymError."""
    env = make_env(env_id, {})
    try:
        begin(env, seed=0, options=dict(_QUICK.get(env_id, {})))
        info: Mapping[str, Any] = {"turn": 0, "success": False}
        for command in list(text_env(env).oracle()):
            info = env.step(text_env(env).grammar.format(command))[4]
            if "error" in info:
                raise EnvError(str(info["error"]))
        return info["turn"], info["success"]
    finally:
        env.close()
