"""Files of questions in the layouts of published benchmarks. All rows here are our own."""

import base64
import csv
import hashlib
import io
import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import TaskTableError, UsageError
from agentgym_envs.search.questions.sets import open_questions, scorer_of
from agentgym_envs.task import Task

TASK = {"id": "my/0", "split": "train", "group": "mine", "goal": "Who?", "data": {"answers": ["me"]}}


def encrypt(text: str, key: str) -> str:
    """The inverse of the published decryption, written in another way."""
    data, pad = text.encode(), cycle(hashlib.sha256(key.encode()).digest())
    return base64.b64encode(bytes(byte ^ next(pad) for byte in data)).decode()


def table(rows: list[dict[str, str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


LONG = "Which lake, of those that\nlie above 3,000 m, is the largest, and whose? " * 20
SIMPLEQA = {"metadata": "{'topic': 'Lakes', 'urls': ['x']}", "problem": "Where is it?", "answer": 'In "Puno", Peru'}
FRAMES = {"": "0", "Prompt": LONG, "Answer": "Titicaca", "reasoning_types": "Numbers | Tables", "wiki_links": "[]"}
BROWSECOMP = {"problem": encrypt(LONG, "kéy"), "answer": encrypt("Titicaca", "kéy"), "canary": "kéy", "x": ""}
FLASHRAG = {"id": "a", "question": "Who?", "golden_answers": ["me", "I"]}


@pytest.mark.parametrize(
    ("name", "text", "goal", "answers", "group", "scorer"),
    [
        ("q.json", json.dumps([TASK]), "Who?", ["me"], "mine", "em"),
        ("q.json", json.dumps([FLASHRAG]), "Who?", ["me", "I"], "q", "em"),
        ("q.csv", table([SIMPLEQA]), "Where is it?", ['In "Puno", Peru'], "Lakes", "judge"),
        ("q.json", json.dumps([SIMPLEQA]), "Where is it?", ['In "Puno", Peru'], "Lakes", "judge"),
        ("q.csv", table([SIMPLEQA | {"metadata": "{broken"}]), "Where is it?", ['In "Puno", Peru'], "q", "judge"),
        ("q.tsv", table([FRAMES], "\t"), LONG.strip(), ["Titicaca"], "Numbers", "judge"),
        ("q.jsonl", json.dumps(FRAMES) + "\n", LONG.strip(), ["Titicaca"], "Numbers", "judge"),
        ("q.csv", table([BROWSECOMP]), LONG.strip(), ["Titicaca"], "q", "judge"),
        ("q.csv", table([BROWSECOMP | {"problem_topic": "Geo"}]), LONG.strip(), ["Titicaca"], "Geo", "judge"),
    ],
)
def test_each_layout_is_read(
    tmp_path: Path, name: str, text: str, goal: str, answers: list[str], group: str, scorer: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    tasks = open_questions(tmp_path / name)
    [task] = tasks.sample()
    assert (task.goal, list(task.data["answers"]), task.group) == (goal, answers, group)
    assert scorer_of(tasks) == scorer and tasks.get(task.id) == task


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("q.json", "{}", "array"),
        ("q.json", "[", "cannot be read"),
        ("q.json", "[]", "no rows"),
        ("q.json", "[3]", "row 1 is not an object"),
        ("q.json", json.dumps([TASK, {"id": "x"}]), "row 2 is not a task"),
        ("q.json", json.dumps([TASK, TASK]), "more than once"),
        ("q.json", json.dumps([TASK | {"data": {}}]), "'my/0' must hold 'answers'"),
        ("q.json", json.dumps([TASK | {"data": {"answers": ["a"], "scorer": 3}}]), "'scorer' only as"),
        ("q.json", json.dumps([{"problem": " ", "answer": "x"}]), "row 1 is not a question"),
        ("q.json", json.dumps([{"Prompt": "x", "Answer": 3}]), "row 1 is not a question"),
        ("q.json", json.dumps([BROWSECOMP | {"canary": "other"}]), "decrypted with its canary"),
        ("q.json", json.dumps([{"question": "x", "golden_answers": 3}]), "row 1 is not a question"),
        ("q.csv", "problem,answer\nx\n", "row 1 is not a question"),
        ("q.csv", "a,b\n1,2\n", "row 1 is not a task"),
    ],
)
def test_a_malformed_file_is_named_with_its_row(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TaskTableError, match=why):
        open_questions(tmp_path / name)


def test_a_file_for_two_metrics_needs_a_choice(tmp_path: Path) -> None:
    other: dict[str, Any] = TASK | {"id": "my/1", "data": {"answers": ["x"], "scorer": "judge"}}
    (tmp_path / "q.json").write_text(json.dumps([TASK, other]))
    with pytest.raises(UsageError, match="for the metrics em, judge; choose"):
        scorer_of(open_questions(tmp_path / "q.json"))


def test_every_task_of_a_file_can_be_played(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([TASK, FLASHRAG]))
    assert [type(task) for task in open_questions(tmp_path / "q.json").sample()] == [Task, Task]
