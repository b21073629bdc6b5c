"""The list of planted bugs fits the tree, and the runner distinguishes bugs that tests find from others."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("planted_bugs", ROOT / "scripts/planted_bugs.py")
assert _spec and _spec.loader
planted_bugs = importlib.util.module_from_spec(_spec)  # by its path: installed packages have a `scripts`, too
sys.modules["planted_bugs"] = planted_bugs
_spec.loader.exec_module(planted_bugs)
PlantedBug = planted_bugs.PlantedBug


def test_every_bug_can_be_planted() -> None:
    bugs = planted_bugs.read_bugs()
    assert len(bugs) >= 40
    for bug in bugs:
        text = (ROOT / bug.file).read_text(encoding="utf-8")
        ast.parse(bug.planted(text))  # a mistake in the logic, not in the syntax
        assert bug.why and bug.old != bug.new, bug.name
        assert bug.tests and all((ROOT / test).is_file() for test in bug.tests), bug.name


def test_every_package_has_a_planted_bug() -> None:
    init = {path.parent.relative_to(ROOT) for path in ROOT.glob("agentgym_envs/*/__init__.py")}
    init |= {path.parent.relative_to(ROOT) for path in ROOT.glob("adapters/*/*/__init__.py")}
    files = [Path(bug.file) for bug in planted_bugs.read_bugs()]
    assert not {str(package) for package in init if not any(file.is_relative_to(package) for file in files)}


@pytest.mark.parametrize("text", ["", "one = 1\none = 1\n"])
def test_a_text_that_does_not_occur_once_is_an_error(text: str) -> None:
    bug = PlantedBug("one", "why", "numbers.py", "one = 1", "one = 2", ("test_numbers.py",))
    with pytest.raises(ValueError, match="change the bug 'one'"):
        bug.planted(text)


@pytest.mark.slow
def test_the_runner_judges_bugs_in_a_copy(tmp_path: Path) -> None:
    def git(*command: str) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *command], cwd=tmp_path, check=True)

    (tmp_path / "figures.py").write_text("ONE = 1\nTWO = 2\n")
    (tmp_path / "test_figures.py").write_text("import figures\n\ndef test_one():\n    assert figures.ONE == 1\n")
    (tmp_path / "test_red.py").write_text("def test_red():\n    assert False\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "begin")
    (tmp_path / "figures.py").write_text("ONE = 1\nTWO = 22\n")  # changes of tracked files belong to the copy
    found = {}
    with planted_bugs.copied(tmp_path) as tree:
        for old, test in (("ONE = 1", "figures"), ("TWO = 22", "figures"), ("ONE = 1", "red")):
            bug = PlantedBug("name", "why", "figures.py", old, old + "0", (f"test_{test}.py",))
            found[old, test] = planted_bugs.judge(bug, tree)
        assert planted_bugs.judge(bug, tree, seconds=0.01) == ("unclear", "a time limit")
        assert (tree / "figures.py").read_text() == "ONE = 1\nTWO = 22\n"
    assert found["ONE = 1", "figures"] == ("killed", "test_figures.py::test_one")
    assert found["TWO = 22", "figures"].result == "survived"
    assert found["ONE = 1", "red"] == ("unclear", "test_red.py::test_red")
    assert not tree.exists()
