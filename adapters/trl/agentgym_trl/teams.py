"""The agents of a run: a single agent, or a team with trained and untrained members.

TRL repeats a prompt `num_generations` times, and each repetition becomes a row. For a team with m trained members, the
G rows of a group are G/m episodes with m trajectories each, ordered by agent: the first G/m rows are the trajectories
of the first trained agent, and so on. So consecutive rows have the same role and task. They form a group of G/m, and
estimators give each role a baseline of its own.

Source: role-conditioned baselines as in SPIRAL, arXiv 2506.24119, here over groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.agent_trajectories import team_prompts
from agentgym_envs.multiagent.joint import JointEnv, is_team
from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.vector import RunnerPool
from agentgym_trl.agent_trajectories import Episode, agent_trajectories

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TeamRoles:
    """The `agents` of a team and the `trained` ones among them; both are empty for a single agent."""

    agents: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()

    @property
    def roles(self) -> int:
        """The number of trained trajectories per episode."""
        return max(len(self.trained), 1)

    def group_size(self, num_generations: int) -> int:
        """The number of episodes in a group. Raises UsageError if `num_generations` rows are not whole episodes."""
        if num_generations % self.roles:
            raise UsageError(
                f"a group holds the trajectories of {', '.join(self.trained)}: --num_generations must be a multiple "
                f"of {self.roles}, got {num_generations}"
            )
        return num_generations // self.roles

    def check(self, num_generations: int, process_rows: int, *, grouped: bool) -> None:
        """Raise UsageError if a process cannot play whole groups in its `process_rows` rows.

        `grouped` is true if the estimator compares the episodes of a group.
        """
        if self.group_size(num_generations) < 2 and grouped and self.agents:
            raise UsageError(
                "the episodes of a group are compared, role by role, and a group of 1 has none to compare: "
                f"--num_generations must be at least {2 * self.roles}, got {num_generations}"
            )
        if self.roles > 1 and process_rows % num_generations:
            raise UsageError(
                "the trajectories of a team's episode stay in one process, so a process must play whole groups: "
                f"--per_device_train_batch_size times --steps_per_generation is {process_rows}, and must be a multiple "
                f"of --num_generations ({num_generations})"
            )

    def episode_prompts(self, prompts: Sequence[_T], num_generations: int) -> list[_T]:
        """Select one prompt per episode from one prompt per row. Raises UsageError if the groups are not whole."""
        size = self.group_size(num_generations)
        if self.roles == 1:
            return list(prompts)
        groups = [prompts[first : first + num_generations] for first in range(0, len(prompts), num_generations)]
        if any(len(group) < num_generations or any(prompt != group[0] for prompt in group) for group in groups):
            raise UsageError(
                "the trajectories of a team's episode stay in one process, and this one got a part of a group only: "
                f"the batch of a process must be a multiple of the {num_generations} rows of a group; in evaluation, "
                "--per_device_eval_batch_size must be a multiple of --num_generations_eval"
            )
        return [prompt for group in groups for prompt in group[:size]]

    def per_row(self, values: Sequence[_T], size: int) -> list[_T]:
        """Repeat one value per episode, in groups of `size`, as one value per row."""
        groups = [values[first : first + size] for first in range(0, len(values), size)]
        return [value for group in groups for _ in range(self.roles) for value in group]

    def rows(self, episodes: Sequence[Episode], size: int) -> list[TokenTrajectory]:
        """The trained trajectories, ordered by agent within each group of `size` episodes."""
        groups = [episodes[first : first + size] for first in range(0, len(episodes), size)]
        agents = self.trained or ("",)
        return [agent_trajectories(episode)[agent] for group in groups for agent in agents for episode in group]


def find_team_roles(runners: RunnerPool, envs: Iterable[str], train_agents: Sequence[str] | None = None) -> TeamRoles:
    """The team of these environments; by default all of its members are trained.

    Raises UsageError if the environments have different teams, or `train_agents` are not members of it.
    """
    teams = {name: _agents(runners, name) for name in envs}
    if len(set(teams.values())) > 1:
        differing = "; ".join(f"{name}: {', '.join(agents) or 'a single agent'}" for name, agents in teams.items())
        raise UsageError(f"the environments of a run must have the same team, and these differ: {differing}")
    agents = next(iter(teams.values()), ())
    if train_agents is None:
        return TeamRoles(agents, agents)
    if not agents:
        raise UsageError("--train-agents names members of a team, and this environment has a single agent")
    if not train_agents or not set(train_agents) <= set(agents):
        given = ", ".join(train_agents) or "none"
        raise UsageError(f"--train-agents must name members of the team, {', '.join(agents)}; got {given}")
    return TeamRoles(agents, tuple(agent for agent in agents if agent in train_agents))


def agents_of(env: TextEnv) -> tuple[str, ...]:
    """The members of a team; empty for an environment with a single agent."""
    team = isinstance(env, JointEnv) or (env.spec is not None and is_team(env.spec.id))  # also behind a server
    return tuple(team_prompts(env.instructions)) if team else ()


def _agents(runners: RunnerPool, name: str) -> tuple[str, ...]:
    runner = runners.acquire(name)
    try:
        return agents_of(text_env(runner.last_env))
    finally:
        runners.release(name, runner)
