"""The quick start runs from end to end, and writes its files."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import read_trajectories
from agentgym_trl.demo.__main__ import run_demo


@pytest.mark.train
@pytest.mark.slow
def test_the_quick_demo_trains_measures_and_reports(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    with open(tmp_path / "log", "w") as log:
        assert run_demo(out, seed=0, is_quick=True, console=Console(file=log)) == 0
    figures = json.loads((out / "results.json").read_text())
    names = [row["tasks"] for row in figures["results"]]
    assert names == [
        f"{kind}, {how}" for kind in ("held-out worlds", "real held-out goals") for how in ("sampled", "greedy")
    ]
    assert figures["results"][0]["before"]["tasks"] == figures["settings"]["eval_worlds"]
    assert (out / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    report = (out / "report.html").read_text()
    assert report.count('class="episode"') >= 8 and "Crafting commands:" in report
    limits = [next(read_trajectories(out / f"grpo/trajectories/step-{n}.jsonl")).meta["max_turns"] for n in range(6)]
    assert limits == [2, 2, 2, 3, 3, 3]


@pytest.mark.train
def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="not an empty directory"):
        run_demo(tmp_path, seed=0, is_quick=True, console=Console(quiet=True))
