"""Options that the commands share, and the conversion of their values to environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agentgym_envs.cli.envs import full_name, with_native_tools
from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.mixture import MixtureEnv, read_env_kwargs, read_mixture

KWARGS = "--env-kwargs"
EnvKwargs = Annotated[
    str | None,
    typer.Option(
        KWARGS,
        metavar="JSON",
        help='Arguments for gym.make: \'{"worlds": "fictional"}\'. With several environments, one object for each id.',
    ),
]
Tools = Annotated[
    bool,
    typer.Option(
        "--tools",
        help="Native tool calls: actions are tools of the chat template, and observations have the role tool.",
    ),
]
Split = Annotated[str, typer.Option(help="Split to draw tasks from.")]
EvalSplit = Annotated[
    str | None, typer.Option(help="Split to validate on; by default validation, or test if it has no tasks.")
]
Tasks = Annotated[
    int | None, typer.Option(min=1, help="Number of tasks; by default all of a finite set, 1000 of an endless one.")
]
EvalTasks = Annotated[int | None, typer.Option(min=1, help="Number of tasks to validate on; by default up to 100.")]
Groups = Annotated[str | None, typer.Option(help="Groups to draw tasks from, separated by commas.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the draw of tasks and their order.")]

_LOSS_MODES = {"token": "token-mean", "episode": "seq-mean-token-mean"}


def members(names: Sequence[str], env_kwargs: str | None, *, tools: bool = False) -> list[MixtureEnv]:
    """The environments of ids or short names, with weights and, if asked for, native tools. Raises UsageError."""
    kwargs = read_env_kwargs(env_kwargs or "{}", KWARGS)
    found = read_mixture([full_name(name) for name in names], kwargs, option=KWARGS)
    return [replace(member, kwargs=with_native_tools(member.kwargs)) for member in found] if tools else found


def verl_settings(loss_average: str | None, chat_template: Path | None) -> dict[str, str]:
    """The settings of verl for `--loss-average` and `--chat-template`. Raises UsageError."""
    found: dict[str, str] = {}
    if loss_average is not None:
        found["actor_rollout_ref.actor.loss_agg_mode"] = _loss_mode(loss_average)
    if chat_template is not None:
        try:
            found["actor_rollout_ref.model.custom_chat_template"] = chat_template.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the chat template {chat_template} cannot be read: {error}") from None
    return found


def _loss_mode(average: str) -> str:
    if average == "turn":
        raise UsageError(
            "verl has no loss that is a mean over turns: use --loss-average token or episode, or "
            "agentgym train ALGORITHM --loss-average turn"
        )
    if average not in _LOSS_MODES:
        raise UsageError(f"there is no --loss-average {average!r}; choose from {', '.join(_LOSS_MODES)}")
    return _LOSS_MODES[average]
