"""The tasks of a team: TextCraft's goals, dealt to a number of agents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.multiagent.deal import Deal, make_deal, max_agents
from agentgym_envs.multiagent.planner import Team, plan_rounds
from agentgym_envs.task import SPLITS, Task, TaskTable, canonical_hash, plain_number
from agentgym_envs.textcraft.book import RecipeBook
from agentgym_envs.textcraft.names import Worlds, make_names
from agentgym_envs.textcraft.tasks import (
    WORLDS_PER_SPLIT,
    CraftTasks,
    FictionalTasks,
    GoalTasks,
    goal_tasks,
    make_tasks,
)

MAX_AGENTS = 4
FROZEN = Path(__file__).with_name("data") / "tasks.jsonl"
_SAMPLE = 16
"""Of so many tasks one goes into the digest with its cards."""


class TeamGoals(GoalTasks):
    """The goals that can be dealt to `agents` agents, by real names: `textcraft-coop/<agents>/<goal>`.

    `goal` is the number of the task in TextCraft's own set, whose split it keeps; the group is
    `agents-<agents>/depth-<d>`. `data` holds TextCraft's and `agents` and `plan_rounds`, the rounds that the planner
    takes from the start.
    """

    def __init__(self, book: RecipeBook, agents: int) -> None:
        """The built-in book's tasks are read from the frozen file, any other book's are worked out."""
        base = goal_tasks(book)
        rows = _frozen(agents) if book.path is None else list(derive_tasks(book, agents))
        if not rows:
            raise UsageError(f"no goal of the recipe table {book.path!r} can be dealt to {agents} agents; take fewer")
        TaskTable.__init__(self, f"{base.name}-coop", base.version, rows)
        self.book, self.agents = book, agents
        self.number = {task.id: int(task.id.rpartition("/")[2]) for task in self.tasks}
        self.place = {self.number[task.id]: place for place, task in enumerate(self.tasks)}

    def __reduce__(self) -> tuple[Any, ...]:
        return team_tasks, (self.book, "real", self.agents)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the tasks and of the cards of some of them."""
        goals = [self.book.goals[self.number[task.id]] for task in self.tasks[::_SAMPLE]]
        return canonical_hash([super().digest, [make_deal(self.book, goal, self.agents, 0) for goal in goals]])


class TeamWorlds(FictionalTasks):
    """The same goals in worlds where everything has another name and the cards are dealt anew.

    Ids are `textcraft-coop-<worlds>/<agents>/<world>/<goal>`; the world decides the split.
    """

    base: TeamGoals

    def __init__(self, base: TeamGoals, worlds: Worlds) -> None:
        super().__init__(base, worlds)
        self._head = f"{self.name}/{base.agents}"

    def __reduce__(self) -> tuple[Any, ...]:
        return team_tasks, (self.book, self.worlds, self.base.agents)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, also for a number written another way."""
        head, world, number = ["", "", "", *task_id.rsplit("/", 2)][-3:] if isinstance(task_id, str) else ("", "", "")
        place = self.base.place.get(plain_number(number))
        if head != self._head or not 0 <= plain_number(world) < 3 * WORLDS_PER_SPLIT or place is None:
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self._head}/<world>/<goal>' with a world below "
                f"{3 * WORLDS_PER_SPLIT} and one of {len(self.base)} goals, for example {self._task(0, 0).id!r}"
            )
        return self._task(plain_number(world), place)

    def _task(self, world: int, goal: int) -> Task:
        """`goal` is a place among the team's goals."""
        real = self.base.tasks[goal]
        number = self.base.number[real.id]
        spoken = make_names(self.book, self.worlds, world).say(self.book.goals[number])
        data = {**real.data, "item": spoken.replace(" ", "_"), "world": world}
        del data["plan_rounds"]  # other cards, other plans
        return Task(
            f"{self._head}/{world}/{number}", SPLITS[world // WORLDS_PER_SPLIT], real.group, f"craft {spoken}", data
        )


@lru_cache(maxsize=32)
def team_tasks(book: RecipeBook, worlds: Worlds, agents: int) -> CraftTasks:
    """The tasks of a team of 1 to 4; TextCraft's own for a team of one. Made once."""
    if agents == 1:
        return make_tasks(book, worlds)
    if worlds == "real":
        return TeamGoals(book, agents)
    goals = team_tasks(book, "real", agents)
    assert isinstance(goals, TeamGoals)
    return TeamWorlds(goals, worlds)


def deal_of(book: RecipeBook, task: Task) -> Deal:
    """The cards of a team's task."""
    goal = book.goals[int(task.id.rpartition("/")[2])]
    return make_deal(book, goal, task.data["agents"], task.data.get("world", 0))


def derive_tasks(book: RecipeBook, agents: int) -> Iterator[Task]:
    """The tasks by real names, worked out: what the frozen file was written from."""
    for number, task in enumerate(goal_tasks(book)):
        goal = book.goals[number]
        if max_agents(book, goal) < agents:
            continue
        rounds = plan_rounds(Team.beginning(book, goal, make_deal(book, goal, agents, 0)))
        yield Task(
            f"{goal_tasks(book).name}-coop/{agents}/{number}",
            task.split,
            f"agents-{agents}/{task.group}",
            task.goal,
            {**task.data, "agents": agents, "plan_rounds": len(rounds)},
        )


@lru_cache(maxsize=1)
def _frozen_table() -> TaskTable:
    return TaskTable.from_jsonl(FROZEN)


def _frozen(agents: int) -> list[Task]:
    return [task for task in _frozen_table() if task.data["agents"] == agents]
