"""`agentgym search agreement`: how often the judge of a run and exact match decide alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from agentgym_envs.cli.common import Json, print_json, stdout
from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate.estimates import interval
from agentgym_envs.trajectory import Trajectory, read_trajectories

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folder of a run, or files of trajectories (JSONL).")
]


def agreement_command(runs: Runs, as_json: Json = False) -> None:
    """Compare the verdicts of a run's judge with exact match: agreement with its 95 % interval, and Cohen's kappa."""
    files = [path / "trajectories.jsonl" if path.is_dir() else path for path in runs]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise UsageError(f"there are no trajectories in {', '.join(missing)}; give the folder of a run, or JSONL files")
    found = measure_agreement(trajectory for path in files for trajectory in read_trajectories(path))
    if as_json:
        print_json(found)
        return
    low, high = found["interval"]
    lines = [
        f"{found['episodes']} judged answers by {', '.join(found['judges'])}",
        f"agreement with exact match {found['agreement']:.1%} (95 % interval {low:.1%} to {high:.1%}), "
        f"kappa {'undefined' if found['kappa'] is None else format(round(found['kappa'], 2) + 0.0, '.2f')}",
        f"both right {found['both_right']}, both wrong {found['both_wrong']}, only the judge accepts "
        f"{found['only_judge']}, only exact match accepts {found['only_em']}",
    ]
    for line in lines:
        stdout().print(line, markup=False, highlight=False, soft_wrap=True)


def measure_agreement(trajectories: Iterable[Trajectory]) -> dict[str, Any]:
    """Count how the judge and exact match decided on the judged episodes. Raises UsageError if there are none."""
    counts, tasks, judges = Counter[tuple[bool, bool]](), defaultdict[str, list[float]](list), set[str]()
    for trajectory in trajectories:
        info = trajectory.turns[-1].info if trajectory.turns else {}
        record = info.get("judge")
        if isinstance(record, dict) and "em" in info:
            pair = bool(record["correct"]), info["em"] >= 1.0
            counts[pair] += 1
            tasks[trajectory.task.id].append(float(pair[0] == pair[1]))
            judges.add(f"{record['model']} with {record['version']}")
    if not counts:
        raise UsageError("no answer of these episodes was judged by a language model; play with metric='judge'")
    total = counts.total()
    bounds = interval([fmean(tasks[task]) for task in sorted(tasks)], total)
    return {
        "episodes": total,
        "judges": sorted(judges),
        "agreement": (counts[True, True] + counts[False, False]) / total,
        "interval": [bounds.low, bounds.high],
        "kappa": _kappa(counts),
        "both_right": counts[True, True],
        "both_wrong": counts[False, False],
        "only_judge": counts[True, False],
        "only_em": counts[False, True],
    }


def _kappa(counts: Counter[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa; None if both always decide the same way, so that no agreement is by chance or not."""
    total = counts.total()
    judge = (counts[True, True] + counts[True, False]) / total
    em = (counts[True, True] + counts[False, True]) / total
    chance = judge * em + (1.0 - judge) * (1.0 - em)
    agreement = (counts[True, True] + counts[False, False]) / total
    return None if chance >= 1.0 else (agreement - chance) / (1.0 - chance)
