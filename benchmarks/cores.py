"""Measure episodes per second on one core and on two, and test the memory model with 10,000 concurrent episodes.

    python -m benchmarks.cores [--out benchmarks/results/cores.json] [--only SCENARIO ...] [--repeats 3] [--quick]

Episodes are scripts of `benchmarks.scale`: the oracle's, or random commands for SciWorld. N cores are N processes, each
bound to a core of its own with all that it starts, as evaluation in shards or agent-loop workers would be. "local" has
the environments where `make_vec` puts them by default; "remote" has a server for each process, on the same core, so
that a figure is what client, HTTP and environment take together. A process has `MANY` environments, which step
together, all begin an episode when the last of them has ended, and go through the scripts in their order. Wall time,
from the first reset to the last step of those that were begun in time; what starts once (Java, browser, index) has been
started. One core and two, here and on a server, take turns in every repeat.

Then more and more episodes of the text worlds are open in one process, up to 10,000, and what they take is compared
with the line through the memory of up to 1,000.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import machine
from benchmarks.scale import SCENARIOS, Bench
from benchmarks.scale_load import Crowd, opened, warm_up
from benchmarks.scale_plan import line

MANY = {"TextCraft": 64, "BabyAI": 64, "Search": 64, "SciWorld": 4, "MiniWoB": 4, "WebArena": 4}
"""Environments of a process, in one call together."""
TEXT_WORLDS = ("TextCraft", "BabyAI", "Search")
LEVELS = (100, 1_000, 10_000)
BACKENDS = {"local": "here", "remote": "served"}
SECONDS = 10.0


def play(order: Mapping[str, Any]) -> dict[str, float]:
    """Bind this process to its core and play; episodes and the seconds they took."""
    os.sched_setaffinity(0, {order["core"]})
    with opened(dict(order)) as (make, _):
        first, crowd = Crowd(make, order["scripts"]), Crowd(make, order["scripts"])
        [(envs, _)] = first.grow(1)
        warm_up(first, envs, dict(order))
        crowd.grow(order["many"])
        first.close()
        Path(order["ready"]).touch()
        while not Path(order["go"]).exists():
            time.sleep(0.01)
        episodes, began = 0, time.perf_counter()
        while not episodes or time.perf_counter() - began < order["seconds"]:
            for envs, scripts in crowd.move_on():
                crowd.reset(envs, scripts)
                crowd.play(envs, scripts)
            episodes += crowd.finish()
        seconds = time.perf_counter() - began
        crowd.close()
    return {"episodes": episodes, "seconds": seconds}


def rate(order: dict[str, Any], cores: Sequence[int], folder: Path) -> float:
    """Episodes a second of one process on each of the cores, which begin together."""
    go = folder / "go"
    go.unlink(missing_ok=True)
    orders = [{**order, "core": core, "go": str(go), **paths(folder, core)} for core in cores]
    players = [start(own) for own in orders]
    try:
        for own, player in zip(orders, players, strict=True):
            wait_for(Path(own["ready"]), player)
        go.touch()
        if any([player.wait() for player in players]):
            raise SystemExit(f"a player of {order['env']} failed")
    finally:
        for player in players:
            player.terminate()
            player.wait()
    found = [json.loads(Path(own["out"]).read_text(encoding="utf-8")) for own in orders]
    return sum(one["episodes"] / one["seconds"] for one in found)


def paths(folder: Path, core: int) -> dict[str, str]:
    """Paths of a player process: its order, its ready signal and its figures."""
    return {name: str(folder / f"{name}-{core}") for name in ("order", "ready", "out")}


def start(order: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    Path(order["ready"]).unlink(missing_ok=True)
    Path(order["order"]).write_text(json.dumps(order), encoding="utf-8")
    return subprocess.Popen([sys.executable, "-m", "benchmarks.cores", "--play", order["order"]])


def wait_for(path: Path, player: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        if player.poll() is not None:
            raise SystemExit(f"a player ended with {player.returncode}")
        time.sleep(0.05)


def rates(name: str, bench: Bench, folder: Path, repeats: int, seconds: float) -> dict[str, Any]:
    """Rows of a scenario: by backend and number of cores."""
    scenario = SCENARIOS[name]
    scripts = bench.scripts(scenario)
    order = {"env": scenario.env, "scripts": scripts, "many": MANY[name], "seconds": seconds, "warm": scenario.warm}
    there, samples = sorted(os.sched_getaffinity(0)), dict[str, list[float]]()
    for _ in range(repeats):
        for title, backend in BACKENDS.items():
            own = {**order, "place": backend, "flags": scenario.flags}
            own["options"] = scenario.options if backend == "here" else {}
            for count in {1, min(2, len(there))}:
                samples.setdefault(f"{name}, {title}, {count}", []).append(rate(own, there[:count], folder))
    return {row: {"median": statistics.median(found), "samples": found} for row, found in samples.items()}


def grow(name: str, bench: Bench, levels: Sequence[int]) -> dict[str, Any]:
    """CPU and memory with more and more episodes open, and how far the last is from the line through the others."""
    scenario = SCENARIOS[name]
    order = {"place": "here", "scripts": bench.scripts(scenario), "warm": scenario.warm, "flags": ()}
    order |= {"options": scenario.options, "workers": 1}
    found = [bench.ask("measure", scenario.env, **order, levels=(1, level)) for level in levels]
    memory = {level: sum(one["memory"][str(level)].values()) for level, one in zip(levels, found, strict=True)}
    memory[1] = sum(found[0]["memory"]["1"].values())
    through = line({count: memory[count] for count in sorted(memory)[:-1]})
    predicted = through["fixed"] + levels[-1] * through["episode"]
    cpu = {
        method: {
            level: sum(v for part, v in one[method].items() if part != "wall")
            for level, one in zip(levels, found, strict=True)
        }
        for method in ("reset", "step")
    }
    off = 100 * abs(memory[levels[-1]] / predicted - 1)
    return {"MiB": memory, "MiB by the model": predicted, "off, %": off, "CPU s": cpu, "episodes": levels[-1]}


def measure(names: Sequence[str], repeats: int, quick: bool, console: Console) -> dict[str, Any]:
    """Every figure."""
    rows, ten = dict[str, Any](), dict[str, Any]()
    levels, seconds = ((5, 10, 20), 0.5) if quick else (LEVELS, SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), console)
        for name in names:
            rows |= rates(name, bench, Path(folder), 1 if quick else repeats, seconds)
        for name in [name for name in names if name in TEXT_WORLDS]:
            ten[name] = grow(name, bench, levels)
    return {"machine": machine(), "repeats": repeats, "seconds": seconds, "rows": rows, "ten thousand": ten}


def show(result: Mapping[str, Any]) -> None:
    table = Table("scenario", "where", "cores", "episodes a second", title="Episodes a second, wall time")
    for name, row in result["rows"].items():
        table.add_row(*name.split(", "), f"{row['median']:,.2f}")
    console = Console(width=100)
    console.print(table)
    for name, row in result["ten thousand"].items():
        found = row["MiB"][row["episodes"]]
        console.print(
            f"{name}, {row['episodes']:,} open: {found:,.0f} MiB; by the model {row['MiB by the model']:,.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), metavar="SCENARIO")
    parser.add_argument("--repeats", type=int, default=3, help="how often rates are measured (default: 3)")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--play", type=Path, metavar="ORDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        order = json.loads(options.play.read_text(encoding="utf-8"))
        Path(order["out"]).write_text(json.dumps(play(order)), encoding="utf-8")
        return
    result = measure(options.only, options.repeats, options.quick, Console(stderr=True))
    show(result)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
