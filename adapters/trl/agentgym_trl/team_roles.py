"""Who plays in an episode, and whose streams are trained on: one agent alone, or the members of a team.

TRL repeats a prompt G times, and each of these places becomes a row. For a team of which m members are trained, they
are G/m episodes of m streams, agent by agent: the first G/m rows are streams of the first trained agent, and so on. So
consecutive rows of the same role on the same task are a group of G/m, and estimators give each role a baseline of its
own.

Source: role-conditioned baselines as in SPIRAL, arXiv 2506.24119, here over groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories, team_prompts
from agentgym_envs.multiagent.joint import JointEnv, is_team
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.multiagent.play import Engines, TeamEpisode, play_many_teams
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, TokenTrajectory, play_many
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector import EnvPool

_T = TypeVar("_T")
Episode = TokenTrajectory | TeamEpisode


@dataclass(frozen=True, slots=True)
class TeamRoles:
    """The `agents` of a team and those of them that are `trained`; both are empty where one plays alone."""

    agents: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()

    @property
    def roles(self) -> int:
        """How many streams of an episode are trained on."""
        return max(len(self.trained), 1)

    def group_size(self, places: int) -> int:
        """How many episodes a group has, if a prompt has so many places. Raises UsageError if they do not come out."""
        if places % self.roles:
            raise UsageError(
                f"the streams of {', '.join(self.trained)} fill the places of a group together: --num_generations must "
                f"be a multiple of {self.roles}, got {places}"
            )
        return places // self.roles

    def check(self, places: int, of_process: int, *, compares: bool) -> None:
        """Raise UsageError if groups of so many places cannot be played in a process that has `of_process` of them.

        `compares` says whether the episodes of a group are compared.
        """
        if self.group_size(places) < 2 and compares and self.agents:
            raise UsageError(
                "the episodes of a group are compared, role by role, and one has nothing to compare: "
                f"--num_generations must be at least {2 * self.roles}, got {places}"
            )
        if self.roles > 1 and of_process % places:
            raise UsageError(
                "the streams of a team's episode stay in one process, so a process must play whole groups: "
                f"--per_device_train_batch_size times --steps_per_generation is {of_process}, and must be a multiple "
                f"of --num_generations ({places})"
            )

    def episodes(self, prompts: Sequence[_T], places: int) -> list[_T]:
        """Of a prompt for each place, one for each episode. Raises UsageError if the groups are not whole."""
        size = self.group_size(places)
        if self.roles == 1:
            return list(prompts)
        blocks = [prompts[first : first + places] for first in range(0, len(prompts), places)]
        if any(len(block) < places or any(prompt != block[0] for prompt in block) for block in blocks):
            raise UsageError(
                "the streams of a team's episode stay in one process, and this one was given a part of a group only: "
                f"the batch of a process must be a multiple of the {places} places of a group, in evaluation "
                "--per_device_eval_batch_size of --num_generations_eval"
            )
        return [prompt for block in blocks for prompt in block[:size]]

    def spread(self, values: Sequence[_T], size: int) -> list[_T]:
        """Of a value for each episode, in groups of `size`, one for each row."""
        blocks = [values[first : first + size] for first in range(0, len(values), size)]
        return [value for block in blocks for _ in range(self.roles) for value in block]

    def rows(self, episodes: Sequence[Episode], size: int) -> list[TokenTrajectory]:
        """The streams that are trained on, agent by agent within each group of `size` episodes."""
        blocks = [episodes[first : first + size] for first in range(0, len(episodes), size)]
        agents = self.trained or ("",)
        return [streams(episode)[agent] for block in blocks for agent in agents for episode in block]

    async def play(
        self, specs: Sequence[EpisodeSpec], runners: EnvPool, engine: Engines, codec: ChatCodec, **how: Any
    ) -> Sequence[Episode]:
        """Play the episodes, as `play_many` does and takes it."""
        if self.agents:
            return await play_many_teams(specs, runners, engine, codec, **how)
        assert not isinstance(engine, Mapping)
        return await play_many(specs, runners, engine, codec, **how)


def streams(episode: Episode) -> Mapping[str, TokenTrajectory]:
    """The streams of an episode by agent; of one who plays alone, its only one under no name."""
    return episode.per_agent if isinstance(episode, TeamEpisode) else {"": episode}


def find_cast(runners: EnvPool, envs: Iterable[str], train_agents: Sequence[str] | None = None) -> TeamRoles:
    """Who plays in the environments of these names; all members of a team are trained by default.

    Raises UsageError if the environments have different teams, or `train_agents` are not members of it.
    """
    found = {name: _agents(runners, name) for name in envs}
    if len(set(found.values())) > 1:
        teams = "; ".join(f"{name}: {', '.join(agents) or 'one alone'}" for name, agents in found.items())
        raise UsageError(f"the environments of a run must have the same team, and these differ: {teams}")
    agents = next(iter(found.values()), ())
    if train_agents is None:
        return TeamRoles(agents, agents)
    if not agents:
        raise UsageError("--train_agents names members of a team, and in this environment one plays alone")
    if not train_agents or not set(train_agents) <= set(agents):
        named = ", ".join(train_agents) or "none"
        raise UsageError(f"--train_agents must name members of the team, {', '.join(agents)}; got {named}")
    return TeamRoles(agents, tuple(agent for agent in agents if agent in train_agents))


def views(trajectory: Trajectory) -> list[Trajectory]:
    """What each agent saw and wrote in a team's episode; of one who plays alone, the trajectory itself."""
    return list(per_agent_trajectories(trajectory).values()) if is_team_record(trajectory) else [trajectory]


def agents_of(env: TextEnv) -> tuple[str, ...]:
    """The members of a team; none if it is none."""
    team = isinstance(env, JointEnv) or (env.spec is not None and is_team(env.spec.id))  # also behind a server
    return tuple(team_prompts(env.instructions)) if team else ()


def _agents(runners: EnvPool, name: str) -> tuple[str, ...]:
    runner = runners.take(name)
    try:
        return agents_of(text_env(runner.last_env))
    finally:
        runners.give(name, runner)
