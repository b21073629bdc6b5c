"""The table of all tasks in its versions, and its creation from templates and worlds."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from agentgym_envs.difficulty import read_frozen
from agentgym_envs.errors import UsageError
from agentgym_envs.task import Difficulty, Split, Task, TaskTable
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.sites.world import world as load_world
from agentgym_envs.webarena.tasks.parameters import call_by_name
from agentgym_envs.webarena.tasks.template import Params, Template, intent_of

VERSIONS = (1, 2)
"""The versions of the table. Each contains the tasks of the earlier ones."""
FROZEN = (1,)
"""Versions that never change again."""
WORLDS: dict[Split, tuple[int, ...]] = {"train": (1, 2, 3, 4), "validation": (11,), "test": (21, 22)}
"""The seeds of the worlds of each split."""
MODULES = (
    "shopping",
    "cms",
    "maps",
    "code",
    "forum",
    "multi_site",
    "encyclopedia",
    "cross_site",
    "collecting",
    "multi_site_starts",
    "tabs",
)
"""Packages and modules of this package with a list of templates (`TEMPLATES`)."""


class TaskLimits(NamedTuple):
    """The maximum numbers of tasks per template and world, by split. Held-out templates are in test only."""

    train: int
    validation: int
    test: int
    held_out: int

    def of(self, template: Template, split: Split) -> int:
        """Return the limit for a template in a split."""
        if template.held_out:
            return self.held_out if split == "test" else 0
        return {"train": self.train, "validation": self.validation, "test": self.test}[split]


_LIMITS = TaskLimits(train=8, validation=1, test=2, held_out=4)
_MORE = TaskLimits(train=30, validation=4, test=7, held_out=10)
"""The limits of version 2 for templates on several sites, and for hard ones that it adds."""
_START_PAGES = TaskLimits(train=12, validation=2, test=4, held_out=5)
"""The limits of templates that start on another page than a front page."""


class WebTasks(TaskTable):
    """The tasks of all templates."""

    def difficulty(self, task: Task) -> Difficulty | None:
        """Return the difficulty of a task's template, measured on one of its tasks."""
        return _difficulties().get(task.data["template"])


@cache
def _difficulties() -> Mapping[str, Difficulty]:
    found: dict[str, Difficulty] = {}
    for version in VERSIONS:
        found |= read_frozen(_data(f"difficulty{_suffix(version)}.json"))
    return found


@cache
def templates() -> dict[str, Template]:
    """Return all templates by name."""
    found: list[Template] = []
    for name in MODULES:
        found += import_module(f"{__package__}.{name}").TEMPLATES
    return {template.name: template for template in found}


@cache
def load(version: int = 1) -> TaskTable:
    """Return a version of the table. Raises UsageError for an unknown version."""
    if type(version) is not int or version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise UsageError(f"there is no version {version!r} of the table of web tasks; choose one of {known}")
    packs = (_data(file_name(one)).read_bytes() for one in VERSIONS if one <= version)
    rows = (json.loads(line) for pack in packs for line in gzip.decompress(pack).decode().splitlines())
    return WebTasks("webarena", version, [Task(**row) for row in rows])


def file_name(version: int) -> str:
    """Return the name of the file with the tasks that a version adds."""
    return f"tasks{_suffix(version)}.jsonl.gz"


def packed(version: int = 1) -> bytes:
    """Return the contents of a version's file, created again from the templates."""
    lines = (json.dumps(asdict(task), ensure_ascii=False, sort_keys=True) for task in made(version))
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def made(version: int = 1) -> Iterator[Task]:
    """Yield the tasks that a version adds, in the order of the table."""
    for template in templates().values():
        for split, seeds in WORLDS.items():
            for seed in seeds:
                yield from tasks_of(template, seed, split, version)


def tasks_of(template: Template, seed: int, split: Split, version: int = 1) -> Iterator[Task]:
    """Yield the tasks of a template in a world that a version adds."""
    begin, end = most_tasks(template, split, version - 1), most_tasks(template, split, version)
    if begin == end:
        return
    world = world_for(template, seed)
    instances = instances_of(template, world)
    for number, params in enumerate(instances[begin:end], begin + 1):
        data = {"template": template.name, "world": seed, "params": dict(params), "kind": template.kind}
        data |= {"sites": list(template.sites), "difficulty": template.difficulty, "held_out": template.held_out}
        goal = intent_of(template, number + seed, params)
        task_id = f"webarena/{template.name}/{seed}/{number}"
        yield Task(task_id, split, template.group, goal, {**data, **start_data(template, world, params)})


def world_for(template: Template, seed: int) -> World:
    """Return the world of a seed for a template: an ordinary one for those of version 1, a large one for others."""
    return load_world(seed, large=template.since > 1)


def start_data(template: Template, world: World, params: Params) -> dict[str, Any]:
    """Return `start`, the URL that an episode shows first, and `tabs`, the URLs of all tabs if there are several."""
    urls = template.start_urls(world, params)
    return {"start": urls[0]} if len(urls) == 1 else {"start": urls[0], "tabs": urls}


def most_tasks(template: Template, split: Split, version: int) -> int:
    """Return the maximum number of tasks of a template in one world of a split, in a version of the table."""
    if version < template.since:
        return 0
    if template.start is not None:
        return _START_PAGES.of(template, split)
    raised = len(template.sites) > 1 or (template.since == 2 and template.difficulty == "hard")
    return (_MORE if version == 2 and raised else _LIMITS).of(template, split)


def instances_of(template: Template, world: World) -> list[Params]:
    """Return the different instances of a template in a world, shuffled."""
    rng = random.Random(f"{template.name}/{world.seed}")
    made = call_by_name(template.instances, {"world": world, "rng": rng})
    found = {json.dumps(params, sort_keys=True): params for params in made}
    chosen = [found[key] for key in sorted(found)]
    rng.shuffle(chosen)
    return chosen


def _data(name: str) -> Traversable:
    return files(f"{__package__}.data") / name


def _suffix(version: int) -> str:
    return "" if version == 1 else f"-{version}"
