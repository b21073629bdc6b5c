"""Checks of the verifier: the oracle reaches the maximum, others do not, and scores are repeatable."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any
from unittest import mock

from agentgym_envs.core import text_env
from agentgym_envs.validate.episodes import (
    JUNK,
    EpisodeStart,
    RecordedEpisode,
    first_difference,
    plain,
    play,
    replaying,
    shown_text,
)
from agentgym_envs.validate.findings import FLOOR_MARGIN, ORACLE_TOLERANCE, Finding, estimated
from agentgym_envs.validate.subject import ValidationSubject

MAXIMUM = 1.0
"""The largest score of a `TextEnv`."""
BEGGING = (
    "help",
    "solution",
    "show solution",
    "oracle",
    "solve",
    "answer",
    "hint",
    "cheat",
    "give up",
    "done",
    "win",
    "submit",
)
"""Commands by which an agent may ask for the solution or the reward."""
_DAY = 86_400.0
_OFFERED = 3
"""Other commands that a text must contain for a command in it to be one of several choices."""


def oracle_max(subject: ValidationSubject) -> Finding:
    """The oracle solves every task, with the maximum score on average, and no other policy scores more."""
    problems, best = [], _best_of_others(subject)
    for episode in subject.oracle_episodes:
        if episode.plan is None:
            problems.append(f"{episode.start}: the oracle has no plan")
        elif not episode.success:
            reason = episode.last_info.get("error") or episode.last_info.get("stop_reason")
            problems.append(f"{episode.start}: the plan ends with the score {episode.score:g}, {reason}")
        elif (other := best.get(episode.start, 0.0)) > episode.score + ORACLE_TOLERANCE:
            problems.append(f"{episode.start}: the oracle scores {episode.score:g}, and another policy {other:g}")
    scores = [episode.score for episode in subject.oracle_episodes]
    if not problems and fmean(scores) < MAXIMUM - ORACLE_TOLERANCE:
        problems.append(f"the oracle scores {fmean(scores):g} on average")
    return Finding(problems, estimated(scores, MAXIMUM - ORACLE_TOLERANCE, least=round(min(scores), 4)))


def _best_of_others(subject: ValidationSubject) -> dict[EpisodeStart, float]:
    best = dict[EpisodeStart, float]()
    for episode in (*subject.idle_episodes, *subject.random_episodes):
        best[episode.start] = max(best.get(episode.start, 0.0), episode.score)
    return best


def floor_gap(subject: ValidationSubject) -> Finding:
    """A policy that does nothing stays below the maximum by a margin."""
    scores = [episode.score for episode in subject.idle_episodes]
    problems = [f"doing nothing scores {fmean(scores):g} on average"] if fmean(scores) > MAXIMUM - FLOOR_MARGIN else []
    return Finding(problems, estimated(scores, MAXIMUM - FLOOR_MARGIN))


def canary_floor(subject: ValidationSubject) -> Finding:
    """Trajectories that must fail do: junk, a plan without its last command, and the plan of another task."""
    problems, strangers = [], list[float]()
    plans = [episode for episode in subject.oracle_episodes if episode.steps]
    with subject.fresh() as env:
        for number, episode in enumerate(subject.within(plans)):
            start = episode.start
            for kind, actions in (("junk", JUNK), ("a plan without its end", episode.actions[:-1])):
                played = play(env, start, replaying(actions))
                if played.success or played.score > MAXIMUM - ORACLE_TOLERANCE:
                    problems.append(f"{start}: {kind} succeeds, with the score {played.score:g}")
            other = plans[number - 1]
            if other.actions != episode.actions:
                strangers.append(play(env, start, replaying(other.actions)).score)
    if strangers and fmean(strangers) > MAXIMUM - FLOOR_MARGIN:
        problems.append(f"the plans of other tasks score {fmean(strangers):g} on average")
    mean = round(fmean(strangers), 4) if strangers else None
    return Finding(problems, {"tasks": len(plans), "other_plans_mean": mean, "bound": MAXIMUM - FLOOR_MARGIN})


def no_solution_leakage(subject: ValidationSubject) -> Finding:
    """The first observation and the instructions do not contain the oracle's plan."""
    problems, count = [], 0
    with subject.fresh() as env:
        base = text_env(env)
        for episode in subject.within(subject.oracle_episodes):
            if not episode.plan:
                continue
            count += 1
            text = f"{base.instructions}\n{shown_text(episode.observation)}"
            if leaked := _leak(env, episode, text):
                problems.append(f"{episode.start}: the agent is shown {leaked}")
    return Finding(problems, {"tasks": count})


def oracle_containment(subject: ValidationSubject) -> Finding:
    """Neither the info of a reset nor a command that asks for it gives the agent the plan or the reward."""
    problems, commands = [], BEGGING[: subject.sizes.turns]
    with subject.fresh() as env:
        for episode in subject.oracle_episodes:
            if leaked := _leak(env, episode, _flat(episode.info)) if len(episode.plan or ()) > 1 else "":
                problems.append(f"{episode.start}: the info of the reset has {leaked}")
        for episode in subject.within(subject.oracle_episodes[: subject.sizes.few]):
            problems += [f"{episode.start}: {text}" for text in _gained_by_asking(env, episode, commands)]
    return Finding(problems, {"tasks": len(subject.oracle_episodes), "commands": len(commands)})


def _gained_by_asking(env: Any, episode: RecordedEpisode, commands: Sequence[str]) -> Iterator[str]:
    """The commands that give more than an empty action, whose reward may be that of the initial state."""
    plan = episode.plan or ()
    usual = play(env, episode.start, replaying([""])).score
    for command in commands:
        asked = play(env, episode.start, replaying([text_env(env).grammar.format(command)]))
        if asked.score > usual or asked.success:
            yield f"the command {command!r} gives {asked.score:g}"
        elif command not in plan and _sequence(plan, shown_text(asked.last_observation)):
            yield f"the command {command!r} shows the plan"


def verifier_determinism(subject: ValidationSubject) -> Finding:
    """The same episode gets the same scores again, also a day later by the clock."""
    problems = []
    for number, script in enumerate(subject.within(subject.scripts)):
        with shifted_clock(_DAY * (1 + number)):
            later = subject.replay(script)
        one, again = subject.replay(script), subject.replay(script)
        for kind, other in (("again", again), ("on another day", later)):
            if one.verdicts != other.verdicts:
                problems.append(f"{script[0]}, {kind}: {first_difference(one.verdicts, other.verdicts)}")
    return Finding(problems, {"episodes": len(subject.scripts), "clock_shift_s": _DAY})


@contextmanager
def shifted_clock(seconds: float) -> Iterator[None]:
    """Shift the wall clock of `time.time`; code that imported the function itself keeps the real one."""
    now, nanoseconds = time.time, time.time_ns
    with (
        mock.patch.object(time, "time", lambda: now() + seconds),
        mock.patch.object(time, "time_ns", lambda: nanoseconds() + int(seconds * 1e9)),
    ):
        yield


def _leak(env: Any, episode: RecordedEpisode, text: str) -> str:
    """The part of the plan that a text gives away; "" if there is none.

    A plan of several commands leaks if they follow each other in the text. If the last command alone solves the task,
    it leaks if the text contains it, unless it is one of several commands that the text offers.
    """
    plan = episode.plan or ()
    if len(plan) > 1 and _sequence(plan, text):
        return f"the whole plan, {len(plan)} commands"
    last = plan[-1] if plan else ""
    if not _contains(text, last) or _offers(env, episode.start, text, last):
        return ""
    alone = len(plan) == 1 or play(env, episode.start, replaying(episode.actions[-1:])).success
    return f"the command that solves the task, {last!r:.60}" if alone else ""


def _sequence(commands: Sequence[str], text: str) -> bool:
    """True if commands follow each other in a text, with only numbers and punctuation between them."""
    pattern = r"[\W\d_]+".join(re.escape(" ".join(command.split())) for command in commands)
    return len(commands) > 1 and re.search(pattern, " ".join(text.split()), re.IGNORECASE) is not None


def _contains(text: str, command: str) -> bool:
    words = " ".join(command.split())
    return (
        bool(words)
        and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", " ".join(text.split()), re.IGNORECASE) is not None
    )


def _offers(env: Any, start: EpisodeStart, text: str, command: str) -> bool:
    """True if the text contains several other commands of the random policy."""
    base = text_env(env)
    env.reset(seed=start.seed, options=start.options)
    rng = random.Random(0)
    others = {base.random_command(rng) for _ in range(100)} - {command}
    return sum(_contains(text, other) for other in others) >= _OFFERED


def _flat(info: Any) -> str:
    """All texts of an info, in order."""
    if isinstance(info, dict):
        return "\n".join(map(_flat, info.values()))
    return "\n".join(map(_flat, info)) if isinstance(info, list | tuple) else str(plain(info))
