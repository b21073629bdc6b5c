"""The published sets of questions, from the user's files, with AgentGym's numbering.

The files are FlashRAG's, in its folders: `nq/test.jsonl`, `hotpotqa/dev.jsonl` and so on (`PUBLISHED`). Each line is a
JSON object with `id`, `question` and `golden_answers`.

Source: FlashRAG (arXiv 2405.13576), https://huggingface.co/datasets/RUC-NLPIR/FlashRAG_datasets; the numbering is that
of AgentGym's server at commit 3ef9235.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import random
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym_envs.errors import TaskTableError, UnknownTask, UsageError
from agentgym_envs.task import SPLITS, Split, Task, TaskSet, check_count, check_selection, plain_number

NAME, VERSION = "searchqa", 1
_CHUNK = 1 << 24


class DatasetPart(NamedTuple):
    """A file of a data set; its lines have the task indices `first` to `first + length - 1`."""

    name: str
    split: Split
    first: int
    length: int
    file: str


_FILES: tuple[tuple[str, Split, str, int], ...] = (
    ("nq", "test", "test", 3_610),
    ("triviaqa", "test", "test", 11_313),
    ("popqa", "test", "test", 14_267),
    ("hotpotqa", "test", "dev", 7_405),
    ("2wikimultihopqa", "test", "dev", 12_576),
    ("musique", "test", "dev", 2_417),
    ("bamboogle", "test", "test", 125),
    ("nq", "train", "train", 79_168),
    ("hotpotqa", "train", "train", 90_447),
)


def _number_files() -> Iterator[DatasetPart]:
    first = 0
    for name, split, file, length in _FILES:
        yield DatasetPart(name, split, first, length, f"{name}/{file}.jsonl")
        first += length


PUBLISHED = tuple(_number_files())
"""Test questions of seven data sets, then training questions of two."""
SIZE = sum(part.length for part in PUBLISHED)


class Survey(NamedTuple):
    """The state of a file: its rows, the number published, their task indices, and the problem ("" if none)."""

    name: str
    split: Split
    file: str
    rows: int
    published: int
    first: int
    last: int
    problem: str


class FlashRagQuestions(TaskSet):
    """The tasks `searchqa/<index>`; groups are data sets.

    Questions of missing files, and beyond the end of short files, do not exist. A file is read when it is first needed,
    and only the offsets of its lines are kept. A task's `data` holds `answers`, `passages` (always empty), `queries`
    (the question) and `source_id`, the id in the file.

    Reading a malformed line raises TaskTableError; `survey` checks all lines.
    """

    name, version = NAME, VERSION

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Find the files. Raises UsageError if the folder holds none of them."""
        self.folder = Path(folder).resolve()
        self._files = {part: QuestionFile(path) for part in PUBLISHED if (path := self.folder / part.file).is_file()}
        if not self._files:
            raise UsageError(_no_files(self.folder))

    def get(self, task_id: str) -> Task:
        """Return the task of that id. Raises UnknownTask, which names the file that would hold the question."""
        head, _, number = task_id.partition("/") if isinstance(task_id, str) else ("", "", "")
        index = plain_number(number)
        if head != NAME or not 0 <= index < SIZE:
            raise UnknownTask(f"there is no task {task_id!r:.120}; ids are '{NAME}/<index>' with an index below {SIZE}")
        part = next(part for part in PUBLISHED if index < part.first + part.length)
        row, count = index - part.first, self._count(part)
        if row >= count:
            problem = f"has only {count} rows" if part in self._files else "does not exist"
            raise UnknownTask(f"{task_id!r} is row {row + 1} of {part.file}, which {problem}")
        return self._task(part, row)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Return the task at index `key` modulo the number of tasks in that split and those groups."""
        parts = self._select(split, groups)
        return self._at(parts, key % self._total(parts))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` distinct tasks, sorted by index and chosen by `seed`; by default all tasks."""
        parts = self._select(split, groups)
        total = self._total(parts)
        chosen = sorted(random.Random(seed).sample(range(total), check_count(self.name, count, total)))
        return [self._at(parts, index) for index in chosen]

    def counts(self) -> dict[str, dict[Split, int]]:
        """Return the number of tasks of each group in each split."""
        found: dict[str, dict[Split, int]] = {group: dict.fromkeys(SPLITS, 0) for group in self.groups}
        for part in self._files:
            found[part.name][part.split] += self._count(part)
        return found

    @property
    def groups(self) -> tuple[str, ...]:
        """Data sets with at least one file, in AgentGym's order."""
        return tuple(dict.fromkeys(part.name for part in self._files))

    @property
    def digest(self) -> str:
        """SHA-256 of the files."""
        whole = hashlib.sha256(f"{self.name} {self.version}".encode())
        for part, rows in self._files.items():
            whole.update(f"\n{part.file} {_file_digest(rows.path)}".encode())
        return whole.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)

    def _count(self, part: DatasetPart) -> int:
        """Return the number of rows. Raises TaskTableError if there are more than published."""
        if part not in self._files:
            return 0
        count = len(self._files[part])
        if count > part.length:
            raise TaskTableError(
                f"{part.file} has {count} rows; {part.length} are published, and more would overlap with the "
                "numbers of another set"
            )
        return count

    def _total(self, parts: Sequence[DatasetPart]) -> int:
        return sum(map(self._count, parts))

    def _select(self, split: str | None, groups: Sequence[str] | None) -> list[DatasetPart]:
        check_selection(self, split, groups)
        parts = [p for p in self._files if split in (None, p.split) and (groups is None or p.name in groups)]
        if not self._total(parts):
            wanted = [p.file for p in PUBLISHED if split in (None, p.split) and (groups is None or p.name in groups)]
            where = f"; they would be in {', '.join(wanted)}" if wanted else ", and none are published"
            chosen = "" if groups is None else f" of {', '.join(groups)}"
            raise UnknownTask(f"there are no questions{chosen} of the split {split!r}{where}")
        return parts

    def _at(self, parts: Sequence[DatasetPart], index: int) -> Task:
        for part in parts:
            if index < self._count(part):
                return self._task(part, index)
            index -= self._count(part)
        raise AssertionError("the index is beyond the rows")

    def _task(self, part: DatasetPart, row: int) -> Task:
        question, data = self._files[part].read(row)
        return Task(f"{NAME}/{part.first + row}", part.split, part.name, question, data)


class QuestionFile:
    """The non-blank lines of a memory-mapped JSONL file, found by the offsets of their bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"{path.parent.name}/{path.name}"
        """The name in error messages, without the user's folders."""

    def __len__(self) -> int:
        return len(self._offsets)

    def read(self, row: int) -> tuple[str, dict[str, Any]]:
        """Read a question and its task's data. Raises TaskTableError, with file and line, for a malformed row."""
        begin, end = self._offsets[row].tolist()
        try:
            return _question(json.loads(self._bytes[begin:end]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            line = self._bytes[:begin].count(b"\n") + 1
            raise TaskTableError(
                f"{self.name}:{line} is not a question (id, question, golden_answers): {type(error).__name__}: {error}"
            ) from None

    @cached_property
    def _bytes(self) -> mmap.mmap | bytes:
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except OSError as error:
            raise TaskTableError(f"{self.name} cannot be read: {error.strerror}") from None

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int64]:
        """Begin and end of each line."""
        text = np.frombuffer(self._bytes, np.uint8)
        breaks = [np.flatnonzero(text[at : at + _CHUNK] == ord("\n")) + at for at in range(0, len(text), _CHUNK)]
        ends = np.concatenate([*breaks, [len(text)]]).astype(np.int64)
        offsets = np.stack([np.concatenate([[0], ends[:-1] + 1]), ends], axis=1)
        short = np.flatnonzero(ends - offsets[:, 0] < len("{}"))
        blank = [line for line in short.tolist() if not self._bytes[offsets[line, 0] : offsets[line, 1]].strip()]
        return np.delete(offsets, blank, axis=0)


def survey(folder: str | os.PathLike[str]) -> list[Survey]:
    """Check each published file, reading every line. Raises UsageError if the folder holds none of them."""
    questions = FlashRagQuestions(folder)
    return [_survey_file(questions, part) for part in PUBLISHED]


def _survey_file(questions: FlashRagQuestions, part: DatasetPart) -> Survey:
    rows, problem = 0, "does not exist"
    if part in questions._files:
        rows, problem = _check(questions._files[part], part.length)
    last = part.first + part.length - 1
    return Survey(part.name, part.split, part.file, rows, part.length, part.first, last, problem)


def _check(rows: QuestionFile, published: int) -> tuple[int, str]:
    """Return the number of rows of a file and its problem, worded to follow the file's name."""
    try:
        count = len(rows)
    except TaskTableError as error:
        return 0, str(error).removeprefix(f"{rows.name} ")
    if count > published:
        return count, f"has {count - published} more rows than are published, so it cannot be used"
    wrong = [text for row in range(count) if (text := _find_error(rows, row))]
    if wrong:
        return count, f"has {len(wrong)} lines that are not questions; the first: {wrong[0]}"
    return count, f"has {published - count} fewer rows than are published" if count < published else ""


def _find_error(rows: QuestionFile, row: int) -> str:
    try:
        rows.read(row)
    except TaskTableError as error:
        return str(error)
    return ""


def _question(row: Any) -> tuple[str, dict[str, Any]]:
    """Convert a row to a goal and data. Raises ValueError, KeyError or TypeError if it is malformed."""
    question, answers = row["question"].strip(), row["golden_answers"]
    answers = [answers] if isinstance(answers, str) else answers
    if not question:
        raise ValueError("the question is empty")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ValueError("golden_answers must be a list of strings")
    if not any(map(str.strip, answers)):
        raise ValueError("there is no answer")
    "".join([question, *answers]).encode()  # raises for a lone surrogate, which JSON can hold and UTF-8 cannot
    question = question if question.endswith("?") else f"{question}?"  # as Search-R1 does
    return question, {"answers": answers, "passages": [], "queries": [question], "source_id": str(row.get("id", ""))}


def _no_files(folder: Path) -> str:
    """Return the error message for a folder that holds none of the files."""
    files = f"{PUBLISHED[0].file}, {PUBLISHED[3].file} and so on"
    if not folder.is_dir():
        return f"there is no folder {folder}; give one that holds FlashRAG's files ({files})"
    hint = ""
    if found := next(folder.rglob("*.parquet"), None):
        hint = f"; {found.name} is parquet: pandas.read_parquet(FILE).to_json(FILE, orient='records', lines=True)"
    return f"{folder} holds none of FlashRAG's files ({files}){hint}"


def _file_digest(path: Path) -> str:
    state = path.stat()
    return _digest_of(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest_of(path: Path, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
