"""Which plots a report has, and what is drawn in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentgym_envs.cli.reports import plots
from agentgym_envs.cli.reports.columns import blocks
from agentgym_envs.cli.reports.contents import Report
from agentgym_envs.cli.reports.markup import Markup
from agentgym_envs.cli.reports.retries import tries_of
from agentgym_envs.evaluate import Estimate, Metrics, interval
from agentgym_envs.trajectory import Trajectory

_SCORE_BINS, _TURN_BINS, _POINTS = 20, 30, 60
MOST_LINES = 6
"""So many environments have a curve of their own; of more there is one for all."""


class Figure(NamedTuple):
    """A plot and what stands under it."""

    caption: str
    plot: Markup


def figures(report: Report) -> list[Figure]:
    """The plots of a report, in order; none without a usable episode."""
    usable = [episode for episode in report.episodes if episode.usable]
    if not usable:
        return []
    found = [*_success(report), _by_turn(report, usable), _turns(usable)]
    if any(episode.score not in (0, 1) for episode in usable):
        found.append(_scores(usable))
    if report.evaluation.overall.common_k > 1:
        found.append(_by_samples(report.evaluation.overall))
    return [*found, _stops(report)]


def _success(report: Report) -> list[Figure]:
    """One plot of the groups of each environment, and before them one of the environments if there are several."""
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


def _intervals(name: str, title: str, rows: Sequence[plots.Row | None]) -> Figure:
    plot = plots.intervals(name, title, [row for row in rows if row is not None])
    return Figure(f"{title}: the mean over tasks (dot) with its 95\u00a0% interval (bar).", plot)


def _row(label: str, row: Metrics, *, whole: bool = False) -> plots.Row | None:
    found = row.success
    return None if found is None else plots.Row(label, found.mean, found.low, found.high, whole)


def _by_turn(report: Report, usable: Sequence[Trajectory]) -> Figure:
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
    told = f"Share of episodes solved in at most so many turns{_last_try(usable)}, as a mean over tasks{around}."
    return Figure(told, plot)


def _solved_by(name: str, episodes: Sequence[Trajectory], last: int) -> plots.Line:
    by_task: dict[tuple[str, str], list[float]] = {}
    for episode in episodes:
        turns = len(episode.turns) if episode.success else last + 1
        by_task.setdefault((episode.env_id, episode.task.id), []).append(turns)
    step = max(1, -(-last // _POINTS))
    turns_shown = [*range(0, last, step), last] if episodes else []
    return plots.Line(name, [_point(x, list(by_task.values()), len(episodes)) for x in turns_shown])


def _point(turn: int, tasks: Sequence[Sequence[float]], episodes: int) -> plots.Point:
    found = interval([sum(turns <= turn for turns in task) / len(task) for task in tasks], episodes)
    return plots.Point(turn, found.mean, found.low, found.high)


def _turns(usable: Sequence[Trajectory]) -> Figure:
    last = max(len(episode.turns) for episode in usable)
    wide = max(1, -(-last // _TURN_BINS))
    counted = Counter((_place(len(episode.turns) - 1, wide), episode.success) for episode in usable)
    bins = []
    for place in range(-(-last // wide)):
        first, end = 1 + place * wide, (place + 1) * wide
        text = f"{first}" if wide == 1 else f"{first} to {end}"
        label = f"{first}" if place % max(1, -(-last // wide) // 8) == 0 else ""
        bins.append(plots.Bin(label, counted[place, True], counted[place, False], f"{text} turns"))
    plot = plots.histogram("turns", "Turns of an episode", "turns of an episode", bins)
    return Figure(f"Turns of an episode{_last_try(usable)}: solved ones below, the others above.", plot)


def _scores(usable: Sequence[Trajectory]) -> Figure:
    counted = Counter((min(int(e.score * _SCORE_BINS), _SCORE_BINS - 1), e.success) for e in usable)
    bins = []
    for place in range(_SCORE_BINS):
        low, high = place / _SCORE_BINS, (place + 1) / _SCORE_BINS
        text = f"{low:.2f} to {high:.2f}"
        label = f"{low:.1f}" if place % 4 == 0 else ""
        bins.append(plots.Bin(label, counted[place, True], counted[place, False], text))
    plot = plots.histogram("scores", "Scores of episodes", "score of an episode, in steps of 0.05", bins)
    return Figure("Scores of episodes: solved ones below, the others above.", plot)


def _by_samples(overall: Metrics) -> Figure:
    k = overall.common_k  # beyond it the points would be of other tasks
    lines = [plots.Line("pass@k", _points(overall.pass_at_k, k)), plots.Line("pass^k", _points(overall.pass_hat_k, k))]
    plot = plots.curves("samples", "Success against samples", "k, episodes of a task", lines, steps=False)
    return Figure("The chance that one of k episodes of a task succeeds (pass@k), and that all do (pass^k).", plot)


def _points(by_k: Mapping[int, Estimate], most: int) -> list[plots.Point]:
    return [plots.Point(k, found.mean, found.low, found.high) for k, found in sorted(by_k.items()) if k <= most]


def _stops(report: Report) -> Figure:
    found = sorted(report.evaluation.overall.stop_reasons.items(), key=lambda item: -item[1])
    return Figure("How the episodes ended.", plots.counts("stops", "How the episodes ended", found))


def _last_try(episodes: Sequence[Trajectory]) -> str:
    return " (of its last try)" if tries_of(episodes) > 1 else ""


def _place(value: int, wide: int) -> int:
    return max(value, 0) // wide


def _short(env_id: str) -> str:
    return env_id.rpartition("/")[2]
