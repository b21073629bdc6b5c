"""`agentgym audit`: attackers that try to get rewards without solving the task, on any `TextEnv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import EnvArgs, Groups, Json, Seed, finite, names_of, print_json, stderr, stdout
from agentgym_envs.cli.envs import find_subject, parse_env_args

if TYPE_CHECKING:
    from rich.table import Table

    from agentgym_envs.audit import AuditReport, GroupResult

_SHOWN_ACTIONS = 3

Envs = Annotated[
    list[str],
    typer.Argument(
        metavar="ENV...",
        help="Environment ids, short names, MODULE:ID or MODULE:CLASS; each must be a TextEnv.",
        autocompletion=completion.envs,
    ),
]
Budget = Annotated[
    float,
    typer.Option(min=1, callback=finite, metavar="SECONDS", help="Longest duration per environment; the rest is left."),
]
Tasks = Annotated[int | None, typer.Option(min=1, help="Tasks per group; default: 6, or 1 in slow environments.")]
Names = Annotated[
    str | None, typer.Option("--attackers", help="Attackers or families, separated by commas; default: all.")
]


def audit_command(
    envs: Envs,
    budget: Budget = 300.0,
    tasks: Tasks = None,
    attackers: Names = None,
    groups: Groups = None,
    env_arg: EnvArgs = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Attack environments: find episodes that earn more than honest work does.

    Attackers do nothing, guess, forge results, leave out work, misuse other episodes, and search for rewards. The exit
    code is 1 if there is a finding: an episode that no sound environment gives. --json has its actions.
    """
    from agentgym_envs.audit import audit, select_attackers
    from agentgym_envs.validate import load_subject

    names = names_of(attackers)
    chosen = select_attackers(names)
    arguments = parse_env_args(env_arg)
    reports = []
    for env in envs:
        with stderr().status(f"auditing {env}") as status:
            report = audit(
                load_subject(find_subject(env), arguments, budget),
                chosen,
                tasks=tasks,
                groups=names_of(groups),
                seed=seed,
                progress=status.update,
            )
        reports.append(report)
        if not as_json:
            _show(report)
    if as_json:
        print_json([report.to_json() for report in reports])
    if any(report.findings for report in reports):
        raise typer.Exit(1)


def _show(report: AuditReport) -> None:
    from rich.markup import escape

    console = stdout()
    console.print(_table(report))
    for finding in report.findings:
        where = f"{finding.start.task_id}, seed {finding.start.seed}"
        console.print(f"[red]✗[/] {escape(f'{finding.attacker} ({finding.label}), {where}: {finding.reason}')}")
        actions = [f"{action!r:.100}" for action in finding.actions[:_SHOWN_ACTIONS]]
        more = len(finding.actions) - len(actions)
        console.print(f"[dim]  {escape(', '.join(actions))}{f', and {more} more' if more > 0 else ''}[/]")
    colour = "red" if report.findings else "green"
    console.print(f"[bold {colour}]{escape(report.target)}[/]: {escape(report.summary)}.", soft_wrap=True)


def _table(report: AuditReport) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("group", "tasks", "floor (95 %)", "luck", "best attacker", "oracle", "detours"):
        table.add_column(name, justify="left" if name in ("group", "best attacker") else "right")
    for group in report.groups:
        table.add_row(*_cells(group))
    return table


def _cells(group: GroupResult) -> list[str]:
    floor = f"{group.floor.mean:.2f} ({group.floor.low:.2f} to {group.floor.high:.2f})"
    luck = "-" if group.guess_rate is None else f"{group.guess_rate:.2f}"
    best = f"{group.best:.2f} {group.best_attacker}"
    detours = f"{group.detour_successes}/{group.detours}"
    return [group.group, str(group.tasks), floor, luck, best.strip(), f"{group.oracle:.2f}", detours]
