"""`agentgym validate`: OpenEnv's checks and those of the suite's contract, on any environment with texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import EnvArgs, cannot_write, check_writable, finite, names_of, print_json, stderr, stdout
from agentgym_envs.cli.envs import find_subject, parse_env_args
from agentgym_envs.trajectory import strict_json

if TYPE_CHECKING:
    from rich.table import Table

    from agentgym_envs.validate import CheckResult, ValidationReport

_BUDGET = 300.0
_MARKS = {
    "pass": "[green]✓[/]",
    "fail": "[red]✗[/]",
    "error": "[red]![/]",
    "skip": "[dim]–[/]",
}
_VERDICTS = {"pass": "green", "warn": "yellow", "fail": "red"}
_NUMBERS = ("sample", "estimate", "low", "high", "bound")

Env = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="Environment id, short name, MODULE:ID or MODULE:CLASS. Any Gymnasium environment with texts.",
        autocompletion=completion.envs,
    ),
]
Checks = Annotated[
    str | None,
    typer.Option(
        "--checks",
        help="Checks to run, separated by commas: ids, or static, runtime, semantic, hub, statistical, agentgym.",
    ),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write OpenEnv's form of the report; - prints only it.")
]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the report as JUnit XML.")]
Budget = Annotated[
    float, typer.Option(min=1, callback=finite, metavar="SECONDS", help="Longest duration; what is left is skipped.")
]
All = Annotated[bool, typer.Option("--all", help="Show passed and skipped checks as well.")]


def validate_command(
    env: Env,
    checks: Checks = None,
    env_arg: EnvArgs = None,
    budget: Budget = _BUDGET,
    json_file: JsonFile = None,
    junit: JunitFile = None,
    show_all: All = False,
) -> None:
    """Validate an environment: rewards, seeds, isolation, oracle, leaks, resources, and over forty other properties.

    The exit code is 1 if a check of severity "fail" failed, or ended in an error. A check that does not apply, or for
    which no time is left, is skipped with the reason; it counts neither as passed nor as failed.
    """
    from agentgym_envs.validate import load_subject, select_checks, validate  # which import httpx

    names = names_of(checks)
    chosen = select_checks(None if names is None else list(names))
    to_stdout = str(json_file) == "-"
    files = {"--json": None if to_stdout else json_file, "--junit": junit}
    for option, path in files.items():
        if path is not None:
            check_writable(option, path)
    subject = load_subject(find_subject(env), parse_env_args(env_arg), budget)
    with stderr().status("validating") as status:
        report = validate(subject, chosen, lambda check: status.update(f"measuring {check.id}"))
    _write("--json", files["--json"], strict_json(report.to_json(), indent=2) + "\n")
    _write("--junit", junit, report.to_junit())
    if to_stdout:
        print_json(report.to_json())
    else:
        _show(report, show_all)
    if report.verdict == "fail":
        raise typer.Exit(1)


def _write(option: str, path: Path | None, text: str) -> None:
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(option, path, error) from None


def _show(report: ValidationReport, show_all: bool) -> None:
    console = stdout()
    shown = [r for r in report.results if show_all or r.status in ("fail", "error")]
    if shown:
        console.print(_table(shown))
    if not show_all:
        console.print("[dim]--all shows every check, and what was measured.[/]")
    colour = _VERDICTS[report.verdict]
    console.print(f"[bold {colour}]{report.verdict}[/] {_safe(report.target)}: {report.summary}.", soft_wrap=True)


def _table(results: list[CheckResult]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    for result in results:
        table.add_row(_MARKS[result.status], result.check.id, "\n".join(_lines(result)))
    return table


def _lines(result: CheckResult) -> list[str]:
    if result.status == "pass":
        return [_safe(result.check.summary), f"[dim]{_safe(_numbers(result.measured))}[/]"]
    lines = [_safe(line) for line in result.evidence]
    if result.status == "skip":
        return [f"[dim]{line}[/]" for line in lines]
    if not result.failed:
        lines[0] = f"[yellow]{result.check.severity}:[/] {lines[0]}"
    numbers = _numbers(result.measured) if "estimate" in result.measured else ""
    return [*lines, *([f"[dim]{_safe(numbers)}[/]"] if numbers else []), f"[cyan]{_safe(result.check.remedy)}[/]"]


def _numbers(measured: Mapping[str, Any]) -> str:
    """The measured values in one line; of an estimate its interval and bound."""
    rest = ", ".join(f"{name} {value}" for name, value in measured.items() if name not in _NUMBERS)
    if "estimate" not in measured:
        return ", ".join(f"{name} {value}" for name, value in measured.items())
    sample, estimate, low, high, bound = (measured[name] for name in _NUMBERS)
    text = f"{estimate} (95 % interval {low} to {high}, {sample} tasks, bound {bound})"
    return f"{text}, {rest}" if rest else text


def _safe(text: str) -> str:
    """Escape Rich's markup."""
    from rich.markup import escape

    return escape(text)
