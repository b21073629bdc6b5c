"""The adversarial audit of every environment: attackers, episodes, best scores, floors and seconds.

    python -m benchmarks.audit [--out benchmarks/results/audit.json] [--budget SECONDS] [--tasks N] [ENV ...]

Every group of every environment is attacked. `--budget` bounds each environment; what was not played is counted in the
result, and `--out` keeps the results of environments that are not named.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.audit import AuditReport, audit
from agentgym_envs.validate import load_subject
from benchmarks.common import machine


class Target(NamedTuple):
    """An environment with the number of tasks per group."""

    env: str
    tasks: int
    arguments: dict[str, Any] = {}  # noqa: RUF012 (never changed)


TARGETS = {
    "TextCraft": Target("AgentGym/TextCraft-v0", 40),
    "TextCraft, invented": Target("AgentGym/TextCraft-v0", 10, {"worlds": "invented"}),
    "BabyAI": Target("AgentGym/BabyAI-v0", 12),
    "BabyAI, primitive": Target("AgentGym/BabyAI-v0", 3, {"actions": "primitive"}),
    "Search": Target("AgentGym/Search-v0", 6),
    "SearchRetry": Target("AgentGym/SearchRetry-v0", 2),
    "TextCraftCoop": Target("AgentGym/TextCraftCoop-v0", 10),
    "PlannerActor": Target("AgentGym/PlannerActor-v0", 10),
    "SciWorld": Target("AgentGym/SciWorld-v0", 1),
    "MiniWoB": Target("AgentGym/MiniWoB-v0", 1),
    "WebArena": Target("AgentGym/WebArena-v0", 2),
    "WebArena, table 2": Target("AgentGym/WebArena-v0", 2, {"table_version": 2}),
}


def measure(target: Target, budget: float, tasks: int | None) -> AuditReport:
    """Attack an environment."""
    return audit(load_subject(target.env, target.arguments, budget), tasks=tasks or target.tasks)


def table(result: dict[str, Any]) -> str:
    """The results as two tables in Markdown: by environment, and by family of attackers and environment."""
    environments = result["environments"]
    rows = [
        "| environment | groups | tasks | episodes | findings | floor | best | oracle | detours | not played | time |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(f"| {name} | {' | '.join(_summary(report))} |" for name, report in environments.items()),
    ]
    families = list(dict.fromkeys(row["family"] for report in environments.values() for row in report["attackers"]))
    rows += ["", f"| environment | {' | '.join(families)} |", f"|---|{'--:|' * len(families)}"]
    for name, report in environments.items():
        cells = [_family(report, family) for family in families]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _summary(report: dict[str, Any]) -> list[str]:
    groups = report["groups"]
    tasks = sum(group["tasks"] for group in groups)
    detours, won = (sum(group[key] for group in groups) for key in ("detours", "detour_successes"))
    floor, best, oracle = (
        sum(group["tasks"] * value(group) for group in groups) / tasks
        for value in (lambda g: g["floor"]["mean"], lambda g: g["best"], lambda g: g["oracle"])
    )
    means = [f"{value:.2f}" for value in (floor, best, oracle)]
    counts = [len(groups), tasks, f"{report['episodes']:,}", len(report["findings"])]
    rest = [f"{won} of {detours}", report["unplayed"], f"{report['seconds']:.0f} s"]
    return [str(cell) for cell in (*counts, *means, *rest)]


def _family(report: dict[str, Any], family: str) -> str:
    rows = [row for row in report["attackers"] if row["family"] == family]
    return f"{sum(row['episodes'] for row in rows):,}: {max(row['best'] for row in rows):.2f}"


def main() -> None:
    """Attack the named environments, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    parser.add_argument("--budget", type=float, default=3_600.0, help="seconds per environment (default: 3600)")
    parser.add_argument("--tasks", type=int, help="tasks per group; default: by environment")
    arguments = parser.parse_args()
    found = {}
    if arguments.out and arguments.out.exists():
        found = json.loads(arguments.out.read_text(encoding="utf-8"))["environments"]
    for name in arguments.envs or TARGETS:
        report = measure(TARGETS[name], arguments.budget, arguments.tasks)
        print(f"{name}: {report.summary}, {report.seconds:.0f} s")
        found[name] = report.to_json() | {"arguments": TARGETS[name].arguments, "budget_s": arguments.budget}
        if arguments.out:
            whole = {"machine": machine(), "environments": {name: found[name] for name in TARGETS if name in found}}
            arguments.out.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
