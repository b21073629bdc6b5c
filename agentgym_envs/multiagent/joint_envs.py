"""The registered teams: `AgentGym/TextCraftCoop-v0` and `AgentGym/PlannerActor-v0`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from agentgym_envs.core import TRANSPORT_OPTIONS, TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.hosting.session_host import make_env
from agentgym_envs.multiagent.joint import JointEnv, RoundResult, check_agent
from agentgym_envs.multiagent.tasks import check_groups
from agentgym_envs.registration import env_class
from agentgym_envs.task import Task
from agentgym_envs.textcraft.names import Worlds

_TEXTCRAFT = "AgentGym/TextCraft-v0"


class TextCraftCoopEnv(JointEnv):
    """Cooperative TextCraft: the joint form of `agentgym_envs.multiagent.textcraft_coop_v0`, which has the rules.

    All agents act in every round. Each text is in `agent_grammar`; an agent that writes null passes, except in a team
    of one.

    ## Arguments
    - `agent_grammar`: the grammar of each agent's actions; see `agentgym_envs.grammar`.
    - `num_agents`, `max_distractors`, `worlds`, `recipe_table`, `individual`, `known_recipes_only`, `max_rounds`: as in
      `textcraft_coop_v0.parallel_env`.
    - `instructions`: replaces the system prompt of every agent; "" for an empty one.
    - `grammar`, `split`, `groups`, `render_mode`: as in every environment.

    ## Version History
    - v0: first version.
    """

    remote_options = TextEnv.remote_options | {
        "num_agents",
        "agent_grammar",
        "max_distractors",
        "worlds",
        "individual",
        "known_recipes_only",
        "max_rounds",
    }

    def __init__(
        self,
        *,
        num_agents: int = 2,
        agent_grammar: str | ActionGrammar = "bare",
        max_distractors: int = 10,
        worlds: Worlds = "real",
        recipe_table: str | PathLike[str] | None = None,
        individual: float = 0.0,
        known_recipes_only: bool = False,
        max_rounds: int | None = None,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The class documents the arguments. Raises UsageError for an invalid one, and MissingExtra."""
        from agentgym_envs.multiagent.coop import CoopTextCraftEnv

        self._game = CoopTextCraftEnv(
            num_agents=num_agents,
            grammar=agent_grammar,
            split=None,
            max_distractors=max_distractors,
            worlds=worlds,
            recipe_table=recipe_table,
            individual=individual,
            known_recipes_only=known_recipes_only,
            max_rounds=max_rounds,
            instructions=instructions,
            render_mode="ansi",
        )
        self.tasks = self._game.tasks
        check_groups(self.tasks, groups, num_agents)
        super().__init__(grammar=grammar, split=split, groups=groups, render_mode=render_mode)

    @property
    def agents(self) -> tuple[str, ...]:
        """`crafter_0`, `crafter_1`, ..."""
        return tuple(self._game.possible_agents)

    @property
    def agent_grammar(self) -> ActionGrammar:
        """The game's grammar."""
        return self._game.grammar

    def instructions_for(self, agent: str) -> str:
        """As `JointEnv.instructions_for`."""
        return self._game.instructions_for(agent)

    def _start_game(self, task: Task) -> RoundResult:
        observations, infos = self._game.reset(seed=self.episode_seed, options={"task": task.id})
        return RoundResult(observations, infos, _keys(infos))

    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        passing = self.agent_grammar.format("pass")
        texts = {agent: passing if text is None else text for agent, text in actions.items()}
        observations, rewards, terminations, truncations, infos = self._game.step(texts)
        terminated, truncated = any(terminations.values()), any(truncations.values())
        return RoundResult(observations, infos, _keys(infos), rewards, terminated, truncated)

    def _may_pass(self, agent: str) -> bool:
        return len(self.agents) > 1

    def _random_text(self, agent: str, rng: random.Random) -> str:
        return self.agent_grammar.format(self._game.random_command(agent, rng))

    def _rounds(self) -> Iterator[Mapping[str, str]]:
        for commands in self._game.oracle():
            yield {agent: self.agent_grammar.format(command) for agent, command in commands.items()}

    def _draw(self) -> str:
        return self._game.render() or ""

    def _close(self) -> None:
        self._game.close()


class PlannerActorEnv(JointEnv):
    """Any environment of the suite for two agents: the joint form of `agentgym_envs.multiagent.planner_actor`.

    The agents alternate: first `planner` writes what it would do next, then `actor` reads that and writes the action.
    So a turn of the environment takes two turns here. A planner that writes null says nothing; an actor cannot pass.
    Tasks, groups and splits are those of the environment.

    ## Arguments
    - `env_id` and `env_kwargs`: the environment and its arguments for `gym.make`. On a server, the operator sets them.
    - `agent_grammar`: the grammar of the actor's actions; None for the environment's. The planner's text is free.
    - `instructions`: replaces the environment's instructions, which are part of both system prompts.
    - `grammar`, `split`, `groups`, `render_mode`: as in every environment.

    ## Version History
    - v0: first version.
    """

    def __init__(
        self,
        *,
        env_id: str = _TEXTCRAFT,
        env_kwargs: Mapping[str, Any] | None = None,
        agent_grammar: str | ActionGrammar | None = None,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The class documents the arguments. Raises the errors of making the environment, and MissingExtra."""
        from agentgym_envs.multiagent.planner_actor import planner_actor

        own = {"grammar": agent_grammar, "instructions": instructions, "render_mode": render_mode}
        options = _checked(env_kwargs) | {name: value for name, value in own.items() if value is not None}
        self._game = planner_actor(make_env(env_id, options))
        self._inner = text_env(self._game.env)
        self.tasks = self._inner.tasks
        self.blocking = self._inner.blocking or self._inner.native_async
        try:
            super().__init__(grammar=grammar, split=split, groups=groups, render_mode=render_mode)
        except UsageError:
            self._game.close()
            raise

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        """As for the inner environment."""
        return env_class(options.get("env_id", _TEXTCRAFT)).needs_worker(options.get("env_kwargs") or {})

    def prepare(self) -> None:
        """Prepare the inner environment."""
        self._inner.prepare()

    @property
    def agents(self) -> tuple[str, ...]:
        """`planner` and `actor`."""
        return tuple(self._game.possible_agents)

    @property
    def agent_grammar(self) -> ActionGrammar:
        """The inner environment's grammar, in which the actor writes."""
        return self._game.grammar

    def instructions_for(self, agent: str) -> str:
        """As `JointEnv.instructions_for`."""
        check_agent(agent, self.agents)
        return self._game.instructions_for(agent)

    def _start_game(self, task: Task) -> RoundResult:
        self._game.reset(seed=self.episode_seed, options={"task": task.id})
        return self._result()._replace(rewards={})

    def _play_round(self, actions: Mapping[str, str | None]) -> RoundResult:
        [(agent, text)] = actions.items()
        self._game.step(text or "")
        now = self._result()
        if agent == self.agents[0]:  # the infos still describe the actor's last action
            return now._replace(infos={a: {**info, "invalid_action": None} for a, info in now.infos.items()})
        return now

    def _result(self) -> RoundResult:
        game, planner = self._game, self.agents[0]
        terminated, truncated = game.terminations[planner], game.truncations[planner]
        acting = self.agents if terminated or truncated else (game.agent_selection,)
        observations = {agent: game.observe(agent) for agent in acting}
        infos = {agent: dict(game.infos[agent]) for agent in self.agents}
        state = f"{_keys(infos)} {' '.join(acting)}"
        return RoundResult(observations, infos, state, dict(game.rewards), terminated, truncated)

    def _may_pass(self, agent: str) -> bool:
        return agent == self.agents[0]

    def _random_text(self, agent: str, rng: random.Random) -> str:
        command = self._inner.random_command(rng)
        return f"Try this: {command}" if agent == self.agents[0] else self.agent_grammar.format(command)

    def _rounds(self) -> Iterable[Mapping[str, str]]:
        planner, actor = self.agents
        rounds: list[Mapping[str, str]] = []
        for turn in self._game.oracle():
            rounds += [{planner: turn[planner]}, {actor: self.agent_grammar.format(turn[actor])}]
        return rounds[1:] if self.acting == (actor,) else rounds

    def _draw(self) -> str:
        return str(self._game.render())

    def _close(self) -> None:
        self._game.close()


def _keys(infos: Mapping[str, Mapping[str, Any]]) -> str:
    return " ".join(info["state_key"] for info in infos.values())


def _checked(env_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of the inner environment. Raises UsageError for arguments that belong to the team."""
    if not isinstance(env_kwargs, Mapping | None):
        raise UsageError(f"env_kwargs must be a dict of arguments for the inner environment, got {env_kwargs!r:.80}")
    if wrong := sorted(TRANSPORT_OPTIONS & set(env_kwargs or {})):
        raise UsageError(f"{wrong} are arguments of the team: give them outside of env_kwargs")
    return dict(env_kwargs or {})
