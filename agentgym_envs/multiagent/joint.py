"""`JointEnv`: a team as one `TextEnv`, so that all that the suite does with environments it does with teams."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from agentgym_envs.core import StopReason, TextEnv, Transition
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.multiagent.joint_format import read_actions, write_command, write_texts
from agentgym_envs.registration import env_class
from agentgym_envs.task import Task

Infos = Mapping[str, Mapping[str, Any]]

_RULES = """\
A team plays. An observation is a JSON object with a text for each agent that acts next, and when the episode has \
ended for all of them. An action is a JSON object with what each of these agents writes; null is nothing at all, as of \
an agent whose budget of tokens is used up, which then passes."""


class RoundResult(NamedTuple):
    """How a team stands after a reset or a round.

    `observations` are those of the agents that act next, in order, and when the episode has ended those of all.
    `infos` are those of all; `state` is a canonical text of the state.
    """

    observations: Mapping[str, str]
    infos: Infos
    state: str
    rewards: Mapping[str, float] = {}
    terminated: bool = False
    truncated: bool = False


class JointEnv(TextEnv):
    """A team in its joint form. What the agents are and do is in the classes below it.

    ## Observation
    A JSON object from the agents that act next to what they see; at the end, from all agents. An action that is no
    joint action is answered by a text that is not JSON, and nothing else happens.

    ## Action Space
    A JSON object from exactly these agents to what they write, each in `agent_grammar` (`grammar` is around the whole).
    Instead of a text it may be null: the agent writes nothing, as when its budget of tokens is used up. It passes if
    the game lets it; else the episode is cut as `token_limit`.

    ## Rewards
    The mean of the agents' rewards, so that they add up to the mean of their scores.

    ## Infos
    The suite's, and `agents`: for each agent its own info, in a step with its `reward` and `state_before`, the
    `state_key` that it had before. `invalid_action` names the first agent whose text was none.

    `instructions` is a JSON object from the agents to their system texts.
    """

    rules = _RULES

    def __init__(self, **options: Any) -> None:
        """`tasks` must be set before; `options` are those of `TextEnv`."""
        self._standing = RoundResult({}, {}, "")
        self._before: Mapping[str, str] = {}
        self._complaint: str | None = None
        self._mute = False
        super().__init__(**options)

    @property
    @abstractmethod
    def agents(self) -> tuple[str, ...]:
        """The names of all agents, in order."""

    @property
    @abstractmethod
    def agent_grammar(self) -> ActionGrammar:
        """How an agent writes its actions."""

    @abstractmethod
    def instructions_for(self, agent: str) -> str:
        """What an agent's system prompt must tell the model. Raises UsageError for one that is none."""

    @property
    def acting(self) -> tuple[str, ...]:
        """The agents that act next; at the end all of them."""
        return tuple(self._standing.observations)

    @property
    def instructions(self) -> str:
        """The system texts of all agents, as a JSON object."""
        return write_texts({agent: self.instructions_for(agent) for agent in self.agents})

    def random_command(self, rng: random.Random) -> str:
        """A random text for each agent that acts next."""
        return write_command({agent: self._random_text(agent, rng) for agent in self.acting or self.agents})

    @abstractmethod
    def _start_game(self, task: Task) -> RoundResult:
        """Begin the task with the seed of the episode."""

    @abstractmethod
    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        """Play what the agents that act next write. None is only given for those that may pass."""

    @abstractmethod
    def _may_pass(self, agent: str) -> bool:
        """Whether the game goes on if that agent writes nothing."""

    @abstractmethod
    def _random_text(self, agent: str, rng: random.Random) -> str:
        """A random text of an agent, in its grammar."""

    @abstractmethod
    def _rounds(self) -> Iterable[Mapping[str, str]]:
        """What the agents write, in their grammar, to solve the current state. Raises NoOracle."""

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._complaint, self._mute = None, False
        return self._stand(self._start_game(task))

    def _act(self, command: str) -> Transition:
        self._complaint = None
        actions = read_actions(command, self.acting)
        self._before = {agent: info["state_key"] for agent, info in self._standing.infos.items()}
        self._mute = any(text is None and not self._may_pass(agent) for agent, text in actions.items())
        if self._mute:
            self._standing = _cut(self._standing)
            return Transition(self._observation, truncated=True, info=self._details())
        observation = self._stand(self._play_round(actions))
        now = self._standing
        self._complaint = _first_complaint(now.infos, actions)
        success = any(info["success"] for info in now.infos.values())
        reward = sum(now.rewards.values()) / len(now.rewards)
        return Transition(observation, reward, now.terminated, success, self._details(), now.truncated)

    def _finish_step(
        self, transition: Transition, invalid: str | None
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super()._finish_step(transition, invalid)
        if invalid is None:
            info["invalid_action"] = self._complaint
        if self._mute:
            self._stop = StopReason.TOKEN_LIMIT
            info["stop_reason"] = self._stop.value
        return observation, reward, terminated, truncated, info

    def _stand(self, standing: RoundResult) -> str:
        """Note how the team stands; returns the joint observation. Raises EnvError if the machine failed."""
        failed = next((info for info in standing.infos.values() if info["stop_reason"] == StopReason.ENV_ERROR), None)
        if failed is not None:
            raise EnvError(failed.get("error", "the environment of the team failed"))
        self._standing = standing
        return write_texts(standing.observations)

    def _details(self) -> Mapping[str, Any]:
        now = self._standing
        steps = {
            agent: {"reward": float(reward), "state_before": self._before[agent]}
            for agent, reward in now.rewards.items()
        }
        return {"agents": {agent: {**info, **steps.get(agent, {})} for agent, info in now.infos.items()}}

    def _plan(self) -> Sequence[str]:
        return [write_command(texts) for texts in self._rounds()]

    def _state(self) -> str:
        return self._standing.state


def is_team(env_id: str) -> bool:
    """Whether the environments of an id are teams in the joint form; needs no PettingZoo."""
    try:
        return issubclass(env_class(env_id), JointEnv)
    except (gym.error.Error, ImportError, UsageError):
        return False


def check_agent(agent: str, agents: Sequence[str]) -> None:
    """Raise UsageError if there is no such agent."""
    if agent not in agents:
        raise UsageError(f"there is no agent {agent!r:.80}; the agents are {', '.join(agents)}")


def _cut(standing: RoundResult) -> RoundResult:
    """The same, with the episode over and nothing gained."""
    infos = {a: {**info, "stop_reason": StopReason.TOKEN_LIMIT.value} for a, info in standing.infos.items()}
    return standing._replace(infos=infos, rewards=dict.fromkeys(infos, 0.0))


def _first_complaint(infos: Infos, acted: Iterable[str]) -> str | None:
    """Why the first of the agents that acted wrote no valid action, if one did not."""
    return next((f"{agent}: {why}" for agent in acted if (why := infos[agent].get("invalid_action")) is not None), None)
