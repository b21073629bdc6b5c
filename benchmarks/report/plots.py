"""The plots of the report, in one style, from the figures alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.report.figures import Figure
from benchmarks.report.sections import SECTIONS, Section
from benchmarks.report.text import number
from benchmarks.scale_plan import costs

if TYPE_CHECKING:
    from benchmarks.report.render import Report

OURS, THEIRS, ACCENT = "#1f6feb", "#9aa5b1", "#d97706"
COLOURS = ("#1f6feb", "#0d9488", "#d97706", "#b91c1c", "#7c3aed", "#64748b", "#be185d")
STYLE: Mapping[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 130,
}
Draw = Callable[[Path, "Report"], None]


class Plot(NamedTuple):
    """A plot and what is written where it cannot be seen."""

    title: str
    draw: Draw


def save(path: Path, columns: int, paint: Callable[[Any], None], size: tuple[float, float] = (11, 4.2)) -> None:
    """Make axes side by side, have them painted, and write the file."""
    with plt.rc_context(dict(STYLE)):
        figure, axes = plt.subplots(1, columns, figsize=size)
        paint(axes)
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def plain(axis: Any) -> None:
    """Numbers on an axis as they are written, instead of powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value) if value < 1 else f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def headline(path: Path, report: Report) -> None:
    """Speedups of the headline figures that have a baseline."""
    pairs = [
        (name, figure)
        for name, section in SECTIONS.items()
        for figure in report.figures(name)
        if _is_short(section, figure)
    ]

    def paint(axes: Any) -> None:
        colours = dict(zip(dict.fromkeys(name for name, _ in pairs), COLOURS * 3, strict=False))
        for index, (name, figure) in enumerate(reversed(pairs)):
            _ratio(axes, index, figure, colours[name])
        labels = [f"{SECTIONS[name].title}: {figure.row.name} | {figure.row.by}" for name, figure in reversed(pairs)]
        axes.set_yticks(range(len(pairs)), labels, fontsize=8)
        axes.axvline(1, color="#111", linewidth=1)
        axes.set(xscale="log", xlabel="speedup over the baseline (log scale)", ylim=(-0.6, len(pairs) - 0.4))
        title = "Right of the line ours is better; whiskers: range over repeats; ▲ target"
        axes.set_title(title, loc="right")
        plain(axes.xaxis)
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.12)

    save(path, 1, paint, (12, 1 + 0.27 * len(pairs)))


def _is_short(section: Section, figure: Figure) -> bool:
    return bool(figure.speedup) and figure.row in [
        section.rows[index] for index in (*section.headline, *section.readme)
    ]


def _ratio(axes: Any, index: int, figure: Figure, colour: str) -> None:
    assert figure.speedup is not None
    axes.barh(index, figure.speedup - 1, left=1, height=0.62, color=colour, alpha=0.85 if figure.speedup >= 1 else 0.4)
    if len(figure.speedup_samples) > 1:
        low, high = min(figure.speedup_samples), max(figure.speedup_samples)
        axes.plot([low, high], [index, index], color="#111", linewidth=1.2, solid_capstyle="butt")
    if figure.row.of_ratio and figure.row.target:
        axes.plot(figure.row.target, index, "^", color="#111", markersize=5)
    at, side = (figure.speedup, "left") if figure.speedup >= 1 else (1, "left")
    shown = max([at, *figure.speedup_samples])
    axes.annotate(
        f"{number(figure.speedup)}×",
        (shown, index),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        ha=side,
        fontsize=8,
    )


def scale(path: Path, report: Report) -> None:
    """Memory by episodes, measured and by the line; and episodes per second of a core."""
    rows = [row for row in report.results["scale"]["rows"] if row["cost"]["place"] == "here"]
    colours = dict(zip([row["cost"]["scenario"] for row in rows], COLOURS, strict=False))

    def paint(axes: Any) -> None:
        for row in rows:
            cost, memory = row["cost"], {int(n): mib for n, mib in row["memory"]["MiB by episodes"].items()}
            _line(axes[0], memory, cost, colours[cost["scenario"]], 10_000)
        axes[0].set(xscale="log", yscale="log", xlabel="episodes open at a time", ylabel="MiB (PSS)")
        axes[0].set_title("Memory: measured (dots), and the model (line; dashed: extrapolated)")
        axes[0].legend(fontsize=8)
        plain(axes[0].xaxis)
        plain(axes[0].yaxis)
        _rates(axes[1], report, colours)

    save(path, 2, paint)


def _line(axes: Any, memory: Mapping[int, float], cost: Mapping[str, Any], colour: str, most: int) -> None:
    """Mark the counts at which another process starts."""
    counts, edge = sorted(memory), max(memory)
    axes.plot(counts, [memory[count] for count in counts], "o", color=colour, markersize=5, label=cost["scenario"])
    predicted = [cost["fixed"] + count * cost["episode"] for count in counts]
    axes.plot(counts, predicted, color=colour, linewidth=1.6)
    beyond = [edge, *(edge * factor for factor in (2, 4, 8, 16, 32, 64, 128, 256) if edge * factor < most), most]
    mib = [-(-count // cost["together"]) * cost["fixed"] + count * cost["episode"] for count in beyond]
    axes.plot(beyond, mib, "--", color=colour, linewidth=1.2)


def _rates(axes: Any, report: Report, colours: Mapping[str, str]) -> None:
    here = [cost for cost in costs(report.results["scale"]) if cost.place == "here"]
    values = [1 / cost.cpu(cost.turns.get("oracle", cost.turns["limit"])) for cost in here]
    bars = axes.bar([cost.scenario for cost in here], values, color=[colours[cost.scenario] for cost in here])
    axes.bar_label(bars, [number(value) for value in values], fontsize=9, padding=2)
    axes.set(yscale="log", ylabel="episodes per second of a busy core")
    plain(axes.yaxis)
    axes.set_title("Episodes of the oracle's length (SciWorld: 20 turns)")
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.15)


def lockstep(path: Path, report: Report) -> None:
    """Speedups by number of episodes, and by tail for one batch and a stream."""
    result = report.results["lockstep"]
    tails = list(dict.fromkeys(row["tail"] for row in result["tails"]))

    def paint(axes: Any) -> None:
        for colour, tail in zip(COLOURS, tails, strict=False):
            own = sorted((row for row in result["tails"] if row["tail"] == tail), key=lambda row: row["together"])
            middle = [row["median"]["times, rounds"] for row in own]
            sizes = [row["together"] for row in own]
            axes[0].plot(sizes, middle, "o-", color=colour, label=tail, markersize=4)
            spread = [row["samples"]["times, rounds"] for row in own]
            axes[0].fill_between(
                sizes, list(map(min, spread)), list(map(max, spread)), color=colour, alpha=0.1, linewidth=0
            )
        axes[0].set(xscale="log", xlabel="concurrent episodes", ylabel="speedup over rounds", ylim=(0, None))
        axes[0].set_xticks(sizes, sizes)
        axes[0].minorticks_off()
        axes[0].set_title("One batch, by the distribution of answer times; band: all recordings")
        axes[0].legend(fontsize=8, ncols=2, loc="lower right")
        _streams(axes[1], result, tails)

    save(path, 2, paint)


def _streams(axes: Any, result: Mapping[str, Any], tails: Sequence[str]) -> None:
    size = result["typical"]["together"]
    batch = {row["tail"]: row for row in result["tails"] if row["together"] == size}
    stream = {row["tail"]: row for row in result["stream"]}
    titles = (f"a batch of {size}", f"a stream of {result['stream'][0]['waves'] * size} through {size} slots")
    sides = ((-0.2, batch, THEIRS), (0.2, stream, OURS))
    for (shift, rows, colour), title in zip(sides, titles, strict=True):
        positions = [index + shift for index in range(len(tails))]
        bars = axes.bar(positions, [rows[t]["median"]["times, rounds"] for t in tails], 0.38, color=colour, label=title)
        axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=1)
    axes.set_xticks(range(len(tails)), tails, rotation=30, ha="right")
    axes.set_title("One batch, and a stream that refills free slots")
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=8, loc="upper left")
    axes.margins(y=0.2)


def overhead(path: Path, report: Report) -> None:
    """Shares of a step."""
    scenarios = report.results["overhead"]["scenarios"]
    colours = {"generate": THEIRS, "train": "#cbd5e1", "environment": OURS, "other": ACCENT}

    def paint(axes: Any) -> None:
        left = [0.0] * len(scenarios)
        for part, colour in colours.items():
            values = [row["median"][f"{part}, %"] for row in scenarios.values()]
            bars = axes.barh(list(scenarios), values, left=left, color=colour, label=part, height=0.6)
            axes.bar_label(bars, [f"{value:.1f}" if value >= 2 else "" for value in values], label_type="center")
            left = [begin + value for begin, value in zip(left, values, strict=True)]
        axes.invert_yaxis()
        axes.set(xlabel="share of the wall time of a training step, %", xlim=(0, 100))
        axes.grid(axis="y", visible=False)
        axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))

    save(path, 1, paint, (10, 1.6 + 0.55 * len(scenarios)))


def peers(path: Path, report: Report) -> None:
    """Microseconds per step in each library."""
    rows = []
    for name, side in report.results["peers"]["sides"].items():
        for figure, value in side["median"].items():
            if figure.endswith(", cpu us"):
                rows.append((f"{name}: {figure.removesuffix(', cpu us')}", value, name == "agentgym-envs"))

    def paint(axes: Any) -> None:
        ordered = sorted(rows, key=lambda row: -row[1])
        colours = [OURS if ours else THEIRS for _, _, ours in ordered]
        bars = axes.barh([label for label, _, _ in ordered], [value for _, value, _ in ordered], color=colours)
        axes.bar_label(bars, [number(value) for _, value, _ in ordered], padding=3)
        axes.set(xscale="log", xlabel="CPU of all processes, µs a step (log scale)")
        plain(axes.xaxis)
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.1)

    save(path, 1, paint, (10, 1.2 + 0.33 * len(rows)))


def serving(path: Path, report: Report) -> None:
    """CPU a step by how many environments share a request."""
    median = report.results["serving"]["median"]
    both = "client + server us per env-step"
    sizes = sorted(int(name.split()[1].rstrip(":")) for name in median if name.startswith("batch ") and both in name)

    def paint(axes: Any) -> None:
        for side, colour in (("client + server", OURS), ("client", "#0d9488"), ("server", THEIRS)):
            own = [median[f"batch {n}: {side} us per env-step"] for n in sizes]
            axes.plot(sizes, own, "o-", color=colour, label=f"ours, {side}")
        single = sum(median[f"OpenEnv, single {side} us per step"] for side in ("client", "server"))
        theirs = [single, median[f"OpenEnv, 16 sessions: {both}"]]
        axes.plot([1, 16], theirs, "D", color=ACCENT, markersize=8, label="OpenEnv, 1 and 16 sessions, client + server")
        axes.set(xlabel="environments that share a request", ylabel="CPU, µs a step", xscale="log", yscale="log")
        axes.set_xticks(sizes, sizes)
        axes.minorticks_off()
        plain(axes.yaxis)
        axes.legend(fontsize=9)

    save(path, 1, paint, (8, 3.6))


def cores(path: Path, report: Report) -> None:
    """One core and two; and memory up to 10,000 episodes, with the line through fewer."""
    result = report.results["cores"]
    rows = result["rows"]
    names = [name.removesuffix(", 1") for name in rows if name.endswith(", 1")]

    def paint(axes: Any) -> None:
        for shift, count, colour in ((-0.2, 1, THEIRS), (0.2, 2, OURS)):
            there = [
                (index, rows[f"{name}, {count}"]) for index, name in enumerate(names) if f"{name}, {count}" in rows
            ]
            bars = axes[0].bar([p + shift for p, _ in there], [r["median"] for _, r in there], 0.38, color=colour)
            axes[0].bar_label(bars, [number(row["median"]) for _, row in there], fontsize=7, padding=1)
            bars.set_label("one core" if count == 1 else "two cores")
        axes[0].set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
        axes[0].set(yscale="log", ylabel="episodes per second")
        axes[0].grid(axis="x", visible=False)
        plain(axes[0].yaxis)
        axes[0].legend(fontsize=8)
        for colour, (name, row) in zip(COLOURS, result["ten thousand"].items(), strict=False):
            _grown(axes[1], name, row, colour)
        axes[1].set(xscale="log", yscale="log", xlabel="episodes open at a time", ylabel="MiB (PSS)")
        plain(axes[1].xaxis)
        axes[1].set_yticks([50, 100, 200, 400])
        plain(axes[1].yaxis)
        axes[1].set_title("Measured (dots), and the line through fewer")
        axes[1].legend(fontsize=8)

    save(path, 2, paint)


def _grown(axes: Any, name: str, row: Mapping[str, Any], colour: str) -> None:
    memory = {int(count): mib for count, mib in row["MiB"].items()}
    counts = sorted(memory)
    axes.plot(counts, [memory[count] for count in counts], "o", color=colour, label=name)
    first, last = memory[1], row["MiB by the model"]
    slope = (last - first) / (counts[-1] - 1)
    axes.plot(counts, [first + slope * (count - 1) for count in counts], color=colour, linewidth=1.4)


def soak(path: Path, report: Report) -> None:
    """Memory of the servers while they are treated badly."""

    def paint(axes: Any) -> None:
        for colour, part in zip((OURS, ACCENT), report.results["soak"]["parts"], strict=False):
            share, mib = zip(*part["memory"]["curve"], strict=True)
            axes.plot(
                [100 * value for value in share], mib, color=colour, label=f"{part['name']}, {', '.join(part['envs'])}"
            )
        axes.set(xlabel="episodes played, %", ylabel="resident memory, MB", ylim=(0, None))
        axes.legend(fontsize=9, loc="lower right")

    save(path, 1, paint, (8, 3.2))


PLOTS: Mapping[str, Plot] = {
    "headline": Plot("How many times better, for the figures in short", headline),
    "serving": Plot("CPU of a step over HTTP by the size of a request", serving),
    "peers": Plot("Microseconds per step in each library", peers),
    "soak": Plot("Memory of the servers over the soak test", soak),
    "scale": Plot("Memory by concurrent episodes, and episodes per second of a core", scale),
    "cores": Plot("Episodes per second on one core and two, and memory up to 10,000 episodes", cores),
    "lockstep": Plot("Speedup over rounds", lockstep),
    "overhead": Plot("Shares of the wall time of a training step", overhead),
}
"""By the section's name; the first is of all."""
