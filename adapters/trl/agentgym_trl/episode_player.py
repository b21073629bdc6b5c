"""`EpisodePlayer`: plays the episodes of a step with the trainer's engine, and retries the ones that failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.multiagent.play import Engines, play_many_teams
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Limits,
    Sampling,
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


@dataclass(slots=True)
class PlayStats:
    """Totals of one rollout: seconds of generation, sampled tokens, retries of failed episodes."""

    seconds: float = 0.0
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
        """Play all episodes, and retry the ones that ended in `env_error`.

        Every process must call it. All make the same number of passes, as generation may be a collective call.
        """
        episodes = run_sync(self._play(specs, trainer, stats, on_done))
        for _ in range(self.options.env_retries):
            failed = [index for index, episode in enumerate(episodes) if not episode.trajectory.usable]
            if not anywhere(bool(failed)):
                break
            retried = run_sync(self._play([specs[index] for index in failed], trainer, stats, on_done))
            stats.retried += len(failed)
            for index, episode in zip(failed, retried, strict=True):
                episodes[index] = episode
        return episodes

    async def _play(
        self, specs: Sequence[EpisodeSpec], trainer: Any, stats: PlayStats, on_done: OnDone
    ) -> list[Episode]:
        engine = _make_engine(trainer)
        options: dict[str, Any] = {
            "limits": self.limits,
            "concurrency": self.options.env_concurrency,
            "on_done": on_done,
        }
        try:
            if self.partner is None:
                episodes = await self._play_with(engine, specs, options)
            else:
                episodes = await self._play_with_partner(self.partner, engine, specs, trainer, stats, options)
            await engine.finish()
            return list(episodes)
        finally:
            await engine.aclose()
            stats.seconds += engine.seconds
            stats.tokens += engine.tokens

    async def _play_with(
        self, engine: Engines, specs: Sequence[EpisodeSpec], options: Mapping[str, Any]
    ) -> Sequence[Episode]:
        if self.team.agents:
            return await play_many_teams(specs, self.runners, engine, self.codec, **options)
        assert not isinstance(engine, Mapping)
        if self.options.agent is not None:
            return await play_many_as_agent(specs, self.runners, self.options.agent, engine, self.codec, **options)
        return await play_many(specs, self.runners, engine, self.codec, **options)

    async def _play_with_partner(
        self,
        partner: PartnerEngine,
        engine: Any,
        specs: Sequence[EpisodeSpec],
        trainer: Any,
        stats: PlayStats,
        options: Mapping[str, Any],
    ) -> Sequence[Episode]:
        """Play with a frozen partner, which samples with the settings of the policy."""
        args, before = trainer.args, partner.seconds
        partner.model.to(trainer.accelerator.device)
        sampling = Sampling(self.limits.max_turn_tokens, args.temperature, args.top_p, args.top_k)
        engines = {agent: engine if agent in self.team.trained else partner for agent in self.team.agents}
        try:
            return await self._play_with(engines, specs, {**options, "sampling": sampling})
        finally:
            partner.drop_cache()
            stats.seconds += partner.seconds - before


def _make_engine(trainer: Any) -> Any:
    """The trainer's own generation, or the vLLM server that the trainer updates."""
    if trainer.use_vllm and trainer.args.vllm_mode == "server":
        from agentgym_trl.server_engine import server_engine_for

        return server_engine_for(trainer)
    return TrainerEngine(trainer)
