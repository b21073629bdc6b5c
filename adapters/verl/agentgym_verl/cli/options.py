"""Options that the commands share, and what was typed for an environment turned into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from agentgym_envs.cli.envs import full_name
from agentgym_envs.rollout.mixture import MixtureEnv, read_env_kwargs, read_mixture

KWARGS = "--env-kwargs"
EnvKwargs = Annotated[
    str | None,
    typer.Option(
        KWARGS,
        metavar="JSON",
        help='Arguments for gym.make: \'{"worlds": "fictional"}\'. With several environments, such objects by id.',
    ),
]
Split = Annotated[str, typer.Option(help="Split that tasks are drawn from.")]
EvalSplit = Annotated[
    str | None, typer.Option(help="Split to validate on; by default validation, or test if there is none.")
]
Tasks = Annotated[
    int | None, typer.Option(min=1, help="Number of tasks; by default all of a table, 1000 if there is no end of them.")
]
EvalTasks = Annotated[int | None, typer.Option(min=1, help="Number of tasks to validate on; by default 100 at most.")]
Groups = Annotated[str | None, typer.Option(help="Groups that tasks are drawn from, with commas between.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides which tasks are drawn, in which order.")]


def members(names: Sequence[str], env_kwargs: str | None) -> list[MixtureEnv]:
    """The environments that were named, as ids or short names, with weights. Raises UsageError."""
    kwargs = read_env_kwargs(env_kwargs or "{}", KWARGS)
    return read_mixture([full_name(name) for name in names], kwargs, option=KWARGS)
