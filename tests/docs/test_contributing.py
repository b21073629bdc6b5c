"""CONTRIBUTING.md shows what each addition takes; here each is made in a copy of the repository, and used."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED = ("agentgym_envs", "adapters", "tests", "scripts", "pyproject.toml")
BLOCK = re.compile(r"^<!-- (new file|append to|import|row): (\S+)(?: (\w+))? -->\n```\w+\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files that additions are made in."""
    copy = tmp_path_factory.mktemp("repository")
    listed = subprocess.run(["git", "ls-files", "-z", *COPIED], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture
def add(repository: Path) -> Callable[[str], None]:
    """Make the addition that a section shows."""

    def add(kind: str) -> None:
        section = PAGE.split(f"## Add {kind}\n")[1].split("\n## ")[0]
        blocks = BLOCK.findall(section)
        assert blocks, f"the section has no blocks: {kind}"
        for how, path, table, code in blocks:
            change(repository / path, how, table, code)

    return add


def change(path: Path, how: str, table: str, code: str) -> None:
    """Carry out a block: a new file, code at the end, an import after `__future__`, or a row at the end of a table."""
    if how == "new file":
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if how == "append to":
        text += f"\n\n{code}"
    elif how == "import":
        text = text.replace("from __future__ import annotations\n", f"from __future__ import annotations\n\n{code}", 1)
    else:
        found = re.search(rf"^{table}\b.*?^(?=[)}}\]])", text, re.M | re.S)
        assert found, f"{path.name} has no table {table}"
        rows = "".join(line.removeprefix("+") for line in code.splitlines(keepends=True))
        text = text[: found.end()] + rows + text[found.end() :]
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run Python in the copy; returns the output."""
    folders = (repository, repository / "adapters/trl", repository / "adapters/verl")
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, folders)))
    monkeypatch.setenv("COLUMNS", "150")

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=repository, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


pytestmark = pytest.mark.slow


def test_the_scenario_recipe_works(add: Callable[[str], None], run: Callable[..., str]) -> None:
    add("a scenario")
    run(
        "-c",
        "from functools import partial\n"
        "import gymnasium as gym, agentgym_envs\n"
        "from tests import contract\n"
        "for check in contract.CHECKS:\n"
        "    check(partial(gym.make, 'AgentGym/Counting-v0'))\n",
    )
    assert "count up to a number" in run("-m", "agentgym_envs", "list", "counting")


@pytest.mark.train
def test_the_estimator_recipe_works(add: Callable[[str], None], run: Callable[..., str]) -> None:
    add("an estimator")
    assert "--gamma" in run("-m", "agentgym_envs", "train", "rewards-to-go", "--help")


def test_the_search_engine_recipe_works(add: Callable[[str], None], run: Callable[..., str], tmp_path: Path) -> None:
    add("a search engine")
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "index"
    corpus.write_text(
        '{"id": "1", "contents": "\\"Lima\\"\\nLima is the capital of Peru."}\n'
        '{"id": "2", "contents": "\\"Quito\\"\\nQuito is high."}\n'
    )
    run("-m", "agentgym_envs", "search", "index", str(corpus), "--engine", "overlap", "--out", str(index))
    assert "Lima" in run(
        "-m", "agentgym_envs", "search", "query", str(index), "the capital of Peru", "--engine", "overlap"
    )
    assert "overlap (shared words)" in run("-m", "agentgym_envs", "search", "index", "--help").replace("\n", " ")


def test_the_web_task_recipe_works(
    add: Callable[[str], None], run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("a web task")
    monkeypatch.setenv("AGENTGYM_SLICE", "all")
    chosen = "forum-open-newest-of or forum-post-author-here or wordings"
    words = ("-p", "no:cacheprovider", "tests/webarena/test_templates.py", "-k", chosen)
    # of each template: twice its instances, its evaluators and plays; and the wordings of all
    assert "9 passed" in run("-m", "pytest", "-v", *words)


def test_the_command_recipe_works(add: Callable[[str], None], run: Callable[..., str]) -> None:
    add("a command")
    assert run("-m", "agentgym_envs", "count", "textcraft").strip() == "544"
    assert "count" in run("-m", "agentgym_envs", "--help")
