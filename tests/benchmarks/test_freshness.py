"""Figures of the report are marked when the code that they measure has changed."""

from pathlib import Path

import pytest

from benchmarks.report import freshness
from benchmarks.report.freshness import MEASURES, code_hash, stale
from benchmarks.report.render import RESULTS, Report, readme, section_block
from benchmarks.report.sections import SECTIONS
from benchmarks.report.venvs import ROOT

WAITING: set[str] = set()
"""Sections of the README that were measured before the report recorded their code. Measure them, and take them out."""


def test_every_section_names_the_code_that_it_measures() -> None:
    assert set(MEASURES) == set(SECTIONS)
    assert [entry for entries in MEASURES.values() for entry in entries if not (ROOT / entry).exists()] == []


def test_no_headline_of_the_readme_is_stale() -> None:
    report = Report(RESULTS)
    marked = {name for name, section in SECTIONS.items() if section.readme and report.stale(name)}
    assert marked == WAITING, "run: python -m benchmarks.report --out benchmarks/results --stale --only NAME"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(MEASURES, "textcraft", ("package", "one.py"))
    (tmp_path / "package").mkdir()
    for name in ("package/code.py", "one.py", "other.py"):
        (tmp_path / name).write_text('"""A module."""\n\n\ndef one() -> int:\n    """Return 1."""\n    return 1\n')
    return tmp_path


def change(path: Path, text: str) -> None:
    path.write_text(text)
    freshness._code.cache_clear()


@pytest.mark.parametrize(
    ("name", "text", "is_stale"),
    [
        ("one.py", "def one() -> int:\n    # another comment\n    return (1)\n", False),
        ("one.py", "def one() -> int:\n    return 2\n", True),
        ("package/code.py", "def one() -> int:\n    return 2\n", True),
        ("package/new.py", "", True),
        ("other.py", "def one() -> int:\n    return 2\n", False),
    ],
)
def test_only_changed_code_makes_figures_stale(tree: Path, name: str, text: str, is_stale: bool) -> None:
    record = {"code": code_hash("textcraft", tree)}
    change(tree / name, text)
    assert stale("textcraft", record, tree) is is_stale
    assert stale("textcraft", {}, tree)


def test_stale_figures_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(RESULTS)
    section = SECTIONS["textcraft"]
    for is_stale in (True, False):
        monkeypatch.setattr(Report, "stale", lambda self, name, answer=is_stale: answer)
        assert ("†" in readme(report)) is is_stale
        assert ("Stale" in section_block(section, report)) is is_stale
