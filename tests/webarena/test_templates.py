"""Every task template: its instances are valid, its oracle solves them, and mistakes do not."""

from __future__ import annotations

import gzip
import inspect
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.resources import files
from typing import Any

import pytest

from agentgym_envs.errors import UsageError
from agentgym_envs.task import Task
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.evaluators.state import OnlyChanged
from agentgym_envs.webarena.sites.framework.site import HOSTS, ORIGINS
from agentgym_envs.webarena.sites.world import UNSCORED_TABLES
from agentgym_envs.webarena.tasks import table
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.scoring import start_urls
from agentgym_envs.webarena.tasks.steps import Given, Step
from agentgym_envs.webarena.tasks.table import FROZEN, VERSIONS, WORLDS, instances_of, load, templates, world_for
from agentgym_envs.webarena.tasks.template import GROUPS, Params, Template, evaluators_of
from tests.plugins.rotation import part
from tests.webarena.embedded import bench, follow, play, sibling, tasks_for_tests

NAMES = sorted(templates())
SAMPLE = random.Random(9).sample(NAMES, 4)
SPLIT_OF = {seed: split for split, seeds in WORLDS.items() for seed in seeds}
MOST_ACTIONS = {1: 15, 2: 25}
"""By the version with which a template appears."""
_FIELD = re.compile(r"\{(\w+)")


def _marked(names: list[str], few: int = len(SAMPLE)) -> list[Any]:
    """Mark a few templates as fast, a few as slow, and the rest as rotating."""
    slow, rotating = pytest.mark.slow, pytest.mark.rotating
    marks = {name: [slow] * (name not in SAMPLE[:few]) for name in SAMPLE}
    return [pytest.param(name, marks=marks.get(name, [slow, rotating])) for name in names]


def test_there_are_enough_templates_of_every_kind() -> None:
    every = templates().values()
    assert len(every) >= 120
    assert Counter(site for one in every for site in one.sites[:1]).keys() == HOSTS.keys()
    assert sum(len(one.sites) > 1 for one in every) >= 6
    assert {one.group for one in every} == set(GROUPS)
    kinds = Counter(one.kind for one in every)
    assert min(kinds[kind] for kind in ("information", "navigation", "change")) >= len(every) // 10
    levels = Counter(one.difficulty for one in every)
    assert min(levels[level] for level in ("easy", "medium", "hard")) >= len(every) // 8
    assert sum(one.held_out for one in every) >= 15


def test_every_template_has_several_wordings_with_the_same_parameters() -> None:
    for name, template in templates().items():
        assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", name), name
        assert len(set(template.intents)) >= 3, name
        fields = {frozenset(_FIELD.findall(intent)) for intent in template.intents}
        assert len(fields) == 1, f"{name}: each wording names all parameters"


def test_functions_and_steps_name_only_known_parameters() -> None:
    """Lambdas are checked by no type checker, and most templates are played in few runs."""
    for name, template in templates().items():
        params = {*template.named, "params"}
        every = {*params, "world", *_hidden(template)}
        for function, known in [(template.instances, {"world", "rng"}), (template.expected, every)]:
            assert _needed(function) <= known, name
        for solution in (template.solution, template.mistake):
            if callable(solution):
                assert _needed(solution) <= {*params, "page"}, name
            for step in solution if isinstance(solution, Sequence) else [solution]:
                for argument in _arguments(step):
                    if isinstance(argument, Given):
                        assert _needed(argument.function) <= {*params, "page", "found"}, name
                    elif isinstance(argument, str):
                        assert set(_FIELD.findall(argument)) <= params, name


def _hidden(template: Template) -> set[str]:
    """Return the parameters that only select the start page."""
    start = template.start
    return set() if start is None else {*inspect.signature(start).parameters} - {*template.named, "world"}


def _needed(function: Callable[..., Any]) -> set[str]:
    """Return the parameters without a default."""
    return {one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty}


def _arguments(step: Any) -> list[Any]:
    given = [*step.arguments, *step.options.values()] if isinstance(step, Step) else [getattr(step, "value", None)]
    return [part for one in given for part in (one.values() if isinstance(one, dict) else [one])]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", _marked(NAMES))
@pytest.mark.parametrize("seed", [1, 21])
def test_instances_have_exactly_the_parameters_of_the_intent(name: str, seed: int) -> None:
    template = templates()[name]
    world = world_for(template, seed)
    instances = instances_of(template, world)
    assert instances, "this world has no instance"
    assert instances == instances_of(template, world)
    for params in instances[:50]:
        assert json.loads(json.dumps(params)) == params
        assert template.named <= set(params) <= template.named | _hidden(template)
        for url in template.start_urls(world, params):
            assert url.startswith(tuple(f"{origin}/" for origin in ORIGINS.values()))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_is_large_enough_and_splits_share_no_world(version: int) -> None:
    tasks = load(version)
    sizes = Counter(task.split for task in tasks)
    assert sizes["train"] >= 5_000 and sizes["test"] >= 500 and sizes["validation"] >= 100
    worlds: dict[str, set[int]] = {}
    for task in tasks:
        worlds.setdefault(task.split, set()).add(task.data["world"])
        assert not (task.data["held_out"] and task.split != "test")
    assert worlds == {split: set(seeds) for split, seeds in WORLDS.items()}
    assert sum(task.data["held_out"] for task in tasks) >= 100


DIGESTS = {1: "e81b7c3dbc9d26c88d6fd1656b9752d2e381bcfe19867d7127b212a3e9238b3e"}


@pytest.mark.slow
def test_frozen_versions_keep_their_digests_and_later_ones_contain_them() -> None:
    assert {version: load(version).digest for version in FROZEN} == DIGESTS
    for version in VERSIONS[1:]:
        before, now = list(load(version - 1)), list(load(version))
        assert now[: len(before)] == before and len(now) > len(before)
        assert load(version).digest != load(version - 1).digest


def test_enough_tasks_of_version_2_need_several_sites() -> None:
    splits = Counter(task.split for task in load(2))
    several = Counter(task.split for task in load(2) if len(task.data["sites"]) > 1)
    assert all(several[split] >= 0.06 * size for split, size in splits.items()), several
    assert any("encyclopedia" in task.data["sites"] for task in load(2))
    assert not any("encyclopedia" in task.data["sites"] for task in load(1))


def test_enough_tasks_of_version_2_are_long() -> None:
    """The oracle needs 10 to 25 actions for one in seven of all tasks, and for one in four of those that it adds."""
    older = {task.id for task in load(1)}
    tasks = load(2)
    measured = [(task, tasks.difficulty(task)) for task in tasks]
    long = [task for task, difficulty in measured if difficulty is not None and 10 <= difficulty.turns <= 25]
    assert len(long) >= 0.15 * len(tasks)
    assert sum(task.id not in older for task in long) >= 0.2 * (len(tasks) - len(older))


@pytest.mark.parametrize("version", [0, 3, True, "1"])
def test_unknown_versions_of_the_table_are_refused(version: Any) -> None:
    with pytest.raises(UsageError, match="choose one of 1, 2"):
        load(version)


@pytest.mark.slow
def test_templates_and_worlds_reproduce_the_tasks_of_the_table() -> None:
    """Each run covers a third of the templates in a world."""
    frozen = load(VERSIONS[-1])
    for seed, third in part([(seed, third) for seed in SPLIT_OF for third in range(3)], "worlds of the web tasks"):
        names = {*list(templates())[third::3]}
        made = [
            task
            for version in VERSIONS
            for name in names
            for task in table.tasks_of(templates()[name], seed, SPLIT_OF[seed], version)
        ]
        known = [task for task in frozen if task.data["world"] == seed and task.data["template"] in names]
        assert {task.id: task for task in made} == {task.id: task for task in known}, f"world {seed}, third {third}"
        assert len(made) == len(known)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_file_of_a_version_contains_the_tasks_that_it_adds(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the templates, splits, worlds and numbers. The test above creates the tasks themselves."""
    added: dict[tuple[str, int, str, int], list[Task]] = {}
    for task in list(load(version))[len(load(version - 1)) if version > 1 else 0 :]:
        added.setdefault((task.data["template"], task.data["world"], task.split, version), []).append(task)

    def tasks_of(template: Template, *rest: Any) -> list[Task]:
        return added.pop((template.name, *rest), [])

    monkeypatch.setattr(table, "tasks_of", tasks_of)
    file = files("agentgym_envs.webarena.tasks.data") / table.file_name(version)
    assert gzip.decompress(file.read_bytes()) == gzip.decompress(table.packed(version))
    assert not added


@pytest.mark.parametrize("name", _marked(NAMES))
def test_evaluators_reject_other_changes_and_an_idle_agent(name: str) -> None:
    template = templates()[name]
    first_world = world_for(template, 1)
    scored = evaluators_of(template, first_world, instances_of(template, first_world)[0])
    (state,) = [one for one in scored if isinstance(one, OnlyChanged)]
    assert set(UNSCORED_TABLES) <= set(state.free)
    assert bool(state.expected) <= (template.kind == "change")
    assert len(scored) > 1 or state.expected, "an idle agent would score"


@pytest.mark.parametrize("name", _marked(NAMES, few=0))
def test_the_oracle_solves_the_task_and_mistakes_do_not(name: str) -> None:
    template = templates()[name]
    (task,) = tasks_for_tests(template, (1, 21)[len(name) % 2], 1)
    with closing(bench([task])) as env:  # a hundred open windows would slow each other down
        score, done = play(env, task, lambda page: _judged_before(env, template.oracle(page, task.data["params"])))
        assert score == 1.0, (task.goal, done)
        assert len(done) <= MOST_ACTIONS[template.since], done
        assert _wrong(env, task, template) == 0.0, "a mistake scored"
        if name in SAMPLE:
            assert _with_side_effect(env, task, template) == 0.0, "a side effect scored"


def _judged_before(env: Any, commands: Iterator[str]) -> Iterator[str]:
    """Judge the episode before its first command, as if the agent stopped, then yield the commands."""
    assert [tab.url for tab in env.session.tabs] == start_urls(env.task), "a start page leads to another one"
    assert env.session.tab is env.session.tabs[0]
    assert loop.run(env._judge(env.session, env.task, "")).score == 0.0, "an idle agent scored"
    yield from commands


def _wrong(env: Any, task: Task, template: Template) -> float:
    """Return the score of a mistake: the template's own, or the solution of another instance."""
    if template.wrong(PageReader(), task.data["params"]) is not None:
        return play(env, task, lambda page: template.wrong(page, task.data["params"]))[0]
    other = sibling(template, task)
    assert other is not None, "there is no other instance: write `wrong`"
    return play(env, task, lambda page: _elsewhere(page, template, task, other))[0]


def _elsewhere(page: PageReader, template: Template, task: Task, other: Params) -> Iterator[str]:
    """Yield the solution of another instance; one with a start page of its own is played there."""
    first = template.start_urls(world_for(template, task.data["world"]), other)[0]
    if first != task.data["start"]:
        yield page.goto(first)
    yield from template.oracle(page, other)


def _with_side_effect(env: Any, task: Task, template: Template) -> float:
    """Return the score of an oracle that also changes a setting of the shop."""

    def commands(page: PageReader) -> Iterator[str]:
        episode = env.session.state["episode"]
        with episode.lock:
            episode.database.execute("UPDATE shop_settings SET value = value || '!' WHERE id = 1")
        yield from template.oracle(page, task.data["params"])

    return play(env, task, commands)[0]


@pytest.mark.slow
def test_the_oracle_solves_frozen_tasks() -> None:
    """Each run covers a few tasks of all splits, with the environment's own oracle."""
    from agentgym_envs.webarena.env import WebArenaEnv

    env = WebArenaEnv(split=None)
    for task in part(load().sample(16, seed=3), "frozen web tasks"):
        env.reset(options={"task": task.id})
        for command in env.oracle():
            *_, info = env.step(command)
        assert info["success"], (task.id, task.goal, info)
    env.close()


@pytest.mark.rotating
@pytest.mark.slow
def test_concurrent_episodes_do_not_affect_each_other() -> None:
    changes = [templates()[name] for name in NAMES if templates()[name].kind == "change"]
    pairs = [(one, tasks_for_tests(one, 1, 1)[0]) for one in random.Random(4).sample(changes, 3)]

    def solve(pair: tuple[Template, Task]) -> float:
        template, task = pair
        env = bench([task])
        try:
            return follow(env, task, template)[0]
        finally:
            env.close()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(solve, pairs + pairs)) == [1.0] * 6
