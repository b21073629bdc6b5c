import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

import agentgym_envs
from agentgym_envs.cli import app, plugins
from agentgym_envs.cli.lazy import docstring_of, paragraphs
from agentgym_envs.errors import EngineError

from .conftest import Run, command, environment

ALL = ("list", "play", "solve", "eval", "demos", "bench", "serve", "train", "tiny-model")


def install(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Install these plug-ins only: group_name="module:function"."""
    found = EntryPoints(
        EntryPoint(name.partition("_")[2].replace("_", "-"), value, f"agentgym.{name.partition('_')[0]}")
        for name, value in points.items()
    )
    monkeypatch.setattr(plugins, "entry_points", found.select)
    for module, cached in ((plugins, "_command_names"), (app, "_program")):
        monkeypatch.setattr(module, cached, getattr(module, cached).__wrapped__)


def seven(argv: list[str]) -> int:
    """A command of a plug-in."""
    sys.stdout.write(repr(argv))
    return 7


def engine_that_fails(model: str, *, chat_template: str | None) -> Any:
    """An engine of a plug-in."""
    raise EngineError(f"no luck with {model} and {chat_template}")


def test_help_names_every_command(run: Run) -> None:
    bare, asked = run(), run("--help")
    assert bare.code == asked.code == 0
    assert bare.out == asked.out
    assert all(f" {name} " in asked.out for name in ALL)


def test_help_lists_the_commands_by_panel(run: Run) -> None:
    lines = run("--help").out.splitlines()
    panels = [line.split()[1] for line in lines if line.startswith("╭─")]
    assert panels == ["Options", "Play", "Evaluate", "Train", "Serve", "This"]
    names = [line.split()[1] for line in lines if line.startswith("│ ") and line[2] != " " and line[2] != "-"]
    assert names[:5] == ["list", "play", "solve", "demos", "eval"]


def test_version_option_prints_the_version(run: Run) -> None:
    assert run("--version").out == f"agentgym-envs {agentgym_envs.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from agentgym_envs.cli import main; main(['--help']);"
        "sys.stderr.write(' '.join(name.partition('.')[0] for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & {"httpx", "torch", "transformers", "trl", "agentgym_trl"}


def test_invalid_requests_print_one_line_and_exit_with_2(refuses: Run) -> None:
    assert "'frobnicate'" in refuses("frobnicate").err
    assert "agentgym play --help" in refuses("play").err
    assert "did you mean AgentGym/TextCraft-v0 or" in refuses("play", "TextKraft").err
    assert "agentgym list" in refuses("solve", "NetHack").err
    assert "registers it: your_module:My/Liar-v0" in refuses("eval", "My/Liar-v0", "--policy", "oracle").err
    assert "did you mean AgentGym/TextCraft-v0" in refuses("solve", "AgentGyn/TextCraft-v1").err
    assert "there is no task 'textcraft/9999'" in refuses("solve", "textcraft", "--task", "textcraft/9999").err
    assert "train, validation, test" in refuses("solve", "textcraft", "--split", "dev").err
    assert "depth-1, depth-2" in refuses("solve", "textcraft", "--groups", "depth-9").err
    assert "KEY=VALUE" in refuses("solve", "textcraft", "--env-arg", "worlds").err
    assert "no argument colour; it has difficulty, goal" in refuses("solve", "textcraft", "--env-arg", "colour=1").err
    assert "invented" in refuses("solve", "textcraft", "--env-arg", "worlds=lost").err
    assert "--max-turns" in refuses("play", "textcraft", "--max-turns", "0").err


def test_a_malformed_recipe_table_prints_one_line(refuses: Run, tmp_path: Path) -> None:
    (tmp_path / "book.json").write_text("{]")
    assert "book.json" in refuses("solve", "textcraft", "--env-arg", "recipe_table=book.json").err


def test_other_environments_of_gymnasium_are_refused(refuses: Run) -> None:
    assert "of this suite" in refuses("play", "CartPole-v1").err


def test_debug_shows_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in run("solve", "NetHack").err
    assert "Traceback" in run("--debug", "solve", "NetHack").err
    monkeypatch.setenv("AGENTGYM_DEBUG", "0")
    assert "Traceback" not in run("solve", "NetHack").err
    monkeypatch.setenv("AGENTGYM_DEBUG", "1")
    assert "Traceback" in run("solve", "NetHack").err


def test_the_arguments_of_a_plug_in_command_are_passed_on_unchanged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, commands_train=f"{__name__}:seven", commands_own_thing=f"{__name__}:seven")
    words = ["grpo", "--help", "-h", "--json", "--", "--x=1", "--version", ""]
    assert run("train", *words)[:2] == (7, repr(words))
    assert run("--debug", "train", *words)[:2] == (7, repr(words))
    assert run("own-thing")[:2] == (7, "[]")
    assert "own-thing" in run("--help").out


def test_a_missing_plug_in_prints_the_install_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    for words in (["train", "grpo", "--x"], ["tiny-model", "--help"]):
        outcome = run(*words)
        assert outcome.code == 1
        assert "pip install 'agentgym-envs[trl]'" in outcome.err
    outcome = run("eval", "textcraft", "--policy", "hf:some/model", "--tasks", 1)
    assert (outcome.code, outcome.err.count("\nagentgym: ")) == (1, 1)
    assert "--policy hf:MODEL needs the package 'transformers'" in outcome.err


def test_a_plug_in_engine_receives_model_and_template(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, engines_mine=f"{__name__}:engine_that_fails")
    (tmp_path / "chat.jinja").write_text("TEMPLATE")
    outcome = run("eval", "textcraft", "--policy", "mine:a:b", "--tasks", 1, "--chat-template", "chat.jinja")
    assert outcome.code == 1 and outcome.err.endswith("\nagentgym: no luck with a:b and TEMPLATE\n")


@pytest.mark.slow
def test_a_closed_pipe_prints_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            command("list"), env=environment(), stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    finally:
        os.close(write)
    assert done.stderr == ""


def test_the_help_without_imports_is_that_of_the_functions() -> None:
    for row in app.COMMANDS:
        assert paragraphs(docstring_of(row.function)) == paragraphs(row.load().__doc__ or "") != ""
    assert docstring_of("agentgym_envs.cli.lazy:nothing") == docstring_of("no_such_module:x") == ""


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; from agentgym_envs.cli import main; main([]); main(['list', '--help']);"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    modules = {row.function.partition(":")[0] for row in app.COMMANDS}
    assert modules & set(done.stderr.split()) == {"agentgym_envs.cli.list_envs"}


@pytest.mark.parametrize(
    "words",
    [
        ["--groups", "depth-1", "--max-turns", 5, "--out", "o"],
        ["--group", "depth-1", "--max_turns", 5, "--output_dir", "o"],
        ["--group=depth-1", "--max_turns=5", "--output-dir=o"],
    ],
    ids=str,
)
def test_options_have_one_spelling_and_accept_others(run: Run, words: list[object]) -> None:
    assert run("eval", "textcraft", "--policy", "random", *words).code == 0
    settings = json.loads(Path("o/eval.json").read_text())["settings"]
    assert (settings["groups"], settings["max_turns"]) == (["depth-1"], 5)


def test_a_misspelt_option_or_command_gets_a_suggestion(refuses: Run) -> None:
    assert "--policy" in refuses("eval", "textcraft", "--polcy", "oracle").err
    assert "--max-turns" in refuses("demos", "textcraft", "--max-turn", 3, "--out", "o").err
    assert "'eval'" in refuses("evl").err
