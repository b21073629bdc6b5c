"""Any scenario for two: a planner that speaks and an actor that acts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from agentgym_envs.core import MAX_ACTION_CHARS, MAX_OBSERVATION_CHARS, TextEnv, text_env
from agentgym_envs.errors import EpisodeOver, UsageError, missing_extra
from agentgym_envs.grammar import ActionGrammar
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
_CUT = f"Only the first {MAX_PLAN_CHARS} characters of what you said were shown."

_PLANNER_RULES = f"""\
You plan for another agent, the actor, which acts in the world that is described below. In each turn you see what it \
sees, and what it did last. Then you write what it should do next and why, in at most {MAX_PLAN_CHARS} characters; \
your words are shown to it, and it acts. You cannot act yourself. This is what the actor was told:

{{instructions}}"""
_ACTOR_RULES = """\
{instructions}

Before each of your actions a planner, which sees what you see, tells you what it would do."""


def planner_actor(env: str | gym.Env[str, str], **options: Any) -> PlannerActorAECEnv:
    """An environment of the suite, or one that `gym.make(env, **options)` makes, for a planner and an actor.

    Raises UsageError for one that is no `TextEnv`, or is a team already.
    """
    if isinstance(env, str):
        return PlannerActorAECEnv(gym.make(env, **options))
    if options:
        raise UsageError(f"{sorted(options)} are for gym.make, but an environment was given that is made already")
    return PlannerActorAECEnv(env)


class PlannerActorAECEnv(AECEnv[str, str, str]):  # type: ignore[misc]  # PettingZoo is not typed
    """The planner speaks, then the actor acts, and so on.

    ## Action Space
    The planner's is free text. The actor's is that of the environment, in its grammar.

    ## Observation
    Both see the environment's observation. For the planner a line `actor says: "..."` with the actor's last message
    stands before it; for the actor a line `planner says: "..."` after it. What one says is one line for the other, cut
    after 1000 characters of the planner's and 300 of the actor's, and made safe as in `textcraft_coop_v0`.

    ## Rewards
    Both get the environment's.

    ## Infos
    The environment's, for both, with `agent` and `messages` (`from`, `text`): what the other said last. `state_key`
    stands for the environment's state and what the agent sees of it and of the other.

    `state()` is a JSON object from the agents to what each sees now.

    There is no parallel form: within a turn the actor answers what the planner has just said.

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
        """`env` may be wrapped, for example by a limit of turns. Raises UsageError if it is no `TextEnv` for one."""
        self.env, self._base = env, _single(env)
        self.possible_agents = [PLANNER, ACTOR]
        self.agents: list[str] = []
        self.render_mode = self._base.render_mode
        extra = 2 * (MAX_PLAN_CHARS + MAX_SHOWN_ACTION_CHARS)
        self._sees = {agent: Utf8Text(MAX_OBSERVATION_CHARS + extra) for agent in self.possible_agents}
        self._writes = {agent: Utf8Text(MAX_ACTION_CHARS) for agent in self.possible_agents}
        self._observation, self._info = "", dict[str, Any]()
        self._plan = self._action = ""
        self._cut = False

    @property
    def tasks(self) -> TaskSet:
        """The environment's."""
        return self._base.tasks

    @property
    def task(self) -> Task | None:
        """The environment's."""
        return self._base.task

    @property
    def grammar(self) -> ActionGrammar:
        """How the actor's actions are written."""
        return self._base.grammar

    def observation_space(self, agent: str) -> Utf8Text:
        """Text."""
        check_agent(agent, self.possible_agents)
        return self._sees[agent]

    def action_space(self, agent: str) -> Utf8Text:
        """Text."""
        check_agent(agent, self.possible_agents)
        return self._writes[agent]

    @property
    def state_space(self) -> Utf8Text:
        """Text."""
        return Utf8Text(2 * sum(space.max_length for space in self._sees.values()))

    def instructions_for(self, agent: str) -> str:
        """What an agent's system prompt must tell the model. Raises UsageError for an agent that is none."""
        check_agent(agent, self.possible_agents)
        rules = _PLANNER_RULES if agent == PLANNER else _ACTOR_RULES
        return rules.format(instructions=self._base.instructions).strip()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode; seed and options are the environment's. Unknown options are ignored with a warning."""
        self._observation, info = self.env.reset(seed=seed, options=known_options(options))
        self.agents = list(self.possible_agents)
        self.agent_selection = PLANNER
        self._skip_agent_selection = None
        self._plan = self._action = ""
        self._cut = False
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._note(info, terminated=False, truncated=info["stop_reason"] is not None)

    def observe(self, agent: str) -> str:
        """What the agent sees now.

        Raises:
            EpisodeOver: no episode was begun.
            UsageError: there is no such agent.
        """
        check_agent(agent, self.possible_agents)
        self._check_begun()
        if agent == ACTOR:
            return f"{self._observation}\n\n{quote(PLANNER, self._plan)}" if self._plan else self._observation
        before = f"{quote(ACTOR, self._action)}\n\n" if self._action else ""
        return before + self._observation + (f"\n\n{_CUT}" if self._cut else "")

    def last(self, observe: bool = True) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """As PettingZoo's, of the selected agent. Raises EpisodeOver if no episode was begun."""
        self._check_begun()
        return super().last(observe)  # type: ignore[no-any-return]

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """As PettingZoo's: the agents, as they are to act. Raises EpisodeOver if no episode was begun."""
        self._check_begun()
        return super().agent_iter(max_iter)

    def state(self) -> str:
        """What both see now, as the joint text: a JSON object. Raises EpisodeOver if no episode was begun."""
        return write_texts({agent: self.observe(agent) for agent in self.possible_agents})

    def step(self, action: str | None) -> None:
        """The selected agent's message; None, as PettingZoo wants it, from an agent whose episode is over.

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
            self._speak(action)
        else:
            self._act(action)

    def oracle(self) -> Iterator[dict[str, str]]:
        """What the two would write in each turn (bare commands) to solve the current state. Raises NoOracle."""
        return ({PLANNER: f"Do this next: {command}", ACTOR: command} for command in self._base.oracle())

    def render(self) -> Any:
        """The environment's picture."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.agents = []
        self.env.close()

    def _check_begun(self) -> None:
        if not self._info:
            raise EpisodeOver("no episode was begun; call reset() first")

    def _speak(self, text: str) -> None:
        self._plan, self._cut = clean(text, MAX_PLAN_CHARS)
        self._clear_rewards()
        self.infos[ACTOR] = self._info_of(ACTOR, PLANNER, self._plan)
        self.agent_selection = ACTOR

    def _act(self, action: str) -> None:
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        self._action, _ = clean(action, MAX_SHOWN_ACTION_CHARS)
        self._plan = ""
        self.rewards = dict.fromkeys(self.agents, float(reward))
        self._accumulate_rewards()
        self.agent_selection = PLANNER
        self._note(info, terminated, truncated)
        self._deads_step_first()

    def _note(self, info: dict[str, Any], terminated: bool, truncated: bool) -> None:
        self._info = info
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.infos = {
            PLANNER: self._info_of(PLANNER, ACTOR, self._action),
            ACTOR: self._info_of(ACTOR, PLANNER, ""),
        }

    def _info_of(self, agent: str, other: str, said: str) -> dict[str, Any]:
        """The agent's info; `said` is what it was told by the other."""
        messages = [{"from": other, "text": said}] if said else []
        seen = f"{self._info['state_key']}\n{agent}\n{self.observe(agent)}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(seen, digest_size=8).hexdigest()
        return {**self._info, "state_key": key, "agent": agent, "messages": messages}


def _single(env: object) -> TextEnv:
    """The environment under any wrappers. Raises UsageError if it is none of this suite, or a team itself."""
    if not isinstance(env, gym.Env):
        raise UsageError(f"give an environment of the suite, or its id, got {type(env).__name__}: {env!r:.80}")
    base = text_env(env)
    team = isinstance(base, JointEnv) or (base.spec is not None and is_team(base.spec.id))  # also behind a server
    if team:
        raise UsageError("a planner and an actor play what one agent plays alone, and this is a team; give another")
    return base
