"""Commands and model engines that another package brings, found by entry points and loaded when used.

Group `agentgym.commands`: a name, and a function that takes the arguments after it and returns an exit code or None.
Group `agentgym.engines`: a name NAME (`--policy NAME:MODEL`), and a function
`load(model, *, chat_template=None) -> (Engine, ChatCodec)`, which for `--tokens` is also given `logprobs=True`, and for
`--chat-template-kwargs` a dict `chat_template_kwargs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from agentgym_envs.errors import missing_extra

COMMANDS, ENGINES = "agentgym.commands", "agentgym.engines"
_KNOWN = {
    "train": "Train a model with TRL: [bold]train grpo[/] (multi-turn RL), [bold]train sft[/], and six more.",
    "tiny-model": "Make a small untrained model and tokenizer, for trying things out without a download.",
    "verl": "Train with verl on Ray, from one GPU to many nodes: [bold]verl data[/], [bold]verl train grpo[/].",
}
"""Commands of ours that show in the help with or without the extra that brings them."""
_PACKAGES = {
    "train": ("trl", "trl"),
    "tiny-model": ("transformers", "trl"),
    "hf": ("transformers", "trl"),
    "verl": ("verl", "verl"),
}


def add_commands(app: typer.Typer, panel: Callable[[str], str]) -> None:
    """Add a command for each plug-in, in a panel of the help; what follows its name is handed over as it is."""
    for name in sorted({*_KNOWN, *(point.name for point in entry_points(group=COMMANDS))}):
        app.command(
            name,
            help=_KNOWN.get(name, "A command of another package."),
            add_help_option=False,
            rich_help_panel=panel(name),
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )(_runner(name))


def shield(arguments: Sequence[str]) -> list[str]:
    """Put `--` behind the name of a plug-in's command, so that nothing after it is read as an option of ours."""
    names = {*_KNOWN, *(point.name for point in entry_points(group=COMMANDS))}
    place = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if place is None or arguments[place] not in names:
        return list(arguments)
    return [*arguments[: place + 1], "--", *arguments[place + 1 :]]


def load(group: str, name: str) -> Callable[..., Any]:
    """What the entry point refers to. Raises MissingExtra if that, or what it needs, is not there."""
    package, extra = _PACKAGES.get(name, (name, "all"))
    what = f"agentgym {name}" if group == COMMANDS else f"--policy {name}:MODEL"
    found: list[EntryPoint] = list(entry_points(group=group, name=name))
    if not found:
        raise missing_extra(what, package, extra)
    try:
        loaded: Callable[..., Any] = found[0].load()
    except ModuleNotFoundError as error:
        if name not in _PACKAGES or error.name is None:
            raise
        raise missing_extra(what, error.name.partition(".")[0], extra) from None
    return loaded


def has_engine(name: str) -> bool:
    """Whether there is a model engine of that name, or an extra of ours would bring it."""
    return name == "hf" or bool(entry_points(group=ENGINES, name=name))


def _runner(name: str) -> Callable[[typer.Context], int | None]:
    def command(context: typer.Context) -> int | None:
        result = load(COMMANDS, name)(list(context.args))
        return result if isinstance(result, int) else None

    return command
