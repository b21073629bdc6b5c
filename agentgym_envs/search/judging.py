"""The language model that judges long answers, and how far it agrees with exact match."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from agentgym_envs.chat_judge import API_KEY, BASE_URL, MODEL, ChatModelJudge
from agentgym_envs.core import describe
from agentgym_envs.errors import EnvError, UsageError

JUDGE = "judge"
"""The metric of answers that a language model compares."""
VERSION = "agentgym-answer-1"
"""The version of the prompt. Verdicts of different versions are not comparable."""
_QUESTION = """\
Is "answer" a right answer to "question"? The accepted answers are in "references"; each of them alone is right. Other \
words, more detail, another language and other ways to write numbers, dates, units and names are fine, and so is an \
explanation around the answer. The verdict is "no" if the answer contradicts all references, leaves out what the \
question asks for, names several candidates without choosing one, or does not commit itself."""


class Judgement(NamedTuple):
    """A verdict, and what `info` records about it: model, version of the prompt, and the prompt itself."""

    correct: bool
    record: dict[str, Any]


class AnswerJudge(ABC):
    """Decides whether an answer to a question is right."""

    @abstractmethod
    async def judge(self, question: str, answers: Sequence[str], answer: str) -> Judgement:
        """Compare an answer with the accepted ones. Raises EnvError if there is no verdict."""


class ChatAnswerJudge(ChatModelJudge, AnswerJudge):
    """A language model behind an OpenAI-compatible server, with a prompt of this suite."""

    agents = "agents that answer questions by searching"

    async def judge(self, question: str, answers: Sequence[str], answer: str) -> Judgement:
        """Ask the model. An empty answer is wrong without asking."""
        context = {"question": question, "references": list(answers)}
        correct = bool(answer.strip()) and await self.ask(_QUESTION, context, answer)
        prompt = [message["content"] for message in self.messages(_QUESTION, context, answer)]
        return Judgement(correct, {"model": self.model, "version": VERSION, "correct": correct, "prompt": prompt})


def require_judge(given: AnswerJudge | None) -> AnswerJudge:
    """Return the judge that was given, or that of the environment variables. Raises UsageError without one."""
    judge = given or ChatAnswerJudge.from_environment()
    if judge is None:
        raise UsageError(
            f"these answers are judged by a language model, and none is configured: set {BASE_URL} (of an "
            f"OpenAI-compatible server) and {MODEL}, and {API_KEY} if it needs one; or pass judge=..., or another "
            "metric, such as metric='em'"
        )
    return judge


async def judge_answer(judge: AnswerJudge, question: str, answers: Sequence[str], answer: str) -> Judgement:
    """Judge an answer. Any exception of the judge becomes an infrastructure error."""
    try:
        return await judge.judge(question, answers, answer)
    except (EnvError, UsageError):
        raise
    except Exception as error:
        raise EnvError(f"the judge failed: {describe(error)}") from error


def wait_for(judging: Coroutine[Any, Any, Judgement]) -> Judgement:
    """Run to the end in a thread of its own, as this thread may already run an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, judging).result()
