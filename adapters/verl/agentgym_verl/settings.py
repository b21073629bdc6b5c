"""The block `agentgym` of a run's configuration: how episodes are played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import Schedules, TurnSchedule, match_schedules, parse_schedules
from agentgym_verl.env_backends import BACKENDS
from agentgym_verl.rows import short_name


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """How episodes are played, by every agent-loop worker of a run.

    rounds: the limit of turns: a number, growing numbers as in "10,20,30" (ScalingInter-RL), or one of these for each
        environment as in "TextCraft=10,20,30;BabyAI=6,13,20".
    every: how many training steps each number of `rounds` lasts.
    eval_max_turns: the limit of turns in validation; by default that of the step.
    max_turn_tokens: the token budget of one answer. That of the episode is verl's `data.max_response_length`.
    reward: "per_turn" lays each turn's reward on the last token of its answer, "final" the sum of all on the last
        token of the episode. The rewards of an episode add up to its score either way.
    concurrency: how many episodes one agent-loop worker plays at once.
    env_seconds: how long one call of an environment may take before its episode ends as `env_error`.
    env_retries: how often an episode that ended in `env_error` is played again; after that it is left out.
    backend: where environments run; see `places`.
    workers: worker processes of one agent-loop worker (backend "process"), or of one host (backend "ray").
    hosts: how many Ray actors host the environments of one agent-loop worker (backend "ray").
    host_cpus: how many CPUs of Ray's each host reserves; by default as many as it has `workers`. 0 reserves none.
    placement: where Ray puts them: "spread" over all nodes, "near" the agent-loop worker, or the name of a custom
        resource that the chosen nodes have, and of which each host takes 1.
    trajectories: a directory that gets a file of trajectories for each step and worker; None writes none.
    record_tokens: whether to write down every token beside them.
    """

    rounds: str = "30"
    every: int | None = None
    eval_max_turns: int | None = None
    max_turn_tokens: int = 512
    reward: str = "per_turn"
    concurrency: int = 1024
    env_seconds: float | None = 300.0
    env_retries: int = 2
    backend: str = "auto"
    workers: int = 4
    hosts: int = 1
    host_cpus: float | None = None
    placement: str = "spread"
    trajectories: str | None = None
    record_tokens: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError for what cannot be."""
        parse_schedules(self.rounds, self.every)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"agentgym.{name} must be at least {least}, got {value}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UsageError(f"agentgym.{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")

    @property
    def schedules(self) -> Schedules:
        """The schedule, or one by the name of each environment."""
        return parse_schedules(self.rounds, self.every)


_LEAST: dict[str, float] = {
    "eval_max_turns": 1,
    "max_turn_tokens": 1,
    "concurrency": 1,
    "env_seconds": 0.001,
    "env_retries": 0,
    "workers": 1,
    "hosts": 1,
    "host_cpus": 0,
}
_CHOICES: dict[str, tuple[str, ...]] = {"reward": ("per_turn", "final"), "backend": BACKENDS}


def read_settings(block: Mapping[str, Any] | None) -> EpisodeSettings:
    """The settings that a block of plain values comes to. Raises UsageError for an unknown key or a wrong type."""
    given = dict(block or {})
    types = {field.name: field.type for field in fields(EpisodeSettings)}
    if unknown := sorted(set(given) - set(types)):
        raise UsageError(f"there is no setting agentgym.{unknown[0]}; there are {', '.join(types)}")
    return EpisodeSettings(**{name: _read(name, str(types[name]), value) for name, value in given.items()})


def max_turns(settings: EpisodeSettings, env_id: str, step: int, evaluation: bool) -> int:
    """The limit of turns of an episode begun in verl's global step, which counts training steps from 1.

    The validation before training has step 0. Raises UsageError if no schedule is for that environment.
    """
    if evaluation and settings.eval_max_turns is not None:
        return settings.eval_max_turns
    return schedule_of(settings, env_id)(max(step - 1, 0))


def schedule_of(settings: EpisodeSettings, env_id: str) -> TurnSchedule:
    """The schedule of one environment. Raises UsageError if there are several and none is for it."""
    found = settings.schedules
    if callable(found):
        return found
    name = short_name(env_id)
    own = {key: schedule for key, schedule in found.items() if key in (env_id, name)}
    matched = match_schedules(own or found, {env_id: name})
    assert not callable(matched)
    return matched[env_id]


def _read(name: str, kind: str, value: Any) -> Any:
    """A value of the kind that a field has; for text, numbers and lists of them serve too (30, [10, 20, 30])."""
    optional = "None" in kind
    if value is None:
        if optional:
            return None
        raise UsageError(f"agentgym.{name} must have a value")
    wanted = {"str": str, "int": int, "float": float, "bool": bool}[kind.split(" ")[0]]
    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if wanted is str and isinstance(value, list):
        return ",".join(map(str, value))
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise UsageError(f"agentgym.{name} must be {wanted.__name__}, got {value!r}")
    return value
