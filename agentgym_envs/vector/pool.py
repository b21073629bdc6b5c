"""`RunnerPool`: runners that are kept and reused from episode to episode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from agentgym_envs.errors import UsageError
from agentgym_envs.vector.env_thread import run_in_thread
from agentgym_envs.vector.runner import EnvRunner, MakeEnv, close_all

MakeEnvs = MakeEnv | Mapping[str, MakeEnv]
"""A function that makes an environment, or one for each of several kinds of environments, by name."""
_PARALLEL_OPENINGS = 16


class RunnerPool:
    """A pool of runners for one or more kinds of environments. Idle runners are kept while other kinds are in use."""

    def __init__(self, makers: MakeEnvs, size: int) -> None:
        """Make an empty pool.

        Args:
            makers: makes the environments.
            size: the most runners that are in use at a time. With several kinds, the pool keeps up to `2 * size`
                runners in all: otherwise alternating kinds would make a new environment for every second episode.
        """
        self._makers, self._size = makers, size if callable(makers) else 2 * size
        self._idle: list[tuple[MakeEnv, EnvRunner]] = []
        self._busy = 0
        self._inline_makers: set[int] = set()  # the identities of functions that make inline environments
        self._openings: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def acquire(self, kind: str) -> EnvRunner:
        """An idle runner of that kind, or a new one. Raises UsageError for an unknown kind."""
        make = self._maker(kind)
        runner = self._reuse(make) or self._note_inline(make, EnvRunner(make))
        self._busy += 1
        return runner

    async def open(self, kind: str) -> EnvRunner:
        """Like `acquire`, without blocking the event loop: new runners are made in parallel, in threads.

        Runners of inline environments are made in the calling thread, once the first of the kind is made.
        """
        make = self._maker(kind)
        if id(make) in self._inline_makers:
            return self.acquire(kind)
        runner = self._reuse(make)
        self._busy += 1
        if runner is not None:
            return runner
        try:
            async with self._semaphore():
                return self._note_inline(make, await run_in_thread(partial(EnvRunner, make), EnvRunner.close))
        except BaseException:
            self._busy -= 1
            raise

    @asynccontextmanager
    async def lease(self, kind: str) -> AsyncIterator[EnvRunner]:
        """A runner for one episode; discarded if the episode did not end, since a call may be running."""
        runner = await self.open(kind)
        try:
            yield runner
        except BaseException:
            self.discard(runner)
            raise
        self.release(kind, runner)

    def release(self, kind: str, runner: EnvRunner) -> None:
        """Return a runner to the pool."""
        self._busy -= 1
        self._idle.append((self._maker(kind), runner))

    def discard(self, runner: EnvRunner) -> None:
        """Close an acquired runner."""
        self._busy -= 1
        runner.close()

    def close(self) -> None:
        """Close the idle runners."""
        runners, self._idle = [runner for _, runner in self._idle], []
        close_all(runners)

    def _reuse(self, make: MakeEnv) -> EnvRunner | None:
        """An idle runner, or None after making room for a new one."""
        if fitting := [idle for idle in self._idle if idle[0] is make]:
            oldest = min(fitting, key=lambda idle: idle[1].number)  # independent of the order in which episodes ended
            self._idle.remove(oldest)
            return oldest[1]
        if len(self._idle) + self._busy >= self._size and self._idle:
            self._idle.pop(0)[1].close()
        return None

    def _note_inline(self, make: MakeEnv, runner: EnvRunner) -> EnvRunner:
        if runner.inline:
            self._inline_makers.add(id(make))
        return runner

    def _semaphore(self) -> asyncio.Semaphore:
        """The limit on parallel openings. A semaphore belongs to one event loop, and a pool may outlive it."""
        loop = asyncio.get_running_loop()
        if self._openings is None or self._openings[0] is not loop:
            self._openings = loop, asyncio.Semaphore(_PARALLEL_OPENINGS)
        return self._openings[1]

    def _maker(self, kind: str) -> MakeEnv:
        if callable(self._makers):
            return self._makers
        if kind not in self._makers:
            raise UsageError(f"an episode needs the environment {kind!r}; known here: {', '.join(self._makers)}")
        return self._makers[kind]
