"""The benchmark report: run every benchmark, keep its figures as JSON, and make docs/benchmarks.md from them.

    python -m benchmarks.report --list                       # the sections
    python -m benchmarks.report                              # run what is missing, into benchmark-results/
    python -m benchmarks.report --only textcraft vector      # some
    python -m benchmarks.report --out benchmarks/results --only web --again   # measure again and update the page
    python -m benchmarks.report --out benchmarks/results --stale              # those whose code has changed since
    python -m benchmarks.report --out benchmarks/results --render             # only write the page and its plots

Each section is a script that also runs by itself. They run one at a time, with one thread for every numeric library.
Baseline libraries are used from this Python if it has the pinned version; otherwise they are installed into a virtual
environment of the section, under --cache. Sections that have figures are skipped, so an interrupted report resumes.
The output of each script is in CACHE/logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report.render import Report, write
from benchmarks.report.runner import RunOptions, finished, run
from benchmarks.report.sections import SECTIONS
from benchmarks.report.venvs import ROOT, cache_folder


def main(words: Sequence[str] | None = None) -> int:
    """Return the number of sections that failed, as the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    options = parser.parse_args(words)
    console = Console(stderr=True)
    run_options = RunOptions(
        options.out, options.cache, options.quick, options.again, options.repeats, options.agentgym
    )
    if options.list:
        Console(width=130).print(listing(run_options))
        return 0
    names = options.only
    if options.stale:
        report, run_options = Report(options.out), run_options._replace(again=True)
        names = [name for name in names if report.stale(name)]
    failed = 0 if options.render else run_all(names, run_options, console)
    console.print(f"{write(run_options.out)} and its plots are written")
    return failed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the sections and which have figures")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the figures mean nothing")
    parser.add_argument("--again", action="store_true", help="also run finished sections")
    parser.add_argument("--stale", action="store_true", help="measure the sections again whose code has changed since")
    parser.add_argument("--render", action="store_true", help="run nothing, only write the page")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmark-results", help="folder of the figures")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of virtual environments and logs")
    parser.add_argument("--repeats", type=int, help="repeats of each measurement, where a script has them")
    parser.add_argument(
        "--agentgym", type=Path, help="a checkout of AgentGym's agentenv-babyai, the baseline of BabyAI"
    )


def run_all(names: Sequence[str], options: RunOptions, console: Console) -> int:
    """Run sections one after the other. Returns how many failed."""
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        console.print(f"[bold]{name}[/]: {SECTIONS[name].question}")
        outcome = run(SECTIONS[name], options)
        failed += outcome not in ("there", "done")
        console.print(f"  {outcome}", style="green" if outcome in ("there", "done") else "red", markup=False)
    return failed


def listing(options: RunOptions) -> Table:
    table = Table("section", "question", "script", "baselines", "minutes", f"in {options.out.name}/")
    for section in SECTIONS.values():
        baselines = ", ".join([*section.peers, *section.bare])
        there = "yes" if finished(section, options) else ""
        table.add_row(section.name, section.question, section.script, baselines, f"{section.minutes:g}", there)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
