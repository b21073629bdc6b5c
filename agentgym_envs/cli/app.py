"""The program `agentgym`: its commands, and what becomes of an error."""

from __future__ import annotations

import errno
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import agentgym_envs
from agentgym_envs.cli import (
    bench,
    compare,
    demos,
    doctor,
    evaluation,
    list_envs,
    play,
    plugins,
    report,
    search,
    serve,
    solve,
    view,
    webarena,
)
from agentgym_envs.cli.common import Interrupted
from agentgym_envs.errors import AgentGymError, UsageError

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
_DEBUG = "AGENTGYM_DEBUG"
_COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_envs.list_command,
    "play": play.play_command,
    "solve": solve.solve_command,
    "eval": evaluation.eval_command,
    "report": report.report_command,
    "compare": compare.compare_command,
    "view": view.view_command,
    "demos": demos.demos_command,
    "bench": bench.bench_command,
    "serve": serve.serve_command,
    "doctor": doctor.doctor_command,
}
_GROUPS: dict[str, tuple[str, Mapping[str, Callable[..., None]]]] = {
    "search": ("Make an index of a corpus, ask it, serve it.", search.COMMANDS),
    "webarena": ("Look at the sites of WebArena-v0 yourself.", webarena.COMMANDS),
}
_PANELS = {
    "Play": ("list", "play", "solve", "demos"),
    "Evaluate": ("eval", "report", "compare", "view"),
    "Train": ("train", "tiny-model", "verl"),
    "Serve": ("serve", "search", "webarena"),
    "This machine": ("doctor", "bench"),
}
"""The commands as the help shows them; one that is not here is a plug-in's."""
_KINDS = {
    "int range": "a whole number",
    "float range": "a number",
    "integer range": "a whole number",
    "integer": "a whole number",
    "int": "a whole number",
    "float": "a number",
}
"""What Typer calls its types, by its version, and what they are; one that another begins with comes later."""
_SPACE = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file is too large",
}


class _Commands(TyperGroup):
    """The commands in the order of their panels; Typer would put groups after commands, and plug-ins last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names; those that no panel names come last."""
        order = [name for names in _PANELS.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else len(order))


def make_app() -> typer.Typer:
    """The program with all commands, those of installed plug-ins included; nothing heavy is imported."""
    app = typer.Typer(
        cls=_Commands,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for name, command in _COMMANDS.items():
        app.command(name, help=_paragraphs(command), rich_help_panel=_panel(name))(_interruptible(command))
    for name, (what, commands) in _GROUPS.items():
        group = typer.Typer(help=what)
        group.callback(invoke_without_command=True)(_help)
        for word, command in commands.items():
            group.command(word, help=_paragraphs(command))(_interruptible(command))
        app.add_typer(group, name=name, rich_help_panel=_panel(name))
    plugins.add_commands(app, _panel)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    0 success, 1 something failed while running, 2 what was asked cannot be, 130 Ctrl-C. An error is one line on
    stderr; with --debug or AGENTGYM_DEBUG=1 its traceback stands before it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _log_to_stderr()
    try:
        command = typer.main.get_command(make_app())
        result = command.main(plugins.shield(arguments), prog_name="agentgym", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort, Interrupted) as error:
        return _report(str(error) or "interrupted", INTERRUPTED)
    except UsageError as error:
        return _report(_say(error), MISUSED)
    except AgentGymError as error:
        return _report(_say(error), FAILED)
    except BrokenPipeError:
        return _forget_stdout()
    except OSError as error:
        return _report(_say_os(error), FAILED)
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's own; where its class lives depends on Typer's version
            path = getattr(getattr(error, "ctx", None), "command_path", "agentgym")
            return _report(f"{_say_typer(error)} (see {path} --help)", getattr(error, "exit_code", MISUSED))
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


def _paragraphs(command: Callable[..., None]) -> str:
    """The docstring without its line breaks: the help wraps lines by the width of the terminal."""
    parts = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def _panel(name: str) -> str:
    return next((panel for panel, names in _PANELS.items() if name in names), "Plug-ins")


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C as an error of ours: Typer would make an exit code of it, and some of its versions another one."""

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


def _say(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", [])])


def _say_typer(error: Any) -> str:
    """Typer's own words, but for the names of its types."""
    said: str = error.format_message().rstrip(".")
    for kind, words in _KINDS.items():
        said = said.replace(f"is not a valid {kind}", f"is not {words}")
    return said


def _say_os(error: OSError) -> str:
    reason = _SPACE.get(error.errno or 0, error.strerror or str(error))
    where = f" ({error.filename})" if error.filename else ""
    return "; ".join([f"{reason}{where}", *getattr(error, "__notes__", [])])


def _forget_stdout() -> int:
    """The reader of a pipe went away: no message, and no second error when Python flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


class _Lines(logging.Handler):
    """One line a warning, on stderr as it is at that moment (a progress bar replaces it)."""

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        typer.echo(f"agentgym: {record.getMessage()}{f': {cause}' if cause else ''}", err=True)
        if cause and _debugging():
            typer.echo("".join(traceback.format_exception(cause)), err=True, nl=False)


def _log_to_stderr() -> None:
    logger = logging.getLogger("agentgym_envs")
    if not any(isinstance(handler, _Lines) for handler in logger.handlers):
        logger.addHandler(_Lines())
