"""Groups of episodes in flight, the logs from which they are replayed, and the choice of a batch."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from agentgym_envs.rollout import EpisodeSpec, Generation, TokenTrajectory
from agentgym_trl.task_sampler import Outcome, outcomes


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """An answer with the checksum of its context, and the virtual time at which it was delivered."""

    generation: Generation
    context: int
    at: float | None

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        return cls(Generation(**state["generation"]), state["context"], state["at"])


@dataclass(slots=True)
class EpisodeLog:
    """The answers and times from which an episode is played again up to the point that it had reached.

    `key` identifies the episode's random numbers: a number of the rollout in which it began, and its own number there.
    `began` is the time at which it began, None before.
    """

    key: tuple[int, int]
    attempt: int = 0
    began: float | None = None
    answers: list[LoggedAnswer] = field(default_factory=list)

    def known(self, turn: int, context: int) -> LoggedAnswer | None:
        """The answer of a turn from 0, if it was logged for this context. A different one ends the log."""
        if turn < len(self.answers) and self.answers[turn].context != context:
            del self.answers[turn:]
        return self.answers[turn] if turn < len(self.answers) else None

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore what `dataclasses.asdict` returned."""
        answers = [LoggedAnswer.from_state(answer) for answer in state["answers"]]
        return cls(tuple(state["key"]), state["attempt"], state["began"], answers)


@dataclass(eq=False, slots=True)
class EpisodeGroup:
    """Episodes of one task. `version` and `step` are those of the trainer when the group was admitted.

    `completed` orders complete groups: the time at which the last episode ended, then the number.
    """

    number: int
    spec: EpisodeSpec
    version: int
    step: int
    logs: list[EpisodeLog]
    episodes: dict[int, TokenTrajectory] = field(default_factory=dict)
    completed: tuple[float, int] | None = None

    def finish(self, member: int, episode: TokenTrajectory, now: float) -> None:
        """Add an episode that has ended."""
        self.episodes[member] = episode
        if len(self.episodes) == len(self.logs):
            self.completed = now, self.number

    def state(self) -> dict[str, Any]:
        """The group for a checkpoint: what was sampled, but no episodes, which are replayed."""
        logs = [asdict(log) for log in self.logs]
        return {"number": self.number, "version": self.version, "step": self.step, "logs": logs}


def group_outcomes(groups: Sequence[EpisodeGroup]) -> list[Outcome]:
    """The outcomes of the usable episodes of complete groups."""
    return [found for group in groups for found in outcomes([group.spec] * len(group.logs), [*group.episodes.values()])]


def checksum(ids: Sequence[int]) -> int:
    """A checksum of token ids."""
    return zlib.crc32(np.asarray(ids, np.int64).tobytes())


def choose(
    live: Sequence[EpisodeGroup], rollout: int, size: int, staleness: int, *, wait: bool
) -> list[EpisodeGroup] | None:
    """The groups of a batch: the first complete ones that leave time for all others. None if none can be chosen yet.

    A group may be used up to the rollout `version + staleness`. At most `size` groups can be used in each rollout, so
    as many must be in this batch as the rollouts up to a deadline cannot take. With `wait`, the batch waits for these;
    otherwise it takes those that are complete.
    """
    complete = sorted((group for group in live if group.completed is not None), key=_when)
    chosen: list[EpisodeGroup] = []
    for deadline in range(rollout, rollout + staleness + 1):
        due = [group for group in live if group.version + staleness <= deadline]
        needed = len(due) - (deadline - rollout) * size - len(chosen)
        ready = [group for group in complete if group in due and group not in chosen]
        if wait and needed > len(ready):
            return None
        chosen += ready[: max(needed, 0)]
    chosen += [group for group in complete if group not in chosen]
    return chosen[:size] if len(chosen) >= size else None


def _when(group: EpisodeGroup) -> tuple[float, int]:
    assert group.completed is not None
    return group.completed
