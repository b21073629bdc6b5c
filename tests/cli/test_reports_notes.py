"""Columns and notes of a report for several episodes per task, several attempts, and tokens."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli.reports import make_report, to_csv, to_html, to_markdown
from agentgym_envs.cli.reports.columns import columns
from agentgym_envs.evaluate import REPORTED, evaluate
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter

from ..episodes import episode, several
from .conftest import Run


def titles(episodes: list[Trajectory]) -> list[str]:
    return [column.title for column in columns(evaluate(episodes))]


def test_pass_at_k_is_shown_for_the_largest_common_k() -> None:
    even = [*several("t/1", 0, 1, 1), *several("t/2", 0, 0, 0)]
    assert "pass@3" in titles(even)
    assert not make_report(even).notes()
    uneven = [*even, *several("t/3", 0, 0, group="hard")]
    assert "pass@2" in titles(uneven) and "pass@3" not in titles(uneven)
    [note] = make_report(uneven).notes()
    assert note.startswith("Tasks have 2 to 3 usable episodes; pass@k and pass^k are shown for k = 2")
    page = to_html(make_report(uneven))
    assert "pass@2" in page and "pass@3" not in page
    for text in (page, to_markdown(make_report(uneven))):
        assert "Tasks have 2 to 3 usable episodes" in text


def test_pass_at_k_is_not_shown_if_a_task_has_one_episode() -> None:
    uneven = [*several("t/1", 0, 1, 1), episode("t/2", 0)]
    assert not [title for title in titles(uneven) if title.startswith("pass")]
    report = make_report(uneven)
    [note] = report.notes()
    assert "1 to 3 usable episodes; no pass@k is shown" in note
    assert "Success against k" not in to_html(report)
    assert "pass@k</dt>" not in to_html(report)


def test_the_plot_of_pass_at_k_ends_at_the_common_k() -> None:
    uneven = [*several("t/1", 0, 1, 1, 0), *several("t/2", 0, 1)]
    page = to_html(make_report(uneven))
    assert "pass@k: 91.7% at 2; pass^k: 8.3% at 2" in page  # of four episodes with two solved 5/6 and 1/6; 1 and 0


def test_tokens_of_few_tasks_are_shown_without_an_interval() -> None:
    report = make_report([episode("t/1", 1, turns=2, tokens=7), episode("t/2", 1, turns=2, tokens=9)])
    assert "tokens" in [column.title for column in columns(report.evaluation)]
    rows = list(csv.reader(io.StringIO(to_csv(report))))
    assert ["overall", "A-v0", "", "tokens", "16.0", "", ""] in rows
    assert "Tokens</dt>" in to_html(report)


@pytest.mark.parametrize(
    ("meta", "noted"),
    [
        ({"agent": {"name": "reflect", "attempts": 3}}, True),
        ({"attempts": [{"turns": []}, {"turns": []}]}, True),
        ({"agent": {"name": "reflect", "attempts": 1}}, False),
        ({"agent": "mine", "attempts": 3}, False),
    ],
)
def test_success_after_several_attempts_is_noted(meta: dict[str, Any], noted: bool) -> None:
    report = make_report([episode("t/1", 1, meta=meta), episode("t/2", 0)])
    assert any("Success is measured after up to 3 attempts" in note for note in report.notes()) is noted
    for text in (to_html(report), to_markdown(report)):
        assert ("Success is measured after up to 3 attempts" in text) is noted


def test_the_standard_errors_of_the_reported_figures_are_shown() -> None:
    page = to_html(make_report([episode("t/1", 1)], agentgym_rl=True))
    assert f"WebArena {REPORTED[0].standard_error('WebArena'):.1f}, Search 2.4, TextCraft 2.9" in page


def test_a_training_file_keeps_every_episode_of_a_group(run: Run) -> None:
    with TrajectoryWriter("step-0.jsonl") as writer:
        writer.write(episode("t/1", 0, stop="env_error"))
        for score in (0, 0, 0, 1):
            writer.write(episode("t/1", score))
        writer.write(episode("t/2", 0, stop="env_error"))
    found = run("report", "step-0.jsonl", "--json").json["metrics"]["overall"]
    assert (found["episodes"], found["success"]["mean"]) == (4, 0.25)
    assert found["excluded"] == 1  # that of t/2; that of t/1 was repeated
    twice = run("report", "step-0.jsonl", "./step-0.jsonl", "--json").json["metrics"]["overall"]
    assert twice["episodes"] == 4  # a repeated file is read once
    Path("run").mkdir()
    Path("step-0.jsonl").rename("run/trajectories.jsonl")
    assert run("report", "run", "--json").json["metrics"]["overall"]["episodes"] == 1  # the last record of this seed


def test_the_json_has_no_nan(run: Run) -> None:
    with TrajectoryWriter("run/trajectories.jsonl") as writer:
        writer.write(episode("t/1", 1))
    Path("run/eval.json").write_text('{"settings": {"temperature": NaN, "seeds": [Infinity, 1]}}')

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(run("report", "run", "--json").out, parse_constant=refuse)
    assert found["settings"] == {"temperature": None, "seeds": [None, 1]}
