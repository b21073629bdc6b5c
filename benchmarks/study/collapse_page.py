"""The figures and tables of the laboratory for collapse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.evaluate import Estimate
from benchmarks.study.cells import shown, table
from benchmarks.study.collapse import REMEDIES, RISKS, SCENARIO, SERIES, START, LabRun, auc_of, read_runs, shipped_signs
from benchmarks.study.settings import TEXTCRAFT
from benchmarks.study.starts import slug
from benchmarks.study.statistics import student

Figures = Mapping[str, Any]


def collect(work: Path) -> dict[str, Any]:
    """The figures of the finished runs under `work`; empty without any."""
    seeds = sorted((work / SCENARIO).glob("seed-*"), key=lambda path: int(path.name[5:]))
    runs = read_runs([seed / slug(START) for seed in seeds], TEXTCRAFT.very_long)
    if not runs:
        return {}
    areas = {name: auc_of(runs, name) for name in SERIES if any(name in run.log for run in runs)}
    return {
        "runs": [_figures(run) for run in runs],
        "signs": {name: found._asdict() for name, found in shipped_signs(runs).items()},
        "series": {name: area for name, area in areas.items() if area is not None},
    }


def _figures(run: LabRun) -> dict[str, Any]:
    names = ("risk", "remedy", "seed", "success", "curve")
    own = {name: getattr(run, name) for name in names}
    return {**own, "rollouts": len(run.rows), "collapsed_at": run.collapsed_at}


def tables(figures: Figures) -> str:
    """Remedies, the trainer's warnings, and single series as predictors."""
    return "\n\n".join(
        ["![Success in training, by remedy](collapse.png)", _remedies(figures), _signs(figures), _series(figures)]
    )


def _remedies(figures: Figures) -> str:
    rows = [[risk, *(_cell(runs_of(figures, risk, remedy)) for remedy in REMEDIES)] for risk in RISKS]
    return table(["collapsed; success at the end, %", *REMEDIES], rows)


def runs_of(figures: Figures, risk: str, remedy: str) -> list[dict[str, Any]]:
    return [run for run in figures["runs"] if (run["risk"], run["remedy"]) == (risk, remedy)]


def _cell(runs: Sequence[Mapping[str, Any]]) -> str:
    if not runs:
        return ""
    collapsed = sum(run["collapsed_at"] is not None for run in runs)
    return f"{collapsed} of {len(runs)}; {shown(student([run['success'] for run in runs]))}"


def _signs(figures: Figures) -> str:
    head = ["warning", "before a collapse", "rollouts ahead (median)", "without a collapse"]
    rows = [
        [
            name,
            f"{sign['before']} of {sign['collapsed']}",
            "" if sign["lead"] is None else f"{sign['lead']:.0f}",
            f"{sign['false']} of {sign['others']}",
        ]
        for name, sign in figures["signs"].items()
    ]
    return table(head, rows)


def _series(figures: Figures) -> str:
    rows = [[f"`{name}`", _area(Estimate(*found))] for name, found in _by_area(figures["series"])]
    return table(["series", "area under the curve"], rows)


def _by_area(series: Mapping[str, Sequence[float]]) -> list[tuple[str, Sequence[float]]]:
    return sorted(series.items(), key=lambda item: -item[1][0])


def _area(area: Estimate) -> str:
    return f"{area.mean:.2f} [{area.low:.2f}, {area.high:.2f}]"
