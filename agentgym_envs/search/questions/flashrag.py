"""The published sets of questions, from files that the user has, numbered as AgentGym numbers them.

The files are FlashRAG's, in its folders: `nq/test.jsonl`, `hotpotqa/dev.jsonl` and so on (`PUBLISHED`), one JSON
object a line with `id`, `question` and `golden_answers`.

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


class Part(NamedTuple):
    """The indices from `first` on, `length` of them: the lines of one file of a data set."""

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


def _number() -> Iterator[Part]:
    first = 0
    for name, split, file, length in _FILES:
        yield Part(name, split, first, length, f"{name}/{file}.jsonl")
        first += length


PUBLISHED = tuple(_number())
"""Test questions of seven data sets, then the training questions of two."""
SIZE = sum(part.length for part in PUBLISHED)


class Survey(NamedTuple):
    """What is there of a file: its rows, how many are published, their indices, and what is amiss ("" if nothing)."""

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

    Files that are not there, or hold fewer rows than are published, are questions that are not there. A file is read
    when it is first needed, and then only the places of its lines are kept. A task's `data` holds `answers`,
    `passages` (none are known), `queries` (the question) and `source_id`, the id in the file.

    A line that is no question raises TaskTableError when it is asked for; `survey` looks at all.
    """

    name, version = NAME, VERSION

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Raises UsageError if none of the files is in the folder."""
        self.folder = Path(folder).resolve()
        self._rows = {part: Rows(path) for part in PUBLISHED if (path := self.folder / part.file).is_file()}
        if not self._rows:
            raise UsageError(_no_files(self.folder))

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, which names the file where the question would be."""
        head, _, number = task_id.partition("/") if isinstance(task_id, str) else ("", "", "")
        index = plain_number(number)
        if head != NAME or not 0 <= index < SIZE:
            raise UnknownTask(f"there is no task {task_id!r:.120}; ids are '{NAME}/<index>' with an index below {SIZE}")
        part = next(part for part in PUBLISHED if index < part.first + part.length)
        place, there = index - part.first, self._count(part)
        if place >= there:
            has = f"has {there} rows only" if part in self._rows else "is not there"
            raise UnknownTask(f"{task_id!r} is row {place + 1} of {part.file}, which {has}")
        return self._task(part, place)

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task at place `key` modulo the number of tasks of that split and those groups."""
        parts = self._select(split, groups)
        return self._at(parts, key % self._total(parts))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` distinct tasks in the order of their indices, chosen by `seed`; all of them if `count` is None."""
        parts = self._select(split, groups)
        total = self._total(parts)
        places = sorted(random.Random(seed).sample(range(total), check_count(self.name, count, total)))
        return [self._at(parts, place) for place in places]

    def counts(self) -> dict[str, dict[Split, int]]:
        """See `TaskSet.counts`."""
        found: dict[str, dict[Split, int]] = {group: dict.fromkeys(SPLITS, 0) for group in self.groups}
        for part in self._rows:
            found[part.name][part.split] += self._count(part)
        return found

    @property
    def groups(self) -> tuple[str, ...]:
        """The data sets of which a file is there, in AgentGym's order."""
        return tuple(dict.fromkeys(part.name for part in self._rows))

    @property
    def digest(self) -> str:
        """SHA-256 over the files."""
        whole = hashlib.sha256(f"{self.name} {self.version}".encode())
        for part, rows in self._rows.items():
            whole.update(f"\n{part.file} {_file_digest(rows.path)}".encode())
        return whole.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)

    def _count(self, part: Part) -> int:
        """How many rows are there. Raises TaskTableError if they would run into the next set's numbers."""
        if part not in self._rows:
            return 0
        count = len(self._rows[part])
        if count > part.length:
            raise TaskTableError(
                f"{part.file} has {count} rows; {part.length} are published, and more would have the "
                "numbers of another set"
            )
        return count

    def _total(self, parts: Sequence[Part]) -> int:
        return sum(map(self._count, parts))

    def _select(self, split: str | None, groups: Sequence[str] | None) -> list[Part]:
        check_selection(self, split, groups)
        parts = [p for p in self._rows if split in (None, p.split) and (groups is None or p.name in groups)]
        if not self._total(parts):
            wanted = [p.file for p in PUBLISHED if split in (None, p.split) and (groups is None or p.name in groups)]
            where = f"; they would be in {', '.join(wanted)}" if wanted else ", and none are published"
            chosen = "" if groups is None else f" of {', '.join(groups)}"
            raise UnknownTask(f"there are no questions{chosen} of the split {split!r}{where}")
        return parts

    def _at(self, parts: Sequence[Part], place: int) -> Task:
        for part in parts:
            if place < self._count(part):
                return self._task(part, place)
            place -= self._count(part)
        raise AssertionError("a place beyond the rows")

    def _task(self, part: Part, place: int) -> Task:
        question, data = self._rows[part].read(place)
        return Task(f"{NAME}/{part.first + place}", part.split, part.name, question, data)


class Rows:
    """The lines of a file that are not blank: bytes of a memory-mapped file, and where each line begins and ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"{path.parent.name}/{path.name}"
        """What errors call it, which strangers may read."""

    def __len__(self) -> int:
        return len(self._places)

    def read(self, place: int) -> tuple[str, dict[str, Any]]:
        """A question and its task's data. Raises TaskTableError, with file and line, for what is none."""
        begin, end = self._places[place].tolist()
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
    def _places(self) -> npt.NDArray[np.int64]:
        """Begin and end of each line."""
        text = np.frombuffer(self._bytes, np.uint8)
        breaks = [np.flatnonzero(text[at : at + _CHUNK] == ord("\n")) + at for at in range(0, len(text), _CHUNK)]
        ends = np.concatenate([*breaks, [len(text)]]).astype(np.int64)
        places = np.stack([np.concatenate([[0], ends[:-1] + 1]), ends], axis=1)
        short = np.flatnonzero(ends - places[:, 0] < len("{}"))
        blank = [at for at in short.tolist() if not self._bytes[places[at, 0] : places[at, 1]].strip()]
        return np.delete(places, blank, axis=0)


def survey(folder: str | os.PathLike[str]) -> list[Survey]:
    """What is there of each published file, every line read. Raises UsageError if none of them is."""
    questions = FlashRagQuestions(folder)
    return [_look(questions, part) for part in PUBLISHED]


def _look(questions: FlashRagQuestions, part: Part) -> Survey:
    rows, problem = 0, "is not there"
    if part in questions._rows:
        rows, problem = _check(questions._rows[part], part.length)
    last = part.first + part.length - 1
    return Survey(part.name, part.split, part.file, rows, part.length, part.first, last, problem)


def _check(rows: Rows, published: int) -> tuple[int, str]:
    """How many rows a file has, and what is amiss, worded to follow the file's name."""
    try:
        count = len(rows)
    except TaskTableError as error:
        return 0, str(error).removeprefix(f"{rows.name} ")
    if count > published:
        return count, f"has {count - published} rows more than are published, so that it cannot be used"
    wrong = [text for place in range(count) if (text := _amiss(rows, place))]
    if wrong:
        return count, f"has lines that are no questions ({len(wrong)}); the first: {wrong[0]}"
    return count, f"has {published - count} rows fewer than are published" if count < published else ""


def _amiss(rows: Rows, place: int) -> str:
    try:
        rows.read(place)
    except TaskTableError as error:
        return str(error)
    return ""


def _question(row: Any) -> tuple[str, dict[str, Any]]:
    """A row as a goal and data. Raises ValueError, KeyError or TypeError if it is none."""
    question, answers = row["question"].strip(), row["golden_answers"]
    answers = [answers] if isinstance(answers, str) else answers
    if not question:
        raise ValueError("the question is empty")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ValueError("golden_answers must be a list of texts")
    if not any(map(str.strip, answers)):
        raise ValueError("no answer is given")
    "".join([question, *answers]).encode()  # an escape in JSON can hold half a character, which nothing could send on
    question = question if question.endswith("?") else f"{question}?"  # as Search-R1 does
    return question, {"answers": answers, "passages": [], "queries": [question], "source_id": str(row.get("id", ""))}


def _no_files(folder: Path) -> str:
    """What is wrong with a folder without any of the files."""
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
