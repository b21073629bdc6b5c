"""TRL's own trainer with our rollout function."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")

pytestmark = pytest.mark.train


def test_the_example_trains_with_a_turn_limit_curriculum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentgym_trl.tiny import save_tiny_model

    save_tiny_model(tmp_path / "tiny", ["get 1 oak log"])
    out = tmp_path / "run"
    arguments = ["--steps", "3", "--group", "2", "--tasks", "4", "--max-tokens", "256", "--max-turn-tokens", "6"]
    argv = ["trl_grpo.py", "--model", str(tmp_path / "tiny"), "--out", str(out), *arguments]
    monkeypatch.setattr(sys, "argv", argv)
    importlib.import_module("examples.trl_grpo").main()
    limits = []
    for step in range(3):
        lines = (out / f"trajectories/step-{step}.jsonl").read_text().splitlines()
        limits.append({json.loads(line)["meta"]["max_turns"] for line in lines})
    assert limits == [{2}, {4}, {6}]
    assert (out / "checkpoint-3").is_dir()
