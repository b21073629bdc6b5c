"""`agentgym report`: rebuild the reports of a run from its trajectories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli.common import check_writable, print_json, stdout
from agentgym_envs.cli.evaluating.options import OUTPUT, AgentGymRL, By, Json, Labels
from agentgym_envs.cli.label import label_missing, read_label_table
from agentgym_envs.cli.run_store import RESULT, TRAJECTORIES, read_episodes, read_result
from agentgym_envs.errors import UsageError
from agentgym_envs.whole_files import write_whole

if TYPE_CHECKING:
    from agentgym_envs.cli.reports import EvalReport

Paths = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folder of a run, or files of trajectories (JSONL).")
]
Html = Annotated[
    Path | None, typer.Option("--html", rich_help_panel=OUTPUT, metavar="FILE", help="Write an HTML page with plots.")
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", rich_help_panel=OUTPUT, metavar="FILE", help="Write every value with its interval."),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", rich_help_panel=OUTPUT, metavar="FILE", help="Write Markdown tables.")
]

_KINDS = {"settings": dict, "versions": dict, "group_order": list, "skipped_tasks": list, "retried": int, "usage": dict}
"""The keys of `eval.json` that a report uses, and their types."""
_MAX_SHOWN = 3
"""The most runs in an error message."""


def report_command(
    paths: Paths,
    html: Html = None,
    csv: Csv = None,
    markdown: Markdown = None,
    labels: Labels = False,
    agentgym_rl: AgentGymRL = False,
    by: By = "group",
    as_json: Json = False,
) -> None:
    """Show the result of a run and write its reports again.

    For a folder, report.html, report.md and metrics.csv are written to it, unless --html, --csv or --markdown choose
    other files. Several files of trajectories count as one run.
    """
    from agentgym_envs.cli import reports

    for option, path in (("--html", html), ("--csv", csv), ("--markdown", markdown)):
        if path is not None:
            check_writable(option, path)
    report = _read(paths, agentgym_rl, by, labels)
    wanted: dict[Path | None, Callable[[EvalReport], str]] = {
        html: reports.to_html,
        csv: reports.to_csv,
        markdown: reports.to_markdown,
    }
    wanted.pop(None, None)
    for path, render in wanted.items():
        assert path is not None
        write_whole(path, render(report))
    if not wanted and not as_json and paths[0].is_dir():
        reports.write_all(paths[0], report)
    if as_json:
        table = None if report.agentgym_rl_table is None else report.agentgym_rl_table.to_json()
        mistakes = {} if report.mistakes is None else {"mistakes": report.mistakes.to_json()}
        metrics = report.evaluation.to_json()
        print_json({**report.result, "metrics": metrics, "agentgym_rl_table": table, **mistakes})
        return
    console = stdout()
    reports.print_title(console, report)
    reports.print_report(console, report)
    if agentgym_rl and report.agentgym_rl_table is not None:
        reports.print_agentgym_rl_table(console, report.agentgym_rl_table)


def _read(paths: Sequence[Path], agentgym_rl: bool, by: str, label: bool) -> EvalReport:
    from agentgym_envs.cli.reports import make_report

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise UsageError("give one folder, or files of trajectories; `agentgym compare` compares several runs")
    files = [path / TRAJECTORIES for path in folders] or list({path.resolve(): path for path in paths}.values())
    for path in files:
        if not path.is_file():
            _refuse_folder_of_runs(folders)
            raise UsageError(f"{path} is not a file of trajectories; give the folder of a run, or JSONL files")
    episodes = read_episodes(files, of_eval=bool(folders))
    if not episodes:
        raise UsageError(f"{', '.join(map(str, paths))} contains no episode, so there is nothing to report")
    result = _result(folders[0]) if folders else {}
    _check_whole(paths[0], result, len(episodes))
    if label:
        label_missing(files)
    order, labels = result.get("group_order") or (), read_label_table(files)
    return make_report(episodes, order, result, agentgym_rl=agentgym_rl, by=by, labels=labels)


def _check_whole(folder: Path, result: Mapping[str, Any], found: int) -> None:
    """Raise UsageError if a finished run has lost episodes: its reports would become those of the rest."""
    metrics = result.get("metrics")
    overall = metrics.get("overall") if isinstance(metrics, dict) else None
    counted = overall.get("episodes") if isinstance(overall, dict) else None
    if result.get("complete") is True and type(counted) is int and found < counted:
        raise UsageError(
            f"{folder / TRAJECTORIES} has lost episodes: {found} are left, and {RESULT} counts {counted}. `agentgym "
            f"eval` with --out {folder} --resume plays the others; give the file itself to report on what is left"
        )


def _refuse_folder_of_runs(folders: Sequence[Path]) -> None:
    """Raise UsageError with the names of some runs, if the folder is a folder of runs."""
    runs = sorted(record.parent.as_posix() for folder in folders for record in folder.glob(f"*/{TRAJECTORIES}"))
    if runs:
        more = f" … {len(runs)} in all" if len(runs) > _MAX_SHOWN else ""
        shown = ", ".join(runs[:_MAX_SHOWN])
        raise UsageError(f"{folders[0]} is not a run, but contains folders of runs: {shown}{more}; give one of them")


def _result(folder: Path) -> Mapping[str, Any]:
    """Read `eval.json`; empty if there is none. Raises UsageError."""
    path = folder / RESULT
    if not path.exists():
        return {}
    try:
        found = read_result(path)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}; move it away to report on the trajectories alone") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(key, kind()), kind) for key, kind in _KINDS.items()):
        raise UsageError(f"{path} was not written by eval; move it away to report on the trajectories alone")
    return found
