"""AgentEvol: explore, keep the successes, train the base model on demonstrations and successes, repeat.

Round 0 is behaviour cloning. In every later round, the last round's model plays training tasks, most of them without a
demonstration. The episodes that reach the threshold join the demonstrations, and the base model, not the last one, is
trained on all of them. So only the data, not the weights, carries over from round to round.

With rewards of 0 and 1 this equals the paper's objective, log-likelihood weighted by reward.

Source: AgentEvol, Xi et al., arXiv 2406.04151, section 4 (and ReST-EM, Singh et al., arXiv 2312.06585, for training
from the base model in each round).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from trl import SFTConfig

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, encode_trajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector import MakeEnv
from agentgym_trl.exploration import write_trajectories
from agentgym_trl.rounds import Evaluate, MakeEngine, Round, RoundRun, RoundSettings, play_metrics
from agentgym_trl.sft import make_sft_trainer


@dataclass(frozen=True, slots=True)
class EvolSettings(RoundSettings):
    """Settings of exploration and of the selection of episodes.

    `rounds` is the number of rounds of exploration, after one of behaviour cloning. An episode is kept if its score is
    at least `threshold` (None: if it succeeded) and it fits into the `max_length` of training. A round trains on the
    demonstrations and on the kept episodes of all rounds (`keep="all"`) or of this round only (`keep="last"`).
    `max_per_task` bounds the number of kept trajectories per task, the shortest first (None: all).
    """

    threshold: float | None = None
    keep: Literal["all", "last"] = "all"
    max_per_task: int | None = None

    def __post_init__(self) -> None:
        self.check(max_per_task=1)
        if self.keep not in ("all", "last"):
            raise UsageError(f"keep must be 'all' or 'last', got {self.keep!r}")
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise UsageError(f"threshold must be above 0 and at most 1, like scores; got {self.threshold}")


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
    return run.run(0, on_begin)


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
class _Run(RoundRun):
    """The steps of a round."""

    algorithm = "agentevol"

    settings: EvolSettings

    def check(self) -> None:
        """Raise UsageError before anything is trained or written."""
        if not any(trajectory.usable for trajectory in self.demonstrations):
            raise UsageError("there is no usable demonstration to start from")
        RoundRun.check(self)

    def play_and_train(self, number: int, directory: Path, before: Sequence[Round]) -> dict[str, float]:
        """Explore, keep and train."""
        explored = self.explore(directory, number, before[-1].model) if number else []
        kept = [t for t in keep(explored, self.settings.threshold) if self.fits(t)]
        if number:
            write_trajectories(directory / "kept.jsonl", kept)
        earlier = before if self.settings.keep == "all" else []
        data = training_set(
            self.demonstrations, [t for r in earlier for t in r.kept()] + kept, self.settings.max_per_task
        )

        def trainer(start: str, args: SFTConfig) -> Any:
            return make_sft_trainer(start, data, self.codec, args, **self.trainer)

        title = f"round {number}: train" if number else "round 0: clone"
        return {**self.describe(explored, kept, data), **self.train(directory, title, self.model, trainer)}

    def fits(self, trajectory: Trajectory) -> bool:
        """True if it fits the context. Over-long demonstrations raise; over-long explored episodes are skipped."""
        contexts = encode_trajectory(trajectory, self.codec).contexts()
        longest = max(len(context.prompt_ids) + len(context.ids) for context in contexts)
        return self.args.max_length is None or longest <= self.args.max_length

    def describe(
        self, explored: Sequence[Trajectory], kept: Sequence[Trajectory], data: Sequence[Trajectory]
    ) -> dict[str, float]:
        """Metrics of a round's exploration and data."""
        demonstrated = {trajectory.task.id for trajectory in self.demonstrations}
        tasks = {trajectory.task.id for trajectory in data}
        facts = {
            "kept": len(kept),
            "trained_on": len(data),
            "tasks": len(tasks),
            "new_tasks": len(tasks - demonstrated),
        }
        return {**play_metrics(explored), **{name: float(value) for name, value in facts.items()}}


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
