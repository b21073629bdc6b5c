"""`agentgym label`, and labels in `eval` and `report`."""

import json
from pathlib import Path
from typing import Any

Run = Any


def test_a_run_is_labelled_and_reported(run: Run, tmp_path: Path) -> None:
    words = ("--policy", "oracle:slip=0.4", "--tasks", 4, "--groups", "depth-1", "--max-turns", 8, "--out", "out")
    assert run("eval", "textcraft", *words).code == 0
    assert "Regret" not in (tmp_path / "out/report.md").read_text()
    row = run("label", "out", "--json").json["files"][0]
    assert row["episodes"] == 4 and row["turns"] == row["exact_turns"] > 0
    assert Path(row["out"]).name == "trajectories.labels.jsonl"
    assert "4 episodes had labels already" in run("label", "out").out
    shown = run("report", "out").out
    assert "regret" in shown and "recovered" in shown
    for name in ("report.md", "report.html"):
        assert "Regret and mistakes" in (tmp_path / "out" / name).read_text()
    table = (tmp_path / "out/metrics.csv").read_text()
    assert "overall,,,labels:episodes,4,," in table and "overall,,,labels:exact,1.0,," in table
    mistakes = run("report", "out", "--json").json["mistakes"]
    assert mistakes["overall"]["episodes"] == 4 and mistakes["overall"]["exact"] == 1
    (tmp_path / "out/trajectories.labels.jsonl").unlink()
    assert run("report", "out", "--labels", "--json").json["mistakes"] == mistakes


def test_eval_labels_its_episodes(run: Run, refuses: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--groups", "depth-1")
    assert "give --out DIR" in refuses(*words, "--labels").err
    found = run(*words, "--labels", "--out", "out", "--json").json
    assert found["mistakes"]["overall"]["regret"] == 0
    assert json.loads((tmp_path / "out/eval.json").read_text())["mistakes"] == found["mistakes"]
    assert run(*words, "--out", "out", "--overwrite").code == 0
    assert not (tmp_path / "out/trajectories.labels.jsonl").exists()


def test_episodes_of_unknown_environments_are_counted(run: Run, toy: str) -> None:
    assert run("eval", toy, "--policy", "random", "--split", "train", "--max-turns", 2, "--out", "out").code == 0
    shown = run("label", "out")
    assert shown.code == 0 and "oracle plan" not in shown.out
    assert "episodes in out" in shown.out


def test_label_needs_trajectories(refuses: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "is not a file of trajectories" in refuses("label", "empty").err
    assert "is not a file of trajectories" in refuses("label", "gone.jsonl").err
