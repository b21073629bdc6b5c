"""The virtual clock, recorded latencies, and the comparison that is made with both."""

import asyncio
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import latencies
from benchmarks.latencies import LEAST_TURNS, LONGEST, MOST_TURNS, TAILS, Recording, draw, read, record
from benchmarks.lockstep import PAUSE, compare, play_ours, play_rounds
from benchmarks.virtual_clock import run_virtual

pytestmark = pytest.mark.slow  # of the benchmarks, daily use has the book's tests

HAND = Recording(answers=[[1.0, 5.0], [4.0, 1.0, 1.0]], env=[[0.5, 0.0], [0.0, 0.5, 0.0]])
"""Episodes of 6.5 s each; rounds of 4.5, 5.5 and 1 s."""


def test_virtual_time_passes_without_being_waited_for() -> None:
    order = []

    async def sleeper(name: str, seconds: float) -> float:
        await asyncio.sleep(seconds)
        order.append(name)
        return asyncio.get_running_loop().time()

    async def both() -> list[float]:
        return list(await asyncio.gather(sleeper("long", 7200), sleeper("short", 0.001), sleeper("middle", 60)))

    began = time.perf_counter()
    times, end = run_virtual(both())
    assert order == ["short", "middle", "long"]
    assert times == pytest.approx([7200, 0.001, 60])
    assert end == pytest.approx(7200)
    assert time.perf_counter() - began < 30


def test_virtual_time_outs_end_what_takes_longer() -> None:
    async def late() -> None:
        await asyncio.wait_for(asyncio.sleep(100), 99)

    with pytest.raises(TimeoutError):
        run_virtual(late())


def test_threads_are_waited_for_where_no_timer_runs() -> None:
    def slow() -> str:
        time.sleep(0.05)
        return threading.current_thread().name

    async def ask() -> str:
        return await asyncio.to_thread(slow)

    name, seconds = run_virtual(ask())
    assert name != threading.main_thread().name
    assert seconds == 0


def test_hand_computed_schedules_are_reproduced() -> None:
    assert HAND.longest == 6.5
    assert run_virtual(play_ours(HAND, 2))[1] == pytest.approx(6.5)
    assert run_virtual(play_rounds(HAND, 2))[1] == pytest.approx(4.5 + 5.5 + 1)
    shipped = run_virtual(play_rounds(HAND, 2, as_shipped=True))[1]
    assert shipped == pytest.approx(11 + (1 + 3) * PAUSE, abs=0.01)


def test_one_at_a_time_is_the_same_for_both() -> None:
    assert run_virtual(play_ours(HAND, 1))[1] == pytest.approx(13)
    assert run_virtual(play_rounds(HAND, 1))[1] == pytest.approx(13)


@pytest.mark.parametrize("tail", TAILS)
def test_no_side_beats_the_longest_episode_and_ours_reaches_it(tail: str) -> None:
    figures = compare(record(16, tail, seed=1), 16)
    assert figures["ours, s"] == pytest.approx(figures["longest episode, s"])
    assert figures["rounds, s"] > figures["ours, s"]
    assert figures["times, as shipped"] > figures["times, rounds"] > 1


def test_a_place_is_filled_as_soon_as_an_episode_has_ended() -> None:
    recording = Recording(answers=[[4.0], [1.0], [1.0], [1.0]], env=[[0.0]] * 4)
    assert run_virtual(play_ours(recording, 2))[1] == pytest.approx(4)
    assert run_virtual(play_rounds(recording, 2))[1] == pytest.approx(5)


@pytest.mark.parametrize("tail", TAILS)
def test_latencies_have_mean_one_but_for_what_is_cut(tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truncated = draw(tail, np.random.default_rng(0), 400_000)
    monkeypatch.setattr(latencies, "LONGEST", np.inf)
    values = draw(tail, np.random.default_rng(0), 400_000)
    assert (truncated == np.minimum(values, LONGEST)).all()
    assert values.min() > 0
    assert np.median(values) <= 1
    assert values.mean() == pytest.approx(1, rel=0.2 if tail == "Pareto 1.5" else 0.05)


def test_of_heavier_tails_more_is_cut() -> None:
    shares = [(draw(tail, np.random.default_rng(0), 100_000) == LONGEST).mean() for tail in TAILS]
    assert shares[:4] == sorted(shares[:4])
    assert shares[4:] == sorted(shares[4:])
    assert 0.01 < max(shares) < 0.05


@pytest.mark.parametrize("tail", ["Pareto 1.0", "normal 1.0", "log-normal x"])
def test_unknown_tails_are_refused(tail: str) -> None:
    with pytest.raises(ValueError):
        draw(tail, np.random.default_rng(0), 1)


def test_a_recording_is_the_same_for_the_same_seed() -> None:
    one, same, other = (record(50, "log-normal 1.0", seed, 0.3) for seed in (3, 3, 4))
    assert one == same != other
    assert {len(row) for row in one.answers} <= set(range(LEAST_TURNS, MOST_TURNS + 1))
    assert [len(row) for row in one.answers] == [len(row) for row in one.env]
    assert one.scaled(2.0).total == pytest.approx(2 * one.total)


def test_latencies_of_a_real_model_are_read(tmp_path: Path) -> None:
    path = tmp_path / "seconds.json"
    path.write_text(json.dumps([[1, 2.5], [3]]), encoding="utf-8")
    assert read(path) == Recording([[1.0, 2.5], [3.0]], [[0.0, 0.0], [0.0]])
    wrongs: list[object] = [[], [[]], {"a": 1}, [[-1]], ["12"]]
    for wrong in wrongs:
        path.write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(ValueError, match="list of lists of seconds"):
            read(path)
