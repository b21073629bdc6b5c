"""SciWorld's tasks: the variations of ScienceWorld's thirty tasks, frozen in `tasks.json`; AgentGym's numberings."""

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

from agentgym_envs.errors import MissingExtra, UnknownTask, UsageError
from agentgym_envs.sciworld.java import simulator_jar
from agentgym_envs.task import Split, Task, TaskTable, canonical_hash, in_order, plain_number, scramble

VERSION = 1
Dev = Literal["train", "validation"]
DEVS: tuple[Dev, ...] = get_args(Dev)


class Kind(NamedTuple):
    """One of the thirty tasks. `goals` are those of its variations, in order."""

    number: str
    name: str
    topic: str
    goals: tuple[str, ...]


class Table(NamedTuple):
    """The whole of `tasks.json`."""

    simulator: str
    jar_sha256: str
    kinds: Mapping[str, Kind]


@lru_cache(maxsize=1)
def table() -> Table:
    """The table, read once a process."""
    found = json.loads((files("agentgym_envs.sciworld") / "tasks.json").read_text(encoding="utf-8"))
    kinds = [_kind(row) for row in found["tasks"]]
    return Table(found["simulator"], found["jar_sha256"], MappingProxyType({kind.name: kind for kind in kinds}))


def _kind(row: Mapping[str, Any]) -> Kind:
    goals = [row["goal"].format(*words) for words in row["blanks"]]
    return Kind(row["number"], row["name"], row["topic"], tuple(goals[place] for place in row["goal_of"]))


AGENTGYM_LEAVES_OUT = frozenset({"5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2"})
"""Tasks that AgentGym's server does not know."""
PUBLISHED_LEAVES_OUT = AGENTGYM_LEAVES_OUT | {"2-3"}
"""Those that AgentGym's published data were numbered without (its issue 49)."""
_LEFT_OUT: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "agentgym": AGENTGYM_LEAVES_OUT,
    "agentgym-published": PUBLISHED_LEAVES_OUT,
}


def choose_kinds(chosen: str | Sequence[str]) -> tuple[str, ...]:
    """The names of tasks, in ScienceWorld's order, for "all", a set of AgentGym's, or several names or numbers.

    Raises UsageError and UnknownTask.
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
    """What could have been meant by a name that is none, as a hint."""
    near = difflib.get_close_matches(name, (*_LEFT_OUT, *table().kinds), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{hint}There are {', '.join(map(repr, _LEFT_OUT))} and thirty tasks, which docs/sciworld.md lists"


def agentgym_task(index: int, numbering: str = "agentgym") -> str:
    """The id of the task that an index of AgentGym means.

    `numbering` is "agentgym", that of its server (4,639 games), or "agentgym-published", that of its published data
    (4,339 games; those from 1,396 on are 300 lower). Raises UsageError and UnknownTask.
    """
    if type(index) is not int:
        raise UsageError(f"an index of AgentGym is a whole number, got {index!r:.80}")
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
    """The tasks `sciworld/<name>/<variation>`: ids of all thirty are known, and those of `kinds` are drawn and taken.

    The splits are ScienceWorld's: half of a task's variations, a quarter and the rest, in their order. Its middle part
    ("dev") is train or validation, as `dev` says. Each task is drawn as often as any other, however many variations
    it has. `data` holds `task`, `variation`, `number`, `topic` and `simulator_split`.
    """

    def __init__(self, kinds: Sequence[str], dev: Dev = "train") -> None:
        """`kinds` are those of `choose_kinds`."""
        rows = [task for name in kinds for task in _variations(name, dev)]
        super().__init__("sciworld", VERSION, rows)
        self._kinds, self._dev = tuple(kinds), dev
        self._grouped: dict[tuple[str | None, tuple[str, ...] | None], list[list[Task]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return sci_tasks, (self._kinds, self._dev)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of every task and of the simulator whose worlds they are."""
        rows = [asdict(task) for task in self.tasks]
        return canonical_hash([self.name, self.version, table().simulator, table().jar_sha256, rows])

    def get(self, task_id: str) -> Task:
        """See `TaskTable.get`; tasks that are not drawn from are there, too."""
        parts = task_id.split("/") if isinstance(task_id, str) else []
        if len(parts) != 3 or parts[0] != self.name or parts[1] not in table().kinds:
            return super().get(task_id)
        variations, place = _variations(parts[1], self._dev), plain_number(parts[2])
        if not 0 <= place < len(variations):
            most = len(variations) - 1
            raise UnknownTask(f"there is no task {task_id!r:.120}; {parts[1]} has the variations 0 to {most}")
        return variations[place]

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """A task by one part of a hash of `key`, a variation by the other."""
        candidates = self._by_group(split, groups)
        rest, place = divmod(scramble(key), len(candidates))
        return candidates[place][rest % len(candidates[place])]

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """`count` variations, as evenly from the tasks as their numbers allow, in table order."""
        candidates = self._select(split, groups)
        if count is None or count >= len(candidates):
            return super().sample(count, split=split, groups=groups, seed=seed)
        if count < 0:
            raise UsageError(f"a number of tasks is at least 0, got {count}")
        rng = random.Random(seed)
        shuffled = [rng.sample(group, len(group)) for group in self._by_group(split, groups)]
        rng.shuffle(shuffled)
        ranked = [(rank, place, task) for place, group in enumerate(shuffled) for rank, task in enumerate(group)]
        chosen = {task.id for _, _, task in sorted(ranked, key=lambda row: row[:2])[:count]}
        return [task for task in candidates if task.id in chosen]

    def _by_group(self, split: str | None, groups: Sequence[str] | None) -> list[list[Task]]:
        candidates, key = self._select(split, groups), (split, in_order(self, groups))
        if key not in self._grouped:
            found: dict[str, list[Task]] = {}
            for task in candidates:
                found.setdefault(task.group, []).append(task)
            self._grouped[key] = list(found.values())
        return self._grouped[key]


def sci_tasks(kinds: tuple[str, ...], dev: Dev) -> SciTasks:
    """The tasks of these kinds; environments of the same options share them. Raises UsageError for another `dev`."""
    if dev not in DEVS:
        raise UsageError(f"dev must be one of {', '.join(DEVS)}, got {dev!r:.80}")
    return _shared(kinds, dev)


_shared = lru_cache(maxsize=64)(SciTasks)


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
    """Raise MissingExtra if another simulator is installed than the one whose tasks these are."""
    try:
        installed = version("scienceworld")
    except PackageNotFoundError:
        installed = "unknown"
    if installed != table().simulator or _sha256(simulator_jar()) != table().jar_sha256:
        raise MissingExtra(
            f"SciWorld's tasks are those of scienceworld {table().simulator}, and {installed} is installed, or one "
            "that was changed: its worlds may be others. Run: pip install --force-reinstall 'agentgym-envs[sciworld]', "
            "or pass any_simulator=True"
        )


@lru_cache(maxsize=4)
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
