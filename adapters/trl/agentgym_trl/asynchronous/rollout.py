"""`AsyncRollout`: a rollout that takes its batch from episodes that also run while the trainer learns."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import EpisodeSpec
from agentgym_trl.asynchronous.correction import as_configured
from agentgym_trl.asynchronous.groups import EpisodeGroup, group_outcomes
from agentgym_trl.asynchronous.metrics import group_metrics
from agentgym_trl.asynchronous.session import Session
from agentgym_trl.asynchronous.settings import AsyncSettings
from agentgym_trl.rollout import Rollout


class AsyncRollout(Rollout):
    """Hands over complete groups from a scheduler, whose episodes continue between the calls.

    The prompts of TRL only say how many rows are needed: the scheduler is ahead of TRL in the same order of tasks.
    Evaluation is synchronous.
    """

    def __init__(self, *args: Any, settings: AsyncSettings) -> None:
        """`settings` may be changed until the first rollout; the other arguments are those of `Rollout`."""
        super().__init__(*args)
        if self.team.agents:
            raise UsageError("--async plays environments with a single agent; leave it out to train a team")
        self.settings = settings
        self._session: Session | None = None
        self._state: dict[str, Any] | None = None

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Return the rows of the next complete groups, one per prompt."""
        if not trainer.model.training:
            return super().__call__(prompts, trainer)
        began = time.perf_counter()
        step = int(trainer.state.global_step)
        with as_configured(trainer):
            session = self._session or self._open(trainer, len(prompts))
            groups = session.collect(step)
        seconds = time.perf_counter() - began
        rows = self._rows(groups, step, trainer)
        self.metrics |= group_metrics(groups, session.scheduler, seconds)
        if self.sampler is not None:
            self.sampler.record(group_outcomes(groups), [group.number for group in groups])
            self.metrics |= self.sampler.metrics()
        with as_configured(trainer):
            session.train()
        return rows

    @property
    def max_staleness(self) -> int:  # type: ignore[override]
        """The bound of the settings."""
        return self.settings.max_staleness

    def training_spec(self, prompt: Any, step: int) -> EpisodeSpec:
        """The specification of an episode that begins at a training step."""
        return self._spec(prompt, step, training=True)

    def state(self) -> dict[str, Any] | None:
        """The state for a checkpoint; None before the first rollout."""
        return self._state if self._session is None else self._session.state()

    def load(self, state: dict[str, Any] | None) -> None:
        """Continue from a state in the next rollout."""
        self.close()
        self._state = state

    def close(self) -> None:
        """End all episodes and the engine. The next rollout continues where they were."""
        if self._session is not None:
            self._state = self._session.state()
            self._session.close()
        self._session = None

    def _open(self, trainer: Any, rows: int) -> Session:
        self._session = Session(self, trainer, rows // int(trainer.num_generations), self._state)
        weakref.finalize(self, self._session.close)
        return self._session

    def _rows(self, groups: Sequence[EpisodeGroup], step: int, trainer: Any) -> dict[str, Any]:
        specs = [group.spec for group in groups for _ in group.logs]
        episodes = [group.episodes[member] for group in groups for member in range(len(group.logs))]
        if not any(episode.trajectory.usable for episode in episodes):
            raise EnvError(f"every episode of this step failed, the first with: {episodes[0].trajectory.error}")
        with self._recorder(step, True, int(trainer.accelerator.process_index)) as on_done:
            for episode in episodes if on_done is not None else ():
                on_done(episode)  # type: ignore[misc]
        return self.rows(specs, episodes, len(groups[0].logs), trainer)
