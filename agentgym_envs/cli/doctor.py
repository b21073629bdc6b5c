"""`agentgym doctor`: what is installed, what is missing, what that blocks, and the command that installs it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import agentgym_envs
from agentgym_envs.cli import doctor_machine as machine
from agentgym_envs.cli import doctor_packages as packages
from agentgym_envs.cli.common import Json, print_json, stderr, stdout
from agentgym_envs.cli.doctor_scenarios import EnvironmentStatus, check_environment, play
from agentgym_envs.registration import REGISTRATIONS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_FOR = {
    "serve": "agentgym serve",
    "view": "agentgym view",
    "parquet": "agentgym export --format hf-dataset",
    "trl": "agentgym train, tiny-model, eval --policy hf:MODEL",
    "verl": "agentgym verl",
    "search-fast": "Search with bm25s",
    "search-dense": "Search by meaning, with an encoder",
    "webarena-verified": "the tasks of AgentGym/WebArenaOfficial-v0",
    "docs": "the documentation site",
    "dev": "scripts/check",
    "all": "every scenario, serving, viewing and training",
}
"""The purpose of extras that belong to no scenario. An extra that is not listed is shown without one."""
_YES, _NO, _OPEN = "[green]✓[/]", "[red]✗[/]", "[yellow]○[/]"
_NAME_WIDTH = 28  # the same in all tables, so that their columns align
_SHOWN = 4
_BUNDLES = ("all", "docs", "dev")

Deep = Annotated[bool, typer.Option("--deep", help="Play and time one episode of every environment that is ready.")]


class Extra(NamedTuple):
    """An extra of the package: the faults of its requirements, and what it is for."""

    name: str
    faults: tuple[str, ...]
    blocks: str
    wrong_python: str

    @property
    def ready(self) -> bool:
        """True if all of its requirements are installed."""
        return not self.faults and not self.wrong_python

    @property
    def get(self) -> str:
        """The command that installs it; "" if it is ready."""
        if self.wrong_python:
            return f"a Python {self.wrong_python}"
        return packages.install_command(self.name) if self.faults else ""


class Diagnosis(NamedTuple):
    """The result of all checks."""

    core: list[machine.Component]
    extras: list[Extra]
    machine: list[machine.Component]
    environments: list[EnvironmentStatus]

    @property
    def healthy(self) -> bool:
        """True if the core is complete and no played episode failed. A missing extra does not count."""
        failed = any(found.played is not None and not found.ready for found in self.environments)
        return all(component.installed for component in self.core) and not failed


def doctor_command(deep: Deep = False, as_json: Json = False) -> None:
    """Show what is installed, what is missing, what that blocks, and the command that installs it.

    The exit code is 0 if the core is complete. With --deep the oracle plays one episode of every environment that is
    ready; a failed episode makes the exit code 1.
    """
    found = diagnose()
    if deep:
        found = found._replace(environments=_played(found.environments))
    if as_json:
        print_json(_json(found))
    else:
        _show(stdout(), found)
    if not found.healthy:
        raise typer.Exit(1)


def diagnose() -> Diagnosis:
    """Run all checks. Imports no heavy packages."""
    components = machine.check_machine()
    by_name = {component.name: component for component in components}
    environments = [check_environment(row, by_name) for row in REGISTRATIONS]
    return Diagnosis(_core(), _extras(environments), components, environments)


def _core() -> list[machine.Component]:
    """Python, the package, and its requirements without extras."""
    version, wanted = platform.python_version(), packages.python_wanted()
    blocks, get = "everything", packages.install_command()
    python = machine.Component(
        "Python",
        packages.fits(version, wanted),
        f"{version} at {sys.executable}",
        blocks,
        f"install a Python {wanted}",
    )
    known = packages.version_of(packages.PACKAGE)
    own = machine.Component(
        packages.PACKAGE, known == agentgym_envs.__version__, _own(known), "extras", "pip install -e ."
    )
    rest = [
        machine.Component(r.name, r.fault is None, r.fault or r.installed or "", blocks, get) for r in packages.core()
    ]
    return [python, own, *rest]


def _own(known: str | None) -> str:
    code = agentgym_envs.__version__
    if known is None:
        return f"{code}, but not installed by pip, so its extras are unknown"
    return code if known == code else f"{code}, but pip installed version {known}; install it again"


def _extras(environments: Sequence[EnvironmentStatus]) -> list[Extra]:
    """The extras: first those of scenarios, last those that bundle others."""
    found = [_extra(name, environments) for name in packages.extras()]
    return sorted(found, key=lambda extra: (extra.name in _BUNDLES, "AgentGym/" not in extra.blocks[:9]))


def _extra(name: str, environments: Sequence[EnvironmentStatus]) -> Extra:
    wanted = packages.extras()[name]
    faults = tuple(requirement.fault for requirement in wanted if requirement.applies and requirement.fault)
    ids = ", ".join(found.id for found in environments if found.extra == name)
    bounds = {requirement.python for requirement in wanted if not requirement.applies}
    return Extra(name, faults, ids or _FOR.get(name, ""), min(bounds, default=""))


def _played(environments: Sequence[EnvironmentStatus]) -> list[EnvironmentStatus]:
    found = []
    with stderr().status("playing") as status:
        for one in environments:
            status.update(f"playing {one.id}")
            found.append(play(one))
    return found


def _json(found: Diagnosis) -> dict[str, Any]:
    return {
        "healthy": found.healthy,
        "version": agentgym_envs.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "core": [component._asdict() for component in found.core],
        "extras": [{**extra._asdict(), "ready": extra.ready, "get": extra.get} for extra in found.extras],
        "machine": [component._asdict() for component in found.machine],
        "environments": [_json_of(one) for one in found.environments],
        "get_all": _get_all(found.environments),
    }


def _json_of(one: EnvironmentStatus) -> dict[str, Any]:
    return {**one._asdict(), "needs": [need._asdict() for need in one.needs], "ready": one.ready}


def _show(console: Console, found: Diagnosis) -> None:
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    console.print(f"[bold]agentgym-envs {agentgym_envs.__version__}[/] on {where}\n", soft_wrap=True)
    console.print(_table("core", "found", [(_mark(c.installed, _NO), c.name, c.found, "") for c in found.core]))
    console.print(_table("machine", "found", [(_mark(c.installed), c.name, c.found, c.blocks) for c in found.machine]))
    console.print(_table("extra", "for", [(_mark(e.ready), e.name, e.blocks, _missing(e)) for e in found.extras]))
    console.print(_table("environment", "state", [_row_of(one) for one in found.environments]))
    _show_commands(console, found)
    ready = sum(one.ready for one in found.environments)
    console.print(f"[bold]{ready} of {len(found.environments)} environments are ready.[/]", end=" ")
    console.print("The core is complete." if found.healthy else "[red]Something that should work does not.[/]")


def _mark(installed: bool, otherwise: str = _OPEN) -> str:
    return _YES if installed else otherwise


def _table(name: str, what: str, rows: Iterable[tuple[str, str, str, str]]) -> Table:
    """A table with a mark, a name, the state, and in yellow what is missing or blocked."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column(name, no_wrap=True, min_width=_NAME_WIDTH)
    table.add_column(what, overflow="fold")
    for mark, label, text, lack in rows:
        joined = f"{_safe(text)} [yellow]· {_safe(lack)}[/]" if lack and text else _safe(text or lack)
        table.add_row(mark, label, joined)
    return table


def _missing(extra: Extra) -> str:
    """A short list of the missing packages of an extra; the large extras may lack many."""
    if extra.wrong_python:
        return f"is for Python {extra.wrong_python}"
    short = list(map(packages.short, extra.faults))
    more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
    return f"missing: {', '.join(short[:_SHOWN])}{more}" if short else ""


def _row_of(one: EnvironmentStatus) -> tuple[str, str, str, str]:
    lack = f"needs {'; '.join(need.what for need in one.needs)}" if one.needs else ""
    return _mark(one.ready, _NO if one.played else _OPEN), one.id, _state(one), lack


def _state(one: EnvironmentStatus) -> str:
    if one.needs:
        return ""
    if one.played is None:
        return "ready"
    turns, seconds = one.played["turns"], one.played["seconds"]
    if one.ready:
        return f"ready: solved in {turns} turn{'s' * (turns != 1)}, {seconds:.2f} s"
    return f"failed after {seconds:.2f} s: {one.played['error'] or 'the oracle did not solve its task'}"


def _show_commands(console: Console, found: Diagnosis) -> None:
    """Print each command once, on its own line, so that it can be copied."""
    rows = [(component.name, component.get) for component in found.core if not component.installed]
    rows += [(extra.name, extra.get) for extra in found.extras if extra.name not in _BUNDLES]
    rows += [(component.name, component.get) for component in found.machine if not component.installed]
    rows += [(one.id, need.get) for one in found.environments for need in one.needs]
    if all_of_them := _get_all(found.environments):
        rows.append(("every environment's packages", all_of_them))
    commands = dict[str, tuple[str, str]]()
    for name, get in rows:
        plain = get.partition("  #")[0]  # commands that differ only in their comment count as one
        first, shown = commands.get(plain, (name, ""))
        commands[plain] = first, max(shown, get, key=len)
    commands.pop("", None)
    if commands:
        console.print("[bold]How to get what is missing[/]")
    for name, get in commands.values():
        console.print(f"  [dim]{_safe(name)}:[/] [cyan]{_safe(get)}[/]", soft_wrap=True)
    if commands:
        console.print()


def _get_all(environments: Sequence[EnvironmentStatus]) -> str:
    """One command that installs all packages that environments lack."""
    lacking = {one.extra: None for one in environments if one.extra and _lacks_packages(one)}
    return packages.install_command(*(name for name in lacking if name)) if lacking else ""


def _lacks_packages(one: EnvironmentStatus) -> bool:
    return any(need.get == packages.install_command(one.extra or "") for need in one.needs)


def _safe(text: str) -> str:
    """Escape the text, so that `[babyai]` in a pip command is not read as markup."""
    from rich.markup import escape

    return escape(text)
