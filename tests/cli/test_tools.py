"""`agentgym eval --tools`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentgym_envs.cli import main
from agentgym_envs.trajectory import read_trajectories


def test_the_oracle_calls_native_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "textcraft", "--policy", "oracle", "--tasks", "2", "--out", str(tmp_path / "out")]
    assert main([*words, "--tools"]) == 0
    for trajectory in read_trajectories(tmp_path / "out" / "trajectories.jsonl"):
        assert trajectory.success and trajectory.env_kwargs["grammar"] == "tools"
        assert trajectory.meta["tools"][0]["function"]["name"] == "act"
        assert trajectory.actions[0].startswith('<tool_call>\n{"name": "act"')
    assert main([*words, "--overwrite", "--tools", "--env-arg", "grammar=react"]) == 2
    assert "--tools selects the grammar 'tools'" in capsys.readouterr().err
