"""Does reinforcement learning help in the quick start? Three seeds, and the control of more supervised training.

    python benchmarks/quickstart.py --seeds 0 1 2 --control --out benchmarks/results/quickstart.json

Runs `scripts/demo`'s own stages for each seed. The control spends the CPU time that GRPO took on more supervised epochs
over the same demonstrations, from the same warm start, and is measured on the same tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--control", action="store_true", help="also run the control, for the first seed")
    parser.add_argument("--work", type=Path, help="directory for the runs; one that holds a finished run is read")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    console = Console(stderr=True)
    work = options.work or Path(tempfile.mkdtemp(prefix="quickstart-"))
    runs = {str(seed): run_seed(work / f"seed-{seed}", seed, console) for seed in options.seeds}
    rows: dict[str, Any] = {"runs": runs}
    if options.control:
        first = options.seeds[0]
        rows["control"] = run_control(work / f"seed-{first}", runs[str(first)], console)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    Console().print(table_of(rows))


def run_seed(out: Path, seed: int, console: Console) -> dict[str, Any]:
    """The figures of one demo run, made unless they are there."""
    from agentgym_trl.demo.__main__ import run_demo

    if not (out / "results.json").exists():
        run_demo(out, seed=seed, is_quick=False, console=console)
    figures: dict[str, Any] = json.loads((out / "results.json").read_text())
    return figures


def run_control(out: Path, figures: dict[str, Any], console: Console) -> dict[str, Any]:
    """More supervised epochs over the same demonstrations, for the CPU time that GRPO took."""
    import time

    from agentgym_envs.evaluate import paired_difference
    from agentgym_envs.trajectory import read_trajectories
    from agentgym_trl.demo import stages
    from agentgym_trl.demo.settings import DemoSettings

    settings = DemoSettings(**figures["settings"])
    cpu = figures["cpu_seconds"]
    steps = round(settings.warm_steps * cpu["GRPO"] / cpu["warm start"])
    more = replace(settings, warm_steps=steps, warm_learning_rate=settings.warm_learning_rate / 3)
    demonstrations = list(read_trajectories(out / "demos.jsonl"))
    began = time.process_time()
    model = stages.warm_start(out / "warm-start", out / "control", demonstrations, more, console, "control (more SFT)")
    spent = time.process_time() - began
    before = stages.measure(out / "warm-start", settings, console)
    after = stages.measure(model, settings, console)
    gains = [paired_difference(b.trajectories, a.trajectories).to_json() for b, a in zip(before, after, strict=True)]
    results = [{"tasks": a.name, "after": asdict(a.metrics), "gain": g} for a, g in zip(after, gains, strict=True)]
    return {"steps": steps, "cpu_seconds": round(spent, 1), "grpo_cpu_seconds": cpu["GRPO"], "results": results}


def table_of(rows: dict[str, Any]) -> Table:
    table = Table(title="Success on held-out tasks, %, and gain in points with its 95 % interval over tasks")
    for name in ("run", "tasks", "warm start", "after", "gain"):
        table.add_column(name)
    for seed, run in rows["runs"].items():
        for row in run["results"]:
            before = f"{100 * row['before']['success']['mean']:.0f}"
            table.add_row(f"GRPO, seed {seed}", row["tasks"], before, *_after(row))
    for row in rows.get("control", {}).get("results", []):
        table.add_row("control: more SFT", row["tasks"], "", *_after(row))
    return table


def _after(row: dict[str, Any]) -> tuple[str, str]:
    gain = row["gain"]
    spread = f"{100 * gain['mean']:+.0f} [{100 * gain['low']:+.0f}, {100 * gain['high']:+.0f}]"
    return f"{100 * row['after']['success']['mean']:.0f}", spread


if __name__ == "__main__":
    main()
