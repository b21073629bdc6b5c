"""Figures as Markdown: numbers, tables, and how a section was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report.figures import Figure
from benchmarks.report.sections import Section

NOT_RUN = "*Not run yet.*"
STALE = "*Stale: the code that this section measures has changed since.*"
DAGGER = "† Stale: measured with an earlier version of the code."
_HEADS = ("", "ours", "repeats", "baseline value", "baseline", "speedup", "target", "met")


def number(value: float) -> str:
    """Three significant digits, with thousands separators."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}"


def with_unit(value: float, unit: str) -> str:
    """A number with its unit, if it has one."""
    return _put(number(value), unit)


def _put(shown: str, unit: str) -> str:
    return f"{shown}{'' if unit in ('', '%', '×', '/s') else ' '}{unit}"


def between(samples: Sequence[float]) -> str:
    """The range over repeats."""
    return f"{number(min(samples))} – {number(max(samples))}" if len(samples) > 1 else ""


def speedup(figure: Figure) -> str:
    """The speedup, with its range over repeats if both sides were repeated."""
    if figure.speedup is None:
        return ""
    spread = f" ({between(figure.speedup_samples)})" if len(figure.speedup_samples) > 1 else ""
    return f"**{number(figure.speedup)}**{spread}"


def target(figure: Figure) -> str:
    """The target."""
    aim, row = figure.row.target, figure.row
    if aim is None:
        return ""
    if row.of_ratio:
        return f"≥ {aim:g} times"
    sign = "" if aim == 0 else "≥ " if row.better == "more" else "≤ "
    return sign + _put(f"{aim:,.0f}" if aim >= 10 else f"{aim:g}", row.unit)


def met(figure: Figure) -> str:
    """Yes or no: the target was met."""
    return {None: "", True: "yes", False: "**no**"}[figure.met]


def cells(figure: Figure) -> tuple[str, ...]:
    """A row of a section's table."""
    row = figure.row
    theirs = "" if figure.peer is None else with_unit(figure.peer, row.unit)
    whose = row.by if figure.peer is not None else ""
    ours = with_unit(figure.ours, row.unit)
    return (row.name, ours, between(figure.samples), theirs, whose, speedup(figure), target(figure), met(figure))


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table without its empty columns."""
    kept = [index for index in range(len(heads)) if index == 0 or any(line[index] for line in lines)]
    rows = [[heads[index] for index in kept], ["---"] * len(kept)]
    rows += [[line[index] for index in kept] for line in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def section_table(figures: Sequence[Figure]) -> str:
    """The table of a section."""
    return table(_HEADS, [cells(figure) for figure in figures])


def how(section: Section, result: Any, record: Mapping[str, Any]) -> str:
    """Gaps, the command, the date, the machine and the versions of the baselines."""
    command = record.get("command") or f"python {' '.join(section.command())}"
    parts = [f"`{command}`", *_where(result, record)]
    if result is not None:
        parts.append(f"[JSON](../benchmarks/results/{section.file})")
    return "\n\n".join([*gaps(result), " · ".join(parts)])


def gaps(result: Any) -> list[str]:
    """Sides that were not run, or failed in some repeats, with the reason, if the result records it."""
    if not isinstance(result, Mapping) or "not run" not in result:
        return []
    lines = [f"Not run: {name} ({why})" for name, why in result["not run"].items()]
    for name, side in result["sides"].items():
        if failed := side.get("failed"):
            lines.append(f"Failed in {len(failed)} of {result['repeats']} repeats: {name} ({failed[-1]})")
    return lines


def _where(result: Any, record: Mapping[str, Any]) -> list[str]:
    known = result.get("machine", {}) if isinstance(result, Mapping) else {}
    machine: Mapping[str, Any] = {**known, **record.get("machine", {})}
    parts = [record["date"]] if "date" in record else []
    if machine:
        cpu = f"{machine['cpu']}, " if "cpu" in machine else ""
        parts.append(f"{cpu}{machine['cores']} cores, Python {machine['python']}")
    packages = (f"{name} {version}".strip() for name, version in record.get("packages", {}).items())
    return [*parts, *filter(None, [", ".join(packages)])]
