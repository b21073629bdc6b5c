"""Checks of distributions: scores of several policies over sampled tasks, with their intervals.

An estimate beyond its bound is a failure. The interval says how much the sample proves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from agentgym_envs.core import text_env
from agentgym_envs.evaluate.estimates import Z95
from agentgym_envs.validate.episodes import (
    EpisodeStart,
    play,
    play_oracle,
    with_slips,
)
from agentgym_envs.validate.findings import FLOOR_MARGIN, SPREAD_TOLERANCE, Finding, NotApplicable, estimated
from agentgym_envs.validate.semantic import MAXIMUM
from agentgym_envs.validate.subject import ValidationSubject

if TYPE_CHECKING:
    from agentgym_envs.audit import AuditReport

REACHABLE = 0.9
"""The smallest share of tasks on which a policy earns something."""
SEPARATION = 0.3
"""The smallest rank correlation of declared and measured difficulty."""
SLIPS = 0.4
"""The share of random commands of the policy whose episodes are compared within a task."""
_FEWEST = 5


def reward_reachability(subject: ValidationSubject) -> Finding:
    """Some policy, the oracle or a random one, earns a reward on nearly every task."""
    best = dict[EpisodeStart, float]()
    for episode in subject.known_episodes:
        best[episode.start] = max(best.get(episode.start, 0.0), episode.score)
    reached = [float(score > 0) for score in best.values()]
    problems = [f"{reached.count(0.0)} of {len(reached)} tasks gave no reward"] if fmean(reached) < REACHABLE else []
    return Finding(problems, estimated(reached, REACHABLE))


def difficulty_separation(subject: ValidationSubject) -> Finding:
    """Tasks that are declared more difficult need more turns of the oracle (rank correlation)."""
    with subject.fresh() as env:
        tasks = text_env(env).tasks
        pairs = [
            (found.turns, len(episode.plan))
            for episode in subject.oracle_episodes
            if episode.plan and episode.start.task_id and (found := tasks.difficulty(tasks.get(episode.start.task_id)))
        ]
    if not pairs:
        raise NotApplicable("the task set declares no difficulty")
    declared, measured = [a for a, _ in pairs], [b for _, b in pairs]
    if len(pairs) < _FEWEST or len(set(declared)) < 2:
        raise NotApplicable(
            f"{len(pairs)} tasks of {len(set(declared))} difficulties were played; it takes {_FEWEST} of 2"
        )
    rho = _rank_correlation(declared, measured)
    half = Z95 * 1.03 / math.sqrt(len(pairs) - 3)
    centre = math.atanh(max(min(rho, 0.999), -0.999))
    interval = {"low": round(math.tanh(centre - half), 4), "high": round(math.tanh(centre + half), 4)}
    problems = [f"the rank correlation is {rho:.2f}"] if rho < SEPARATION else []
    return Finding(problems, {"sample": len(pairs), "estimate": round(rho, 4), **interval, "bound": SEPARATION})


def headroom(subject: ValidationSubject) -> Finding:
    """A random policy leaves something to learn."""
    scores = [episode.score for episode in subject.random_episodes]
    bound = MAXIMUM - FLOOR_MARGIN
    problems = [f"a random policy scores {fmean(scores):.2f}"] if fmean(scores) > bound else []
    return Finding(problems, estimated(scores, bound))


def variance_bound(subject: ValidationSubject) -> Finding:
    """The oracle's score on a task depends little on the seed (mean standard deviation)."""
    spreads = []
    with subject.fresh() as env:
        for first in subject.within(subject.oracle_episodes[: 2 * subject.sizes.few]):
            start = first.start
            seeds = range(start.seed + 1, start.seed + subject.sizes.group)
            scores = [play_oracle(env, EpisodeStart(seed, start.task_id)).score for seed in seeds]
            spreads.append(pstdev([first.score, *scores]))
    problems = [f"the score's standard deviation is {fmean(spreads):.2f}"] if fmean(spreads) > SPREAD_TOLERANCE else []
    return Finding(problems, estimated(spreads, SPREAD_TOLERANCE, seeds_per_task=subject.sizes.group))


def training_signal(subject: ValidationSubject) -> Finding:
    """The episodes of a task by a policy that is sometimes right differ in their scores, as GRPO needs."""
    mixed = []
    with subject.fresh() as env:
        if text_env(env).slow_oracle:
            raise NotApplicable(
                f"planning again after each slip takes too long here; play --policy oracle:slip={SLIPS}"
            )
        solved = [episode for episode in subject.oracle_episodes if episode.plan]
        for first in subject.within(solved[: 2 * subject.sizes.few]):
            most = 2 * len(first.steps) + 2
            groups = range(2 * subject.sizes.group)
            scores = {round(play(env, first.start, with_slips(SLIPS, seed), most).score, 6) for seed in groups}
            mixed.append(float(len(scores) > 1))
    if not any(mixed) and len(mixed) < _FEWEST:
        raise NotApplicable(
            f"{len(mixed)} tasks were played, and all episodes of a task agree; it takes {_FEWEST} tasks"
        )
    problems = ["no task gave two different scores"] if not any(mixed) else []
    more = {"episodes_per_task": 2 * subject.sizes.group, "slips": SLIPS}
    return Finding(problems, estimated(mixed, 0.0, **more))


def adversarial_floor(subject: ValidationSubject) -> Finding:
    """Attackers that do no work, guess, or forge results stay at the honest floor (`agentgym audit`)."""
    report = subject.attacks
    worst = max(report.groups, key=lambda group: group.best)
    more = {"worst": worst.best_attacker, "episodes": report.episodes, "unplayed": report.unplayed}
    best = [group.best for group in report.groups]
    return Finding(_findings(report, shortcuts=False), estimated(best, MAXIMUM - FLOOR_MARGIN, **more))


def gameability_gap(subject: ValidationSubject) -> Finding:
    """No episode without success scores as high as one with it, and no shortcut of `agentgym audit` does."""
    shortcuts = _findings(subject.attacks, shortcuts=True)
    won = [episode.score for episode in subject.known_episodes if episode.success]
    lost = [episode for episode in subject.known_episodes if not episode.success]
    if not shortcuts and (not won or not lost):
        raise NotApplicable("there are no episodes of both kinds, with and without success")
    least = min(won, default=MAXIMUM)
    gamed = [float(episode.score >= least) for episode in lost]
    problems = [f"{e.start}: {e.score:g} without success" for e in lost if e.score >= least]
    gap = round(least - max((e.score for e in lost), default=0.0), 4)
    return Finding([*shortcuts, *problems], estimated([*gamed, float(bool(shortcuts))], 0.0, gap=gap))


def _findings(report: AuditReport, *, shortcuts: bool) -> list[str]:
    """The findings of shortcuts, or of the other attackers, in a line each."""
    names = {attacker.attacker for attacker in report.attackers if (attacker.family == "shortcuts") is shortcuts}
    return [f"{one.start}: {one.attacker}: {one.reason}" for one in report.findings if one.attacker in names]


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 if a column is constant."""
    a, b = _ranks(one), _ranks(other)
    spread = pstdev(a) * pstdev(b)
    return (fmean(x * y for x, y in zip(a, b, strict=True)) - fmean(a) * fmean(b)) / spread if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """The ranks, equal values sharing the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
