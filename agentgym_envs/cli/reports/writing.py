"""Writing the files of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.csv import to_csv
from agentgym_envs.cli.reports.html import to_html
from agentgym_envs.cli.reports.markdown import to_markdown
from agentgym_envs.cli.run_store import REPORTS
from agentgym_envs.whole_files import write_whole

_FORMS: tuple[Callable[[EvalReport], str], ...] = (to_html, to_markdown, to_csv)


def write_all(directory: Path, report: EvalReport) -> None:
    """Write report.html, report.md and metrics.csv to the directory. Raises OSError."""
    for name, render in zip(REPORTS, _FORMS, strict=True):
        write_whole(directory / name, render(report))
