"""Tests of `scripts/language.py`: the words and openings it finds, and the text it leaves alone."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("language", ROOT / "scripts/language.py")
assert _spec and _spec.loader
language = importlib.util.module_from_spec(_spec)
sys.modules["language"] = language
_spec.loader.exec_module(language)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(language, "ROOT", tmp_path)
    return tmp_path


def findings(folder: Path, name: str, text: str) -> list[tuple[int, str]]:
    (folder / name).write_text(text, encoding="utf-8")
    return [(found.line, found.word) for found in language.check(name)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What a module is."""', [(1, "What")]),
        ('def f():\n    """Whether it runs."""', [(2, "Whether")]),
        ('class A:\n    x = 1\n    """How many there are."""', [(3, "How")]),
        ("x = 1  # nobody needs it\n", [(1, "nobody")]),
        ('"""Return it.\n\nIt is told\nonce.\n"""', [(3, "told")]),
        ('"""Return the answer, made anew."""', [(1, "anew")]),
        ('"""Return the file that stands there."""', [(1, "stands")]),
    ],
)
def test_words_and_openings_are_found(folder: Path, text: str, found: list[tuple[int, str]]) -> None:
    assert findings(folder, "module.py", text) == found


@pytest.mark.parametrize(
    "text",
    [
        'x = "nobody was told anew"\n',
        '"""Return `told`, or "nobody"."""',
        '"""Return a value that tells_all."""',
        '"""Return what is left."""',
    ],
)
def test_strings_and_quoted_names_are_left_alone(folder: Path, text: str) -> None:
    assert findings(folder, "module.py", text) == []


def test_pages_are_read_without_their_code(folder: Path) -> None:
    page = "# Title\n\n```python\n# nobody\n```\n\nNobody reads [this](nobody.md).\n"
    assert findings(folder, "page.md", page) == [(7, "Nobody")]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("test_reset_restores_the_seed", []),
        ("test_whatever_is_read", ["whatever"]),
        ("test_what_is_kept", ["What"]),
        ("test_how_it_ends", ["How"]),
        ("test_a_reply_is_told_anew", ["told", "anew"]),
        ("test_a_failing_run_prints_only_what_failed", ["what"]),
        ("test_an_episode_goes_on", ["goes on"]),
        ("test_seeds", ["seeds"]),
        ("test_" + "very_" * 14 + "long", ["test_" + "very_" * 14 + "long"]),
    ],
)
def test_names_of_tests_are_checked(folder: Path, name: str, found: list[str]) -> None:
    module = f"class TestAll:\n    async def {name}(self): pass\ndef what_is_none(): pass\n"
    assert findings(folder, "test_module.py", module) == [(2, word) for word in found]
    assert findings(folder, "module.py", module) == []


def test_a_name_may_use_the_words_of_its_subject(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "ALLOWED_NAMES", {"test_trains_have_seats": "seats"})
    module = "def test_trains_have_seats(): pass\ndef test_planes_have_seats(): pass\n"
    assert findings(folder, "test_module.py", module) == [(2, "seats")]


def test_every_allowed_name_exists() -> None:
    tests = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in language.tracked(["tests"]))
    assert [name for name in language.ALLOWED_NAMES if f"def {name}(" not in tests] == []


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("# Installation", []),
        ("## What is a turn?", []),
        ("## How to train", []),
        ("## What an agent writes", [(1, "What")]),
        ("### Where environments run", [(1, "Where")]),
        ("# Text {#told-anew}", [(1, "told"), (1, "anew")]),
        ('<a id="what-is-it"></a>', [(1, "what")]),
        ("```sh\n# What a comment says\n```", []),
    ],
)
def test_titles_and_anchors_of_pages_are_checked(folder: Path, title: str, found: list[tuple[int, str]]) -> None:
    assert findings(folder, "page.md", title) == found


def test_a_path_may_use_the_words_of_its_subject(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "ALLOWED", {"trains": "seats?"})
    assert findings(folder, "trains.md", "Two seats, told.\n") == [(1, "told")]
    assert findings(folder, "other.md", "Two seats.\n") == [(1, "seats")]


def test_the_exit_status_reports_findings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(language, "tracked", lambda paths: ["page.md"])
    (folder / "page.md").write_text("Plain.\n")
    assert language.main([]) == 0 and capsys.readouterr().out == ""
    (folder / "page.md").write_text("Nobody.\n")
    assert language.main([]) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("page.md:1: 'Nobody': write ")


def test_a_folder_selects_its_tracked_files() -> None:
    assert "scripts/language.py" in language.tracked(["scripts"])
    assert all(name.startswith("scripts/") for name in language.tracked(["scripts"]))
