"""The block `agentgym` of a run's configuration: the settings of episodes and environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import Agent, make_agent
from agentgym_envs.schedule import Schedules, TurnSchedule, match_schedules, parse_schedules
from agentgym_verl.rows import short_name

BACKENDS = ("auto", "local", "process", "ray")
"""The processes that run the environments; `agentgym_verl.env_backends` explains them."""


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """Settings of the episodes of every agent-loop worker.

    max_turns: max turns: a number, a turn-limit curriculum as in "10,20,30" (ScalingInter-RL), or one of these per
        environment as in "TextCraft=10,20,30;BabyAI=6,13,20".
    every: number of training steps that each number of `max_turns` lasts.
    eval_max_turns: max turns in validation; by default that of the step.
    max_turn_tokens: token budget of one answer. The budget of the episode is verl's `data.max_response_length`.
    agent: how the model reasons in an episode: act, react, plan or reflect; by default it answers the whole
        conversation.
    context: what the agent sees: full, last:K or summarise:K.
    attempts: largest number of attempts at a task (agent "reflect").
    keep_thoughts: refuse chat templates that drop the thoughts of earlier answers, so that such an episode has no
        further contexts.
    reward: "per_turn" puts each turn's reward on the last token of its answer, "final" the sum of all rewards on the
        last token of the episode. The rewards of an episode add up to its score either way.
    env_concurrency: number of episodes that one agent-loop worker plays at the same time.
    env_seconds: timeout of one call of an environment, after which its episode ends as `env_error`.
    env_retries: number of retries of an episode that ended in `env_error`, before it is left out.
    backend: the processes that run the environments, one of `BACKENDS`.
    workers: worker processes per agent-loop worker (backend "process"), or per host (backend "ray").
    hosts: number of Ray actors that host the environments of one agent-loop worker (backend "ray").
    host_cpus: CPUs of Ray that each host reserves; by default one per worker. 0 reserves none.
    placement: where Ray puts the hosts: "spread" over all nodes, "near" the agent-loop worker, or the name of a custom
        resource of the chosen nodes; each host takes 1 of it.
    trajectories: a directory for a file of trajectories per step and worker; None writes none.
    record_tokens: also write every token.
    """

    max_turns: str = "30"
    every: int | None = None
    eval_max_turns: int | None = None
    max_turn_tokens: int = 512
    agent: str | None = None
    context: str = "full"
    attempts: int = 3
    keep_thoughts: bool = False
    reward: str = "per_turn"
    env_concurrency: int = 1024
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
        """Raise UsageError for invalid values."""
        parse_schedules(self.max_turns, self.every)
        _ = self.agent_options
        for name, minimum in _MINIMUM.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                raise UsageError(f"agentgym.{name} must be at least {minimum}, got {value}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UsageError(f"agentgym.{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")

    @property
    def schedules(self) -> Schedules:
        """The schedule of the run, or a mapping from environments to schedules."""
        return parse_schedules(self.max_turns, self.every)

    @property
    def agent_options(self) -> Agent | None:
        """The agent that plays the episodes; None if the model answers without one. Raises UsageError."""
        if self.agent is not None:
            return make_agent(self.agent, self.context, self.attempts)
        if self.context != "full":
            raise UsageError(
                f"agentgym.context {self.context} needs an agent, for example agentgym.agent=act (--agent)"
            )
        return None

    @property
    def agent_rewrites(self) -> bool:
        """True if the agent may give an episode several contexts."""
        agent = self.agent_options
        return agent is not None and (agent.context.kind != "full" or agent.attempts > 1)


_MINIMUM: dict[str, float] = {
    "eval_max_turns": 1,
    "max_turn_tokens": 1,
    "attempts": 1,
    "env_concurrency": 1,
    "env_seconds": 0.001,
    "env_retries": 0,
    "workers": 1,
    "hosts": 1,
    "host_cpus": 0,
}
_CHOICES: dict[str, tuple[str, ...]] = {"reward": ("per_turn", "final"), "backend": BACKENDS}


def read_settings(block: Mapping[str, Any] | None) -> EpisodeSettings:
    """Read the settings of a block of plain values. Raises UsageError for an unknown key or a wrong type."""
    given = dict(block or {})
    types = {field.name: field.type for field in fields(EpisodeSettings)}
    if unknown := sorted(set(given) - set(types)):
        raise UsageError(f"there is no setting agentgym.{unknown[0]}; choose from {', '.join(types)}")
    return EpisodeSettings(**{name: _read(name, str(types[name]), value) for name, value in given.items()})


def turn_limit(settings: EpisodeSettings, env_id: str, step: int, evaluation: bool) -> int:
    """The max turns of an episode that starts in a global step of verl, which counts training steps from 1.

    The validation before training has step 0. Raises UsageError if the environment has no schedule.
    """
    if evaluation and settings.eval_max_turns is not None:
        return settings.eval_max_turns
    return schedule_of(settings, env_id)(max(step - 1, 0))


def schedule_of(settings: EpisodeSettings, env_id: str) -> TurnSchedule:
    """The schedule of one environment. Raises UsageError if there are several and none is for it."""
    schedules = settings.schedules
    if callable(schedules):
        return schedules
    name = short_name(env_id)
    own = {key: schedule for key, schedule in schedules.items() if key in (env_id, name)}
    matched = match_schedules(own or schedules, {env_id: name})
    assert not callable(matched)
    return matched[env_id]


def _read(name: str, kind: str, value: Any) -> Any:
    """Check the type of a value; a text may also be a number or a list of numbers (30, [10, 20, 30])."""
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
