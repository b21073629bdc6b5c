"""The tests of a file, or of a group of files, run on one worker, and the longest goes first."""

import json
from pathlib import Path

import pytest

from tests.plugins.rotation import ROOT
from tests.plugins.scheduling import GROUPS, group_of
from tests.plugins.small_suites import pytest_run

A_SUITE = """
import os, pathlib, pytest

@pytest.fixture(autouse=True)
def noted(request):
    with open(pathlib.Path(__file__).with_name("order.txt"), "a") as file:
        print(f'["{request.node.name}", "{os.environ["PYTEST_XDIST_WORKER"]}"]', file=file)

@pytest.mark.parametrize("case", "abcd")
def test_beside(case): pass
"""
FILES = ("--dist", "loadfile", "--no-loadscope-reorder")
OTHER = A_SUITE.replace("test_beside", "test_other")


@pytest.mark.rotating
@pytest.mark.slow
def test_tests_of_a_group_run_on_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(OTHER)
    done = pytest_run(tmp_path, A_SUITE, "-n", "2", *FILES)
    assert done.returncode == 0, done.stdout
    ran = [json.loads(line) for line in (tmp_path / "order.txt").read_text().splitlines()]
    for belongs in ("test_beside", "test_other"):
        workers = [worker for name, worker in ran if name.startswith(belongs)]
        assert len(workers) > 1 and len(set(workers)) == 1, ran


@pytest.mark.rotating
@pytest.mark.slow
def test_files_of_a_group_run_on_one_worker(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(
        "from tests.plugins import scheduling\n"
        "scheduling._GROUP_OF.update(dict.fromkeys(['test_a.py', 'test_c.py', 'test_e.py'], 'some'))\n"
    )
    suite = A_SUITE.replace("request.node.name", "request.node.nodeid")
    for name in "abcdef":
        (tmp_path / f"test_{name}.py").write_text(suite)
    assert pytest_run(tmp_path, suite, "-n", "3", *FILES, "-p", "early").returncode == 0
    ran = [json.loads(line) for line in (tmp_path / "order.txt").read_text().splitlines()]
    assert len({worker for name, worker in ran if name[5] in "ace"}) == 1 < len({worker for _, worker in ran})


def test_files_of_groups_exist() -> None:
    files = [file for group in GROUPS.values() for file in group]
    assert len(files) == len(set(files)) and all((ROOT / file).is_file() for file in files)
    assert (
        group_of(f"{GROUPS['verl'][0]}::test_it[1]") == "verl"
        and group_of("tests/test_it.py::test") == "tests/test_it.py"
    )


@pytest.mark.rotating
@pytest.mark.slow
def test_the_longest_test_runs_first(tmp_path: Path) -> None:
    long = OTHER.replace("test_other", "test_long")
    (tmp_path / "test_zz.py").write_text(long)
    (tmp_path / "early.py").write_text(
        "from tests.plugins import durations\nEXPECTED = {'test_zz.py::test_long': 50.0}\n"
        "def pytest_configure(config): durations.known = lambda: EXPECTED\n"
    )
    assert pytest_run(tmp_path, A_SUITE, "-n", "1", *FILES, "-p", "early").returncode == 0
    first, *_ = (tmp_path / "order.txt").read_text().splitlines()
    assert "test_long[a]" in first
