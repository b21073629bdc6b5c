"""`agentgym report`: the reports of a run, made again from its trajectories."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli.common import check_writable, print_json, stdout
from agentgym_envs.cli.evaluating.options import OUTPUT, Json, Suite
from agentgym_envs.cli.run_store import RESULT, TRAJECTORIES, read_episodes, replace_text
from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.cli.reports import Report

Paths = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="The folder of a run, or files of trajectories (JSONL).")
]
Html = Annotated[
    Path | None, typer.Option("--html", rich_help_panel=OUTPUT, metavar="FILE", help="Write a page, with plots.")
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", rich_help_panel=OUTPUT, metavar="FILE", help="Write every value with its interval."),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", rich_help_panel=OUTPUT, metavar="FILE", help="Write tables for a text.")
]

_KINDS = {"settings": dict, "versions": dict, "group_order": list, "skipped_tasks": list, "replayed": int}
"""What a report reads of `eval.json`."""
_FEW = 3
"""So many runs are named in an error."""


def report_command(
    paths: Paths,
    html: Html = None,
    csv: Csv = None,
    markdown: Markdown = None,
    suite: Suite = False,
    as_json: Json = False,
) -> None:
    """Show what a run came to, and write its reports again.

    Of a folder, report.html, report.md and metrics.csv are written there, unless --html, --csv or --markdown say what
    to write and where. What several files hold counts as one run.
    """
    from agentgym_envs.cli import reports

    for option, path in (("--html", html), ("--csv", csv), ("--markdown", markdown)):
        if path is not None:
            check_writable(option, path)
    report = _read(paths, suite)
    wanted: dict[Path | None, Callable[[Report], str]] = {
        html: reports.to_html,
        csv: reports.to_csv,
        markdown: reports.to_markdown,
    }
    wanted.pop(None, None)
    for path, render in wanted.items():
        assert path is not None
        replace_text(path, render(report))
    if not wanted and not as_json and paths[0].is_dir():
        reports.write_all(paths[0], report)
    if as_json:
        table = None if report.suite is None else report.suite.to_json()
        print_json({**report.result, "metrics": report.evaluation.to_json(), "suite": table})
        return
    console = stdout()
    reports.print_report(console, report)
    if suite and report.suite is not None:
        reports.print_suite(console, report.suite)


def _read(paths: Sequence[Path], suite: bool) -> Report:
    from agentgym_envs.cli.reports import make_report

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise UsageError("a report is of one folder, or of files; `agentgym compare` puts several runs side by side")
    files = [path / TRAJECTORIES for path in folders] or list({path.resolve(): path for path in paths}.values())
    for path in files:
        if not path.is_file():
            _refuse_folder_of_runs(folders)
            raise UsageError(
                f"there are no trajectories in {path}, which is not a file; name a run's folder or a JSONL"
            )
    episodes = read_episodes(files, of_eval=bool(folders))
    if not episodes:
        raise UsageError(f"{', '.join(map(str, paths))} holds no episode, so there is nothing to report")
    result = _result(folders[0]) if folders else {}
    return make_report(episodes, result.get("group_order") or (), result, suite=suite)


def _refuse_folder_of_runs(folders: Sequence[Path]) -> None:
    """Raises UsageError if the folder that was named holds those of runs, and names some."""
    runs = sorted(record.parent.as_posix() for folder in folders for record in folder.glob(f"*/{TRAJECTORIES}"))
    if runs:
        more = f" … {len(runs)} in all" if len(runs) > _FEW else ""
        raise UsageError(
            f"{folders[0]} is no run, but holds the folders of some: {', '.join(runs[:_FEW])}{more}; name one of them"
        )


def _result(folder: Path) -> Mapping[str, Any]:
    """What `eval.json` says of the run; nothing if there is none. Raises UsageError."""
    path = folder / RESULT
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}; move it away to report of the trajectories alone") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(key, kind()), kind) for key, kind in _KINDS.items()):
        raise UsageError(f"{path} is not what eval wrote; move it away to report of the trajectories alone")
    return found
