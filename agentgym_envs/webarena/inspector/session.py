"""`InspectorSession`: the task on it, and how it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.errors import AgentGymError
from agentgym_envs.task import Task, TaskSet
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, Verdict
from agentgym_envs.webarena.inspector.watch import Watch
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.world import world
from agentgym_envs.webarena.tasks.scoring import evaluators_for, finished, world_of

_MOST_FOUND = 40


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """One evaluator's verdict, or why it cannot give one."""

    about: str
    score: float
    reason: str


class InspectorSession:
    """An episode that a person plays. Without a task, the sites are only there to be looked at."""

    def __init__(self, tasks: TaskSet, browser: BrowserOptions, seed: int) -> None:
        self.tasks, self._browser = tasks, browser
        self.task: Task | None = None
        self.answer = ""
        self.episode: Episode = episodes().open(world(seed))
        self._judged: tuple[int, str, list[EvaluatorStatus]] | None = None
        self._lock = asyncio.Lock()

    def begin(self, task: Task | None) -> None:
        """Put another task on the desk, or the same anew; with None, only the world anew."""
        episodes().close(self.episode)
        self.task, self.answer, self._judged = task, "", None
        self.episode = episodes().open(world_of(task) if task else self.episode.world)

    def find(self, text: str) -> list[Task]:
        """Some tasks whose goal or id holds all words of a text."""
        words = text.lower().split()
        every = self.tasks.sample()
        found = (task for task in every if all(word in f"{task.id} {task.goal}".lower() for word in words))
        return [task for task, _ in zip(found, range(_MOST_FOUND), strict=False)]

    async def standings(self, watch: Watch) -> list[EvaluatorStatus]:
        """What each evaluator says now. They are asked again when a page was asked for or the answer changed."""
        async with self._lock:
            if self.task is None:
                return []
            if self._judged is None or self._judged[:2] != (watch.seen, self.answer):
                self._judged = watch.seen, self.answer, await self._judge(self.task, watch)
            return self._judged[2]

    async def _judge(self, task: Task, watch: Watch) -> list[EvaluatorStatus]:
        reader = _Reading(self._browser, self.episode, watch.url)
        ended = finished(
            task, self.episode, answer=self.answer, url=watch.url, read=reader, requests=list(watch.entries)
        )
        try:
            return [await _standing(evaluator, ended) for evaluator in evaluators_for(task)]
        finally:
            await reader.close()


class _Reading:
    """Reads pages in a browser of its own, opened when the first is asked for. A `Reader`."""

    def __init__(self, browser: BrowserOptions, episode: Episode, here: str) -> None:
        self._browser, self._episode, self._here = browser, episode, here
        self._session: BrowserSession | None = None

    async def __call__(self, url: str | None, script: str = "") -> str:
        return await loop.run_async(self._read(url or self._here, script))

    async def _read(self, url: str, script: str) -> str:
        if self._session is None:
            options = SessionOptions(self._browser, headers={HEADER: self._episode.token})
            self._session = await BrowserSession.open(options, BACKENDS["js"]())
        return await self._session.read(url, script)

    async def close(self) -> None:
        if self._session is not None:
            await loop.run_async(self._session.close())


async def _standing(evaluator: Evaluator, ended: FinishedEpisode) -> EvaluatorStatus:
    about = _ABOUT.get(type(evaluator).__name__, type(evaluator).__name__)
    try:
        verdict = await evaluator(ended)
    except AgentGymError as error:  # such as no browser for a page's contents
        verdict = Verdict(0.0, f"cannot be judged: {error}")
    return EvaluatorStatus(about, verdict.score, verdict.reason)


def score_of(standings: Sequence[EvaluatorStatus]) -> float:
    """The product, as WebArena has it."""
    score = 1.0 if standings else 0.0
    for standing in standings:
        score *= standing.score
    return score


def described(task: Task | None) -> dict[str, Any] | None:
    """A task as the page shows it."""
    if task is None:
        return None
    data = task.data
    about = {name: data[name] for name in ("template", "world", "kind", "difficulty", "sites")}
    return {"id": task.id, "goal": task.goal, "group": task.group, "split": task.split, **about}


_ABOUT = {
    "Says": "The answer",
    "ExactAnswer": "The answer",
    "AnswerIncludes": "The answer",
    "NotAchievable": "The answer",
    "EndsOn": "The last page",
    "PageHolds": "What a page shows",
    "Rows": "The data",
    "OnlyChanged": "What changed, and nothing else",
    "Requested": "What was requested",
}
