"""Every command in the README and in docs/ is one that the program takes; some of them are run."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from agentgym_envs.cli.app import main, make_app
from agentgym_envs.errors import UsageError
from tests.docs.snippets import PAGES, ROOT, blocks, commands, our_words

Words = list[str]
WRITTEN: list[tuple[str, Words]] = [
    (f"{page}:{block.line} {' '.join(words)[:50]}", words)
    for page in PAGES
    for block in blocks(page, "bash", "sh")
    for words in commands(block)
]
OURS = [(name, found) for name, words in WRITTEN if (found := our_words(words)) is not None]
PROGRAM = typer.main.get_command(make_app())
PLUGINS = {"train", "verl", "tiny-model"}


def cases(rows: list[tuple[str, Words]], choose: Callable[[Words], bool]) -> list[Any]:
    return [pytest.param(words, id=name) for name, words in rows if choose(words)]


CORE = cases(OURS, lambda words: words[0] not in PLUGINS)
TRAIN = cases(OURS, lambda words: words[0] == "train")
VERL = cases(OURS, lambda words: words[0] == "verl")
MODULES = cases(WRITTEN, lambda words: "-m" in words and our_words(words) is None)
RUN = (
    "agentgym list",
    "agentgym solve AgentGym/TextCraft-v0 --task textcraft/300",
    "agentgym demos AgentGym/TextCraft-v0 --tasks 100 --out demos.jsonl",
    "agentgym eval textcraft --policy random --out runs/random",
    "agentgym view runs --export best.html --env textcraft --success --limit 50",
)


class Parsed(Exception):
    """The options were read, and nothing was run."""


def parse(command: Any, words: list[str]) -> None:
    """Read the words as the program does, and run nothing. Raises what Typer says of a wrong one."""
    words = ["1" if re.fullmatch(r"\$\w+", word) else word for word in words if word != "..."]
    while hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, f"there is no command {name}: {sorted(command.commands)}"
        command = command.commands[name]
    with command.make_context("agentgym", words):
        pass


@pytest.mark.parametrize("words", CORE)
def test_the_program_accepts_the_command(words: list[str]) -> None:
    parse(PROGRAM, words)


def test_a_wrong_option_is_detected() -> None:
    with pytest.raises(Exception, match="no-such-option"):
        parse(PROGRAM, ["eval", "textcraft", "--no-such-option", "1"])


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.parametrize("words", TRAIN)
def test_train_accepts_the_command(words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Parsed):
        parse_train(words, monkeypatch, tmp_path)


@pytest.mark.train
@pytest.mark.slow
def test_a_wrong_training_option_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no_such_option"):
        parse_train(["train", "grpo", "...", "--no_such_option", "1"], monkeypatch, tmp_path)


def parse_train(words: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Read training options by the program's own parser. Raises Parsed once they are read."""
    from agentgym_trl.algorithms import online_algorithms
    from agentgym_trl.cli import train
    from agentgym_trl.cli.arguments import parse as read

    def stop(*args: Any, **kwargs: Any) -> None:
        read(*args, **kwargs)
        raise Parsed

    algorithm = words[1]
    module = importlib.import_module(f"agentgym_trl.cli.{'online' if algorithm in online_algorithms() else algorithm}")
    monkeypatch.setattr(module, "parse", stop)
    monkeypatch.chdir(folder)
    train(_complete(words[1:]))


def _complete(words: list[str]) -> list[str]:
    """Replace `...` of a page by the options that every run needs."""
    if "..." not in words:
        return words
    # `--model ...` is a model; any other `...` means options that the page omits.
    given = [
        "M" if word == "..." and before == "--model" else word
        for before, word in zip(["", *words[:-1]], words, strict=True)
    ]
    given = [word for word in given if word != "..."]
    needed = {"--env": "AgentGym/TextCraft-v0", "--model": "M", "--out": "runs/x"}
    return given + [word for name, value in needed.items() if name not in given for word in (name, value)]


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.parametrize("words", VERL)
def test_verl_accepts_the_command(words: list[str]) -> None:
    pytest.importorskip("verl", reason="the extra verl is not installed")
    from agentgym_verl.cli import _app

    parse(typer.main.get_command(_app()), words[1:])


@pytest.mark.parametrize("words", MODULES)
def test_the_module_exists(words: list[str]) -> None:
    module = words[words.index("-m") + 1]
    if module.split(".")[0] != "benchmarks":
        pytest.skip(f"{module} is another package's")
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"there is no {module}"
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    assert not folders or (folders[0] / "__main__.py").exists(), f"{module} cannot be run"
    own = [file for folder in folders for file in folder.glob("*.py")] or [Path(str(spec.origin))]
    files = [ROOT / "benchmarks/common.py", *own]
    sources = "".join(file.read_text() for file in files)
    for word in words:
        assert not word.startswith("--") or f'"{word}"' in sources, f"{module} has no {word}"


@pytest.mark.slow
def test_the_cheap_commands_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    written = {" ".join(words) for _, words in WRITTEN}
    for command in RUN:
        assert command in written, f"no page says {command!r} any more"
        assert main(command.split()[1:]) == 0, capsys.readouterr().err
    assert (tmp_path / "best.html").exists() and (tmp_path / "runs/random/trajectories.jsonl").exists()
