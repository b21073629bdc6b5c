from collections import Counter
from importlib.metadata import version

import pytest

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.task import SPLITS
from agentgym_envs.webarena.miniwob.env import pages_folder
from agentgym_envs.webarena.miniwob.oracle.solvers import PEEKS, SOLVERS
from agentgym_envs.webarena.miniwob.pages import AFTER, BEFORE, GROUP_OF, GROUP_PAGES, LEFT_OUT, PAGES
from agentgym_envs.webarena.miniwob.tasks import MINIWOB, SEEDS, MiniWoBTasks

DIGEST = "ea31890c83ec82b0f8a1957268e04228715aecc59d0396904fc2a52c098a787e"


@pytest.fixture(scope="module")
def tasks() -> MiniWoBTasks:
    return MiniWoBTasks()


def test_the_digest_is_frozen(tasks: MiniWoBTasks) -> None:
    """If this fails, the tasks have changed: raise their version, update the digest, and add a line to CHANGELOG.md."""
    assert tasks.digest == DIGEST


def test_every_page_of_the_package_is_in_a_group_or_left_out_for_a_reason() -> None:
    pages = {page.stem for page in (pages_folder() / "miniwob").glob("*.html")}
    assert version("miniwob") == MINIWOB
    assert Counter([*PAGES, *LEFT_OUT]) == Counter(pages) and (len(PAGES), len(LEFT_OUT)) == (91, 39)
    assert all(LEFT_OUT.values()) and {*BEFORE, *AFTER} <= set(PAGES)


def test_every_page_has_an_oracle() -> None:
    assert set(SOLVERS) == set(PAGES) and set(PEEKS) <= set(PAGES)
    assert len(set(PAGES) - set(PEEKS)) >= 60  # these oracles need no more than the text


def test_a_task_is_found_by_its_id(tasks: MiniWoBTasks) -> None:
    task = tasks.get("miniwob/click-link/20000")
    assert (task.split, task.group) == ("train", "click") and "click-link" in task.goal
    assert task.data == {"page": "click-link", "seed": 20_000, "mode": "train"}
    assert (
        tasks.get("miniwob/click-link/0").data["mode"] == tasks.get("miniwob/click-link/10000").data["mode"] == "test"
    )
    assert [tasks.get(f"miniwob/tic-tac-toe/{seeds[-1]}").split for seeds in SEEDS.values()] == list(SEEDS)


@pytest.mark.parametrize(
    "task_id",
    ["", "miniwob/click-link", "miniwob/click-link/-1", "miniwob/click-link/01", "miniwob/click-link/1020000"],
)
def test_an_unknown_task_is_refused(tasks: MiniWoBTasks, task_id: str) -> None:
    with pytest.raises(UnknownTask, match="ids are 'miniwob/<page>/<seed>'"):
        tasks.get(task_id)


def test_the_error_for_a_left_out_page_gives_the_reason(tasks: MiniWoBTasks) -> None:
    with pytest.raises(UnknownTask, match="'drag-box' is left out, since it needs dragging"):
        tasks.get("miniwob/drag-box/0")


@pytest.mark.parametrize("split", SPLITS)
def test_draw_respects_split_and_groups_and_covers_every_page(tasks: MiniWoBTasks, split: str) -> None:
    drawn = [tasks.draw(key, split=split, groups=("email", "play")) for key in range(400)]
    assert {task.split for task in drawn} == {split}
    assert {task.data["page"] for task in drawn} == {*GROUP_PAGES["email"], *GROUP_PAGES["play"]}
    assert drawn == [tasks.draw(key, split=split, groups=("email", "play")) for key in range(400)]
    assert all(tasks.get(task.id) == task for task in drawn)


def test_sample_spreads_over_the_pages(tasks: MiniWoBTasks) -> None:
    taken = tasks.sample(2 * len(PAGES), split="test", seed=3)
    assert set(Counter(task.data["page"] for task in taken).values()) == {2}
    assert len({task.data["seed"] for task in taken}) == len(taken)
    assert taken == tasks.sample(2 * len(PAGES), split="test", seed=3) != tasks.sample(2 * len(PAGES), split="test")
    assert tasks.sample(0, split="test") == []


@pytest.mark.parametrize("count", [None, -1, 10_001])
def test_sample_rejects_too_large_counts(tasks: MiniWoBTasks, count: int | None) -> None:
    with pytest.raises(UsageError, match="gives a count of at most 10000"):
        tasks.sample(count, split="test")


def test_counts_are_pages_by_seeds(tasks: MiniWoBTasks) -> None:
    counts = tasks.counts()
    assert tuple(counts) == tasks.groups == tuple(GROUP_PAGES)
    assert counts["social"] == {"train": 3_000_000, "validation": 30_000, "test": 30_000}
    assert sum(count["test"] for count in counts.values()) == 10_000 * len(GROUP_OF)
