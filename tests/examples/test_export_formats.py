"""The example of exports, as its user starts it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentgym_envs.trajectory import read_trajectories
from tests.plugins.startup import python_path

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_example_writes_every_format(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "examples/export_formats.py"), str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": python_path(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    episodes = list(read_trajectories(tmp_path / "out/episodes.jsonl"))
    for number, episode in enumerate(episodes, 1):
        line = f"episodes-{number}.atif.json: {episode.task.id}, {len(episode.turns)} turns, score {episode.score:g}"
        assert line in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "episodes.jsonl",
        "atif",
        "traces.otlp.jsonl",
        "nemo",
        "hub",
    }
