"""What a checkpoint needs beyond TRL's, so that a resumed run goes on as if it had never stopped.

TRL keeps a rollout for several optimizer steps in memory, draws a new task order for every epoch from one generator,
and knows nothing of a critic. A checkpoint in the middle of either would go on with other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import torch
from trl.trainer.utils import RepeatSampler

from agentgym_envs.errors import UsageError

_CRITIC = "critic.pt"


class EpochSampler(RepeatSampler):  # type: ignore[misc]
    """TRL's sampler, with an order that depends on seed and epoch alone."""

    _epoch: Callable[[], int]

    @classmethod
    def of(cls, sampler: RepeatSampler, epoch: Callable[[], int]) -> Self:
        """The same sampler; `epoch` says which one begins."""
        ours = cls(
            sampler.data_source,
            sampler.mini_repeat_count,
            sampler.batch_size,
            sampler.repeat_count,
            sampler.shuffle,
            sampler.seed,
        )
        ours._epoch = epoch
        return ours

    def __iter__(self) -> Iterator[int]:
        """The places of an epoch."""
        if self.shuffle:
            self.generator.manual_seed(self.seed + self._epoch())
        yield from super().__iter__()


def save_state(trainer: Any, checkpoint: Path) -> None:
    """Write what this process must know to go on, and the critic once; every process must call it."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    window = trainer.args.steps_per_generation * trainer.num_iterations
    state = {
        "estimator": trainer.args.advantage_estimator,
        "micro_steps": trainer._step,
        # Between two rollouts there is nothing to keep.
        "rollout": trainer._buffered_inputs if trainer._step % window else None,
    }
    torch.save(state, _file(trainer, checkpoint))
    if trainer.learner and trainer.args.should_save:
        trainer.learner.save(checkpoint / _CRITIC)


def load_state(trainer: Any, checkpoint: Path) -> None:
    """Go on from what `save_state` wrote.

    Raises:
        UsageError: the checkpoint is of another algorithm, or of a run with fewer processes.
    """
    path = _file(trainer, checkpoint)
    if not path.is_file():
        raise UsageError(
            f"{checkpoint} holds no {path.name}: it was made by another trainer or fewer processes; go on with those, "
            "or begin a new run from its model"
        )
    state = torch.load(path, map_location=trainer.accelerator.device, weights_only=True)
    if state["estimator"] != trainer.args.advantage_estimator:
        raise UsageError(
            f"{checkpoint} was made by the estimator {state['estimator']}, not {trainer.args.advantage_estimator}; "
            "go on with that, or begin a new run from its model"
        )
    trainer._step, trainer._buffered_inputs = state["micro_steps"], state["rollout"]
    if trainer.learner:
        trainer.learner.load(checkpoint / _CRITIC)


def _file(trainer: Any, checkpoint: Path) -> Path:
    return checkpoint / f"agentgym-rank{trainer.accelerator.process_index}.pt"
