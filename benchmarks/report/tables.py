"""Tables that have another form than a section's rows."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.report.readers import cost_row
from benchmarks.report.text import number, table
from benchmarks.scale_plan import costs

_PLACES = {
    "here": "in process",
    "workers": "two workers",
    "served": "served",
    "server": "served",
    "its client": "its client",
}
_FEW_MEASURED = ("SciWorld", "MiniWoB", "WebArena")
"""Scenarios measured with fewer than 1,000 concurrent episodes."""
PARTS = ("generate", "train", "environment", "other")


def scale_table(result: Any) -> str:
    """Every scenario in every backend."""
    names = ("episodes/s a core", "CPU s of 1,000 episodes", "GiB of 1,000 at a time", "cores of 1,000 at a time")
    more = ("GiB of 10,000 at a time", "cores of 10,000 at a time")
    lines = []
    for cost in costs(result):
        row = cost_row(cost)
        beyond = " *" if cost.scenario in _FEW_MEASURED else ""
        cells = [number(row[name]) + (beyond if "at a time" in name else "") for name in names]
        cells += [f"{number(row[name])} *" for name in more]
        lines.append((cost.scenario, _PLACES.get(cost.place, cost.place), f"{row['turns']:.1f}", *cells))
    heads = ("", "where", "turns", "episodes/s per core", "CPU s per 1,000 episodes")
    return table((*heads, "1,000 concurrent: GiB", "cores", "10,000 concurrent: GiB", "cores"), lines)


def cores_table(result: Any) -> str:
    """Episodes per second on one core and on two."""
    rows, lines = result["rows"], []
    for name in [name for name in rows if name.endswith(", 1")]:
        scenario, backend, _ = name.split(", ")
        one, two = rows[name], rows.get(f"{scenario}, {backend}, 2")
        cells = [_spread(one), _spread(two) if two else "", _pairs(two, one) if two else ""]
        lines.append((scenario, backend, *cells))
    return table(("", "where", "one core, episodes/s", "two cores, episodes/s", "ratio"), lines)


def _spread(row: Any) -> str:
    samples = row["samples"]
    around = f" ({number(min(samples))} – {number(max(samples))})" if len(samples) > 1 else ""
    return number(row["median"]) + around


def _pairs(row: Any, other: Any) -> str:
    """The ratio, from the ratios of the repeats."""
    found = [mine / theirs for mine, theirs in zip(row["samples"], other["samples"], strict=True)]
    around = f" ({number(min(found))} – {number(max(found))})" if len(found) > 1 else ""
    return number(statistics.median(found)) + around


def growth_table(result: Any) -> str:
    """Resources for a growing number of open episodes, with the model's prediction."""
    lines = []
    for name, row in result["ten thousand"].items():
        for level in sorted(map(int, row["CPU s"]["step"])):
            cpu = [number(1e3 * row["CPU s"][method][str(level)]) for method in ("reset", "step")]
            predicted = number(row["MiB by the model"]) if level == row["episodes"] else ""
            lines.append((name, f"{level:,}", *cpu, number(row["MiB"][str(level)]), predicted))
    heads = ("", "open episodes", "CPU per reset, ms", "CPU per turn, ms", "MiB", "predicted MiB")
    return table(heads, lines)


def extras_table(result: Any) -> str:
    """Packages and size of each extra alone, and the test that was run with it."""
    lines = []
    for name, row in result["extras"].items():
        title = name if name == "core" else f"`{name}`"
        if "error" in row:
            lines.append((title, "", "", "", f"failed: {row['error']}"))
            continue
        figures = (row["packages"], round(row["megabytes"]), round(1e3 * row["import_seconds"]))
        lines.append((title, *(f"{figure:,}" for figure in figures), row["did"]))
    return table(("", "packages", "MB", "import, CPU ms", "tried"), lines)


def lockstep_table(result: Any) -> str:
    """Speedups by tail and number of episodes, and for a stream."""
    rows, sizes = result["tails"], sorted({row["together"] for row in result["tails"]})
    streams = {row["tail"]: row for row in result["stream"]}
    lines = []
    for tail in dict.fromkeys(row["tail"] for row in rows):
        own = {row["together"]: row for row in rows if row["tail"] == tail}
        cells = [_speedup(own[size]) for size in sizes]
        lines.append((tail, *cells, _speedup(streams[tail]) if tail in streams else ""))
    waves = result["stream"][0]
    last = f"{waves['waves'] * waves['together']:,} through {waves['together']} slots"
    return table(("answer times", *(f"{size} episodes" for size in sizes), last), lines)


def _speedup(row: Any) -> str:
    samples = row["samples"]["times, rounds"]
    return f"{number(row['median']['times, rounds'])} ({number(min(samples))} – {number(max(samples))})"


def overhead_table(result: Any) -> str:
    """Shares of a training step."""
    lines = []
    for name, row in result["scenarios"].items():
        median, samples = row["median"], row["samples"]["environment and other, %"]
        shares = [number(median[f"{part}, %"]) for part in PARTS]
        both = f"{number(median['environment and other, %'])} ({number(min(samples))} – {number(max(samples))})"
        turns = number(median["turns an episode"]), number(median["environment, ms a turn"])
        lines.append((name, number(median["step, s"]), *shares, both, *turns))
    heads = ("", "step, s", "generate, %", "train, %", "environment, %", "other, %", "outside the model, %")
    return table((*heads, "turns per episode", "environment, ms per turn"), lines)
