"""What an evaluator is, and what it may look at when an episode has ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Verdict(NamedTuple):
    """`score` from 0 to 1, and `reason`: in a sentence, what was missing (empty if nothing was)."""

    score: float
    reason: str = ""


class ReadPage(Protocol):
    """Reads pages for evaluators."""

    async def __call__(self, url: str | None, script: str = "") -> str:
        """What the JavaScript expression `script` is worth, as text, on the page at `url`; "" if it raises.

        Without a script, the HTML of the whole page. `url=None` is the page that the agent ended on, as it is, which
        is neither reloaded nor left; any other is opened in a tab of its own beside it, with the agent's cookies, and
        closed again. Raises EnvError if the page cannot be had, InvalidAction if its host may not be visited.
        """


class Judge(Protocol):
    """Says whether two texts mean the same."""

    async def same_meaning(self, question: str, reference: str, answer: str) -> bool:
        """Whether an answer to a question means what the reference does. Raises EnvError if the judge fails."""

    async def same_reason(self, task: str, reason: str, report: str) -> bool:
        """Whether a report gives the reason (even implicitly) for which a task cannot be done. Raises EnvError."""


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    """An episode that has ended, as its evaluators see it.

    `requests` are what the agent's browser asked for, as HAR entries (HTTP Archive 1.2: request with method, url,
    headers, postData; response with status and headers), in order. `database` is the site's own, for state evaluators,
    and `before` the same as it was at the beginning; both may be read on the thread that evaluates.
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
    """The addresses of the sites by their names, such as "shopping"."""


class Evaluator(Protocol):
    """Scores one side of an episode."""

    def __call__(self, episode: FinishedEpisode) -> Awaitable[Verdict]:
        """The verdict. Raises EnvError if a machine fails, UsageError if something it needs was not configured."""


async def score_all(evaluators: Sequence[Evaluator], episode: FinishedEpisode) -> Verdict:
    """The product of all scores, as WebArena has it, with the reason of the first that was not met."""
    score, reasons = 1.0, []
    for evaluator in evaluators:
        verdict = await evaluator(episode)
        score *= verdict.score
        reasons += [verdict.reason] if verdict.score < 1.0 else []
        if score == 0.0:
            break
    return Verdict(score, next(iter(reasons), ""))
