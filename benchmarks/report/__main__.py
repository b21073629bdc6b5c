"""Every figure of this project: measured again, kept as JSON, and made into the page docs/benchmarks.md.

    python -m benchmarks.report --list                       # the chapters
    python -m benchmarks.report                              # all that is not there yet, into benchmark-out/
    python -m benchmarks.report --only textcraft vector      # some
    python -m benchmarks.report --out docs --only web --again    # measure anew what docs has, and renew the page
    python -m benchmarks.report --out docs --render          # only make the page and its pictures, from the JSON

Each chapter is a script that also runs by itself. They run one at a time, with one thread for every numeric library.
What stands beside ours is used from this Python if it is there in the pinned version, else it is installed into a
virtual environment of the chapter's own, under --cache. A chapter whose figures are there is not run again, so a book
that was stopped goes on where it was. What each script prints is in CACHE/logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report.render import write
from benchmarks.report.runner import Wish, finished, run
from benchmarks.report.sections import CHAPTERS
from benchmarks.report.venvs import ROOT, cache_folder


def main(words: Sequence[str] | None = None) -> int:
    """Exit status: how many chapters failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    options = parser.parse_args(words)
    console = Console(stderr=True)
    wish = Wish(options.out, options.cache, options.quick, options.again, options.repeats, options.agentgym)
    if options.list:
        Console(width=130).print(listing(wish))
        return 0
    failed = 0 if options.render else run_all(options.only, wish, console)
    console.print(f"{write(wish.out)} and its pictures are written")
    return failed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="show the chapters, and which have figures")
    parser.add_argument("--only", nargs="+", choices=list(CHAPTERS), default=list(CHAPTERS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs; the figures say nothing")
    parser.add_argument("--again", action="store_true", help="also run what is finished")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmark-out", help="folder of the figures and the page")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of virtual environments and logs")
    parser.add_argument("--repeats", type=int, help="how often everything is measured, where a script has repeats")
    parser.add_argument("--agentgym", type=Path, help="AgentGym's folder agentenv-babyai, to stand beside BabyAI")


def run_all(names: Sequence[str], wish: Wish, console: Console) -> int:
    """Run chapters one after the other; how many failed."""
    wish.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        console.print(f"[bold]{name}[/]: {CHAPTERS[name].question}")
        outcome = run(CHAPTERS[name], wish)
        failed += outcome not in ("there", "done")
        console.print(f"  {outcome}", style="green" if outcome in ("there", "done") else "red", markup=False)
    return failed


def listing(wish: Wish) -> Table:
    table = Table("chapter", "question", "script", "beside ours", "minutes", f"in {wish.out.name}/")
    for chapter in CHAPTERS.values():
        beside = ", ".join([*chapter.peers, *chapter.bare])
        there = "yes" if finished(chapter, wish) else ""
        table.add_row(chapter.name, chapter.question, chapter.script, beside, f"{chapter.minutes:g}", there)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
