"""Any run of `SLICES` consecutive keys runs every case, and each run takes its share."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins import rotation
from tests.plugins.rotation import SLICES, VARIABLE, chosen, current_key, has_turn, key_from, part
from tests.plugins.small_suites import pytest_run

KEYS = st.integers(0, 10_000)
SWEEPS = st.dictionaries(st.text(min_size=1, max_size=9), st.integers(0, 45), max_size=6).map(
    lambda sizes: {name: [f"{name}[{i}]" for i in range(size)] for name, size in sizes.items()}
)
A_SUITE = """
import pytest
from tests.plugins.rotation import SLICES, part

@pytest.mark.rotating
@pytest.mark.parametrize("case", range(2 * SLICES))
def test_swept(case): pass

@pytest.mark.rotating
def test_alone(): pass

@pytest.mark.rotating(always=3)
@pytest.mark.parametrize("case", range(3 + SLICES))
def test_begun(case): pass

@pytest.mark.rotating(turns=[1], of=3)
def test_first(): pass

@pytest.mark.rotating(turns=[0, 2], of=3)
def test_second(): pass

def test_in_a_loop(): print("took", part(range(2 * SLICES), "loop"))
"""


def runs(sweeps: dict[str, list[str]], first: int) -> list[str]:
    return [case for key in range(first, first + SLICES) for case in chosen(sweeps, key)]


def test_consecutive_keys_cover_every_case_of_this_suite(request: pytest.FixtureRequest) -> None:
    """Whatever was collected beside this test; in a run of everything, every rotating test there is."""
    sweeps = request.config.stash[rotation.GROUPS]
    everything = sorted(case for cases in sweeps.values() for case in cases)
    assert sorted(runs(sweeps, 3)) == everything


@given(SWEEPS, KEYS)
def test_consecutive_keys_cover_every_case_once(sweeps: dict[str, list[str]], first: int) -> None:
    assert sorted(runs(sweeps, first)) == sorted(case for cases in sweeps.values() for case in cases)


@given(SWEEPS, KEYS)
def test_a_run_takes_an_equal_share_of_each_sweep(sweeps: dict[str, list[str]], key: int) -> None:
    for name, cases in sweeps.items():
        assert len(chosen({name: cases}, key)) in (len(cases) // SLICES, -(-len(cases) // SLICES))
    assert chosen(sweeps, None) == [case for cases in sweeps.values() for case in cases]


@given(st.integers(1, SLICES), KEYS)
def test_every_turn_comes_within_consecutive_keys(of: int, first: int) -> None:
    for turn in range(of):
        assert any(has_turn([turn], of, key) for key in range(first, first + SLICES))
    assert sum(has_turn([turn], of, first) for turn in range(of)) == 1
    assert has_turn(range(of), of, first) and has_turn([], of, None)


@given(st.integers(1, 60), KEYS, st.text(max_size=5))
def test_parts_cover_their_sequence_and_are_never_empty(size: int, first: int, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        parts = []
        for key in range(first, first + SLICES):
            patch.setenv(VARIABLE, str(key % SLICES))
            parts.append(part(range(size), name))
        patch.setenv(VARIABLE, "all")
        assert part(range(size), name) == list(range(size))
    assert all(parts)
    assert {case for each in parts for case in each} == set(range(size))


@pytest.mark.parametrize(("turns", "of"), [([3], 3), ([-1], 3), ([0], SLICES + 1)])
def test_a_turn_that_never_comes_is_refused(turns: list[int], of: int) -> None:
    with pytest.raises(pytest.UsageError, match="turns are numbers"):
        has_turn(turns, of, 0)


def test_key_from_parses_the_setting() -> None:
    assert key_from("all", lambda: 1) is None
    assert key_from("13", lambda: 1) == 13
    assert key_from(None, lambda: 481) == key_from("", lambda: 481) == 481
    for wrong in ("-1", "half", "1.5"):
        with pytest.raises(pytest.UsageError, match=VARIABLE):
            key_from(wrong, lambda: 1)


def git(folder: Path, *command: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


def test_the_key_is_the_number_of_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "ROOT", tmp_path)
    assert rotation.commits() == 0  # no repository
    git(tmp_path, "init")
    for count in (1, 2):
        git(tmp_path, "commit", "--allow-empty", "-m", "x")
        assert rotation.commits() == count


def run(folder: Path, key: str, *arguments: str) -> str:
    """The output of pytest for the small suite."""
    done = pytest_run(folder, A_SUITE, "-s", "-v", *arguments, key=key)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.rotating
@pytest.mark.slow
def test_pytest_leaves_out_the_other_slices(tmp_path: Path) -> None:
    one = run(tmp_path, "4")
    assert one.count("test_swept[") == 2
    assert f"took {[i for i in range(2 * SLICES) if rotation.in_slice(i, 'loop', 4)]}" in one
    assert [f"test_begun[{case}]" in one for case in range(3)] == [True] * 3
    assert one.count("test_begun[") == 4
    assert "test_first" in one and "test_second" not in one
    assert f"{3 * SLICES + 7} passed" in run(tmp_path, "all")


@pytest.mark.rotating
@pytest.mark.slow
def test_a_test_named_by_its_id_always_runs(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, "4", "test_small.py::test_swept[7]")
    assert f"{2 * SLICES} passed" in run(tmp_path, "4", "test_small.py::test_swept")


def test_this_run_has_a_key_that_its_workers_share() -> None:
    assert os.environ[VARIABLE] == "all" or current_key() in range(SLICES)
