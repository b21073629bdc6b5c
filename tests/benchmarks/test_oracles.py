"""The figures of the study of oracles."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import oracles


def test_the_facts_of_an_online_run_are_sums_over_its_steps() -> None:
    rows = [
        {"step": 1, "rollout/success": 0.25, "rollout/tokens": 100.0, "oracle/labelled": 7.0, "time/oracle": 0.5},
        {"step": 2, "rollout/success": 0.75, "rollout/tokens": 60.0, "oracle/labelled": 5.0, "time/oracle": 0.25},
        {"train_runtime": 3.0},
    ]
    facts = {"tokens": 160.0, "labels": 12.0, "oracle_seconds": 0.75, "curve": [[1, 0.25], [2, 0.75]]}
    assert oracles.online_facts(rows) == facts


def test_an_online_run_without_the_oracle_has_no_labels() -> None:
    assert oracles.online_facts([{"step": 1, "rollout/success": 0.25, "rollout/tokens": 100.0}])["labels"] == 0


@pytest.mark.parametrize("name", oracles.ONLINE)
def test_every_online_arm_has_valid_settings(name: str) -> None:
    pytest.importorskip("trl")
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings

    stages._online_config(Path("out"), DemoSettings(), **oracles.ONLINE[name])
