"""`StepRollout`: the episodes of one training step, with retries and dynamic sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentgym_envs.errors import EnvError
from agentgym_envs.rollout import EpisodeSpec, TokenTrajectory, run_sync
from agentgym_trl.agent_trajectories import Episode
from agentgym_trl.distributed import anywhere, gathered
from agentgym_trl.dynamic_sampling import episode_start, fresh_prompts, whole_groups, zero_variance_groups
from agentgym_trl.episode_player import EpisodePlayer, OnDone, PlaySession, PlayStats
from agentgym_trl.tree import grow_trees, tree_metrics
from agentgym_trl.vine import Values, estimate_values, metrics_of


class StepRollout:
    """Plays the episodes of one training step."""

    def __init__(
        self, player: EpisodePlayer, trainer: Any, make_spec: Callable[[Any], EpisodeSpec], *, on_done: OnDone
    ) -> None:
        """`make_spec` converts a prompt of TRL to the specification of an episode."""
        self._player, self._trainer, self._make_spec, self._on_done = player, trainer, make_spec, on_done
        self._training = bool(trainer.model.training)
        self._num_generations = int(trainer.num_generations if self._training else trainer.num_generations_eval)
        self.group_size = player.team.group_size(self._num_generations)
        self._stats = PlayStats()
        self._zero_variance, self._resampled = 0.0, 0
        self._vine = player.options.vine if self._training else None
        self.values: list[Values] | None = None
        """The values of states of each episode, with `--credit vine`."""
        self._tree = player.options.tree if self._training else None
        self.owners: list[list[int]] | None = None
        """The row that sampled each turn of each episode, with `--tree`."""
        self._fork_metrics: dict[str, float] = {}

    def play(self, prompts: Sequence[Any]) -> tuple[list[EpisodeSpec], list[Episode]]:
        """The specifications and episodes, `group_size` for each group; `prompts` has one prompt per row."""
        return run_sync(self._play_all(prompts))

    async def _play_all(self, prompts: Sequence[Any]) -> tuple[list[EpisodeSpec], list[Episode]]:
        prompts = self._player.team.episode_prompts(prompts, self._num_generations)
        specs = [self._make_spec(prompt) for prompt in prompts]
        async with self._player.session(self._trainer, self._stats, self._on_done) as session:
            episodes = await self._play_episodes(session, specs)
            if not anywhere(any(episode.trajectory.usable for episode in episodes)):
                raise EnvError(f"every episode of this step failed, the first with: {episodes[0].trajectory.error}")
            if self._training:
                await self._resample(session, specs, episodes)
            if self._vine is not None:
                single = [episode for episode in episodes if isinstance(episode, TokenTrajectory)]
                self.values, counts = await estimate_values(
                    session, specs, single, self._vine, self.group_size, self._seed
                )
                self._fork_metrics = metrics_of(counts)
        return specs, episodes

    async def _play_episodes(self, session: PlaySession, specs: Sequence[EpisodeSpec]) -> list[Episode]:
        if self._tree is None:
            return await session.play(specs)
        episodes, self.owners = await grow_trees(session, specs, self._tree, self._seed)
        self._fork_metrics = tree_metrics(episodes, self.owners)
        return list(episodes)

    def metrics(self, seconds: float) -> dict[str, float]:
        """The metrics over all processes: sums of tokens, times of the slowest. `seconds` is the rollout's time."""
        stats, retries = self._stats, self._player.options.dynamic_sampling_retries
        local = (stats.tokens, stats.retried, stats.seconds, max(seconds - stats.seconds, 0.0))
        tokens, retried, generate, env = zip(*gathered([local]), strict=True)
        return {
            **({"rollout/zero_variance_groups": self._zero_variance} if self._training else {}),
            **({"rollout/resampled_groups": float(self._resampled)} if retries else {}),
            **self._fork_metrics,
            "rollout/retried": float(sum(retried)),
            "rollout/tokens": float(sum(tokens)),
            "rollout/tokens_per_second": sum(tokens) / max(*generate, 1e-9),
            "time/generate": max(generate),
            "time/env": max(env),
        }

    @property
    def _seed(self) -> tuple[int, int, int]:
        """The seed of this rollout. `_step` counts micro-batches: a step may have several rollouts."""
        return self._trainer.args.seed, int(self._trainer.state.global_step), int(self._trainer._step)

    async def _resample(self, session: PlaySession, specs: list[EpisodeSpec], episodes: list[Episode]) -> None:
        """Replace tasks whose groups have zero variance in every role by other tasks, in place."""
        team, size, retries = self._player.team, self.group_size, self._player.options.dynamic_sampling_retries
        rank = int(self._trainer.accelerator.process_index)
        started = set(gathered([episode_start(spec) for spec in specs])) if retries else set()
        for attempt in range(retries + 1):
            equal, count = zero_variance_groups(team.rows(episodes, size), size)
            self._zero_variance = len(equal) / count if attempt == 0 else self._zero_variance
            groups = whole_groups(equal, team.roles)
            if not groups or attempt == retries:
                return
            prompts = fresh_prompts(self._trainer.train_dataset, len(groups), (*self._seed, attempt), started)
            new = {group: self._make_spec(prompt) for group, prompt in zip(groups, prompts, strict=True)}
            started |= {episode_start(spec) for spec in new.values()}
            first = rank * len(episodes)
            replaced = [index for index in range(len(episodes)) if (first + index) // size in new]
            played = await session.play([new[(first + index) // size] for index in replaced])
            for index, episode in zip(replaced, played, strict=True):
                specs[index], episodes[index] = new[(first + index) // size], episode
            self._resampled += len(groups)
