"""Exploration for AgentEvol and DAgger: play tasks with a policy, and write every episode to disk as it ends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
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
PlayMany = Callable[..., Coroutine[Any, Any, list[TokenTrajectory]]]
"""Plays many episodes; it has the arguments of `play_many`."""
EpisodeKey = tuple[int, int]
"""An episode of a round: the index of its task and the index of its sample."""


@dataclass(frozen=True, slots=True)
class PlaySettings:
    """Settings of play. `batch` is the number of episodes that run at the same time, with one sampling seed."""

    limits: Limits = field(default_factory=Limits)
    temperature: float = 1.0
    batch: int = 128

    @property
    def sampling(self) -> Sampling:
        """The sampling settings of an answer."""
        return Sampling(self.limits.max_turn_tokens, self.temperature)


def derive_seed(*numbers: int) -> int:
    """A seed below 2**31, a pure function of integers >= 0; neighbouring integers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


def exploration_specs(tasks: Sequence[Task], episodes_per_task: int, seed: int, number: int) -> list[EpisodeSpec]:
    """`episodes_per_task` episodes of each task in round `number`; seeds depend on (seed, round, index of the task)."""
    return [
        EpisodeSpec(task.id, derive_seed(seed, number, index), {"round": number, "index": index, "sample": sample})
        for index, task in enumerate(tasks)
        for sample in range(episodes_per_task)
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
    play_with: PlayMany = play_many,
) -> list[Trajectory]:
    """Play `specs` (of `exploration_specs`) with `play_with`, and append every episode to `path` as it ends.

    Returns the episodes in the order of `specs`. Usable episodes in `path` are not played again. `engine` is called
    only if there are episodes left to play. The batches are fixed, and each has its own sampling seed. So a run that
    was stopped between two batches resumes to the same episodes. Of an interrupted batch, the finished episodes are
    kept and the others are sampled again.
    """
    done = {episode_key(t): t for t in _read(path) if t.usable}
    if len(done) < len(specs):
        ready = engine()
        with TrajectoryWriter(path) as writer, _progress(title, len(specs), list(done.values()), console) as advance:

            def on_done(episode: TokenTrajectory) -> None:
                writer.write(episode.trajectory)
                done[episode_key(episode.trajectory)] = episode.trajectory
                advance(episode.trajectory)

            for number, batch in enumerate(_batches(specs, play.batch)):
                left = [spec for spec in batch if _key(spec.meta) not in done]
                play_seeded(left, make_env, ready, codec, play, derive_seed(seed, number), on_done, play_with)
    return [done[_key(spec.meta)] for spec in specs]


def play_seeded(
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    engine: Engine,
    codec: ChatCodec,
    play: PlaySettings,
    seed: int,
    on_done: Callable[[TokenTrajectory], None] | None = None,
    play_with: PlayMany = play_many,
) -> list[Trajectory]:
    """Play episodes at the same time, sampled with `seed`; the state of torch's own generators is restored."""
    if not specs:
        return []
    options: dict[str, Any] = {"limits": play.limits, "sampling": play.sampling, "on_done": on_done}
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        played = run_sync(play_with(specs, make_env, engine, codec, concurrency=play.batch, **options))
    return [episode.trajectory for episode in played]


def evaluator(
    tasks: Sequence[Task],
    make_env: MakeEnv,
    load: Callable[[str], tuple[Engine, ChatCodec]],
    play: PlaySettings,
    *,
    episodes_per_task: int = 1,
    seed: int = 7000,
) -> Callable[[Path], dict[str, float]]:
    """A function that computes success, score and turns on `tasks` from the directory of a model.

    It samples every model with the same seeds. `load` returns engine and codec of a model, like
    `agentgym_trl.models.load_engine`.
    """
    specs = [EpisodeSpec(task.id, seed + sample) for task in tasks for sample in range(episodes_per_task)]

    def measure(model: Path) -> dict[str, float]:
        engine, codec = load(str(model))
        batches = enumerate(_batches(specs, play.batch))
        played = [t for n, b in batches for t in play_seeded(b, make_env, engine, codec, play, derive_seed(seed, n))]
        overall = evaluate(played).overall
        if overall.success is None or overall.score is None or overall.turns is None:
            return {}
        return {"success": overall.success.mean, "score": overall.score.mean, "turns": overall.turns}

    return measure


def episode_key(trajectory: Trajectory) -> EpisodeKey:
    """The indices of an explored trajectory's task and sample in its round."""
    return _key(trajectory.meta)


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write a whole file of trajectories, or nothing if it is interrupted."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with TrajectoryWriter(part) as writer:
        for trajectory in trajectories:
            writer.write(trajectory)
    part.replace(path)


def _batches(specs: Sequence[EpisodeSpec], size: int) -> list[Sequence[EpisodeSpec]]:
    return [specs[start : start + size] for start in range(0, len(specs), size)]


def _key(meta: Any) -> EpisodeKey:
    return int(meta["index"]), int(meta["sample"])


def _read(path: Path) -> Iterator[Trajectory]:
    return read_trajectories(path) if path.exists() else iter(())


@contextmanager
def _progress(title: str, total: int, done: list[Trajectory], console: Console | None) -> Iterator[OnEpisode]:
    """One live line with the number of episodes and their success rate."""
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
