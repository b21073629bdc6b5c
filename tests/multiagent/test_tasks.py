import json
import pickle
from collections import Counter
from dataclasses import asdict
from itertools import chain
from typing import Any

import pytest

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.multiagent.allocation import (
    Allocation,
    add_distractors,
    base_pieces,
    find_blocking_sets,
    make_allocation,
    max_agents,
)
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.tasks import (
    FROZEN,
    TeamGoals,
    TeamRenamedItemTasks,
    allocation_of,
    derive_tasks,
    hash_allocation,
    team_tasks,
)
from agentgym_envs.task import SPLITS, Task, canonical_hash
from agentgym_envs.textcraft.recipes import RecipeBook
from agentgym_envs.textcraft.tasks import WORLDS_PER_SPLIT, goal_tasks, make_tasks

TEAMS = (2, 3, 4)
DIGESTS = {
    2: "2097f9cc854b73b5af1f930e751ca7d0f530d3b845d99475a621fc2843c0410d",
    3: "4b2f056a888532de75b5b722422afbc4d12e19b39257989cff743841eb5bb78c",
    4: "12f445d857344a0090ab35867e3173b4e45b2e7e9a671d8d9aa9d3ac017d6c25",
}
WORLD_DIGEST = "08830a353ec04feaaf236e56eeba9015124b9ee4033c8cbe9a125925febde05c"
ALLOCATIONS = "9ac74f44185f282e37ce9294b29ccc658432ee18ea1514c5676de6c94c477564"


def tasks_of(book: RecipeBook, agents: int, worlds: Any = "real") -> list[Task]:
    tasks = team_tasks(book, worlds, agents)
    return tasks.sample() if worlds == "real" else tasks.sample(200, seed=agents)


def goal_of(book: RecipeBook, task: Task) -> int:
    return book.goals[int(task.id.split("/")[-1])]


def within_reach(book: RecipeBook, recipes: Any, bases: Any) -> set[str]:
    """The names of all items that these recipes and base items can make; an independent version of `can_make`."""
    rows = [
        (book.items[r.item], [{book.items[m] for m in book.members.get(ref, (ref,))} for ref, _ in r.parts])
        for r in (book.recipes[n] for n in recipes)
    ]
    names, before = {*bases}, -1
    while len(names) > before:
        before = len(names)
        names |= {item for item, parts in rows if not any(kinds.isdisjoint(names) for kinds in parts)}
    return names


def check_properties(book: RecipeBook, goal: int, allocation: Allocation) -> None:
    """Check that a task can be solved, but not without a message, a gift, or any one of the agents."""
    name, agents = book.items[goal], range(len(allocation.holdings))
    recipes = [set(own.recipes) for own in allocation.holdings]
    takes = [{book.items[ref] for ref in own.takes} for own in allocation.holdings]
    everything = range(len(book.recipes))
    assert name in within_reach(book, set().union(*recipes), set().union(*takes))
    assert not set(book.recipes_for[goal]) & recipes[allocation.crafter], (
        "the crafter knows the recipe without a message"
    )
    assert name not in within_reach(book, everything, takes[allocation.crafter]), "the crafter needs no gift"
    for absent in agents:
        known = set().union(*(recipes[index] for index in agents if index != absent))
        taken = set().union(*(takes[index] for index in agents if index != absent))
        if absent != allocation.crafter:
            assert name not in within_reach(book, known, taken), f"the team does not need crafter_{absent}"


def each_on_one_card(cards: list[tuple[int, ...]], expected: set[int]) -> bool:
    allocated = list(chain.from_iterable(cards))
    return len(allocated) == len(set(allocated)) and set(allocated) == expected


def check_allocation(book: RecipeBook, task: Task) -> None:
    goal, allocation = goal_of(book, task), allocation_of(book, task)
    assert each_on_one_card([own.recipes for own in allocation.holdings], set(book.needed(goal)))
    assert each_on_one_card([own.takes for own in allocation.holdings], set(base_pieces(book, goal)))
    check_properties(book, goal, allocation)


@pytest.mark.parametrize(("worlds", "agents"), [("real", 2), ("invented", 4)])
def test_every_task_needs_messages_gifts_and_all_agents(book: RecipeBook, agents: int, worlds: Any) -> None:
    tasks = tasks_of(book, agents, worlds)
    for task in tasks[:: len(tasks) // 40]:
        check_allocation(book, task)


@pytest.mark.rotating
@pytest.mark.slow
@pytest.mark.parametrize("agents", TEAMS)
@pytest.mark.parametrize("worlds", ["real", "fictional", "invented"])
def test_all_tasks_need_messages_gifts_and_all_agents(book: RecipeBook, agents: int, worlds: Any) -> None:
    for task in tasks_of(book, agents, worlds):
        check_allocation(book, task)


def test_the_property_check_can_fail(book: RecipeBook) -> None:
    goal = book.items.index("torch")
    allocation = make_allocation(book, goal, 2, 0)
    with pytest.raises(AssertionError, match="without a message"):
        check_properties(book, goal, Allocation(1 - allocation.crafter, allocation.holdings))
    crafter, other = allocation.holdings[allocation.crafter], allocation.holdings[1 - allocation.crafter]
    greedy = crafter._replace(takes=crafter.takes + other.takes)
    holdings = (greedy, other._replace(takes=())) if allocation.crafter == 0 else (other._replace(takes=()), greedy)
    with pytest.raises(AssertionError, match="needs no gift"):
        check_properties(book, goal, Allocation(allocation.crafter, holdings))
    three = make_allocation(book, goal, 3, 0)
    helper = next(
        p for p in range(3) if p != three.crafter and book.recipes_for[goal][0] not in three.holdings[p].recipes
    )
    holdings3 = list(three.holdings)
    holder = three.recipe_holder(book.recipes_for[goal][0])
    holdings3[holder] = three.holdings[holder]._replace(
        recipes=three.holdings[holder].recipes + three.holdings[helper].recipes,
        takes=three.holdings[holder].takes + three.holdings[helper].takes,
    )
    with pytest.raises(AssertionError, match=f"does not need crafter_{helper}"):
        check_properties(book, goal, Allocation(three.crafter, tuple(holdings3)))


@pytest.mark.parametrize("agents", TEAMS)
def test_distractors_are_allocated_and_do_not_help(book: RecipeBook, agents: int) -> None:
    tasks = tasks_of(book, agents)
    for task in tasks[:: len(tasks) // 25]:
        goal, allocation = goal_of(book, task), allocation_of(book, task)
        shown = [*book.distractors(goal)[:10], *book.needed(goal)]
        allocated = add_distractors(book, allocation, shown)
        assert each_on_one_card([own.recipes for own in allocated.holdings], set(shown))
        parts = {m for n in shown for ref, _ in book.recipes[n].parts for m in book.members.get(ref, (ref,))}
        assert each_on_one_card([own.takes for own in allocated.holdings], {ref for ref in parts if book.base[ref]})
        for before, after in zip(allocation.holdings, allocated.holdings, strict=True):
            assert set(before.recipes) <= set(after.recipes) and set(before.takes) <= set(after.takes)
            assert list(after.recipes) == [number for number in shown if number in after.recipes]
        check_properties(book, goal, allocated)


def test_blocking_sets_are_disjoint_and_minimal(book: RecipeBook) -> None:
    for goal in book.goals[::20]:
        blocking_sets = find_blocking_sets(book, goal)
        assert blocking_sets[0] == (goal,) and len(set(chain.from_iterable(blocking_sets))) == sum(
            map(len, blocking_sets)
        )
        for blocking_set in blocking_sets:
            for spared in (None, *blocking_set):
                out = set(blocking_set) - {spared}
                recipes = [n for n in book.needed(goal) if book.recipes[n].item not in out]
                bases = {book.items[ref] for ref in base_pieces(book, goal) - out}
                assert (book.items[goal] in within_reach(book, recipes, bases)) == (spared is not None)


def test_the_frozen_table_has_the_documented_counts() -> None:
    rows = [json.loads(line) for line in FROZEN.read_text(encoding="utf-8").splitlines()]
    assert Counter(row["data"]["agents"] for row in rows) == {2: 544, 3: 544, 4: 440}
    assert Counter((row["group"], row["split"]) for row in rows if row["group"].startswith("agents-4")) == {
        ("agents-4/depth-1", "train"): 13,
        ("agents-4/depth-1", "validation"): 3,
        ("agents-4/depth-1", "test"): 5,
        ("agents-4/depth-2", "train"): 204,
        ("agents-4/depth-2", "validation"): 29,
        ("agents-4/depth-2", "test"): 58,
        ("agents-4/depth-3", "train"): 82,
        ("agents-4/depth-3", "validation"): 12,
        ("agents-4/depth-3", "test"): 23,
        ("agents-4/depth-4", "train"): 8,
        ("agents-4/depth-4", "validation"): 1,
        ("agents-4/depth-4", "test"): 2,
    }


@pytest.mark.slow
def test_the_frozen_file_is_derived_from_the_recipes(book: RecipeBook) -> None:
    rows = [json.loads(line) for line in FROZEN.read_text(encoding="utf-8").splitlines()]
    assert rows == [asdict(task) for agents in TEAMS for task in derive_tasks(book, agents)]


@pytest.mark.parametrize("agents", TEAMS)
def test_digests_are_frozen(book: RecipeBook, agents: int) -> None:
    """If this fails, tasks have changed: raise the version of the environment, and say so in CHANGELOG.md."""
    assert team_tasks(book, "real", agents).digest == DIGESTS[agents]


def test_the_digest_of_other_worlds_is_frozen(book: RecipeBook) -> None:
    assert team_tasks(book, "invented", 3).digest == WORLD_DIGEST


def test_cards_are_in_the_digests(book: RecipeBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real tasks have the hash of their allocation; the digest of other worlds has allocations of each split."""
    for task in tasks_of(book, 2):
        assert len(task.data["deal"]) == 16
    made = make_allocation(book, book.goals[0], 3, 2 * WORLDS_PER_SPLIT)
    other = Allocation(made.crafter, made.holdings[::-1])

    def allocations(book: RecipeBook, goal: int, agents: int, world: int) -> Allocation:
        return (
            other
            if (goal, world) == (book.goals[0], 2 * WORLDS_PER_SPLIT)
            else make_allocation(book, goal, agents, world)
        )

    monkeypatch.setattr("agentgym_envs.multiagent.tasks.make_allocation", allocations)
    tasks = TeamRenamedItemTasks(TeamGoals(book, 3), "invented")
    assert tasks.digest != WORLD_DIGEST


@pytest.mark.parametrize("agents", TEAMS)
def test_allocations_match_the_frozen_hashes(book: RecipeBook, agents: int) -> None:
    """For every eighth task; a slow test checks the whole file."""
    for task in tasks_of(book, agents)[::8]:
        assert hash_allocation(allocation_of(book, task)) == task.data["deal"]


@pytest.mark.slow
def test_the_hash_of_all_allocations_is_frozen(book: RecipeBook) -> None:
    tasks = [task for agents in TEAMS for worlds in ("real", "invented") for task in tasks_of(book, agents, worlds)]
    assert canonical_hash([[task.id, allocation_of(book, task)] for task in tasks]) == ALLOCATIONS


@pytest.mark.parametrize("agents", TEAMS)
def test_splits_and_goals_equal_those_of_textcraft(book: RecipeBook, agents: int) -> None:
    singles = goal_tasks(book).tasks
    for task in tasks_of(book, agents):
        single = singles[int(task.id.removeprefix(f"textcraft-coop/{agents}/"))]
        assert (task.split, task.goal, task.group) == (single.split, single.goal, f"agents-{agents}/{single.group}")
        own = {"agents", "plan_rounds", "deal"}
        assert {name: value for name, value in task.data.items() if name not in own} == single.data
        assert task.data.keys() == single.data.keys() | own


def test_one_agent_has_the_tasks_of_textcraft(book: RecipeBook) -> None:
    assert team_tasks(book, "invented", 1) is make_tasks(book, "invented")


@pytest.mark.parametrize("worlds", ["fictional", "invented"])
def test_tasks_of_other_worlds_respect_their_splits(book: RecipeBook, worlds: Any) -> None:
    tasks = team_tasks(book, worlds, 4)
    for index, split in enumerate(SPLITS):
        drawn = [tasks.draw(key * 7919, split=split) for key in range(60)]
        assert {task.split for task in drawn} == {split}
        assert {int(task.id.split("/")[2]) // 1_000_000 for task in drawn} == {index}
        for task in drawn:
            goal = goal_of(book, task)
            assert tasks.get(task.id) == task
            assert max_agents(book, goal) >= 4
            assert not {"plan_rounds", "deal"} & task.data.keys()
            assert task.goal == f"craft {tasks.names(task).name_of(goal)}"
            assert task.data["item"] == task.goal.removeprefix("craft ").replace(" ", "_")
    one, other = (tasks.get(f"textcraft-coop-{worlds}/4/{world}/438") for world in (0, 1))
    assert allocation_of(book, one) != allocation_of(book, other)


@pytest.mark.parametrize(
    "task_id",
    [
        "textcraft-coop-invented/2/0/438",
        "textcraft-coop-invented/4/0/0",
        "textcraft-coop-invented/4/3000000/438",
        "textcraft-coop-invented/4/00/438",
        "textcraft-coop-invented/4/0",
        "textcraft-invented/0/438",
        "/4/0/438",
        "",
        7,
    ],
)
def test_unknown_ids_are_refused(book: RecipeBook, task_id: Any) -> None:
    with pytest.raises(UnknownTask, match="for example 'textcraft-coop-invented/4/0/"):
        team_tasks(book, "invented", 4).get(task_id)
    with pytest.raises(UnknownTask, match="there is no task"):
        team_tasks(book, "real", 4).get(task_id)


@pytest.mark.parametrize("task_id", ["textcraft-coop-invented/2/0/438", "textcraft-coop-invented/3/9/1"])
def test_an_id_of_another_team_size_gives_a_hint(book: RecipeBook, task_id: str) -> None:
    agents = task_id.split("/")[1]
    with pytest.raises(UnknownTask, match=f"this team has 4 agents: make it with num_agents={agents}$"):
        team_tasks(book, "invented", 4).get(task_id)
    real = task_id.replace("-invented", "").replace("/0/", "/").replace("/9/", "/")
    with pytest.raises(UnknownTask, match=f"this team has 4 agents: make it with num_agents={agents}$"):
        team_tasks(book, "real", 4).get(real)


def test_tasks_are_pickled_by_name(book: RecipeBook) -> None:
    for worlds in ("real", "fictional"):
        tasks = team_tasks(book, worlds, 3)
        assert pickle.loads(pickle.dumps(tasks)) is tasks
        assert len(pickle.dumps(tasks)) < 400


def test_a_goal_for_a_smaller_team_is_refused(book: RecipeBook) -> None:
    goal = book.items.index("acacia_planks")
    with pytest.raises(UsageError, match="cannot be allocated to 4 agents, only to 2 to 3"):
        make_allocation(book, goal, 4, 0)


def test_a_custom_recipe_table_defines_the_tasks(tmp_path: Any) -> None:
    table = {
        "version": 1,
        "recipes": [["cup", "cup", 1, [["clay", 2]], None], ["set", "set", 1, [["cup", 4], ["tin", 1]], None]],
        "tags": {},
        "base_items": ["clay", "tin"],
        "goals": {"1": ["cup"], "2": ["set"]},
    }
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    env = CoopTextCraftEnv(num_agents=4, recipe_table=path, split=None)
    _, infos = env.reset(seed=0)
    assert infos["crafter_0"]["task_id"].endswith("-coop/4/1")
    assert env.task is not None and env.task.goal == "craft set"
    assert len(list(env.oracle())) == env.task.data["plan_rounds"]
    table["recipes"], table["goals"] = table["recipes"][:1], {"1": ["cup"]}  # type: ignore[index]
    path.write_text(json.dumps(table))
    with pytest.raises(UsageError, match="can be allocated to 4 agents; use fewer"):
        CoopTextCraftEnv(num_agents=4, recipe_table=path)
