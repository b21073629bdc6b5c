"""Playing a plan: what is not played yet, and again what the environment spoiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentgym_envs.cli.common import Interrupted, stderr
from agentgym_envs.cli.evaluating.planning import Plan
from agentgym_envs.cli.policies import Batch, Played, Player
from agentgym_envs.cli.run_store import RunStore
from agentgym_envs.errors import AgentGymError

Advance = Callable[[], None]


@contextmanager
def keeping(plan: Plan, store: RunStore, notes: Iterable[str]) -> Iterator[None]:
    """Whatever stops what is done inside, what was played is kept, and named in the message.

    `notes` are told on stderr before.
    """
    try:
        for note in notes:
            stderr().print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {store.kept(plan.episodes)}") from None
    except (AgentGymError, OSError) as error:
        if store.episodes:
            error.add_note(store.kept(plan.episodes))
        raise
    finally:
        store.close()


def play(plan: Plan, store: RunStore, make: Callable[[], Player], concurrency: int, retries: int) -> None:
    """Play what is not played yet.

    An episode in which the environment failed is played again, up to `retries` times.
    """
    with _progress(plan.episodes, store) as advance:
        _play(plan, store, make, concurrency, retries, advance)


def _play(
    plan: Plan, store: RunStore, make: Callable[[], Player], concurrency: int, retries: int, advance: Advance
) -> None:
    from agentgym_envs.rollout import run_sync

    left = _left(plan.batches, lambda *key: not store.is_done(*key))
    if not left:
        return
    player = make()

    def done(played: Played) -> None:
        store.add(played.trajectory, played.segments, player.codec)
        advance()

    async def everything() -> None:
        try:
            for attempt in range(1 + retries):
                for batch in left if attempt == 0 else _left(left, store.was_spoiled):
                    await player.play(batch, concurrency, done)
        finally:
            await player.close()

    run_sync(everything())


def _left(batches: list[Batch], wanted: Callable[[str, str, int], bool]) -> list[Batch]:
    """What is wanted of the batches, by environment, task and seed; no empty ones."""
    left = [
        replace(batch, specs=[spec for spec in batch.specs if wanted(batch.env_id, spec.task or "", spec.seed)])
        for batch in batches
    ]
    return [batch for batch in left if batch.specs]


@contextmanager
def _progress(wanted: int, store: RunStore) -> Iterator[Advance]:
    """A bar on stderr with the success so far, if somebody watches."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("success {task.fields[share]}{task.fields[failed]}")
    columns = (MofNCompleteColumn(), BarColumn(), text, TimeElapsedColumn(), "left", TimeRemainingColumn())
    console = stderr()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=wanted, share="–", failed="")

        def advance() -> None:
            done, solved, spoiled = store.tally
            share = f"{100 * solved / done:.1f}%" if done else "–"
            bar.update(task, completed=done, share=share, failed=f", failed {spoiled}" if spoiled else "")

        advance()
        yield advance
