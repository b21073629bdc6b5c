"""Measure 1,000 parallel episodes of every scenario, and plan a million a day.

    python -m benchmarks.scale [--only SCENARIO ...] [--json benchmarks/results/scale.json] [--repeats 3] [--quick]
    python -m benchmarks.scale --plan 1000000/day --turn-seconds 2 [--turns 20] [--figures FILE]

CPU is that of all processes (this one, workers, servers, Java, browsers) per reset and per step, over episodes of the
oracles (SciWorld: random commands, since its plans take too long). Memory is a linear fit of the proportional share
(PSS) of all processes over a growing number of open episodes, each one step before its end. Every repeat is a process
of its own; figures are medians of the repeats. Start-up (the first environment, a cold Java process) is reported
separately. "here" is the default of `make_vec`; "workers" are two worker processes; "server" is `agentgym serve` with
its children, and "its client" is this process at the same time. * is extrapolated.

At the end `play_many_text` runs whole episodes, 1,000 at a time, with a model that takes a second to answer, and the
measured resources are compared with the predicted ones. `--plan` measures nothing: it computes the needs of a load from
the figures of an earlier run. `--quick` is a smoke run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from agentgym_envs.errors import UsageError
from benchmarks.common import machine
from benchmarks.scale_plan import Cost, costs, line, need, plan_table

FIGURES = Path(__file__).parent / "results" / "scale.json"
LIGHT, LIGHT_BACKENDS = (1, 100, 1000), ("here", "workers", "served")
WORKERS = 2
PARALLEL, EPISODES, ANSWER_SECONDS = 1000, 2000, 1.0
"""Of the check."""
TURN_SECONDS = 2.0
"""Of the table: every episode takes a turn so often, the environment's part included."""
SERVE = ("--max-sessions", "1100", "--workers", "1")
_SINGLE = ("program", "worker", "java", "driver")
"""Kinds of processes that do one thing at a time; a browser has a process for each page."""
Samples = list[dict[str, Any]]


class Scenario(NamedTuple):
    """Settings of a scenario's measurement. `limit` is the paper's number of turns."""

    env: str
    limit: int
    levels: tuple[int, ...] = LIGHT
    served: tuple[int, ...] = LIGHT
    backends: tuple[str, ...] = LIGHT_BACKENDS
    tasks: int = 200
    warm: int = 20
    random: bool = False
    options: Mapping[str, Any] = {}
    flags: tuple[str, ...] = SERVE


_BROWSER: dict[str, Any] = {
    "limit": 15,
    "levels": (1, 4, 16, 32),
    "served": (1, 4, 16),
    "backends": ("here", "served"),
    "tasks": 12,
    "warm": 2,
}
SCENARIOS = {
    "TextCraft": Scenario("AgentGym/TextCraft-v0", limit=30),
    "BabyAI": Scenario("AgentGym/BabyAI-v0", limit=20),
    "Search": Scenario("AgentGym/Search-v0", limit=10, backends=("here", "served")),
    "SciWorld": Scenario(
        "AgentGym/SciWorld-v0",
        limit=20,
        levels=(1, 2, 4, 8, 16, 32),
        served=(1, 8, 16),
        backends=("here", "served"),
        tasks=16,
        warm=8,
        random=True,
        options={"jvms": 1},
        flags=(*SERVE, "--env-arg", "jvms=1"),
    ),
    "MiniWoB": Scenario("AgentGym/MiniWoB-v0", **_BROWSER),
    "WebArena": Scenario("AgentGym/WebArena-v0", **_BROWSER),
}
CHECKED = ("TextCraft", "BabyAI")


class Sizes(NamedTuple):
    """The extent of the measurement."""

    repeats: int = 3
    quick: bool = False

    def of(self, scenario: Scenario) -> Scenario:
        """The scenario, or a little of it."""
        if not self.quick:
            return scenario
        return scenario._replace(levels=(1, 2, 3), served=(1, 2, 3), tasks=3, warm=1)


class Bench:
    """Has measurements made, each in a process of its own."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._folder, self._console = folder, console

    def ask(self, deed: str, env: str, **order: Any) -> Any:
        """The figures of one order."""
        paper, out = self._folder / "order.json", self._folder / "figures.json"
        paper.write_text(json.dumps({"deed": deed, "env": env, "out": str(out), **order}), encoding="utf-8")
        self._console.print(f"{deed} {env} {order.get('place', '')}", style="dim")
        subprocess.run([sys.executable, "-m", "benchmarks.scale_load", str(paper)], check=True)
        return json.loads(out.read_text(encoding="utf-8"))

    def scripts(self, scenario: Scenario) -> list[dict[str, Any]]:
        """Episodes to be played."""
        settings = {name: getattr(scenario, name) for name in ("tasks", "limit", "random", "options")}
        found: list[dict[str, Any]] = self.ask("record", scenario.env, **settings)
        return found

    def samples(self, scenario: Scenario, backend: str, scripts: Samples, repeats: int) -> Samples:
        """Every repeat of a scenario in a backend."""
        levels = scenario.served if backend == "served" else scenario.levels
        order = {"place": backend, "scripts": scripts, "levels": levels, "warm": scenario.warm}
        order |= {"options": scenario.options if backend == "here" else {}, "flags": scenario.flags, "workers": WORKERS}
        return [self.ask("measure", scenario.env, **order) for _ in range(repeats)]


def measure(names: Sequence[str], sizes: Sizes, bench: Bench) -> dict[str, Any]:
    """Every figure."""
    rows, scripts = [], dict[str, Samples]()
    for name in names:
        scenario = sizes.of(SCENARIOS[name])
        scripts[name] = bench.scripts(scenario)
        for backend in scenario.backends:
            samples = bench.samples(scenario, backend, scripts[name], sizes.repeats)
            rows += rows_of(name, scenario, backend, scripts[name], samples)
    memory = round(psutil.virtual_memory().total / 2**30)
    result = {"machine": {**machine(), "memory GiB": memory}, "repeats": sizes.repeats, "rows": rows}
    checked = [name for name in CHECKED if name in names]
    return result | ({"check": check(checked, scripts, sizes, costs(result), bench)} if checked else {})


def rows_of(name: str, scenario: Scenario, backend: str, scripts: Samples, samples: Samples) -> list[dict[str, Any]]:
    """The rows of a backend: one, or the server and its client."""
    turns = {"limit": float(scenario.limit)}
    if not scenario.random:
        turns = {"oracle": statistics.mean(script["turns"] for script in scripts), **turns}
    if backend != "served":
        return [row_of(name, backend, turns, ["here"], samples)]
    server, client = (
        row_of(name, backend, turns, [side], samples)
        for backend, side in (("server", "server"), ("its client", "here"))
    )
    for deed in ("reset", "step"):
        waits = server["cost"][deed] + client["cost"][deed]
        server["cost"][f"wait_{deed}"] = client["cost"][f"wait_{deed}"] = waits
    client["cost"]["together"] = LIGHT[-1]  # it keeps nothing of the worlds
    return [server, client]


def row_of(name: str, backend: str, turns: dict[str, float], sides: Sequence[str], samples: Samples) -> dict[str, Any]:
    """Figures of one side: medians, ranges, and the cost used for plans."""
    spent, memory = spent_of(sides, samples), memory_of(sides, samples)
    steps = spent["step"]["by kind"]
    busiest = max((kind for kind in steps if kind.split()[1] in _SINGLE), key=lambda kind: steps[kind])
    cost = Cost(
        name,
        backend,
        turns,
        spent["reset"]["median"],
        spent["step"]["median"],
        spent["reset"]["by kind"][busiest],
        steps[busiest],
        spent["reset"]["median"],
        spent["step"]["median"],
        memory["fixed"],
        max(0.0, memory["episode"]),
        max(memory["MiB by episodes"]),
    )
    unsolved = sum(sample["unsolved"] for sample in samples)
    return {"cost": cost._asdict(), "seconds": spent, "memory": memory, "unsolved": unsolved}


def spent_of(sides: Sequence[str], samples: Samples) -> dict[str, Any]:
    """Seconds of CPU, and of the clock for what an environment takes to start."""
    spent: dict[str, Any] = {}
    for deed in ("reset", "step", "first start", "one more"):
        by_kind = {kind: statistics.median(s[deed].get(kind, 0.0) for s in samples) for kind in kinds(samples, sides)}
        spent[deed] = {**spread(total(s[deed], sides) for s in samples), "by kind": by_kind}
    for deed in ("first start", "one more"):
        spent[deed]["wall"] = spread(s[deed]["wall"] for s in samples)
    return spent


def memory_of(sides: Sequence[str], samples: Samples) -> dict[str, Any]:
    """MiB: of the idle program, by episodes, and the line; how steep it is in each repeat."""
    repeats = [{int(level): total(parts, sides) for level, parts in s["memory"].items()} for s in samples]
    if "here worker" in samples[0]["step"]:  # with one episode, one of the workers has not been started
        repeats = [{level: value for level, value in repeat.items() if level >= WORKERS} for repeat in repeats]
    points = {level: statistics.median(repeat[level] for repeat in repeats) for level in repeats[0]}
    idle = statistics.median(total(s["idle"], sides) for s in samples)
    steep = [line(repeat)["episode"] for repeat in repeats]
    return {"idle": idle, "MiB by episodes": points, **line(points), "episode, of each repeat": steep}


def kinds(samples: Samples, sides: Sequence[str]) -> list[str]:
    """The kinds of processes of some sides."""
    return sorted({kind for sample in samples for kind in sample["step"] if kind.split()[0] in sides})


def total(parts: Mapping[str, float], sides: Sequence[str]) -> float:
    """The sum of the parts of some sides."""
    return sum(value for part, value in parts.items() if part.split()[0] in sides)


def spread(values: Iterable[float]) -> dict[str, float]:
    found = sorted(values)
    return {"median": statistics.median(found), "least": found[0], "most": found[-1]}


def check(
    names: Sequence[str], scripts: Mapping[str, Samples], sizes: Sizes, known: Sequence[Cost], bench: Bench
) -> list[dict[str, Any]]:
    """Whole episodes at a time, as predicted and as measured. What the player itself costs is measured with few."""
    here = {cost.scenario: cost for cost in known if cost.place == "here"}
    parallel, episodes = (10, 20) if sizes.quick else (PARALLEL, EPISODES)

    def played(name: str, at_once: int, seconds: float) -> dict[str, Any]:
        order = {"place": "here", "scripts": scripts[name], "limit": SCENARIOS[name].limit, "seconds": seconds}
        found: dict[str, Any] = bench.ask("play", SCENARIOS[name].env, episodes=episodes, parallel=at_once, **order)
        return found

    rows = []
    for name in names:
        at_once = max(1, parallel // 50)
        few = played(name, at_once, ANSWER_SECONDS / 50)
        player = (few["cpu"]["here program"] - environments(here[name], few, at_once)) / few["turns"]
        many = played(name, parallel, ANSWER_SECONDS)
        rows.append({"scenario": name, "player": player, **compared(here[name], player, many, parallel)})
    return rows


def environments(cost: Cost, run: Mapping[str, Any], parallel: int) -> float:
    """CPU seconds that the environments of a run take, by their costs; each is made once."""
    made = parallel * run["make"]["here program"]
    return float(made + run["episodes"] * cost.reset + run["turns"] * cost.step)


def compared(cost: Cost, player: float, run: Mapping[str, Any], parallel: int) -> dict[str, Any]:
    """Predicted and measured CPU seconds and MiB of a run."""
    predicted = environments(cost, run, parallel)
    return {
        "parallel": parallel,
        "episodes": run["episodes"],
        "turns": run["turns"],
        "make": run["make"]["here program"],
        "wall seconds": run["cpu"]["wall"],
        "CPU seconds, environments predicted": predicted,
        "CPU seconds, all predicted": predicted + player * run["turns"],
        "CPU seconds, all measured": run["cpu"]["here program"],
        "MiB, environments predicted": cost.fixed + parallel * cost.episode,
        "MiB, all measured after half the episodes": run["memory"]["here program"],
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    console.print(table_of(result["rows"]))
    for row in result["rows"]:
        if row["unsolved"]:
            console.print(f"{row['cost']['scenario']}: {row['unsolved']} oracle episodes were not solved", style="red")
    for row in result.get("check", []):
        console.print(checked_line(row))


def checked_line(row: Mapping[str, Any]) -> str:
    """A line about predicted and measured."""
    cpu, memory, player = "CPU seconds", "MiB", 1e6 * row["player"]
    return (
        f"{row['scenario']}, {row['parallel']:,} at a time, {row['episodes']:,} episodes, {row['turns']:,} turns: "
        f"predicted {row[f'{cpu}, all predicted']:.2f} s of CPU ({row[f'{cpu}, environments predicted']:.2f} of the "
        f"environments, {player:.0f} us a turn of the player), measured {row[f'{cpu}, all measured']:.2f}; "
        f"predicted {row[f'{memory}, environments predicted']:.0f} MiB, measured "
        f"{row[f'{memory}, all measured after half the episodes']:.0f} with the records of {row['episodes'] // 2:,}"
    )


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each scenario and place."""
    table = Table(title=f"ms of CPU, MiB, start-up, and 1,000 episodes with a turn every {TURN_SECONDS:g} s")
    for name in ("scenario", "where"):
        table.add_column(name, no_wrap=True)
    names = ("reset", "turn", "episode", "fixed", "each", "residual", "first, s", "one more")
    for name in (*names, "cores", "GiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*cells_of(row))
    return table


def cells_of(row: Mapping[str, Any]) -> list[str]:
    cost, memory, seconds = Cost(**row["cost"]), row["memory"], row["seconds"]
    turns = next(iter(cost.turns.values()))
    answer = max(0.0, TURN_SECONDS - cost.wait_step)
    needed = need(cost, 1000 / cost.seconds(turns, answer), turns, answer)
    mark = "" if max(map(int, memory["MiB by episodes"])) >= 1000 else " *"  # extrapolated
    figures = (1e3 * cost.reset, 1e3 * cost.step, 1e3 * cost.cpu(turns), cost.fixed, cost.episode, memory["residual"])
    starts = seconds["first start"]["wall"]["median"], 1e3 * seconds["one more"]["wall"]["median"]
    return [
        cost.scenario,
        cost.place,
        *(f"{figure:,.0f}" if figure >= 100 else f"{round(figure, 4):.3g}" for figure in (*figures, *starts)),
        f"{needed.cores:.2f}{mark}",
        f"{needed.gib:.1f}{mark}",
    ]


def arguments_of(console: Console) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), metavar="SCENARIO")
    parser.add_argument("--json", type=Path, help="also write the figures to this file; those of others stay there")
    parser.add_argument("--repeats", type=int, default=3, help="how often everything is measured (default: 3)")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--plan", metavar="LOAD", help="tell what 1000000/day, 500/answers or 1000 (at a time) need")
    parser.add_argument("--turn-seconds", type=float, default=TURN_SECONDS, help="how long the model takes to answer")
    parser.add_argument(
        "--turns", type=float, help="turns of an episode (default: the oracle's, and the paper's limit)"
    )
    parser.add_argument("--figures", type=Path, default=FIGURES, help="what --plan goes by (default: the docs')")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def main() -> None:
    """Run the script."""
    console = Console(width=140)
    arguments = arguments_of(console)
    if arguments.plan:
        try:
            show_plan(arguments, console)
        except UsageError as error:
            raise SystemExit(str(error)) from None
        return
    sizes = Sizes(1, True) if arguments.quick else Sizes(arguments.repeats)
    with tempfile.TemporaryDirectory() as folder:
        result = measure(arguments.only, sizes, Bench(Path(folder), Console(stderr=True)))
    show(result, console)
    if arguments.json:
        if arguments.json.exists():
            result = merged(json.loads(arguments.json.read_text(encoding="utf-8")), result)
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new figures, and the old ones of scenarios that were not measured again."""
    again = {row["cost"]["scenario"] for row in new["rows"]}
    rows = [row for row in old["rows"] if row["cost"]["scenario"] not in again] + new["rows"]
    return {**old, **new, "rows": sorted(rows, key=lambda row: list(SCENARIOS).index(row["cost"]["scenario"]))}


def show_plan(arguments: argparse.Namespace, console: Console) -> None:
    """Print the needs of a load. Raises UsageError for an invalid one."""
    if not arguments.figures.is_file():
        raise UsageError(
            f"there are no figures at {arguments.figures}: measure with --json FILE, and give --figures FILE"
        )
    result = json.loads(arguments.figures.read_text(encoding="utf-8"))
    known = [cost for cost in costs(result) if cost.scenario in arguments.only]
    console.print(plan_table(known, arguments.plan, arguments.turn_seconds, arguments.turns))


if __name__ == "__main__":
    main()
