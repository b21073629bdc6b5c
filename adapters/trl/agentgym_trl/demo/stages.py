"""The stages of the quick start, on the public trainer, rollouts and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from rich.console import Console
from rich.progress import track
from transformers import set_seed
from trl import SFTConfig

from agentgym_envs.core import text_env
from agentgym_envs.evaluate import Metrics, evaluate
from agentgym_envs.rollout import EpisodeSpec, Limits, Sampling, play_many, run_sync
from agentgym_envs.rollout.mixture import prompt_chars
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from agentgym_trl.callbacks import read_metrics, run_training
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demo.settings import DemoSettings
from agentgym_trl.demonstrations import environment_corpus, oracle_demonstrations
from agentgym_trl.models import load_engine, load_model, load_tokenizer, make_codec
from agentgym_trl.sft import make_sft_trainer
from agentgym_trl.tiny import save_tiny_model
from agentgym_trl.trainer import AgentConfig, AgentTrainer

ON_CPU: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": []}
_SAMPLED, _GREEDY = 1.0, 0.0  # temperatures
_EVAL_SEED = 7000


@dataclass(frozen=True, slots=True)
class Measurement:
    """The episodes of one evaluation: a set of tasks and a way of sampling, described by `name`."""

    name: str
    trajectories: list[Trajectory]

    @property
    def metrics(self) -> Metrics:
        """Success and the rest, with intervals over tasks."""
        return evaluate(self.trajectories).overall


def make_tiny_model(out: Path, settings: DemoSettings) -> Path:
    """Make the untrained model; its tokenizer has tokens for the common words of the game and spells all others."""
    path = out / "tiny"
    save_tiny_model(path, environment_corpus(_maker(settings)), seed=settings.seed)
    return path


def make_demonstrations(out: Path, settings: DemoSettings) -> list[Trajectory]:
    """Make a fixed set of oracle episodes, each in its own training world, and write them to `demos.jsonl`."""
    make_env = _maker(settings)
    demonstrations = oracle_demonstrations(
        make_env, settings.demonstrations, groups=settings.groups, seed=settings.seed
    )
    with TrajectoryWriter(out / "demos.jsonl") as writer:
        for trajectory in demonstrations:
            writer.write(trajectory)
    return demonstrations


def warm_start(
    model: Path,
    out: Path,
    demonstrations: Sequence[Trajectory],
    settings: DemoSettings,
    console: Console,
    title: str = "warm start",
) -> Path:
    """Train on the demonstrations, until the model solves some worlds."""
    set_seed(settings.seed)
    codec = make_codec(load_tokenizer(str(model)))
    args = sft_config(out, settings)
    trainer = make_sft_trainer(load_model(str(model)), demonstrations, codec, args)
    run_training(trainer, title, console=console)
    return out


def reinforce(
    model: Path,
    out: Path,
    settings: DemoSettings,
    console: Console,
    title: str = "GRPO",
    tasks: Any = None,
    **options: Any,
) -> Path:
    """Train by reinforcement learning on new training worlds, with a turn-limit curriculum.

    `tasks` replaces the rows of `training_tasks`. `options` are further fields of `AgentConfig`; the default is GRPO.
    """
    set_seed(settings.seed)
    tokenizer = load_tokenizer(str(model))
    trainer = AgentTrainer(
        load_model(str(model)),
        _maker(settings),
        args=_online_config(out, settings, **options),
        processing_class=tokenizer,
        train_dataset=training_tasks(settings) if tasks is None else tasks,
    )
    run_training(trainer, title, console=console)
    return out


def training_tasks(settings: DemoSettings) -> Any:
    """One row per group of episodes, each in its own world."""
    return make_dataset(
        text_env(_maker(settings)()),
        settings.steps * settings.tasks_per_step,
        groups=settings.groups,
        seed=settings.seed + 1_000_000,  # not that of the demonstrations: other worlds
        max_prompt_chars=settings.max_prompt_chars,
    )


def training_curve(run: Path) -> list[dict[str, Any]]:
    """The metrics of training, one row per step."""
    return read_metrics(run / "metrics.jsonl")


def measure(
    model: Path, settings: DemoSettings, console: Console, split: str = "test", title: str = "evaluate"
) -> list[Measurement]:
    """Play held-out worlds and real held-out goals, sampled and greedy."""
    engine, codec = load_engine(str(model))
    worlds = _tasks(settings, settings.env_kwargs, split, settings.eval_worlds)
    real = _tasks(settings, settings.real_env_kwargs, split, None)
    plans = [
        ("held-out worlds, sampled", settings.env_kwargs, worlds, 1, _SAMPLED),
        ("held-out worlds, greedy", settings.env_kwargs, worlds, 1, _GREEDY),
        ("real held-out goals, sampled", settings.real_env_kwargs, real, settings.real_samples, _SAMPLED),
        ("real held-out goals, greedy", settings.real_env_kwargs, real, 1, _GREEDY),
    ]
    results = []
    for name, kwargs, tasks, samples, temperature in track(plans, title, console=console, transient=True):
        torch.manual_seed(0)
        specs = [EpisodeSpec(task.id, _EVAL_SEED) for task in tasks for _ in range(samples)]
        limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
        sampling = Sampling(settings.eval_turn_tokens, temperature)
        played = play_many(
            specs, _maker(settings, kwargs), engine, codec, limits=limits, sampling=sampling, concurrency=128
        )
        results.append(Measurement(name, [episode.trajectory for episode in run_sync(played)]))
    return results


def _tasks(settings: DemoSettings, env_kwargs: dict[str, Any], split: str, count: int | None) -> list[Task]:
    """Held-out tasks whose prompts are not longer than those of training."""
    env = text_env(_maker(settings, env_kwargs)())
    tasks = env.tasks.sample(None if count is None else 2 * count, split=split, groups=settings.groups, seed=1)
    short = [task for task in tasks if prompt_chars(env, task, _EVAL_SEED) <= settings.max_prompt_chars]
    return short[:count]


def _maker(settings: DemoSettings, env_kwargs: dict[str, Any] | None = None) -> Any:
    return partial(gym.make, settings.env_id, **(settings.env_kwargs if env_kwargs is None else env_kwargs))


def sft_config(out: Path, settings: DemoSettings) -> SFTConfig:
    """The training settings of the warm start."""
    return SFTConfig(
        output_dir=str(out),
        max_steps=settings.warm_steps,
        per_device_train_batch_size=settings.warm_batch,
        learning_rate=settings.warm_learning_rate,
        warmup_steps=20,
        adam_beta2=0.98,
        weight_decay=0.01,
        train_sampling_strategy="group_by_length",  # short rows then need no padding
        max_length=None,
        save_strategy="no",
        logging_steps=5,
        disable_tqdm=True,
        seed=settings.seed,
        **ON_CPU,
    )


def _online_config(out: Path, settings: DemoSettings, **options: Any) -> AgentConfig:
    episodes = settings.tasks_per_step * settings.group_size
    fields: dict[str, Any] = {
        "output_dir": str(out),
        "max_steps": settings.steps,
        "per_device_train_batch_size": settings.micro_batch,
        "gradient_accumulation_steps": episodes // settings.micro_batch,
        "num_generations": settings.group_size,
        "max_turns": settings.max_turns,
        "every": settings.every,
        "learning_rate": settings.learning_rate,
        "warmup_steps": 10,
        "adam_beta2": 0.99,
        "beta": 0.0,
        "loss_type": "dapo",
        "max_completion_length": settings.max_tokens,
        "max_turn_tokens": settings.max_turn_tokens,
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "seed": settings.seed,
        **ON_CPU,
    }
    return AgentConfig(**{**fields, **options})
