"""Random examples do not depend on what was imported or run before."""

import re
from pathlib import Path

import pytest

from tests.plugins.small_suites import pytest_run

A_SUITE = """
import other
from hypothesis import given, strategies as st

@given(st.text(), st.integers(), st.floats(allow_nan=False))
def test_prints_examples(text, number, fraction): print("example", ascii((text, number, fraction)))
"""


def examples(folder: Path, constants: str, *arguments: str) -> list[str]:
    folder.mkdir()
    (folder / "other.py").write_text(constants)
    return re.findall(r"^example .*", pytest_run(folder, A_SUITE, "-s", *arguments).stdout, re.MULTILINE)


@pytest.mark.slow
def test_examples_do_not_depend_on_imported_modules(tmp_path: Path) -> None:
    many = f"NAMES = {[f'word-{n}' for n in range(50)]}\nNUMBERS = {list(range(70_000, 70_050))}"
    first, second = (examples(tmp_path / name, text) for name, text in (("few", ""), ("many", many)))
    assert len(first) >= 90 and first == second


@pytest.mark.slow
def test_the_random_profile_draws_new_examples(tmp_path: Path) -> None:
    first, second = (examples(tmp_path / name, "", "--hypothesis-profile", "random") for name in "ab")
    assert len(first) >= 90 and first != second
