"""Playing a plan: the missing episodes, and again those in which the environment failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from agentgym_envs.cli.common import note, stderr
from agentgym_envs.cli.evaluating.model_server import ModelServer
from agentgym_envs.cli.evaluating.plan import EvalPlan
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.cli.policies import EpisodeRequest, PlayedEpisode, PolicyPlayer
from agentgym_envs.cli.run_store import EpisodeKey, RunStore
from agentgym_envs.errors import AgentGymError
from agentgym_envs.trajectory import Trajectory

Advance = Callable[[], None]
_MAX_GROUPS = 3


class FinishedEpisodes:
    """The success of the episodes of a plan before the first one that still runs, by group.

    Short episodes end first and are more often successes, and a plan begins with the easy groups. So the success of all
    episodes that have ended, or of all groups at once, would be too high while a run goes on.
    """

    def __init__(self, plan: EvalPlan, episodes: Mapping[EpisodeKey, Trajectory]) -> None:
        """`episodes` are those that have ended; it grows."""
        self._keys = [(batch.env_id, spec.task or "", spec.seed) for batch in plan.batches for spec in batch.specs]
        self._episodes, self._next = episodes, 0
        self._groups: dict[str, list[bool]] = {}

    def text(self) -> str:
        """The success of the groups that were played last."""
        while self._next < len(self._keys) and (episode := self._episodes.get(self._keys[self._next])):
            self._next += 1
            if episode.usable:
                self._groups.setdefault(episode.task.group, []).append(episode.success)
        last = list(self._groups.items())[-_MAX_GROUPS:]
        return ", ".join(f"{group} {100 * sum(found) / len(found):.0f}% of {len(found)}" for group, found in last)


@contextmanager
def report_saved(plan: EvalPlan, store: RunStore, warnings: Iterable[str]) -> Iterator[None]:
    """Print the warnings on stderr. On an error or Ctrl-C, add to the message what is saved; then close the store."""
    try:
        for warning in warnings:
            note(warning)
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {store.saved(plan.episodes)}") from None
    except (AgentGymError, OSError) as error:
        if store.episodes:
            error.add_note(store.saved(plan.episodes))
        raise
    finally:
        store.close()


def play(
    plan: EvalPlan,
    store: RunStore,
    make: Callable[[], PolicyPlayer],
    concurrency: int,
    retries: int,
    server: ModelServer | None = None,
) -> None:
    """Play the episodes that are not in the store.

    An episode in which the environment failed is repeated up to `retries` times. If `server` replays a recording, the
    episodes are played one after another and their times are not recorded, so that the files have the same bytes again.
    """
    replays = server is not None and server.replays
    with _progress(plan, store) as advance:
        _play(plan, store, make, 1 if replays else concurrency, retries, advance, timed=not replays)
    counts = None if server is None else server.pace.counts
    if counts is not None and counts.repeated:
        limited = f", {counts.rate_limited} of them because of the server's rate limit" if counts.rate_limited else ""
        note(f"{counts.sent:,} requests were sent; {counts.repeated:,} were repetitions{limited}")


def _play(
    plan: EvalPlan,
    store: RunStore,
    make: Callable[[], PolicyPlayer],
    concurrency: int,
    retries: int,
    advance: Advance,
    *,
    timed: bool,
) -> None:
    from agentgym_envs.rollout import run_sync

    missing = _select(plan.batches, lambda *key: not store.is_done(*key))
    if not missing:
        return
    player = make()

    def done(played: PlayedEpisode) -> None:
        trajectory = played.trajectory if timed else replace(played.trajectory, times=None)
        store.add(trajectory, played.segments, player.codec)
        advance()

    async def everything() -> None:
        try:
            for attempt in range(1 + retries):
                for batch in missing if attempt == 0 else _select(missing, store.has_failed):
                    await player.play(batch, concurrency, done)
        finally:
            await player.close()

    run_sync(everything())


def _select(batches: list[EpisodeRequest], wanted: Callable[[str, str, int], bool]) -> list[EpisodeRequest]:
    """The wanted episodes, by environment, task and seed, without empty batches."""
    selected = [
        replace(batch, specs=[spec for spec in batch.specs if wanted(batch.env_id, spec.task or "", spec.seed)])
        for batch in batches
    ]
    return [batch for batch in selected if batch.specs]


@contextmanager
def _progress(plan: EvalPlan, store: RunStore) -> Iterator[Advance]:
    """Show a progress bar with the success so far on stderr, if that is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.fields[success]}{task.fields[failed]}")
    columns = (MofNCompleteColumn(), BarColumn(), text, TimeElapsedColumn(), "left", TimeRemainingColumn())
    console = stderr()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=plan.episodes, success="", failed="")
        finished = FinishedEpisodes(plan, store.episodes)

        def advance() -> None:
            usable, _, failed = store.counts
            bar.update(task, completed=usable, success=finished.text(), failed=f", failed {failed}" if failed else "")

        advance()
        yield advance
