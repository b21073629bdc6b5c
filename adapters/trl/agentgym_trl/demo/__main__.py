"""`python -m agentgym_trl.demo`, the program behind `scripts/demo`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_trl.demo.quiet import quiet
from agentgym_trl.demo.settings import SCENARIOS, quick

_T = TypeVar("_T")


def main() -> int:
    """Train, evaluate, report. Returns the exit code."""
    options = _parser().parse_args()
    console = Console(stderr=True)
    quiet()
    try:
        return run_demo(
            options.out, seed=options.seed, is_quick=options.quick, scenario=options.scenario, console=console
        )
    except KeyboardInterrupt:
        console.print(f"\n[yellow]Stopped.[/] The files written so far are in {options.out}")
        return 130
    except (AgentGymError, OSError) as error:
        console.print(f"[red]error:[/] {error}")
        return 2 if isinstance(error, UsageError) else 1


def run_demo(out: Path, *, seed: int, is_quick: bool, console: Console, scenario: str = "textcraft") -> int:
    """Run all stages, from an untrained model to the report."""
    _claim(out)
    clock = _Clock(console)
    console.rule("[bold]An agent that imitates a careless teacher learns from its own experience")
    clock("load libraries", _import_libraries)
    from agentgym_trl.demo import arms, report, stages

    settings = SCENARIOS[scenario](seed=seed)
    settings = quick(settings) if is_quick else settings
    with closing(arms.Background(arms.CONTROLS, out, settings)) as controls:
        demos = clock("teacher plays", lambda: stages.make_demonstrations(out, settings))
        report.print_teacher(console, demos, settings)
        tiny = clock("make a small model", lambda: stages.make_tiny_model(out, settings, demos))
        warm_folder, grpo_folder = (out / arms.folder(name) for name in (arms.WARM, arms.GRPO))
        clock("warm start", lambda: stages.warm_start(tiny, warm_folder, demos, settings, console))
        controls.begin()
        warm = arms.finish_arm(arms.WARM, out, settings, warm_folder, clock.cpu_seconds["warm start"])
        report.print_line(console, warm)
        trained = [clock("GRPO", lambda: arms.run_arm(arms.GRPO, out, settings, console))]
        report.print_line(console, trained[0])
        if settings.evol_rounds:
            trained.append(clock("AgentEvol", lambda: arms.run_arm(arms.AGENTEVOL, out, settings, console)))
        found = [warm, *clock("controls", lambda: controls.wait(console)), *reversed(trained)]
    report.write(out, settings, found, stages.training_curve(grpo_folder), clock.seconds)
    facts = {
        "scenario": scenario,
        "settings": asdict(settings),
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "arms": report.results(found),
    }
    (out / "results.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    report.print_summary(console, found, settings, out, sum(clock.seconds.values()))
    return 0


def _import_libraries() -> None:
    from agentgym_trl.demo import arms

    arms.use_one_thread()


class _Clock:
    """Runs the stages, prints their names, and records the seconds of each."""

    def __init__(self, console: Console) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self._console = console

    def __call__(self, name: str, stage: Callable[[], _T]) -> _T:
        began, cpu = time.perf_counter(), time.process_time()
        result = stage()
        self.seconds[name] = round(time.perf_counter() - began, 1)
        self.cpu_seconds[name] = round(time.process_time() - cpu, 1)
        self._console.print(f"[green]✓[/] {name} [dim]({self.seconds[name]:.0f} s)[/]", highlight=False)
        return result


def _claim(out: Path) -> None:
    """Make the output directory; raise UsageError if it is not empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty directory; remove it, or choose another directory with --out")
    out.mkdir(parents=True, exist_ok=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="directory for all output")
    parser.add_argument("--seed", type=int, default=0, help="seed of model, demonstrations and training")
    parser.add_argument("--scenario", choices=SCENARIOS, default="textcraft", help="the environment to learn")
    parser.add_argument("--quick", action="store_true", help="a short version, about 45 seconds on two quiet cores")
    return parser


if __name__ == "__main__":
    sys.exit(main())
