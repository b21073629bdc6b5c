"""`TaskStream`: the tasks of a run in the order in which TRL would pass them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trl.trainer.utils import RepeatSampler

from agentgym_trl.resume import EpochSampler
from agentgym_trl.task_sampler import TaskSampler
from agentgym_trl.trl_format import spec_of


class TaskStream:
    """The prompts of the groups of a run, by their number from 0, over all epochs.

    The order is that of TRL's sampler, which drops what does not fill a batch at the end of an epoch.
    """

    def __init__(self, sampler: RepeatSampler, prompt: Callable[[int], Any], tasks: TaskSampler | None = None) -> None:
        """`sampler` is TRL's, and `prompt` returns the prompt of a row. `tasks` replaces the prompts."""
        self._prompt, self._tasks, self._epoch = prompt, tasks, -1
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
        prompt = self._prompt(self._order[index])
        return prompt if self._tasks is None else self._tasks.draw(spec_of(prompt, {}).env, number)
