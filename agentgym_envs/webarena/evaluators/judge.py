"""Evaluators of answers that rules cannot compare, and the language model that judges these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.chat_judge import API_KEY, BASE_URL, MODEL, ChatModelJudge
from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Judge, Verdict
from agentgym_envs.webarena.evaluators.strings import shown
from agentgym_envs.webarena.evaluators.values import clean, same_value

_SAME_MEANING = """\
Does "answer" answer "question" with the same content as "reference"? Other words, another order, more detail and \
another way to write numbers, dates or units are fine. Contradictions, missing parts and several answers of which one \
fits are not: the verdict is then "no". N/A means that the task cannot be done."""
_SAME_REASON = """\
"task" cannot be done, for the reason in "reference". Does "answer", a report on an attempt, give that reason, at \
least by implication? If it gives another one, claims to have done the task, or only says that it failed, the verdict \
is "no"."""


@dataclass(frozen=True, slots=True)
class MeansTheSame:
    """The answer means the same as each reference. The judge is asked only where a rule finds no match.

    Source: fuzzy_match of WebArena (arXiv 2307.13854, section 3.2), with prompts of this suite.
    """

    references: Sequence[str]

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        if not clean(episode.answer):
            return Verdict(0.0, "there is no answer")
        for reference in self.references:
            if same_value(reference, episode.answer):
                continue
            judge = _require(episode.judge)
            if not await judge.same_meaning(episode.intent, reference, episode.answer):
                return Verdict(0.0, f"the answer {shown(episode.answer)} does not mean {shown(reference)}")
        return Verdict(1.0)


@dataclass(frozen=True, slots=True)
class CannotBeDone:
    """The answer is N/A, or gives the reason why the task cannot be done."""

    reason: str

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        if same_value("N/A", episode.answer):
            return Verdict(1.0)
        if not clean(episode.answer):
            return Verdict(0.0, "there is no answer, where N/A was to be given")
        if self.reason and await _require(episode.judge).same_reason(episode.intent, self.reason, episode.answer):
            return Verdict(1.0)
        return Verdict(0.0, f"the answer {shown(episode.answer)} is neither N/A nor the reason: {self.reason}")


class ChatJudge(ChatModelJudge):
    """A language model that judges answers of web agents."""

    agents = "web agents"

    async def same_meaning(self, question: str, reference: str, answer: str) -> bool:
        """Ask the model, as in `Judge`."""
        return await self.ask(_SAME_MEANING, {"question": question, "reference": reference}, answer)

    async def same_reason(self, task: str, reason: str, report: str) -> bool:
        """Ask the model, as in `Judge`."""
        return await self.ask(_SAME_REASON, {"task": task, "reference": reason}, report)


def _require(judge: Judge | None) -> Judge:
    if judge is None:
        raise UsageError(
            f"this task's answer is judged by a language model, and none is configured: set {BASE_URL} (of an "
            f"OpenAI-compatible server) and {MODEL}, and {API_KEY} if it needs one"
        )
    return judge
