"""Instances of templates as values: the rows of a query, each with random choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.parameters import Params, call_by_name

Instances: TypeAlias = Callable[..., Iterable[Params]]
"""Returns the parameters of all instances in a world, or of many. It may have the parameters `world` and `rng`."""

Choices: TypeAlias = Sequence[Any] | Callable[[World], Sequence[Any]]


def rows(query: str, *arguments: Any, sample: int = 0, rounds: int = 1, **choices: Choices) -> Instances:
    """Return the rows of a query as instances; see `choose`. An argument may be a function of the world."""

    def found(world: World) -> list[Params]:
        given = (one(world) if callable(one) else one for one in arguments)
        return [dict(row) for row in world.rows(query, *given)]

    return _choose(found, sample, 1, rounds, choices)


def choose(instances: Instances, *, sample: int = 0, times: int = 1, rounds: int = 1, **choices: Choices) -> Instances:
    """Return instances with random choices.

    Args:
        instances: the instances to begin with.
        sample: takes at most this many of them, at random.
        times: repeats each of them.
        rounds: repeats all of them.
        choices: values of further parameters, or functions of the world that return them: `text=PHRASES`.
    """
    return _choose(instances, sample, times, rounds, choices)


def _choose(instances: Instances, sample: int, times: int, rounds: int, choices: Mapping[str, Choices]) -> Instances:
    def chosen(world: World, rng: Random) -> Iterator[Params]:
        found = list(call_by_name(instances, {"world": world, "rng": rng}))
        found = rng.sample(found, min(sample, len(found))) if sample else found
        values = {name: some(world) if callable(some) else some for name, some in choices.items()}
        if not all(values.values()):  # a parameter without values: no instances
            return
        for row in [row for row in found for _ in range(times)] * rounds:
            yield {**row, **{name: rng.choice(some) for name, some in values.items()}}

    return chosen
