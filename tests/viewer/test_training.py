"""Data of the training page: logs of runs, completed by their episodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.api import Viewer, to_json
from tests.viewer.records import logged, record, save, save_log


def played(*successes: bool, turns: int = 2, limit: int = 5, env: str = "AgentGym/TextCraft-v0") -> list[Trajectory]:
    """Episodes of `turns` turns: successful ones have the score 1, others 0.5."""
    actions = ["go"] * turns
    return [
        record("t/1", *actions, env_id=env, success=one, score=1.0 if one else 0.5, meta={"max_turns": limit})
        for one in successes
    ]


def log(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def runs(*paths: Path) -> list[dict[str, Any]]:
    viewer = Viewer(paths)
    viewer.index.refresh()
    found: list[dict[str, Any]] = json.loads(json.dumps(viewer.training(), allow_nan=False))["runs"]
    return found


def test_metric_names_are_recognized(tmp_path: Path) -> None:
    log(
        tmp_path / "run" / "metrics.jsonl",
        {"step": 1, "loss": 0.5, "rollout/success": 0.25, "rollout/turns": 3, "rollout/max_turns": 10, "epoch": 1},
        {
            "step": 2,
            "reward": 0.5,
            "rollout/stop/success": 0.5,
            "rollout/BabyAI/success": 1,
            "rollout/AgentGym/X-v0/turns": 4,
            "note": "text",
        },
        {"step": 2, "eval_rollout/success": 0.75, "eval_loss": 1.5},
        {"step": 2, "train_runtime": 3.5, "train_loss": 0.1, "total_flos": 0.0},
    )
    (run,) = runs(tmp_path / "run")
    assert run["name"] == "run" and run["source"] is None
    assert run["series"] == ["success", "reward", "turns", "max_turns", "epoch", "loss", "rollout/stop/success"]
    common = {"eval": False, "env": None, "episodes": False}
    assert run["rows"] == [
        {"step": 1, **common, "loss": 0.5, "success": 0.25, "turns": 3, "max_turns": 10, "epoch": 1},
        {"step": 2, **common, "reward": 0.5, "rollout/stop/success": 0.5},
        {"step": 2, **common, "env": "AgentGym/X-v0", "turns": 4},
        {"step": 2, **common, "env": "BabyAI", "success": 1},
        {"step": 2, **common, "eval": True, "success": 0.75, "loss": 1.5},
    ]


def test_episodes_complete_the_log(tmp_path: Path) -> None:
    """An episode that began after N steps belongs to step N + 1."""
    run = tmp_path / "run"
    log(run / "metrics.jsonl", {"step": 1, "rollout/success": 0.125, "loss": 2.0})
    failed = replace(played(False)[0], stop_reason="env_error", score=0.0)
    save(run / "trajectories" / "step-0.jsonl", *played(True, False, False, False))
    save(run / "trajectories" / "step-1.jsonl", *played(True), failed)
    save(run / "trajectories" / "step-1.replaced-1.jsonl", *played(False, False))
    save(run / "trajectories" / "eval-1.jsonl", *played(True, turns=1, limit=30))
    (found,) = runs(run)
    first, evaluated, second = found["rows"]
    assert found["source"] == "run"
    assert (first["step"], first["episodes"], first["success"], first["loss"]) == (1, True, 0.125, 2.0)
    assert (first["score"], first["turns"], first["max_turns"]) == (0.625, 2, 5)
    assert (evaluated["step"], evaluated["eval"], evaluated["episodes"], evaluated["max_turns"]) == (1, True, True, 30)
    assert (second["step"], second["episodes"], second["success"]) == (2, True, 1.0), "neither lost nor set aside"
    listed = Viewer([run])
    listed.index.refresh()
    assert {entry.summary.step for entry in listed.index.snapshot.entries} == {1, 2}


def test_several_environments_have_separate_rows(tmp_path: Path) -> None:
    path = tmp_path / "run" / "trajectories" / "step-3.jsonl"
    save(path, *played(True, limit=10), *played(False, False, True, True, limit=6, env="AgentGym/BabyAI-v0"))
    (run,) = runs(tmp_path)
    assert [(row["env"], row["success"], row["max_turns"]) for row in run["rows"]] == [
        (None, 0.6, pytest.approx(6.8)),
        ("BabyAI", 0.5, 6),
        ("TextCraft", 1.0, 10),
    ]


def test_agentgym_rl_logs_keep_their_steps(tmp_path: Path) -> None:
    save_log(tmp_path / "step4" / "0.json", logged(1, 1.0, "Goal: x", "Action: go"), logged(2, 0.0, "Goal: y", "go"))
    (run,) = runs(tmp_path)
    assert [(row["step"], row["episodes"], row["success"], row["turns"]) for row in run["rows"]] == [(4, True, 0.5, 1)]


def test_rounds_count_as_steps_and_names_are_distinct(tmp_path: Path) -> None:
    for name in ("one", "two"):
        log(tmp_path / name / "metrics.jsonl", {"round": 1, "success": 0.5, "eval/success": 0.75})
    found = runs(tmp_path)
    assert [run["name"] for run in found] == ["one", "two"]
    assert [(row["eval"], row["success"]) for row in found[0]["rows"]] == [(False, 0.5), (True, 0.75)]


def test_held_out_success_is_an_evaluation_by_environment(tmp_path: Path) -> None:
    held_out = {"eval/success": 0.5, "eval/success_low": 0.4, "eval/BabyAI/success": 0.75, "eval/tasks": 6}
    log(tmp_path / "run" / "metrics.jsonl", {"step": 2, **held_out, "eval/group/BabyAI/GoTo/success": 1.0})
    (run,) = runs(tmp_path / "run")
    overall, babyai = run["rows"]
    assert overall["eval"] and overall["env"] is None and babyai["env"] == "BabyAI" and babyai["success"] == 0.75
    assert (overall["success"], overall["success_low"], overall["tasks"]) == (0.5, 0.4, 6)
    assert overall["group/BabyAI/GoTo/success"] == 1.0


LINES = st.lists(
    st.binary(max_size=12).map(lambda text: text.replace(b"\n", b""))
    | st.dictionaries(
        st.sampled_from(["step", "round", "loss", "rollout/success", "eval_x", "é"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.just(10**400)
        | st.floats()
        | st.text()
        | st.lists(st.integers()),
    ).map(lambda row: json.dumps(row).encode()),
    max_size=6,
)


@given(LINES, st.booleans())
def test_any_log_is_read(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], torn: bool) -> None:
    """Incomplete logs and logs of other programs are read without an error."""
    path = tmp_path_factory.mktemp("run") / "metrics.jsonl"
    path.write_bytes(b"\n".join(lines) + (b'\n{"step": 3, "lo' if torn else b"\n"))
    assert to_json({"runs": runs(path.parent)})
