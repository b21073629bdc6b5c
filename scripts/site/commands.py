"""The reference of the command line, made from the program's own definition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from agentgym_envs.cli.app import make_app

_MARKUP = re.compile(r"\[/?(?:bold|italic|dim|green|yellow|red|cyan)?\]")
_PLUGINS = {
    "train": "The options are those of the environment and every field of TRL's config: `agentgym train ALGORITHM "
    "--help` lists them, [Algorithms](../algorithms.md) explains the algorithms, and "
    "[`agentgym_trl.config`](agentgym_trl/config.md) has our own.",
    "tiny-model": "`agentgym tiny-model DIR [--env ID] [--seed N] [--hidden-size N] [--layers N] [--heads N]`. "
    "It comes with the extra `trl`.",
    "verl": "`agentgym verl --help` lists what it can do; [Train on a cluster](../training-cluster.md) explains it.",
}


def commands_page() -> str:
    """Every command with its arguments and options."""
    program = typer.main.get_command(make_app())
    parts = ["# The command line", _clean(program.help or "")]
    parts += ["`--version` prints the version; `--debug` (or `AGENTGYM_DEBUG=1`) shows the traceback of an error."]
    parts += ["Exit codes: 0 success, 1 something failed while running, 2 what was asked cannot be, 130 Ctrl-C."]
    for words, command in _walk(program, "agentgym"):
        parts += _command(words, command)
    return "\n\n".join(parts) + "\n"


def first_sentence(text: str) -> str:
    """The first sentence of a help or a docstring, as a cell of a table."""
    first = _clean(text.partition("\n\n")[0])
    return re.split(r"(?<=[.])\s(?=[A-Z`])", first, maxsplit=1)[0].replace("|", "\\|")


def _walk(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    """The commands below a group, with the words that call them."""
    for name, command in group.commands.items():
        yield f"{words} {name}", command
        if hasattr(command, "commands"):
            yield from _walk(command, f"{words} {name}")


def _command(words: str, command: Any) -> list[str]:
    parts = [f"## `{words}`", _clean(command.help or "")]
    parts += [_PLUGINS[command.name]] if command.name in _PLUGINS else []
    shown = [parameter for parameter in command.params if parameter.name != "help" and not parameter.hidden]
    rows = [_row(parameter) for parameter in shown]
    return [*parts, "\n".join(["| | |", "|---|---|", *rows])] if rows else parts


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"| `{parameter.name.upper()}` | {_help(parameter)} |"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    default = "" if callable(parameter.default) or parameter.default in (None, False, ()) else parameter.default
    shown = f" (default: `{default}`)" if default != "" else ""
    return f"| `{names}{value}` | {_help(parameter)}{shown} |"


def _help(parameter: Any) -> str:
    return " ".join(_clean(getattr(parameter, "help", None) or "").replace("|", "\\|").split())


def _clean(text: str) -> str:
    """Help without rich's markup, as it is read in Markdown."""
    plain = _MARKUP.sub("", text).replace("\\[", "[").replace("<", "&lt;")
    return "\n\n".join(" ".join(part.split()) for part in plain.replace("\b", "").split("\n\n"))
