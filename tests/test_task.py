import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import Task, TaskTable
from agentgym_envs.errors import TaskTableError, UnknownTask, UsageError
from agentgym_envs.task import MANY_TASKS, SPLITS, canonical_hash, check_count
from tests.toy import TASKS

TABLE = TaskTable("count", 1, TASKS)
ROOT = Path(__file__).parents[1]
GOOD = {"id": "a", "split": "train", "group": "g", "goal": "do it", "data": {"n": 1}}


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_get_finds_a_task_by_its_id() -> None:
    assert TABLE.get("count/9") is TASKS[2]
    assert len(TABLE) == len(list(TABLE)) == 6
    assert TABLE.groups == ("small", "large", "broken")


@pytest.mark.parametrize("unknown", ["count/7", "", None, ["count/9"]])
def test_an_unknown_id_names_the_table_and_an_example(unknown: str) -> None:
    with pytest.raises(
        UnknownTask, match=r"there is no task .* in 'count' \(version 1, 6 tasks, for example 'count/2'"
    ):
        TABLE.get(unknown)


def test_a_table_may_not_be_empty_or_repeat_an_id() -> None:
    with pytest.raises(TaskTableError, match="'none' is empty"):
        TaskTable("none", 1, [])
    with pytest.raises(TaskTableError, match="'twice' uses an id more than once"):
        TaskTable("twice", 1, [TASKS[0], TASKS[0]])


@given(st.integers(0, 2**63), st.sampled_from([None, *SPLITS]))
def test_draw_is_a_pure_function_of_key_and_selection(key: int, split: str | None) -> None:
    other = TaskTable("count", 1, TASKS)
    drawn = TABLE.draw(key, split=split)
    assert drawn == other.draw(key, split=split)
    assert split in (None, drawn.split)


def test_the_key_is_an_index_into_the_selection() -> None:
    assert [TABLE.draw(key, split="train").id for key in range(4)] == ["count/2", "count/3", "count/9", "count/2"]
    assert TABLE.draw(7, groups=["small", "large"]) is TASKS[2], "7 modulo the five tasks of these groups"


def test_draw_reaches_every_task_of_the_selection_and_no_other() -> None:
    drawn = {TABLE.draw(key, split="train", groups=["small"]).id for key in range(10)}
    assert drawn == {"count/2", "count/3"}


@given(st.integers(0, 6), st.integers(0, 1000))
def test_sample_returns_distinct_tasks_in_table_order(count: int, seed: int) -> None:
    result = TABLE.sample(count, seed=seed)
    assert len({task.id for task in result}) == count
    assert [TASKS.index(task) for task in result] == sorted(TASKS.index(task) for task in result)
    assert result == TABLE.sample(count, seed=seed)


def test_sample_without_a_count_returns_the_whole_selection() -> None:
    assert TABLE.sample() == TASKS
    assert TABLE.sample(groups=["large"]) == [TASKS[2], TASKS[4]]


@pytest.mark.parametrize("count", [7, -1])
def test_sample_refuses_more_tasks_than_exist(count: int) -> None:
    with pytest.raises(UsageError, match=f"{count} tasks were asked for, but 'count' has only 6"):
        TABLE.sample(count)


def test_sample_depends_on_the_seed() -> None:
    assert len({tuple(task.id for task in TABLE.sample(3, seed=seed)) for seed in range(20)}) > 5


def test_unknown_split_and_groups_name_the_choices() -> None:
    with pytest.raises(UnknownTask, match="no split 'dev'; choose one of train, validation, test"):
        TABLE.draw(0, split="dev")
    with pytest.raises(UnknownTask, match="'count' has no group 'big, tiny'; choose from small, large, broken"):
        TABLE.sample(groups=["tiny", "small", "big"])
    with pytest.raises(UnknownTask, match="choose from small"):
        TABLE.sample(groups=[])
    with pytest.raises(UnknownTask, match="no task of split 'validation' in the groups"):
        TABLE.draw(0, split="validation", groups=["large"])


DIGEST = "af1f151b4709e94317ecfb141aa0df0abad96f99ab8ec9284c51910111c2c32f"
TINY = TaskTable("tiny", 3, [Task("t/1", "train", "g", "größer 🙂", {"b": [1, 2.5, None], "a": "x"})])


def test_the_digest_is_frozen() -> None:
    assert TINY.digest == DIGEST


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    row = Task("t/1", "train", "g", "größer 🙂", {"a": "x", "b": [1, 2.5, None]})
    assert TaskTable("tiny", 3, [row]).digest == DIGEST


def test_the_digest_depends_on_every_part_of_the_tasks() -> None:
    one, two = Task("1", "train", "g", "x"), Task("2", "train", "g", "x")
    tables = [
        TaskTable("n", 1, [one, two]),
        TaskTable("n", 1, [two, one]),
        TaskTable("n", 1, [one]),
        TaskTable("n", 2, [one, two]),
        TaskTable("m", 1, [one, two]),
        TaskTable("n", 1, [one, Task("2", "test", "g", "x")]),
        TaskTable("n", 1, [one, Task("2", "train", "g", "x", {"k": 0})]),
    ]
    assert len({table.digest for table in tables}) == len(tables)


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_digest_is_the_same_in_every_process(hash_seed: str) -> None:
    code = "from tests.test_task import TINY; print(TINY.digest)"
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == DIGEST


def test_canonical_hash_differs_by_value_and_ignores_key_order() -> None:
    assert canonical_hash({"a": 1, "b": 2}) == canonical_hash({"b": 2, "a": 1})
    assert canonical_hash([1]) != canonical_hash(["1"]) != canonical_hash(1)


def test_from_jsonl_reads_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", json.dumps(GOOD), "", json.dumps({**GOOD, "id": "b", "data": {}}), "")
    table = TaskTable.from_jsonl(path, version=4)
    assert (table.name, table.version) == ("mine", 4)
    assert table.tasks == (Task("a", "train", "g", "do it", {"n": 1}), Task("b", "train", "g", "do it", {}))


def test_from_jsonl_reads_line_breaks_of_unicode_inside_a_goal(tmp_path: Path) -> None:
    row = json.dumps({**GOOD, "goal": "one\u2028two\x85three"}, ensure_ascii=False)
    assert TaskTable.from_jsonl(write(tmp_path / "t.jsonl", row)).tasks[0].goal == "one\u2028two\x85three"


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        "3",
        "[" * 100_000,
        json.dumps({**GOOD, "split": "dev"}),
        json.dumps({**GOOD, "goal": ""}),
        json.dumps({**GOOD, "id": 5}),
        json.dumps({**GOOD, "data": []}),
        json.dumps({**GOOD, "extra": 1}),
        json.dumps({"id": "a"}),
    ],
    ids=lambda line: line[:30],
)
def test_a_malformed_line_is_named_by_file_and_number(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "bad.jsonl", json.dumps(GOOD), line)
    with pytest.raises(TaskTableError, match=r"^\S*bad\.jsonl:2\b"):
        TaskTable.from_jsonl(path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskTableError, match=r"binary\.jsonl is not UTF-8 text"):
        TaskTable.from_jsonl(path)


def test_equal_selections_are_cached_once() -> None:
    """Clients may draw from a server's tables, so the cache must not grow with the spelling of requests."""
    table = TaskTable("count", 1, TASKS)
    wanted = table.draw(3, groups=["small", "large"])
    for count in range(1, 20):
        assert table.draw(3, groups=["large", "small"] * count) == wanted
    assert len(table._selections) == 1


def test_counts_are_by_group_and_split() -> None:
    counts = TABLE.counts()
    assert list(counts) == list(TABLE.groups)
    assert sum(sum(splits.values()) for splits in counts.values()) == len(TABLE)
    assert counts[TASKS[0].group][TASKS[0].split] >= 1


@pytest.mark.parametrize(("count", "size", "result"), [(None, 5, 5), (0, 5, 0), (3, 5, 3), (7, 10**6, 7)])
def test_check_count_completes_a_missing_count(count: int | None, size: int, result: int) -> None:
    assert check_count("huge", count, size) == result


@pytest.mark.parametrize(
    ("count", "size", "why"),
    [
        (6, 5, "has only 5"),
        (-1, 5, "has only 5"),
        (None, MANY_TASKS + 1, "has 20,001 tasks of that kind; say how many"),
    ],
)
def test_a_huge_set_needs_a_count(count: int | None, size: int, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_count("huge", count, size)
