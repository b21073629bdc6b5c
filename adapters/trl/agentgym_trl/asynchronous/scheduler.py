"""`Scheduler`: starts groups of episodes, keeps them running between rollouts, and hands complete groups over."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.rollout import Engine, EpisodeSpec, Generation, Sampling, TokenTrajectory
from agentgym_trl.asynchronous.engine import AnswerRequest, SamplingEngine
from agentgym_trl.asynchronous.groups import EpisodeGroup, EpisodeLog, LoggedAnswer, checksum, choose
from agentgym_trl.asynchronous.loops import until
from agentgym_trl.asynchronous.settings import AsyncSettings

Play = Callable[[EpisodeSpec, Engine], Awaitable[TokenTrajectory]]
MakeSpec = Callable[[int, int], EpisodeSpec]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Groups in a batch, episodes in a group and at the same time, retries of a failed one; the number of the rank."""

    batch: int
    group: int
    concurrency: int = 1024
    retries: int = 0
    rank: int = 0


class Scheduler:
    """Keeps groups of episodes in flight; all methods run on one event loop.

    A rollout is a call of `collect`. Rollout number r is trained on by version r of the policy, so a group that was
    admitted in version v may be used up to rollout v + S, with S the max staleness. Groups are admitted, in the order
    of the stream, as long as all groups in flight fit into the batches up to that rollout, and in flight they stay
    until they are used: complete groups wait here. So nothing is dropped without oversampling. With it, groups that
    miss their last rollout are played again.
    """

    def __init__(
        self, make_spec: MakeSpec, engine: SamplingEngine, play: Play, sizes: Sizes, settings: AsyncSettings
    ) -> None:
        """`make_spec` returns the specification of an episode of group `number` that begins at training step `step`."""
        self._make_spec, self.engine, self._play = make_spec, engine, play
        self.sizes, self.settings = sizes, settings
        self.version = self.next_rollout = self._position = self._step = self._run = self._numbers = 0
        self.replayed = self.retried = 0
        self._live: list[EpisodeGroup] = []
        self._again: list[int] = []
        self._queue: list[tuple[int, int, EpisodeGroup]] = []
        self._tasks: dict[asyncio.Task[None], EpisodeGroup] = {}
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._frozen = False

    @property
    def live(self) -> tuple[EpisodeGroup, ...]:
        """The groups that are running, or complete and not yet used."""
        return tuple(self._live)

    async def collect(self, step: int, run: int) -> list[EpisodeGroup]:
        """The groups of the next batch, in the order of the stream.

        Args:
            step: the training step.
            run: a number for the seeds of the episodes that begin before the next call.

        Raises:
            EngineError: the engine failed; so does every error of an episode that is not an infrastructure error.
        """
        self.version, self._step, self._run, self._numbers = self.next_rollout, step, run, 0
        await self.engine.swap(self.version)
        if self._frozen:
            self.engine.thaw({})
        self._frozen = False
        self._replay_late()
        self._admit()
        while (batch := self._choose()) is None:
            self._changed.clear()
            await self._changed.wait()
        self.next_rollout += 1
        self._live = [group for group in self._live if group not in batch]
        self._replay_late()
        self._admit()
        return sorted(batch, key=lambda group: group.number)

    async def aclose(self) -> None:
        """Cancel all episodes, and close the engine."""
        tasks = list(self._tasks)
        self._queue.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.engine.aclose()

    async def state(self) -> dict[str, Any]:
        """The state for a checkpoint: the position in the stream, and what was sampled for the groups in flight."""
        names = ("version", "next_rollout", "_position", "_step", "_run", "_numbers", "replayed")
        return {
            **{name: getattr(self, name) for name in names},
            "again": list(self._again),
            "groups": [group.state() for group in self._live],
            "time": asyncio.get_running_loop().time(),
            "engine": self.engine.state(),
        }

    async def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state. Episodes in flight are replayed with the answers that they had.

        On a virtual clock, they are replayed at their own times, and this call lasts until the time of the state. On a
        real one, new answers wait for the weights of the next rollout.
        """
        for name in ("version", "next_rollout", "_position", "_step", "_run", "_numbers", "replayed"):
            setattr(self, name, state[name])
        self._again = list(state["again"])
        self._live = [self._restored(group) for group in state["groups"]]
        self.engine.freeze()
        later = []
        for group in self._live:
            for member, log in enumerate(group.logs):
                if self.settings.times is not None and log.began is not None:
                    self._start(group, member)
                else:
                    later.append((group.number, member, group))
        if self.settings.times is not None:
            await until(state["time"])
        self._queue = sorted(later, key=_place)
        self._start_more()
        self._frozen = self.settings.times is None
        if not self._frozen:
            self.engine.thaw(state["engine"])

    def _restored(self, state: dict[str, Any]) -> EpisodeGroup:
        logs = [EpisodeLog.from_state(log) for log in state["logs"]]
        spec = self._make_spec(state["number"], state["step"])
        return EpisodeGroup(state["number"], spec, state["version"], state["step"], logs)

    def _choose(self) -> list[EpisodeGroup] | None:
        if self._failure is not None:
            raise self._failure
        settings = self.settings
        return choose(
            self._live, self.next_rollout, self.sizes.batch, settings.max_staleness, wait=not settings.oversample
        )

    def _admit(self) -> None:
        """Admit groups as long as they can be used within the bound."""
        rollouts = self.version + self.settings.max_staleness + 1 - self.next_rollout
        room = rollouts * self.sizes.batch + self.settings.oversample if rollouts > 0 else 0
        while len(self._live) < room:
            if self._again:
                number = self._again.pop(0)
            else:
                number, self._position = self._position, self._position + 1
            self._begin(number)
        self._start_more()

    def _begin(self, number: int) -> None:
        logs = [EpisodeLog(self._key()) for _ in range(self.sizes.group)]
        group = EpisodeGroup(number, self._make_spec(number, self._step), self.version, self._step, logs)
        self._live.append(group)
        self._queue += [(number, member, group) for member in range(self.sizes.group)]

    def _key(self) -> tuple[int, int]:
        number, self._numbers = self._numbers, self._numbers + 1
        return self._run, number

    def _replay_late(self) -> None:
        """Cancel the groups that no batch within the bound can take, and admit their tasks again first."""
        late = [group for group in self._live if group.version + self.settings.max_staleness < self.next_rollout]
        for group in late:
            self._live.remove(group)
            insort(self._again, group.number)
            for task, owner in self._tasks.items():
                if owner is group:
                    task.cancel()
        self._queue = [waiting for waiting in self._queue if waiting[2] not in late]
        self.replayed += len(late)

    def _start_more(self) -> None:
        while self._queue and len(self._tasks) < self.sizes.concurrency:
            first = min(self._queue, key=_place)
            self._queue.remove(first)
            self._start(first[2], first[1])

    def _start(self, group: EpisodeGroup, member: int) -> None:
        task = asyncio.get_running_loop().create_task(self._episode(group, member))
        self._tasks[task] = group
        self.engine.began()
        # A callback, not a `finally` in the task: a task that is cancelled before its first step never runs.
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._start_more()
        self.engine.ended()
        self._changed.set()

    async def _episode(self, group: EpisodeGroup, member: int) -> None:
        """Play one episode, again if the environment failed."""
        log, loop = group.logs[member], asyncio.get_running_loop()
        while True:
            if log.began is None:
                log.began = loop.time()
            elif self.settings.times is not None:
                await until(log.began)
            episode = await self._play(group.spec, _LoggedEngine(self, log, (group.number, member)))
            await self.env_delay(log, len(log.answers))
            if episode.trajectory.usable or log.attempt >= self.sizes.retries:
                break
            self.retried += 1
            group.logs[member] = log = EpisodeLog(self._key(), log.attempt + 1)
        group.finish(member, episode, loop.time())

    async def env_delay(self, log: EpisodeLog, turn: int) -> None:
        """Wait for as long as the environment takes on the virtual clock."""
        times = self.settings.times
        if times is not None and (seconds := times.env_seconds(log.key, turn)):
            await asyncio.sleep(seconds)


class _LoggedEngine:
    """The engine of one episode, which logs the answers. Answers that are in the log already are returned again."""

    def __init__(self, scheduler: Scheduler, log: EpisodeLog, order: tuple[int, int]) -> None:
        self._scheduler, self._log, self._order, self._turn = scheduler, log, order, 0

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """The next answer."""
        turn, self._turn, context = self._turn, self._turn + 1, checksum(prompt_ids)
        await self._scheduler.env_delay(self._log, turn)
        if (known := self._log.known(turn, context)) is not None:
            if known.at is not None:
                await until(known.at)
            return known.generation

        def note(answer: Generation, at: float | None) -> None:
            self._log.answers.append(LoggedAnswer(answer, context, at))

        seed = (*self._log.key, turn, self._scheduler.sizes.rank)
        return await self._scheduler.engine.answer(AnswerRequest(prompt_ids, sampling, seed, self._order, note))


def _place(waiting: tuple[int, int, EpisodeGroup]) -> tuple[int, int]:
    return waiting[:2]
