"""Rounds of exploration and supervised training: what AgentEvol and DAgger share.

A round plays training tasks, trains a model on what it found, and writes everything into a directory of its own. So a
run that was stopped continues where it was.
"""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from trl import SFTConfig

from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import ChatCodec, Engine, play_many
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_envs.vector import MakeEnv
from agentgym_envs.whole_files import write_whole
from agentgym_trl.callbacks import run_training
from agentgym_trl.engines import HFEngine
from agentgym_trl.error_messages import as_usage_errors, reject_teams, team_error
from agentgym_trl.exploration import (
    PlayMany,
    PlaySettings,
    derive_seed,
    exploration_specs,
    explore,
    write_trajectories,
)
from agentgym_trl.models import load_model
from agentgym_trl.run_directory import last_checkpoint
from agentgym_trl.teams import agents_of

Evaluate = Callable[[Path], Mapping[str, float]]
"""Computes the metrics of a round's model from its directory."""
MakeEngine = Callable[[Path], Engine]
"""Makes an engine from the directory of a round's model."""
MakeTrainer = Callable[[str, SFTConfig], Any]
"""Makes a trainer from a model and the settings of a round."""


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """Settings of exploration.

    A round draws `tasks` tasks of `split` and `groups` (None: all of a finite set) and plays each `episodes_per_task`
    times.
    """

    rounds: int = 3
    tasks: int | None = 256
    episodes_per_task: int = 4
    split: str | None = "train"
    groups: Sequence[str] | None = None
    play: PlaySettings = field(default_factory=PlaySettings)
    seed: int = 0

    def check(self, **minimum: int) -> None:
        """Raise UsageError for a number below its minimum; `minimum` adds to those of this class."""
        for name, bound in {"rounds": 0, "tasks": 1, "episodes_per_task": 1, "seed": 0, **minimum}.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise UsageError(f"{name} must be at least {bound}, got {value}")
        if self.play.temperature <= 0 and self.episodes_per_task > 1:
            raise UsageError(
                f"episodes_per_task={self.episodes_per_task} needs a temperature above 0; at 0 all episodes of a task "
                "are the same"
            )


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round: its number, its directory, and its metrics.

    The directory holds `model/`, `explored.jsonl` if the round explored, `kept.jsonl` if it selected episodes, and
    `round.json` with `metrics`.
    """

    number: int
    directory: Path
    metrics: dict[str, float]

    @property
    def model(self) -> Path:
        """The directory of the trained model."""
        return self.directory / "model"

    def explored(self) -> list[Trajectory]:
        """All played episodes, in no order; empty if the round did not explore."""
        return _trajectories(self.directory / "explored.jsonl")

    def kept(self) -> list[Trajectory]:
        """The selected episodes; empty if the round selected none."""
        return _trajectories(self.directory / "kept.jsonl")


@dataclass(frozen=True, slots=True)
class RoundRun(ABC):
    """The arguments of a run, and the steps of a round. `agentevol` documents the arguments."""

    algorithm: ClassVar[str]

    model: str
    demonstrations: Sequence[Trajectory]
    make_env: MakeEnv
    codec: ChatCodec
    args: SFTConfig
    settings: RoundSettings
    make_engine: MakeEngine | None
    evaluate: Evaluate | None
    console: Console | None
    trainer: Mapping[str, Any]

    @abstractmethod
    def play_and_train(self, number: int, directory: Path, before: Sequence[Round]) -> dict[str, float]:
        """Do the work of a round in its directory, and return its metrics."""

    @property
    def out(self) -> Path:
        """The directory of the run."""
        return Path(str(self.args.output_dir))

    def run(self, first: int, on_begin: Callable[[], object] | None) -> list[Round]:
        """Do all rounds from number `first` on that are not done yet. `on_begin` is called after all checks."""
        self.check()
        if on_begin:
            on_begin()
        self._begin()
        finished: list[Round] = []
        for number in range(first, self.settings.rounds + 1):
            finished.append(self._round(number, finished))
            _write_metrics(self.out / "metrics.jsonl", finished)
        return finished

    def check(self) -> None:
        """Raise UsageError before anything is trained or written."""
        if self.args.world_size > 1:
            raise UsageError(f"{self.algorithm} runs in one process; start it without accelerate launch or torchrun")
        reject_teams(self.demonstrations, self.algorithm)
        if self.settings.rounds:
            self.tasks(1)

    def tasks(self, number: int) -> list[Task]:
        """Draw the tasks of a round. Raises UsageError for a team's environment."""
        settings, seed = self.settings, derive_seed(self.settings.seed, number)
        with closing(self.make_env()) as made:
            env = text_env(made)
            try:
                drawn = env.tasks.sample(settings.tasks, split=settings.split, groups=settings.groups, seed=seed)
            except UsageError as error:
                error.add_note("these are the tasks to explore (--explore-tasks)")
                raise
            if team := agents_of(env):
                raise team_error(f"the environment to explore ({', '.join(team)})", self.algorithm)
        return drawn

    def explore(
        self, directory: Path, number: int, model: str | Path, play_with: PlayMany = play_many
    ) -> list[Trajectory]:
        """Play the episodes of a round with a model; they are in the order of tasks and episodes."""
        settings = self.settings
        explored = explore(
            directory / "explored.jsonl",
            exploration_specs(self.tasks(number), settings.episodes_per_task, settings.seed, number),
            self.make_env,
            lambda: self.engine(Path(model)),
            self.codec,
            settings.play,
            seed=derive_seed(settings.seed, number),
            title=f"round {number}: explore",
            console=self.console,
            play_with=play_with,
        )
        if not any(trajectory.usable for trajectory in explored):
            raise EnvError(f"every episode of round {number} failed, the first with: {explored[0].error}")
        return explored

    def engine(self, model: Path) -> Engine:
        """The engine of a model."""
        if self.make_engine:
            return self.make_engine(model)
        given = self.args.model_init_kwargs or {}
        revision = given.get("revision") if str(model) == self.model else None  # models of rounds have none
        loaded = load_model(str(model), dtype="auto", **({"revision": revision} if revision else {}))
        return HFEngine(loaded.to(self.args.device), self.codec.tokenizer)

    def train(self, directory: Path, title: str, start: str, make_trainer: MakeTrainer) -> dict[str, float]:
        """Train the model `start`, unless that is done already; return the metrics."""
        done = _read_json(directory / "training.json")
        if done is not None:
            return done
        args = copy.deepcopy(self.args)
        args.output_dir = str(directory / "model")
        with as_usage_errors():
            trainer = make_trainer(start, args)
        if not run_training(trainer, title, console=self.console, checkpoint=last_checkpoint(args.output_dir)):
            raise KeyboardInterrupt
        _save_merged(trainer, args.output_dir)
        losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
        facts = {"loss": float(losses[-1]) if losses else float("nan"), "steps": float(trainer.state.global_step)}
        _write_json(directory / "training.json", facts)
        return facts

    def _begin(self) -> None:
        """Write the demonstrations, or check that they are those of the resumed run."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / "demos.jsonl"
        if not path.exists():
            write_trajectories(path, self.demonstrations)
        elif [t.to_json() for t in read_trajectories(path)] != [t.to_json() for t in self.demonstrations]:
            raise UsageError(
                f"{path} holds other demonstrations; choose another --out, or pass the same demonstrations"
            )

    def _round(self, number: int, before: Sequence[Round]) -> Round:
        """Do a round and evaluate its model; read the results of steps that are done already."""
        directory = self.out / f"round-{number}"
        finished = _read_json(directory / "round.json")
        if finished is not None:
            return Round(number, directory, finished)
        directory.mkdir(exist_ok=True)
        metrics = self.play_and_train(number, directory, before)
        if self.evaluate:
            metrics |= {f"eval/{name}": float(value) for name, value in self.evaluate(directory / "model").items()}
        _write_json(directory / "round.json", metrics)
        return Round(number, directory, metrics)


def play_metrics(explored: Sequence[Trajectory]) -> dict[str, float]:
    """Metrics of a round's exploration. Success and score are means over the usable episodes."""
    usable = [trajectory for trajectory in explored if trajectory.usable]
    return {
        "explored": float(len(explored)),
        "failed": float(len(explored) - len(usable)),
        "success": sum(t.success for t in usable) / max(len(usable), 1),
        "score": sum(t.score for t in usable) / max(len(usable), 1),
    }


def _save_merged(trainer: Any, path: str) -> None:
    """Merge a PEFT adapter into its model, so that the directory loads like any model; keep it in `adapter`."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    if not hasattr(model, "merge_and_unload"):
        return
    (Path(path) / "adapter").mkdir(exist_ok=True)
    for file in Path(path).glob("adapter_*"):
        file.replace(file.parent / "adapter" / file.name)
    model.merge_and_unload().save_pretrained(path)


def _trajectories(path: Path) -> list[Trajectory]:
    return list(read_trajectories(path)) if path.exists() else []


def _write_metrics(path: Path, rounds: Sequence[Round]) -> None:
    """Write one line per round."""
    write_whole(path, "".join(json.dumps({"round": row.number, **row.metrics}) + "\n" for row in rounds))


def _read_json(path: Path) -> dict[str, float] | None:
    try:
        metrics: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return metrics


def _write_json(path: Path, facts: Mapping[str, float]) -> None:
    write_whole(path, json.dumps(facts, indent=1) + "\n")
