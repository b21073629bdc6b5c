"""`agentgym bench`: the speed of an environment on this machine, next to installed baselines."""

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

from agentgym_envs.cli.bench_baselines import Baseline, find_baseline
from agentgym_envs.cli.common import EnvArgs, EnvId, Json, finite, print_json, stdout
from agentgym_envs.cli.envs import Env, begin, find_env, make_env, make_env_factory, parse_env_args
from agentgym_envs.core import text_env
from agentgym_envs.errors import NoOracle

_EPISODES = 200
_PREPARE_SECONDS = 5.0
"""Time limit for the preparation of episodes; fewer are prepared where the oracle takes seconds to plan."""
_RESETS = 100
_MAX_ACTIONS = 50
"""The most actions of an episode that is played at random, without an oracle."""
Rates = list[float]
"""Calls per second, one value per repeat."""


@dataclass(frozen=True)
class _Figure:
    """A measurement in calls per second. `ours` names our figure for the same work if this one is a baseline's."""

    name: str
    measure: Callable[[], float]
    ours: str | None = None


@dataclass(frozen=True)
class _Row:
    """Calls per second over the repeats: median, minimum and maximum. `speedup` = ours / baseline."""

    figure: str
    per_second: float
    min: float
    max: float
    ours: str | None
    speedup: float | None


Seconds = Annotated[
    float,
    typer.Option(min=0.05, callback=finite, help="Seconds to measure each figure, all repeats together."),
]
Repeats = Annotated[int, typer.Option(min=1, help="Number of measurements per figure; the median is shown.")]
NumEnvs = Annotated[
    int | None,
    typer.Option(
        "--num-envs",
        min=1,
        help="Also measure this many environments together: make_vec and Gymnasium's SyncVectorEnv.",
    ),
]
Baselines = Annotated[
    bool,
    typer.Option(
        help="Also measure an installed package with the same game. Off with --env-arg, which changes the game."
    ),
]


def bench_command(
    env: EnvId,
    seconds: Seconds = 2.0,
    repeats: Repeats = 5,
    num_envs: NumEnvs = None,
    baselines: Baselines = True,
    env_arg: EnvArgs = None,
    as_json: Json = False,
) -> None:
    """Measure the resets and steps per second of an environment in one process, next to installed baselines."""
    env_id, arguments = find_env(env), parse_env_args(env_arg)
    each = seconds / repeats
    with ExitStack() as opened:
        made = opened.enter_context(closing(make_env(env_id, arguments)))
        episodes, kind = _prepare(made)
        figures = [
            _Figure("resets", partial(_reset_rate, made.reset, each)),
            _Figure("steps", partial(_step_rate, made, episodes, each)),
        ]
        # A baseline plays one fixed game, in this process.
        baseline = None if arguments or not baselines else find_baseline(env_id)
        if baseline is not None:
            same_game = opened.enter_context(closing(make_env(env_id, baseline.env_args)))
            figures += _baseline_figures(baseline, same_game, each)
        if num_envs:
            vector_envs = _vector_envs(env_id, arguments, num_envs, opened)
            figures += _vector_figures(vector_envs, _any_command(made), num_envs, each)
        rows = _measure_all(figures, repeats)
    if as_json:
        print_json(_as_json(env_id, kind, rows, num_envs))
    else:
        _show(env_id, "on a server" if "base_url" in arguments else "on one core", kind, rows, num_envs)


def _measure_all(figures: Sequence[_Figure], repeats: int) -> list[_Row]:
    """Measure every figure once per repeat, so that other load on the machine affects all of them alike."""
    rates: dict[str, Rates] = {figure.name: [] for figure in figures}
    for _ in range(repeats):
        for figure in figures:
            rates[figure.name].append(figure.measure())
    return [_row(figure, rates) for figure in figures]


def _row(figure: _Figure, rates: Mapping[str, Rates]) -> _Row:
    values, speedup = rates[figure.name], None
    if figure.ours is not None:
        speedup = statistics.median(own / other for own, other in zip(rates[figure.ours], values, strict=True))
    return _Row(figure.name, statistics.median(values), min(values), max(values), figure.ours, speedup)


def _baseline_figures(baseline: Baseline, same_game: Env, seconds: float) -> list[_Figure]:
    """The resets and steps of our environment in the baseline's game, and those of the baseline."""
    steps = [
        _Figure("steps, the baseline's commands", partial(_same_step_rate, same_game, baseline.commands, seconds)),
        _Figure(
            f"steps, {baseline.name}", partial(_baseline_step_rate, baseline, seconds), "steps, the baseline's commands"
        ),
    ]
    if not baseline.steady:
        return steps
    return [
        _Figure("resets, the same tasks", partial(_reset_rate, same_game.reset, seconds)),
        _Figure(
            f"resets, {baseline.name}",
            partial(_reset_rate, lambda seed: baseline.reset(seed), seconds),
            "resets, the same tasks",
        ),
        *steps,
    ]


def _vector_envs(env_id: str, arguments: Mapping[str, Any], count: int, opened: ExitStack) -> dict[str, Any]:
    """Vector environments by the name of their maker. With a server there is only `make_vec`."""
    from gymnasium.vector import SyncVectorEnv

    from agentgym_envs import make_vec

    envs: dict[str, Any] = {"make_vec": opened.enter_context(closing(make_vec(env_id, count, **arguments)))}
    if "base_url" not in arguments:
        factory = make_env_factory(env_id, arguments)
        envs["SyncVectorEnv"] = opened.enter_context(closing(SyncVectorEnv([factory] * count)))
    return envs


def _vector_figures(vector_envs: Mapping[str, Any], command: str, count: int, seconds: float) -> list[_Figure]:
    """Steps of vector environments: ours, and Gymnasium's as the baseline."""
    ours, *theirs = (f"steps, {name} of {count}" for name in vector_envs)
    measures = [partial(_vector_rate, env, count, command, seconds) for env in vector_envs.values()]
    baselines = [_Figure(name, measure, ours) for name, measure in zip(theirs, measures[1:], strict=True)]
    return [_Figure(ours, measures[0]), *baselines]


def _any_command(env: Env) -> str:
    """A command that the environment accepts, or at least answers."""
    begin(env, seed=0)
    base = text_env(env)
    return base.grammar.format(base.random_command(random.Random(0)))


def _vector_rate(env: Any, count: int, command: str, seconds: float) -> float:
    actions, steps = (command,) * count, 0
    env.reset(seed=0)
    began = time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        env.step(actions)
        steps += count
    return steps / (time.perf_counter() - began)


def _same_step_rate(env: Env, commands: Sequence[str], seconds: float) -> float:
    """Steps per second of our environment over the baseline's commands. Resets at the end of episodes do not count."""
    grammar, seeds = text_env(env).grammar, itertools.count()
    actions, over, step = itertools.cycle([grammar.format(command) for command in commands]), True, env.step

    def run_batch(number: int) -> tuple[int, float]:
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

    return _rate(run_batch, seconds)


def _baseline_step_rate(baseline: Any, seconds: float) -> float:
    baseline.reset(0)
    steps, began = 0, time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        baseline.step()
        steps += 1
    return steps / (time.perf_counter() - began)


def _as_json(env_id: str, kind: str, rows: Sequence[_Row], num_envs: int | None) -> dict[str, Any]:
    median = {f"{row.figure}_per_second": row.per_second for row in rows if row.figure in ("resets", "steps")}
    return {"env": env_id, "actions": kind, **median, "num_envs": num_envs, "figures": [asdict(row) for row in rows]}


def _show(env_id: str, where: str, kind: str, rows: Sequence[_Row], num_envs: int | None) -> None:
    from rich.table import Table

    title = f"[bold]{env_id}[/] {where}, wall time, {kind} actions" + (f"; together: {num_envs}" if num_envs else "")
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    compared = any(row.speedup for row in rows)
    for head in ("", "per second", "min – max", "µs each", *(["our speedup"] if compared else [])):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        spread = f"{row.min:,.0f} – {row.max:,.0f}" if row.min < row.max else ""
        ratio = [f"{row.speedup:.2f}×" if row.speedup else ""] if compared else []
        table.add_row(row.figure, f"[bold]{row.per_second:,.0f}[/]", spread, f"{1e6 / row.per_second:,.1f}", *ratio)
    stdout().print(table)


def _prepare(env: Env) -> tuple[list[tuple[int, list[str]]], str]:
    """(seed, actions) of some episodes, prepared before the measurement, and the kind of the actions."""
    try:
        return _prepare_episodes(lambda seed: _oracle_actions(env, seed)), "oracle"
    except NoOracle:
        return _prepare_episodes(lambda seed: _random_actions(env, seed)), "random"


def _prepare_episodes(actions_of: Callable[[int], list[str]]) -> list[tuple[int, list[str]]]:
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
    while not over and len(actions) < _MAX_ACTIONS:
        actions.append(base.grammar.format(base.random_command(rng)))
        _, _, terminated, truncated, _ = env.step(actions[-1])
        over = terminated or truncated
    return actions


def _reset_rate(reset: Callable[..., Any], seconds: float) -> float:
    def run_batch(number: int) -> tuple[int, float]:
        began, count = time.perf_counter(), 0
        while count < _RESETS and time.perf_counter() - began < seconds:
            reset(seed=number * _RESETS + count)
            count += 1
        return count, time.perf_counter() - began

    return _rate(run_batch, seconds)


def _step_rate(env: Env, episodes: list[tuple[int, list[str]]], seconds: float) -> float:
    def run_batch(number: int) -> tuple[int, float]:
        seed, actions = episodes[number % len(episodes)]
        env.reset(seed=seed)
        step: Callable[[str], Any] = env.step
        began = time.perf_counter()
        for action in actions:
            step(action)
        return len(actions), time.perf_counter() - began

    return _rate(run_batch, seconds)


def _rate(run_batch: Callable[[int], tuple[int, float]], seconds: float) -> float:
    """Measured calls per second of measured time. `run_batch` returns a number of calls and their seconds."""
    count, spent, number, end = 0, 0.0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end or not spent:
        more, took = run_batch(number)
        count, spent, number = count + more, spent + took, number + 1
    return count / spent
