"""The published sets: AgentGym's numbering of FlashRAG's files, and question sets by name."""

from __future__ import annotations

import json
import os
import pickle
import re
import time
from pathlib import Path

import pytest

from agentgym_envs.errors import TaskTableError, UnknownTask, UsageError
from agentgym_envs.search.questions import flashrag
from agentgym_envs.search.questions.flashrag import PUBLISHED, SIZE, FlashRagQuestions, survey
from agentgym_envs.search.questions.sets import open_questions
from agentgym_envs.task import TaskTable
from tests.search.published import question, write_sets

FIRST = [0, 3610, 14923, 29190, 36595, 49171, 51588, 51713, 130881]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"), rows=3)


@pytest.fixture(scope="module")
def sets(folder: Path) -> FlashRagQuestions:
    return FlashRagQuestions(folder)


def put(folder: Path, file: str, text: str | bytes) -> FlashRagQuestions:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return FlashRagQuestions(folder)


def test_the_numbering_equals_that_of_agentgym() -> None:
    assert [part.first for part in PUBLISHED] == FIRST and SIZE == 221_328
    assert sum(part.length for part in PUBLISHED if part.split == "test") == 51_713


@pytest.mark.parametrize("part", PUBLISHED, ids=lambda part: part.file)
def test_an_index_is_a_row_of_a_file(sets: FlashRagQuestions, part: flashrag.DatasetPart) -> None:
    task = sets.get(f"searchqa/{part.first + 1}")
    assert (task.group, task.split) == (part.name, part.split)
    assert task.goal == f"Which one is {part.file} 1?"
    assert task.data == {
        "answers": [f"{part.name} 1", "öne"],
        "passages": [],
        "queries": [task.goal],
        "source_id": f"{part.name}_1",
    }
    assert task.id == f"searchqa/{part.first + 1}"


@pytest.mark.parametrize(
    "wrong", ["searchqa/221328", "searchqa/-1", "searchqa/01", "searchqa/1/2", "search/1", "searchqa", "", None, 3]
)
def test_an_invalid_index_is_unknown(sets: FlashRagQuestions, wrong: str) -> None:
    with pytest.raises(UnknownTask, match="index below 221328"):
        sets.get(wrong)


def test_the_error_for_a_missing_question_names_its_file(tmp_path: Path, sets: FlashRagQuestions) -> None:
    with pytest.raises(UnknownTask, match=r"row 4 of .*triviaqa/test.jsonl, which has only 3 rows"):
        sets.get("searchqa/3613")
    some = put(tmp_path, "nq/test.jsonl", question("nq", 0))
    with pytest.raises(UnknownTask, match=r"row 90447 of .*hotpotqa/train.jsonl, which does not exist"):
        some.get("searchqa/221327")


def test_draws_cycle_through_all_rows_of_a_selection(sets: FlashRagQuestions) -> None:
    drawn = [sets.draw(key, split="test").id for key in range(22)]
    assert drawn[:21] == [f"searchqa/{first + row}" for first in FIRST[:7] for row in range(3)]
    assert drawn[21] == "searchqa/0"
    assert sets.draw(4, split="train").id == "searchqa/130882"
    assert sets.draw(3, groups=["nq"]).id == "searchqa/51713"
    assert sets.draw(10**18, groups=["nq"], split="train").group == "nq"


def test_samples_are_distinct_and_in_order(sets: FlashRagQuestions) -> None:
    everything = sets.sample()
    assert len(everything) == 27 and len({task.id for task in everything}) == 27
    some = sets.sample(10, seed=3)
    assert [task for task in everything if task in some] == some and len(some) == 10
    assert some == sets.sample(10, seed=3) != sets.sample(10, seed=4)
    assert [task.id for task in sets.sample(split="train", groups=["hotpotqa"])] == [
        f"searchqa/{130881 + row}" for row in range(3)
    ]
    with pytest.raises(UsageError, match="has only 6"):
        sets.sample(7, split="train")


def test_groups_are_the_sets_with_files(tmp_path: Path, sets: FlashRagQuestions) -> None:
    assert sets.groups == ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
    put(tmp_path, "hotpotqa/dev.jsonl", question("hotpotqa", 0))
    some = put(tmp_path, "nq/train.jsonl", question("nq", 0))
    assert some.groups == ("hotpotqa", "nq")
    with pytest.raises(UnknownTask, match="no group 'musique'"):
        some.draw(0, groups=["musique"])
    with pytest.raises(UnknownTask, match=r"no questions of nq of the split 'test'; they would be in nq/test.jsonl"):
        some.draw(0, split="test", groups=["nq"])
    with pytest.raises(UnknownTask, match="none are published"):
        some.draw(0, split="validation")
    with pytest.raises(UnknownTask, match="no split 'dev'"):
        some.sample(1, split="dev")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "JSONDecodeError"),
        ("[1]", "TypeError"),
        ("null", "TypeError"),
        ('{"id": 1, "question": "q"}', "golden_answers"),
        ('{"id": 1, "question": 7, "golden_answers": ["a"]}', "AttributeError"),
        ('{"id": 1, "question": " ", "golden_answers": ["a"]}', "question is empty"),
        ('{"id": 1, "question": "q", "golden_answers": []}', "no answer"),
        ('{"id": 1, "question": "q", "golden_answers": [" "]}', "no answer"),
        ('{"id": 1, "question": "q", "golden_answers": ["a", 1]}', "list of strings"),
        ('{"id": 1, "question": "q\\ud800", "golden_answers": ["a"]}', "UnicodeEncodeError"),
        (b'{"id": 1, "question": "\xff", "golden_answers": ["a"]}', "UnicodeDecodeError"),
        ("[" * 100_000, "RecursionError"),
    ],
)
def test_a_malformed_line_raises_when_it_is_read(tmp_path: Path, line: str | bytes, wrong: str) -> None:
    line = line.encode() if isinstance(line, str) else line
    some = put(tmp_path, "nq/test.jsonl", question("nq", 0).encode() + b"\n\n" + line + b"\n")
    assert some.get("searchqa/0").goal
    with pytest.raises(TaskTableError, match=rf"nq/test.jsonl:3 is not a question.*{wrong}"):
        some.get("searchqa/1")
    assert survey(tmp_path)[0].rows == 2
    assert re.match(r"has 1 lines that are not questions; the first: .*test.jsonl:3 is", survey(tmp_path)[0].problem)


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n"])
def test_blank_lines_are_not_rows(tmp_path: Path, end: str) -> None:
    rows = [question("nq", row) for row in range(2)]
    some = put(tmp_path, "nq/test.jsonl", "\ufeff" + "\n\r\n\n".join(rows) + end)
    assert [task.goal for task in some.sample()] == ["Which one is nq 0?", "Which one is nq 1?"]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    some = put(tmp_path, "nq/test.jsonl", "")
    with pytest.raises(UnknownTask, match="there are no questions"):
        some.draw(0)
    assert survey(tmp_path)[0][3:] == (0, 3610, 0, 3609, "has 3610 fewer rows than are published")


def test_lines_may_cross_the_chunks_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [question("nq", row) for row in range(50)]
    monkeypatch.setattr(flashrag, "_CHUNK", 7)
    some = put(tmp_path, "nq/test.jsonl", "\n".join(rows))
    assert [task.data["source_id"] for task in some.sample()] == [f"nq_{row}" for row in range(50)]


def test_a_file_with_more_rows_than_published_is_refused(tmp_path: Path) -> None:
    some = put(tmp_path, "bamboogle/test.jsonl", "\n".join(question("bamboogle", row) for row in range(126)))
    for ask in (lambda: some.get("searchqa/51588"), lambda: some.draw(0), lambda: some.sample(1)):
        with pytest.raises(TaskTableError, match="126 rows; 125 are published"):
            ask()
    assert "1 more rows" in survey(tmp_path)[6].problem


def test_questions_get_one_question_mark_and_answers_are_unchanged(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": " who is it? ", "golden_answers": ["A", "B"], "metadata": {"x": 1}},
        {"id": 7, "question": "what is it", "golden_answers": "one\u2028two"},
    ]
    some = put(tmp_path, "nq/test.jsonl", "\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    first, second = some.sample()
    assert (first.goal, first.data["answers"]) == ("who is it?", ["A", "B"])
    assert (second.goal, second.data["answers"], second.data["source_id"]) == ("what is it?", ["one\u2028two"], "7")


def test_a_folder_without_any_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of FlashRAG's files"):
        FlashRagQuestions(tmp_path)
    (tmp_path / "nq").mkdir()
    (tmp_path / "nq" / "test.parquet").touch()
    with pytest.raises(UsageError, match=r"test\.parquet is parquet: pandas"):
        FlashRagQuestions(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        FlashRagQuestions(tmp_path / "missing")


def test_the_survey_lists_every_file(folder: Path, tmp_path: Path) -> None:
    rows = survey(folder)
    assert [row.file for row in rows] == [part.file for part in PUBLISHED]
    assert rows[8] == (
        "hotpotqa",
        "train",
        "hotpotqa/train.jsonl",
        3,
        90_447,
        130_881,
        221_327,
        "has 90444 fewer rows than are published",
    )
    put(tmp_path, "bamboogle/test.jsonl", "\n".join(question("bamboogle", row) for row in range(125)))
    assert [row.problem for row in survey(tmp_path)] == ["does not exist"] * 6 + [""] + ["does not exist"] * 2


def test_the_survey_reports_an_unreadable_file(tmp_path: Path) -> None:
    some = put(tmp_path, "nq/test.jsonl", question("nq", 0))
    (tmp_path / "nq" / "test.jsonl").unlink()
    with pytest.raises(TaskTableError, match=r"test\.jsonl cannot be read"):
        some.draw(0)
    assert flashrag._survey_file(some, PUBLISHED[0]).problem.startswith("cannot be read")


def test_the_digest_depends_on_the_content_of_the_files(tmp_path: Path) -> None:
    before = put(tmp_path / "a", "nq/test.jsonl", question("nq", 0)).digest
    assert put(tmp_path / "b", "nq/test.jsonl", question("nq", 0)).digest == before
    assert put(tmp_path / "c", "nq/train.jsonl", question("nq", 0)).digest != before
    changed = put(tmp_path / "a", "nq/test.jsonl", question("nq", 1))
    os.utime(tmp_path / "a" / "nq" / "test.jsonl", ns=(0, 0))
    assert changed.digest != before


def test_a_set_is_pickled_by_its_folder(sets: FlashRagQuestions) -> None:
    again = pickle.loads(pickle.dumps(sets))
    assert again.get("searchqa/3611") == sets.get("searchqa/3611") and again.digest == sets.digest
    assert len(pickle.dumps(sets)) < 1_000


@pytest.mark.slow
def test_a_large_file_opens_quickly(tmp_path: Path) -> None:
    row = json.dumps({"id": "x", "question": "q", "golden_answers": ["a"], "metadata": "m" * 1_100})
    some = put(tmp_path, "hotpotqa/train.jsonl", f"{row}\n" * 90_447)
    size = (tmp_path / "hotpotqa" / "train.jsonl").stat().st_size / 1e8
    start = time.process_time()
    assert some.get("searchqa/221327").goal == "q?"
    assert time.process_time() - start < 0.5 * size


def own(path: Path, **data: object) -> Path:
    row = {"id": "my/0", "split": "test", "group": "mine", "goal": "Who?", "data": data}
    path.write_text(json.dumps(row), encoding="utf-8")
    return path


def test_open_questions_accepts_folders_files_and_names(folder: Path, sets: FlashRagQuestions, tmp_path: Path) -> None:
    assert isinstance(open_questions(folder), FlashRagQuestions)
    assert open_questions(folder) is open_questions(str(folder)) is open_questions(folder / ".." / folder.name)
    assert open_questions(sets) is sets
    mine = own(tmp_path / "mine.jsonl", answers=["me", ""], passages=["p"], queries=[])
    table = open_questions(mine)
    assert isinstance(table, TaskTable) and table.get("my/0").data["answers"] == ["me", ""]
    assert open_questions(str(mine)) is table


@pytest.mark.parametrize("wrong", ["missing", "", 7, None, __file__])
def test_an_unknown_set_of_questions_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"give 'embedded', a folder .* or a .jsonl file"):
        open_questions(wrong)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({}, "must hold 'answers'"),
        ({"answers": "me"}, "must hold 'answers'"),
        ({"answers": ["", " "]}, "must hold 'answers'"),
        ({"answers": ["me", None]}, "must hold 'answers'"),
        ({"answers": ["me"], "passages": "p"}, "'passages' only as a list"),
        ({"answers": ["me"], "queries": [1]}, "'queries' only as a list"),
    ],
)
def test_questions_of_your_own_must_have_answers(tmp_path: Path, data: dict[str, object], wrong: str) -> None:
    with pytest.raises(TaskTableError, match=f"mine.jsonl: the data of the task 'my/0' .*{wrong}"):
        open_questions(own(tmp_path / "mine.jsonl", **data))


def test_counts_are_those_of_the_files(sets: FlashRagQuestions) -> None:
    counts = sets.counts()
    assert counts["nq"] == {"train": 3, "validation": 0, "test": 3}
    assert counts["bamboogle"] == {"train": 0, "validation": 0, "test": 3}
    assert list(counts) == list(sets.groups)


def test_questions_of_your_own_may_have_flashrags_format(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('\n{"question": "Who", "golden_answers": ["me"]}\n{"question": "When?", "golden_answers": "now"}\n')
    one, other = open_questions(path).sample()
    assert (one.id, one.split, one.group, one.goal) == ("mine/0", "test", "mine", "Who?")
    assert (other.goal, other.data["answers"]) == ("When?", ["now"])


def test_errors_do_not_show_folders_of_the_server(tmp_path: Path) -> None:
    some = put(tmp_path, "nq/test.jsonl", "{}")
    for task in ("searchqa/0", "searchqa/1", "searchqa/9000"):
        with pytest.raises(UsageError) as raised:
            some.get(task)
        assert str(tmp_path) not in str(raised.value)
