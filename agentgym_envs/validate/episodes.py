"""Episodes as the checks record them, and the policies that play them."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import NoOracle
from agentgym_envs.image_observations import text_of
from agentgym_envs.rollout.oracle_policy import OraclePolicy

Env = gym.Env[Any, Any]
NextAction = Callable[[Env, "RecordedEpisode"], str | None]
"""Returns the next action of an episode, None to stop it."""
JUNK = ("", "what now?", "???", "0", "help me " * 40, '{"name": "act"', "\u00e9\u6f22\U0001f642", "\n\n\t")
"""Actions that no scenario knows."""


@dataclass(frozen=True)
class EpisodeStart:
    """The arguments of a reset. `task_id` is None if the seed draws the task."""

    seed: int
    task_id: str | None = None
    group: str = ""

    @property
    def options(self) -> dict[str, Any] | None:
        """The options of `reset`."""
        return None if self.task_id is None else {"task": self.task_id}

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.task_id is None else f"{self.task_id}, seed {self.seed}"


@dataclass(frozen=True)
class RecordedStep:
    """An action and what `step` returned for it."""

    action: str
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Mapping[str, Any]


@dataclass
class RecordedEpisode:
    """An episode that a check has played.

    `plan` has the oracle's commands, if the oracle played it, and `seconds` its duration.
    """

    start: EpisodeStart
    observation: Any
    info: Mapping[str, Any]
    plan: tuple[str, ...] | None = None
    steps: list[RecordedStep] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def last_observation(self) -> Any:
        """The observation before the next action."""
        return self.steps[-1].observation if self.steps else self.observation

    @property
    def last_info(self) -> Mapping[str, Any]:
        """The info that came with it."""
        return self.steps[-1].info if self.steps else self.info

    @property
    def over(self) -> bool:
        """True after a step that ended the episode."""
        return bool(self.steps) and bool(self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def actions(self) -> list[str]:
        """The actions."""
        return [step.action for step in self.steps]

    @property
    def score(self) -> float:
        """The sum of the rewards."""
        return float(sum(float(step.reward) for step in self.steps))

    @property
    def success(self) -> bool:
        """True if the info of the last step reports a success."""
        return bool(self.steps) and bool(self.last_info.get("success"))

    @property
    def transcript(self) -> list[Any]:
        """All that the environment returned, as JSON for comparisons: of arrays and bytes only their hashes."""
        rows = [(s.observation, s.reward, bool(s.terminated), bool(s.truncated), s.info) for s in self.steps]
        return list(plain([(self.observation, self.info), *rows]))

    @property
    def verdicts(self) -> list[Any]:
        """The rewards and endings."""
        return list(plain([(s.reward, bool(s.terminated), s.info.get("success")) for s in self.steps]))


def plain(value: Any) -> Any:
    """A value as JSON, for comparisons."""
    return json.loads(json.dumps(value, default=_described, sort_keys=True))


def _described(value: Any) -> Any:
    if isinstance(value, bytes) or hasattr(value, "tobytes"):
        data = value if isinstance(value, bytes) else value.tobytes()
        return hashlib.sha256(data).hexdigest()
    return value.item() if hasattr(value, "item") else repr(value)


def play(env: Env, start: EpisodeStart, act: NextAction, most: int = 200) -> RecordedEpisode:
    """Reset and play until the end, until `act` returns None, or for at most `most` turns."""
    began = time.perf_counter()
    observation, info = env.reset(seed=start.seed, options=start.options)
    episode = RecordedEpisode(start, observation, info)
    while not episode.over and len(episode.steps) < most and info.get("stop_reason") != "env_error":
        if (action := act(env, episode)) is None:
            break
        episode.steps.append(RecordedStep(action, *env.step(action)))
    episode.seconds = time.perf_counter() - began
    return episode


def replaying(actions: Iterable[str]) -> NextAction:
    """A policy that repeats actions and then stops."""
    rest = iter(actions)
    return lambda env, episode: next(rest, None)


def repeating(action: str) -> NextAction:
    """A policy that repeats one action."""
    return lambda env, episode: action


def acting_randomly(seed: int) -> NextAction:
    """A policy that plays the environment's random commands, or samples of its action space."""
    rng = random.Random(seed)

    def act(env: Env, episode: RecordedEpisode) -> str | None:
        base = env.unwrapped
        if isinstance(base, TextEnv):
            return base.grammar.format(base.random_command(rng))
        if not episode.steps:
            env.action_space.seed(seed)
        return str(env.action_space.sample())

    return act


def with_slips(rate: float, seed: int) -> NextAction:
    """The oracle, which plays a random command with this probability and then plans again."""
    policy = OraclePolicy(slip=rate, seed=seed)

    def act(env: Env, episode: RecordedEpisode) -> str | None:
        try:
            policy.act(text_env(env), ()).send(None)  # it waits for nothing, so it needs no event loop
        except StopIteration as answer:
            return str(answer.value)
        raise AssertionError("the oracle's policy waits")

    return act


def play_oracle(env: Env, start: EpisodeStart) -> RecordedEpisode:
    """Play the oracle's plan from the start. Without a plan the episode has no step, and `plan` is None."""
    plan: tuple[str, ...] | None = None

    def act(env: Env, episode: RecordedEpisode) -> str | None:
        nonlocal plan
        if not episode.steps:
            plan = plan_of(text_env(env))
        commands = plan or ()
        turn = len(episode.steps)
        return text_env(env).grammar.format(commands[turn]) if turn < len(commands) else None

    episode = play(env, start, act, most=1_000)
    episode.plan = plan
    return episode


def plan_of(env: TextEnv) -> tuple[str, ...] | None:
    """The oracle's commands from here; None if it has none."""
    try:
        return tuple(env.oracle())
    except NoOracle:
        return None


def shown_text(observation: Any) -> str:
    """The text of an observation."""
    return str(text_of(observation))


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> str:
    """The first place where two transcripts differ, for a message."""
    for turn, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"turn {turn} has {_contrast(a, b)}"
    return f"{len(one)} results and {len(other)}"


def _contrast(one: Any, other: Any) -> str:
    """The innermost values that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        name = next(n for n in sorted({*one, *other}) if one.get(n) != other.get(n) or (n in one) != (n in other))
        return f"{name} {_contrast(one.get(name), other.get(name))}"
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(_contrast(a, b) for a, b in zip(one, other, strict=True) if a != b)
    return f"{_short(one)} and {_short(other)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
