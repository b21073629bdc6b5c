"""Commands and model engines of other packages, found by entry points and loaded on first use.

Group `agentgym.commands`: the name of a command, and a function that takes the arguments after the name and returns an
exit code or None.
Group `agentgym.engines`: a name NAME (`--policy NAME:MODEL`), and a function
`load(model, *, chat_template=None) -> (Engine, ChatCodec)`. It also receives `logprobs=True` with `--tokens`, and the
dict `chat_template_kwargs` with `--chat-template-kwargs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import typer

from agentgym_envs.cli.lazy import normalize_options
from agentgym_envs.errors import missing_extra

COMMANDS, ENGINES = "agentgym.commands", "agentgym.engines"
PANEL = "Plug-ins"
"""The panel of the help for commands of other packages."""


class _Adapter(NamedTuple):
    """A command or engine of our adapters: the package that it needs, the extra that installs it, and its help."""

    group: str
    package: str
    extra: str
    help: str = ""


_ADAPTERS = {
    "train": _Adapter(
        COMMANDS,
        "trl",
        "trl",
        "Train a model with TRL: [bold]train grpo[/] (multi-turn RL), [bold]train sft[/], and six more.",
    ),
    "tiny-model": _Adapter(
        COMMANDS,
        "transformers",
        "trl",
        "Make a small untrained model and tokenizer, to try things out without a download.",
    ),
    "verl": _Adapter(
        COMMANDS,
        "verl",
        "verl",
        "Train with verl on Ray, from one GPU to many nodes: [bold]verl data[/], [bold]verl train grpo[/].",
    ),
    "hf": _Adapter(ENGINES, "transformers", "trl"),
}
"""Known even if their extra is not installed; the help shows the commands."""


def panel_of(name: str) -> str:
    """The panel of the help for a plug-in's command."""
    return "Train" if name in _adapter_commands() else PANEL


def add_commands(app: typer.Typer) -> None:
    """Add a command for each plug-in. Its arguments are passed on unchanged."""
    for name in sorted(_command_names()):
        app.command(
            name,
            help=_adapter_commands().get(name, "A command of another package."),
            add_help_option=False,
            rich_help_panel=panel_of(name),
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )(_runner(name))


def protect_arguments(arguments: Sequence[str]) -> list[str]:
    """Insert `--` after the name of a plug-in's command, so that its options are not parsed here.

    Options of other commands get the spelling of the help.
    """
    names = _command_names()
    index = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if index is None or arguments[index] not in names:
        return normalize_options(arguments)
    return [*arguments[: index + 1], "--", *arguments[index + 1 :]]


def load(group: str, name: str) -> Callable[..., Any]:
    """Load the object of an entry point. Raises MissingExtra if it, or a package that it needs, is not installed."""
    known = _ADAPTERS.get(name)
    feature = f"agentgym {name}" if group == COMMANDS else f"--policy {name}:MODEL"
    found: list[EntryPoint] = list(entry_points(group=group, name=name))
    if not found:
        raise missing_extra(feature, *((known.package, known.extra) if known else (name, "all")))
    try:
        loaded: Callable[..., Any] = found[0].load()
    except ModuleNotFoundError as error:
        if known is None or error.name is None:
            raise
        raise missing_extra(feature, error.name.partition(".")[0], known.extra) from None
    return loaded


def has_engine(name: str) -> bool:
    """True if a model engine of that name is installed, or one of our extras provides it."""
    return name == "hf" or bool(entry_points(group=ENGINES, name=name))


def _adapter_commands() -> dict[str, str]:
    """The commands of our adapters with their help."""
    return {name: adapter.help for name, adapter in _ADAPTERS.items() if adapter.group == COMMANDS}


@cache
def _command_names() -> frozenset[str]:
    return frozenset({*_adapter_commands(), *(point.name for point in entry_points(group=COMMANDS))})


def _runner(name: str) -> Callable[[typer.Context], int | None]:
    def command(context: typer.Context) -> int | None:
        result = load(COMMANDS, name)(list(context.args))
        return result if isinstance(result, int) else None

    return command
