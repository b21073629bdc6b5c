"""Which environments are ready here, by looking (`standing`) or by playing an episode of each (`play`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentgym_envs.cli import doctor_machine as machine
from agentgym_envs.cli import doctor_packages as packages
from agentgym_envs.cli.common import begin, make_env
from agentgym_envs.core import text_env
from agentgym_envs.errors import AgentGymError, EnvError, UsageError
from agentgym_envs.registration import Registration

_QUICK: Mapping[str, Mapping[str, Any]] = {"AgentGym/SciWorld-v0": {"group": "find-plant"}}
"""Options of `reset` where a task drawn from all may take minutes to plan."""


class Need(NamedTuple):
    """Something that an environment lacks, and how to get it."""

    what: str
    get: str


class Standing(NamedTuple):
    """How an environment stands: what it lacks and, after `play`, how its episode went."""

    id: str
    summary: str
    extra: str | None
    needs: tuple[Need, ...]
    played: Mapping[str, Any] | None = None

    @property
    def ready(self) -> bool:
        """Whether nothing is missing and, if it was played, the oracle solved it."""
        return not self.needs and (self.played is None or bool(self.played["success"]))


def standing(row: Registration, parts: Mapping[str, machine.Part]) -> Standing:
    """What an environment lacks, without loading it."""
    extra = extra_of(row)
    faults = [r.fault for r in packages.extras().get(extra or "", ()) if r.applies and r.fault]
    needs = [Need(", ".join(map(packages.short, faults)), packages.install_command(extra or ""))] if faults else []
    needs += _needs_of_machine(row, faults, parts)
    if ".official." in row.entry_point:
        needs += _needs_of_official()
    return Standing(row.id, row.summary, extra, tuple(needs))


def extra_of(row: Registration) -> str | None:
    """The extra that an environment's module is named after: `webarena.miniwob.env` needs `miniwob`."""
    words = row.entry_point.partition(":")[0].split(".")
    return next((word for word in reversed(words) if word in packages.extras()), None)


def _needs_of_machine(row: Registration, faults: list[str], parts: Mapping[str, machine.Part]) -> list[Need]:
    """The programs that no package of Python is."""
    name = {"sciworld": "Java", "webarena": "Chromium"}.get(row.entry_point.split(".")[1])
    part = parts.get(name or "")
    if part is None or part.there or (faults and name == "Java"):  # Java comes with the packages that are missing
        return []
    return [Need(part.found, part.get)]


def _needs_of_official() -> list[Need]:
    from agentgym_envs.webarena.official.sites import SiteAddresses, variables

    needs = []
    if lacks := machine.official_tasks():
        needs.append(Need(lacks, f"{packages.install_command('webarena-verified')}  # in a venv of its own"))
    try:
        some = bool(SiteAddresses.of().urls)
    except UsageError as error:
        return [*needs, Need(str(error), "see docs/webarena.md")]
    return needs if some else [*needs, Need("sites that you run", f"export {variables('shopping')[0]}=http://…")]


def play(found: Standing, clock: Callable[[], float] = time.perf_counter) -> Standing:
    """Play an episode by the environment's own oracle, and say how it went and how long it took."""
    if found.needs:
        return found
    began = clock()
    try:
        turns, success, error = *_episode(found.id), None
    except AgentGymError as caught:
        turns, success, error = 0, False, str(caught)
    except Exception as caught:  # a fault of one scenario, which is not to hide what is known of the others
        turns, success, error = 0, False, f"{type(caught).__name__}: {caught}"
    played = {"success": success, "turns": turns, "seconds": round(clock() - began, 2), "error": error}
    return found._replace(played=played)


def _episode(env_id: str) -> tuple[int, bool]:
    """Turns and success. Raises AgentGymError."""
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
