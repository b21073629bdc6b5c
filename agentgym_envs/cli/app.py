"""The program `agentgym`: the table of its commands, and error messages and exit codes."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

import agentgym_envs
from agentgym_envs.cli import plugins
from agentgym_envs.cli.lazy import Interrupted, docstring_of, paragraphs
from agentgym_envs.errors import AgentGymError, UsageError
from agentgym_envs.registration import load_object

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
_DEBUG, _COMPLETE = "AGENTGYM_DEBUG", "_AGENTGYM_COMPLETE"
PANELS = ("Play", "Evaluate", "Train", "Serve", "This machine", plugins.PANEL)
"""The panels of the help, in order; that of other packages comes last."""


class CliCommand(NamedTuple):
    """A command: its name, its function as "module:function", and its panel of the help."""

    name: str
    function: str
    panel: str

    def load(self) -> Callable[..., None]:
        """Import the function."""
        function: Callable[..., None] = load_object(self.function)
        return function


class CommandGroup(NamedTuple):
    """Commands under one name, from a module's table `COMMANDS` of subcommands."""

    name: str
    module: str
    panel: str
    summary: str


COMMANDS = (
    CliCommand("list", "agentgym_envs.cli.list_envs:list_command", "Play"),
    CliCommand("play", "agentgym_envs.cli.play:play_command", "Play"),
    CliCommand("solve", "agentgym_envs.cli.solve:solve_command", "Play"),
    CliCommand("demos", "agentgym_envs.cli.demos:demos_command", "Play"),
    CliCommand("eval", "agentgym_envs.cli.evaluation:eval_command", "Evaluate"),
    CliCommand("report", "agentgym_envs.cli.report:report_command", "Evaluate"),
    CliCommand("label", "agentgym_envs.cli.label:label_command", "Evaluate"),
    CliCommand("compare", "agentgym_envs.cli.compare:compare_command", "Evaluate"),
    CliCommand("validate", "agentgym_envs.cli.validate:validate_command", "Evaluate"),
    CliCommand("audit", "agentgym_envs.cli.audit:audit_command", "Evaluate"),
    CliCommand("view", "agentgym_envs.cli.view:view_command", "Evaluate"),
    CliCommand("export", "agentgym_envs.cli.export:export_command", "Evaluate"),
    CliCommand("serve", "agentgym_envs.cli.serve:serve_command", "Serve"),
    CliCommand("mcp", "agentgym_envs.cli.mcp:mcp_command", "Serve"),
    CliCommand("doctor", "agentgym_envs.cli.doctor:doctor_command", "This machine"),
    CliCommand("bench", "agentgym_envs.cli.bench:bench_command", "This machine"),
)
"""The commands, in the order of the help."""
GROUPS = (
    CommandGroup("search", "agentgym_envs.cli.search", "Serve", "Build, query and serve the index of a corpus."),
    CommandGroup("webarena", "agentgym_envs.cli.webarena", "Serve", "Open the sites of WebArena-v0 in your browser."),
)
_TYPE_NAMES = {
    "int range": "a whole number",
    "float range": "a number",
    "integer range": "a whole number",
    "integer": "a whole number",
    "int": "a whole number",
    "float": "a number",
}
"""Names of types in Typer's messages, and the words to show. A prefix of another name must come after it."""
_OS_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file is too large",
}


class _Commands(TyperGroup):
    """The commands in the order of their panels. Typer's own order is commands, groups, plug-ins."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        return sorted(super().list_commands(ctx), key=lambda name: PANELS.index(_panel(name)))


def make_app(only: str | None = None) -> typer.Typer:
    """Make the program with all commands, including those of installed plug-ins. Imports no heavy packages.

    With `only`, the name of a command or "", the others have just a name and a help, and are not imported.
    """
    app = typer.Typer(
        cls=_Commands,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for row in COMMANDS:
        if only in (None, row.name):
            command = _interruptible(row.load())
            app.command(row.name, help=paragraphs(command.__doc__ or ""), rich_help_panel=row.panel)(command)
        else:
            app.command(row.name, help=paragraphs(docstring_of(row.function)), rich_help_panel=row.panel)(_not_loaded)
    for group in GROUPS:
        if only not in (None, group.name):
            app.command(group.name, help=group.summary, rich_help_panel=group.panel)(_not_loaded)
            continue
        subcommands = typer.Typer(help=group.summary)
        subcommands.callback(invoke_without_command=True)(_help)
        for name, command in import_module(group.module).COMMANDS.items():
            subcommands.command(name, help=paragraphs(command.__doc__ or ""))(_interruptible(command))
        app.add_typer(subcommands, name=group.name, rich_help_panel=group.panel)
    plugins.add_commands(app)
    return app


@cache
def _program(only: str | None) -> Any:
    """The program of `make_app`. Finding plug-ins and reading signatures takes as long as a short command."""
    return typer.main.get_command(make_app(only))


def _command_of(arguments: Sequence[str]) -> str | None:
    """The command of a line, "" without one; None for a shell that asks for completions."""
    if _COMPLETE in os.environ:
        return None
    return next((word for word in arguments if not word.startswith("-")), "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Exit codes: 0 success, 1 failure while running, 2 invalid request, 130 Ctrl-C. An error is one line on stderr; with
    --debug or AGENTGYM_DEBUG=1 its traceback is printed first.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _log_to_stderr()
    try:
        program, words = _program(_command_of(arguments)), plugins.protect_arguments(arguments)
        result = program.main(words, prog_name="agentgym", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort, Interrupted) as error:
        return _report(str(error) or "interrupted", INTERRUPTED)
    except UsageError as error:
        return _report(_message(error), MISUSED)
    except AgentGymError as error:
        return _report(_message(error), FAILED)
    except BrokenPipeError:
        return _discard_stdout()
    except OSError as error:
        return _report(_os_message(error), FAILED)
    except Exception as error:
        if hasattr(error, "format_message"):  # an error of Typer; the module of its class depends on Typer's version
            path = getattr(getattr(error, "ctx", None), "command_path", "agentgym")
            return _report(f"{_typer_message(error)} (see {path} --help)", getattr(error, "exit_code", MISUSED))
        raise
    return result if isinstance(result, int) else OK


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Play, solve, evaluate and train on text environments for LLM agents."""
    if debug:
        os.environ[_DEBUG] = "1"
    if version:
        typer.echo(f"agentgym-envs {agentgym_envs.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _not_loaded() -> None:
    """The function of a command that was not imported; it is never called."""


def _panel(name: str) -> str:
    panels = {row.name: row.panel for row in (*COMMANDS, *GROUPS)}
    return panels.get(name) or plugins.panel_of(name)


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Convert Ctrl-C to `Interrupted`: Typer would convert it to an exit code that depends on its version."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None

    return run


def _debugging() -> bool:
    return os.environ.get(_DEBUG, "") not in ("", "0")


def _report(message: str, code: int) -> int:
    if _debugging() and sys.exc_info()[0] is not None:
        typer.echo(traceback.format_exc(), err=True, nl=False)
    typer.echo(f"agentgym: {' '.join(message.split())}", err=True)
    return code


def _message(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", [])])


def _typer_message(error: Any) -> str:
    """Typer's message with readable names of types, and a question for options that are like an unknown one."""
    message: str = error.format_message().rstrip(".")
    if near := getattr(error, "possibilities", None):
        name, options = message.partition(" (")[0].partition(" Did you")[0], " or ".join(sorted(near))
        message = f"{name}; did you mean {options}?"
    for name, words in _TYPE_NAMES.items():
        message = message.replace(f"is not a valid {name}", f"is not {words}")
    return message


def _os_message(error: OSError) -> str:
    reason = _OS_REASONS.get(error.errno or 0, error.strerror or str(error))
    where = f" ({error.filename})" if error.filename else ""
    return "; ".join([f"{reason}{where}", *getattr(error, "__notes__", [])])


def _discard_stdout() -> int:
    """Handle a closed pipe: print no message, and avoid a second error when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


class _StderrHandler(logging.Handler):
    """Print a warning as one line on the current `sys.stderr`, which a progress bar may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        typer.echo(f"agentgym: {record.getMessage()}{f': {cause}' if cause else ''}", err=True)
        if cause and _debugging():
            typer.echo("".join(traceback.format_exception(cause)), err=True, nl=False)


def _log_to_stderr() -> None:
    logger = logging.getLogger("agentgym_envs")
    if not any(isinstance(handler, _StderrHandler) for handler in logger.handlers):
        logger.addHandler(_StderrHandler())
