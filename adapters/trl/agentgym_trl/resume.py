"""The state that a checkpoint of ours adds to TRL's, so that a resumed run equals one that never stopped.

TRL keeps a rollout in memory for several optimizer steps, draws the task order of every epoch from one generator, and
has no critic. Without this state, a run resumed in the middle of a rollout or an epoch would train on other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import torch
from transformers import TrainerCallback
from trl.trainer.utils import RepeatSampler

from agentgym_envs.errors import UsageError
from agentgym_trl.adapter_reset import load_base, save_base

_CRITIC = "critic.pt"
_SAME = (
    "algorithm",
    "world_size",
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "num_iterations",
    "asynchronous",
    "max_staleness",
    "sampler",
)
"""The settings that decide the order of the data and the saved batches: a resumed run must have the same values."""


class EpochSampler(RepeatSampler):  # type: ignore[misc]
    """TRL's sampler, with an order that depends on the seed and the epoch only."""

    _epoch: Callable[[], int]

    @classmethod
    def of(cls, sampler: RepeatSampler, epoch: Callable[[], int]) -> Self:
        """Copy a sampler of TRL's; `epoch` returns the number of the epoch that begins."""
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
        """Yield the indices of an epoch."""
        if self.shuffle:
            self.generator.manual_seed(self.seed + self._epoch())
        yield from super().__iter__()


class _LossSoFar(TrainerCallback):  # type: ignore[misc]
    """Restores the loss since the last line of the log, and the step of that line.

    Training begins with 0. The sum of all losses is not restored: as in transformers, the mean loss in the summary is
    that of the steps after the resume.
    """

    def __init__(self, trainer: Any, loss: tuple[float, int]) -> None:
        self._trainer = trainer
        self._loss: tuple[float, int] | None = loss

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Restore once: a second `train()` of the same trainer is another run."""
        trainer = self._trainer
        if self._loss is not None:
            since, trainer._globalstep_last_logged = self._loss
            trainer._tr_loss += since
        self._loss = None


def save_state(trainer: Any, checkpoint: Path) -> None:
    """Write the state of this process, and the critic once; every process must call it.

    Writes only the weights under an adapter with `save_only_model`, whose checkpoints cannot be resumed.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    if trainer.args.reset_adapter_every is not None and trainer.args.should_save:
        save_base(trainer.accelerator.unwrap_model(trainer.model), checkpoint)
    if trainer.args.save_only_model:
        return
    window = trainer.args.steps_per_generation * trainer.num_iterations
    state = {
        "settings": {name: getattr(trainer.args, name) for name in _SAME},
        "micro_steps": trainer._step,
        # Between two rollouts there are no buffered batches.
        "rollout": trainer._buffered_inputs if trainer._step % window else None,
        # The metrics since the last line of the log.
        "metrics": dict(trainer._metrics["train"]),
        "loss": (float(trainer._tr_loss), trainer._globalstep_last_logged),
        "episodes": trainer.rollout.state(),
        "sampler": trainer.rollout.sampler and trainer.rollout.sampler.state(),
        # A reference model that follows the policy has a state; a fixed one is loaded again by TRL.
        "reference": trainer.ref_model.state_dict() if trainer.args.sync_ref_model else None,
    }
    torch.save(state, _file(trainer, checkpoint))
    if trainer.learner and trainer.args.should_save:
        trainer.learner.save(checkpoint / _CRITIC)
    # The checkpoint is complete once the main process has written its last file, so all of ours come before it.
    trainer.accelerator.wait_for_everyone()


def load_state(trainer: Any, checkpoint: Path) -> None:
    """Restore the state that `save_state` wrote.

    Raises:
        UsageError: the checkpoint is of another algorithm, another number of processes, or other batch sizes.
    """
    path = _file(trainer, checkpoint)
    if not path.is_file():
        raise UsageError(
            f"{checkpoint} has no {path.name}: it was made by another trainer, by fewer processes or with "
            "--save_only_model; resume with the same settings, or start a new run from its model"
        )
    state = torch.load(path, map_location=trainer.accelerator.device, weights_only=True)
    for name in _SAME:
        if name not in state["settings"]:
            raise UsageError(
                f"{checkpoint} cannot be resumed: another version of agentgym-envs made it and recorded no {name}; "
                "resume with that version, or start a new run from its model"
            )
        before, now = state["settings"][name], getattr(trainer.args, name)
        if now != before:
            raise UsageError(
                f"{checkpoint} was made with {name} {before}, not {now}; resume with that, or start a new run from "
                "its model"
            )
    trainer._step, trainer._buffered_inputs = state["micro_steps"], state["rollout"]
    trainer._metrics["train"].update(state["metrics"])
    trainer.add_callback(_LossSoFar(trainer, state["loss"]))
    resets = trainer.args.reset_adapter_every is not None
    load_base(trainer.accelerator.unwrap_model(trainer.model), checkpoint, resets=resets)
    trainer.rollout.load(state["episodes"])
    if trainer.rollout.sampler is not None:
        trainer.rollout.sampler.load(state["sampler"])
    if state["reference"]:
        trainer.ref_model.load_state_dict(state["reference"])
    if trainer.learner:
        trainer.learner.load(checkpoint / _CRITIC)


def _file(trainer: Any, checkpoint: Path) -> Path:
    return checkpoint / f"agentgym-rank{trainer.accelerator.process_index}.pt"
