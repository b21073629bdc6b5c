"""Checks of what an environment declares: its registration, its packages and its tasks."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.registration import entry_point_of
from agentgym_envs.task import SPLITS, TaskSet
from agentgym_envs.validate.findings import EPISODE_SECONDS, Finding, NotApplicable
from agentgym_envs.validate.subject import ValidationSubject

_VERSIONED = re.compile(r"-v\d+$")
_BOUNDED = re.compile(r"[<>=~@]")
_FOR_DEVELOPERS = re.compile(r"""extra == ['"](dev|docs|tests?)['"]""")
_PROBE_KEYS = 50
_MANY, _FEW = 300, 5
"""Tasks of a group above which they are not counted, and the number of those that are made instead."""


def manifest(subject: ValidationSubject) -> Finding:
    """The environment describes itself: docstring, render modes, JSON arguments and, for a model, instructions."""
    problems = []
    with subject.fresh() as env:
        base = env.unwrapped
        if inspect.getdoc(type(base)) in (None, *map(inspect.getdoc, (gym.Env, TextEnv))):
            problems.append(f"the class {type(base).__name__} has no docstring")
        modes = base.metadata.get("render_modes", [])
        if not isinstance(modes, list | tuple) or not all(isinstance(mode, str) for mode in modes):
            problems.append(f"metadata['render_modes'] is not a list of names: {modes!r}")
        if isinstance(base, TextEnv) and not base.instructions.strip():
            problems.append("a model would not know the commands: `instructions` is empty, so fill `rules`")
    try:
        json.dumps(subject.kwargs)
    except TypeError as error:
        problems.append(f"the arguments are not JSON, so no record can hold them: {error}")
    return Finding(problems, {"class": f"{type(base).__module__}:{type(base).__qualname__}"})


def resource_declaration(subject: ValidationSubject) -> Finding:
    """The class declares its needs (`heavy`, `blocking`, ...) as booleans, and remote options of its constructor."""
    with subject.fresh() as env:
        base = text_env(env)
    declared = {name: getattr(base, name) for name in ("blocking", "heavy", "slow_oracle", "native_async")}
    problems = [
        f"{name} is {value!r}, not True or False" for name, value in declared.items() if type(value) is not bool
    ]
    known = _parameters(type(base))
    unknown = sorted(set(base.remote_options) - known) if known else []
    problems += [f"remote_options names {name!r}, which the constructor does not have" for name in unknown]
    return Finding(problems, declared)


def _parameters(kind: type[Any]) -> set[str]:
    """The names of a constructor's arguments, through `**options` of its base classes; empty if they are open."""
    found: set[str] = set()
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        found |= {one.name for one in parameters}
        if all(one.kind is not one.VAR_KEYWORD for one in parameters):
            return found
    return set()


def timeout_ceiling(subject: ValidationSubject) -> Finding:
    """No episode takes longer than an hour."""
    slowest = max((episode.seconds for episode in subject.known_episodes), default=0.0)
    problems = [f"an episode took {slowest:.0f} s"] if slowest > EPISODE_SECONDS else []
    return Finding(problems, {"longest_episode_s": round(slowest, 3), "bound_s": EPISODE_SECONDS})


def dependency_pinning(subject: ValidationSubject) -> Finding:
    """Every requirement of the environment's distribution has a version bound."""
    found = _distribution(subject.kind)
    if found is None:
        raise NotApplicable(f"the module {subject.kind.__module__} belongs to no installed distribution")
    own = found.name
    required = [text.partition(";")[0].strip() for text in found.requires or [] if not _FOR_DEVELOPERS.search(text)]
    others = [text for text in required if not text.lower().startswith(f"{own.lower()}[")]
    problems = [f"{text} has no version bound" for text in others if not _BOUNDED.search(text)]
    return Finding(problems, {"distribution": f"{own} {found.version}", "requirements": len(others)})


def _distribution(kind: type[Any]) -> importlib.metadata.Distribution | None:
    """The distribution of a class, found by the name of its package or by the folder of its files."""
    package = kind.__module__.partition(".")[0]
    try:
        return importlib.metadata.distribution(package)  # most have the name of their package, and a search is slow
    except importlib.metadata.PackageNotFoundError:
        file = Path(inspect.getfile(kind)).resolve()
    for name in importlib.metadata.packages_distributions().get(package, ()):
        found = importlib.metadata.distribution(name)
        if file.is_relative_to(Path(str(found.locate_file(""))).resolve()):
            return found
    return None


def task_distribution_pinning(subject: ValidationSubject) -> Finding:
    """The tasks have a name, a version and a digest, and a number always draws the same task."""
    with subject.fresh() as env, subject.fresh() as other:
        tasks, again = text_env(env).tasks, text_env(other).tasks
        problems = []
        if not tasks.name or type(tasks.version) is not int or tasks.version < 1:
            problems.append(f"the task set has the name {tasks.name!r} and the version {tasks.version!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", tasks.digest) or tasks.digest != again.digest:
            problems.append(f"the digest is no stable SHA-256: {tasks.digest!r} and {again.digest!r}")
        keys = range(_PROBE_KEYS)
        if [tasks.draw(key) for key in keys] != [again.draw(key) for key in keys]:
            problems.append("`draw` gives different tasks for the same number")
    return Finding(problems, {"name": tasks.name, "version": tasks.version, "digest": tasks.digest})


def task_declaration_accuracy(subject: ValidationSubject) -> Finding:
    """The groups, splits and counts that the task set declares are those of its tasks."""
    with subject.fresh() as env:
        tasks, problems = text_env(env).tasks, list[str]()
        for key in range(_PROBE_KEYS):
            task = tasks.draw(key)
            if task.group not in tasks.groups or tasks.get(task.id) != task:
                problems.append(f"{task.id} is drawn, but `groups` or `get` do not have it so")
        counts = tasks.counts()
        cells = [(g, split, count) for g, splits in (counts or {}).items() for split, count in splits.items()]
        seen = list(subject.within(cells, at_least=len(SPLITS)))
        for group, split, count in seen:
            if (found := _count(tasks, split, group, count)) != count:
                problems.append(f"{group}, {split}: {count} tasks are declared, and there are {found}")
    total = None if counts is None else sum(count for *_, count in cells)
    return Finding(problems, {"groups": len(tasks.groups), "tasks": total, "counted_cells": len(seen)})


def _count(tasks: TaskSet, split: str, group: str, declared: int) -> int:
    """The number of tasks of a split and group. Of many, only a sample is made, and the number is that declared."""
    try:
        found = tasks.sample(_FEW if declared > _MANY else None, split=split, groups=(group,))
    except AgentGymError:
        return 0
    fitting = sum((task.split, task.group) == (split, group) for task in found)
    return declared if declared > _MANY and fitting == _FEW else fitting


def immutable_versioning(subject: ValidationSubject) -> Finding:
    """The id has a version (`-v0`), which grows when results change."""
    with subject.fresh() as env:
        spec = env.spec
    if spec is None:
        raise NotApplicable("the environment was made from a class, so it has no id")
    problems = [] if _VERSIONED.search(spec.id) else [f"the id {spec.id!r} does not end with a version such as -v0"]
    return Finding(problems, {"id": spec.id, "registered_by_name": entry_point_of(spec.id) is not None})
