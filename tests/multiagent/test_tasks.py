import json
import pickle
from collections import Counter
from dataclasses import asdict
from itertools import chain
from typing import Any

import pytest

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.multiagent.allocation import Deal, add_distractors, base_pieces, find_cuts, make_deal, max_agents
from agentgym_envs.multiagent.coop import CoopTextCraftEnv
from agentgym_envs.multiagent.tasks import FROZEN, TeamGoals, TeamWorlds, deal_of, derive_tasks, hash_deal, team_tasks
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
DEALS = "9ac74f44185f282e37ce9294b29ccc658432ee18ea1514c5676de6c94c477564"


def tasks_of(book: RecipeBook, agents: int, worlds: Any = "real") -> list[Task]:
    tasks = team_tasks(book, worlds, agents)
    return tasks.sample() if worlds == "real" else tasks.sample(200, seed=agents)


def goal_of(book: RecipeBook, task: Task) -> int:
    return book.goals[int(task.id.split("/")[-1])]


def within_reach(book: RecipeBook, recipes: Any, bases: Any) -> set[str]:
    """All that can be crafted by these recipes out of these base items, by name; another way than `can_make`."""
    rows = [
        (book.items[r.item], [{book.items[m] for m in book.members.get(ref, (ref,))} for ref, _ in r.parts])
        for r in (book.recipes[n] for n in recipes)
    ]
    names, before = {*bases}, -1
    while len(names) > before:
        before = len(names)
        names |= {item for item, parts in rows if not any(kinds.isdisjoint(names) for kinds in parts)}
    return names


def prove(book: RecipeBook, goal: int, deal: Deal) -> None:
    """That a task can be solved, and not without telling, not without giving, and not without any of the agents."""
    name, agents = book.items[goal], range(len(deal.hands))
    recipes = [set(hand.recipes) for hand in deal.hands]
    takes = [{book.items[ref] for ref in hand.takes} for hand in deal.hands]
    everything = range(len(book.recipes))
    assert name in within_reach(book, set().union(*recipes), set().union(*takes))
    assert not set(book.recipes_for[goal]) & recipes[deal.crafter], "the crafter knows how without being told"
    assert name not in within_reach(book, everything, takes[deal.crafter]), "the crafter needs no gift"
    for absent in agents:
        known = set().union(*(recipes[place] for place in agents if place != absent))
        taken = set().union(*(takes[place] for place in agents if place != absent))
        if absent != deal.crafter:
            assert name not in within_reach(book, known, taken), f"the team does not need crafter_{absent}"


def each_on_one_card(cards: list[tuple[int, ...]], expected: set[int]) -> bool:
    dealt = list(chain.from_iterable(cards))
    return len(dealt) == len(set(dealt)) and set(dealt) == expected


def check_deal(book: RecipeBook, task: Task) -> None:
    goal, deal = goal_of(book, task), deal_of(book, task)
    assert each_on_one_card([hand.recipes for hand in deal.hands], set(book.needed(goal)))
    assert each_on_one_card([hand.takes for hand in deal.hands], set(base_pieces(book, goal)))
    prove(book, goal, deal)


@pytest.mark.parametrize(("worlds", "agents"), [("real", 2), ("invented", 4)])
def test_no_task_can_be_solved_without_telling_giving_and_everybody(book: RecipeBook, agents: int, worlds: Any) -> None:
    tasks = tasks_of(book, agents, worlds)
    for task in tasks[:: len(tasks) // 40]:
        check_deal(book, task)


@pytest.mark.slow
@pytest.mark.parametrize("agents", TEAMS)
@pytest.mark.parametrize("worlds", ["real", "fictional", "invented"])
def test_none_of_all_tasks_can(book: RecipeBook, agents: int, worlds: Any) -> None:
    for task in tasks_of(book, agents, worlds):
        check_deal(book, task)


def test_the_proof_can_fail(book: RecipeBook) -> None:
    goal = book.items.index("torch")
    deal = make_deal(book, goal, 2, 0)
    with pytest.raises(AssertionError, match="without being told"):
        prove(book, goal, Deal(1 - deal.crafter, deal.hands))
    crafter, other = deal.hands[deal.crafter], deal.hands[1 - deal.crafter]
    greedy = crafter._replace(takes=crafter.takes + other.takes)
    hands = (greedy, other._replace(takes=())) if deal.crafter == 0 else (other._replace(takes=()), greedy)
    with pytest.raises(AssertionError, match="needs no gift"):
        prove(book, goal, Deal(deal.crafter, hands))
    three = make_deal(book, goal, 3, 0)
    helper = next(p for p in range(3) if p != three.crafter and book.recipes_for[goal][0] not in three.hands[p].recipes)
    hands3 = list(three.hands)
    knower = three.knower(book.recipes_for[goal][0])
    hands3[knower] = three.hands[knower]._replace(
        recipes=three.hands[knower].recipes + three.hands[helper].recipes,
        takes=three.hands[knower].takes + three.hands[helper].takes,
    )
    with pytest.raises(AssertionError, match=f"does not need crafter_{helper}"):
        prove(book, goal, Deal(three.crafter, tuple(hands3)))


@pytest.mark.parametrize("agents", TEAMS)
def test_what_is_not_needed_is_dealt_out_and_does_not_help(book: RecipeBook, agents: int) -> None:
    tasks = tasks_of(book, agents)
    for task in tasks[:: len(tasks) // 25]:
        goal, deal = goal_of(book, task), deal_of(book, task)
        shown = [*book.distractors(goal)[:10], *book.needed(goal)]
        dealt = add_distractors(book, deal, shown)
        assert each_on_one_card([hand.recipes for hand in dealt.hands], set(shown))
        parts = {m for n in shown for ref, _ in book.recipes[n].parts for m in book.members.get(ref, (ref,))}
        assert each_on_one_card([hand.takes for hand in dealt.hands], {ref for ref in parts if book.base[ref]})
        for before, after in zip(deal.hands, dealt.hands, strict=True):
            assert set(before.recipes) <= set(after.recipes) and set(before.takes) <= set(after.takes)
            assert list(after.recipes) == [number for number in shown if number in after.recipes]
        prove(book, goal, dealt)


def test_cuts_are_disjoint_and_hold_no_piece_too_many(book: RecipeBook) -> None:
    for goal in book.goals[::20]:
        cuts = find_cuts(book, goal)
        assert cuts[0] == (goal,) and len(set(chain.from_iterable(cuts))) == sum(map(len, cuts))
        for cut in cuts:
            for spared in (None, *cut):
                out = set(cut) - {spared}
                recipes = [n for n in book.needed(goal) if book.recipes[n].item not in out]
                bases = {book.items[ref] for ref in base_pieces(book, goal) - out}
                assert (book.items[goal] in within_reach(book, recipes, bases)) == (spared is not None)


def test_the_table() -> None:
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
def test_the_frozen_file_is_what_the_book_gives(book: RecipeBook) -> None:
    rows = [json.loads(line) for line in FROZEN.read_text(encoding="utf-8").splitlines()]
    assert rows == [asdict(task) for agents in TEAMS for task in derive_tasks(book, agents)]


@pytest.mark.parametrize("agents", TEAMS)
def test_digests_are_frozen(book: RecipeBook, agents: int) -> None:
    """If this fails, tasks have changed: raise the version of the environment, and say so in CHANGELOG.md."""
    assert team_tasks(book, "real", agents).digest == DIGESTS[agents]


def test_the_digest_of_other_worlds_is_frozen(book: RecipeBook) -> None:
    assert team_tasks(book, "invented", 3).digest == WORLD_DIGEST


def test_cards_are_in_the_digests(book: RecipeBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of real tasks by the hash of each deal in the frozen file, of other worlds by deals in each split."""
    for task in tasks_of(book, 2):
        assert len(task.data["deal"]) == 16
    made = make_deal(book, book.goals[0], 3, 2 * WORLDS_PER_SPLIT)
    other = Deal(made.crafter, made.hands[::-1])

    def deals(book: RecipeBook, goal: int, agents: int, world: int) -> Deal:
        return other if (goal, world) == (book.goals[0], 2 * WORLDS_PER_SPLIT) else make_deal(book, goal, agents, world)

    monkeypatch.setattr("agentgym_envs.multiagent.tasks.make_deal", deals)
    tasks = TeamWorlds(TeamGoals(book, 3), "invented")
    assert tasks.digest != WORLD_DIGEST


@pytest.mark.parametrize("agents", TEAMS)
def test_the_frozen_deals_are_those_that_are_made(book: RecipeBook, agents: int) -> None:
    """Of every eighth task; the slow test of the whole file has all."""
    for task in tasks_of(book, agents)[::8]:
        assert hash_deal(deal_of(book, task)) == task.data["deal"]


@pytest.mark.slow
def test_all_deals_are_frozen(book: RecipeBook) -> None:
    tasks = [task for agents in TEAMS for worlds in ("real", "invented") for task in tasks_of(book, agents, worlds)]
    assert canonical_hash([[task.id, deal_of(book, task)] for task in tasks]) == DEALS


@pytest.mark.parametrize("agents", TEAMS)
def test_splits_and_goals_are_textcrafts(book: RecipeBook, agents: int) -> None:
    singles = goal_tasks(book).tasks
    for task in tasks_of(book, agents):
        single = singles[int(task.id.removeprefix(f"textcraft-coop/{agents}/"))]
        assert (task.split, task.goal, task.group) == (single.split, single.goal, f"agents-{agents}/{single.group}")
        own = {"agents", "plan_rounds", "deal"}
        assert {name: value for name, value in task.data.items() if name not in own} == single.data
        assert task.data.keys() == single.data.keys() | own


def test_one_agent_has_textcrafts_own_tasks(book: RecipeBook) -> None:
    assert team_tasks(book, "invented", 1) is make_tasks(book, "invented")


@pytest.mark.parametrize("worlds", ["fictional", "invented"])
def test_other_worlds(book: RecipeBook, worlds: Any) -> None:
    tasks = team_tasks(book, worlds, 4)
    for place, split in enumerate(SPLITS):
        drawn = [tasks.draw(key * 7919, split=split) for key in range(200)]
        assert {task.split for task in drawn} == {split}
        assert {int(task.id.split("/")[2]) // 1_000_000 for task in drawn} == {place}
        for task in drawn:
            goal = goal_of(book, task)
            assert tasks.get(task.id) == task
            assert max_agents(book, goal) >= 4
            assert not {"plan_rounds", "deal"} & task.data.keys()
            assert task.goal == f"craft {tasks.names(task).name_of(goal)}"
            assert task.data["item"] == task.goal.removeprefix("craft ").replace(" ", "_")
    one, other = (tasks.get(f"textcraft-coop-{worlds}/4/{world}/438") for world in (0, 1))
    assert deal_of(book, one) != deal_of(book, other)


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
def test_ids_that_are_none(book: RecipeBook, task_id: Any) -> None:
    with pytest.raises(UnknownTask, match="for example 'textcraft-coop-invented/4/0/"):
        team_tasks(book, "invented", 4).get(task_id)
    with pytest.raises(UnknownTask, match="there is no task"):
        team_tasks(book, "real", 4).get(task_id)


@pytest.mark.parametrize("task_id", ["textcraft-coop-invented/2/0/438", "textcraft-coop-invented/3/9/1"])
def test_ids_of_another_number_of_agents(book: RecipeBook, task_id: str) -> None:
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


def test_a_goal_for_fewer_agents_than_asked(book: RecipeBook) -> None:
    goal = book.items.index("acacia_planks")
    with pytest.raises(UsageError, match="cannot be dealt to 4 agents, but to 2 to 3"):
        make_deal(book, goal, 4, 0)


def test_a_table_of_ones_own(tmp_path: Any) -> None:
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
    with pytest.raises(UsageError, match="can be dealt to 4 agents; take fewer"):
        CoopTextCraftEnv(num_agents=4, recipe_table=path)
