import json
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import MissingExtra, UnknownTask, UsageError
from agentgym_envs.sciworld import pool
from agentgym_envs.sciworld import tasks as tables
from agentgym_envs.sciworld.env import SciWorldEnv
from agentgym_envs.sciworld.simulation import Simulation
from agentgym_envs.sciworld.tasks import SciTasks, agentgym_task, choose_kinds, sci_tasks, table
from agentgym_envs.task import SPLITS

DIGESTS = {
    ("all", "train"): "0bce30a9e0bdba74198e1e059f47a81338f7b9ff08c00475e42bdfb4084e8eea",
    ("all", "validation"): "1332381f2d864472c311820870c5cb852075d6efc246502b84b7c40954102b3b",
    ("agentgym", "train"): "96d6ddaa9b711147965846bf2bf0c480d8f0f8cbcca176ac99997136efe35c17",
    ("agentgym-published", "train"): "146e7dc439e211c1f27290a77f03ba2034ad44e48e6f2d39cf0a2ffbda7fa4c5",
}
COUNTS = {
    "boil": 30,
    "melt": 30,
    "freeze": 30,
    "change-the-state-of-matter-of": 30,
    "use-thermometer": 540,
    "measure-melting-point-known-substance": 436,
    "measure-melting-point-unknown-substance": 300,
    "power-component": 20,
    "power-component-renewable-vs-nonrenewable-energy": 20,
    "test-conductivity": 900,
    "test-conductivity-of-unknown-substances": 600,
    "find-living-thing": 300,
    "find-non-living-thing": 300,
    "find-plant": 300,
    "find-animal": 300,
    "grow-plant": 126,
    "grow-fruit": 126,
    "chemistry-mix": 32,
    "chemistry-mix-paint-secondary-color": 36,
    "chemistry-mix-paint-tertiary-color": 36,
    "lifespan-longest-lived": 125,
    "lifespan-shortest-lived": 125,
    "lifespan-longest-lived-then-shortest-lived": 125,
    "identify-life-stages-1": 14,
    "identify-life-stages-2": 10,
    "inclined-plane-determine-angle": 168,
    "inclined-plane-friction-named-surfaces": 1386,
    "inclined-plane-friction-unnamed-surfaces": 162,
    "mendelian-genetics-known-plant": 120,
    "mendelian-genetics-unknown-plant": 480,
}
"""The number of variations by task, in ScienceWorld's order. Source: scienceworld 1.2.3."""
FIRST = {
    "boil": 0,
    "melt": 30,
    "freeze": 60,
    "change-the-state-of-matter-of": 90,
    "use-thermometer": 120,
    "measure-melting-point-known-substance": 660,
    "measure-melting-point-unknown-substance": 1096,
    "power-component": 1396,
    "power-component-renewable-vs-nonrenewable-energy": 1416,
    "test-conductivity": 1436,
    "test-conductivity-of-unknown-substances": 2336,
    "find-living-thing": 2936,
    "find-non-living-thing": 3236,
    "find-plant": 3536,
    "find-animal": 3836,
    "chemistry-mix": 4136,
    "chemistry-mix-paint-secondary-color": 4168,
    "chemistry-mix-paint-tertiary-color": 4204,
    "lifespan-longest-lived": 4240,
    "lifespan-shortest-lived": 4365,
    "lifespan-longest-lived-then-shortest-lived": 4490,
    "identify-life-stages-1": 4615,
    "identify-life-stages-2": 4629,
}
"""AgentGym's first index of each task. Source: its server at commit 3ef9235 with scienceworld 1.2.3."""
UNPUBLISHED = "measure-melting-point-unknown-substance"


@pytest.fixture(scope="module")
def tasks() -> SciTasks:
    return sci_tasks(choose_kinds("all"), "validation")


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulation]:
    with closing(SciWorldEnv(split=None)) as env:
        env.reset(seed=0)
        yield env.world
    pool.shut_down()


@pytest.mark.parametrize(("chosen", "dev"), DIGESTS)
def test_digests_are_frozen(chosen: str, dev: Any) -> None:
    """If this fails, tasks have changed: raise their version, put the new digest here, and say so in CHANGELOG.md."""
    assert sci_tasks(choose_kinds(chosen), dev).digest == DIGESTS[chosen, dev]


def test_the_table_has_thirty_tasks_and_their_variations(tasks: SciTasks) -> None:
    assert len(COUNTS) == 30 and len(tasks) == sum(COUNTS.values()) == 7207
    assert list(Counter(task.group for task in tasks).items()) == list(COUNTS.items())
    assert tasks.groups == tuple(COUNTS)
    assert len({task.id for task in tasks}) == 7207
    numbers = [kind.number for kind in table().kinds.values()]
    assert len(set(numbers)) == 30
    assert numbers == sorted(numbers, key=lambda number: tuple(map(int, number.split("-"))))


def test_a_task_has_the_expected_fields(tasks: SciTasks) -> None:
    task = tasks.get("sciworld/boil/14")
    assert (task.split, task.group) == ("validation", "boil")
    assert task.goal.startswith("Your task is to boil ") and "{" not in task.goal and "\n" not in task.goal
    assert task.data == {
        "task": "boil",
        "variation": 14,
        "number": "1-1",
        "topic": "Matter",
        "simulator_split": "dev",
    }
    assert json.loads(json.dumps(asdict(task))) == asdict(task)


def test_dev_is_train_or_validation() -> None:
    split = {dev: Counter(task.split for task in sci_tasks(choose_kinds("all"), dev)) for dev in tables.DEVS}
    assert split == {
        "train": {"train": 5388, "test": 1819},
        "validation": {"train": 3592, "validation": 1796, "test": 1819},
    }


@pytest.mark.rotating
@pytest.mark.slow
def test_splits_and_goals_equal_those_of_the_simulator(tasks: SciTasks, simulator: Simulation) -> None:
    rng = random.Random(5)
    for name, count in COUNTS.items():
        variation = rng.randrange(count)
        simulator.load(name, variation, "")
        with simulator.jvm.exclusive(simulator, simulator._globals):
            interface = simulator._interface
            assert interface.getTaskMaxVariations(name) == count
            assert tasks.get(f"sciworld/{name}/{variation}").goal == interface.getTaskDescription()
            parts = interface.getVariationsTrain(), interface.getVariationsDev(), interface.getVariationsTest()
            theirs = [json.loads(part.toString()) for part in parts]
        ours = [tasks.sample(split=split, groups=[name]) for split in SPLITS]
        assert theirs == [[task.data["variation"] for task in part] for part in ours]


# AgentGym's numberings


@pytest.mark.parametrize(("numbering", "size"), [("agentgym", 4639), ("agentgym-published", 4339)])
def test_agentgyms_numberings_match_our_tasks(tasks: SciTasks, numbering: str, size: int) -> None:
    published = numbering == "agentgym-published"
    shift = {name: 300 * (published and first > 1096) for name, first in FIRST.items()}
    ids = [agentgym_task(index, numbering) for index in range(size)]
    chosen = sci_tasks(choose_kinds(numbering), "train")
    assert ids == [task.id for task in chosen] and len(set(ids)) == size
    for name, first in FIRST.items():
        if published and name == UNPUBLISHED:
            assert name not in chosen.groups
            continue
        index = first - shift[name]
        assert ids[index : index + COUNTS[name]] == [f"sciworld/{name}/{n}" for n in range(COUNTS[name])]
    assert len(chosen.groups) == (22 if published else 23)


def test_the_servers_numbering_is_the_default() -> None:
    assert agentgym_task(1096) == f"sciworld/{UNPUBLISHED}/0"
    assert agentgym_task(1096, "agentgym-published") == "sciworld/power-component/0"


@pytest.mark.parametrize("index", [-1, 4639, 10**9])
def test_indices_out_of_range_are_unknown(index: int) -> None:
    with pytest.raises(
        UnknownTask, match=f"no index {index} in AgentGym's numbering 'agentgym'; they go from 0 to 4638"
    ):
        agentgym_task(index)


@pytest.mark.parametrize("index", [True, "3", 1.0, None])
def test_indices_must_be_whole_numbers(index: Any) -> None:
    with pytest.raises(UsageError, match="whole number"):
        agentgym_task(index)


def test_unknown_numberings_are_refused() -> None:
    for wrong in ("all", "4339", ["agentgym"], None):
        with pytest.raises(UsageError, match="numbering must be agentgym or agentgym-published"):
            agentgym_task(0, wrong)  # type: ignore[arg-type]


# Choosing, drawing, taking


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("boil", ("boil",)),
        ("1-1", ("boil",)),
        (["find-plant", "1-1", "boil"], ("boil", "find-plant")),
        ("all", tuple(COUNTS)),
        ("agentgym", tuple(FIRST)),
    ],
)
def test_tasks_are_chosen_by_name_or_number(chosen: Any, names: tuple[str, ...]) -> None:
    assert choose_kinds(chosen) == names


@pytest.mark.parametrize("chosen", [[], None, 5, {"boil": 1}, [1], "", [""]])
def test_invalid_selections_of_tasks_are_refused(chosen: Any) -> None:
    with pytest.raises(UsageError) as caught:
        choose_kinds(chosen)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "task_id",
    [
        *("sciworld/boil/007", "sciworld/boil/-1", "sciworld/boil/30", "sciworld/boil/+1", "sciworld/boil/1_0"),
        *("sciworld/boil/", "sciworld/boil/1 ", "sciworld/boil/٣", "sciworld/boil/²", "sciworld/boil/1/0"),
        *("sciworld/1-1/0", "sciworld/Boil/0", "boil/0", "babyai/boil/0", "SciWorld/boil/0", "/sciworld/boil/0", ""),
        *("sciworld/boil", "sciworld//0", "sciworld/boil/" + "9" * 5000),
    ],
)
def test_unknown_ids_are_refused(tasks: SciTasks, task_id: str) -> None:
    with pytest.raises(UnknownTask, match="there is no task"):
        tasks.get(task_id)


def test_the_error_for_an_unknown_variation_has_their_number(tasks: SciTasks) -> None:
    with pytest.raises(UnknownTask, match="no task 'sciworld/boil/30'; boil has the variations 0 to 29"):
        tasks.get("sciworld/boil/30")


@pytest.mark.parametrize("task_id", [None, 3, ["sciworld/boil/1"], b"sciworld/boil/1"])
def test_malformed_ids_are_refused(tasks: SciTasks, task_id: Any) -> None:
    with pytest.raises(UnknownTask, match="there is no task"):
        tasks.get(task_id)


def test_tasks_that_are_not_drawn_can_be_looked_up() -> None:
    few = sci_tasks(choose_kinds("boil"), "validation")
    assert few.get("sciworld/mendelian-genetics-known-plant/70").split == "validation"
    assert {few.draw(key).group for key in range(50)} == {"boil"}


def test_draws_are_uniform_over_tasks(tasks: SciTasks) -> None:
    drawn = [tasks.draw(key, split="train") for key in range(3000)]
    counts = Counter(task.group for task in drawn)
    assert set(counts) == set(COUNTS) and min(counts.values()) > 60 and max(counts.values()) < 145
    named = {task.id for task in drawn if task.group == "inclined-plane-friction-named-surfaces"}
    assert len(named) > 60
    boiled = Counter(task.id for task in drawn if task.group == "boil")
    assert len(boiled) == 14


@given(
    st.integers(0, 2**64),
    st.sampled_from([None, *SPLITS]),
    st.none() | st.sets(st.sampled_from(list(COUNTS)), min_size=1),
)
def test_a_draw_is_pure_and_respects_its_selection(key: int, split: str | None, groups: set[str] | None) -> None:
    tasks = sci_tasks(choose_kinds("all"), "validation")
    chosen = None if groups is None else sorted(groups)
    task = tasks.draw(key, split=split, groups=chosen)
    assert task == tasks.draw(key, split=split, groups=chosen) == tasks.get(task.id)
    assert split in (None, task.split) and (groups is None or task.group in groups)


def test_samples_are_balanced_and_repeatable(tasks: SciTasks) -> None:
    taken = tasks.sample(100, split="test", seed=3)
    assert taken == tasks.sample(100, split="test", seed=3) != tasks.sample(100, split="test", seed=4)
    assert taken == sorted(taken, key=tasks.tasks.index) and len({task.id for task in taken}) == 100
    counts = Counter(task.group for task in taken)
    assert len(counts) == 30 and {task.split for task in taken} == {"test"}
    assert set(counts.values()) <= {3, 4}
    assert Counter(task.group for task in tasks.sample(20)).most_common(1)[0][1] == 1
    assert tasks.sample(0) == []


def test_samples_include_all_variations_of_small_tasks(tasks: SciTasks) -> None:
    counts = Counter(task.group for task in tasks.sample(400, split="test"))
    assert counts["identify-life-stages-2"] == len(tasks.sample(split="test", groups=["identify-life-stages-2"])) == 4
    assert sum(counts.values()) == 400 and max(counts.values()) - counts["use-thermometer"] <= 1


def test_invalid_sample_sizes_are_refused(tasks: SciTasks) -> None:
    assert len(tasks.sample(split="test", groups=["boil"])) == 9
    for count in (10, -1):
        with pytest.raises(UsageError, match="tasks"):
            tasks.sample(count, split="test", groups=["boil"])
    with pytest.raises(UnknownTask, match="no split 'dev'"):
        tasks.draw(0, split="dev")
    with pytest.raises(UnknownTask, match="has no group 'Matter'; choose from boil"):
        tasks.sample(1, groups=["Matter"])


def test_environments_share_task_tables() -> None:
    one, other = SciWorldEnv(), SciWorldEnv(grammar="react")
    assert one.tasks is other.tasks
    assert pickle.loads(pickle.dumps(one.tasks)).digest == one.tasks.digest


# Another simulator


@pytest.mark.parametrize("installed", ["1.2.4", "1.3.0rc1", "1.1.3"])
def test_another_simulator_version_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    monkeypatch.setattr(tables, "version", lambda _: installed)
    with pytest.raises(MissingExtra, match=f"those of scienceworld 1.2.3, and {installed} is installed") as caught:
        SciWorldEnv()
    assert "pip install" in str(caught.value) and "any_simulator=True" in str(caught.value)
    SciWorldEnv(any_simulator=True).close()


def test_a_modified_simulator_of_the_same_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_sha256", lambda _: "of another file")
    with pytest.raises(MissingExtra, match="or its files were modified"):
        SciWorldEnv()
    SciWorldEnv(any_simulator=True).close()


def test_names_may_be_separated_by_commas() -> None:
    assert choose_kinds("melt, 1-1") == ("boil", "melt")
    with pytest.raises(UnknownTask, match="no task 'boyl'; did you mean 'boil'"):
        choose_kinds("boil,boyl")
