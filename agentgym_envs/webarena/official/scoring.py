"""Evaluators for the scoring rules of a task file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from agentgym_envs.errors import TaskTableError, UsageError
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.judge import CannotBeDone, MeansTheSame
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes, ExactAnswer
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.evaluators.verified import Verified, find_python
from agentgym_envs.webarena.official.helpers import HELPERS
from agentgym_envs.webarena.official.sites import SiteAddresses
from agentgym_envs.webarena.official.tasks import NOT_ACHIEVABLE, is_verified

ANSWER_FORM = """\
The answer of `stop` is a JSON object with three values: "task_type", which is "RETRIEVE" if the task asks for \
something, "MUTATE" if it has something made, changed or deleted, and "NAVIGATE" if it has a page shown; "status", \
which is "SUCCESS" or, if the task cannot be done, "NOT_FOUND_ERROR", "ACTION_NOT_ALLOWED_ERROR", \
"PERMISSION_DENIED_ERROR", "DATA_VALIDATION_ERROR" or "UNKNOWN_ERROR"; and "retrieved_data", a list of what was asked \
for, null in the other two kinds of tasks. For example: stop [{"task_type": "RETRIEVE", "status": "SUCCESS", \
"retrieved_data": [12]}]"""
"""The instructions for answers in tasks of webarena-verified."""


def evaluators_of(task: Task, sites: SiteAddresses) -> list[Evaluator]:
    """The evaluators of a task, which must all be satisfied. Raises TaskTableError for an unknown scoring rule."""
    if is_verified(task):
        return [Verified(int(task.id.rpartition("/")[2]))]
    config = sites.fill(task.data["eval"])
    try:
        return [evaluator for kind in config["eval_types"] for evaluator in _KINDS[kind](config)]
    except (KeyError, TypeError, AttributeError, UsageError) as error:
        raise TaskTableError(f"the task {task.id!r} cannot be scored: {type(error).__name__}: {error}") from None


@lru_cache(maxsize=8)  # all environments of one file share a table
def check_scoring(tasks: TaskTable) -> None:
    """Raise TaskTableError if a task cannot be scored, UsageError without the package that scores it."""
    for task in tasks:
        evaluators_of(task, SiteAddresses())
    if any(map(is_verified, tasks)):
        find_python()


def _answer(config: Mapping[str, Any]) -> list[Evaluator]:
    return [_RULES[rule](value, config) for rule, value in config["reference_answers"].items()]


def _fuzzy(reference: str | list[str], config: Mapping[str, Any]) -> Evaluator:
    if reference == NOT_ACHIEVABLE:
        return CannotBeDone(config.get("string_note", ""))
    return MeansTheSame([reference] if isinstance(reference, str) else reference)


def _address(config: Mapping[str, Any]) -> list[Evaluator]:
    if config.get("url_note", _ONLY_RULE) != _ONLY_RULE:
        raise UsageError(f"no rule for addresses is called {config['url_note']!r}")
    return [EndsOn(config["reference_url"], below=True)]


def _pages(config: Mapping[str, Any]) -> list[Evaluator]:
    return [PageHolds.from_check(check, HELPERS) for check in config["program_html"]]


_ONLY_RULE = "GOLD in PRED"
_KINDS: Mapping[str, Callable[[Mapping[str, Any]], list[Evaluator]]] = {
    "string_match": _answer,
    "url_match": _address,
    "program_html": _pages,
}
_RULES: Mapping[str, Callable[[Any, Mapping[str, Any]], Evaluator]] = {
    "exact_match": lambda reference, config: ExactAnswer(reference),
    "must_include": lambda references, config: AnswerIncludes(references),
    "fuzzy_match": _fuzzy,
}
