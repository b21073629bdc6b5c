"""`InspectorSession`: the task, the episode, and its current score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.errors import AgentGymError
from agentgym_envs.task import Task, TaskSet
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import OnlyChanged, QueryReturns
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes, ExactAnswer
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.inspector.recorder import RecordingProxy
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.world import world
from agentgym_envs.webarena.tasks.answers import NotAchievable, Says
from agentgym_envs.webarena.tasks.scoring import evaluators_for, finished, world_of

_MAX_RESULTS = 40


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """The current verdict of one evaluator, or the reason why it has none."""

    about: str
    score: float
    reason: str


class InspectorSession:
    """An episode that a person plays. Without a task, the person can explore the sites."""

    def __init__(self, tasks: TaskSet, browser: BrowserOptions, seed: int) -> None:
        self.tasks, self._browser = tasks, browser
        self.task: Task | None = None
        self.answer = ""
        self.episode: Episode = episodes().open(world(seed))
        self._cached: tuple[int, str, list[EvaluatorStatus]] | None = None
        self._lock = asyncio.Lock()

    def begin(self, task: Task | None) -> None:
        """Begin a new episode with this task. With None, there is no task and the world is reset."""
        episodes().close(self.episode)
        self.task, self.answer, self._cached = task, "", None
        self.episode = episodes().open(world_of(task) if task else self.episode.world)

    def find(self, text: str) -> list[Task]:
        """Return some tasks whose id and goal contain all words of a text."""
        words = text.lower().split()
        tasks = self.tasks.sample()
        matches = (task for task in tasks if all(word in f"{task.id} {task.goal}".lower() for word in words))
        return [task for task, _ in zip(matches, range(_MAX_RESULTS), strict=False)]

    async def evaluate(self, recorder: RecordingProxy) -> list[EvaluatorStatus]:
        """Return the status of each evaluator. It is cached until the next request or answer."""
        async with self._lock:
            if self.task is None:
                return []
            if self._cached is None or self._cached[:2] != (recorder.count, self.answer):
                self._cached = recorder.count, self.answer, await self._evaluate(self.task, recorder)
            return self._cached[2]

    async def _evaluate(self, task: Task, recorder: RecordingProxy) -> list[EvaluatorStatus]:
        read = _BrowserReader(self._browser, self.episode, recorder.url)
        episode = finished(
            task, self.episode, answer=self.answer, url=recorder.url, read=read, requests=list(recorder.entries)
        )
        try:
            return [await _status_of(evaluator, episode) for evaluator in evaluators_for(task)]
        finally:
            await read.close()


class _BrowserReader:
    """Reads pages in a separate browser session, which it opens on first use. A `ReadPage`."""

    def __init__(self, browser: BrowserOptions, episode: Episode, current_url: str) -> None:
        self._browser, self._episode, self._current_url = browser, episode, current_url
        self._session: BrowserSession | None = None

    async def __call__(self, url: str | None, script: str = "") -> str:
        return await loop.run_async(self._read(url or self._current_url, script))

    async def _read(self, url: str, script: str) -> str:
        if self._session is None:
            options = SessionOptions(self._browser, headers={HEADER: self._episode.token})
            self._session = await BrowserSession.open(options, BACKENDS["js"]())
        return await self._session.read(url, script)

    async def close(self) -> None:
        if self._session is not None:
            await loop.run_async(self._session.close())


async def _status_of(evaluator: Evaluator, episode: FinishedEpisode) -> EvaluatorStatus:
    about = _LABELS.get(type(evaluator), type(evaluator).__name__)
    try:
        verdict = await evaluator(episode)
    except AgentGymError as error:  # for example, no browser is installed
        verdict = Verdict(0.0, f"cannot be judged: {error}")
    return EvaluatorStatus(about, verdict.score, verdict.reason)


def total_score(statuses: Sequence[EvaluatorStatus]) -> float:
    """Return the product of all scores, as WebArena does; 0 without evaluators."""
    score = 1.0 if statuses else 0.0
    for status in statuses:
        score *= status.score
    return score


def task_summary(task: Task | None) -> dict[str, Any] | None:
    """Return the fields of a task that the page shows."""
    if task is None:
        return None
    data = task.data
    fields = {name: data[name] for name in ("template", "world", "kind", "difficulty", "sites")}
    return {"id": task.id, "goal": task.goal, "group": task.group, "split": task.split, **fields}


_LABELS: Mapping[type, str] = {
    Says: "The answer",
    ExactAnswer: "The answer",
    AnswerIncludes: "The answer",
    NotAchievable: "The answer",
    EndsOn: "The last page",
    PageHolds: "The content of a page",
    QueryReturns: "The data",
    OnlyChanged: "The changes, and no others",
    Requested: "The requests",
}
"""Labels of the evaluators on the page."""
