"""Checks of this suite's own contract, which OpenEnv's policy does not name."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

from gymnasium.utils.env_checker import check_env

from agentgym_envs.core import text_env
from agentgym_envs.errors import EpisodeOver, UnknownTask, UsageError
from agentgym_envs.validate.episodes import JUNK, first_difference, plain, play, replaying
from agentgym_envs.validate.findings import Finding
from agentgym_envs.validate.subject import ValidationSubject


def gymnasium_check(subject: ValidationSubject) -> Finding:
    """Gymnasium's own `check_env` accepts the environment."""
    problems = []
    with subject.fresh() as env, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env.unwrapped, skip_render_check=True)
        except Exception as error:  # it raises assertions and errors of many types
            problems.append(f"{type(error).__name__}: {str(error) or 'no message'}")
    return Finding(problems, {"warnings": sorted({str(one.message).strip()[:200] for one in caught})})


def episode_over(subject: ValidationSubject) -> Finding:
    """A step before the first reset, and one after the end, raise `EpisodeOver`."""
    problems, ended = [], 0
    with subject.fresh() as env:
        if complaint := _unlike(EpisodeOver, lambda: env.step("")):
            problems.append(f"a step before the first reset {complaint}")
        for script in subject.scripts:
            if subject.replay(script, env).over:
                ended += 1
                if complaint := _unlike(EpisodeOver, lambda: env.step("")):
                    problems.append(f"{script[0]}: a step after the end {complaint}")
    return Finding(problems, {"ended_episodes": ended})


def close_final(subject: ValidationSubject) -> Finding:
    """After `close`, reset and step raise `EpisodeOver`."""
    with subject.fresh() as env:
        env.reset(seed=0)
        env.close()
        calls: dict[str, Callable[[], Any]] = {"a step": lambda: env.step(""), "a reset": lambda: env.reset(seed=0)}
        found = {name: _unlike(EpisodeOver, call) for name, call in calls.items()}
    return Finding([f"{name} after close {complaint}" for name, complaint in found.items() if complaint])


def refused_options(subject: ValidationSubject) -> Finding:
    """Unknown tasks, splits, groups and options, and actions that are no text, raise errors of the caller."""
    wrong: list[tuple[Any, type[Exception]]] = [
        ({"task": "no/such/task"}, UnknownTask),
        ({"split": "no such split"}, UnknownTask),
        ({"group": "no such group"}, UnknownTask),
        ({"no_such_option": 1}, UsageError),
    ]
    problems = []
    with subject.fresh() as env:
        for options, error in wrong:
            if complaint := _unlike(error, lambda options=options: env.reset(seed=0, options=options)):  # type: ignore[misc]
                problems.append(f"reset with {options} {complaint}")
        env.reset(seed=0)
        if complaint := _unlike(UsageError, lambda: env.step(3)):
            problems.append(f"the action 3 {complaint}")
    return Finding(problems, {"requests": len(wrong) + 1})


def _unlike(expected: type[Exception], call: Callable[[], Any]) -> str:
    """The way in which a call does not raise the expected error; "" if it does."""
    try:
        call()
    except expected:
        return ""
    except Exception as error:
        return f"raises {type(error).__name__} in place of {expected.__name__}: {error}"
    return f"raises no {expected.__name__}"


def invalid_actions(subject: ValidationSubject) -> Finding:
    """Every text is answered: junk neither raises an error nor ends the episode as `env_error`."""
    problems, count = [], 0
    commands = [action for _, actions in subject.scripts for action in actions]
    with subject.fresh() as env:
        junk = [*JUNK, *_damaged(commands, 10 * subject.sizes.turns)]
        env.reset(seed=0)
        for action in subject.within(junk):
            count += 1
            try:
                _, _, terminated, truncated, info = env.step(action)
            except Exception as error:
                problems.append(f"step({action!r:.60}) raises {type(error).__name__}: {error}")
                terminated, info = True, {}
            if info.get("stop_reason") == "env_error":
                problems.append(f"step({action!r:.60}) ends as env_error: {info.get('error')}")
            if terminated or truncated:
                env.reset(seed=count)
    return Finding(problems, {"actions": count})


def _damaged(commands: list[str], count: int) -> list[str]:
    """Variants of known commands: shortened, doubled, with exchanged characters, and with a long number."""
    rng, found = random.Random(0), list[str]()
    for _ in range(count):
        command = rng.choice(commands)
        place = rng.randrange(len(command) + 1)
        found.append(
            rng.choice(
                (
                    command[:place],
                    command + command,
                    command[:place] + rng.choice("\u00e9[]{}<>\"'\\0 ") + command[place + 1 :],
                )
            )
        )
    number = "9" * 5_000  # int() refuses it
    return [*found, number, f"-{number}", *(" ".join([command, number]) for command in commands[:3])]


def pickle_roundtrip(subject: ValidationSubject) -> Finding:
    """A pickled copy of an environment, made within an episode, continues equally."""
    problems = []
    with subject.fresh() as env:
        for start, actions in subject.within(subject.scripts):
            half = len(actions) // 2
            if play(env, start, replaying(actions[:half])).over:
                continue
            copy = pickle.loads(pickle.dumps(env))
            try:
                one, other = plain(copy.step(actions[half])), plain(env.step(actions[half]))
            finally:
                copy.close()
            if one != other:
                problems.append(f"{start}: {first_difference([other], [one])}")
    return Finding(problems, {"episodes": len(subject.scripts)})


def random_command(subject: ValidationSubject) -> Finding:
    """The random policy draws only from the generator that it is given, and most of its commands are valid."""
    problems = []
    with subject.fresh() as env:
        base = text_env(env)
        env.reset(seed=0)
        one, other = random.Random(1), random.Random(1)
        if [base.random_command(one) for _ in range(20)] != [base.random_command(other) for _ in range(20)]:
            problems.append("equal generators give different random commands")
    steps = [step for episode in subject.random_episodes for step in episode.steps]
    refused = [step.action for step in steps if step.info.get("invalid_action") is not None]
    if 2 * len(refused) > len(steps):
        problems.append(f"{len(refused)} of {len(steps)} random commands are refused, such as {refused[0]!r:.60}")
    return Finding(problems, {"commands": len(steps), "refused": len(refused)})


def rendering(subject: ValidationSubject) -> Finding:
    """The mode "ansi" renders a text, and without a mode `render` returns None."""
    problems = []
    with subject.fresh() as env:
        base = text_env(env)
        env.reset(seed=0)
        mode, base.render_mode = base.render_mode, "ansi"
        drawn = base.render()
        base.render_mode = None
        if not isinstance(drawn, str) or not drawn:
            problems.append(f"the mode 'ansi' renders {drawn!r:.60}")
        if base.render() is not None:
            problems.append("without a mode, `render` returns something")
        base.render_mode = mode
    return Finding(problems)
