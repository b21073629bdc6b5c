"""Do horizons that grow learn more from the same rollout tokens than fixed ones? See `docs/study.md`.

python -m benchmarks.study run --work runs/study --minutes 9     # again and again, until it says that all is done
python -m benchmarks.study render --work runs/study
python -m benchmarks.study gpu --model MODEL --work runs/study-gpu --minutes 9
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

from benchmarks.common import machine  # noqa: E402
from benchmarks.study import collapse, collapse_page, collapse_plot, figures, gpu, page, pieces, plots  # noqa: E402
from benchmarks.study.arms import ARMS  # noqa: E402
from benchmarks.study.budget import Deadline  # noqa: E402
from benchmarks.study.settings import FIRST_SEED, GPU, HORIZONS, SCENARIOS, STARTS, choose  # noqa: E402

ROOT = Path(__file__).parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"


def main(argv: list[str] | None = None) -> int:
    """Returns 0 if all is done, 3 if pieces are left."""
    options = _parser().parse_args(argv)
    return int(options.command(options))


def run(options: argparse.Namespace) -> int:
    scenarios = choose(options.only, options.set)
    jobs = pieces.jobs_of(scenarios, options.seeds, options.starts, options.arms)
    done = pieces.run_study(options.work, scenarios, jobs, options.jobs, options.minutes, options.set)
    return 0 if done else pieces.STOPPED


def render(options: argparse.Namespace) -> int:
    """Write figures, plot and tables from the finished runs; without --work, only the page from the figures.

    Scenarios and seeds without runs in --work keep their figures, so several computers can share the seeds.
    """
    out: Path = options.docs
    results: Path = options.results
    if options.work is not None:
        found = figures.collect(options.work, list(SCENARIOS.values()))
        known = read(results / "study.json") or {"scenarios": {}, "collapse": {}}
        lab = collapse_page.collect(options.work) or known["collapse"]
        both = {"scenarios": figures.merge(known["scenarios"], found), "collapse": lab}
        write(results / "study.json", {"machine": machine(), **both})
    kept, of_gpu = (read(results / name) for name in ("study.json", "study-gpu.json"))
    if kept and kept["scenarios"]:
        plots.plot(out / "study.png", kept["scenarios"])
    if kept and kept["collapse"]:
        collapse_plot.plot(out / "collapse.png", kept["collapse"])
    text = (out / "study.md").read_text(encoding="utf-8")
    (out / "study.md").write_text(page.fill(text, kept, of_gpu), encoding="utf-8")
    return 0


def on_gpu(options: argparse.Namespace) -> int:
    plan = gpu.GpuPlan(
        str(options.model),
        options.work,
        tuple(options.only),
        tuple(options.algorithms),
        tuple(options.horizons),
        **options.set,
    )
    done = gpu.run_gpu(plan, Deadline(None if options.minutes is None else time.time() + 60 * options.minutes))
    if (found := gpu.gpu_figures(plan))["runs"]:
        write(options.out, found)
    return 0 if done else pieces.STOPPED


def read(path: Path) -> dict | None:
    """A file of figures, if there is one."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(path: Path, value: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    _add_run(commands.add_parser("run", help="train and measure on the CPU"))
    tables = commands.add_parser("render", help="figures, plot and tables of docs/study.md")
    tables.add_argument("--work", type=Path, help="the runs; without it only the page is written")
    tables.add_argument("--results", type=Path, default=RESULTS, help="the directory of study.json")
    tables.add_argument("--docs", type=Path, default=DOCS, help="the directory of study.md")
    tables.set_defaults(command=render)
    _add_gpu(commands.add_parser("gpu", help="a chat model, by agentgym train and eval"))
    return parser


def _add_common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--work", type=Path, required=True, help="directory for the runs; finished ones are read")
    parser.add_argument("--set", type=json.loads, default={}, metavar="JSON", help="other settings, for a look")
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, help="these scenarios (default: all)")
    most = max(settings.seeds for settings in SCENARIOS.values())
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(FIRST_SEED, FIRST_SEED + most)))
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS))
    arms = {**ARMS, **collapse.LAB}
    parser.add_argument(
        "--arms", nargs="+", choices=arms, metavar="ARM", default=list(arms), help=f"of {', '.join(arms)}"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--minutes", type=float, help="stop then; the same command goes on")
    parser.set_defaults(command=run)


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--model", required=True, help="a chat model: a directory, or a name on the hub")
    parser.add_argument("--only", nargs="+", choices=GPU, default=list(GPU), help="these scenarios (default: all)")
    parser.add_argument("--algorithms", nargs="+", choices=gpu.ALGORITHMS, default=list(gpu.ALGORITHMS))
    parser.add_argument("--horizons", nargs="+", choices=HORIZONS, default=["scalinginter", "long"])
    parser.add_argument("--minutes", type=float, help="stop then; the same command goes on")
    parser.add_argument("--out", type=Path, default=RESULTS / "study-gpu.json", help="JSON file for the figures")
    parser.set_defaults(command=on_gpu)


if __name__ == "__main__":
    sys.exit(main())
