"""`python -m agentgym_trl.demo`, the program behind `scripts/demo`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from agentgym_envs.errors import AgentGymError, UsageError

_T = TypeVar("_T")


def main() -> int:
    """Train, evaluate, report. Returns the exit code."""
    options = _parser().parse_args()
    console = Console(stderr=True)
    os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    try:
        return run_demo(options.out, seed=options.seed, is_quick=options.quick, console=console)
    except KeyboardInterrupt:
        console.print(f"\n[yellow]Stopped.[/] The files written so far are in {options.out}")
        return 130
    except (AgentGymError, OSError) as error:
        console.print(f"[red]error:[/] {error}")
        return 2 if isinstance(error, UsageError) else 1


def run_demo(out: Path, *, seed: int, is_quick: bool, console: Console) -> int:
    """Run all stages, from an untrained model to the report."""
    from transformers.utils import logging as transformers_logging

    from agentgym_trl.demo import plots, report, stages
    from agentgym_trl.demo.settings import DemoSettings, quick

    transformers_logging.disable_progress_bar()
    _claim(out)
    settings = quick(DemoSettings(seed=seed)) if is_quick else DemoSettings(seed=seed)
    clock = _Clock(console)
    console.rule("[bold]A small language model learns TextCraft")
    tiny = clock("tiny model", lambda: stages.make_tiny_model(out, settings))
    demos = clock("demonstrations", lambda: stages.make_demonstrations(out, settings))
    warm = clock("warm start", lambda: stages.warm_start(tiny, out / "warm-start", demos, settings, console))
    before = clock("evaluate", lambda: stages.measure(warm, settings, console, title="evaluate the warm start"))
    agent = clock("GRPO", lambda: stages.reinforce(warm, out / "grpo", settings, console))
    after = clock("evaluate again", lambda: stages.measure(agent, settings, console, title="evaluate after GRPO"))
    plots.plot_run(out / "learning_curve.png", stages.training_curve(out / "grpo"), before, after)
    report.write_report(out / "report.html", settings, before, after, clock.seconds)
    facts = {
        "settings": asdict(settings),
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "results": report.results(before, after),
    }
    (out / "results.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    report.print_summary(console, before, after, out)
    return 0


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
    parser.add_argument("--quick", action="store_true", help="a short version of all stages, about a minute")
    return parser


if __name__ == "__main__":
    sys.exit(main())
