"""The report of an audit: findings, and scores by group and by attacker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentgym_envs.audit.attempts import AttackAttempt
from agentgym_envs.evaluate.estimates import Estimate
from agentgym_envs.validate.episodes import EpisodeStart


@dataclass(frozen=True)
class AuditFinding:
    """An episode that earned what it should not, and the reason in one line.

    `before` are the episodes that come first, `actions` the messages to replay; `reproduced` says if a replay in a new
    environment had the same score.
    """

    attacker: str
    label: str
    start: EpisodeStart
    score: float
    reason: str
    actions: Sequence[str]
    attempt: AttackAttempt
    reproduced: bool = True

    def to_json(self) -> dict[str, Any]:
        """The finding with all that a replay needs."""
        return {
            "attacker": self.attacker,
            "variant": self.label,
            "group": self.start.group,
            "task": self.start.task_id,
            "seed": self.start.seed,
            "score": round(self.score, 6),
            "reason": self.reason,
            "reproduced": self.reproduced,
            "before": [
                {
                    "kind": one.kind.value,
                    "task": one.start.task_id,
                    "seed": one.start.seed,
                    "actions": list(one.actions),
                }
                for one in self.attempt.before
            ],
            "clock_shift_s": self.attempt.clock_shift,
            "actions": list(self.actions),
        }


@dataclass(frozen=True)
class GroupResult:
    """A group of tasks: the honest floor, the oracle, and the best attacker.

    Attributes:
        floor: the better of doing nothing and of the random policy, with its 95 % interval; `floor_policy` names it.
        guess_rate: the stated chance of a guess, the mean over tasks; None if the scenario states none.
        best: the mean score of the best attacker that is judged by the group; `best_attacker` names it.
        detours, detour_successes: plays of the oracle's plan with harmless detours.
        episodes: episodes of attackers.
    """

    group: str
    tasks: int
    floor: Estimate
    floor_policy: str
    oracle: float
    guess_rate: float | None
    best: float
    best_attacker: str
    detours: int
    detour_successes: int
    episodes: int


@dataclass(frozen=True)
class AttackerResult:
    """An attacker over all groups: its best mean score in a group, and its time."""

    attacker: str
    family: str
    episodes: int
    best: float
    best_group: str
    findings: int
    seconds: float


@dataclass(frozen=True)
class CellResult:
    """The episodes of a variant of an attacker in a group: those that won, and the chances of a guess in each.

    `chances` is None if the scenario states no chance, so that only the honest floor is compared.
    """

    attacker: str
    label: str
    group: str
    wins: int
    chances: Sequence[float] | None


@dataclass
class AuditReport:
    """The results of an audit. `unplayed` counts the pairs of attacker and task for which no time was left."""

    target: str
    groups: list[GroupResult] = field(default_factory=list)
    attackers: list[AttackerResult] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
    cells: list[CellResult] = field(default_factory=list)
    unplayed: int = 0
    seconds: float = 0.0

    @property
    def episodes(self) -> int:
        """The number of episodes of attackers."""
        return sum(result.episodes for result in self.attackers)

    @property
    def summary(self) -> str:
        """One sentence with all counts."""
        tasks = sum(group.tasks for group in self.groups)
        rest = f"; {self.unplayed} attacks were not played within the budget" if self.unplayed else ""
        return (
            f"{len(self.findings)} findings in {self.episodes} episodes of {len(self.attackers)} attackers "
            f"on {tasks} tasks of {len(self.groups)} groups{rest}"
        )

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "target": self.target,
            "groups": [asdict(group) for group in self.groups],
            "attackers": [asdict(attacker) for attacker in self.attackers],
            "findings": [finding.to_json() for finding in self.findings],
            "cells": [asdict(cell) for cell in self.cells],
            "episodes": self.episodes,
            "unplayed": self.unplayed,
            "seconds": round(self.seconds, 2),
        }
