"""`scripts/release`: the conditions that it checks, the tutorial, the notes, and the tag that starts the workflow."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import releasing.__main__ as release
from check import git, marker_path
from releasing import gates, installs
from releasing.project import changelog_section, copy_tracked, release_notes, tracked
from releasing.table import StepFailed, StepTable, require

ROOT = Path(__file__).parents[2]
PYPROJECT = '[project]\nname = "toy"\nversion = "1.2.0"\n'
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n- New: [a page](docs/a.md).\n\n"
    "## [1.1.0] - 2025-01-02\n\n- Old\n"
)
EMPTY = CHANGELOG.replace("- New: [a page](docs/a.md).", "")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A repository that is ready for a release, and its remote."""
    root = tmp_path / "toy"
    (root / "agentgym_envs").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "agentgym_envs/__init__.py").write_text('__version__ = "1.2.0"\n')
    (root / "CITATION.cff").write_text("version: 1.2.0\n")
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    (root / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote")], check=True)
    git(root, "init", "-q")
    for name, value in (("user.name", "A"), ("user.email", "a@example.com"), ("commit.gpgsign", "false")):
        git(root, "config", name, value)
    git(root, "remote", "add", "origin", str(tmp_path / "remote"))
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "change")
    mark(root)


def mark(root: Path, **other: Any) -> None:
    """Record a check as `scripts/check all` does."""
    known = {"tree": git(root, "rev-parse", "HEAD^{tree}"), "mode": "all", "failed": []}
    marker_path(root).write_text(json.dumps({**known, **other}))


def closed(root: Path) -> dict[str, str]:
    return {gate.name: gate.fault for gate in gates.gates(root, "origin", ask_index=False) if gate.fault}


def write_and_commit(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / name).write_text(text)
        commit(root)

    return change


def test_a_ready_repository_passes_every_gate(toy: Path) -> None:
    assert closed(toy) == {}


@pytest.mark.parametrize(
    ("change", "name", "part"),
    [
        (lambda root: (root / "new.txt").write_text(""), "clean tree", "1 files are changed or not tracked"),
        (lambda root: mark(root, failed=["tests"]), "green check of this tree", "failed (tests)"),
        (lambda root: mark(root, tree="0"), "green check of this tree", "of another tree"),
        (lambda root: mark(root, mode=""), "green check of this tree", "one slice"),
        (lambda root: marker_path(root).unlink(), "green check of this tree", "no record"),
        (write_and_commit("CITATION.cff", "version: 1.1.0\n"), "one version", "CITATION.cff has 1.1.0"),
        (write_and_commit("agentgym_envs/__init__.py", ""), "one version", "__init__.py has none"),
        (write_and_commit("CHANGELOG.md", CHANGELOG.replace("1.2.0", "1.3.0")), "changelog section", "no section"),
        (
            write_and_commit("CHANGELOG.md", EMPTY),
            "changelog section",
            "is empty",
        ),
        (write_and_commit("CHANGELOG.md", CHANGELOG.replace(" - 2026-01-02", "")), "changelog section", "YYYY-MM-DD"),
        (lambda root: git(root, "tag", "v1.2.0"), "new tag", "the tag v1.2.0 exists"),
        (lambda root: git(root, "push", "-q", "origin", "HEAD:refs/tags/v1.2.0"), "new tag", "origin has the tag"),
        (lambda root: git(root, "remote", "remove", "origin"), "new tag", "no remote origin"),
    ],
)
def test_each_fault_closes_one_gate(toy: Path, change: Callable[[Path], Any], name: str, part: str) -> None:
    change(toy)
    found = closed(toy)
    assert list(found) == [name] and part in found[name]


def test_a_version_that_the_index_has_is_refused() -> None:
    listed = "toy (1.10.0)\nAvailable versions: 1.10.0, 1.2.0\n"
    assert "has toy 1.2.0" in gates.published("toy", "1.2.0", lambda _: listed)
    assert gates.published("toy", "1.1", lambda _: listed) == gates.published("toy", "1.2.0", lambda _: "") == ""


def test_a_closed_gate_stops_a_release_before_anything_is_built(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "ROOT", toy)
    monkeypatch.setattr(release, "_check", lambda *_: pytest.fail("it was built"))
    (toy / "new.txt").write_text("")
    assert release.main(["--offline"]) == 2
    assert "clean tree: 1 files" in capsys.readouterr().out and not git(toy, "tag")


def test_a_release_pushes_a_tag_with_the_notes_and_a_dry_run_does_not(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "ROOT", toy)
    monkeypatch.setattr(release, "_check", lambda *_: None)
    assert release.main(["--dry-run", "--offline"]) == 0
    assert "push the tag to origin" in capsys.readouterr().out
    assert not git(toy, "tag") and not git(toy, "ls-remote", "--tags", "origin")
    assert release.main(["--offline"]) == 0
    assert (
        git(toy, "for-each-ref", "refs/tags/v1.2.0", "--format=%(objecttype) %(contents)")
        == "tag # 1.2.0\n\n- New: a page."
    )
    assert "refs/tags/v1.2.0" in git(toy, "ls-remote", "--tags", "origin")


def test_a_failed_step_stops_the_release_but_not_the_next_step(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(one: Any, scratch: Path, arguments: Any, table: StepTable) -> None:
        table.run("broken", lambda: require(["a.pyc must not be shipped"] * 7, "fine"))

    monkeypatch.setattr(release, "ROOT", toy)
    monkeypatch.setattr(release, "_check", check)
    assert release.main(["--offline"]) == 1 and not git(toy, "tag")
    shown = capsys.readouterr().out
    assert "FAILED  broken" in shown and "; and 2 more" in shown and "ok      release notes" in shown
    with pytest.raises(StepFailed):
        require(["fault"], "fine")


def test_an_unknown_extra_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        release.main(["--dry-run", "--extras", "serv"])
    assert "there is no extra serv" in capsys.readouterr().err


def test_notes_are_the_section_of_the_version(toy: Path) -> None:
    assert release_notes(toy, "1.2.0") == ("# 1.2.0\n\n- New: a page.\n", "1.2.0")
    assert release_notes(toy, "9.0")[1] == "none"
    assert changelog_section(CHANGELOG, "1.1.0") == "- Old" and changelog_section(CHANGELOG, "1x2.0") is None
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog_section(text, "Unreleased") is not None


def test_only_tracked_files_are_copied(toy: Path, tmp_path: Path) -> None:
    (toy / "left-about.txt").write_text("")
    copy_tracked(toy, tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert copied == set(tracked(toy)) and "left-about.txt" not in copied


class RecordingVenv:
    """Notes the programs that it would run."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run(self, *words: str, timeout: float = 0.0) -> str:
        self.ran.append(words)
        return '{"extras": [{"name": "serve", "ready": false}], "environments": [{"ready": true}]}'


def test_the_tutorial_is_taken_from_the_page() -> None:
    env: Any = RecordingVenv()
    installs.run_tutorial(env)
    code, *commands = env.ran
    page = (ROOT / installs.TUTORIAL).read_text(encoding="utf-8")
    assert code[:2] == ("python", "-c") and all(line in page for line in code[2].splitlines())
    assert code[2].count("gym.make(") == page.count("gym.make(")
    assert {words[1] for words in commands} >= {"list", "solve", "demos"} and not any("play" in w for w in commands)


def test_the_doctor_must_know_the_extra_as_ready() -> None:
    env: Any = RecordingVenv()
    assert installs.doctor(env, "core") == "1 environments ready"
    with pytest.raises(subprocess.CalledProcessError):
        installs.doctor(env, "serve")
