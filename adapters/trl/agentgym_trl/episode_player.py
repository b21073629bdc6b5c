"""`EpisodePlayer`: plays the episodes of a step with the trainer's engine, and retries the ones that failed.

A rollout is one `PlaySession` with one engine, so that forks of its episodes find their keys and values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from agentgym_envs.multiagent.play import Engines, play_many_teams
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Fork,
    Limits,
    OracleClock,
    Sampling,
    TokenTrajectory,
    play_forks,
    play_labelled,
    play_many,
    play_many_as_agent,
    run_sync,
)
from agentgym_envs.vector import RunnerPool
from agentgym_trl.agent_trajectories import Episode
from agentgym_trl.distributed import anywhere
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.partner import PartnerEngine
from agentgym_trl.rollout_options import RolloutOptions
from agentgym_trl.teams import TeamRoles

OnDone = Callable[[Episode], None] | None
_Spec = TypeVar("_Spec", bound=EpisodeSpec)
_Episode = TypeVar("_Episode", bound=Episode)


@dataclass(slots=True)
class PlayStats:
    """Totals of one rollout: seconds of generation and of the oracle, sampled tokens, retries of failed episodes."""

    seconds: float = 0.0
    oracle_seconds: float = 0.0
    tokens: int = 0
    retried: int = 0


@dataclass(frozen=True, slots=True)
class EpisodePlayer:
    """Plays episodes of one agent or of a team; a frozen partner may play the untrained agents of a team."""

    team: TeamRoles
    runners: RunnerPool
    codec: ChatCodec
    limits: Limits
    options: RolloutOptions
    partner: PartnerEngine | None

    def play(self, specs: Sequence[EpisodeSpec], trainer: Any, stats: PlayStats, on_done: OnDone) -> list[Episode]:
        """Play episodes in a session of their own; see `PlaySession.play`."""

        async def run() -> list[Episode]:
            async with self.session(trainer, stats, on_done) as session:
                return await session.play(specs)

        return run_sync(run())

    @asynccontextmanager
    async def session(self, trainer: Any, stats: PlayStats, on_done: OnDone) -> AsyncIterator[PlaySession]:
        """A session with an engine of its own. Its totals are in `stats` at the end."""
        engine, oracle = _make_engine(trainer), self.options.oracle
        clock = OracleClock(oracle.seconds) if oracle is not None and trainer.model.training else None
        try:
            yield PlaySession(self, trainer, engine, stats, on_done, clock)
        finally:
            await engine.aclose()
            stats.oracle_seconds += clock.spent if clock is not None else 0.0
            stats.seconds += engine.seconds
            stats.tokens += engine.tokens


@dataclass(frozen=True, slots=True)
class PlaySession:
    """Episodes that one engine plays, whose weights do not change meanwhile.

    Every process must make the same calls. All make the same number of passes, as generation may be a collective call.
    """

    player: EpisodePlayer
    trainer: Any
    engine: Any
    stats: PlayStats
    on_done: OnDone
    clock: OracleClock | None
    """The seconds of the oracle, if it labels the episodes."""

    async def play(self, specs: Sequence[EpisodeSpec]) -> list[Episode]:
        """Play all episodes, and retry the ones that ended in `env_error`."""
        return await self._with_retries(self._play, specs)

    async def play_tree(self, forks: Sequence[Fork]) -> list[TokenTrajectory]:
        """Sample a continuation of each fork to train on, and retry the ones that ended in `env_error`."""

        async def play(some: Sequence[Fork]) -> list[TokenTrajectory]:
            return await self.play_forks(some, self.on_done)

        return await self._with_retries(play, forks)

    async def play_forks(self, forks: Sequence[Fork], on_done: OnDone = None) -> list[TokenTrajectory]:
        """Sample a continuation of each fork."""
        options = {**self._options, "on_done": on_done, "agent": self.player.options.agent}
        played = await play_forks(forks, self.player.runners, self.engine, self.player.codec, **options)
        await self.engine.finish()
        return played

    async def _with_retries(
        self, play: Callable[[Sequence[_Spec]], Awaitable[list[_Episode]]], specs: Sequence[_Spec]
    ) -> list[_Episode]:
        episodes = await play(specs)
        for _ in range(self.player.options.env_retries):
            failed = [index for index, episode in enumerate(episodes) if not episode.trajectory.usable]
            if not anywhere(bool(failed)):
                break
            retried = await play([specs[index] for index in failed])
            self.stats.retried += len(failed)
            for index, episode in zip(failed, retried, strict=True):
                episodes[index] = episode
        return episodes

    async def _play(self, specs: Sequence[EpisodeSpec]) -> list[Episode]:
        partner = self.player.partner
        if partner is None:
            episodes = await self._play_with(self.engine, specs, self._options)
        else:
            episodes = await self._play_with_partner(partner, specs)
        await self.engine.finish()
        return list(episodes)

    @property
    def _options(self) -> dict[str, Any]:
        concurrency = self.player.options.env_concurrency
        return {"limits": self.player.limits, "concurrency": concurrency, "on_done": self.on_done}

    async def _play_with(
        self, engine: Engines, specs: Sequence[EpisodeSpec], options: Mapping[str, Any]
    ) -> Sequence[Episode]:
        player = self.player
        if player.team.agents:
            return await play_many_teams(specs, player.runners, engine, player.codec, **options)
        assert not isinstance(engine, Mapping)
        if player.options.agent is not None:
            agent = player.options.agent
            return await play_many_as_agent(specs, player.runners, agent, engine, player.codec, **options)
        if self.clock is not None:
            options = {**options, "clock": self.clock}
            return await play_labelled(specs, player.runners, engine, player.codec, **options)
        return await play_many(specs, player.runners, engine, player.codec, **options)

    async def _play_with_partner(self, partner: PartnerEngine, specs: Sequence[EpisodeSpec]) -> Sequence[Episode]:
        """Play with a frozen partner, which samples with the settings of the policy."""
        args, team, before = self.trainer.args, self.player.team, partner.seconds
        partner.model.to(self.trainer.accelerator.device)
        sampling = Sampling(self.player.limits.max_turn_tokens, args.temperature, args.top_p, args.top_k)
        engines = {agent: self.engine if agent in team.trained else partner for agent in team.agents}
        try:
            return await self._play_with(engines, specs, {**self._options, "sampling": sampling})
        finally:
            partner.drop_cache()
            self.stats.seconds += partner.seconds - before


def _make_engine(trainer: Any) -> Any:
    """The trainer's own generation, or the vLLM server that the trainer updates."""
    if trainer.use_vllm and trainer.args.vllm_mode == "server":
        from agentgym_trl.server_engine import server_engine_for

        return server_engine_for(trainer)
    return TrainerEngine(trainer)
