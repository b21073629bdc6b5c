"""Small models, tasks and trainers, and environments whose scores differ between episodes."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import Transition, text_env
from agentgym_envs.errors import EnvError
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.algorithms import online_algorithms
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demonstrations import oracle_demonstrations
from agentgym_trl.engines import TrainerEngine
from agentgym_trl.tiny import make_model, make_tokenizer
from agentgym_trl.trainer import AgentConfig, AgentTrainer
from tests.graded import KWARGS, GradedCraft

ENV = "AgentGym/TextCraft-v0"
DEPTH = ["depth-1"]
REWARDED = tuple(name for name, row in online_algorithms().items() if not row.imitates)
"""The online algorithms that learn from rewards."""
FORGETFUL = (  # a chat template that drops earlier answers in later turns
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role != 'assistant' or loop.revindex <= 2 %}{{ m.content }}"
    "{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def craft() -> gym.Env[str, str]:
    return gym.make(ENV, **KWARGS)


class ScoredCraft(GradedCraft):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**KWARGS, **kwargs})


class BrokenCraft(ScoredCraft):
    """Fails at turn `turn` (from 0) of the episodes for which `broken` is true, counted over all environments."""

    def __init__(self, broken: Callable[[int], bool], counter: Any, turn: int) -> None:
        super().__init__()
        self._broken, self._counter, self._at = broken, counter, turn
        self._number = -1

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._number = next(self._counter)
        if self._at == 0 and self._broken(self._number):
            raise EnvError("the crafting table burns")
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        if self._turn >= self._at and self._broken(self._number):
            raise EnvError("the crafting table burns")
        return super()._act(command)


def broken_craft(broken: Callable[[int], bool], turn: int = 1) -> Callable[[], gym.Env[str, str]]:
    counter = itertools.count()
    return lambda: BrokenCraft(broken, counter, turn)


@cache
def demonstrations() -> tuple[Trajectory, ...]:
    return tuple(oracle_demonstrations(craft, 12, groups=DEPTH))


def corpus() -> list[str]:
    return [m["content"] for trajectory in demonstrations() for m in trajectory.messages()]


def make_small_model(tokenizer: Any, seed: int = 0) -> Any:
    return make_model(tokenizer, seed=seed, hidden_size=64, layers=2)


def save_model(path: Path) -> Path:
    tokenizer = make_tokenizer(corpus())
    make_small_model(tokenizer).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def settings(out: Path, **more: Any) -> dict[str, Any]:
    """The arguments of a config for a run of a second or two on the CPU."""
    return {
        "output_dir": str(out),
        "max_steps": 2,
        "max_completion_length": 200,
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-3,
        "bf16": False,
        "gradient_checkpointing": False,
        "use_cpu": True,
        "save_strategy": "no",
        "logging_steps": 1,
        "report_to": [],
        "disable_tqdm": True,
        **more,
    }


def config(out: Path, **more: Any) -> AgentConfig:
    return AgentConfig(**settings(out, **{"max_turns": "2", "max_turn_tokens": 10, **more}))


def dataset(count: int = 16) -> Any:
    return make_dataset(text_env(craft()), count, groups=DEPTH)


@contextmanager
def recorded(generated: list[tuple[tuple[int, ...], list[int]]]) -> Iterator[None]:
    """Append the answers of all trainers' own engines, (prompt, answer)."""
    whole = TrainerEngine.generate_batch

    def recording(self: TrainerEngine, prompts: Any, samplings: Any) -> Any:
        answers = whole(self, prompts, samplings)
        generated.extend((tuple(p), list(a.ids)) for p, a in zip(prompts, answers, strict=True))
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainerEngine, "generate_batch", recording)
        yield


class Spy(AgentTrainer):
    """Keeps the generated answers (prompt, answer) and every generation batch as TRL gets it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.generated: list[tuple[tuple[int, ...], list[int]]] = []
        self.outputs: list[dict[str, Any]] = []

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        with recorded(self.generated):
            output = super()._generate_and_score_completions(inputs)
        self.outputs.append({k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in output.items()})
        return output


def make_trainer(
    out: Path,
    tokenizer: Any,
    env: Any = ScoredCraft,
    *,
    data: Any = None,
    model: Any = None,
    trainer: type[AgentTrainer] = Spy,
    extra: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    return trainer(
        model or make_small_model(tokenizer),
        env,
        args=config(out, **more),
        processing_class=tokenizer,
        train_dataset=dataset() if data is None else data,
        **(extra or {}),
    )


def first_batch(trainer: Any) -> dict[str, Any]:
    """A real rollout, scored: the batch that TRL splits into micro-batches, ready for `_compute_loss`."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    rows = next(iter(trainer.get_train_dataloader()))
    batch: dict[str, Any] = trainer._generate_and_score_completions(rows)
    return batch


def played(out: Path, step: int) -> list[Trajectory]:
    return list(read_trajectories(out / "trajectories" / f"step-{step}.jsonl"))


def limits_by_step(out: Path) -> dict[int, Counter[int]]:
    """The number of episodes of each step by their max turns."""
    steps = sorted(
        int(path.stem[5:]) for path in (out / "trajectories").glob("step-*.jsonl") if path.stem[5:].isdigit()
    )
    return {step: Counter(trajectory.meta["max_turns"] for trajectory in played(out, step)) for step in steps}


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
