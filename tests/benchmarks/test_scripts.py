"""The scripts that are new with the book: what they make of what was measured."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cores import grow
from benchmarks.generation import summary
from benchmarks.labels import RATE, combine
from benchmarks.lockstep import check, setting
from benchmarks.overhead import EPISODES, figures_of, parts_of
from benchmarks.peer_sides.task import EPISODE, Task, timed
from benchmarks.peers import PAIRS, SIDES, note
from benchmarks.report.tables import cores_table, extras_table, growth_table, lockstep_table, overhead_table
from benchmarks.report.venvs import ROOT, thread_limits
from benchmarks.search_growth import model

pytestmark = pytest.mark.slow  # of the benchmarks, daily use has the book's tests

STEP = {"step_time": 10.0, "time/generate": 5.0, "time/env": 0.5, "time/train": 4.0, "rollout/turns": 2.0}


def test_the_remaining_time_of_a_step_is_other() -> None:
    assert parts_of(STEP) == {"generate": 5.0, "train": 4.0, "environment": 0.5, "other": 0.5}
    assert parts_of({**STEP, "step_time": 9.4})["other"] == 0


def test_shares_use_the_medians_without_the_first_step() -> None:
    first = {**STEP, "step_time": 1_000.0}
    figures = figures_of([first, {"train_runtime": 3.0}, STEP, STEP])
    assert figures["step, s"] == 10
    assert figures["environment and other, %"] == pytest.approx(10)
    assert figures["environment, ms a turn"] == pytest.approx(1e3 * 0.5 / (2 * EPISODES))


def test_the_table_of_a_step_has_every_part() -> None:
    row = figures_of([STEP, STEP])
    result = {"scenarios": {"TextCraft": {"median": row, "samples": {name: [value] for name, value in row.items()}}}}
    assert "| TextCraft | 10.0 | 50.0 | 40.0 | 5.00 | 5.00 | 10.0 (10.0 – 10.0) |" in overhead_table(result)


def test_a_speedup_is_that_of_the_sides_of_one_repeat() -> None:
    rate = "sampled per cpu second"
    found = summary({"generate": [{rate: 10.0}, {rate: 20.0}], "cache": [{rate: 30.0}, {rate: 100.0}]})
    assert found["ratios"] == [3, 5] and found["ratio"] == 4
    assert found["median"] == {"generate": {rate: 15}, "cache": {rate: 65}}


def labelled(rate: float, turns: int = 9) -> dict[str, Any]:
    return {"repeats": 1, "rows": [{"env": "e", "policy": "p", "turns": turns, "exact": 1.0, RATE: rate}]}


def test_labels_are_compared_in_pairs() -> None:
    found = combine([(labelled(20), labelled(10)), (labelled(60), labelled(20)), (labelled(8), labelled(8))])
    row = found["rows"][0]
    assert found["repeats"] == 3 and row[RATE] == 20
    assert row["speedup"] == {"median": 2, "from": 1, "to": 3}
    with pytest.raises(SystemExit, match="labels other turns"):
        combine([(labelled(20), labelled(10, turns=8))])


def test_the_trivial_task_counts_its_turns() -> None:
    task = Task()
    assert task.begin().startswith("Turn 0.")
    turns = [task.act("on") for _ in range(EPISODE)]
    assert [over for _, over in turns] == [False] * (EPISODE - 1) + [True]
    assert turns[-1][0].startswith(f"Turn {EPISODE}.")
    assert {len(text) for text, _ in turns} <= {588, 589}


def test_time_is_reported_per_step() -> None:
    def busy() -> int:
        for _ in range(20_000):
            pass
        return 10

    figures = timed(busy, 0.05)
    assert 0 < figures["cpu"] <= 1.5 * figures["wall"] + 1


def test_sides_are_collected_by_figure() -> None:
    row: dict = {"samples": {}}
    for value in (1.0, 2.0):
        note(row, {"one": {"cpu": value, "wall": 2 * value}})
    assert row["samples"] == {"one, cpu us": [1.0, 2.0], "one, wall us": [2.0, 4.0]}
    assert {name for _, _, name, _ in PAIRS} == set(SIDES)


@pytest.mark.rotating
@pytest.mark.parametrize("side", ["gymnasium_side", "openenv_side", "ours"])
def test_the_installed_sides_run(side: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.peer_sides.{side}", "0.05"]
    done = subprocess.run(command, cwd=ROOT, env=thread_limits(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures["one"]["wall"] > 0
    assert all(one["cpu"] > 0 for one in figures.values())


def test_tables_of_rounds_have_a_row_for_each_tail() -> None:
    rows = [setting("log-normal 1.0", size, 1, 0.0, 2) for size in (2, 4)]
    result = {"tails": rows, "stream": [setting("log-normal 1.0", 4, 2, 0.0, 2)]}
    head, _, line = lockstep_table(result).splitlines()
    assert head == "| answer times | 2 episodes | 4 episodes | 8 through 4 slots |"
    assert line.startswith("| log-normal 1.0 | ")


def test_real_and_virtual_time_agree_on_the_faster_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.lockstep.CHECK_SIZE", 4)
    monkeypatch.setattr("benchmarks.lockstep.CHECK_SCALE", 0.01)
    found = check(1)
    assert found["virtual"]["times, rounds"] > 1
    assert found["median"]["ours, s"] >= 0.9 * found["virtual"]["ours, s"]


class LinearCosts:
    """Measurements of growing: 30 MiB, 0.01 an episode, and a little more at the end."""

    def scripts(self, scenario: object) -> list:
        return []

    def ask(self, deed: str, env: str, **order: object) -> dict:
        level: int = order["levels"][1]  # type: ignore[index]
        memory = {1: {"here program": 30.01}, level: {"here program": 30 + 0.01 * level * (1.1 if level > 99 else 1)}}
        cost = {"here program": 0.25, "wall": 9.0, "here ended": 0.25}
        return {"memory": json.loads(json.dumps(memory)), "reset": cost, "step": cost}


def test_the_last_level_is_compared_with_the_fit_of_the_others() -> None:
    found = grow("TextCraft", LinearCosts(), (10, 50, 100))  # type: ignore[arg-type]
    assert found["MiB by the model"] == pytest.approx(31)
    assert found["off, %"] == pytest.approx(100 * 0.1 / 31)
    assert found["CPU s"]["step"] == {10: 0.5, 50: 0.5, 100: 0.5}
    written = json.loads(json.dumps({"ten thousand": {"TextCraft": found}}))
    assert "| TextCraft | 100 | 500 | 500 | 31.1 | 31.0 |" in growth_table(written)


def test_extras_are_reported_even_if_one_failed() -> None:
    core = {"packages": 19, "megabytes": 108.7, "import_seconds": 0.144, "did": "an episode"}
    *_, first, second = extras_table({"extras": {"core": core, "verl": {"error": "no wheel"}}}).splitlines()
    assert first == "| core | 19 | 109 | 144 | an episode |"
    assert second == "| `verl` |  |  |  | failed: no wheel |"


def test_one_core_is_compared_with_two() -> None:
    rows = {f"TextCraft, local, {n}": {"median": 10.0 * n, "samples": [9.0 * n, 11.0 * n]} for n in (1, 2)}
    assert "| TextCraft | local | 10.0 (9.00 – 11.0) | 20.0 (18.0 – 22.0) | 2.00 (2.00 – 2.00) |" in cores_table(
        {"rows": rows}
    )


@pytest.mark.rotating
def test_two_bound_processes_play(tmp_path: Path) -> None:
    out = tmp_path / "cores.json"
    command = [sys.executable, "-m", "benchmarks.cores", "--quick", "--only", "TextCraft", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=thread_limits(), check=True, capture_output=True, timeout=300)
    found = json.loads(out.read_text(encoding="utf-8"))
    there = min(2, len(os.sched_getaffinity(0)))
    assert found["rows"][f"TextCraft, remote, {there}"]["median"] > 0
    assert found["ten thousand"]["TextCraft"]["episodes"] == 20


def test_growth_is_modelled_by_a_line_and_checked_where_the_truth_is_known() -> None:
    sizes = [1_000, 2_000, 4_000]
    line = model(sizes, [3 + n / 1_000 for n in sizes], 10_000_000, 3 + 1_000)
    assert line["target"] == pytest.approx(10_003) == line["target_with_million"]
    assert line["largest_error"] == pytest.approx(0, abs=1e-9) == pytest.approx(line["million_error"], abs=1e-9)
    curve = model(sizes, [n**1.5 for n in sizes], 10_000_000, 1e9)
    assert curve["largest_error"] < -0.1 and curve["million_error"] < -0.5, "a cost that no line fits"
