"""Playing tasks with a policy and keeping every episode on disk as it ends; what AgentEvol learns from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agentgym_envs.evaluate import evaluate
from agentgym_envs.rollout import ChatCodec, Engine, EpisodeSpec, Limits, Sampling, TokenTrajectory, play_many, run_sync
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, read_trajectories
from agentgym_envs.vector import MakeEnv

OnEpisode = Callable[[Trajectory], None]
EpisodeKey = tuple[int, int]
"""Which episode of a round: the number of the task and the number of the sample."""


@dataclass(frozen=True, slots=True)
class PlaySettings:
    """How episodes are played. `batch` is how many are played at a time, one sampling seed for each such batch."""

    limits: Limits = field(default_factory=Limits)
    temperature: float = 1.0
    batch: int = 128

    @property
    def sampling(self) -> Sampling:
        """How an answer is sampled."""
        return Sampling(self.limits.max_turn_tokens, self.temperature)


def derive_seed(*numbers: int) -> int:
    """A seed below 2**31 that is a pure function of whole numbers >= 0, unrelated for neighbouring ones."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


def exploration_specs(tasks: Sequence[Task], samples: int, seed: int, number: int) -> list[EpisodeSpec]:
    """`samples` episodes of each task in round `number`; their seeds depend on (seed, round, place of the task)."""
    return [
        EpisodeSpec(task.id, derive_seed(seed, number, place), {"round": number, "index": place, "sample": sample})
        for place, task in enumerate(tasks)
        for sample in range(samples)
    ]


def explore(
    path: Path,
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    engine: Callable[[], Engine],
    codec: ChatCodec,
    play: PlaySettings,
    *,
    seed: int = 0,
    title: str = "explore",
    console: Console | None = None,
) -> list[Trajectory]:
    """Play `specs` (of `exploration_specs`) and append every episode to `path` as it ends; in the order of `specs`.

    What `path` holds already is not played again, unless the environment failed in it. `engine` is asked for only if
    something is left to play. Batches are always the same ones, each with a sampling seed of its own, so a run that is
    stopped between two batches goes on to exactly what it would have played; of a batch that was cut the episodes that
    had ended stay, and the others are sampled afresh.
    """
    done = {episode_key(t): t for t in _read(path) if t.usable}
    known = len(done)
    if known < len(specs):
        ready = engine()
        with TrajectoryWriter(path) as writer, _progress(title, len(specs), list(done.values()), console) as advance:

            def on_done(episode: TokenTrajectory) -> None:
                writer.write(episode.trajectory)
                done[episode_key(episode.trajectory)] = episode.trajectory
                advance(episode.trajectory)

            for number, batch in enumerate(_batches(specs, play.batch)):
                left = [spec for spec in batch if _place(spec.meta) not in done]
                play_seeded(left, make_env, ready, codec, play, derive_seed(seed, number), on_done)
    return [done[_place(spec.meta)] for spec in specs]


def play_seeded(
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    engine: Engine,
    codec: ChatCodec,
    play: PlaySettings,
    seed: int,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[Trajectory]:
    """Play episodes at once, sampling from `seed` (torch's own generators are as before afterwards)."""
    if not specs:
        return []
    options: dict[str, Any] = {"limits": play.limits, "sampling": play.sampling, "on_done": on_done}
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        played = run_sync(play_many(specs, make_env, engine, codec, concurrency=play.batch, **options))
    return [episode.trajectory for episode in played]


def evaluator(
    tasks: Sequence[Task],
    make_env: MakeEnv,
    load: Callable[[str], tuple[Engine, ChatCodec]],
    play: PlaySettings,
    *,
    samples: int = 1,
    seed: int = 7000,
) -> Callable[[Path], dict[str, float]]:
    """A function from the directory of a model to its success, score and turns on `tasks`, always sampled alike.

    `load` gives engine and codec for a model, as `agentgym_trl.models.load_engine` does.
    """
    specs = [EpisodeSpec(task.id, seed + sample) for task in tasks for sample in range(samples)]

    def measure(model: Path) -> dict[str, float]:
        engine, codec = load(str(model))
        batches = enumerate(_batches(specs, play.batch))
        played = [t for n, b in batches for t in play_seeded(b, make_env, engine, codec, play, derive_seed(seed, n))]
        found = evaluate(played).overall
        if found.success is None or found.score is None or found.turns is None:
            return {}
        return {"success": found.success.mean, "score": found.score.mean, "turns": found.turns}

    return measure


def episode_key(trajectory: Trajectory) -> EpisodeKey:
    """Which episode of its round an explored trajectory is."""
    return _place(trajectory.meta)


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write a file of trajectories as a whole or not at all."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with TrajectoryWriter(part) as writer:
        for trajectory in trajectories:
            writer.write(trajectory)
    part.replace(path)


def _batches(specs: Sequence[EpisodeSpec], size: int) -> list[Sequence[EpisodeSpec]]:
    return [specs[start : start + size] for start in range(0, len(specs), size)]


def _place(meta: Any) -> EpisodeKey:
    return int(meta["index"]), int(meta["sample"])


def _read(path: Path) -> Iterator[Trajectory]:
    return read_trajectories(path) if path.exists() else iter(())


@contextmanager
def _progress(title: str, total: int, done: list[Trajectory], console: Console | None) -> Iterator[OnEpisode]:
    """One live line: how many episodes, and how many of them succeeded."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(16),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("success {task.fields[share]}"),
    )
    played, solved = len(done), sum(trajectory.success for trajectory in done)
    with Progress(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, completed=played, share=_share(solved, played))

        def advance(trajectory: Trajectory) -> None:
            nonlocal played, solved
            played, solved = played + 1, solved + trajectory.success
            bar.update(task, completed=played, share=_share(solved, played))

        yield advance


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
