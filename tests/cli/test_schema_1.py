"""Directories of `agentgym eval` with schema 1, written by an earlier version, still work with every command."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli.run_store import read_result

from .conftest import Run

FOLDER = Path(__file__).parent / "schema_1"
TASKS = ("--groups", "depth-1", "--tasks", 1, "-k", 2, "--seed", 3)
WORDS = ("eval", "textcraft", "--policy", "oracle", *TASKS, "--max-turns", 30)


@pytest.fixture
def old_run() -> Path:
    """A copy of the directory, in the current folder."""
    folder = Path("old")
    shutil.copytree(FOLDER, folder)
    return folder


def keys_of(value: Any) -> set[str]:
    """All keys of a JSON value, at any depth."""
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_of(item)}
    return {key for item in value for key in keys_of(item)} if isinstance(value, list) else set()


def without_notes(table: Any) -> Any:
    """The rows without what they say about the tasks, which goes with the task tables."""
    scenarios = [
        scenario | {"rows": [row | {"note": ""} for row in scenario["rows"]]} for scenario in table["scenarios"]
    ]
    return table | {"scenarios": scenarios}


def test_the_result_is_converted_to_the_current_names(old_run: Path) -> None:
    old, new = json.loads((old_run / "eval.json").read_text()), read_result(old_run / "eval.json")
    assert (old["schema"], new["schema"]) == (1, 2)
    assert {"suite", "replayed", "samples"} <= keys_of(old)
    assert not keys_of(new) & {"suite", "replayed", "samples"}
    assert new["settings"]["episodes_per_task"] == new["metrics"]["overall"]["max_k"] == 2
    assert new["agentgym_rl_table"]["played"] == old["suite"]["played"]


def test_the_agent_is_converted_to_the_current_names(old_run: Path) -> None:
    path = old_run / "eval.json"
    result = json.loads(path.read_text())
    result["settings"] |= {"agent": {"name": "reflect", "context": "full", "tries": 3}, "env_args": {"tries": 7}}
    path.write_text(json.dumps(result))
    settings = read_result(path)["settings"]
    assert settings["agent"] == {"name": "reflect", "context": "full", "attempts": 3}
    assert settings["env_args"] == {"tries": 7}  # arguments of the environment keep their names


def test_eval_resumes_the_run(run: Run, old_run: Path) -> None:
    lines = (old_run / "trajectories.jsonl").read_text().splitlines(keepends=True)
    (old_run / "trajectories.jsonl").write_text(lines[0])
    metrics = json.loads((old_run / "eval.json").read_text())["metrics"]["overall"]
    outcome = run(*WORDS, "--out", old_run, "--resume", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["schema"] == 2
    assert outcome.json["metrics"]["overall"]["success"] == metrics["success"]
    assert len((old_run / "trajectories.jsonl").read_text().splitlines()) == len(lines) == 2


def test_eval_refuses_other_settings(refuses: Run, old_run: Path) -> None:
    other = [3 if word == 2 else word for word in WORDS]
    assert "episodes_per_task is 2 there and 3 here" in refuses(*other, "--out", old_run, "--resume").err


def test_report_reads_the_run(run: Run, old_run: Path) -> None:
    found = run("report", old_run, "--agentgym-rl", "--json").json
    assert found["schema"] == 2
    old = read_result(old_run / "eval.json")["agentgym_rl_table"]
    assert without_notes(found["agentgym_rl_table"]) == without_notes(old)
    assert run("report", old_run).code == 0
    assert "episodes\\_per\\_task" in (old_run / "report.md").read_text()


def test_compare_reads_the_run(run: Run, old_run: Path) -> None:
    assert run(*WORDS, "--out", "new").code == 0
    outcome = run("compare", old_run, "new")
    assert (outcome.code, outcome.err) == (0, "")


def test_the_viewer_reads_the_run(run: Run, old_run: Path) -> None:
    pytest.importorskip("starlette")
    assert run("view", old_run, "--export", "page.html").out.startswith("2 episodes")
