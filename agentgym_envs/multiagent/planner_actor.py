"""Any scenario for two agents: a planner that writes advice and an actor that acts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from agentgym_envs.core import MAX_ACTION_CHARS, MAX_OBSERVATION_CHARS, TextEnv, text_env
from agentgym_envs.errors import EpisodeOver, UsageError, missing_extra
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.image_observations import text_of
from agentgym_envs.multiagent.joint import JointEnv, check_agent, is_team
from agentgym_envs.multiagent.joint_format import write_texts
from agentgym_envs.multiagent.messages import clean, quote
from agentgym_envs.multiagent.options import known_options
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import Task, TaskSet

try:
    from pettingzoo import AECEnv
except ImportError:
    raise missing_extra("The multi-agent part", "pettingzoo", "multiagent") from None

PLANNER, ACTOR = "planner", "actor"
MAX_PLAN_CHARS = 1_000
MAX_SHOWN_ACTION_CHARS = 300
_TRUNCATED = f"Only the first {MAX_PLAN_CHARS} characters of what you said were shown."

_PLANNER_RULES = f"""\
You plan for another agent, the actor, which acts in the world that is described below. In each turn you see what it \
sees, and what it did last. Then you write what it should do next and why, in at most {MAX_PLAN_CHARS} characters; \
your words are shown to it, and it acts. You cannot act yourself. This is what the actor was told:

{{instructions}}"""
_ACTOR_RULES = """\
{instructions}

Before each of your actions a planner, which sees what you see, tells you what it would do."""


def planner_actor(env: str | gym.Env[str, str], **options: Any) -> PlannerActorAECEnv:
    """Wrap an environment of the suite, or `gym.make(env, **options)`, for a planner and an actor.

    Raises UsageError if it is not a `TextEnv`, or is a team already.
    """
    if isinstance(env, str):
        return PlannerActorAECEnv(gym.make(env, **options))
    if options:
        raise UsageError(f"{sorted(options)} are arguments of gym.make, but the environment is already made")
    return PlannerActorAECEnv(env)


class PlannerActorAECEnv(AECEnv[str, str, str]):  # type: ignore[misc]  # PettingZoo is not typed
    """The planner and the actor alternate.

    ## Action Space
    The planner's is free text. The actor's is that of the environment, in its grammar.

    ## Observation
    Both see the environment's observation. For the planner, a line `actor says: "..."` with the actor's last message
    comes first; for the actor, a line `planner says: "..."` comes last. A message is one line, truncated to 1000
    characters of the planner's text and 300 of the actor's, and cleaned as in `textcraft_coop_v0`.

    ## Rewards
    Both get the environment's.

    ## Infos
    The environment's, for both, with `agent` and with `messages` (`from`, `text`), the other agent's last message.
    `state_key` identifies the environment's state and the agent's observation.

    `state()` is a JSON object from the agents to their observations.

    There is no parallel API: within a turn the actor reads the planner's message.

    ## Version History
    - v0: first version.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's name and type)
        "name": "planner_actor_v0",
        "render_modes": ["ansi"],
        "render_fps": 1,
        "is_parallelizable": False,
    }

    def __init__(self, env: gym.Env[str, str]) -> None:
        """Wrap `env`, which may have wrappers of its own. Raises UsageError if it is a team or not a `TextEnv`."""
        self.env, self._base = env, _single(env)
        self.possible_agents = [PLANNER, ACTOR]
        self.agents: list[str] = []
        self.render_mode = self._base.render_mode
        extra = 2 * (MAX_PLAN_CHARS + MAX_SHOWN_ACTION_CHARS)
        self._observation_spaces = {agent: Utf8Text(MAX_OBSERVATION_CHARS + extra) for agent in self.possible_agents}
        self._action_spaces = {agent: Utf8Text(MAX_ACTION_CHARS) for agent in self.possible_agents}
        self._observation, self._info = "", dict[str, Any]()
        self._plan = self._action = ""
        self._plan_truncated = False

    @property
    def tasks(self) -> TaskSet:
        """The environment's, see `TextEnv`."""
        return self._base.tasks

    @property
    def task(self) -> Task | None:
        """The environment's, see `TextEnv`."""
        return self._base.task

    @property
    def grammar(self) -> ActionGrammar:
        """The grammar of the actor's actions."""
        return self._base.grammar

    def observation_space(self, agent: str) -> Utf8Text:
        """Text."""
        check_agent(agent, self.possible_agents)
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Utf8Text:
        """Text."""
        check_agent(agent, self.possible_agents)
        return self._action_spaces[agent]

    @property
    def state_space(self) -> Utf8Text:
        """Text."""
        return Utf8Text(2 * sum(space.max_length for space in self._observation_spaces.values()))

    def instructions_for(self, agent: str) -> str:
        """The system prompt of an agent. Raises UsageError for an unknown agent."""
        check_agent(agent, self.possible_agents)
        rules = _PLANNER_RULES if agent == PLANNER else _ACTOR_RULES
        return rules.format(instructions=self._base.instructions).strip()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode, with seed and options of the environment. Unknown options are ignored with a warning."""
        observation, info = self.env.reset(seed=seed, options=known_options(options))
        self._observation = text_of(observation)
        self.agents = list(self.possible_agents)
        self.agent_selection = PLANNER
        self._skip_agent_selection = None
        self._plan = self._action = ""
        self._plan_truncated = False
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._set_info(info, terminated=False, truncated=info["stop_reason"] is not None)

    def observe(self, agent: str) -> str:
        """The agent's observation.

        Raises:
            EpisodeOver: no episode was begun.
            UsageError: the agent is unknown.
        """
        check_agent(agent, self.possible_agents)
        self._check_begun()
        if agent == ACTOR:
            return f"{self._observation}\n\n{quote(PLANNER, self._plan)}" if self._plan else self._observation
        before = f"{quote(ACTOR, self._action)}\n\n" if self._action else ""
        return before + self._observation + (f"\n\n{_TRUNCATED}" if self._plan_truncated else "")

    def last(self, observe: bool = True) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """The selected agent's last results, as in PettingZoo. Raises EpisodeOver if no episode was begun."""
        self._check_begun()
        return super().last(observe)  # type: ignore[no-any-return]

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """Iterate over the agents as they act, as in PettingZoo. Raises EpisodeOver if no episode was begun."""
        self._check_begun()
        return super().agent_iter(max_iter)

    def state(self) -> str:
        """The observations of both as a JSON object. Raises EpisodeOver if no episode was begun."""
        return write_texts({agent: self.observe(agent) for agent in self.possible_agents})

    def step(self, action: str | None) -> None:
        """Take the selected agent's text; None, as PettingZoo expects, from an agent whose episode is over.

        Raises:
            EpisodeOver: no episode runs.
            UsageError: the action is not a string.
        """
        if not self.agents:
            raise EpisodeOver("no episode runs; call reset() first")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        self._cumulative_rewards[agent] = 0.0
        if agent == PLANNER:
            self._advise(action)
        else:
            self._act(action)

    def oracle(self) -> Iterator[dict[str, str]]:
        """The texts of both agents in each turn that solve the current state (bare commands). Raises NoOracle."""
        return ({PLANNER: f"Do this next: {command}", ACTOR: command} for command in self._base.oracle())

    def render(self) -> Any:
        """Render the environment."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.agents = []
        self.env.close()

    def _check_begun(self) -> None:
        if not self._info:
            raise EpisodeOver("no episode was begun; call reset() first")

    def _advise(self, text: str) -> None:
        self._plan, self._plan_truncated = clean(text, MAX_PLAN_CHARS)
        self._clear_rewards()
        self.infos[ACTOR] = self._info_of(ACTOR, PLANNER, self._plan)
        self.agent_selection = ACTOR

    def _act(self, action: str) -> None:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation = text_of(observation)
        self._action, _ = clean(action, MAX_SHOWN_ACTION_CHARS)
        self._plan = ""
        self.rewards = dict.fromkeys(self.agents, float(reward))
        self._accumulate_rewards()
        self.agent_selection = PLANNER
        self._set_info(info, terminated, truncated)
        self._deads_step_first()

    def _set_info(self, info: dict[str, Any], terminated: bool, truncated: bool) -> None:
        self._info = info
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.infos = {
            PLANNER: self._info_of(PLANNER, ACTOR, self._action),
            ACTOR: self._info_of(ACTOR, PLANNER, ""),
        }

    def _info_of(self, agent: str, other: str, message: str) -> dict[str, Any]:
        """The agent's info, with the other agent's message."""
        messages = [{"from": other, "text": message}] if message else []
        seen = f"{self._info['state_key']}\n{agent}\n{self.observe(agent)}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(seen, digest_size=8).hexdigest()
        return {**self._info, "state_key": key, "agent": agent, "messages": messages}


def _single(env: object) -> TextEnv:
    """The environment under any wrappers. Raises UsageError if it is not of this suite, or is a team."""
    if not isinstance(env, gym.Env):
        raise UsageError(f"give an environment of the suite, or its id, got {type(env).__name__}: {env!r:.80}")
    base = text_env(env)
    team = isinstance(base, JointEnv) or (base.spec is not None and is_team(base.spec.id))  # also behind a server
    if team:
        raise UsageError(
            "a planner and an actor need an environment for a single agent, but this is a team; give another"
        )
    return base
