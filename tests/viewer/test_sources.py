"""The search for files with episodes, and the names of sources."""

import os
import threading
from pathlib import Path

import pytest

from agentgym_envs.viewer import sources
from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.follow import Tail
from agentgym_envs.viewer.sources import find_sources, is_trajectories

from .records import logged, record, save, save_log


def found(*paths: Path) -> dict[str, list[str]]:
    """The names of the files by the names and kinds of their sources."""
    names: dict[str, list[str]] = {}
    for path, source in find_sources(paths).files:
        names.setdefault(f"{source.name} ({source.kind})", []).append(path.name)
    return names


def touch(path: Path, text: str = "{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_of_all_kinds_are_found(tmp_path: Path) -> None:
    save(tmp_path / "single.jsonl", record())
    save(tmp_path / "eval" / "trajectories.jsonl", record())
    touch(tmp_path / "eval" / "eval.json")
    for name in ("step-2", "step-10", "eval-2"):
        save(tmp_path / "runs" / "grpo" / "trajectories" / f"{name}.jsonl", record())
    touch(tmp_path / "runs" / "grpo" / "metrics.jsonl", '{"step": 1}\n')
    save_log(tmp_path / "log" / "step1" / "0.json", logged(1, 0.0))
    save_log(tmp_path / "log" / "steptest_batch_3" / "1.json", logged(1, 0.0))
    save_log(tmp_path / "log" / "steps" / "0.json")
    save_log(tmp_path / "log" / "step1" / "summary.json")
    touch(tmp_path / "data.jsonl", '{"question": "?"}\n')
    touch(tmp_path / "single.tokens.jsonl", '{"schema":1,"of":"0"}\n')
    touch(tmp_path / "single.labels.jsonl", '{"schema":1,"of":"0","env_id":"A-v0"}\n')
    save(tmp_path / ".hidden" / "t.jsonl", record())
    save(tmp_path / "runs" / "grpo" / "checkpoint-5" / "t.jsonl", record())
    assert found(tmp_path) == {
        "single.jsonl (trajectories)": ["single.jsonl"],
        "eval (run)": ["trajectories.jsonl"],
        "runs/grpo (run)": ["eval-2.jsonl", "step-2.jsonl", "step-10.jsonl"],
        "log (agentgym-rl)": ["0.json", "1.json"],
    }
    search = find_sources([tmp_path])
    assert search.runs == [tmp_path / "log", tmp_path / "runs" / "grpo"]
    assert not search.problems


def test_source_names_are_short_and_distinct(tmp_path: Path) -> None:
    first, second = (save(tmp_path / name / "t.jsonl", record()) for name in ("a", "b"))
    assert list(found(first)) == ["t.jsonl (trajectories)"]
    assert list(found(first, second)) == ["a/t.jsonl (trajectories)", "b/t.jsonl (trajectories)"]
    assert list(found(tmp_path / "a", tmp_path / "b")) == ["a/t.jsonl (trajectories)", "b/t.jsonl (trajectories)"]
    touch(tmp_path / "a" / "eval.json")
    assert list(found(tmp_path / "a")) == ["a (run)"]
    assert list(found(first)) == ["a (run)"]


def test_file_of_a_run_is_named_after_the_run(tmp_path: Path) -> None:
    log = save_log(tmp_path / "log" / "step1" / "0.json", logged(1, 0.0))
    step = save(tmp_path / "grpo" / "trajectories" / "step-1.jsonl", record())
    touch(tmp_path / "grpo" / "run.json")
    for path in (log, log.parent, log.parent.parent):
        assert found(path) == {"log (agentgym-rl)": ["0.json"]}
    for path in (step, step.parent, step.parent.parent):
        assert found(path) == {"grpo (run)": ["step-1.jsonl"]}


def test_cyclic_links_end_and_files_are_found_once(tmp_path: Path) -> None:
    path = save(tmp_path / "a" / "t.jsonl", record())
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "a")
    (tmp_path / "hard.jsonl").hardlink_to(path)
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert sum(map(len, found(tmp_path, tmp_path / "a", path).values())) == 1


def test_linked_folder_is_searched(tmp_path: Path) -> None:
    save(tmp_path / "disk" / "t.jsonl", record())
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "linked").symlink_to(tmp_path / "disk")
    assert found(tmp_path / "here") == {"linked/t.jsonl (trajectories)": ["t.jsonl"]}


def test_named_path_without_episodes_is_a_problem(tmp_path: Path) -> None:
    other = touch(tmp_path / "data.jsonl", '{"question": "?"}\n')
    search = find_sources([other, tmp_path / "gone"])
    assert not search.files
    assert [text.partition(" ")[0] for text in search.problems] == [str(other), str(tmp_path / "gone")]


def test_empty_file_is_watched(tmp_path: Path) -> None:
    path = touch(tmp_path / "t.jsonl", "")
    assert is_trajectories(path) is None
    assert [file for file, _ in find_sources([tmp_path]).files] == [path]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who may not read everything")
def test_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record())
    path.chmod(0)
    assert [text for text in find_sources([tmp_path]).problems if "Permission denied" in text]


def test_number_of_searched_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_ENTRIES", 5)
    for number in range(9):
        save(tmp_path / f"{number}.jsonl", record())
    search = find_sources([tmp_path])
    assert [path.name for path, _ in search.files] == [f"{number}.jsonl" for number in range(5)]
    assert "5 files" in search.problems[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_are_skipped(tmp_path: Path) -> None:
    """Opening a pipe would block until another process writes to it."""
    save(tmp_path / "t.jsonl", record())
    (tmp_path / "step1").mkdir()
    for name in ("pipe.jsonl", "metrics.jsonl", "t.tokens.jsonl", "step1/0.json"):
        os.mkfifo(tmp_path / name)
    seen = list[object]()

    def look() -> None:
        viewer = Viewer([tmp_path, tmp_path / "pipe.jsonl"])
        summary = viewer.summary()
        seen.extend((summary["count"], len(summary["problems"]), viewer.tokens(0)["segments"]))
        seen.append(viewer.training()["runs"] != [])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(60)
    assert seen == [1, 1, [], True]


def test_file_replaced_by_a_pipe_is_removed(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record())
    tail = Tail(path)
    assert tail.look() == "grown"
    path.unlink()
    path.mkdir()  # like a pipe, not a regular file
    assert (tail.look(), tail.is_unchanged()) == ("gone", False)
