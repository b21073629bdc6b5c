"""The tasks of a team: TextCraft's goals, allocated to a number of agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UnknownTask, UsageError
from agentgym_envs.multiagent.allocation import Allocation, make_allocation, max_agents
from agentgym_envs.multiagent.planner import Team, plan_rounds
from agentgym_envs.task import SPLITS, Task, TaskSet, TaskTable, canonical_hash, plain_number
from agentgym_envs.textcraft.names import Worlds, make_names
from agentgym_envs.textcraft.recipes import RecipeBook
from agentgym_envs.textcraft.tasks import (
    WORLDS_PER_SPLIT,
    CraftTasks,
    GoalTasks,
    RenamedItemTasks,
    goal_tasks,
    make_tasks,
)

MAX_AGENTS = 4
FROZEN = Path(__file__).with_name("data") / "tasks.jsonl"
_SAMPLE = 16
"""The step between the goals whose cards enter the digest of other worlds."""


class TeamGoals(GoalTasks):
    """The goals that can be allocated to `agents` agents, with real names: `textcraft-coop/<agents>/<goal>`.

    `goal` is the number of the task in TextCraft's own set, whose split it keeps; the group is
    `agents-<agents>/depth-<d>`. `data` has TextCraft's keys, `agents`, `plan_rounds` (the rounds of the planner's
    solution), and `deal` (a hash of the cards).
    """

    def __init__(self, book: RecipeBook, agents: int) -> None:
        """Read the tasks of the built-in recipes from the frozen file, and derive those of any other recipe table."""
        base = goal_tasks(book)
        rows = _frozen(agents) if book.path is None else list(derive_tasks(book, agents))
        if not rows:
            raise UsageError(
                f"no goal of the recipe table {book.path!r} can be allocated to {agents} agents; use fewer agents"
            )
        TaskTable.__init__(self, f"{base.name}-coop", base.version, rows)
        self.recipe_book, self.agents = book, agents
        self.number = {task.id: int(task.id.rpartition("/")[2]) for task in self.tasks}
        self.index = {self.number[task.id]: index for index, task in enumerate(self.tasks)}

    def __reduce__(self) -> tuple[Any, ...]:
        return team_tasks, (self.recipe_book, "real", self.agents)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, with a hint if the id is of another team size."""
        try:
            return super().get(task_id)
        except UnknownTask as error:
            raise UnknownTask(f"{error}{_hint(task_id, self.name, self.agents)}") from None


class TeamRenamedItemTasks(RenamedItemTasks):
    """The same goals in worlds with other names and other cards.

    Ids are `textcraft-coop-<worlds>/<agents>/<world>/<goal>`; the world decides the split.
    """

    base: TeamGoals

    def __init__(self, base: TeamGoals, worlds: Worlds) -> None:
        super().__init__(base, worlds)
        self._head = f"{self.name}/{base.agents}"

    def __reduce__(self) -> tuple[Any, ...]:
        return team_tasks, (self.recipe_book, self.worlds, self.base.agents)

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask, also for a number in an unusual spelling."""
        head, world, number = ["", "", "", *task_id.rsplit("/", 2)][-3:] if isinstance(task_id, str) else ("", "", "")
        index = self.base.index.get(plain_number(number))
        if head != self._head or not 0 <= plain_number(world) < 3 * WORLDS_PER_SPLIT or index is None:
            raise UnknownTask(
                f"there is no task {task_id!r:.120}; ids are '{self._head}/<world>/<goal>' with a world below "
                f"{3 * WORLDS_PER_SPLIT} and one of {len(self.base)} goals, for example {self._task(0, 0).id!r}"
                f"{_hint(task_id, self.name, self.base.agents)}"
            )
        return self._task(plain_number(world), index)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the digest of `RenamedItemTasks` and of the cards of some tasks in one world per split."""
        goals = range(0, len(self.base), _SAMPLE)
        tasks = [self._task(split * WORLDS_PER_SPLIT, goal) for split in range(len(SPLITS)) for goal in goals]
        return canonical_hash([super().digest, [allocation_of(self.recipe_book, task) for task in tasks]])

    def _task(self, world: int, goal: int) -> Task:
        """The task of a world, with `goal` as an index into the team's goals."""
        real = self.base.tasks[goal]
        number = self.base.number[real.id]
        spoken = make_names(self.recipe_book, self.worlds, world).name_of(self.recipe_book.goals[number])
        data = {**real.data, "item": spoken.replace(" ", "_"), "world": world}
        del data["plan_rounds"], data["deal"]  # other cards, other plans
        return Task(
            f"{self._head}/{world}/{number}", SPLITS[world // WORLDS_PER_SPLIT], real.group, f"craft {spoken}", data
        )


@lru_cache(maxsize=32)
def team_tasks(book: RecipeBook, worlds: Worlds, agents: int) -> CraftTasks:
    """The tasks of a team of 1 to 4 agents; for one agent, TextCraft's own. Cached."""
    if agents == 1:
        return make_tasks(book, worlds)
    if worlds == "real":
        return TeamGoals(book, agents)
    goals = team_tasks(book, "real", agents)
    assert isinstance(goals, TeamGoals)
    return TeamRenamedItemTasks(goals, worlds)


def allocation_of(book: RecipeBook, task: Task) -> Allocation:
    """The cards of a team's task."""
    goal = book.goals[int(task.id.rpartition("/")[2])]
    return make_allocation(book, goal, task.data["agents"], task.data.get("world", 0))


def hash_allocation(allocation: Allocation) -> str:
    """A short hash of an allocation."""
    return canonical_hash(allocation)[:16]


def check_groups(tasks: TaskSet, groups: Sequence[str] | None, agents: int) -> None:
    """Raise UnknownTask for a group of TextCraft or of another team size, and name this team's groups."""
    known = set(tasks.groups)
    for group in groups if isinstance(groups, list | tuple) else ():
        own = f"agents-{agents}/{str(group).rpartition('/')[2]}"
        if group not in known and own in known:
            raise UnknownTask(
                f"{tasks.name!r} has no group {group!r} for a team of {agents}; did you mean {own!r}? "
                f"Choose from {', '.join(tasks.groups)}"
            )


def derive_tasks(book: RecipeBook, agents: int) -> Iterator[Task]:
    """Derive the tasks with real names. The frozen file was written from these."""
    for number, task in enumerate(goal_tasks(book)):
        goal = book.goals[number]
        if max_agents(book, goal) < agents:
            continue
        allocation = make_allocation(book, goal, agents, 0)
        rounds = plan_rounds(Team.beginning(book, goal, allocation))
        yield Task(
            f"{goal_tasks(book).name}-coop/{agents}/{number}",
            task.split,
            f"agents-{agents}/{task.group}",
            task.goal,
            {**task.data, "agents": agents, "plan_rounds": len(rounds), "deal": hash_allocation(allocation)},
        )


def _hint(task_id: object, name: str, agents: int) -> str:
    """A hint if the id is of another team size, else an empty text."""
    head, *rest = task_id.split("/") if isinstance(task_id, str) else [""]
    if head == name and len(rest) > 1 and rest[0] != str(agents) and 1 < plain_number(rest[0]) <= MAX_AGENTS:
        return f"; this team has {agents} agents: make it with num_agents={rest[0]}"
    return ""


@lru_cache(maxsize=1)
def _frozen_table() -> TaskTable:
    return TaskTable.from_jsonl(FROZEN)


def _frozen(agents: int) -> list[Task]:
    return [task for task in _frozen_table() if task.data["agents"] == agents]
