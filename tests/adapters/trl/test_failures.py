"""The report of episodes that failed for good."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from agentgym_trl.failures import without_trls_dump
from tests.adapters.trl.small import broken_craft, make_trainer, played


@pytest.mark.train
def test_a_failed_episode_is_one_line_and_its_record_is_in_the_file(
    tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = broken_craft(lambda number: number in (1, 2))  # of one group
    trainer = make_trainer(tmp_path, tokenizer, env, env_retries=0, max_steps=1)
    with caplog.at_level(logging.WARNING):
        trainer.train()
    failed = [each for each in played(tmp_path, 0) if not each.usable]
    assert len(failed) == 2 and all("the crafting table burns" in (each.error or "") for each in failed)
    lines = [record.getMessage() for record in caplog.records if "burns" in record.getMessage()]
    assert len(lines) == 1 and "\n" not in lines[0]
    assert lines[0].startswith(f"task {failed[0].task.id}: 2 episodes failed for good, not trained on: ")
    assert not [record for record in caplog.records if "All reward functions" in record.getMessage()]


def test_other_warnings_of_trl_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("trl.trainer.grpo_trainer")
    with without_trls_dump():
        logger.warning("All reward functions returned None for the following kwargs:\n{}")
        logger.warning("something else")
    logger.warning("All reward functions returned None")
    assert [record.getMessage() for record in caplog.records] == [
        "something else",
        "All reward functions returned None",
    ]
