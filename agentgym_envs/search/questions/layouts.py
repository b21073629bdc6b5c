"""Files of questions in the layouts of published benchmarks: one row of `LAYOUTS` for each.

Sources: FRAMES (arXiv 2409.12941), SimpleQA (arXiv 2411.04368), BrowseComp (arXiv 2504.12516).
"""

from __future__ import annotations

import ast
import base64
import binascii
import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.errors import TaskTableError
from agentgym_envs.search.judging import JUDGE
from agentgym_envs.task import Task, TaskTable, parse_task

Row = Mapping[str, Any]


class QuestionLayout(NamedTuple):
    """A layout of a row.

    Attributes:
        columns: the columns that a row of this layout has.
        read: returns the question, the accepted answers and the group ("" for that of the file).
        scorer: the metric of these answers.
    """

    columns: tuple[str, ...]
    read: Callable[[Row], tuple[str, list[str], str]]
    scorer: str


def _flashrag(row: Row) -> tuple[str, list[str], str]:
    answers = row["golden_answers"]
    return row["question"], [answers] if isinstance(answers, str) else answers, ""


def _frames(row: Row) -> tuple[str, list[str], str]:
    return row["Prompt"], [row["Answer"]], str(row.get("reasoning_types") or "").partition("|")[0].strip()


def _browsecomp(row: Row) -> tuple[str, list[str], str]:
    key = row["canary"]
    return (
        _decrypted(row["problem"], key),
        [_decrypted(row["answer"], key)],
        str(row.get("problem_topic") or "").strip(),
    )


def _simpleqa(row: Row) -> tuple[str, list[str], str]:
    return row["problem"], [row["answer"]], _topic(row.get("metadata"))


LAYOUTS = {
    "FlashRAG": QuestionLayout(("question", "golden_answers"), _flashrag, "em"),
    "FRAMES": QuestionLayout(("Prompt", "Answer"), _frames, JUDGE),
    "BrowseComp": QuestionLayout(("problem", "answer", "canary"), _browsecomp, JUDGE),
    "SimpleQA": QuestionLayout(("problem", "answer"), _simpleqa, JUDGE),
}
"""Layouts by the name of their benchmark. The first one whose columns a row has is used."""


def read_table(path: Path) -> TaskTable:
    """Read a .json file with an array, a .csv, a .tsv or a .jsonl file whose rows are tasks or have a layout.

    Questions in a layout are in the test split. Raises TaskTableError, which names the file and the row.
    """
    rows = list(_rows(path))
    if not rows:
        raise TaskTableError(f"{path} has no rows")
    return TaskTable(path.stem, 1, [_task(row, path, number) for number, row in enumerate(rows)])


def _rows(path: Path) -> Iterator[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".csv", ".tsv"):
            csv.field_size_limit(2**24)
            yield from csv.DictReader(io.StringIO(text, newline=""), delimiter="," if path.suffix == ".csv" else "\t")
        elif path.suffix == ".jsonl":
            yield from (json.loads(line) for line in text.split("\n") if line.strip())
        else:
            rows = json.loads(text)
            if not isinstance(rows, list):
                raise ValueError("it must hold an array of objects")
            yield from rows
    except (ValueError, csv.Error, RecursionError) as error:
        raise TaskTableError(f"{path} cannot be read as questions: {error}") from None


def _task(row: Any, path: Path, number: int) -> Task:
    where = f"{path}: row {number + 1}"
    if not isinstance(row, dict):
        raise TaskTableError(f"{where} is not an object with names, but {row!r:.80}")
    layout = next((layout for layout in LAYOUTS.values() if set(layout.columns) <= row.keys()), None)
    if layout is None:
        return parse_task(json.dumps(row), where)
    try:
        question, answers, group = layout.read(row)
        texts = [question, *answers]
        if not all(isinstance(text, str) for text in texts) or not question.strip() or not any(map(str.strip, answers)):
            raise ValueError("the question and an answer must be text that is not empty")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TaskTableError(f"{where} is not a question ({', '.join(layout.columns)}): {error}") from None
    data = {"answers": answers, "scorer": layout.scorer}
    return Task(f"{path.stem}/{number}", "test", group or path.stem, question.strip(), data)


def _topic(metadata: Any) -> str:
    """The topic in SimpleQA's metadata, a dictionary that is written in Python or JSON."""
    try:
        known = ast.literal_eval(metadata) if isinstance(metadata, str) else metadata
        return str(known["topic"])
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return ""


def _decrypted(text: str, key: str) -> str:
    """Decrypt a column of BrowseComp: base64 of the text, each byte combined with one of the key's SHA-256 by XOR.

    The file is encrypted so that its questions do not get into training data, so do not store them in plain text.
    """
    try:
        secret = base64.b64decode(text, validate=True)
        pad: Sequence[int] = hashlib.sha256(key.encode()).digest()
        return bytes(one ^ other for one, other in zip(secret, cycle(pad), strict=False)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("its columns cannot be decrypted with its canary") from None
