"""The figures of runs: they are those of the evaluation, of the episodes that count as the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.evaluate import Estimate, evaluate
from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.api import UnknownEpisode, Viewer
from agentgym_envs.viewer.export import export_html
from tests.viewer.records import record, save
from tests.viewer.test_export import Page

ATTEMPT = {"turns": [{"observation": "a", "action": "b", "reward": 0.0, "info": {"invalid_action": "no"}}] * 2}


def played(task: str, number: int, *, tokens: Any = 7, **fields: Any) -> Trajectory:
    """An episode of three turns with tokens and times; the score depends on the number."""
    made = record(task, "go", "stay", "go", seed=number, score=(number % 3) / 2, success=number % 3 == 2, **fields)
    infos = [{"invalid_action": "no" if number % 2 else None, "tokens": tokens}, {"tokens": 1}, {"tokens": 2}]
    turns = tuple(replace(turn, info=info) for turn, info in zip(made.turns, infos, strict=True))
    times = EpisodeTimes(100.0 + number, 0.5, tuple(TurnTimes(0.5 + n, 0.25, 0.125) for n in range(3)))
    return replace(made, turns=turns, times=times)


def varied() -> list[Trajectory]:
    """Usable and failed episodes of two environments, with a reflecting agent and odd values."""
    made = [played(f"t/{n % 4}", n, group=f"g{n % 2}") for n in range(14)]
    agent = {"agent": {"name": "reflect", "answer_tokens": 50}, "attempts": [ATTEMPT], "policy": "p"}
    made += [played("t/1", 20, env_id="B-v0", group="g", meta=agent), played("t/2", 21, env_id="B-v0", group="g")]
    made += [record("t/9", stop_reason="env_error", error="the disk is full\nat line 3", seed=4)]
    made += [played("t/3", 22, tokens="many", group="g1"), played("t/3\ud800", 23, group="g0")]
    return made


def as_rows(episodes: Sequence[Trajectory]) -> dict[tuple[Any, Any], Any]:
    """The rows that `evaluate` makes of the episodes, by environment and group."""
    found = evaluate(episodes)
    rows = [found.overall, *found.environments, *found.groups]
    return {(row.env_id, row.group): row for row in rows}


def listed(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None else [estimate.mean, estimate.low, estimate.high]


def test_figures_are_those_of_the_evaluation(tmp_path: Path) -> None:
    save(tmp_path / "t.jsonl", *varied())
    viewer = Viewer([tmp_path])
    run = viewer.run("t.jsonl")
    wanted = as_rows(varied())
    rows = [run["overall"], *run["environments"], *run["groups"]]
    assert {(row["env"], row["group"]) for row in rows} == set(wanted) and len(rows) == len(wanted)
    for row in rows:
        metrics = wanted[row["env"], row["group"]]
        assert (row["tasks"], row["episodes"], row["excluded"]) == (metrics.tasks, metrics.episodes, metrics.excluded)
        for name in ("success", "score"):
            assert row[name] == listed(getattr(metrics, name))
        assert row["invalid"] == listed(metrics.invalid_actions_estimate)
        for name, mean in (("turns", metrics.turns), ("tokens", metrics.tokens)):
            assert (row[name] and row[name][0]) == mean
    assert run["errors"] == [{"text": "the disk is full", "count": 1, "id": 16}]
    assert run["stops"]["env_error"] == 1 and "config" not in viewer.runs()["runs"][0]


def test_times_are_summed_and_pauses_do_not_count(tmp_path: Path) -> None:
    episodes = [played("t/1", number) for number in (0, 1, 1000)]  # each takes 2.875 s, the first two overlap
    save(tmp_path / "t.jsonl", *episodes)
    run = Viewer([tmp_path]).run("t.jsonl")
    assert run["wall"] == pytest.approx(3.875 + 2.875)
    assert run["overall"]["seconds"] == [pytest.approx(0.75), pytest.approx(0.5 + 0.375)]
    assert run["started"] == 100.0 and run["cost"] is None


def test_cost_is_that_of_the_record(tmp_path: Path) -> None:
    turns = tuple(Turn("a", "b", 0.0, {"cost": cost}) for cost in (0.25, "free", 0.5))
    save(tmp_path / "t.jsonl", replace(record("a"), turns=turns), record("b", "x", meta={"cost": 2}))
    viewer = Viewer([tmp_path])
    assert viewer.run("t.jsonl")["cost"] == 2.75
    assert viewer.summary()["figures"] == ["cost"]


@pytest.mark.parametrize("usage", [{"dollars": 0.5}, {"dollars": None}, {"dollars": "free"}, None, 3])
def test_cost_of_an_evaluation_is_that_of_its_file(tmp_path: Path, usage: Any) -> None:
    save(tmp_path / "eval" / "t.jsonl", record("a"))
    (tmp_path / "eval" / "eval.json").write_text(json.dumps({"settings": {}, "usage": usage}))
    assert Viewer([tmp_path]).run("eval")["cost"] == (0.5 if usage == {"dollars": 0.5} else None)


def test_last_record_of_a_repeated_episode_counts(tmp_path: Path) -> None:
    first, second = record("t", "go", seed=1), record("t", "go", seed=1, score=1.0, success=True)
    failed = record("t", seed=2, stop_reason="env_error")
    again = record("t", "go", seed=2, score=1.0, success=True)
    save(tmp_path / "plain.jsonl", first, second, failed, again)
    save(tmp_path / "eval" / "trajectories.jsonl", first, second, failed, again)
    settings = {"schema": 2, "complete": False, "settings": {"env": ["A"]}, "versions": {"python": "3"}, "metrics": {}}
    (tmp_path / "eval" / "eval.json").write_text(json.dumps(settings))
    viewer = Viewer([tmp_path])
    run = viewer.run("eval")
    assert (run["overall"]["episodes"], run["overall"]["success"][0]) == (2, 1.0)
    assert (run["complete"], run["versions"], run["config"]) == (False, {"python": "3"}, {"settings": {"env": ["A"]}})
    assert viewer.run("plain.jsonl")["overall"]["episodes"] == 3  # only the failed one was played again


def test_result_of_training_is_its_last_evaluation(tmp_path: Path) -> None:
    run, won = tmp_path / "run", {"score": 1.0, "success": True}
    folder = run / "trajectories"
    save(folder / "step-0.jsonl", record("a", "x", **won))
    save(folder / "step-9.jsonl", record("a", "x"), record("b", "x", **won))
    save(folder / "step-20.replaced-1.jsonl", record("a", "x", **won))
    (run / "run.json").write_text('{"schema": 2, "algorithm": "grpo", "lr": 1}')
    found = Viewer([run]).run("run")
    assert (found["step"], found["evaluation"], found["overall"]["success"][0]) == (10, False, 0.5)
    assert (found["algorithm"], found["config"], found["count"]) == ("grpo", {"algorithm": "grpo", "lr": 1}, 4)
    save(folder / "eval-4.jsonl", record("c", "x"))
    save(folder / "eval-8.jsonl", record("c", "x", **won), record("d", "x", **won))
    found = Viewer([run]).run("run")
    assert (found["step"], found["evaluation"], found["overall"]["episodes"]) == (8, True, 2)


def test_run_changes_with_its_episodes(tmp_path: Path) -> None:
    path = save(tmp_path / "t.jsonl", record("a", "x"))
    viewer = Viewer([tmp_path])
    assert viewer.run("t.jsonl")["overall"]["success"][0] == 0
    save(path, record("b", "x", score=1.0, success=True))
    viewer.index.refresh()
    assert viewer.run("t.jsonl")["overall"]["success"][0] == 0.5
    with pytest.raises(UnknownEpisode):
        viewer.run("other")


def test_list_sorts_by_figures(tmp_path: Path) -> None:
    from agentgym_envs.viewer.filters import parse_page

    episodes = [played("a", 0, tokens=5), record("b", "x"), played("c", 1, tokens=9), played("d", 2, tokens=1)]
    save(tmp_path / "t.jsonl", *episodes)
    rows = Viewer([tmp_path]).page(parse_page([("sort", "tokens"), ("desc", "1")]))["rows"]
    assert [(row["id"], row["tokens"]) for row in rows] == [(2, 12), (0, 8), (3, 4), (1, None)]
    assert rows[0]["seconds"] == pytest.approx(1.625)


def test_export_has_the_runs_of_its_episodes_without_config(tmp_path: Path) -> None:
    save(tmp_path / "secret" / "trajectories.jsonl", played("a", 0), played("b", 2))
    (tmp_path / "secret" / "eval.json").write_text(json.dumps({"settings": {"policy": str(tmp_path)}}))
    viewer = Viewer([tmp_path])
    viewer.summary()
    html = export_html(viewer, viewer.index.snapshot.entries[:1])
    run = Page(html).data["runs"]["secret"]
    assert (run["overall"]["episodes"], run["config"]) == (1, {})
    assert str(tmp_path) not in html
