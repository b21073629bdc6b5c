"""Measure how building and searching grow with the corpus, and model ten million passages.

    python -m benchmarks.search_growth [--sizes 25000,50000,100000,200000] [--target 10000000] [--out FILE.json]

Each size is measured as in `benchmarks.search_scale`: the same synthetic corpus, an index built by the command line,
and searches in another process. Every cost is fitted by a line in the number of passages, which minimises relative
errors. The fit is checked twice: without the largest size it must predict that size, and it must predict the million
passages in `benchmarks/results/search-scale.json`, which were measured earlier. Two parts that need memory for every
passage are measured at the target itself: comparing ids, and reading by offset (a JSONL corpus of a prebuilt index).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.search_scale import measure

RECORDED = Path(__file__).parent / "results" / "search-scale.json"
COSTS = {
    "indexing, CPU s": ("index", "cpu_seconds"),
    "indexing, most memory, MB": ("index", "peak_rss_mb"),
    "indexing, most private memory, MB": ("index", "peak_anonymous_mb"),
    "corpus file, MB": ("index", "corpus_mb"),
    "passages on disk, MB": ("index", "passages_mb"),
    "index on disk, MB": ("index", "engine_mb"),
    "a search, CPU ms": ("search", "batch 1", "ms"),
    "a search of a batch of 64, CPU ms": ("search", "batch 64", "ms"),
    "searching, private memory, MB": ("search", "anonymous_mb"),
}
IDS = """
import json, resource, sys, time
from pathlib import Path
import numpy as np
from agentgym_envs.search.retrieval.writing import IDS, find_duplicate_id
folder, count = Path(sys.argv[1]), int(sys.argv[2])
with open(folder / IDS, "wb") as file:
    for begin in range(0, count, 1_000_000):
        size = min(1_000_000, count - begin)
        file.write((np.arange(begin, begin + size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).tobytes())
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
assert find_duplicate_id(folder) is None
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu_seconds": time.process_time() - began, "memory_mb": (peak - before) / 1000}))
"""
OFFSETS = """
import json, resource, sys, time
from pathlib import Path
from agentgym_envs.search.retrieval.jsonl_store import JsonlStore
folder, count = Path(sys.argv[1]), int(sys.argv[2])
path = folder / "short.jsonl"
with open(path, "wb") as file:
    for begin in range(0, count, 100_000):
        file.write(b"".join(b'{"id":%d,"contents":"x"}\\n' % i for i in range(begin, min(begin + 100_000, count))))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = {}
for name in ("first", "again"):
    began = time.process_time()
    store = JsonlStore(path)
    found[f"{name}_cpu_seconds"] = time.process_time() - began
assert len(store) == count and store[count - 1].id == str(count - 1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found |= {"memory_mb": (peak - before) / 1000, "corpus_mb": path.stat().st_size / 1e6}
print(json.dumps(found))
"""


def cost(result: Mapping[str, Any], path: Sequence[str]) -> float:
    value: Any = result
    for key in path[:-1]:
        value = value[key]
    return 1000 / value["queries_per_cpu_second"] if path[-1] == "ms" else float(value[path[-1]])


def fit(sizes: Sequence[int], costs: Sequence[float]) -> tuple[float, float]:
    """The line a + b * n with the least squares of relative errors."""
    weights = 1 / np.array(costs)
    columns = np.stack([weights, np.array(sizes, float) * weights], axis=1)
    a, b = np.linalg.lstsq(columns, np.ones(len(costs)), rcond=None)[0].tolist()
    return a, b


def model(sizes: Sequence[int], costs: Sequence[float], target: int, million: float) -> dict[str, float]:
    """The fit of a cost, its predictions, and their relative errors where the truth is known."""
    a, b = fit(sizes, costs)
    shorter = fit(sizes[:-1], costs[:-1])
    largest, at_million = shorter[0] + shorter[1] * sizes[-1], a + b * 1_000_000
    a_all, b_all = fit([*sizes, 1_000_000], [*costs, million])
    return {
        "largest_error": largest / costs[-1] - 1,
        "million": at_million,
        "million_measured": million,
        "million_error": at_million / million - 1,
        "target": a + b * target,
        "target_with_million": a_all + b_all * target,
    }


def run_script(script: str, count: int, folder: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as work:
        command = [sys.executable, "-c", script, work, str(count)]
        done = subprocess.run(command, check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_growth(sizes: Sequence[int], target: int, folder: Path | None) -> dict[str, Any]:
    measured = []
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            measured.append(measure(size, "tantivy", Path(work)))
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    costs = {name: [cost(result, path) for result in measured] for name, path in COSTS.items()}
    million = {name: cost(recorded, path) for name, path in COSTS.items()}
    fitted = {name: model(sizes, costs[name], target, million[name]) for name in COSTS} if sizes else {}
    return {
        "machine": machine(),
        "sizes": list(sizes),
        "target": target,
        "measured": costs,
        "model": fitted,
        "ids": run_script(IDS, target, folder),
        "offsets": run_script(OFFSETS, target, folder),
    }


def show(result: Mapping[str, Any]) -> None:
    sizes = [f"{size:,}" for size in result["sizes"]]
    target = f"{result['target']:,}"
    table = Table("cost", *sizes, "largest: error", "million: error", f"{target}", "with the million")
    for name, figures in result["model"].items():
        costs = [f"{value:,.2f}" for value in result["measured"][name]]
        errors = [f"{figures[key]:+.0%}" for key in ("largest_error", "million_error")]
        table.add_row(name, *costs, *errors, *(f"{figures[k]:,.1f}" for k in ("target", "target_with_million")))
    Console(width=200).print(table)
    for part in ("ids", "offsets"):
        print(part, "at", target, {name: round(value, 2) for name, value in result[part].items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes",
        default="25000,50000,100000,200000",
        help='passages of each measured corpus; "" only measures the parts',
    )
    parser.add_argument("--target", type=int, default=10_000_000, help="number of passages to model")
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's temporary folder)")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",") if size]
    result = measure_growth(sizes, arguments.target, arguments.folder)
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
