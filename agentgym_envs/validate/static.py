"""Checks of what an environment declares: its registration, its packages and its tasks."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import re
import sys
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.errors import AgentGymError
from agentgym_envs.registration import entry_point_of
from agentgym_envs.validate.findings import EPISODE_SECONDS, Finding, NotApplicable
from agentgym_envs.validate.subject import ValidationSubject

_VERSIONED = re.compile(r"-v\d+$")
_BOUNDED = re.compile(r"[<>=~@]")
_FOR_DEVELOPERS = re.compile(r"""extra == ['"](dev|docs|tests?)['"]""")
_PROBE_KEYS = 50


def manifest(subject: ValidationSubject) -> Finding:
    """The environment describes itself: docstring, render modes, JSON arguments and, for a model, instructions."""
    problems = []
    with subject.fresh() as env:
        base = env.unwrapped
        if not (type(base).__doc__ or "").strip() or type(base).__doc__ == gym.Env.__doc__:
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
    """The class declares its needs (`blocking`, `heavy`, ...) as booleans, and remote options that its constructor has."""
    with subject.fresh() as env:
        base = text_env(env)
    declared = {name: getattr(base, name) for name in ("blocking", "heavy", "slow_oracle", "native_async")}
    problems = [f"{name} is {value!r}, not True or False" for name, value in declared.items() if type(value) is not bool]
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
    slowest = max((episode.seconds[1] for episode in subject.known_episodes), default=0.0)
    problems = [f"an episode took {slowest:.0f} s"] if slowest > EPISODE_SECONDS else []
    return Finding(problems, {"longest_episode_s": round(slowest, 3), "bound_s": EPISODE_SECONDS})


def dependency_pinning(subject: ValidationSubject) -> Finding:
    """Every requirement of the environment's distribution has a version bound."""
    found = _distribution(subject.kind.__module__.partition(".")[0])
    if found is None:
        raise NotApplicable(f"the module {subject.kind.__module__} belongs to no installed distribution")
    own = found.name
    required = [text.partition(";")[0].strip() for text in found.requires or [] if not _FOR_DEVELOPERS.search(text)]
    others = [text for text in required if not text.lower().startswith(f"{own.lower()}[")]
    problems = [f"{text} has no version bound" for text in others if not _BOUNDED.search(text)]
    return Finding(problems, {"distribution": f"{own} {found.version}", "requirements": len(others)})


def _distribution(package: str) -> importlib.metadata.Distribution | None:
    if package in sys.stdlib_module_names or package == "__main__":
        return None
    try:
        return importlib.metadata.distribution(package)  # most have the name of their package, and a search is slow
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package)
        return importlib.metadata.distribution(names[0]) if names else None


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
        for group, splits in (counts or {}).items():
            for split, count in splits.items():
                subject.check_time()
                found = _count(tasks, split, group)
                if found not in (None, count):
                    problems.append(f"{group}, {split}: {count} tasks are declared, and there are {found}")
    total = None if counts is None else sum(sum(splits.values()) for splits in counts.values())
    return Finding(problems, {"groups": len(tasks.groups), "tasks": total})


def _count(tasks: Any, split: str, group: str) -> int | None:
    """The number of tasks of a split and group; None if there are too many to list."""
    try:
        found = tasks.sample(split=split, groups=(group,))
    except AgentGymError as error:
        return None if "say how many" in str(error) else 0
    return len(found) if all((task.split, task.group) == (split, group) for task in found) else -1


def immutable_versioning(subject: ValidationSubject) -> Finding:
    """The id has a version (`-v0`), which grows when results change."""
    with subject.fresh() as env:
        spec = env.spec
    if spec is None:
        raise NotApplicable("the environment was made from a class, so it has no id")
    problems = [] if _VERSIONED.search(spec.id) else [f"the id {spec.id!r} does not end with a version such as -v0"]
    return Finding(problems, {"id": spec.id, "registered_by_name": entry_point_of(spec.id) is not None})
