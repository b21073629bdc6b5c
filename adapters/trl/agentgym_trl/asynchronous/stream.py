"""`TaskStream`: the tasks of a run in the order in which TRL would pass them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trl.trainer.utils import RepeatSampler

from agentgym_trl.resume import EpochSampler


class TaskStream:
    """The prompts of the groups of a run, by their number from 0, over all epochs.

    The order is that of TRL's sampler, which drops what does not fill a batch at the end of an epoch.
    """

    def __init__(self, sampler: RepeatSampler, prompt: Callable[[int], Any]) -> None:
        """`sampler` is TRL's, and `prompt` returns the prompt of a row."""
        self._prompt, self._epoch = prompt, -1
        self._order: Sequence[int] = []
        single = RepeatSampler(
            sampler.data_source, 1, sampler.batch_size, 1, shuffle=sampler.shuffle, seed=sampler.seed
        )
        self._sampler = EpochSampler.of(single, lambda: self._epoch)
        self.per_epoch = len(sampler.data_source) // sampler.batch_size * sampler.batch_size

    def __getitem__(self, number: int) -> Any:
        """The prompt of a group."""
        epoch, index = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = list(self._sampler)
        return self._prompt(self._order[index])
