"""Labels in the viewer: marks at turns, and the way to the first mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.labels import labels_path
from agentgym_envs.labels.running import label_file
from agentgym_envs.rollout import EpisodeSpec, Limits, ReplayPolicy, play_text, run_sync
from agentgym_envs.trajectory import TrajectoryWriter
from agentgym_envs.viewer.api import Viewer
from tests.viewer.showing import chromium, page_of, serving

PLAN = ["get 1 oak logs", "craft 4 oak planks using 1 oak logs", "craft 1 crafting table using 4 oak planks"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two labelled episodes: one wastes its second turn, one makes no mistake."""
    path = tmp_path_factory.mktemp("labels") / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        for seed, actions in enumerate(([PLAN[0], "wait", *PLAN[1:]], PLAN)):
            env = gym.make("AgentGym/TextCraft-v0", goal="crafting table", split=None)
            writer.write(run_sync(play_text(env, ReplayPolicy(actions), EpisodeSpec(seed=seed), limits=Limits(9))))
    label_file(path)
    return path


def test_an_episode_has_its_labels(path: Path) -> None:
    viewer = Viewer([path.parent])
    assert viewer.summary()["count"] == 2  # labels are no episodes
    labels = viewer.episode(0)["labels"]
    assert (labels["first_mistake"], labels["regret"], labels["recovered"]) == (2, 1, True)
    assert [turn["verdict"] for turn in labels["turns"]] == ["on plan", "detour", "on plan", "on plan"]
    assert viewer.episode(1)["labels"]["first_mistake"] is None


def test_an_episode_without_readable_labels_is_shown(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "t.jsonl"
    copy.write_bytes(path.read_bytes())
    assert Viewer([copy]).episode(0)["labels"] is None
    labels_path(copy).write_text("{}\n")
    assert Viewer([copy]).episode(0)["labels"] is None


@pytest.fixture(scope="module")
def browser(path: Path) -> Iterator[Any]:  # labelled first, as Playwright runs an event loop
    with chromium() as made:
        yield made


@pytest.mark.slow
def test_turns_are_marked_and_a_key_leads_to_the_first_mistake(browser: Any, path: Path) -> None:
    with serving(path) as address, page_of(browser, address + "#/episode/0") as page:
        page.wait_for_selector(".turn-verdict")
        assert page.locator(".turn-verdict").all_inner_texts() == ["On plan", "Detour +1", "On plan", "On plan"]
        assert page.locator(".strip .band.detour").count() == 1
        page.keyboard.press("m")
        page.wait_for_selector(".turn.mistake.now")
        assert page.url.endswith("turn=2")
        page.goto(address + "#/episode/1")
        page.wait_for_selector("text=No mistake")
