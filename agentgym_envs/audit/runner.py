"""`audit`: play all attackers against an environment within a budget of time."""

from __future__ import annotations

import contextlib
import itertools
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym_envs.audit.attempts import MARGIN, AttackAttempt, Attacker, AttackFamily, AuditScene, answer_form
from agentgym_envs.audit.judging import (
    FLOOR_LUCK,
    JUDGED_BY_GROUP,
    LUCK,
    below_limit,
    beyond_limit,
    chance_of,
    earned_late,
    too_short,
    unearned,
)
from agentgym_envs.audit.playing import carried_out_beyond, play_actions, play_attempt
from agentgym_envs.audit.report import AttackerResult, AuditFinding, AuditReport, CellResult, GroupResult
from agentgym_envs.audit.scenes import MeasuredScene, measure, sample_tasks
from agentgym_envs.audit.table import ATTACKERS
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.evaluate.estimates import Estimate
from agentgym_envs.validate.episodes import RecordedEpisode
from agentgym_envs.validate.findings import BudgetUsed, mean_of
from agentgym_envs.validate.subject import ValidationSubject

Env = gym.Env[Any, Any]
_MEASURING = 0.5
"""The part of the budget that may be used before the first attack."""
_TASKS = (6, 1)
"""Tasks per group, of fast and of slow environments."""
_HONEST_EPISODES = ((4, 2), (1, 1))
"""Episodes of the random policy and with detours per task, of fast and of slow environments."""


class PlayedAttempt(NamedTuple):
    """An episode of an attacker."""

    attacker: Attacker
    attempt: AttackAttempt
    measured: MeasuredScene
    episode: RecordedEpisode


def audit(
    subject: ValidationSubject,
    attackers: Sequence[Attacker] = ATTACKERS,
    *,
    tasks: int | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
    skip: int = 0,
    every: int = 1,
    progress: Callable[[str], None] = lambda text: None,
) -> AuditReport:
    """Attack `tasks` tasks of each group of an environment (by default six, or one of a slow one) within its budget.

    The tasks of a later round come only when all attackers have attacked those of the earlier ones. `skip` leaves out
    the first tasks of each group, which an earlier audit with this seed attacked. With `every=5`, each task meets every
    fifth attacker, and the next task, or one of another group, other ones. Raises UsageError if the environment is no
    `TextEnv`, if there is no task left, or if the budget is too short for one.
    """
    if not subject.is_text_env:
        raise UsageError(f"{subject.name} is no TextEnv; the audit needs tasks, an oracle and scores from 0 to 1")
    run = AuditRun(subject, attackers, progress)
    with subject.fresh() as env:
        run.measure(env, tasks, groups, seed, skip)
        run.attack(env, every, later=skip > 0)
    return run.report()


class AuditRun:
    """An audit in progress."""

    def __init__(
        self, subject: ValidationSubject, attackers: Sequence[Attacker], progress: Callable[[str], None]
    ) -> None:
        self._subject, self._attackers, self._progress = subject, list(attackers), progress
        self._began = time.perf_counter()
        self._rounds: list[list[MeasuredScene]] = []
        self._played: list[PlayedAttempt] = []
        self._findings: list[AuditFinding] = []
        self._references: dict[tuple[str, tuple[str, ...]], RecordedEpisode] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._unplayed = 0

    @property
    def scenes(self) -> list[MeasuredScene]:
        """All measured tasks."""
        return [measured for scenes in self._rounds for measured in scenes]

    def measure(self, env: Env, wanted: int | None, groups: Sequence[str] | None, seed: int, skip: int) -> None:
        """Play the oracle and the honest policies on some tasks of each group."""
        base = text_env(env)
        slow = base.blocking or base.heavy
        count = wanted or _TASKS[slow]
        sizes = _HONEST_EPISODES[slow]
        chosen = sample_tasks(base, groups or base.groups or base.tasks.groups, count, seed, skip)
        if not any(chosen.values()):
            raise UsageError(f"{self._subject.name} has no more than {skip} tasks in any of these groups")
        end = self._subject.time_left * (1 - _MEASURING)
        numbers = itertools.count(seed + skip)
        with contextlib.suppress(BudgetUsed):
            for number in range(count):
                self._rounds.append([])
                for tasks in chosen.values():
                    if number < len(tasks) and (not self.scenes or self._subject.time_left > end):
                        self._progress(f"measuring {tasks[number].id}")
                        self._subject.check_time()
                        self._rounds[-1].append(measure(env, tasks[number], next(numbers), sizes))
        if not self.scenes:
            raise UsageError(f"{self._subject.seconds:g} s are too short to play one task; give a larger budget")
        self._introduce()

    def _introduce(self) -> None:
        """Show each scene the others, and the form of answers."""
        found = [measured.scene for measured in self.scenes]
        form = answer_form([scene.plan for scene in found])
        for measured in self.scenes:
            scene, group = measured.scene, measured.group
            scene.form = form if form and scene.plan and form.answer_in(scene.plan[-1]) is not None else None
            others = [other for other in found if other.start.task_id != scene.start.task_id]
            scene.others = sorted(others, key=lambda other: other.start.group != group)

    def attack(self, env: Env, every: int, *, later: bool = False) -> None:
        """Let every attacker, or every fifth, attack every task, one task of each group after the other.

        An audit is a later one if an earlier one attacked the first tasks of each group.
        """
        for measured in self.scenes:
            for episode in (*measured.random, *measured.detours):
                self._judge_honest(env, measured, episode)
        for round_, scenes in enumerate(self._rounds):
            for number, attacker in enumerate(self._attackers):
                if attacker.once_per_group and (later or round_):
                    continue
                for measured in scenes:
                    turn = number + measured.scene.start.seed + zlib.crc32(measured.group.encode())
                    in_turn = attacker.once_per_group or turn % every == 0
                    if in_turn and (not attacker.scenarios or attacker.scenarios & measured.scene.scenarios):
                        self._attack_task(env, attacker, measured)
        self._judge_groups()

    def _attack_task(self, env: Env, attacker: Attacker, measured: MeasuredScene) -> None:
        self._progress(f"{attacker.name}: {measured.scene.start.task_id}")
        began = time.perf_counter()
        try:
            for attempt in attacker.attempts(measured.scene):
                self._subject.check_time()
                self._play(env, attacker, measured, attempt)
        except BudgetUsed:
            self._unplayed += 1
        self._seconds[attacker.name] += time.perf_counter() - began

    def _play(self, env: Env, attacker: Attacker, measured: MeasuredScene, attempt: AttackAttempt) -> None:
        start = measured.scene.start
        episodes = play_attempt(env, start, attempt, self._subject.make)
        if attempt.beyond and episodes[-1].over and carried_out_beyond(env, attempt):
            played = PlayedAttempt(attacker, attempt, measured, episodes[-1])
            self._add(played, "a step after the end of the episode was carried out", reproduced=True)
        for episode in episodes:
            played = PlayedAttempt(attacker, attempt, measured, episode)
            self._played.append(played)
            if reason := self._reason(env, played):
                self._confirm(played, reason)

    def _reason(self, env: Env, played: PlayedAttempt) -> str:
        """The reason why an episode alone is a finding; "" if it is not a finding."""
        attempt, measured, episode = played.attempt, played.measured, played.episode
        if reason := unearned(measured, episode, attempt.may_fail) or below_limit(episode, attempt.least):
            return reason
        if reason := too_short(env, measured, episode):
            return reason
        if attempt.idle:
            return earned_late(episode)
        if attempt.most is not None:
            return beyond_limit(episode, attempt.most, False)
        if attempt.references:
            known = [self._reference(measured.scene, messages) for messages in attempt.references]
            most = max([one.score for one in known] + [measured.scene.idle_score])
            return beyond_limit(episode, most, any(one.success for one in known))
        return ""

    def _reference(self, scene: AuditScene, messages: Sequence[str]) -> RecordedEpisode:
        """The episode of these messages in a new environment."""
        key = str(scene.start), tuple(messages)
        if key not in self._references:
            with self._subject.fresh() as env:
                self._references[key] = play_actions(env, scene.start, messages)
        return self._references[key]

    def _judge_honest(self, env: Env, measured: MeasuredScene, episode: RecordedEpisode) -> None:
        if reason := unearned(measured, episode) or too_short(env, measured, episode):
            self._confirm(PlayedAttempt(_HONEST, AttackAttempt("honest"), measured, episode), reason)

    def _confirm(self, played: PlayedAttempt, reason: str) -> None:
        """Add a finding, if it does not name an error of the environment that a replay does not have."""
        attempt, episode = played.attempt, played.episode
        replay = replace(attempt, actions=episode.actions, policy=None, restart=False)
        with contextlib.closing(self._subject.make()) as env:  # also at the end of the budget
            [again] = play_attempt(env, episode.start, replay, self._subject.make)
        failed = again.last_info.get("stop_reason") == "env_error"
        same = abs(again.score - episode.score) < MARGIN and again.success == episode.success
        if "env_error" not in reason or failed:
            self._add(played, reason, reproduced=same)

    def _add(self, played: PlayedAttempt, reason: str, *, reproduced: bool) -> None:
        attempt, episode = played.attempt, played.episode
        self._findings.append(
            AuditFinding(
                played.attacker.name,
                attempt.label,
                episode.start,
                episode.score,
                reason,
                episode.actions,
                attempt,
                reproduced,
            )
        )

    def _judge_groups(self) -> None:
        """Find the attempts that won more often than by luck, or scored more than the floor."""
        for cell in _cells(self._played).values():
            winners = self._winners(cell)
            if winners and (reason := self._unlikely(cell, len(winners))):
                self._confirm(winners[0], reason)

    def _winners(self, cell: Sequence[PlayedAttempt]) -> list[PlayedAttempt]:
        return [played for played in cell if _won(played) and not self._is_solution(played)]

    def _is_solution(self, played: PlayedAttempt) -> bool:
        """True if a success is as long as a proven shortest solution, so that it may be one by luck."""
        episode, start = played.episode, played.episode.start
        if not episode.success or played.measured.rate is not None:
            return False
        with contextlib.closing(self._subject.make()) as env:
            env.reset(seed=start.seed, options=start.options)
            try:
                solution = text_env(env).solution()
            except NoOracle:
                return False
        return solution.exact and solution.commands is not None and len(solution.commands) == len(episode.steps)

    def _unlikely(self, cell: Sequence[PlayedAttempt], wins: int) -> str:
        if (chances := _chances(cell)) is not None:
            lucky = f"{wins} of {len(cell)} episodes won, and lucky guesses win {sum(chances):.2g}"
            return lucky if chance_of(wins, chances) < LUCK else ""
        group = cell[0].measured.group
        floor, tasks = self._floor(group)[0], sum(measured.group == group for measured in self.scenes)
        mean, rate = fmean(played.episode.score for played in cell), (floor.mean * tasks + 1) / (tasks + 2)
        above = mean > floor.high and chance_of(wins, [rate] * len(cell)) < FLOOR_LUCK
        return f"it scores {mean:.2f} on average, and the honest floor is at most {floor.high:.2f}" if above else ""

    def _floor(self, group: str) -> tuple[Estimate, str]:
        scenes = [measured for measured in self.scenes if measured.group == group]
        idle = mean_of([measured.idle.score for measured in scenes])
        randomly = mean_of([measured.random_score for measured in scenes])
        return (idle, "nothing") if idle.mean > randomly.mean else (randomly, "random")

    def report(self) -> AuditReport:
        """The results so far."""
        names = dict.fromkeys(measured.group for measured in self.scenes)
        return AuditReport(
            self._subject.name,
            [self._group_result(name) for name in names],
            [self._attacker_result(attacker) for attacker in self._attackers],
            self._findings,
            [CellResult(*key, len(self._winners(cell)), _chances(cell)) for key, cell in _cells(self._played).items()],
            self._unplayed,
            time.perf_counter() - self._began,
        )

    def _group_result(self, group: str) -> GroupResult:
        scenes = [measured for measured in self.scenes if measured.group == group]
        floor, policy = self._floor(group)
        rates = [measured.rate for measured in scenes if measured.rate is not None]
        cells = {key: _mean(cell) for key, cell in _cells(self._played).items() if key[2] == group}
        best = max(cells, key=lambda key: cells[key], default=("", "", ""))
        detours = [episode for measured in scenes for episode in measured.detours]
        return GroupResult(
            group,
            len(scenes),
            floor,
            policy,
            fmean(measured.oracle.score for measured in scenes),
            fmean(rates) if rates else None,
            cells.get(best, 0.0),
            ": ".join(best[:2]) if cells.get(best) else "",
            len(detours),
            sum(episode.success for episode in detours),
            sum(played.measured.group == group for played in self._played),
        )

    def _attacker_result(self, attacker: Attacker) -> AttackerResult:
        played = [one for one in self._played if one.attacker is attacker]
        cells = {key: _mean(cell) for key, cell in _cells(played, judged=False).items()}
        best = max(cells, key=lambda key: cells[key], default=("", "", ""))
        return AttackerResult(
            attacker.name,
            attacker.family.value,
            len(played),
            cells.get(best, 0.0),
            best[2] if cells.get(best) else "",
            sum(finding.attacker == attacker.name for finding in self._findings),
            round(self._seconds[attacker.name], 3),
        )


class HonestPolicy(Attacker):
    """The honest policies, whose episodes are judged as well."""

    name = "honest policy"
    family = AttackFamily.SEARCH

    def attempts(self, scene: AuditScene) -> Iterator[AttackAttempt]:
        """None: they were played before."""
        yield from ()


_HONEST = HonestPolicy()


def _cells(played: Sequence[PlayedAttempt], *, judged: bool = True) -> dict[tuple[str, str, str], list[PlayedAttempt]]:
    """The episodes by attacker, variant and group; only those that are judged by the group, or all."""
    found: dict[tuple[str, str, str], list[PlayedAttempt]] = defaultdict(list)
    for one in played:
        attempt = one.attempt
        limited = attempt.most is not None or attempt.references or one.attacker.family not in JUDGED_BY_GROUP
        if not (judged and limited):
            found[one.attacker.name, attempt.label, one.measured.group].append(one)
    return found


def _chances(cell: Sequence[PlayedAttempt]) -> list[float] | None:
    """The chances that guesses win each episode, one in each step; None if the scenario states none."""
    family = cell[0].attacker.family
    if family is AttackFamily.FORGING:
        return [0.0] * len(cell)
    if family is AttackFamily.NO_WORK:
        return [played.measured.rate or 0.0 for played in cell]
    rates = [_chance(played) for played in cell]
    known = [rate for rate in rates if rate is not None]
    return known if len(known) == len(rates) else None


def _chance(played: PlayedAttempt) -> float | None:
    """The chance that one of the guesses of an episode wins."""
    rate = played.measured.rate
    return None if rate is None else 1 - (1 - rate) ** max(1, len(played.episode.steps))


def _mean(cell: Sequence[PlayedAttempt]) -> float:
    return fmean(played.episode.score for played in cell)


def _won(played: PlayedAttempt) -> bool:
    """True for a success, or a score above that of doing nothing."""
    return played.episode.success or played.episode.score > played.measured.scene.idle_score + MARGIN
