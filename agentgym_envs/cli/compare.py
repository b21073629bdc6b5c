"""`agentgym compare`: paired differences between runs, and the tasks that flipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import Json, print_json, stderr, stdout
from agentgym_envs.cli.reports.attempts import max_attempts
from agentgym_envs.cli.run_store import RESULT, TRAJECTORIES, read_episodes, read_result
from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate import VALUES, ComparedRow, Comparison, compare
from agentgym_envs.trajectory import Trajectory

if TYPE_CHECKING:
    from rich.console import Console

_CONDITIONS = ("split", "max_turns", "arguments", "task table")
_SETTINGS = ("max_tokens", "max_turn_tokens", "temperature")
Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN RUN...", help="Directories of eval, or JSONL files of trajectories; the first is the baseline."
    ),
]
ValueName = Annotated[
    str,
    typer.Option(
        "--value", help=f"Value to compare: {' or '.join(VALUES)}.", autocompletion=completion.choices(*VALUES)
    ),
]
Flips = Annotated[int, typer.Option(min=0, help="Maximum number of flipped tasks to name, in each direction.")]
Partial = Annotated[bool, typer.Option("--partial", help="Compare only the tasks that are in both runs.")]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """The episodes of a run, and the settings and order of groups in its `eval.json`, if it has one."""

    name: str
    episodes: Sequence[Trajectory]
    settings: Mapping[str, Any]
    group_order: Sequence[str]


def compare_command(
    runs: Runs, value: ValueName = "success", flips: Flips = 10, partial: Partial = False, as_json: Json = False
) -> None:
    """Compare runs with the first one, paired by task: per group and overall, with 95 % intervals and sign tests.

    Pairing removes the difficulty of the tasks, so it detects smaller differences than two separate intervals.
    """
    if len(runs) < 2:
        raise UsageError("there is only one run; give at least two, the baseline first")
    if value not in VALUES:
        raise UsageError(f"--value takes {' or '.join(VALUES)}, not {value!r}")
    base, *others = _read_runs(runs)
    results = [(other, _compare(base, other, value, partial), _differences(base, other)) for other in others]
    if as_json:
        print_json({"baseline": base.name, "value": value, "runs": [_json(*result) for result in results]})
        return
    for other, comparison, differences in results:
        _print(stdout(), (base, other), value, comparison, flips)
        _warn(comparison, differences)


def _read_runs(paths: Sequence[str]) -> list[ComparedRun]:
    """Read the runs. A run is named by the last part of its path, or by the full path if that is not unique."""
    short = [_short_name(Path(os.path.normpath(path))) for path in paths]
    return [_read_run(path, name if short.count(name) == 1 else path) for path, name in zip(paths, short, strict=True)]


def _short_name(path: Path) -> str:
    """The name of a folder or file; for `trajectories.jsonl`, which every run has, that of its folder."""
    return path.parent.name if path.name == TRAJECTORIES and path.parent.name else path.name


def _read_run(path: str, name: str) -> ComparedRun:
    folder = Path(path)
    record = folder / TRAJECTORIES if folder.is_dir() else folder
    if not record.is_file():
        fault = f"the directory {path} has no {TRAJECTORIES}" if folder.is_dir() else f"there is no file {path}"
        raise UsageError(f"{fault}; a run is a directory of `agentgym eval --out`, or a JSONL file")
    episodes = read_episodes([record], of_eval=folder.is_dir())
    if not episodes:
        raise UsageError(f"{record} contains no episode yet")
    result = _read_result(folder / RESULT) if folder.is_dir() else {}
    groups = _object(result.get("metrics")).get("groups")
    names = [row.get("group") for row in groups if isinstance(row, dict)] if isinstance(groups, list) else []
    order = dict.fromkeys(name for name in names if isinstance(name, str))
    return ComparedRun(name, episodes, _object(result.get("settings")), list(order))


def _object(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


def _read_result(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return _object(read_result(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}; give its {TRAJECTORIES} instead of the directory") from None


def _compare(base: ComparedRun, other: ComparedRun, value: str, partial: bool) -> Comparison:
    try:
        return compare(
            base.episodes,
            other.episodes,
            value=VALUES[value],
            group_order=base.group_order,
            allow_partial=partial,
        )
    except UsageError as error:
        error.add_note(f"the runs are {base.name} and {other.name}")
        if not partial and _tasks(base) & _tasks(other):
            error.add_note("--partial compares the tasks that are in both runs")
        raise


def _tasks(run: ComparedRun) -> set[tuple[str, str]]:
    return {(episode.env_id, episode.task.id) for episode in run.episodes}


def _differences(base: ComparedRun, other: ComparedRun) -> list[str]:
    """The differences between the conditions of two runs that affect the comparison, as sentences."""
    several_attempts, agents = _several_attempts(base, other), (_agent(base), _agent(other))
    names = _SETTINGS if several_attempts else (*_SETTINGS, "attempts")  # reported once
    found = [*_differing_settings(base, other, names), *several_attempts]
    if differing := agents[0] != agents[1]:
        found.insert(0, f"agent: {agents[0]} -> {agents[1]}")
    old, new = (_conditions(run, _grammar_of(run) if differing else None) for run in (base, other))
    for env_id in sorted(old.keys() & new.keys()):
        for condition, before, after in zip(_CONDITIONS, old[env_id], new[env_id], strict=True):
            if before and after and before != after:
                found.append(
                    f"{env_id}: {condition} is {_listed(before)} in {base.name}, {_listed(after)} in {other.name}"
                )
    return found


def _agents(run: ComparedRun) -> list[dict[str, Any]]:
    """The agents in the settings and episodes of a run; entries without a name are ignored."""
    recorded = [run.settings.get("agent"), *(episode.meta.get("agent") for episode in run.episodes)]
    return [agent for agent in map(_object, recorded) if isinstance(agent.get("name"), str)]


def _agent(run: ComparedRun) -> str:
    """The agents of a run as text, with their context policy unless it is "full"."""
    found = {
        agent["name"] + (f" ({agent['context']})" if agent.get("context", "full") != "full" else "")
        for agent in _agents(run)
    }
    return " and ".join(sorted(found)) or "none"


def _grammar_of(run: ComparedRun) -> str | None:
    """The default grammar of the agent of a run; None without an agent."""
    from agentgym_envs.rollout import make_agent

    try:
        return next((make_agent(agent["name"]).grammar for agent in _agents(run)), None)
    except UsageError:  # an agent of another version or package
        return None


def _differing_settings(base: ComparedRun, other: ComparedRun, names: Sequence[str]) -> list[str]:
    """The differing settings of two runs of eval, among the limits of answers and agents."""
    old, new = (
        {name: run.settings[name] for name in _SETTINGS if name in run.settings}
        | {"attempts": _object(run.settings.get("agent")).get("attempts", 1)}
        for run in (base, other)
    )
    if not base.settings or not other.settings:
        return []
    return [
        f"{name} is {old[name]} in {base.name}, {new[name]} in {other.name}"
        for name in names
        if name in old and name in new and old[name] != new[name]
    ]


def _several_attempts(base: ComparedRun, other: ComparedRun) -> list[str]:
    """A sentence about the run with several attempts per episode, if the other has only one."""
    attempts = {run.name: max_attempts(run.episodes) for run in (base, other)}
    return [
        f"{name} had up to {count} attempts per episode and was given the outcome of each; the last attempt counts"
        for name, count in attempts.items()
        if count > 1 and min(attempts.values()) == 1
    ]


def _conditions(run: ComparedRun, grammar: str | None) -> dict[str, tuple[set[str], ...]]:
    """The values of `_CONDITIONS` by environment. The grammar of the agent is not listed among the arguments."""
    found: dict[str, tuple[set[str], ...]] = {}
    digests = _object(run.settings.get("task_digests"))
    for episode in run.episodes:
        split, turns, arguments, digest = found.setdefault(episode.env_id, (set(), set(), set(), set()))
        split.add(episode.task.split)
        turns.add(str(episode.meta.get("max_turns", "unknown")))
        own = {key: v for key, v in episode.env_kwargs.items() if grammar is None or (key, v) != ("grammar", grammar)}
        arguments.add(json.dumps(own, sort_keys=True))
        digest.update({str(digests[episode.env_id])[:12]} if episode.env_id in digests else ())
    return found


def _json(other: ComparedRun, comparison: Comparison, differences: Sequence[str]) -> dict[str, Any]:
    return {"run": other.name, "differing_conditions": differences, **comparison.to_json()}


def _print(
    console: Console, runs: tuple[ComparedRun, ComparedRun], value: str, comparison: Comparison, flips: int
) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    base, other = (escape(run.name) for run in runs)
    console.print(f"[bold]{other}[/] against [bold]{base}[/], {value}", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold", min_width=3)
    for name in ("tasks", "baseline", "run", "gain  [95% CI]", "up", "down", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    several = len(comparison.environments) > 1
    for environment in comparison.environments:
        for row in comparison.groups:
            if row.env_id == environment.env_id:
                table.add_row(escape(row.group or ""), *_cells(row, value))
        if several:
            table.add_row(environment.env_id, *_cells(environment, value), style="bold", end_section=True)
        else:
            table.add_section()
    table.add_row("all", *_cells(comparison.overall, value), style="bold")
    console.print(table)
    _print_flips(console, comparison.overall, flips)


def _cells(row: ComparedRow, value: str) -> list[str]:
    found = row.difference
    if found is None or row.before is None or row.after is None:
        return ["0", *"––––––"]
    points = value == "success"
    before, after = (f"{100 * mean:.1f}%" if points else f"{mean:.3f}" for mean in (row.before, row.after))
    gain = [f"{100 * x:+.1f}" if points else f"{x:+.3f}" for x in (found.mean, found.low, found.high)]
    # If all tasks gained the same, the variance between tasks is unknown and there is no interval.
    around = "" if found.low == found.high else f"  [{gain[1]}, {gain[2]}]"
    p_value = "<.001" if row.p_value < 0.001 else f"{row.p_value:.3f}"
    return [
        f"{found.tasks:,}",
        before,
        after,
        gain[0] + around,
        str(row.up),
        str(row.down),
        p_value,
    ]


def _print_flips(console: Console, overall: ComparedRow, flips: int) -> None:
    from rich.markup import escape

    for direction, tasks, colour in (("now solved", overall.won, "green"), ("no longer solved", overall.lost, "red")):
        more = f", and {len(tasks) - flips:,} more (--flips N)" if len(tasks) > flips else ""
        named = ": " + escape(", ".join(tasks[:flips])) if tasks and flips else ""
        console.print(f"[{colour}]{direction}[/] {len(tasks):,}{named}{more if named else ''}", soft_wrap=True)
    if overall.difference and (count := overall.difference.excluded):
        tasks_are = (
            "1 task without a usable episode in one run is"
            if count == 1
            else (f"{count:,} tasks without a usable episode in one run are")
        )
        console.print(f"[yellow]{tasks_are} excluded.[/]")
    console.print()


def _warn(comparison: Comparison, differences: Sequence[str]) -> None:
    """Print differing conditions and unpaired tasks on stderr."""
    from rich.markup import escape

    console = stderr()
    for difference in differences:
        console.print(f"[yellow]not the same conditions:[/] {escape(difference)}", soft_wrap=True)
    for run, tasks in (("baseline", comparison.only_before), ("other run", comparison.only_after)):
        if tasks:
            shown = escape(_listed(tasks))
            console.print(f"[yellow]left out, only in the {run}:[/] {shown}", soft_wrap=True)


def _listed(names: Iterable[str]) -> str:
    """The first three names, and the total if there are more."""
    names = sorted(names)
    return ", ".join(names[:3]) + (f" … {len(names):,} in all" if len(names) > 3 else "")
