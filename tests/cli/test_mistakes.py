"""What somebody gets wrong at the command line: each is told in one line, and nothing is lost by it."""

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
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    refuses: Run, run: Run, tmp_path: Path, words: str, path: str
) -> None:
    (tmp_path / "file").touch()
    assert run("demos", "textcraft", "--tasks", 1, "--out", "run.jsonl").code == 0
    err = refuses(*words.split(), path).err
    expected = "is a folder" if path == "." else f"cannot write to {words.split()[-1]} {path}: Not a directory"
    assert expected in err


def test_looking_whether_a_file_can_be_written_leaves_links_and_devices(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link.html", tmp_path / "pipe"
    link.symlink_to(tmp_path / "target.html")
    os.mkfifo(pipe)
    for path in (link, pipe, Path(os.devnull)):
        check_writable("--out", path)
    assert link.is_symlink() and not link.exists()
    assert pipe.is_fifo()


def test_an_index_that_cannot_be_written(refuses: Run, tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    (tmp_path / "file").touch()
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "contents": "title\\ntext"}\n')
    err = refuses("search", "index", "corpus.jsonl", "--out", "file/index").err
    assert "cannot write to --out file/index: Not a directory; choose another" in err


def test_looking_whether_a_file_can_be_written_leaves_none(refuses: Run, tmp_path: Path) -> None:
    refuses("report", "nowhere.jsonl", "--html", "page.html")
    assert not (tmp_path / "page.html").exists()
    (tmp_path / "page.html").write_text("an old page")
    refuses("report", "nowhere.jsonl", "--html", "page.html")
    assert (tmp_path / "page.html").read_text() == "an old page"


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("words", ["bench textcraft --seconds", "eval textcraft --policy random --temperature"])
def test_a_number_without_a_value(refuses: Run, words: str, number: str) -> None:
    assert f"{number} is no number to reckon with" in refuses(*words.split(), number).err


def test_types_are_named_in_words(refuses: Run) -> None:
    assert "'x' is not a whole number (see" in refuses("solve", "textcraft", "--seed", "x").err
    assert "'x' is not a whole number (see" in refuses("view", "--episode", "x").err
    assert "'x' is not a number (see" in refuses("bench", "textcraft", "--seconds", "x").err


def test_all_is_among_the_splits(refuses: Run) -> None:
    for words in (
        ("solve", "textcraft"),
        ("demos", "textcraft", "--out", "d"),
        ("eval", "textcraft", "--policy=random"),
    ):
        assert "choose one of train, validation, test, all" in refuses(*words, "--split", "dev").err


@pytest.mark.parametrize(
    ("policy", "meant"),
    [("orcale", "oracle"), ("openia:gpt", "openai:MODEL"), ("oracle:x", "oracle"), ("replya:file", "replay:FILE")],
)
def test_a_misspelt_policy_leaves_nothing_behind(refuses: Run, tmp_path: Path, policy: str, meant: str) -> None:
    err = refuses("eval", "textcraft", "--policy", policy, "--out", "run").err
    assert f"did you mean {meant}?" in err
    assert not (tmp_path / "run").exists()


def test_a_policy_of_nobody_is_not_taken_for_a_package(refuses: Run) -> None:
    assert "pip install" not in refuses("eval", "textcraft", "--policy", "anthropomorphic:model").err


def test_a_run_that_failed_before_its_first_episode_is_none(
    run: Run, refuses: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, engines_mine=f"{__name__}:engine_without_model")
    words = ("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy")
    assert run(*words, "mine:x")[::2] == (1, "agentgym: there is no model x\n")
    assert run(*words, "oracle").code == 0
    assert "holds an evaluation already" in refuses(*words, "random").err


def test_what_eval_wrote_is_not_lost_with_its_trajectories(run: Run, refuses: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy", "oracle")
    assert run(*words).code == 0
    (tmp_path / "run" / "trajectories.jsonl").unlink()
    assert "holds an evaluation already" in refuses(*words).err


def test_a_broken_eval_json_comes_with_a_way_out(run: Run, refuses: Run, tmp_path: Path) -> None:
    assert run("eval", "textcraft", "--tasks", 1, "--out", "run", "--policy", "oracle").code == 0
    (tmp_path / "run" / "eval.json").write_text("{]")
    assert "move it away" in refuses("report", "run").err


def test_a_plug_in_of_ours_that_lacks_a_package(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, commands_train="not_there.cli:main", engines_hf="not_there:load")
    outcome = run("train", "grpo")
    assert outcome[::2] == (
        1,
        "agentgym: agentgym train needs the package 'not_there', which is not installed. "
        "Run: pip install 'agentgym-envs[trl]'\n",
    )
    assert "'not_there'" in run("eval", "textcraft", "--policy", "hf:x", "--tasks", 1).err


class Interrupted(ModuleType):
    """A module during whose import somebody pressed Ctrl-C."""

    def __getattr__(self, name: str) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_before_the_program_is_loaded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentgym_envs.cli.app", Interrupted("app"))
    assert run("list") == (130, "", "agentgym: interrupted\n")
