"""`JointEnv`: a team as one `TextEnv`, so that everything that takes an environment takes a team."""

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
    """The state of a team after a reset or a round.

    `observations` are those of the agents that act next, in order, or of all agents at the end of the episode. `infos`
    are those of all agents; `state` is a canonical text of the state.
    """

    observations: Mapping[str, str]
    infos: Infos
    state: str
    rewards: Mapping[str, float] = {}
    terminated: bool = False
    truncated: bool = False


class JointEnv(TextEnv):
    """A team in its joint form. Subclasses define the agents and their game.

    ## Observation
    A JSON object from the agents that act next to their observations; at the end, from all agents. The reply to a
    malformed joint action is a text that is not JSON, and nothing else changes.

    ## Action Space
    A JSON object from exactly these agents to their texts, each in `agent_grammar`; the whole is in `grammar`. A text
    may be null if the agent writes nothing, for example because its token budget is used up. The agent then passes if
    the game allows that; otherwise the episode is truncated as `token_limit`.

    ## Rewards
    The mean of the agents' rewards, so that they sum to the mean of the agents' scores.

    ## Infos
    Those of every environment, and `agents`: the info of each agent, in a step with its `reward` and with
    `state_before`, its `state_key` before the step. `invalid_action` names the first agent with an invalid text.

    `instructions` is a JSON object from the agents to their system prompts.
    """

    rules = _RULES

    def __init__(self, **options: Any) -> None:
        """Set `tasks` before calling this. `options` go to `TextEnv`."""
        self._round = RoundResult({}, {}, "")
        self._before: Mapping[str, str] = {}
        self._invalid: str | None = None
        self._out_of_tokens = False
        super().__init__(**options)

    @property
    @abstractmethod
    def agents(self) -> tuple[str, ...]:
        """The names of all agents, in order."""

    @property
    @abstractmethod
    def agent_grammar(self) -> ActionGrammar:
        """The grammar of each agent's actions."""

    @abstractmethod
    def instructions_for(self, agent: str) -> str:
        """The system prompt of an agent. Raises UsageError for an unknown agent."""

    @property
    def acting(self) -> tuple[str, ...]:
        """The agents that act next; at the end all agents."""
        return tuple(self._round.observations)

    @property
    def instructions(self) -> str:
        """The system prompts of all agents, as a JSON object."""
        return write_texts({agent: self.instructions_for(agent) for agent in self.agents})

    def random_command(self, rng: random.Random) -> str:
        """A random text for each agent that acts next."""
        return write_command({agent: self._random_text(agent, rng) for agent in self.acting or self.agents})

    @abstractmethod
    def _start_game(self, task: Task) -> RoundResult:
        """Begin the task with the episode's seed."""

    @abstractmethod
    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        """Play the texts of the agents that act next. A text is only `None` for an agent that may pass."""

    @abstractmethod
    def _may_pass(self, agent: str) -> bool:
        """True if the game continues when that agent writes nothing."""

    @abstractmethod
    def _random_text(self, agent: str, rng: random.Random) -> str:
        """A random text for an agent, in its grammar."""

    @abstractmethod
    def _rounds(self) -> Iterable[Mapping[str, str]]:
        """The agents' texts, in their grammar, that solve the current state. Raises NoOracle."""

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._invalid, self._out_of_tokens = None, False
        return self._accept(self._start_game(task))

    def _act(self, command: str) -> Transition:
        self._invalid = None
        actions = read_actions(command, self.acting)
        self._before = {agent: info["state_key"] for agent, info in self._round.infos.items()}
        self._out_of_tokens = any(text is None and not self._may_pass(agent) for agent, text in actions.items())
        if self._out_of_tokens:
            self._round = _truncated(self._round)
            return Transition(self._observation, truncated=True, info=self._details())
        observation = self._accept(self._play_round(actions))
        now = self._round
        self._invalid = _first_invalid(now.infos, actions)
        success = any(info["success"] for info in now.infos.values())
        reward = sum(now.rewards.values()) / len(now.rewards)
        return Transition(observation, reward, now.terminated, success, self._details(), now.truncated)

    def _finish_step(
        self, transition: Transition, invalid: str | None
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super()._finish_step(transition, invalid)
        if invalid is None:
            info["invalid_action"] = self._invalid
        if self._out_of_tokens:
            self._stop = StopReason.TOKEN_LIMIT
            info["stop_reason"] = self._stop.value
        return observation, reward, terminated, truncated, info

    def _accept(self, result: RoundResult) -> str:
        """Store the result and return the joint observation. Raises EnvError if the environment failed."""
        failed = next((info for info in result.infos.values() if info["stop_reason"] == StopReason.ENV_ERROR), None)
        if failed is not None:
            raise EnvError(failed.get("error", "the environment of the team failed"))
        self._round = result
        return write_texts(result.observations)

    def _details(self) -> Mapping[str, Any]:
        now = self._round
        steps = {
            agent: {"reward": float(reward), "state_before": self._before[agent]}
            for agent, reward in now.rewards.items()
        }
        return {"agents": {agent: {**info, **steps.get(agent, {})} for agent, info in now.infos.items()}}

    def _plan(self) -> Sequence[str]:
        return [write_command(texts) for texts in self._rounds()]

    def _state(self) -> str:
        return self._round.state


def is_team(env_id: str) -> bool:
    """True if an id is a team in the joint form. Works without PettingZoo."""
    try:
        return issubclass(env_class(env_id), JointEnv)
    except (gym.error.Error, ImportError, UsageError):
        return False


def check_agent(agent: str, agents: Sequence[str]) -> None:
    """Raise UsageError for an unknown agent."""
    if agent not in agents:
        raise UsageError(f"there is no agent {agent!r:.80}; the agents are {', '.join(agents)}")


def _truncated(result: RoundResult) -> RoundResult:
    """The same result, with the episode truncated and rewards of 0."""
    infos = {a: {**info, "stop_reason": StopReason.TOKEN_LIMIT.value} for a, info in result.infos.items()}
    return result._replace(infos=infos, rewards=dict.fromkeys(infos, 0.0))


def _first_invalid(infos: Infos, acted: Iterable[str]) -> str | None:
    """The agent and reason of the first invalid action, if there is one."""
    return next((f"{agent}: {why}" for agent in acted if (why := infos[agent].get("invalid_action")) is not None), None)
