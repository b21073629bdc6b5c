"""Reports of an evaluation: on the terminal, and as Markdown, CSV and one HTML page."""

from agentgym_envs.cli.reports.contents import EvalReport, make_report, versions
from agentgym_envs.cli.reports.csv import to_csv
from agentgym_envs.cli.reports.html import to_html
from agentgym_envs.cli.reports.markdown import to_markdown
from agentgym_envs.cli.reports.terminal import print_agentgym_rl_table, print_report, print_title
from agentgym_envs.cli.reports.writing import write_all

__all__ = [
    "EvalReport",
    "make_report",
    "print_agentgym_rl_table",
    "print_report",
    "print_title",
    "to_csv",
    "to_html",
    "to_markdown",
    "versions",
    "write_all",
]
