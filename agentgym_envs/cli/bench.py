"""`agentgym bench`: how fast an environment is on this machine."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from agentgym_envs.cli.common import (
    Env,
    EnvArgs,
    EnvId,
    Json,
    begin,
    find_env,
    make_env,
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

Seconds = Annotated[float, typer.Option(min=0.05, help="How long to measure each of the two.")]


def bench_command(env: EnvId, seconds: Seconds = 2.0, env_arg: EnvArgs = None, as_json: Json = False) -> None:
    """Measure resets and steps a second of one environment in one process, through gym.make."""
    env_id = find_env(env)
    arguments = parse_env_args(env_arg)
    made = make_env(env_id, arguments)
    episodes, kind = _prepare(made)
    rates = {"resets_per_second": _reset_rate(made, seconds), "steps_per_second": _step_rate(made, episodes, seconds)}
    made.close()
    if as_json:
        print_json({"env": env_id, "actions": kind, **rates})
        return
    console = stdout()
    where = "on a server" if "base_url" in arguments else "on one core"
    console.print(f"[bold]{env_id}[/] {where}, {kind} actions")
    for name, rate in rates.items():
        console.print(f"  {name.partition('_')[0]:<7}[bold]{rate:>12,.0f}[/] a second {1e6 / rate:>10.1f} µs each")


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


def _reset_rate(env: Env, seconds: float) -> float:
    def some(number: int) -> tuple[int, float]:
        began, count = time.perf_counter(), 0
        while count < _RESETS and time.perf_counter() - began < seconds:
            env.reset(seed=number * _RESETS + count)
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
