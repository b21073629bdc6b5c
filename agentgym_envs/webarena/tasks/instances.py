"""Instances of templates as values: the rows of a query, each with random choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.parameters import Params, call_by_name

Instances: TypeAlias = Callable[..., Iterable[Params]]
"""Returns the parameters of all instances in a world, or of many. It may have the parameters `world` and `rng`."""


def rows(query: str, *arguments: Any, sample: int = 0, **choices: Sequence[Any]) -> Instances:
    """Return the rows of a query as instances. An argument may be a function of the world.

    `sample` takes this many rows at random. `choices` adds a random value to each row: `text=PHRASES`.
    """

    def found(world: World) -> list[Params]:
        given = (one(world) if callable(one) else one for one in arguments)
        return [dict(row) for row in world.rows(query, *given)]

    return _choose(found, sample, 1, choices)


def choose(instances: Instances, *, sample: int = 0, times: int = 1, **choices: Sequence[Any]) -> Instances:
    """Return a sample of the instances, each repeated and with a random value for each of the choices."""
    return _choose(instances, sample, times, choices)


def _choose(instances: Instances, sample: int, times: int, choices: Mapping[str, Sequence[Any]]) -> Instances:
    def chosen(world: World, rng: Random) -> Iterator[Params]:
        found = list(call_by_name(instances, {"world": world, "rng": rng}))
        for row in rng.sample(found, sample) if sample else found:
            for _ in range(times):
                yield {**row, **{name: rng.choice(some) for name, some in choices.items()}}

    return chosen
