"""Mistakes at the command line: each prints one line, and no file is lost."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agentgym_envs.cli.common import check_writable
from agentgym_envs.errors import EngineError

from .conftest import Run
from .test_app import install


def engine_without_model(model: str, *, chat_template: str | None) -> None:
    raise EngineError(f"there is no model {model}")


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("demos textcraft --tasks 1 --out", "file/out"),
        ("demos textcraft --tasks 1 --out", "."),
        ("play textcraft --out", "file/out"),
        ("report run.jsonl --html", "."),
        ("report run.jsonl --csv", "file/out"),
        ("report run.jsonl --markdown", "file/out"),
        ("view run.jsonl --export", "file/out"),
    ],
)
def test_an_unwritable_file_is_refused_before_the_run(
    refuses: Run, run: Run, tmp_path: Path, words: str, path: str
) -> None:
    (tmp_path / "file").touch()
    assert run("demos", "textcraft", "--tasks", 1, "--out", "run.jsonl").code == 0
    err = refuses(*words.split(), path).err
    expected = "is a folder" if path == "." else f"cannot write to {words.split()[-1]} {path}: Not a directory"
    assert expected in err


def test_check_writable_does_not_change_links_and_devices(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link.html", tmp_path / "pipe"
    link.symlink_to(tmp_path / "target.html")
    os.mkfifo(pipe)
    for path in (link, pipe, Path(os.devnull)):
        check_writable("--out", path)
    assert link.is_symlink() and not link.exists()
    assert pipe.is_fifo()


def test_an_unwritable_index_is_refused(refuses: Run, tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    (tmp_path / "file").touch()
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "contents": "title\\ntext"}\n')
    err = refuses("search", "index", "corpus.jsonl", "--out", "file/index").err
    assert "cannot write to --out file/index: Not a directory; choose another" in err


def test_check_writable_leaves_no_new_file(refuses: Run, tmp_path: Path) -> None:
    refuses("report", "nowhere.jsonl", "--html", "page.html")
    assert not (tmp_path / "page.html").exists()
    (tmp_path / "page.html").write_text("an old page")
    refuses("report", "nowhere.jsonl", "--html", "page.html")
    assert (tmp_path / "page.html").read_text() == "an old page"


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("words", ["bench textcraft --seconds", "eval textcraft --policy random --temperature"])
def test_nan_and_infinity_are_refused(refuses: Run, words: str, number: str) -> None:
    assert f"{number} is not a finite number" in refuses(*words.split(), number).err


def test_types_have_readable_names(refuses: Run) -> None:
    assert "'x' is not a whole number (see" in refuses("solve", "textcraft", "--seed", "x").err
    assert "'x' is not a whole number (see" in refuses("view", "--episode", "x").err
    assert "'x' is not a number (see" in refuses("bench", "textcraft", "--seconds", "x").err


def test_all_is_listed_with_the_splits(refuses: Run) -> None:
    for words in (
        ("solve", "textcraft"),
        ("demos", "textcraft", "--out", "d"),
        ("eval", "textcraft", "--policy=random"),
    ):
        assert "choose one of train, validation, test, all" in refuses(*words, "--split", "dev").err


@pytest.mark.parametrize(
    ("policy", "suggestion"),
    [("orcale", "oracle"), ("openia:gpt", "openai:MODEL"), ("oracle:", "oracle"), ("replya:file", "replay:FILE")],
)
def test_a_misspelt_policy_creates_no_files(refuses: Run, tmp_path: Path, policy: str, suggestion: str) -> None:
    err = refuses("eval", "textcraft", "--policy", policy, "--out", "run").err
    assert f"did you mean {suggestion}?" in err
    assert not (tmp_path / "run").exists()


def test_an_unknown_policy_does_not_suggest_a_package(refuses: Run) -> None:
    assert "pip install" not in refuses("eval", "textcraft", "--policy", "anthropomorphic:model").err


def test_a_run_without_any_episode_can_be_replaced(run: Run, refuses: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, engines_mine=f"{__name__}:engine_without_model")
    words = ("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy")
    outcome = run(*words, "mine:x")
    assert outcome.code == 1 and outcome.err.endswith("\nagentgym: there is no model x\n")
    assert run(*words, "oracle").code == 0
    assert "already contains an evaluation" in refuses(*words, "random").err


def test_eval_json_without_trajectories_is_not_overwritten(run: Run, refuses: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy", "oracle")
    assert run(*words).code == 0
    (tmp_path / "run" / "trajectories.jsonl").unlink()
    assert "already contains an evaluation" in refuses(*words).err


def test_a_finished_run_that_lost_episodes_keeps_its_reports(run: Run, refuses: Run, tmp_path: Path) -> None:
    assert run("eval", "textcraft", "--tasks", 3, "--out", "run", "--policy", "oracle").code == 0
    record, page = tmp_path / "run" / "trajectories.jsonl", tmp_path / "run" / "report.md"
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:-1]))
    before = page.read_bytes()
    assert "2 are left, and eval.json counts 3" in refuses("report", "run").err
    assert page.read_bytes() == before
    assert run("report", record).code == 0


def test_the_error_of_a_broken_eval_json_suggests_a_remedy(run: Run, refuses: Run, tmp_path: Path) -> None:
    assert run("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy", "oracle").code == 0
    (tmp_path / "run" / "eval.json").write_text("{]")
    assert "move it away" in refuses("report", "run").err


def test_a_missing_package_of_our_plug_ins_prints_the_install_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, commands_train="not_there.cli:main", engines_hf="not_there:load")
    outcome = run("train", "grpo")
    assert outcome[::2] == (
        1,
        "agentgym: agentgym train needs the package 'not_there', which is not installed. "
        "Run: pip install 'agentgym-envs[trl]'\n",
    )
    assert "'not_there'" in run("eval", "textcraft", "--policy", "hf:x", "--tasks", 1).err


class Interrupted(ModuleType):
    """A module whose import is interrupted by Ctrl-C."""

    def __getattr__(self, name: str) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_during_the_imports_prints_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentgym_envs.cli.app", Interrupted("app"))
    assert run("list") == (130, "", "agentgym: interrupted\n")
