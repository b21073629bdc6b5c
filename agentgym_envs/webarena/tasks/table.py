"""The table of all tasks: made once from templates and worlds, frozen, and read from the package ever after."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.resources import files

from agentgym_envs.task import Split, Task, TaskTable
from agentgym_envs.webarena.sites.world import World, world
from agentgym_envs.webarena.tasks.template import Params, Template, intent_of

VERSION = 1
WORLDS: dict[Split, tuple[int, ...]] = {"train": (1, 2, 3, 4), "validation": (11,), "test": (21, 22)}
"""The seeds of the worlds that the tasks of each split play in."""
MOST: dict[Split, int] = {"train": 8, "validation": 1, "test": 2}
"""How many tasks of a template there are in one world, at most."""
MOST_HELD_OUT = 4
"""The same for templates that are kept for tests."""
MODULES = ("shopping", "cms", "maps", "code", "forum", "multi_site")
"""The packages and modules beside this one that list templates (`TEMPLATES`)."""
_FILE = "tasks.jsonl.gz"


@cache
def templates() -> dict[str, Template]:
    """All templates by their names."""
    found: list[Template] = []
    for name in MODULES:
        found += import_module(f"{__package__}.{name}").TEMPLATES
    return {template.name: template for template in found}


@cache
def load() -> TaskTable:
    """The frozen table."""
    packed = files(f"{__package__}.data").joinpath(_FILE).read_bytes()
    rows = map(json.loads, gzip.decompress(packed).decode().splitlines())
    return TaskTable("webarena", VERSION, [Task(**row) for row in rows])


def packed() -> bytes:
    """The file that `load` reads, made anew."""
    lines = (json.dumps(asdict(task), ensure_ascii=False, sort_keys=True) for task in made())
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def made() -> Iterator[Task]:
    """The tasks of all templates in all worlds, in the order of the table."""
    for template in templates().values():
        for split, seeds in WORLDS.items():
            for seed in seeds:
                yield from tasks_of(template, world(seed), split)


def tasks_of(template: Template, place: World, split: Split) -> Iterator[Task]:
    """The tasks of a template in a world, as many as its split has."""
    if template.held_out and split != "test":
        return
    most = MOST_HELD_OUT if template.held_out else MOST[split]
    for number, params in enumerate(instances_of(template, place)[:most], 1):
        data = {"template": template.name, "world": place.seed, "params": dict(params), "kind": template.kind}
        data |= {"sites": list(template.sites), "difficulty": template.difficulty, "held_out": template.held_out}
        goal = intent_of(template, number + place.seed, params)
        task_id = f"webarena/{template.name}/{place.seed}/{number}"
        yield Task(task_id, split, template.group, goal, {**data, "start": template.start(params)})


def instances_of(template: Template, place: World) -> list[Params]:
    """The instances of a template in a world, shuffled, each once."""
    rng = random.Random(f"{template.name}/{place.seed}")
    found = {json.dumps(params, sort_keys=True): params for params in template.instances(place, rng)}
    chosen = [found[key] for key in sorted(found)]
    rng.shuffle(chosen)
    return chosen
