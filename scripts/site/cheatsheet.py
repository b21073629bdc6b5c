"""The tables of the cheat sheet, made from the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import typer
from commands import first_sentence

import agentgym_envs
from agentgym_envs.cli import run_store
from agentgym_envs.cli.app import make_app
from agentgym_envs.cli.envs import SHORT_NAMES
from agentgym_envs.core import TextEnv
from agentgym_envs.export.formats import FORMATS
from agentgym_envs.grammar import ENV_GRAMMARS
from agentgym_envs.labels import labels_path
from agentgym_envs.registration import REGISTRATIONS, env_class
from agentgym_envs.rollout.token_file import tokens_path

_COMMON = set(inspect.signature(TextEnv.__init__).parameters)
"""Arguments that every environment has."""
_EXCEPTIONS = "errors of this package: see `agentgym_envs.errors`"


class FileFormat(NamedTuple):
    """A file that commands write or read."""

    name: str
    writer: str
    contents: str


FILES = (
    FileFormat(run_store.TRAJECTORIES, "`eval --out`", "one episode per line; the fields are below"),
    FileFormat(run_store.RESULT, "`eval --out`", "settings, versions, digests of the tasks, metrics"),
    FileFormat(", ".join(run_store.REPORTS), "`eval --out`, `report`", "the report, to read and to process"),
    FileFormat(tokens_path(run_store.TRAJECTORIES).name, "`eval --tokens`", "ids, masks and log-probabilities"),
    FileFormat(labels_path(run_store.TRAJECTORIES).name, "`label`, `eval --labels`", "regret and mistakes of turns"),
    FileFormat("run.json", "`train`, `verl train`", "the settings of a training run"),
    FileFormat("metrics.jsonl", "`train`, `verl train`", "one line of metrics per step"),
    FileFormat("trajectories/step-N.jsonl, eval-N.jsonl", "`train`, `verl train`", "the episodes of a step"),
    *(FileFormat(f"NAME{row.out}", f"`export --format {name}`", row.summary) for name, row in FORMATS.items()),
)


def command_table() -> str:
    """Every command with its first sentence."""
    program: Any = typer.main.get_command(make_app())
    rows = []
    for name in program.list_commands(None):
        command = program.commands[name]
        words = [f"{name} {inner}" for inner in getattr(command, "commands", ())] or [name]
        shown = "<br>".join(f"`agentgym {word}`" for word in words)
        rows.append([shown, first_sentence(command.help or "")])
    return _table(["command", ""], rows)


def environment_table() -> str:
    """Every id with its short name and the arguments that only it has."""
    short = {env_id: name for name, env_id in SHORT_NAMES.items()}
    rows = [[f"`{row.id}`", f"`{short[row.id]}`", _own_arguments(row.id)] for row in REGISTRATIONS]
    return _table(["id", "on the command line", "its own arguments"], rows)


def common_arguments() -> str:
    """The arguments of every environment, with their defaults."""
    found = inspect.signature(TextEnv.__init__).parameters.values()
    return ", ".join(_argument(one) for one in found if one.kind is one.KEYWORD_ONLY)


def name_table() -> str:
    """The names that `import agentgym_envs` offers."""
    names = [name for name in agentgym_envs.__all__ if not _is_error(name)]
    rows = [[f"`{name}`", first_sentence(inspect.getdoc(getattr(agentgym_envs, name)) or "")] for name in names]
    return _table(["name", ""], [*rows, [_names(filter(_is_error, agentgym_envs.__all__)), _EXCEPTIONS]])


def grammar_table() -> str:
    """The action formats."""
    rows = [[f"`{name}`", first_sentence(inspect.getdoc(made) or "")] for name, made in ENV_GRAMMARS.items()]
    return _table(["grammar", ""], rows)


def eval_table() -> str:
    """The options of `agentgym eval` by the panels of its help."""
    program: Any = typer.main.get_command(make_app())
    panels: dict[str, list[str]] = {}
    for option in program.commands["eval"].params:
        if option.param_type_name == "option" and option.name != "help":
            panels.setdefault(getattr(option, "rich_help_panel", None) or "Others", []).append(option.opts[0])
    return _table(["about", "options"], [[panel, _names(names)] for panel, names in panels.items()])


def file_table() -> str:
    """The files, and what writes them."""
    return _table(["file", "written by", "contents"], [[_names(f.name.split(", ")), *f[1:]] for f in FILES])


def field_table() -> str:
    """The fields of a line of a trajectory file."""
    from dataclasses import fields

    from agentgym_envs import Task, Trajectory, Turn

    kinds = {"an episode": Trajectory, "`task`": Task, "each of `turns`": Turn}
    return _table(["of", "fields"], [[name, _names(f.name for f in fields(kind))] for name, kind in kinds.items()])


def _own_arguments(env_id: str) -> str:
    """The keywords of a class, and of its base classes as long as they pass further ones on."""
    found = dict[str, None]()
    for kind in env_class(env_id).__mro__:
        if "__init__" in vars(kind):
            parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
            found |= dict.fromkeys(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)
            if not any(one.kind is one.VAR_KEYWORD for one in parameters):
                break
    return _names(name for name in found if name not in _COMMON)


def _argument(parameter: inspect.Parameter) -> str:
    return f"`{parameter.name}={parameter.default!r}`"


def _is_error(name: str) -> bool:
    found = getattr(agentgym_envs, name)
    return isinstance(found, type) and issubclass(found, Exception)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)
