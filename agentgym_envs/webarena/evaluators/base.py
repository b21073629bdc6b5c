"""The interface of evaluators, and the data of an ended episode that they receive."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Verdict(NamedTuple):
    """A `score` from 0 to 1, and a `reason`: one sentence about what was missing (empty if nothing was)."""

    score: float
    reason: str = ""


class ReadPage(Protocol):
    """A function that reads pages for evaluators."""

    async def __call__(self, url: str | None, script: str = "") -> str:
        """Evaluate the JavaScript expression `script` on the page at `url`, and return its value as text.

        Returns "" if the script throws. Without a script, returns the HTML of the whole page. `url=None` is the agent's
        last page, which is neither reloaded nor left. Any other page is opened in a separate tab with the agent's
        cookies.

        Raises:
            EnvError: the page does not load.
            InvalidAction: its host is not allowed.
        """


class Judge(Protocol):
    """Compares the meanings of texts."""

    async def same_meaning(self, question: str, reference: str, answer: str) -> bool:
        """Return True if an answer means the same as the reference. Raises EnvError if the judge fails."""

    async def same_reason(self, task: str, reason: str, report: str) -> bool:
        """Return True if a report gives, even implicitly, the reason why a task cannot be done. Raises EnvError."""


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    """An ended episode, as evaluators receive it.

    Attributes:
        intent: the task's goal.
        answer: the agent's answer, which may be empty.
        url: the last page's URL.
        read: reads pages.
        requests: the requests of the agent's browser in order, as HAR entries (HTTP Archive 1.2: request with method,
            url, headers, postData; response with status and headers).
        database: the sites' database, for state evaluators; it may be read on the evaluating thread.
        before: the database as it was at the beginning.
        judge: the language model that compares meanings, if there is one.
        urls: the addresses of the sites by name, such as "shopping".
    """

    intent: str
    answer: str
    url: str
    read: ReadPage
    requests: Sequence[Mapping[str, Any]] = ()
    database: sqlite3.Connection | None = None
    before: sqlite3.Connection | None = None
    judge: Judge | None = None
    urls: Mapping[str, str] = field(default_factory=dict)


class Evaluator(Protocol):
    """Scores one aspect of an ended episode."""

    def __call__(self, episode: FinishedEpisode) -> Awaitable[Verdict]:
        """Score the episode. Raises EnvError on an infrastructure error, UsageError for missing configuration."""


async def score_all(evaluators: Sequence[Evaluator], episode: FinishedEpisode) -> Verdict:
    """Multiply all scores, as WebArena does. The reason is that of the first evaluator with a score below 1."""
    score, reasons = 1.0, []
    for evaluator in evaluators:
        verdict = await evaluator(episode)
        score *= verdict.score
        reasons += [verdict.reason] if verdict.score < 1.0 else []
        if score == 0.0:
            break
    return Verdict(score, next(iter(reasons), ""))
