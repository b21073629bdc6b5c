"""The frozen table of all tasks, and its creation from templates and worlds."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.resources import files

from agentgym_envs.difficulty import read_frozen
from agentgym_envs.task import Difficulty, Split, Task, TaskTable
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.sites.world import world as load_world
from agentgym_envs.webarena.tasks.parameters import call_by_name
from agentgym_envs.webarena.tasks.template import Params, Template, intent_of

VERSION = 1
WORLDS: dict[Split, tuple[int, ...]] = {"train": (1, 2, 3, 4), "validation": (11,), "test": (21, 22)}
"""The seeds of the worlds of each split."""
MOST: dict[Split, int] = {"train": 8, "validation": 1, "test": 2}
"""The maximum number of tasks per template and world."""
MOST_HELD_OUT = 4
"""The same for held-out templates."""
MODULES = ("shopping", "cms", "maps", "code", "forum", "multi_site")
"""Packages and modules of this package with a list of templates (`TEMPLATES`)."""
_FILE = "tasks.jsonl.gz"


class WebTasks(TaskTable):
    """The tasks of all templates."""

    def difficulty(self, task: Task) -> Difficulty | None:
        """Return the difficulty of a task's template, measured on one of its tasks."""
        return _difficulties().get(task.data["template"])


@cache
def _difficulties() -> Mapping[str, Difficulty]:
    return read_frozen(files(f"{__package__}.data") / "difficulty.json")


@cache
def templates() -> dict[str, Template]:
    """Return all templates by name."""
    found: list[Template] = []
    for name in MODULES:
        found += import_module(f"{__package__}.{name}").TEMPLATES
    return {template.name: template for template in found}


@cache
def load() -> TaskTable:
    """Return the frozen table."""
    packed = files(f"{__package__}.data").joinpath(_FILE).read_bytes()
    rows = map(json.loads, gzip.decompress(packed).decode().splitlines())
    return WebTasks("webarena", VERSION, [Task(**row) for row in rows])


def packed() -> bytes:
    """Return the contents of the table's file, created again from the templates."""
    lines = (json.dumps(asdict(task), ensure_ascii=False, sort_keys=True) for task in made())
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def made() -> Iterator[Task]:
    """Yield the tasks of all templates in all worlds, in the order of the table."""
    for template in templates().values():
        for split, seeds in WORLDS.items():
            for seed in seeds:
                yield from tasks_of(template, load_world(seed), split)


def tasks_of(template: Template, world: World, split: Split) -> Iterator[Task]:
    """Yield the tasks of a template in a world, up to the maximum of its split."""
    if template.held_out and split != "test":
        return
    most = MOST_HELD_OUT if template.held_out else MOST[split]
    for number, params in enumerate(instances_of(template, world)[:most], 1):
        data = {"template": template.name, "world": world.seed, "params": dict(params), "kind": template.kind}
        data |= {"sites": list(template.sites), "difficulty": template.difficulty, "held_out": template.held_out}
        goal = intent_of(template, number + world.seed, params)
        task_id = f"webarena/{template.name}/{world.seed}/{number}"
        yield Task(task_id, split, template.group, goal, {**data, "start": template.start(params)})


def instances_of(template: Template, world: World) -> list[Params]:
    """Return the different instances of a template in a world, shuffled."""
    rng = random.Random(f"{template.name}/{world.seed}")
    made = call_by_name(template.instances, {"world": world, "rng": rng})
    found = {json.dumps(params, sort_keys=True): params for params in made}
    chosen = [found[key] for key in sorted(found)]
    rng.shuffle(chosen)
    return chosen
