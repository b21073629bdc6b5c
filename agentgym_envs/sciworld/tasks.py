"""SciWorld's tasks: the variations of ScienceWorld's thirty tasks, frozen in `tasks.json`, and AgentGym's numbering."""

from __future__ import annotations

import difflib
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from agentgym_envs.difficulty import read_frozen
from agentgym_envs.errors import MissingExtra, UnknownTask, UsageError
from agentgym_envs.sciworld.java import simulator_jar
from agentgym_envs.task import Difficulty, Split, Task, TaskTable, canonical_hash, in_order, plain_number, scramble

VERSION = 1
Dev = Literal["train", "validation"]
DEVS: tuple[Dev, ...] = get_args(Dev)


class TaskKind(NamedTuple):
    """One of the thirty tasks. `goals` holds the goals of its variations, in order."""

    number: str
    name: str
    topic: str
    goals: tuple[str, ...]


class KindTable(NamedTuple):
    """The content of `tasks.json`."""

    simulator: str
    jar_sha256: str
    kinds: Mapping[str, TaskKind]


@lru_cache(maxsize=1)
def table() -> KindTable:
    """Return the table, read once per process."""
    found = json.loads((files("agentgym_envs.sciworld") / "tasks.json").read_text(encoding="utf-8"))
    kinds = [_kind(row) for row in found["tasks"]]
    return KindTable(found["simulator"], found["jar_sha256"], MappingProxyType({kind.name: kind for kind in kinds}))


def _kind(row: Mapping[str, Any]) -> TaskKind:
    goals = [row["goal"].format(*words) for words in row["blanks"]]
    return TaskKind(row["number"], row["name"], row["topic"], tuple(goals[index] for index in row["goal_of"]))


AGENTGYM_LEAVES_OUT = frozenset({"5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2"})
"""Tasks that AgentGym's server does not have."""
PUBLISHED_LEAVES_OUT = AGENTGYM_LEAVES_OUT | {"2-3"}
"""Tasks that are missing in the numbering of AgentGym's published data (its issue 49)."""
_LEFT_OUT: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "agentgym": AGENTGYM_LEAVES_OUT,
    "agentgym-published": PUBLISHED_LEAVES_OUT,
}


def choose_kinds(chosen: str | Sequence[str]) -> tuple[str, ...]:
    """Parse a selection of tasks: "all", a set of AgentGym's, or several names or numbers.

    Returns names in ScienceWorld's order. Raises UsageError and UnknownTask.
    """
    kinds = table().kinds.values()
    if isinstance(chosen, str):
        if chosen in _LEFT_OUT:
            return tuple(kind.name for kind in kinds if kind.number not in _LEFT_OUT[chosen])
        chosen = [name.strip() for name in chosen.split(",")]
    if not isinstance(chosen, Sequence) or not chosen or not all(isinstance(name, str) for name in chosen):
        raise UsageError(f"tasks must be one of {', '.join(_LEFT_OUT)} or a list of names, got {chosen!r:.120}")
    names = table().kinds.keys() | {kind.number for kind in kinds}
    if unknown := sorted(set(chosen) - names):
        raise UnknownTask(f"ScienceWorld has no task {unknown[0]!r:.80}; {_similar(unknown[0])}")
    return tuple(kind.name for kind in kinds if kind.name in chosen or kind.number in chosen)


def _similar(name: str) -> str:
    """Suggestions for an unknown task name."""
    near = difflib.get_close_matches(name, (*_LEFT_OUT, *table().kinds), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{hint}There are {', '.join(map(repr, _LEFT_OUT))} and thirty tasks, which docs/sciworld.md lists"


def agentgym_task(index: int, numbering: str = "agentgym") -> str:
    """Return the task id of an AgentGym index.

    `numbering` is "agentgym", as in its server (4,639 games), or "agentgym-published", as in its published data (4,339
    games; indices from 1,396 on are lower by 300). Raises UsageError and UnknownTask.
    """
    if type(index) is not int:
        raise UsageError(f"an index of AgentGym must be a whole number, got {index!r:.80}")
    if numbering not in ("agentgym", "agentgym-published"):
        raise UsageError(f"numbering must be agentgym or agentgym-published, got {numbering!r:.80}")
    left = index
    for name in choose_kinds(numbering):
        count = len(table().kinds[name].goals)
        if 0 <= left < count:
            return f"sciworld/{name}/{left}"
        left -= count
    raise UnknownTask(
        f"there is no index {index} in AgentGym's numbering {numbering!r}; they go from 0 to {index - left - 1}"
    )


class SciTasks(TaskTable):
    """The tasks `sciworld/<name>/<variation>`. All ids can be looked up, and those of `kinds` are drawn.

    The splits are ScienceWorld's: the first half of a task's variations, the next quarter ("dev") and the rest. `dev`
    assigns the dev part to train or validation. All kinds are equally likely to be drawn, whatever their number of
    variations. `data` holds `task`, `variation`, `number`, `topic` and `simulator_split`.
    """

    def __init__(self, kinds: Sequence[str], dev: Dev = "train") -> None:
        """Take the names that `choose_kinds` returns."""
        rows = [task for name in kinds for task in _variations(name, dev)]
        super().__init__("sciworld", VERSION, rows)
        self._kinds, self._dev = tuple(kinds), dev
        self._grouped: dict[tuple[str | None, tuple[str, ...] | None], list[list[Task]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return sci_tasks, (self._kinds, self._dev)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all tasks and of the simulator."""
        rows = [asdict(task) for task in self.tasks]
        return canonical_hash([self.name, self.version, table().simulator, table().jar_sha256, rows])

    def get(self, task_id: str) -> Task:
        """Return the task of that id, even if its kind is not drawn from. Raises UnknownTask."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        if len(parts) != 3 or parts[0] != self.name or parts[1] not in table().kinds:
            return super().get(task_id)
        variations, variation = _variations(parts[1], self._dev), plain_number(parts[2])
        if not 0 <= variation < len(variations):
            most = len(variations) - 1
            raise UnknownTask(f"there is no task {task_id!r:.120}; {parts[1]} has the variations 0 to {most}")
        return variations[variation]

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """Draw a kind by one part of a hash of `key`, and a variation by the other."""
        candidates = self._by_group(split, groups)
        rest, index = divmod(scramble(key), len(candidates))
        return candidates[index][rest % len(candidates[index])]

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Return `count` variations in table order, spread over the kinds as evenly as their sizes allow."""
        candidates = self._select(split, groups)
        if count is None or count >= len(candidates):
            return super().sample(count, split=split, groups=groups, seed=seed)
        if count < 0:
            raise UsageError(f"the number of tasks must be at least 0, got {count}")
        rng = random.Random(seed)
        shuffled = [rng.sample(group, len(group)) for group in self._by_group(split, groups)]
        rng.shuffle(shuffled)
        ranked = [(rank, index, task) for index, group in enumerate(shuffled) for rank, task in enumerate(group)]
        chosen = {task.id for _, _, task in sorted(ranked, key=lambda row: row[:2])[:count]}
        return [task for task in candidates if task.id in chosen]

    def difficulty(self, task: Task) -> Difficulty | None:
        """Return the difficulty of the kind of task, the median over some of its variations."""
        return _difficulties().get(task.data["task"])

    def _by_group(self, split: str | None, groups: Sequence[str] | None) -> list[list[Task]]:
        candidates, key = self._select(split, groups), (split, in_order(self, groups))
        if key not in self._grouped:
            found: dict[str, list[Task]] = {}
            for task in candidates:
                found.setdefault(task.group, []).append(task)
            self._grouped[key] = list(found.values())
        return self._grouped[key]


def sci_tasks(kinds: tuple[str, ...], dev: Dev) -> SciTasks:
    """Return the tasks of these kinds, shared by environments with the same options.

    Raises UsageError for an invalid `dev`.
    """
    if dev not in DEVS:
        raise UsageError(f"dev must be one of {', '.join(DEVS)}, got {dev!r:.80}")
    return _shared(kinds, dev)


_shared = lru_cache(maxsize=64)(SciTasks)


@lru_cache(maxsize=1)
def _difficulties() -> Mapping[str, Difficulty]:
    return read_frozen(files("agentgym_envs.sciworld") / "difficulty.json")


@lru_cache(maxsize=64)
def _variations(name: str, dev: Dev) -> tuple[Task, ...]:
    kind = table().kinds[name]
    quarter = len(kind.goals) // 4
    splits: dict[str, Split] = {"train": "train", "dev": dev, "test": "test"}
    tasks = []
    for variation, goal in enumerate(kind.goals):
        part = "train" if variation < 2 * quarter else "dev" if variation < 3 * quarter else "test"
        data = {
            "task": name,
            "variation": variation,
            "number": kind.number,
            "topic": kind.topic,
            "simulator_split": part,
        }
        tasks.append(Task(f"sciworld/{name}/{variation}", splits[part], name, goal, data))
    return tuple(tasks)


def check_simulator() -> None:
    """Raise MissingExtra if the installed simulator is not the one that the tasks were made with."""
    try:
        installed = version("scienceworld")
    except PackageNotFoundError:
        installed = "unknown"
    if installed != table().simulator or _sha256(simulator_jar()) != table().jar_sha256:
        raise MissingExtra(
            f"SciWorld's tasks are those of scienceworld {table().simulator}, and {installed} is installed or its "
            "files were modified: its worlds may differ. Run: pip install --force-reinstall 'agentgym-envs[sciworld]', "
            "or pass any_simulator=True"
        )


@lru_cache(maxsize=4)
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
