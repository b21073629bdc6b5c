"""The program of test_processes.py, for one or several processes: `processes.py OUT MODEL TASK...`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor

from agentgym_envs.core import Transition
from agentgym_envs.errors import EnvError
from agentgym_trl import engines
from agentgym_trl.tiny import make_tokenizer
from tests.adapters.trl.small import ScoredCraft, Spy, corpus, dataset, make_trainer

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
CASES: dict[str, dict[str, Any]] = {
    # 2 rows per process and groups of 4: every group spans both processes.
    "grpo": {"num_generations": 4, "rows": 4},
    "reinforce++": {"num_generations": 2, "rows": 4, "gradient_accumulation_steps": 2},
    "ppo": {"num_generations": 8, "rows": 4, "gradient_accumulation_steps": 2, "num_iterations": 2},
}
"""Settings of runs; `rows` is the batch of all processes."""
STEPS = 2


class MemberCraft(ScoredCraft):
    """Reports the row of the batch that it plays; some rows end early, the others reach their max turns."""

    def __init__(self, row: int) -> None:
        super().__init__()
        self._row = row

    def _begin(self, task: Any, rng: Any) -> str:
        return f"{self._row}: {super()._begin(task, rng)}"

    def _act(self, command: str) -> Transition:
        step = super()._act(command)
        return Transition(step.observation, step.reward, terminated=self._row % 3 == 0)


class HashTrainer(Spy):
    """Answers by a pure function of the prompt, so that the process of an episode does not matter."""

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        return [self._answer(tuple(ids)) for ids in prompt_ids], None

    def _answer(self, prompt: tuple[int, ...]) -> list[int]:
        random = Random(str(prompt))
        limit = self.generation_config.max_new_tokens
        words = [random.randrange(10, 200) for _ in range(random.randrange(1, limit + 1))]
        return words if len(words) == limit else [*words, self.processing_class.eos_token_id]


def compare(out: Path, model: Path) -> None:
    """Train each case with its own model; write this process's state to `CASE.RANK.pt`."""
    for name, case in CASES.items():
        trainer = _member_trainer(out / f"{name}-{WORLD}", name, **case)
        trainer.train()
        torch.save(_left(trainer), out / f"{name}.{RANK}.pt")


def _member_trainer(out: Path, estimator: str, rows: int, **more: Any) -> Any:
    own = rows // WORLD * more.get("gradient_accumulation_steps", 1)
    numbers = count()
    return make_trainer(
        out,
        make_tokenizer(corpus()),
        lambda: MemberCraft(RANK * own + next(numbers) % own),
        trainer=HashTrainer,
        per_device_train_batch_size=rows // WORLD,
        algorithm=estimator,
        max_steps=STEPS * more.get("num_iterations", 1),
        optim="sgd",
        learning_rate=1.0,
        critic_learning_rate=1e-3,
        **more,
    )


def _left(trainer: Any) -> dict[str, Any]:
    learner = trainer.learner
    return {
        "outputs": trainer.outputs,
        "log": trainer.state.log_history,
        "policy": trainer.model.state_dict(),
        "critic": learner.critic.state_dict() if learner else {},
    }


class CollectiveTrainer(Spy):
    """Generation that hangs unless all processes call it equally often; counts unused and other calls."""

    idle = calls = 0

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if dist.is_initialized():
            dist.barrier()
        nothing = list(prompt_ids) == [[self.processing_class.eos_token_id]]
        self.idle, self.calls = self.idle + nothing, self.calls + (not nothing)
        return super()._generate_single_turn(prompt_ids, *args, **kwargs)


class UnevenCraft(ScoredCraft):
    """Rank 0 plays one turn, the others up to the limit; the first group scores 0, retries included."""

    def __init__(self, numbers: Iterator[int], broken: tuple[int, ...] = ()) -> None:
        """`numbers` counts the episodes of all environments; those in `broken` fail on rank 1."""
        super().__init__()
        self._numbers, self._those = numbers, broken

    def _begin(self, task: Any, rng: Any) -> str:
        number = next(self._numbers)
        self._scoreless, self._broken = number < (2 if RANK == 0 else 4), RANK == 1 and number in self._those
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        if self._broken and self._turn == 1:
            raise EnvError("the crafting table burns")
        step = super()._act(command)
        return Transition(step.observation, 0.0 if self._scoreless else step.reward, terminated=RANK == 0)


def together(out: Path, model: Path) -> None:
    """One step with collective generation: turns, failures and retries differ between processes."""
    engines.generates_together = lambda trainer: True  # type: ignore[attr-defined]
    trainer = make_trainer(
        out / "together",
        make_tokenizer(corpus()),
        partial(UnevenCraft, count(), broken=(1, 2, 4)),
        trainer=CollectiveTrainer,
        max_steps=1,
        num_generations=4,
        per_device_train_batch_size=2,
        max_turns="6",
        dynamic_sampling_retries=1,
    )
    trainer.train()
    torch.save(_counted(trainer), out / f"together.{RANK}.pt")


def shard_on_cpus() -> None:
    """Take CPUs for GPUs: accelerate has no FSDP on CPUs, but torch has."""
    begin = PartialState.__init__

    def as_if_on_gpus(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = as_if_on_gpus


def evaluated(out: Path, model: Path) -> None:
    """Five held-out tasks in two processes under FSDP2, with different turns per process; the best model is saved."""
    shard_on_cpus()
    trainer = make_trainer(
        out / "evaluated",
        make_tokenizer(corpus()),
        partial(UnevenCraft, count()),
        trainer=CollectiveTrainer,
        model=str(model),
        extra={"eval_dataset": dataset(5)},
        max_steps=1,
        num_generations=4,
        per_device_train_batch_size=2,
        max_turns="4",
        eval_every=1,
        keep_best=True,
    )
    trainer.train()
    torch.save(_counted(trainer), out / f"evaluated.{RANK}.pt")


def sharded(out: Path, model: Path) -> None:
    """PPO under FSDP2 with different turns per process."""
    shard_on_cpus()
    trainer = _sharded_trainer(out / "sharded", model, 2)
    critic = {name: weight.clone() for name, weight in trainer.learner.critic.named_parameters()}
    trainer.train()
    shards = [(name, weight) for name, weight in trainer.model.named_parameters() if isinstance(weight, DTensor)]
    found = {**_counted(trainer), "critic": critic, "shards": {name: tuple(w.to_local().shape) for name, w in shards}}
    resumed = _sharded_trainer(out / "sharded", model, 3)
    resumed.train(resume_from_checkpoint=str(out / "sharded" / "checkpoint-2"))
    torch.save({**found, "resumed": resumed.state.log_history}, out / f"sharded.{RANK}.pt")


def _sharded_trainer(out: Path, model: Path, steps: int) -> Any:
    return make_trainer(
        out,
        make_tokenizer(corpus()),
        partial(UnevenCraft, count()),
        trainer=CollectiveTrainer,
        model=str(model),
        algorithm="ppo",
        max_steps=steps,
        num_generations=4,
        per_device_train_batch_size=2,
        max_turns="4",
        save_strategy="steps",
        save_steps=2,
    )


def _counted(trainer: Any) -> dict[str, Any]:
    return {"calls": trainer.calls, "idle": trainer.idle, "log": trainer.state.log_history}


TASKS: dict[str, Callable[[Path, Path], None]] = {
    "compare": compare,
    "together": together,
    "sharded": sharded,
    "evaluated": evaluated,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for task in sys.argv[3:]:
        TASKS[task](Path(sys.argv[1]), Path(sys.argv[2]))
    dist.destroy_process_group()
