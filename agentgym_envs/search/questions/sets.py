"""Sets of questions by name: the embedded one, a folder of published files, a file of one's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TaskTableError, UsageError
from agentgym_envs.search.questions.flashrag import FlashRagQuestions, Rows
from agentgym_envs.task import Task, TaskSet, TaskTable

EMBEDDED = "embedded"


def open_questions(spec: str | os.PathLike[str] | TaskSet) -> TaskSet:
    """A set of questions, which all of a process share.

    Args:
        spec: "embedded"; a folder with FlashRAG's files; a file with one question a line (`.jsonl`), be it a task (id,
            split, group, goal, and data with `answers` and, if known, `passages` and `queries`) or in FlashRAG's form
            (question, golden_answers), which makes it of the split test; a set of tasks passes through.

    Raises:
        UsageError: it is none of these.
        TaskTableError: the file holds something else.
    """
    if isinstance(spec, TaskSet):
        return spec
    if spec == EMBEDDED:
        return _embedded()
    path = Path(spec).resolve() if isinstance(spec, str | os.PathLike) and str(spec) else None
    if path is not None and path.is_dir():
        return _published(path)
    if path is not None and path.is_file() and path.suffix == ".jsonl":
        return _own(path)
    raise UsageError(
        f"there are no questions {str(spec)!r:.200}; give {EMBEDDED!r}, a folder with FlashRAG's files "
        "(nq/test.jsonl and so on), or a .jsonl file with one question a line"
    )


@lru_cache(maxsize=1)
def _embedded() -> TaskSet:
    from agentgym_envs.search.questions.embedded import EmbeddedQuestions

    return EmbeddedQuestions()


_published = lru_cache(maxsize=16)(FlashRagQuestions)


@lru_cache(maxsize=16)
def _own(path: Path) -> TaskTable:
    with open(path, "rb") as file:
        first = next((line for line in file if line.strip()), b"")
    if b'"golden_answers"' in first:
        return _in_flashrags_form(path)
    table = TaskTable.from_jsonl(path)
    for task in table:
        if wrong := _amiss(task.data):
            raise TaskTableError(f"{path}: the data of the task {task.id!r} {wrong}")
    return table


def _in_flashrags_form(path: Path) -> TaskTable:
    rows = Rows(path)
    questions = [rows.read(place) for place in range(len(rows))]
    tasks = [Task(f"{path.stem}/{place}", "test", path.stem, *question) for place, question in enumerate(questions)]
    return TaskTable(path.stem, 1, tasks)


def _amiss(data: Mapping[str, Any]) -> str:
    """What is wrong with a question's data, "" if nothing."""
    if not _are_texts(data.get("answers")) or not any(map(str.strip, data["answers"])):
        return "must hold 'answers', a list of texts of which one at least is not empty"
    wrong = [key for key in ("passages", "queries") if not _are_texts(data.get(key, []))]
    return f"may hold {wrong[0]!r} as a list of texts only" if wrong else ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
