"""`agentgym bench`: how fast an environment is on this machine, and what stands beside it."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
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
Rates = list[float]
"""Calls a second, a figure for each repeat."""


@dataclass(frozen=True)
class _Figure:
    """What is measured, in calls a second; `beside` names our figure of the same work, if this one is another's."""

    name: str
    measure: Callable[[], float]
    beside: str | None = None


@dataclass(frozen=True)
class _Row:
    """Calls a second over the repeats; `times`: how many times as fast ours is."""

    figure: str
    per_second: float
    least: float
    most: float
    beside: str | None
    times: float | None


Seconds = Annotated[
    float,
    typer.Option(min=0.05, callback=finite, help="How long to measure each figure, all repeats together."),
]
Repeats = Annotated[int, typer.Option(min=1, help="How often each figure is measured; the median is told.")]
Envs = Annotated[
    int | None,
    typer.Option("--envs", min=1, help="Also measure so many together: make_vec, and Gymnasium's SyncVectorEnv."),
]
Peers = Annotated[
    bool,
    typer.Option(
        help="Also measure another package of the same game, if one is installed; not with --env-arg, which changes it."
    ),
]


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
    each = seconds / repeats
    with ExitStack() as opened:
        made = opened.enter_context(closing(make_env(env_id, arguments)))
        episodes, kind = _prepare(made)
        figures = [
            _Figure("resets", partial(_reset_rate, made.reset, each)),
            _Figure("steps", partial(_step_rate, made, episodes, each)),
        ]
        peer = None if arguments or not peers else peer_of(env_id)  # which plays one game, and that in this process
        if peer is not None:
            alike = opened.enter_context(closing(make_env(env_id, peer.env_args)))
            figures += _peer_figures(peer, alike, each)
        if envs:
            figures += _fleet_figures(_fleets(env_id, arguments, envs, opened), _any_command(made), envs, each)
        rows = _in_turn(figures, repeats)
    if as_json:
        print_json(_as_json(env_id, kind, rows, envs))
    else:
        _show(env_id, "on a server" if "base_url" in arguments else "on one core", kind, rows, envs)


def _in_turn(figures: Sequence[_Figure], repeats: int) -> list[_Row]:
    """Everything has its turn in each repeat, so that a busy machine is as unfair to one as to the other."""
    rates: dict[str, Rates] = {figure.name: [] for figure in figures}
    for _ in range(repeats):
        for figure in figures:
            rates[figure.name].append(figure.measure())
    return [_row(figure, rates) for figure in figures]


def _row(figure: _Figure, rates: Mapping[str, Rates]) -> _Row:
    values, times = rates[figure.name], None
    if figure.beside is not None:
        times = statistics.median(own / other for own, other in zip(rates[figure.beside], values, strict=True))
    return _Row(figure.name, statistics.median(values), min(values), max(values), figure.beside, times)


def _peer_figures(peer: Peer, alike: Env, seconds: float) -> list[_Figure]:
    """Another package's resets and steps, and before them those of ours when it plays the same."""
    steps = [
        _Figure("steps, the same commands", partial(_same_step_rate, alike, peer.commands, seconds)),
        _Figure(f"steps, {peer.name}", partial(_peer_step_rate, peer, seconds), "steps, the same commands"),
    ]
    if not peer.steady:
        return steps
    return [
        _Figure("resets, the same tasks", partial(_reset_rate, alike.reset, seconds)),
        _Figure(
            f"resets, {peer.name}",
            partial(_reset_rate, lambda seed: peer.reset(seed), seconds),
            "resets, the same tasks",
        ),
        *steps,
    ]


def _fleets(env_id: str, arguments: Mapping[str, Any], count: int, opened: ExitStack) -> dict[str, Any]:
    """Vector environments of so many; a server's only as ours."""
    from gymnasium.vector import SyncVectorEnv

    from agentgym_envs import make_vec

    fleets: dict[str, Any] = {"make_vec": opened.enter_context(closing(make_vec(env_id, count, **arguments)))}
    if "base_url" not in arguments:
        factory = make_env_factory(env_id, arguments)
        fleets["SyncVectorEnv"] = opened.enter_context(closing(SyncVectorEnv([factory] * count)))
    return fleets


def _fleet_figures(fleets: Mapping[str, Any], command: str, count: int, seconds: float) -> list[_Figure]:
    """Steps of many environments, Gymnasium's beside ours."""
    ours, *theirs = (f"steps, {name} of {count}" for name in fleets)
    measures = [partial(_fleet_rate, fleet, count, command, seconds) for fleet in fleets.values()]
    beside = [_Figure(name, measure, ours) for name, measure in zip(theirs, measures[1:], strict=True)]
    return [_Figure(ours, measures[0]), *beside]


def _any_command(env: Env) -> str:
    """One that the environment knows, or at least answers."""
    begin(env, seed=0)
    base = text_env(env)
    return base.grammar.format(base.random_command(random.Random(0)))


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


def _as_json(env_id: str, kind: str, rows: Sequence[_Row], envs: int | None) -> dict[str, Any]:
    median = {f"{row.figure}_per_second": row.per_second for row in rows if row.figure in ("resets", "steps")}
    return {"env": env_id, "actions": kind, **median, "envs": envs, "figures": [asdict(row) for row in rows]}


def _show(env_id: str, where: str, kind: str, rows: Sequence[_Row], envs: int | None) -> None:
    from rich.table import Table

    title = f"[bold]{env_id}[/] {where}, wall time, {kind} actions" + (f"; together: {envs}" if envs else "")
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    compared = any(row.times for row in rows)
    for head in ("", "a second", "least – most", "µs each", *(["ours is"] if compared else [])):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        spread = f"{row.least:,.0f} – {row.most:,.0f}" if row.least < row.most else ""
        ratio = [f"{row.times:.2f} times as fast" if row.times else ""] if compared else []
        table.add_row(row.figure, f"[bold]{row.per_second:,.0f}[/]", spread, f"{1e6 / row.per_second:,.1f}", *ratio)
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
