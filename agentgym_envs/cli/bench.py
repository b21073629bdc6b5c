"""`agentgym bench`: how fast an environment is on this machine, and what stands beside it."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from agentgym_envs.cli.bench_peers import Peer, peer_of
from agentgym_envs.cli.common import (
    Env,
    EnvArgs,
    EnvId,
    Json,
    begin,
    find_env,
    finite,
    make_env,
    make_env_factory,
    parse_env_args,
    print_json,
    stdout,
)
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle

_EPISODES = 200
_PREPARE_SECONDS = 5.0
"""After this long, the episodes there are will do: where a plan takes seconds, they are few."""
_RESETS = 100
_LONGEST = 50
"""Actions of an episode that has no oracle and is played at random."""
_SAME_COMMANDS, _SAME_TASKS = "the same commands", "the same tasks"
"""Our figures beside which those of a peer stand."""
Rates = list[float]
"""Calls a second, a figure for each repeat."""

Seconds = Annotated[
    float,
    typer.Option(min=0.05, callback=finite, help="How long to measure each figure, all repeats together."),
]
Repeats = Annotated[int, typer.Option(min=1, help="How often each figure is measured; the median is told.")]
Envs = Annotated[
    int | None,
    typer.Option("--envs", min=1, help="Also measure so many together: make_vec, and Gymnasium's SyncVectorEnv."),
]
Peers = Annotated[bool, typer.Option(help="Also measure another package of the same game, if one is installed.")]


def bench_command(
    env: EnvId,
    seconds: Seconds = 2.0,
    repeats: Repeats = 5,
    envs: Envs = None,
    peers: Peers = True,
    env_arg: EnvArgs = None,
    as_json: Json = False,
) -> None:
    """Measure resets and steps a second of an environment in one process, next to others where they are installed."""
    env_id, arguments = find_env(env), parse_env_args(env_arg)
    made = make_env(env_id, arguments)
    episodes, kind = _prepare(made)
    each = seconds / repeats
    measures: dict[str, Callable[[], float]] = {
        "resets": partial(_reset_rate, made.reset, each),
        "steps": partial(_step_rate, made, episodes, each),
    }
    peer = peer_of(env_id) if peers and "base_url" not in arguments else None
    if peer is not None:
        alike = make_env(env_id, {**arguments, **peer.env_args})
        measures |= _peer_measures(peer, alike, each)
    together = _together(env_id, arguments, envs, each) if envs else {}
    rates = _in_turn({**measures, **{name: measure for name, (measure, _) in together.items()}}, repeats)
    for close in (made.close, *([] if peer is None else [alike.close]), *(close for _, close in together.values())):
        close()
    if as_json:
        print_json(_as_json(env_id, kind, rates, envs))
    else:
        _show(env_id, "on a server" if "base_url" in arguments else "on one core", kind, rates, envs)


def _in_turn(measures: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Rates]:
    """Everything has its turn in each repeat, so that a busy machine is as unfair to one as to the other."""
    rates: dict[str, Rates] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            rates[name].append(measure())
    return rates


def _peer_measures(peer: Peer, alike: Env, seconds: float) -> dict[str, Callable[[], float]]:
    """Another package's resets and steps, and before them those of ours when it plays the same."""
    steps: dict[str, Callable[[], float]] = {
        f"steps, {_SAME_COMMANDS}": partial(_same_step_rate, alike, peer.commands, seconds),
        f"steps, {peer.name}": partial(_peer_step_rate, peer, seconds),
    }
    if not peer.steady:
        return steps
    return {
        f"resets, {_SAME_TASKS}": partial(_reset_rate, alike.reset, seconds),
        f"resets, {peer.name}": partial(_reset_rate, lambda seed: peer.reset(seed), seconds),
        **steps,
    }


def _together(
    env_id: str, arguments: Mapping[str, Any], count: int, seconds: float
) -> dict[str, tuple[Callable[[], float], Callable[[], None]]]:
    """Steps of many environments in a vector environment: how to measure them, and how to close them."""
    from gymnasium.vector import SyncVectorEnv

    from agentgym_envs import make_vec

    fleets: dict[str, Any] = {"make_vec": make_vec(env_id, count, **arguments)}
    if "base_url" not in arguments:
        factory = make_env_factory(env_id, arguments)
        fleets["SyncVectorEnv"] = SyncVectorEnv([factory] * count)
    command = _any_command(env_id, arguments)
    return {
        f"steps, {name} of {count}": (partial(_fleet_rate, fleet, count, command, seconds), fleet.close)
        for name, fleet in fleets.items()
    }


def _any_command(env_id: str, arguments: Mapping[str, Any]) -> str:
    """One that the environment knows, or at least answers."""
    env = make_env(env_id, arguments)
    begin(env, seed=0)
    base = text_env(env)
    command = base.grammar.format(base.random_command(random.Random(0)))
    env.close()
    return command


def _fleet_rate(fleet: Any, count: int, command: str, seconds: float) -> float:
    actions, steps = (command,) * count, 0
    fleet.reset(seed=0)
    began = time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        fleet.step(actions)
        steps += count
    return steps / (time.perf_counter() - began)


def _same_step_rate(env: Env, commands: Sequence[str], seconds: float) -> float:
    """Steps of ours that go round the commands of a peer; when an episode ends, another begins off the clock."""
    grammar, seeds = text_env(env).grammar, itertools.count()
    actions, over, step = itertools.cycle([grammar.format(command) for command in commands]), True, env.step

    def some(number: int) -> tuple[int, float]:
        nonlocal over
        if over:
            env.reset(seed=next(seeds))
        count, began = 0, time.perf_counter()
        for action in itertools.islice(actions, _RESETS):
            _, _, terminated, truncated, _ = step(action)
            count, over = count + 1, terminated or truncated
            if over:
                break
        return count, time.perf_counter() - began

    return _rate(some, seconds)


def _peer_step_rate(peer: Any, seconds: float) -> float:
    peer.reset(0)
    steps, began = 0, time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        peer.step()
        steps += 1
    return steps / (time.perf_counter() - began)


def _as_json(env_id: str, kind: str, rates: Mapping[str, Rates], envs: int | None) -> dict[str, Any]:
    rows = [
        {
            "figure": name,
            "per_second": median,
            "least": low,
            "most": high,
            "beside": _beside(name, rates),
            "times": times,
        }
        for name, median, low, high, times in _rows(rates)
    ]
    median = {f"{name}_per_second": statistics.median(rates[name]) for name in ("resets", "steps")}
    return {"env": env_id, "actions": kind, **median, "envs": envs, "figures": rows}


def _rows(rates: Mapping[str, Rates]) -> Iterator[tuple[str, float, float, float, float | None]]:
    """Name, median, least, most; and, for what stands beside one of ours, how many times as fast ours is."""
    for name, values in rates.items():
        ours = _beside(name, rates)
        times = None
        if ours is not None:
            times = statistics.median(own / other for own, other in zip(rates[ours], values, strict=True))
        yield name, statistics.median(values), min(values), max(values), times


def _beside(name: str, rates: Mapping[str, Rates]) -> str | None:
    """Our figure beside which this one stands, if it is not one of ours: that of the same work."""
    verb, comma, whose = name.partition(", ")
    if not comma or whose in (_SAME_COMMANDS, _SAME_TASKS) or whose.startswith("make_vec"):
        return None
    if whose.startswith("SyncVectorEnv"):
        return next(other for other in rates if other.startswith("steps, make_vec"))
    return f"steps, {_SAME_COMMANDS}" if verb == "steps" else f"resets, {_SAME_TASKS}"


def _show(env_id: str, where: str, kind: str, rates: Mapping[str, Rates], envs: int | None) -> None:
    from rich.table import Table

    title = f"[bold]{env_id}[/] {where}, {kind} actions" + (f"; together: {envs}" if envs else "")
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    compared = any(_beside(name, rates) for name in rates)
    for head in ("", "a second", "least – most", "µs each", *(["ours is"] if compared else [])):
        table.add_column(head, justify="right" if head else "left")
    for name, median, low, high, times in _rows(rates):
        spread = f"{low:,.0f} – {high:,.0f}" if low < high else ""
        ratio = [f"{times:.2f} times as fast" if times else ""] if compared else []
        table.add_row(name, f"[bold]{median:,.0f}[/]", spread, f"{1e6 / median:,.1f}", *ratio)
    stdout().print(table)


def _prepare(env: Env) -> tuple[list[tuple[int, list[str]]], str]:
    """(seed, actions) of some episodes, made before the clock runs."""
    try:
        return _several(lambda seed: _oracle_actions(env, seed)), "oracle"
    except NoOracle:
        return _several(lambda seed: _random_actions(env, seed)), "random"


def _several(actions_of: Callable[[int], list[str]]) -> list[tuple[int, list[str]]]:
    episodes, end = list[tuple[int, list[str]]](), time.perf_counter() + _PREPARE_SECONDS
    while len(episodes) < _EPISODES and (not episodes or time.perf_counter() < end):
        episodes.append((len(episodes), actions_of(len(episodes))))
    return episodes


def _oracle_actions(env: Env, seed: int) -> list[str]:
    begin(env, seed=seed)
    base = text_env(env)
    return [base.grammar.format(command) for command in base.oracle()]


def _random_actions(env: Env, seed: int) -> list[str]:
    """Random actions up to the end of an episode."""
    begin(env, seed=seed)
    base, rng, actions, over = text_env(env), random.Random(seed), list[str](), False
    while not over and len(actions) < _LONGEST:
        actions.append(base.grammar.format(base.random_command(rng)))
        _, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated
    return actions


def _reset_rate(reset: Callable[..., Any], seconds: float) -> float:
    def some(number: int) -> tuple[int, float]:
        began, count = time.perf_counter(), 0
        while count < _RESETS and time.perf_counter() - began < seconds:
            reset(seed=number * _RESETS + count)
            count += 1
        return count, time.perf_counter() - began

    return _rate(some, seconds)


def _step_rate(env: Env, episodes: list[tuple[int, list[str]]], seconds: float) -> float:
    def some(number: int) -> tuple[int, float]:
        seed, actions = episodes[number % len(episodes)]
        env.reset(seed=seed)
        step: Callable[[str], Any] = env.step
        began = time.perf_counter()
        for action in actions:
            step(action)
        return len(actions), time.perf_counter() - began

    return _rate(some, seconds)


def _rate(some: Callable[[int], tuple[int, float]], seconds: float) -> float:
    """Calls of the thing measured, divided by the time that they alone took."""
    count, spent, number, end = 0, 0.0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end or not spent:
        more, took = some(number)
        count, spent, number = count + more, spent + took, number + 1
    return count / spent
