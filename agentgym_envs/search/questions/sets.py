"""Sets of questions by name: the embedded one, a folder of published files, or a file of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TaskTableError, UsageError
from agentgym_envs.search.questions.flashrag import FlashRagQuestions, QuestionFile
from agentgym_envs.task import Task, TaskSet, TaskTable

EMBEDDED = "embedded"


def open_questions(spec: str | os.PathLike[str] | TaskSet, version: int | None = None) -> TaskSet:
    """Open a set of questions. All callers in a process share it.

    Args:
        spec: "embedded"; a folder with FlashRAG's files; a `.jsonl` file with one question a line; or a set of tasks,
            which is returned. A line of a file is a task (id, split, group, goal, and data with `answers` and, if
            known, `passages` and `queries`) or has FlashRAG's form (question, golden_answers). Questions in FlashRAG's
            form are in the test split.
        version: a version of the embedded questions; by default the newest.

    Raises:
        UsageError: `spec` is something else, or there is no such version.
        TaskTableError: the file is malformed.
    """
    if isinstance(spec, TaskSet) and version is None:
        return spec
    if spec == EMBEDDED:
        return _embedded(version)
    if version is not None:
        raise UsageError(
            f"table_version chooses among the embedded questions; remove it, or questions={str(spec)!r:.80}"
        )
    path = Path(spec).resolve() if isinstance(spec, str | os.PathLike) and str(spec) else None
    if path is not None and path.is_dir():
        return _published(path)
    if path is not None and path.is_file() and path.suffix == ".jsonl":
        return _from_file(path)
    raise UsageError(
        f"there are no questions {str(spec)!r:.200}; give {EMBEDDED!r}, a folder with FlashRAG's files "
        "(nq/test.jsonl and so on), or a .jsonl file with one question a line"
    )


@lru_cache(maxsize=4)
def _embedded(version: int | None) -> TaskSet:
    from agentgym_envs.search.questions.embedded import VERSION, EmbeddedQuestions

    return EmbeddedQuestions(version=VERSION if version is None else version)


_published = lru_cache(maxsize=16)(FlashRagQuestions)


@lru_cache(maxsize=16)
def _from_file(path: Path) -> TaskTable:
    with open(path, "rb") as file:
        first = next((line for line in file if line.strip()), b"")
    if b'"golden_answers"' in first:
        return _from_flashrag_file(path)
    table = TaskTable.from_jsonl(path)
    for task in table:
        if wrong := _find_error(task.data):
            raise TaskTableError(f"{path}: the data of the task {task.id!r} {wrong}")
    return table


def _from_flashrag_file(path: Path) -> TaskTable:
    rows = QuestionFile(path)
    questions = [rows.read(index) for index in range(len(rows))]
    tasks = [Task(f"{path.stem}/{index}", "test", path.stem, *question) for index, question in enumerate(questions)]
    return TaskTable(path.stem, 1, tasks)


def _find_error(data: Mapping[str, Any]) -> str:
    """Return the error in a question's data, or "" if it is valid."""
    if not _are_strings(data.get("answers")) or not any(map(str.strip, data["answers"])):
        return "must hold 'answers', a list of strings with at least one that is not empty"
    wrong = [key for key in ("passages", "queries") if not _are_strings(data.get(key, []))]
    return f"may hold {wrong[0]!r} only as a list of strings" if wrong else ""


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
