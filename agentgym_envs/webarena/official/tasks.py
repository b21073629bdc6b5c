"""The 812 tasks of WebArena, read from its own file or from webarena-verified's; this package includes neither."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TaskTableError, UsageError, missing_extra
from agentgym_envs.task import SPLITS, Split, Task, TaskTable, scramble
from agentgym_envs.webarena.evaluators.verified import UNSOLVABLE
from agentgym_envs.webarena.official.sites import placeholders

VERSION = 1
GROUPS = ("shopping", "cms", "maps", "gitlab-reddit")
"""The groups of the AgentGym-RL paper, by the site on which a task begins."""
GROUP_OF = {"shopping": "shopping", "shopping_admin": "cms", "map": "maps", "gitlab": GROUPS[3], "reddit": GROUPS[3]}
NOT_ACHIEVABLE = "N/A"
"""The reference answer of tasks that cannot be done."""
VARIABLE = "AGENTGYM_WEBARENA_TASKS"
"""The environment variable for the path of a task file."""
SOURCES = {
    "original": (("webarena_verified", "assets/dataset/test.raw.json"), ("webarena", "test.raw.json")),
    "verified": (("webarena_verified", "assets/dataset/webarena-verified.json"),),
}
"""The paths of the files in the packages `webarena-verified` and `libwebarena`."""


class WebArenaTasks(TaskTable):
    """A table in which some tasks are neither sampled nor counted, but available by id."""

    def __init__(self, table: TaskTable, left_out: Mapping[str, str]) -> None:
        """`left_out` maps ids to reasons, such as "needs the address of 'map': set WA_MAP"."""
        super().__init__(table.name, table.version, table.tasks)
        self._left_out = left_out

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups with tasks to sample, in the paper's order."""
        present = {task.group for task in self.tasks if task.id not in self._left_out}
        return tuple(group for group in GROUPS if group in present)

    def counts(self) -> dict[str, dict[Split, int]]:
        """The number of tasks by group and split, as in `TaskSet.counts`."""
        found = Counter((task.group, task.split) for task in self.tasks if task.id not in self._left_out)
        return {group: {split: found[group, split] for split in SPLITS} for group in self.groups}

    def check_groups(self, groups: object) -> None:
        """Raise UsageError if all tasks of a group are left out."""
        named = groups if isinstance(groups, list | tuple) else ()
        closed = [group for group in dict.fromkeys(task.group for task in self.tasks) if group not in self.groups]
        for group in closed:
            if group in named:
                raise self._refusal(f"group {group!r}", [task for task in self.tasks if task.group == group])

    def _select(self, split: str | None, groups: Sequence[str] | None) -> list[Task]:
        self.check_groups(groups)
        return super()._select(split, groups)

    def _filter(self, split: str | None, groups: tuple[str, ...] | None) -> list[Task]:
        tasks = super()._filter(split, groups)
        if not (found := [task for task in tasks if task.id not in self._left_out]):
            where = "" if groups is None else f" and group {' or '.join(map(repr, groups))}"
            raise self._refusal(f"split {split!r}{where}", tasks)
        return found

    def _refusal(self, selection: str, tasks: Sequence[Task]) -> UsageError:
        """An error with the most frequent reason why the tasks are left out."""
        why, _ = Counter(self._left_out[task.id] for task in tasks).most_common(1)[0]
        example = next(task.id for task in tasks if self._left_out[task.id] == why)
        return UsageError(
            f"no task of {selection} can be played with this configuration; {example!r}, for example, {why}"
        )


def open_tasks(source: str | os.PathLike[str] | None = None) -> TaskTable:
    """Open the tasks of "original" (the default), "verified", or a file in either format.

    Without a source, the environment variable AGENTGYM_WEBARENA_TASKS may name a file. Both formats have the same task
    numbers and splits. Raises MissingExtra if no package with the file is installed, TaskTableError for a bad file.
    """
    source = source or os.environ.get(VARIABLE) or "original"
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"tasks are {' or '.join(map(repr, SOURCES))} or a file, got {source!r:.80}")
    path = find_tasks(source) if isinstance(source, str) and source in SOURCES else Path(source)
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise UsageError(f"the task file {os.fspath(path)!r} cannot be read: {error}") from None


def find_tasks(source: str) -> Path:
    """Find the file in an installed package, without importing the package. Raises MissingExtra."""
    for package, inside in SOURCES[source]:
        found = importlib.util.find_spec(package)
        for folder in (found and found.submodule_search_locations) or ():
            if (path := Path(folder) / inside).is_file():
                return path
    raise missing_extra(
        f"Reading WebArena's tasks ({source}) without a file (tasks=PATH or {VARIABLE})",
        "webarena-verified",
        "webarena-verified",
    )


def read_tasks(path: Path) -> TaskTable:
    """Read a JSON list of tasks in WebArena's format or webarena-verified's. Raises TaskTableError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TaskTableError(f"{path} is not JSON: {error}") from None
    if not isinstance(rows, list):
        raise TaskTableError(f"{path} is not a list of tasks")
    tasks = [_task(row, f"{path}, task {number}") for number, row in enumerate(rows)]
    name = "webarena-verified" if any(is_verified(task) for task in tasks) else "webarena"
    try:
        return TaskTable(name, VERSION, tasks)
    except TaskTableError as error:
        raise TaskTableError(f"{path} contains no playable tasks: {error}") from None


@lru_cache(maxsize=8)  # a server makes an environment per session
def _read(path: Path, changed: int) -> TaskTable:
    return read_tasks(path)


def is_verified(task: Task) -> bool:
    """Return True for a task of webarena-verified, which that package scores."""
    return isinstance(task.data["eval"], list)


def needs_judge(task: Task) -> bool:
    """Return True if scoring the task's answer may need a language model."""
    return not is_verified(task) and "fuzzy_match" in (task.data["eval"].get("reference_answers") or {})


def is_unsolvable(task: Task) -> bool:
    """Return True if a task always scores 0."""
    return is_verified(task) and int(task.id.rpartition("/")[2]) in UNSOLVABLE


def needed_sites(task: Task) -> list[str]:
    """The sites that are needed to play and score a task."""
    needs: list[str] = task.data["needs"]
    return needs


def split_of(template: int) -> Split:
    """The split of all tasks from one intent template: 60 % train, 10 % validation, 30 % test.

    So no test task is a training task with other names in it.
    """
    number = scramble(template) % 10
    return "train" if number < 6 else "validation" if number < 7 else "test"


def _task(row: Any, where: str) -> Task:
    try:
        template, urls = int(row["intent_template_id"]), _start_urls(row)
        data: dict[str, Any] = {
            "sites": list(row["sites"]),
            "start_urls": urls,
            "template": template,
            "eval": _evaluation(row["eval"]),
        }
        data["needs"] = list(dict.fromkeys([*data["sites"], *placeholders(json.dumps(data))]))
        group = GROUP_OF[placeholders(urls[0])[0]]
        return Task(f"webarena/{int(row['task_id'])}", split_of(template), group, str(row["intent"]), data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TaskTableError(f"{where} is not in WebArena's form: {type(error).__name__}: {error}") from None


def _start_urls(row: Mapping[str, Any]) -> list[str]:
    urls = list(row["start_urls"]) if "start_urls" in row else row["start_url"].split(" |AND| ")
    if outside := [url for url in urls if not url.startswith("__") or not placeholders(url)]:
        raise ValueError(f"it begins outside of the sites: {outside[0]!r}")
    return urls


def _evaluation(config: Any) -> Mapping[str, Any] | Sequence[Any]:
    missing = "evaluator" not in config[0] if isinstance(config, list) else "eval_types" not in config
    if missing:
        raise ValueError("its 'eval' names no evaluators")
    found: Mapping[str, Any] | Sequence[Any] = config
    return found
