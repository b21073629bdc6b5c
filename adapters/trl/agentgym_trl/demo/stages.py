"""The stages of the quick start, on the public trainer, rollouts and metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from rich.console import Console
from transformers import set_seed
from trl import SFTConfig

from agentgym_envs.core import text_env
from agentgym_envs.evaluate import Metrics, evaluate
from agentgym_envs.rollout import (
    EpisodeSpec,
    Limits,
    OraclePolicy,
    Sampling,
    play_many,
    play_text,
    run_sync,
)
from agentgym_envs.rollout.mixture import draw_from
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter
from agentgym_envs.vector import MakeEnv
from agentgym_trl.agentevol import EvolSettings, agentevol
from agentgym_trl.callbacks import ProgressLine, read_metrics, run_training
from agentgym_trl.dataset import make_dataset
from agentgym_trl.demo.live_curve import LiveCurve
from agentgym_trl.demo.settings import DemoSettings, HeldOut
from agentgym_trl.demonstrations import environment_corpus
from agentgym_trl.exploration import PlaySettings, derive_seed
from agentgym_trl.models import load_engine, load_model, load_tokenizer, make_codec
from agentgym_trl.sft import make_sft_trainer
from agentgym_trl.tiny import save_tiny_model
from agentgym_trl.trainer import AgentConfig, AgentTrainer

ON_CPU: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": []}
_TEMPERATURES = {"sampled": 1.0, "greedy": 0.0}
_TRAINING, _VALIDATION, _TEST = 1_000_000, 8_000_000, 9_000_000  # seeds of draws; demonstrations have the seed itself


@dataclass(frozen=True, slots=True)
class Measurement:
    """The episodes of one evaluation: a set of tasks and a way of sampling, described by `name`."""

    name: str
    trajectories: list[Trajectory]

    @property
    def metrics(self) -> Metrics:
        """Success and the rest, with intervals over tasks."""
        return evaluate(self.trajectories).overall


def make_demonstrations(out: Path, settings: DemoSettings) -> list[Trajectory]:
    """Let the careless teacher play training tasks, and write all its episodes to `demos.jsonl`, won or not."""
    limits = Limits(settings.teacher_turns)
    with closing(make_env(settings)()) as env, TrajectoryWriter(out / "demos.jsonl") as writer:
        drawn = draw_from(
            text_env(env),
            settings.demonstrations,
            groups=settings.groups,
            seed=settings.seed,
            max_prompt_chars=settings.max_prompt_chars,
        )
        found = []
        for number, item in enumerate(drawn):
            teacher = OraclePolicy(idle=settings.waste_rate, seed=derive_seed(settings.seed, number))
            found.append(run_sync(play_text(env, teacher, EpisodeSpec(item.task.id, item.seed), limits=limits)))
            writer.write(found[-1])
    return found


def won_in_time(demonstrations: Sequence[Trajectory], settings: DemoSettings) -> list[Trajectory]:
    """The demonstrations that succeed within the agent's turn limit."""
    return [t for t in demonstrations if t.success and len(t.turns) <= settings.eval_turns]


def make_tiny_model(out: Path, settings: DemoSettings, demonstrations: Sequence[Trajectory] = ()) -> Path:
    """Make the untrained model; its tokens are the words of the environment and of the demonstrations."""
    path = out / "tiny"
    texts = [text for t in demonstrations for turn in t.turns for text in (turn.observation, turn.action)]
    save_tiny_model(
        path,
        [*environment_corpus(make_env(settings)), *texts],
        seed=settings.seed,
        closed=settings.closed_vocabulary,
        embedding_std=settings.embedding_std,
        hidden_size=settings.hidden_size,
        layers=settings.layers,
        heads=settings.heads,
    )
    return path


def warm_start(
    model: Path,
    out: Path,
    demonstrations: Sequence[Trajectory],
    settings: DemoSettings,
    console: Console,
    title: str = "warm start",
) -> Path:
    """Imitate the demonstrations, until the model solves some tasks."""
    return imitate(model, out, demonstrations, sft_config(out, settings), console, title)


def imitate(
    model: Path, out: Path, demonstrations: Sequence[Trajectory], args: SFTConfig, console: Console, title: str
) -> Path:
    """Train on demonstrations, all with the same weight."""
    set_seed(args.seed)
    codec = make_codec(load_tokenizer(str(model)))
    trainer = make_sft_trainer(load_model(str(model)), demonstrations, codec, args)
    _train(trainer, title, console)
    return out


def reinforce(
    model: Path,
    out: Path,
    settings: DemoSettings,
    console: Console,
    title: str = "GRPO",
    tasks: Any = None,
    trainer_class: type[AgentTrainer] = AgentTrainer,
    **options: Any,
) -> Path:
    """Train by reinforcement learning on new training tasks.

    `tasks` replaces the rows of `training_tasks`, `trainer_class` the trainer. `options` are further fields of
    `AgentConfig`; the default is GRPO.
    """
    set_seed(settings.seed)
    tokenizer = load_tokenizer(str(model))
    trainer = trainer_class(
        load_model(str(model)),
        make_env(settings),
        args=_online_config(out, settings, **options),
        processing_class=tokenizer,
        train_dataset=training_tasks(settings) if tasks is None else tasks,
    )
    _train(trainer, title, console, LiveCurve(title, console))
    return out


def evolve(model: Path, out: Path, won: Sequence[Trajectory], settings: DemoSettings, console: Console) -> Path:
    """AgentEvol: in each round play, keep the wins, and imitate them and the won demonstrations from `model`."""
    play = PlaySettings(Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens))
    wanted = EvolSettings(
        rounds=settings.evol_rounds,
        tasks=settings.evol_tasks,
        episodes_per_task=settings.evol_episodes_per_task,
        groups=settings.groups,
        play=play,
        seed=settings.seed,
    )
    args = sft_config(out, settings, steps=settings.evol_steps, learning_rate=settings.imitation_learning_rate)
    codec = make_codec(load_tokenizer(str(model)))
    return agentevol(model, won, make_env(settings), codec, args, wanted, console=console)[-1].model


def training_tasks(settings: DemoSettings) -> Any:
    """One row per group of episodes, each in its own world."""
    return make_dataset(
        text_env(make_env(settings)()),
        settings.steps * settings.tasks_per_step,
        groups=settings.groups,
        seed=settings.seed + _TRAINING,  # not that of the demonstrations: other worlds
        max_prompt_chars=settings.max_prompt_chars,
    )


def training_curve(run: Path) -> list[dict[str, Any]]:
    """The metrics of training, one row per step."""
    return read_metrics(run / "metrics.jsonl")


def measure(model: Path, settings: DemoSettings, split: str = "test") -> list[Measurement]:
    """Play every set of held-out tasks, sampled and greedy. Training and evaluation have no draw in common."""
    engine, codec = load_engine(str(model))
    limits = Limits(settings.eval_turns, settings.eval_tokens, settings.eval_turn_tokens)
    found = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for held_out in settings.held_out:
            specs = held_out_specs(settings, held_out, split)
            for way, temperature in _TEMPERATURES.items():
                sampling = Sampling(settings.eval_turn_tokens, temperature)
                options: dict[str, Any] = {"limits": limits, "sampling": sampling, "concurrency": 160}
                played = run_sync(play_many(specs, make_env(settings), engine, codec, **options))
                found.append(Measurement(f"{held_out.name}, {way}", [episode.trajectory for episode in played]))
    return found


def write_measurements(out: Path, measured: Sequence[Measurement]) -> None:
    """Write the episodes of an arm's evaluation, for `agentgym view`."""
    out.mkdir(parents=True, exist_ok=True)
    for measurement in measured:
        with TrajectoryWriter(out / file_name(measurement.name)) as writer:
            for trajectory in measurement.trajectories:
                writer.write(trajectory)


def _train(trainer: Any, title: str, console: Console, progress: ProgressLine | None = None) -> None:
    if not run_training(trainer, title, console=console, progress=progress):
        raise KeyboardInterrupt


def file_name(measurement: str) -> str:
    """The name of the file with the episodes of a measurement."""
    return re.sub("[^a-z]+", "-", measurement) + ".jsonl"


def held_out_specs(settings: DemoSettings, held_out: HeldOut, split: str) -> list[EpisodeSpec]:
    """The episodes of an evaluation, the same for every seed and arm."""
    drawn = draw_from(
        text_env(make_env(settings)()),
        held_out.size,
        split=held_out.split or split,
        groups=settings.groups,
        seed=_TEST if split == "test" else _VALIDATION,
        max_prompt_chars=settings.max_prompt_chars,
    )
    return [EpisodeSpec(item.task.id, item.seed) for item in drawn]


def make_env(settings: DemoSettings) -> MakeEnv:
    """The function that makes the environment."""
    return partial(gym.make, settings.env_id, **settings.env_kwargs)


def sft_config(
    out: Path, settings: DemoSettings, *, steps: int | None = None, learning_rate: float | None = None
) -> SFTConfig:
    """The training settings of imitation; by default those of the warm start."""
    return SFTConfig(
        output_dir=str(out),
        max_steps=steps or settings.warm_steps,
        per_device_train_batch_size=settings.warm_batch,
        learning_rate=learning_rate or settings.warm_learning_rate,
        warmup_steps=10,
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
        "warmup_steps": 5,
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
