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
    "Search": Target("AgentGym/Search-v0", 20),
    "SearchRetry": Target("AgentGym/SearchRetry-v0", 6),
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
