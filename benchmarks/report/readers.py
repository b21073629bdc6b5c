"""Readers for scripts whose JSON paths alone cannot address. Each returns a mapping from which rows are read."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.scale_plan import Cost, Need, costs, need

Json = Any


def as_it_is(result: Json) -> Json:
    """For most scripts."""
    return result


def two_sides(result: Json) -> Json:
    """With a list of samples for each figure of each side, instead of a list of repeats."""
    settings = {}
    for name, row in result["settings"].items():
        samples = {side: {key: [one[key] for one in rows] for key in rows[0]} for side, rows in row["samples"].items()}
        settings[name] = {**row, "samples": samples}
    return {**result, "settings": settings}


def sciworld(result: Json) -> Json:
    """With the rounds as samples."""
    against = result["against scienceworld"]
    sides = against["median"]
    samples = {side: {name: [one[side][name] for one in against["rounds"]] for name in sides[side]} for side in sides}
    return {**result, "median": sides, "samples": samples}


def search_need(result: Json) -> Json:
    """Extremes and means over the kinds of questions."""
    rows = result["rows"]
    count = sum(row["tasks"] for row in rows)
    means = {name: 100 * sum(row[name] * row["tasks"] for row in rows) / count for name in ("one_search", "guess")}
    kinds = [row for row in rows if not row["kind"].startswith("1hop")]
    hops = sum(row["tasks"] for row in kinds)
    several = 100 * sum(row["one_search"] * row["tasks"] for row in kinds) / hops if hops else 0.0
    return {**means, "oracle, least": 100 * min(row["oracle"] for row in rows), "one search, several hops": several}


def web(result: Json) -> Json:
    """Contexts by their number."""
    return {**result, **{f"contexts of {row['contexts']}": row for row in result["contexts"]}}


def sites(result: Json) -> Json:
    """The site whose pages take longest."""
    slowest = max(one["median"] for one in result["render"].values())
    failed = len(result["oracle"]["failed"])
    return {**result, "slowest site": slowest, "failed": failed}


def soak(result: Json) -> Json:
    """Failures over all parts, and the memory growth of each."""
    wrong = sum(len(part["wrong"]) for part in result["parts"])
    left = sum(part["sessions_left"] for part in result["parts"])
    episodes = sum(part["counts"]["episodes"] for part in result["parts"])
    return {**result, "wrong": wrong, "left": left, "episodes": episodes}


def scale(result: Json) -> Json:
    """Costs by scenario and location, and the error of the cost model."""
    rows = {f"{cost.scenario}, {cost.place}": cost_row(cost) for cost in costs(result)}
    for check in result["check"]:
        off = check["CPU seconds, all measured"] / check["CPU seconds, all predicted"] - 1
        rows[f"{check['scenario']}, check"] = {"off, %": 100 * abs(off)}
    return {**result, **rows}


def cost_row(cost: Cost) -> dict[str, float]:
    """Costs of a scenario at a location, and the resources that many concurrent episodes need."""
    turns = cost.turns.get("oracle", cost.turns["limit"])
    cpu = cost.cpu(turns)
    thousand, ten = (at_a_time(cost, count, turns) for count in (1_000, 10_000))
    return {
        "turns": turns,
        "episodes/s a core": 1 / cpu,
        "CPU s of 1,000 episodes": 1_000 * cpu,
        "GiB of 1,000 at a time": thousand.gib,
        "cores of 1,000 at a time": thousand.cores,
        "GiB of 10,000 at a time": ten.gib,
        "cores of 10,000 at a time": ten.cores,
    }


def at_a_time(cost: Cost, count: int, turns: float, turn_seconds: float = 2.0) -> Need:
    """Resources of `count` concurrent episodes, each with a turn every two seconds."""
    answer_seconds = max(0.0, turn_seconds - cost.wait_step)
    return need(cost, count / cost.seconds(turns, answer_seconds), turns, answer_seconds)


def algorithms(result: Json) -> Json:
    """Means over seeds of the sampled success on the first set of held-out tasks, by arm, in per cent."""
    label = next(iter(result["warm start"][0]["results"]))
    samples = {name: [100 * run["results"][label]["success"]["mean"] for run in runs] for name, runs in result.items()}
    return {"median": {name: statistics.mean(values) for name, values in samples.items()}, "samples": samples}


def coop(result: Json) -> Json:
    """Means over seeds of a team's success on held-out worlds, in per cent."""
    samples = {when: [100 * run[when]["sampled"]["success"]["mean"] for run in result] for when in ("before", "after")}
    return {"median": {when: statistics.mean(values) for when, values in samples.items()}, "samples": samples}


def footprint(result: Json) -> Json:
    """The core package, under the names that the other rows use."""
    return {**result, "core": result["extras"].get("core", {})}


def lockstep(result: Json) -> Json:
    """Rows keyed by "TAIL, SIZE"."""
    named = {f"{row['tail']}, {row['together']}": row for row in result["tails"]}
    stream = {f"stream, {row['tail']}": row for row in result["stream"]}
    env = {f"environment, {row['env seconds']:g}": row for row in result["environment"]}
    return {**result, **named, **stream, **env}
