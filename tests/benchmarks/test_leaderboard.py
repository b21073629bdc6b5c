"""The leaderboard has valid rows of the present tasks, and takes only runs with the settings of a board."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli.app import main
from agentgym_envs.errors import UsageError
from benchmarks.leaderboard import (
    BOARDS,
    FILE,
    ROOT,
    Row,
    add,
    read_rows,
    row_of_run,
    start_again,
    tables,
    write_rows,
)

Values = dict[str, Any]


def stored() -> list[Values]:
    rows: list[Values] = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
    return rows


def test_the_stored_rows_are_valid_and_every_board_has_its_baselines() -> None:
    names = {(row.board, row.name) for row in read_rows()}
    assert len(names) == len(read_rows())
    assert {(name, policy) for name, board in BOARDS.items() for policy in board.baselines} <= names


def test_the_rows_are_of_the_present_task_tables() -> None:
    page = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    digests = dict(re.findall(r"^\| `(\S+)` \| `(\w{64})` \|$", page, re.M))
    for row in read_rows():
        if not BOARDS[row.board].env_args:
            env = BOARDS[row.board].env
            assert row.digest == digests[env], f"run: python -m benchmarks.leaderboard measure {row.board}"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"board": "chess"}, "board"),
        ({"digest": "12ab"}, "digest"),
        ({"success": {"mean": 0.5, "low": 0.6, "high": 0.7}}, "success"),
        ({"success": {"mean": 0.5, "low": 0.4}}, "mean, low and high"),
        ({"turns": 1000.0}, "turns"),
        ({"link": "javascript:alert(1)"}, "link"),
        ({"name": "a | b"}, "name"),
        ({"versions": {}}, "versions"),
        ({"stars": 5}, "unknown: .*stars"),
    ],
)
def test_an_impossible_row_is_refused(change: Values, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Row.from_json(stored()[0] | change)


def test_rows_of_different_tasks_are_refused(tmp_path: Path) -> None:
    rows = [row for row in stored() if row["board"] == "textcraft"]
    rows[0]["digest"] = "0" * 64
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"schema": 1, "rows": rows}))
    with pytest.raises(UsageError, match="different tasks"):
        read_rows(path)


def test_new_tasks_start_a_board_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(read_rows(), path)
    old = [row for row in read_rows() if row.board == "textcraft"]
    new = [replace(row, digest="0" * 64) for row in old if row.name == "oracle"]
    before = path.read_bytes()
    with pytest.raises(UsageError, match="different tasks"):
        add(new[0], path)
    assert path.read_bytes() == before
    start_again("textcraft", new, path)
    assert [row for row in read_rows(path) if row.board == "textcraft"] == new
    assert [row for row in read_rows(path) if row.board != "textcraft"] == [
        row for row in read_rows() if row.board != "textcraft"
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the command that the page shows."""
    folder = tmp_path_factory.mktemp("run") / "row"
    assert main([*BOARDS["textcraft"].command("oracle")[1:], "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_a_run_becomes_a_row(run: Path, tmp_path: Path) -> None:
    """The stored row of the oracle, measured again; a second row of the name replaces the first."""
    row = row_of_run(run, "oracle")
    (before,) = [one for one in read_rows() if (one.board, one.name) == ("textcraft", "oracle")]
    assert (row.success, row.turns, row.digest) == (before.success, before.turns, before.digest)
    path = tmp_path / "rows.json"
    add(row, path)
    add(row_of_run(run, "again", "https://example.com/x"), path)
    add(row, path)
    assert [one.name for one in read_rows(path)] == ["again", "oracle"]
    assert "| [again](https://example.com/x) | 100.0 [96.6, 100.0] |" in tables(read_rows(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("max_turns", 7, "max_turns is 7, not 30"), ("seed", 3, "seed is 3, not 0"), ("tasks", 5, "tasks is 5, not None")],
)
def test_a_run_with_other_settings_is_refused(run: Path, tmp_path: Path, name: str, value: int, says: str) -> None:
    result = json.loads((run / "eval.json").read_text(encoding="utf-8"))
    result["settings"][name] = value
    (tmp_path / "eval.json").write_text(json.dumps(result))
    with pytest.raises(UsageError, match=says):
        row_of_run(tmp_path, "mine")
    with pytest.raises(UsageError, match="holds no finished run"):
        row_of_run(tmp_path / "nothing", "mine")
