"""AgentEvol: explore, keep the successes, train the base model on demonstrations and successes, repeat.

Round 0 is behaviour cloning. In every later round, the last round's model plays training tasks, most of them without a
demonstration. The episodes that reach the threshold join the demonstrations, and the base model, not the last one, is
trained on all of them. So only the data, not the weights, carries over from round to round.

With rewards of 0 and 1 this equals the paper's objective, log-likelihood weighted by reward.

Source: AgentEvol, Xi et al., arXiv 2406.04151, section 4 (and ReST-EM, Singh et al., arXiv 2312.06585, for training
from the base model in each round).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from trl import SFTConfig

from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.rollout import ChatCodec, Engine, encode_trajectory
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_envs.vector import MakeEnv
from agentgym_trl.callbacks import run_training
from agentgym_trl.engines import HFEngine
from agentgym_trl.error_messages import as_usage_errors, reject_teams, team_error
from agentgym_trl.exploration import (
    PlaySettings,
    derive_seed,
    exploration_specs,
    explore,
    write_trajectories,
)
from agentgym_trl.models import load_model
from agentgym_trl.run_directory import last_checkpoint
from agentgym_trl.sft import make_sft_trainer
from agentgym_trl.teams import agents_of

Evaluate = Callable[[Path], Mapping[str, float]]
"""Computes the metrics of a round's model from its directory."""
MakeEngine = Callable[[Path], Engine]
"""Makes an engine from the directory of a round's model."""


@dataclass(frozen=True, slots=True)
class EvolSettings:
    """Settings of exploration and of the selection of episodes.

    `rounds` is the number of rounds of exploration, after one of behaviour cloning. A round draws `tasks` tasks of
    `split` and `groups` (None: all of a finite set) and plays each `episodes_per_task` times. An episode is kept if its
    score is at least `threshold` (None: if it succeeded) and it fits into the `max_length` of training. A round trains
    on the demonstrations and on the kept episodes of all rounds (`keep="all"`) or of this round only (`keep="last"`).
    `max_per_task` bounds the number of kept trajectories per task, the shortest first (None: all).
    """

    rounds: int = 3
    tasks: int | None = 256
    episodes_per_task: int = 4
    threshold: float | None = None
    keep: Literal["all", "last"] = "all"
    max_per_task: int | None = None
    split: str | None = "train"
    groups: Sequence[str] | None = None
    play: PlaySettings = field(default_factory=PlaySettings)
    seed: int = 0

    def __post_init__(self) -> None:
        minimum = {"rounds": 0, "tasks": 1, "episodes_per_task": 1, "max_per_task": 1, "seed": 0}
        for name, bound in minimum.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise UsageError(f"{name} must be at least {bound}, got {value}")
        if self.keep not in ("all", "last"):
            raise UsageError(f"keep must be 'all' or 'last', got {self.keep!r}")
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"threshold must be above 0 and at most 1, like scores; got {self.threshold}")
        if self.play.temperature <= 0 and self.episodes_per_task > 1:
            raise UsageError(
                f"episodes_per_task={self.episodes_per_task} needs a temperature above 0; at 0 all episodes of a task "
                "are the same"
            )


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round: its number, its directory, and its metrics.

    The directory holds `model/`, from round 1 on `explored.jsonl` and `kept.jsonl`, and `round.json` with `metrics`.
    """

    number: int
    directory: Path
    metrics: dict[str, float]

    @property
    def model(self) -> Path:
        """The directory of the trained model."""
        return self.directory / "model"

    def explored(self) -> list[Trajectory]:
        """All played episodes, in no order; empty in round 0."""
        path = self.directory / "explored.jsonl"
        return list(read_trajectories(path)) if path.exists() else []

    def kept(self) -> list[Trajectory]:
        """The kept episodes; empty in round 0."""
        path = self.directory / "kept.jsonl"
        return list(read_trajectories(path)) if path.exists() else []


def agentevol(
    model: str | Path,
    demonstrations: Sequence[Trajectory],
    make_env: MakeEnv,
    codec: ChatCodec,
    args: SFTConfig,
    settings: EvolSettings,
    *,
    make_engine: MakeEngine | None = None,
    evaluate: Evaluate | None = None,
    on_begin: Callable[[], object] | None = None,
    console: Console | None = None,
    **trainer: Any,
) -> list[Round]:
    """Run behaviour cloning and `settings.rounds` rounds of AgentEvol in `args.output_dir`, or resume them.

    Every round trains `model` with a copy of `args`, for the same number of steps if `args.max_steps` is set. On
    resume, finished rounds are not repeated, played episodes are kept, and training continues from its last checkpoint
    or starts again without one. Tasks, seeds and training depend on `settings.seed` and `args.seed` only; for sampling
    see `explore`.

    Args:
        model: the base model, a directory or a name; every round loads it again.
        demonstrations: the data of round 0, and part of the data of all rounds.
        make_env: makes the environment to explore.
        codec: encodes text for the model.
        args: settings of training. Its seed also decides the order of the data.
        settings: settings of exploration.
        make_engine: makes the engine of a round's model; by default transformers on the device of `args`.
        evaluate: called with the directory of each round's model; its numbers go into the metrics as `eval/...`.
        on_begin: called after all checks, before anything is written.
        console: shows progress.
        **trainer: further arguments of `make_sft_trainer`, such as `peft_config`.

    Returns:
        The rounds, behaviour cloning first.

    Raises:
        UsageError: there is no demonstration, the environment or a demonstration is a team's, there are too few tasks,
            or the directory holds a run with other demonstrations.
        EnvError: every episode of a round failed.
        KeyboardInterrupt: on Ctrl-C, after everything was written.
    """
    run = _Run(str(model), demonstrations, make_env, codec, args, settings, make_engine, evaluate, console, trainer)
    run.check()
    if on_begin:
        on_begin()
    run.begin()
    finished: list[Round] = []
    for number in range(settings.rounds + 1):
        finished.append(run.round(number, finished))
        _write_metrics(run.out / "metrics.jsonl", finished)
    return finished


def keep(explored: Iterable[Trajectory], threshold: float | None = None) -> list[Trajectory]:
    """The usable episodes that succeeded, or whose score is at least `threshold`."""
    usable = (trajectory for trajectory in explored if trajectory.usable)
    return [t for t in usable if (t.success if threshold is None else t.score >= threshold - 1e-9)]


def training_set(
    demonstrations: Iterable[Trajectory], kept: Iterable[Trajectory], max_per_task: int | None = None
) -> list[Trajectory]:
    """The demonstrations, then the kept episodes: each (task, seed, actions) once, at most `max_per_task` per task.

    The bound applies to kept episodes only. It selects the shortest of a task, then the earliest.
    """
    demos = _distinct(demonstrations)
    seen = {_identity(trajectory) for trajectory in demos}
    new = [trajectory for trajectory in _distinct(kept) if _identity(trajectory) not in seen]
    return [*demos, *(new if max_per_task is None else _shortest(new, max_per_task))]


def print_rounds(console: Console, rounds: Sequence[Round]) -> None:
    """Print a table with one row per round."""
    names = list(dict.fromkeys(name for r in rounds for name in r.metrics if name.startswith("eval/")))
    table = Table("round", "explored", "success", "kept", "trained on", "tasks", "without demo", "loss", *names)
    for row in rounds:
        m = row.metrics
        counts = [f"{m[name]:.0f}" for name in ("trained_on", "tasks", "new_tasks")]
        explored = [f"{m['explored']:.0f}", f"{m['success']:.1%}", f"{m['kept']:.0f}"] if row.number else ["-"] * 3
        evaluated = [f"{m[name]:.3f}" if name in m else "-" for name in names]
        table.add_row(str(row.number), *explored, *counts, f"{m['loss']:.4f}", *evaluated)
    console.print(table)


@dataclass(frozen=True, slots=True)
class _Run:
    """The arguments of `agentevol`, and the steps of a round."""

    model: str
    demonstrations: Sequence[Trajectory]
    make_env: MakeEnv
    codec: ChatCodec
    args: SFTConfig
    settings: EvolSettings
    make_engine: MakeEngine | None
    evaluate: Evaluate | None
    console: Console | None
    trainer: Mapping[str, Any]

    @property
    def out(self) -> Path:
        return Path(str(self.args.output_dir))

    def check(self) -> None:
        """Raise UsageError before anything is trained or written."""
        if self.args.world_size > 1:
            raise UsageError("agentevol runs in one process; start it without accelerate launch or torchrun")
        if not any(trajectory.usable for trajectory in self.demonstrations):
            raise UsageError("there is no usable demonstration to start from")
        reject_teams(self.demonstrations, "agentevol")
        if self.settings.rounds:
            self.tasks(1)

    def begin(self) -> None:
        """Write the demonstrations, or check that they are those of the resumed run."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / "demos.jsonl"
        if not path.exists():
            write_trajectories(path, self.demonstrations)
        elif [t.to_json() for t in read_trajectories(path)] != [t.to_json() for t in self.demonstrations]:
            raise UsageError(
                f"{path} holds other demonstrations; choose another --out, or pass the same demonstrations"
            )

    def round(self, number: int, before: Sequence[Round]) -> Round:
        """Explore, keep, train and evaluate; read the results of steps that are done already."""
        directory = self.out / f"round-{number}"
        finished = _read_json(directory / "round.json")
        if finished is not None:
            return Round(number, directory, finished)
        directory.mkdir(exist_ok=True)
        explored = self.explore(directory, number, before[-1]) if number else []
        kept = [t for t in keep(explored, self.settings.threshold) if self.fits(t)]
        if number:
            write_trajectories(directory / "kept.jsonl", kept)
        earlier = before if self.settings.keep == "all" else []
        data = training_set(
            self.demonstrations, [t for r in earlier for t in r.kept()] + kept, self.settings.max_per_task
        )
        metrics = {**self.describe(explored, kept, data), **self.train(directory, number, data)}
        if self.evaluate:
            metrics |= {f"eval/{name}": float(value) for name, value in self.evaluate(directory / "model").items()}
        _write_json(directory / "round.json", metrics)
        return Round(number, directory, metrics)

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
                raise team_error(f"the environment to explore ({', '.join(team)})", "agentevol")
        return drawn

    def fits(self, trajectory: Trajectory) -> bool:
        """True if it fits the context. Over-long demonstrations raise; over-long explored episodes are skipped."""
        contexts = encode_trajectory(trajectory, self.codec).contexts()
        longest = max(len(context.prompt_ids) + len(context.ids) for context in contexts)
        return self.args.max_length is None or longest <= self.args.max_length

    def explore(self, directory: Path, number: int, last: Round) -> list[Trajectory]:
        """The episodes of a round, in the order of tasks and episodes."""
        settings = self.settings
        explored = explore(
            directory / "explored.jsonl",
            exploration_specs(self.tasks(number), settings.episodes_per_task, settings.seed, number),
            self.make_env,
            lambda: self.engine(last.model),
            self.codec,
            settings.play,
            seed=derive_seed(settings.seed, number),
            title=f"round {number}: explore",
            console=self.console,
        )
        if not any(trajectory.usable for trajectory in explored):
            raise EnvError(f"every episode of round {number} failed, the first with: {explored[0].error}")
        return explored

    def engine(self, model: Path) -> Engine:
        """The engine of a round's model."""
        if self.make_engine:
            return self.make_engine(model)
        return HFEngine(load_model(str(model), dtype="auto").to(self.args.device), self.codec.tokenizer)

    def train(self, directory: Path, number: int, data: Sequence[Trajectory]) -> dict[str, float]:
        """Train the base model on `data`, unless that is done already; return the metrics."""
        done = _read_json(directory / "training.json")
        if done is not None:
            return done
        args = copy.deepcopy(self.args)
        args.output_dir = str(directory / "model")
        with as_usage_errors():
            trainer = make_sft_trainer(self.model, data, self.codec, args, **self.trainer)
        title = f"round {number}: train" if number else "round 0: clone"
        if not run_training(trainer, title, console=self.console, checkpoint=last_checkpoint(args.output_dir)):
            raise KeyboardInterrupt
        _save_merged(trainer, args.output_dir)
        losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
        facts = {"loss": float(losses[-1]) if losses else float("nan"), "steps": float(trainer.state.global_step)}
        _write_json(directory / "training.json", facts)
        return facts

    def describe(
        self, explored: Sequence[Trajectory], kept: Sequence[Trajectory], data: Sequence[Trajectory]
    ) -> dict[str, float]:
        """Metrics of a round's exploration and data. Success and score are means over the usable episodes."""
        usable = [trajectory for trajectory in explored if trajectory.usable]
        demonstrated = {trajectory.task.id for trajectory in self.demonstrations}
        tasks = {trajectory.task.id for trajectory in data}
        facts = {
            "explored": len(explored),
            "failed": len(explored) - len(usable),
            "success": sum(t.success for t in usable) / max(len(usable), 1),
            "score": sum(t.score for t in usable) / max(len(usable), 1),
            "kept": len(kept),
            "trained_on": len(data),
            "tasks": len(tasks),
            "new_tasks": len(tasks - demonstrated),
        }
        return {name: float(value) for name, value in facts.items()}


def _identity(trajectory: Trajectory) -> tuple[str, str, int, tuple[str, ...]]:
    return trajectory.env_id, trajectory.task.id, trajectory.seed, tuple(trajectory.actions)


def _distinct(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    found: dict[Any, Trajectory] = {}
    for trajectory in trajectories:
        if trajectory.usable:
            found.setdefault(_identity(trajectory), trajectory)
    return list(found.values())


def _shortest(trajectories: Sequence[Trajectory], count: int) -> list[Trajectory]:
    """Up to `count` trajectories per task, the shortest ones, in their original order."""
    by_task: dict[tuple[str, str], list[int]] = {}
    for index, trajectory in enumerate(trajectories):
        by_task.setdefault((trajectory.env_id, trajectory.task.id), []).append(index)
    kept = (sorted(indices, key=lambda i: len(trajectories[i].turns))[:count] for indices in by_task.values())
    return [trajectories[index] for index in sorted(index for indices in kept for index in indices)]


def _save_merged(trainer: Any, path: str) -> None:
    """Merge a PEFT adapter into its model, so that the directory loads like any model; keep it in `adapter`."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    if not hasattr(model, "merge_and_unload"):
        return
    (Path(path) / "adapter").mkdir(exist_ok=True)
    for file in Path(path).glob("adapter_*"):
        file.replace(file.parent / "adapter" / file.name)
    model.merge_and_unload().save_pretrained(path)


def _write_metrics(path: Path, rounds: Sequence[Round]) -> None:
    """Write one line per round."""
    _write_atomically(path, "".join(json.dumps({"round": row.number, **row.metrics}) + "\n" for row in rounds))


def _read_json(path: Path) -> dict[str, float] | None:
    try:
        metrics: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return metrics


def _write_json(path: Path, facts: Mapping[str, float]) -> None:
    _write_atomically(path, json.dumps(facts, indent=1) + "\n")


def _write_atomically(path: Path, text: str) -> None:
    """Write the whole file or nothing: a file that exists counts as finished."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
