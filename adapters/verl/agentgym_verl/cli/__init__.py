"""`agentgym verl`: datasets for verl, and verl's own trainer started with the suite's configuration."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import typer

from agentgym_envs.cli.lazy import normalize_options
from agentgym_envs.errors import missing_extra
from agentgym_verl.cli.overrides import CONFIG_DIR


def verl(argv: Sequence[str]) -> int | None:
    """Run `agentgym verl` with its arguments; return the exit code. Raises MissingExtra."""
    for package in ("pyarrow", "verl", "transfer_queue"):
        if find_spec(package) is None:
            raise missing_extra("agentgym verl", package, "verl")
    command = typer.main.get_command(_app())
    result = command.main(normalize_options(argv), prog_name="agentgym verl", standalone_mode=False)
    return result if isinstance(result, int) else None


def _app() -> typer.Typer:
    from agentgym_verl.cli.data import data_command
    from agentgym_verl.cli.train import train_command

    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    app.command("data")(data_command)
    app.command("train")(train_command)
    app.command("config-path")(_config_path)
    return app


def _root(context: typer.Context) -> None:
    """Train on text environments with stock verl, on Ray, from one GPU to many nodes."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _config_path() -> None:
    """Print the folder of the configurations, for verl's own command.

    python -m verl.trainer.main_ppo --config-path "$(agentgym verl config-path)" --config-name agentgym ...
    """
    typer.echo(CONFIG_DIR)
