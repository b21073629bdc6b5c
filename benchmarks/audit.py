"""The adversarial audit of every environment: attackers, episodes, best scores, floors and seconds.

    python -m benchmarks.audit [--out benchmarks/results/audit.json] [--budget SECONDS] [--seed N] [ENV ...]

Every group of every environment is attacked, in parts with some tasks of a group each. The parts take turns, so that
all groups are played equally often when the budget ends. With `--parts FOLDER`, each part is a file there, and a later
run plays those that are missing. `--out` keeps the results of environments that are not named. The exit code
is 1 after a finding.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from agentgym_envs.audit import audit
from agentgym_envs.audit.judging import LUCK, chance_of
from agentgym_envs.audit.scenes import kind_of
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.task import TaskSet, TaskTable
from agentgym_envs.validate import ValidationSubject, load_subject
from benchmarks.common import machine


class Target(NamedTuple):
    """An environment, and how it is divided.

    Attributes:
        tasks: the tasks of a group in a part.
        parts: the parts of a group; 0 for all its templates.
        every: each task meets every fifth attacker, say.
        least: the seconds that a part gets at least, if they are left.
        without: the arguments of another table, whose templates are left out.
    """

    env: str
    tasks: int
    parts: int = 1
    every: int = 1
    least: float = 0.0
    arguments: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    without: dict[str, Any] | None = None


REWARDS = {"format_reward": 0.2, "retrieval_score": 0.1}
TARGETS = {
    "TextCraft": Target("AgentGym/TextCraft-v0", 10),
    "TextCraft, invented": Target("AgentGym/TextCraft-v0", 5, arguments={"worlds": "invented"}),
    "BabyAI": Target("AgentGym/BabyAI-v0", 6),
    "BabyAI, primitive": Target("AgentGym/BabyAI-v0", 6, arguments={"actions": "primitive"}),
    "Search": Target("AgentGym/Search-v0", 12, 2),
    "SearchRetry": Target("AgentGym/SearchRetry-v0", 6),
    "SearchPages": Target("AgentGym/SearchPages-v0", 6),
    "SearchPages, paid form": Target("AgentGym/SearchPages-v0", 4, every=3, arguments=REWARDS),
    "TextCraftCoop": Target("AgentGym/TextCraftCoop-v0", 5),
    "PlannerActor": Target("AgentGym/PlannerActor-v0", 5),
    "SciWorld": Target("AgentGym/SciWorld-v0", 1, 5, every=5, least=90.0),
    "MiniWoB": Target("AgentGym/MiniWoB-v0", 4, 5, every=4),
    "WebArena": Target("AgentGym/WebArena-v0", 6, 0, every=7),
    "WebArena, table 2": Target(
        "AgentGym/WebArena-v0", 6, 0, every=7, arguments={"table_version": 2}, without={"table_version": 1}
    ),
}


class Part(NamedTuple):
    """Some tasks of a group. The number says how many such parts come before."""

    group: str
    number: int

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.number:03}-{self.group.replace('/', '-')}.json"


def subject_of(target: Target, budget: float) -> ValidationSubject:
    """The environment, without the tasks that are left out."""
    subject = load_subject(target.env, target.arguments, budget)
    if target.without is None:
        return subject
    tasks = tasks_of(target)

    def make() -> Any:
        env = subject.make()
        text_env(env).tasks = tasks
        return env

    return ValidationSubject(make, target.env, seconds=budget)


def tasks_of(target: Target) -> TaskSet:
    """The tasks that are attacked."""
    tasks = _all_tasks(target.env, target.arguments)
    if target.without is None:
        return tasks
    others = {kind_of(task) for task in _all_tasks(target.env, target.without).sample()}
    return TaskTable(tasks.name, tasks.version, [task for task in tasks.sample() if kind_of(task) not in others])


def _all_tasks(env_id: str, arguments: Mapping[str, Any]) -> TaskSet:
    with load_subject(env_id, arguments).fresh() as env:
        return text_env(env).tasks


def parts_of(target: Target) -> list[Part]:
    """All parts, one of each group after the other."""
    tasks = tasks_of(target)
    mixed = random.Random(0).sample(tasks.groups, len(tasks.groups))
    counts = dict.fromkeys(mixed, target.parts)
    if not target.parts:
        counts |= {group: -(-len(found) // target.tasks) for group, found in templates(tasks).items()}
    return [Part(group, number) for number in range(max(counts.values())) for group in mixed if number < counts[group]]


def templates(tasks: TaskSet) -> dict[str, set[str]]:
    """The templates, levels or pages of each group; none for tasks that are made on request."""
    found: dict[str, set[str]] = defaultdict(set)
    for task in tasks.tasks if isinstance(tasks, TaskTable) else ():
        found[task.group].add(kind_of(task))
    return found


def play(target: Target, part: Part, budget: float, seed: int) -> dict[str, Any] | None:
    """Attack the tasks of a part; None if there are none left, or if the time is too short for one."""
    subject = subject_of(target, budget)
    skip, groups = part.number * target.tasks, [part.group]
    try:
        report = audit(subject, tasks=target.tasks, groups=groups, seed=seed, skip=skip, every=target.every)
        return report.to_json() | {"every": target.every}
    except UsageError as error:
        print(f"{part.group}, part {part.number + 1}: {error}")
        return None


def measure(name: str, budget: float, folder: Path | None, seed: int) -> dict[str, Any]:
    """Attack an environment until the budget ends, and merge all parts."""
    target, end, reports = TARGETS[name], time.monotonic() + budget, list[dict[str, Any]]()
    place = None if folder is None else folder / name.replace(", ", "-").replace(" ", "-")
    parts = parts_of(target)
    for index, part in enumerate(parts):
        file = None if place is None else place / part.file
        known = json.loads(file.read_text(encoding="utf-8")) if file is not None and file.exists() else None
        if (left := end - time.monotonic()) > 0 and (known is None or known["unplayed"]):
            share = 1 / sum(later.number == part.number for later in parts[index:])
            known = play(target, part, max(share * left, min(left, target.least)), seed) or known
            if file is not None and known is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        if known is not None:
            reports.append(known)
    return merged(reports) | kinds(target, reports) | {"arguments": target.arguments}


def kinds(target: Target, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The number of groups; for a table also that of templates, levels or pages, and of those that were played."""
    tasks = tasks_of(target)
    found: dict[str, Any] = {"all_groups": len(tasks.groups), "kinds": None}
    if every := set[str]().union(*templates(tasks).values()):
        played = sum(group["tasks"] for report in reports for group in report["groups"])
        found |= {"kinds": len(every), "kinds_played": min(played, len(every))}
    return found


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The parts of an environment as one report. Wins are compared with luck again, over all parts."""
    return {
        "groups": [_group(rows) for rows in _by("group", reports, "groups").values()],
        "attackers": [_attacker(rows) for rows in _by("attacker", reports, "attackers").values()],
        "findings": [finding for report in reports for finding in report["findings"]],
        "unlikely": unlikely(reports),
        "parts": len(reports),
        "every": max((report["every"] for report in reports), default=1),
        **{name: sum(report[name] for report in reports) for name in ("episodes", "unplayed", "seconds")},
    }


def _by(key: str, reports: Sequence[dict[str, Any]], rows: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in (row for report in reports for row in report[rows]):
        found[row[key]].append(row)
    return found


def _group(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    tasks = sum(row["tasks"] for row in rows)
    mean: Callable[[Callable[[Any], float]], float] = lambda value: sum(row["tasks"] * value(row) for row in rows)  # noqa: E731
    counted = ("tasks", "detours", "detour_successes", "episodes")
    return rows[0] | {
        **{name: sum(row[name] for row in rows) for name in counted},
        "floor": mean(lambda row: row["floor"]["mean"]) / tasks,
        "oracle": mean(lambda row: row["oracle"]) / tasks,
        "best": fmean(row["best"] for row in rows),
    }


def _attacker(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    best = max(rows, key=lambda row: row["best"])
    return best | {name: sum(row[name] for row in rows) for name in ("episodes", "findings", "seconds")}


def unlikely(reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The variants of attackers that won more often, over all parts, than luck explains."""
    wins: dict[tuple[str, str, str], int] = defaultdict(int)
    chances: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for cell in (cell for report in reports for cell in report["cells"] if cell["chances"] is not None):
        key = cell["attacker"], cell["label"], cell["group"]
        wins[key] += cell["wins"]
        chances[key] += cell["chances"]
    return [
        dict(zip(("attacker", "label", "group"), key, strict=True), wins=wins[key], episodes=len(chances[key]))
        for key in wins
        if chance_of(wins[key], chances[key]) < LUCK
    ]


def table(result: dict[str, Any]) -> str:
    """The results as tables in Markdown: by environment, detours, and by family of attackers and environment."""
    environments = result["environments"]
    rows = [
        "| environment | groups | templates | tasks | share of attackers | episodes | findings | floor | best | oracle "
        "| not played | time |",
        f"|---|{'--:|' * 11}",
        *(f"| {name} | {' | '.join(_summary(report))} |" for name, report in environments.items()),
    ]
    families = list(dict.fromkeys(row["family"] for report in environments.values() for row in report["attackers"]))
    rows += ["", "| environment | groups | detours | successes | groups with losses |", "|---|--:|--:|--:|---|"]
    rows += [f"| {name} | {' | '.join(_detours(report))} |" for name, report in environments.items()]
    rows += ["", f"| environment | {' | '.join(families)} |", f"|---|{'--:|' * len(families)}"]
    for name, report in environments.items():
        cells = [_family(report, family) for family in families]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _summary(report: dict[str, Any]) -> list[str]:
    groups = report["groups"]
    tasks = sum(group["tasks"] for group in groups)
    means = [
        f"{sum(group['tasks'] * group[key] for group in groups) / tasks:.2f}" for key in ("floor", "best", "oracle")
    ]
    known = "-" if report["kinds"] is None else f"{report['kinds_played']} of {report['kinds']}"
    share = "all" if report["every"] == 1 else f"1 of {report['every']}"
    bad = len(report["findings"]) + len(report["unlikely"])
    counts = [f"{len(groups)} of {report['all_groups']}", known, tasks, share, f"{report['episodes']:,}", bad]
    return [str(cell) for cell in (*counts, *means, report["unplayed"], f"{report['seconds']:.0f} s")]


def _detours(report: dict[str, Any]) -> list[str]:
    groups = [group for group in report["groups"] if group["detours"]]
    detours, won = (sum(group[key] for group in groups) for key in ("detours", "detour_successes"))
    lost = [group["group"] for group in groups if group["detour_successes"] < group["detours"]]
    return [str(len(groups)), str(detours), str(won), ", ".join(lost)]


def _family(report: dict[str, Any], family: str) -> str:
    rows = [row for row in report["attackers"] if row["family"] == family]
    return f"{sum(row['episodes'] for row in rows):,}: {max(row['best'] for row in rows):.2f}"


def main() -> None:
    """Attack the named environments, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    parser.add_argument("--budget", type=float, default=3_600.0, help="seconds per environment (default: 3600)")
    parser.add_argument("--parts", type=Path, help="keep each part in this folder, and play those that are missing")
    parser.add_argument("--seed", type=int, default=0, help="selects the tasks (default: 0)")
    arguments = parser.parse_args()
    found, failed = {}, False
    if arguments.out and arguments.out.exists():
        found = json.loads(arguments.out.read_text(encoding="utf-8"))["environments"]
    for name in arguments.envs or TARGETS:
        found[name] = report = measure(name, arguments.budget, arguments.parts, arguments.seed)
        bad = [*report["findings"], *report["unlikely"]]
        print(
            f"{name}: {len(bad)} findings in {report['episodes']} episodes, {report['seconds']:.0f} s", *bad, sep="\n"
        )
        failed |= bool(bad)
        if arguments.out:
            whole = {"machine": machine(), "environments": {name: found[name] for name in TARGETS if name in found}}
            arguments.out.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
