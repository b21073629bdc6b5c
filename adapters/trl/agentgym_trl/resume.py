"""What a checkpoint needs beyond TRL's, so that a resumed run goes on as if it had never stopped.

TRL keeps a rollout for several optimizer steps in memory, draws a new task order for every epoch from one generator,
and knows nothing of a critic. A checkpoint in the middle of either would go on with other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import torch
from transformers import TrainerCallback
from trl.trainer.utils import RepeatSampler

from agentgym_envs.errors import UsageError

_CRITIC = "critic.pt"
_SAME = (
    "advantage_estimator",
    "world_size",
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "num_iterations",
)
"""What makes the order of data and the batches that are kept; a run goes on with the same only."""


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


class _LossSoFar(TrainerCallback):  # type: ignore[misc]
    """Puts back the loss since the last line of the log, and where that line was: training begins with 0.

    Not the sum of all losses: the mean that stands in the summary is that of the steps after the resume, as in
    transformers itself.
    """

    def __init__(self, trainer: Any, loss: tuple[float, int]) -> None:
        self._trainer = trainer
        self._loss: tuple[float, int] | None = loss

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Once: a second training of the same trainer is another run."""
        trainer = self._trainer
        if self._loss is not None:
            since, trainer._globalstep_last_logged = self._loss
            trainer._tr_loss += since
        self._loss = None


def save_state(trainer: Any, checkpoint: Path) -> None:
    """Write what this process must know to go on, and the critic once; every process must call it.

    With `save_only_model` a checkpoint is none to go on from, so nothing is written.
    """
    if trainer.args.save_only_model:
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    window = trainer.args.steps_per_generation * trainer.num_iterations
    state = {
        "settings": {name: getattr(trainer.args, name) for name in _SAME},
        "micro_steps": trainer._step,
        # Between two rollouts there is nothing to keep.
        "rollout": trainer._buffered_inputs if trainer._step % window else None,
        # What was measured since the last line of the log.
        "metrics": dict(trainer._metrics["train"]),
        "loss": (float(trainer._tr_loss), trainer._globalstep_last_logged),
        # A reference model that follows the policy is a state; one that stays is loaded anew.
        "reference": trainer.ref_model.state_dict() if trainer.args.sync_ref_model else None,
    }
    torch.save(state, _file(trainer, checkpoint))
    if trainer.learner and trainer.args.should_save:
        trainer.learner.save(checkpoint / _CRITIC)
    # The checkpoint counts as whole once the main process has written its last file, so all of ours come before.
    trainer.accelerator.wait_for_everyone()


def load_state(trainer: Any, checkpoint: Path) -> None:
    """Go on from what `save_state` wrote.

    Raises:
        UsageError: the checkpoint is of another algorithm, of another number of processes, or of other batches.
    """
    path = _file(trainer, checkpoint)
    if not path.is_file():
        raise UsageError(
            f"{checkpoint} holds no {path.name}: it was made by another trainer, by fewer processes or with "
            "--save_only_model; go on as it was made, or begin a new run from its model"
        )
    state = torch.load(path, map_location=trainer.accelerator.device, weights_only=True)
    for name, before in state["settings"].items():
        if (now := getattr(trainer.args, name)) != before:
            raise UsageError(
                f"{checkpoint} was made with {name} {before}, not {now}; go on with that, or begin a new run from its "
                "model"
            )
    trainer._step, trainer._buffered_inputs = state["micro_steps"], state["rollout"]
    trainer._metrics["train"].update(state["metrics"])
    trainer.add_callback(_LossSoFar(trainer, state["loss"]))
    if state["reference"]:
        trainer.ref_model.load_state_dict(state["reference"])
    if trainer.learner:
        trainer.learner.load(checkpoint / _CRITIC)


def _file(trainer: Any, checkpoint: Path) -> Path:
    return checkpoint / f"agentgym-rank{trainer.accelerator.process_index}.pt"
