import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import Task, Trajectory, Turn, read_trajectories
from agentgym_envs.errors import TrajectoryError
from agentgym_envs.hosting.images import to_png
from agentgym_envs.image_files import read_image
from agentgym_envs.task import TaskTable
from agentgym_envs.trajectory import SCHEMA_VERSION, TrajectoryWriter, line_mark, with_image_names

ROOT = Path(__file__).parents[1]
ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(ANY_TEXT, VALUES, max_size=3)
TRAJECTORIES = st.builds(
    Trajectory,
    env_id=ANY_TEXT,
    task=st.builds(Task, ANY_TEXT, st.just("train"), ANY_TEXT, ANY_TEXT, OBJECTS),
    seed=st.integers(0, 2**31),
    instructions=ANY_TEXT,
    turns=st.lists(st.builds(Turn, ANY_TEXT, ANY_TEXT, st.floats(0, 1), OBJECTS), max_size=3).map(tuple),
    final_observation=ANY_TEXT,
    score=st.floats(0, 1),
    success=st.booleans(),
    stop_reason=st.sampled_from(["success", "failure", "turn_limit", "env_error"]),
    error=st.none() | ANY_TEXT,
    env_kwargs=OBJECTS,
    meta=OBJECTS,
)


def trajectory(*actions: str, **fields: Any) -> Trajectory:
    turns = tuple(Turn(f"seen {number}", action, 0.0) for number, action in enumerate(actions))
    known: dict[str, Any] = {"stop_reason": "failure", "score": 0.0, "success": False, **fields}
    task = Task("t/1", "train", "g", "try")
    return Trajectory("Toy-v0", task, 1, "Be brief.", turns, "the end", **known)


@given(TRAJECTORIES)
def test_json_preserves_a_trajectory(one: Trajectory) -> None:
    line = one.to_json()
    assert "\n" not in line
    assert Trajectory.from_json(line) == one


def test_arguments_that_are_objects_are_written_as_text() -> None:
    table = TaskTable("mine", 1, [Task("t/1", "train", "g", "try")])
    kwargs = {"questions": table, "index": Path("a/b"), "top_k": 3, "more": [table]}
    one = trajectory("go", env_kwargs=kwargs)
    read = Trajectory.from_json(one.to_json()).env_kwargs
    assert read == {"questions": "<TaskTable>", "index": "a/b", "top_k": 3, "more": ["<TaskTable>"]}
    with pytest.raises(TypeError):
        trajectory("go", meta={"odd": table}).to_json()


@given(st.lists(TRAJECTORIES, max_size=4))
def test_a_file_preserves_trajectories(tmp_path_factory: pytest.TempPathFactory, many: list[Trajectory]) -> None:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        for one in many:
            writer.write(one)
    assert list(read_trajectories(path)) == many


def test_images_become_files_next_to_the_record(tmp_path: Path) -> None:
    """Equal images are one file, whichever record refers to them, and a line is the same whoever writes it."""
    first, second = (to_png(np.full((2, 3, 3), shade, np.uint8)) for shade in (0, 9))
    turns = tuple(Turn("seen", "go", 0.0, {"screenshot": image}) for image in (first, second, first))
    played = replace(trajectory(), turns=turns, meta={"screenshot": first})
    with TrajectoryWriter(tmp_path / "run" / "all.jsonl") as writer:
        mark = writer.write(played)
        assert writer.write(played) == mark == line_mark(played.to_json().encode())
    read, again = read_trajectories(tmp_path / "run" / "all.jsonl")
    assert read == again == with_image_names(played)
    assert with_image_names(read) is read
    images = [turn.info["screenshot"] for turn in read.turns]
    assert images[0] == images[2] == read.meta["screenshot"] != images[1]
    assert [read_image(tmp_path / "run", name) for name in images] == [first, second, first]
    assert len(list((tmp_path / "run" / "images").iterdir())) == 2


def test_bytes_that_are_no_image_are_refused(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path / "all.jsonl") as writer, pytest.raises(TypeError, match="PNG and JPEG"):
        writer.write(trajectory(meta={"screenshot": b"<svg>"}))
    assert (tmp_path / "all.jsonl").read_bytes() == b""


def test_the_conversation_ends_with_the_last_action() -> None:
    assert trajectory("a", "b").messages() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "seen 0"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "seen 1"},
        {"role": "assistant", "content": "b"},
    ]
    assert [message["role"] for message in trajectory().messages()] == ["system", "user"]


@pytest.mark.parametrize(
    ("reason", "truncated", "usable"),
    [
        ("success", False, True),
        ("failure", False, True),
        ("turn_limit", True, True),
        ("token_limit", True, True),
        ("closed", True, True),
        ("env_error", True, False),
    ],
)
def test_truncated_and_usable_follow_the_stop_reason(reason: str, truncated: bool, usable: bool) -> None:
    one = trajectory("a", stop_reason=reason)
    assert (one.truncated, one.usable) == (truncated, usable)
    assert one.actions == ["a"]
    assert not trajectory(stop_reason=reason).usable


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "3", "null", '"x"', "[" * 100_000, "{}", '{"schema": 1}', '{"schema": 1, "task": {}, "turns": []}'],
    ids=lambda line: line[:20],
)
def test_malformed_lines_are_refused(line: str) -> None:
    with pytest.raises(TrajectoryError, match="not a trajectory"):
        Trajectory.from_json(line)


def test_an_unknown_field_is_refused() -> None:
    row = {**json.loads(trajectory("a").to_json()), "colour": "red"}
    with pytest.raises(TrajectoryError, match="colour"):
        Trajectory.from_json(json.dumps(row))


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"env_kwargs": []}, "must be objects"),
        ({"meta": "x"}, "must be objects"),
        ({"task": {"id": "t", "split": "test", "group": "g", "goal": "x", "data": [1]}}, "must be objects"),
        ({"task": {"id": 3, "split": "test", "group": "g", "goal": "x"}}, "must be text"),
        ({"task": {"id": "t", "split": "test", "group": None, "goal": "x"}}, "must be text"),
        ({"env_id": None}, "must be text"),
        ({"error": 5}, "must be text"),
        ({"stop_reason": ["success"]}, "must be text"),
        ({"score": float("nan")}, "a finite number"),
        ({"score": float("inf")}, "a finite number"),
        ({"score": 10**400}, "a finite number"),
        ({"score": "1"}, "a finite number"),
        ({"score": True}, "a finite number"),
        ({"success": 1}, "true or false"),
        ({"seed": [1]}, "a whole number"),
        ({"turns": {}}, "turns is not a list"),
        ({"turns": "abc"}, "turns is not a list"),
        ({"turns": [{"observation": "o", "action": "a", "reward": 0, "info": 5}]}, "info of turn 1 must be an object"),
        ({"turns": [{"observation": "o", "action": "a", "reward": float("-inf")}]}, "its reward a finite number"),
        ({"turns": [{"observation": "o", "action": None, "reward": 0}]}, "action of turn 1 must be text"),
        ({"turns": [{"observation": 5, "action": "a", "reward": 0}]}, "action of turn 1 must be text"),
    ],
    ids=str,
)
def test_a_field_of_a_wrong_type_is_named(odd: dict[str, Any], message: str) -> None:
    row = {**json.loads(trajectory("a").to_json()), **odd}
    with pytest.raises(TrajectoryError, match=message):
        Trajectory.from_json(json.dumps(row))


def test_an_unknown_schema_is_named() -> None:
    row = {**json.loads(trajectory("a").to_json()), "schema": 99}
    with pytest.raises(TrajectoryError, match="reads trajectory schema 1 or 2, not 99"):
        Trajectory.from_json(json.dumps(row))


def test_a_record_of_schema_1_is_read_with_the_current_names() -> None:
    row = {**json.loads(trajectory("a").to_json()), "schema": 1}
    row["meta"] = {"agent": {"name": "reflect", "tries": 2}, "tries": [{"turns": []}]}
    new = {"agent": {"name": "reflect", "attempts": 2}, "attempts": [{"turns": []}]}
    assert Trajectory.from_json(json.dumps(row)).meta == new
    row["meta"] = {"agent": "mine", "tries": 3}
    assert Trajectory.from_json(json.dumps(row)).meta == row["meta"], "a recorder's own key is left alone"
    del row["meta"]
    assert Trajectory.from_json(json.dumps(row)).meta == {}
    assert json.loads(trajectory("a").to_json())["schema"] == SCHEMA_VERSION == 2


def test_the_writer_appends_and_makes_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t.jsonl"
    for action in "ab":
        with TrajectoryWriter(path) as writer:
            writer.write(trajectory(action))
    assert [one.actions for one in read_trajectories(path)] == [["a"], ["b"]]


# A crash may truncate the last line anywhere, also within the two bytes of "ä".
LINES = [one.to_json().encode() + b"\n" for one in (trajectory("first ä"), trajectory("second ä"))]


@pytest.mark.parametrize("kept", range(1, len(LINES[1]), 7))
def test_an_incomplete_last_line_is_skipped_and_then_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: int
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:kept])
    with caplog.at_level(logging.WARNING):
        assert list(read_trajectories(path)) == [trajectory("first ä")]
    assert f"{path}:2 is incomplete" in caplog.text
    with TrajectoryWriter(path) as writer:
        writer.write(trajectory("third"))
    assert list(read_trajectories(path)) == [trajectory("first ä"), trajectory("third")]


def test_only_the_incomplete_line_of_a_large_file_is_removed(tmp_path: Path) -> None:
    """The search for the last line end starts at the end of the file, in blocks of 64 KiB."""
    path, count = tmp_path / "t.jsonl", 200_000 // len(LINES[0])
    for torn in (LINES[1][:-5], b"x" * 150_000):
        path.write_bytes(LINES[0] * count + torn)
        with TrajectoryWriter(path) as writer:
            writer.write(trajectory("third"))
        assert list(read_trajectories(path)) == [trajectory("first ä")] * count + [trajectory("third")]


def test_a_file_with_only_an_incomplete_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(LINES[0].split("ä".encode())[0] + b"\xc3")
    assert list(read_trajectories(path)) == []
    TrajectoryWriter(path).close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("bad", [b"{}\n", b"\n", b"\xff\xfe\n"])
def test_lines_before_a_malformed_line_are_returned(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(LINES[0] + bad + LINES[1])
    reader = read_trajectories(path)
    assert next(reader) == trajectory("first ä")
    with pytest.raises(TrajectoryError, match=r"t\.jsonl:2: "):
        next(reader)


FULL_DISK = """
import resource, signal, sys
from tests.test_trajectory import TrajectoryWriter, trajectory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
writer = TrajectoryWriter(sys.argv[1])
for number in range(100):
    try:
        writer.write(trajectory(str(number)))
    except OSError:
        print(number)
        break
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a file size limit")
def test_a_full_disk_keeps_all_written_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    fitted = int(out.stdout)
    assert 1 <= fitted < 100
    assert path.read_bytes().endswith(b"\n")
    assert [one.actions for one in read_trajectories(path)] == [[str(number)] for number in range(fitted)]
    with TrajectoryWriter(path) as writer:
        writer.write(trajectory("more"))
    assert len(list(read_trajectories(path))) == fitted + 1
