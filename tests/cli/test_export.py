"""`agentgym export`: what it writes, what it refuses, and that the viewer opens it again."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.export import atif
from tests.cli.conftest import Run
from tests.export.episodes import write_run


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return write_run(tmp_path).relative_to(tmp_path)


def test_a_run_is_exported_to_each_format(run: Run, record: Path) -> None:
    assert run("export", record).out.startswith("3 episodes in run.atif, for Harbor")
    assert len(list(Path("run.atif").glob("*.atif.json"))) == 3
    found = run("export", record / "trajectories.jsonl", "--format", "otlp", "--json").json
    assert found == {"out": "trajectories.otlp.jsonl", "episodes": 3, "without_times": 0}
    found = run("export", record, "--format", "nemo", "--out", "nemo", "--port", 9000, "--json").json
    assert found["rows"] >= 2 and "port: 9000" in Path("nemo/agentgym.yaml").read_text()


def test_options_reach_their_format(run: Run, record: Path) -> None:
    assert run("export", record, "--atif-version", "1.7", "--out", "a.atif.jsonl").code == 0
    assert json.loads(Path("a.atif.jsonl").read_text().splitlines()[0])["schema_version"] == "ATIF-v1.7"
    for option in ("--no-content", "--content"):
        assert run("export", record, "--format", "otlp", option, "--out", f"x{option}.jsonl").code == 0
    assert "gen_ai.input.messages" not in Path("x--no-content.jsonl").read_text()
    assert "gen_ai.input.messages" in Path("x--content.jsonl").read_text()


def test_tasks_of_an_environment_become_rows(run: Run) -> None:
    words = ("export", "--format", "nemo", "--env", "textcraft", "--tasks", 4, "--seed", 2, "--out", "out")
    assert run(*words).out.startswith("4 rows in out")
    rows = [json.loads(line) for line in Path("out/rows.jsonl").read_text().splitlines()]
    assert len({row["agentgym"]["task"] for row in rows}) == 4 and {row["agentgym"]["seed"] for row in rows} == {2}
    before = Path("out/rows.jsonl").read_bytes()
    assert run(*words, "--overwrite").code == 0 and Path("out/rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "give a RUN"),
        (("none",), "there is no file or folder none"),
        (("run", "--format", "xml"), "choose one of atif, otlp, nemo"),
        (("run", "--content"), "--content is an option of --format otlp"),
        (("run", "--format", "otlp", "--atif-version", "1.7"), "--atif-version is an option of --format atif"),
        (("run", "--atif-version", "2"), "1.8 or 1.7"),
        (("run", "--env", "textcraft"), "--format nemo or hf-dataset only"),
        (("run", "--out", "run"), "run already exists"),
        (("run", "--out", "run/trajectories.jsonl"), "already exists"),
    ],
)
def test_invalid_requests_are_refused(refuses: Run, record: Path, words: tuple[str, ...], part: str) -> None:
    before = (record / "trajectories.jsonl").read_bytes()
    assert part in refuses("export", *words).err
    assert (record / "trajectories.jsonl").read_bytes() == before


def test_a_data_set_is_written_at_once_and_not_twice(run: Run, refuses: Run, record: Path) -> None:
    pytest.importorskip("pyarrow")
    assert run("export", record, "--format", "hf-dataset", "--json").json["rows"] == 4  # a team has two agents
    before = Path("run.hf/README.md").read_bytes()
    assert "run.hf already exists" in refuses("export", record, "--format", "hf-dataset").err
    words = ("export", "--format", "hf-dataset", "--env", "textcraft", "--tasks", 3, "--out", "run.hf")
    assert "already exists" in refuses(*words).err and Path("run.hf/README.md").read_bytes() == before
    Path("run.hf/notes.txt").write_text("mine")
    assert run(*words, "--overwrite").out.startswith("3 rows in run.hf")
    found = sorted(str(file.relative_to("run.hf")) for file in Path("run.hf").rglob("*") if file.is_file())
    assert found == ["README.md", "notes.txt", "tasks/train-00000-of-00001.parquet"]


def test_missing_times_are_reported(run: Run) -> None:
    assert run("demos", "textcraft", "--tasks", 2, "--out", "d.jsonl").code == 0
    outcome = run("export", "d.jsonl", "--format", "otlp")
    assert outcome.code == 0 and "2 of them have no times" in outcome.err


@pytest.mark.parametrize(
    ("error", "code", "part"),
    [(KeyboardInterrupt(), 130, "interrupted"), (OSError(errno.ENOSPC, "full"), 1, "disk is full")],
)
def test_an_interruption_reports_the_files(
    run: Run, record: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, part: str
) -> None:
    to_atif, calls = atif.to_atif, list[Any]()

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise error
        return to_atif(*args, **kwargs)

    monkeypatch.setattr("agentgym_envs.export.writers.to_atif", failing)
    outcome = run("export", record)
    assert outcome.code == code and part in outcome.err and "1 episodes are complete in run.atif" in outcome.err
    calls.clear()
    outcome = run("export", record, "--out", "all.atif.jsonl")
    assert "nothing was written" in outcome.err and not Path("all.atif.jsonl").exists()


def test_the_viewer_opens_an_export(run: Run, record: Path) -> None:
    assert run("export", record).code == run("export", record, "--out", "all.atif.jsonl").code == 0
    assert run("view", "run.atif", "--export", "page.html").out.startswith("3 episodes")
    assert run("view", "all.atif.jsonl", "--export", "page.html").out.startswith("3 episodes")
    one = Path("run.atif/trajectories-1.atif.json").rename("other-name.json")
    assert run("view", one, "--export", "page.html").out.startswith("1 episodes")
