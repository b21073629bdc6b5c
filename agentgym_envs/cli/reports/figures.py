"""The plots of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentgym_envs.cli.reports import plots
from agentgym_envs.cli.reports.attempts import max_attempts
from agentgym_envs.cli.reports.columns import blocks
from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.markup import Markup
from agentgym_envs.evaluate import Estimate, Metrics, interval
from agentgym_envs.trajectory import Trajectory

_SCORE_BINS, _TURN_BINS, _POINTS = 20, 30, 60
MOST_LINES = 6
"""The most environments with separate curves; more share one curve."""


class Figure(NamedTuple):
    """A plot and its caption."""

    caption: str
    plot: Markup


def figures(report: EvalReport) -> list[Figure]:
    """Draw the plots of a report; none without a usable episode."""
    usable = [episode for episode in report.episodes if episode.usable]
    if not usable:
        return []
    found = [*_success(report), _by_turn(report, usable), _turns(usable)]
    if any(episode.score not in (0, 1) for episode in usable):
        found.append(_scores(usable))
    if report.evaluation.overall.common_k > 1:
        found.append(_by_k(report.evaluation.overall))
    return [*found, _stops(report)]


def _success(report: EvalReport) -> list[Figure]:
    """Plots of the groups per environment; with several environments, first a plot of the environments."""
    evaluation = report.evaluation
    overall = _row("all", evaluation.overall, whole=True)
    found = []
    if several := len(evaluation.environments) > 1:
        rows = [_row(_short(str(row.env_id)), row) for row in evaluation.environments]
        found.append(_intervals("success", "Success per environment", [*rows, overall]))
    for number, (environment, groups) in enumerate(blocks(evaluation)):
        where = f" in {_short(str(environment.env_id))}" if several else ""
        total = _row("all groups", environment, whole=True) if several else overall
        rows = [_row(row.group or "", row) for row in groups]
        found.append(_intervals(f"success-{number}", f"Success per group{where}", [*rows, total]))
    return found


def _intervals(name: str, title: str, rows: Sequence[plots.IntervalRow | None]) -> Figure:
    plot = plots.intervals(name, title, [row for row in rows if row is not None])
    return Figure(f"{title}: the mean over tasks (dot) with its 95\u00a0% interval (bar).", plot)


def _row(label: str, row: Metrics, *, whole: bool = False) -> plots.IntervalRow | None:
    found = row.success
    return None if found is None else plots.IntervalRow(label, found.mean, found.low, found.high, whole)


def _by_turn(report: EvalReport, usable: Sequence[Trajectory]) -> Figure:
    envs = report.envs if 1 < len(report.envs) <= MOST_LINES else ()
    last = max(len(episode.turns) for episode in usable)
    lines = [_solved_by(_short(env), [e for e in usable if e.env_id == env], last) for env in envs]
    plot = plots.curves(
        "by-turn",
        "Success against turns",
        "turns",
        [line for line in lines if line.points] or [_solved_by("all", usable, last)],
        steps=True,
    )
    around = " with its interval" if len(envs) <= plots.MOST_BANDS else ""
    attempt = _last_attempt(usable)
    return Figure(f"Fraction of episodes solved within N turns{attempt}, as a mean over tasks{around}.", plot)


def _solved_by(name: str, episodes: Sequence[Trajectory], last: int) -> plots.Curve:
    by_task: dict[tuple[str, str], list[float]] = {}
    for episode in episodes:
        turns = len(episode.turns) if episode.success else last + 1
        by_task.setdefault((episode.env_id, episode.task.id), []).append(turns)
    step = max(1, -(-last // _POINTS))
    turns_shown = [*range(0, last, step), last] if episodes else []
    return plots.Curve(name, [_point(x, list(by_task.values()), len(episodes)) for x in turns_shown])


def _point(turn: int, tasks: Sequence[Sequence[float]], episodes: int) -> plots.Point:
    found = interval([sum(turns <= turn for turns in task) / len(task) for task in tasks], episodes)
    return plots.Point(turn, found.mean, found.low, found.high)


def _turns(usable: Sequence[Trajectory]) -> Figure:
    last = max(len(episode.turns) for episode in usable)
    wide = max(1, -(-last // _TURN_BINS))
    counted = Counter((max(len(episode.turns) - 1, 0) // wide, episode.success) for episode in usable)
    bins = []
    for index in range(-(-last // wide)):
        first, end = 1 + index * wide, (index + 1) * wide
        text = f"{first}" if wide == 1 else f"{first} to {end}"
        label = f"{first}" if index % max(1, -(-last // wide) // 8) == 0 else ""
        bins.append(plots.Bin(label, counted[index, True], counted[index, False], f"{text} turns"))
    plot = plots.histogram("turns", "Turns per episode", "turns per episode", bins)
    return Figure(f"Turns per episode{_last_attempt(usable)}: solved episodes below, the others above.", plot)


def _scores(usable: Sequence[Trajectory]) -> Figure:
    counted = Counter((min(int(e.score * _SCORE_BINS), _SCORE_BINS - 1), e.success) for e in usable)
    bins = []
    for index in range(_SCORE_BINS):
        low, high = index / _SCORE_BINS, (index + 1) / _SCORE_BINS
        text = f"{low:.2f} to {high:.2f}"
        label = f"{low:.1f}" if index % 4 == 0 else ""
        bins.append(plots.Bin(label, counted[index, True], counted[index, False], text))
    plot = plots.histogram("scores", "Scores of episodes", "score of an episode, in steps of 0.05", bins)
    return Figure("Scores of episodes: solved episodes below, the others above.", plot)


def _by_k(overall: Metrics) -> Figure:
    k = overall.common_k  # a larger k would cover fewer tasks
    lines = [
        plots.Curve("pass@k", _points(overall.pass_at_k, k)),
        plots.Curve("pass^k", _points(overall.pass_hat_k, k)),
    ]
    plot = plots.curves("by-k", "Success against k", "k, episodes per task", lines, steps=False)
    return Figure("Probability that one of k episodes of a task succeeds (pass@k), and that all do (pass^k).", plot)


def _points(by_k: Mapping[int, Estimate], limit: int) -> list[plots.Point]:
    return [plots.Point(k, found.mean, found.low, found.high) for k, found in sorted(by_k.items()) if k <= limit]


def _stops(report: EvalReport) -> Figure:
    found = sorted(report.evaluation.overall.stop_reasons.items(), key=lambda item: -item[1])
    return Figure("How the episodes ended.", plots.counts("stops", "How the episodes ended", found))


def _last_attempt(episodes: Sequence[Trajectory]) -> str:
    return " (last attempt)" if max_attempts(episodes) > 1 else ""


def _short(env_id: str) -> str:
    return env_id.rpartition("/")[2]
