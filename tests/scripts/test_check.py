"""Tests of `scripts/check`: the checks it selects, and its exit."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("check", ROOT / "scripts/check.py")
assert _spec and _spec.loader
check = importlib.util.module_from_spec(_spec)  # by its path: installed packages have a `scripts`, too
sys.modules["check"] = check
_spec.loader.exec_module(check)


def commands(*arguments: str) -> dict[str, tuple[str, ...]]:
    return {step.title: step.command for step in check.steps(list(arguments))}


def paths_of_tests(*arguments: str) -> list[str]:
    return list(commands(*arguments)["tests"][len(check.PYTEST) :])


@pytest.mark.parametrize("arguments", [(), ("fast",), ("all",), (".",)])
def test_a_run_without_paths_checks_everything(arguments: tuple[str, ...]) -> None:
    found = commands(*arguments)
    audit = ["audit"] if arguments == ("all",) else []
    assert list(found) == ["format", "lint", "language", "types", "tests", *audit]
    assert (found["format"], found["types"]) == (("ruff", "format", "--check", "."), ("mypy",))
    assert found["tests"][len(check.PYTEST) :] == tuple(check.MODES.get("".join(arguments), ()))


def test_a_module_selects_its_package_and_the_tests_that_import_it() -> None:
    found = commands("agentgym_envs/textcraft/oracle.py")
    assert found["lint"] == ("ruff", "check", "agentgym_envs/textcraft/oracle.py")
    assert found["language"] == ("scripts/language.py", "agentgym_envs/textcraft/oracle.py")
    assert "agentgym_envs/textcraft" in found["types"]
    tests = paths_of_tests("agentgym_envs/textcraft/oracle.py")
    assert "tests/textcraft/test_oracle.py" in tests
    assert all("agentgym_envs.textcraft.oracle" in check.imported(ROOT / test) for test in tests)


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("agentgym_envs/textcraft", ["tests/textcraft"]),
        ("agentgym_envs", ["tests"]),
        ("tests/test_spaces.py", ["tests/test_spaces.py"]),
        ("tests/contract.py", ["tests/test_contract.py"]),
        ("docs/tasks.md", ["tests/docs"]),
        ("README.md", ["tests/docs"]),
        ("scripts/lib.sh", ["tests/scripts"]),
        ("adapters/verl", ["tests/adapters/verl"]),
    ],
)
def test_a_path_selects_its_tests(path: str, tests: list[str]) -> None:
    assert paths_of_tests(path) == tests


def test_several_paths_are_checked_together() -> None:
    assert paths_of_tests("README.md", "tests/test_spaces.py", "docs") == ["tests/docs", "tests/test_spaces.py"]


@pytest.mark.parametrize(
    ("path", "types"),
    [
        ("tests/adapters/verl/test_config.py", ("tests/adapters/verl",)),  # not the file in its folder once more
        ("scripts/check.py", ("scripts/check.py", "tests/scripts")),
        ("scripts/site/hooks.py", ("tests/scripts",)),
        ("adapters/verl", ("adapters/verl/agentgym_verl", "tests/adapters/verl")),
    ],
)
def test_types_of_a_path_are_checked_once(path: str, types: tuple[str, ...]) -> None:
    assert commands(path)["types"] == ("mypy", *types)


@pytest.mark.slow
def test_every_module_has_tests_that_exist() -> None:
    """Whatever a contributor names, something is run."""
    folders = ("agentgym_envs", "adapters", "benchmarks", "examples")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        tests = check.tests_of(path.relative_to(ROOT))
        assert tests and all((ROOT / test).exists() for test in tests), path


@pytest.mark.parametrize("wrong", ["agentgym_envs/textcarft", "/etc", "fsat"])
def test_a_missing_path_is_named(wrong: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(repr(wrong))):
        commands(wrong)


def test_a_path_without_tests_is_reported() -> None:
    with pytest.raises(SystemExit, match="LICENSE"):
        commands("LICENSE")


@pytest.mark.parametrize("code", [0, 3])
def test_a_step_returns_its_success(code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(f"raise SystemExit({code})")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.Step("lint", ("ends",)).run() == (code == 0)


@pytest.mark.parametrize("git", [True, False])
def test_every_step_runs_after_a_failed_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, git: bool
) -> None:
    if git:
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(
        check, "steps", lambda _: [check.Step("lint", ("no_such_module",)), check.Step("tests", ("this",))]
    )
    assert check.main([]) == 1
    out = capsys.readouterr().out
    assert "tests: ok" in out
    assert out.rstrip().endswith("-m no_such_module")
    assert (tmp_path / ".git").exists() == git


def test_a_check_of_everything_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "steps", lambda _: [check.Step("lint", ("this",))])
    assert check.main(["fast"]) == 0 and not check.marker_path(tmp_path).exists()
    assert check.main([]) == 0
    tree = subprocess.run([*git, "rev-parse", "HEAD^{tree}"], check=True, capture_output=True, text=True)
    found = json.loads(check.marker_path(tmp_path).read_text())
    assert found == {"tree": tree.stdout.strip(), "mode": "", "failed": []}
    (tmp_path / "new").touch()
    assert check.main([]) == 0 and json.loads(check.marker_path(tmp_path).read_text())["tree"] is None


@pytest.mark.skipif(not shutil.which("bash"), reason="the script is written for bash")
@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--fast", 1)])
def test_an_option_prints_the_usage_and_installs_nothing(option: str, code: int) -> None:
    done = subprocess.run([ROOT / "scripts/check", option], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (code, check.USAGE.strip())
