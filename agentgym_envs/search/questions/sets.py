"""Sets of questions by name: the embedded one, a folder of published files, or a file of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TaskTableError, UsageError
from agentgym_envs.search.questions.flashrag import FlashRagQuestions, QuestionFile
from agentgym_envs.search.questions.layouts import LAYOUTS, read_table
from agentgym_envs.task import Task, TaskSet, TaskTable

EMBEDDED = "embedded"
_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv")


def open_questions(spec: str | os.PathLike[str] | TaskSet, version: int | None = None) -> TaskSet:
    """Open a set of questions. All callers in a process share it.

    Args:
        spec: "embedded"; a folder with FlashRAG's files; a `.jsonl` file with one question a line, a `.json` file with
            an array, or a `.csv` or `.tsv` file; or a set of tasks, which is returned. A question in a file is a task
            (id, split, group, goal, and data with `answers` and, if known, `passages`, `queries` and `scorer`) or has
            one of the `LAYOUTS`: FlashRAG's, FRAMES's, SimpleQA's or BrowseComp's. Those are in the test split.
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
    if path is not None and path.is_file() and path.suffix in _SUFFIXES:
        return _from_file(path)
    raise UsageError(
        f"there are no questions {str(spec)!r:.200}; give {EMBEDDED!r}, a folder with FlashRAG's files "
        "(nq/test.jsonl and so on), or a .jsonl file with one question a line (or a .json, .csv or .tsv file)"
    )


def facts_version(version: int | None) -> int | None:
    """The version of the facts, and so of the corpus, for a version of the embedded questions; None is the newest."""
    from agentgym_envs.search.questions.embedded import FACTS_OF

    return None if version is None else FACTS_OF[version]


@lru_cache(maxsize=4)
def _embedded(version: int | None) -> TaskSet:
    from agentgym_envs.search.questions.embedded import VERSION, EmbeddedQuestions

    return EmbeddedQuestions(version=VERSION if version is None else version)


_published = lru_cache(maxsize=16)(FlashRagQuestions)


@lru_cache(maxsize=16)
def _from_file(path: Path) -> TaskTable:
    table = _read_jsonl(path) if path.suffix == ".jsonl" else read_table(path)
    for task in table:
        if wrong := _find_error(task.data):
            raise TaskTableError(f"{path}: the data of the task {task.id!r} {wrong}")
    return table


def _read_jsonl(path: Path) -> TaskTable:
    with open(path, "rb") as file:
        first = next((line for line in file if line.strip()), b"")
    if b'"golden_answers"' in first:
        return _from_flashrag_file(path)
    others = (layout for layout in LAYOUTS.values() if all(f'"{name}"'.encode() in first for name in layout.columns))
    return TaskTable.from_jsonl(path) if next(others, None) is None else read_table(path)


def _from_flashrag_file(path: Path) -> TaskTable:
    rows = QuestionFile(path)
    questions = [rows.read(index) for index in range(len(rows))]
    tasks = [Task(f"{path.stem}/{index}", "test", path.stem, *question) for index, question in enumerate(questions)]
    return TaskTable(path.stem, 1, tasks)


def scorer_of(tasks: TaskSet) -> str:
    """The metric that the file of a set asks for, by default "em". Raises UsageError if it asks for several."""
    scorers = {task.data.get("scorer", "em") for task in tasks} if isinstance(tasks, TaskTable) else {"em"}
    if len(scorers) > 1:
        raise UsageError(f"{tasks.name!r} has questions for the metrics {', '.join(sorted(scorers))}; choose a metric")
    return str(scorers.pop())


def _find_error(data: Mapping[str, Any]) -> str:
    """Return the error in a question's data, or "" if it is valid."""
    if not _are_strings(data.get("answers")) or not any(map(str.strip, data["answers"])):
        return "must hold 'answers', a list of strings with at least one that is not empty"
    wrong = [key for key in ("passages", "queries") if not _are_strings(data.get(key, []))]
    if wrong:
        return f"may hold {wrong[0]!r} only as a list of strings"
    return "" if isinstance(data.get("scorer", "em"), str) else "may hold 'scorer' only as the name of a metric"


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
