"""`agentgym doctor`: what is installed here, what is missing, what that blocks, and the command that brings it."""

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
from agentgym_envs.cli.doctor_scenarios import Standing, play, standing
from agentgym_envs.registration import REGISTRATIONS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_FOR = {
    "serve": "agentgym serve",
    "view": "agentgym view",
    "trl": "agentgym train, tiny-model, eval --policy hf:MODEL",
    "verl": "agentgym verl",
    "search-fast": "Search with bm25s",
    "search-dense": "Search by meaning, with an encoder",
    "webarena-verified": "the tasks of AgentGym/WebArenaOfficial-v0",
    "docs": "the site of the documentation",
    "dev": "scripts/check",
    "all": "every scenario, serving, viewing and training",
}
"""What the extras are for that are not a scenario's. One that is not here is shown without."""
_YES, _NO, _OPEN = "[green]✓[/]", "[red]✗[/]", "[yellow]○[/]"
_NAME_WIDTH = 28  # the tables stand below each other
_SHOWN = 4
_BUNDLES = ("all", "docs", "dev")

Deep = Annotated[bool, typer.Option("--deep", help="Play an episode of every environment that is ready, and time it.")]


class Extra(NamedTuple):
    """An extra of the package: what is wrong with its requirements, and what it is for."""

    name: str
    faults: tuple[str, ...]
    blocks: str
    wrong_python: str

    @property
    def ready(self) -> bool:
        """Whether everything that it asks for is there."""
        return not self.faults and not self.wrong_python

    @property
    def get(self) -> str:
        """The command that brings it, or nothing where it is there."""
        if self.wrong_python:
            return f"a Python {self.wrong_python}"
        return packages.install_command(self.name) if self.faults else ""


class Diagnosis(NamedTuple):
    """Everything that was found."""

    core: list[machine.Part]
    extras: list[Extra]
    parts: list[machine.Part]
    environments: list[Standing]

    @property
    def healthy(self) -> bool:
        """Whether the core is fine; what an extra lacks is no illness. An episode that was played and failed is."""
        failed = any(found.played is not None and not found.ready for found in self.environments)
        return all(part.there for part in self.core) and not failed


def doctor_command(deep: Deep = False, as_json: Json = False) -> None:
    """Say what is installed, what is missing, what that blocks, and the command that brings it.

    The exit code is 0 if the core is fine. With --deep an oracle plays an episode of every environment that is ready;
    one that fails makes the code 1.
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
    """Look at everything; nothing heavy is imported."""
    parts = machine.parts()
    by_name = {part.name: part for part in parts}
    environments = [standing(row, by_name) for row in REGISTRATIONS]
    return Diagnosis(_core(), _extras(environments), parts, environments)


def _core() -> list[machine.Part]:
    """Python, the package, and what it needs in any case."""
    version, wanted = platform.python_version(), packages.python_wanted()
    blocks, get = "everything", packages.install_command()
    python = machine.Part(
        "Python",
        packages.fits(version, wanted),
        f"{version} at {sys.executable}",
        blocks,
        f"install a Python {wanted}",
    )
    known = packages.version_of(packages.PACKAGE)
    own = machine.Part(packages.PACKAGE, known == agentgym_envs.__version__, _own(known), "extras", "pip install -e .")
    rest = [machine.Part(r.name, r.fault is None, r.fault or r.installed or "", blocks, get) for r in packages.core()]
    return [python, own, *rest]


def _own(known: str | None) -> str:
    code = agentgym_envs.__version__
    if known is None:
        return f"{code}, but not installed by pip, so nobody knows its extras"
    return code if known == code else f"{code}, but pip knows version {known}; install it anew"


def _extras(environments: Sequence[Standing]) -> list[Extra]:
    """The scenarios' first, and last those that bundle others."""
    found = [_extra(name, environments) for name in packages.extras()]
    return sorted(found, key=lambda extra: (extra.name in _BUNDLES, "AgentGym/" not in extra.blocks[:9]))


def _extra(name: str, environments: Sequence[Standing]) -> Extra:
    wanted = packages.extras()[name]
    faults = tuple(requirement.fault for requirement in wanted if requirement.applies and requirement.fault)
    ids = ", ".join(found.id for found in environments if found.extra == name)
    bounds = {requirement.python for requirement in wanted if not requirement.applies}
    return Extra(name, faults, ids or _FOR.get(name, ""), min(bounds, default=""))


def _played(environments: Sequence[Standing]) -> list[Standing]:
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
        "core": [part._asdict() for part in found.core],
        "extras": [{**extra._asdict(), "ready": extra.ready, "get": extra.get} for extra in found.extras],
        "machine": [part._asdict() for part in found.parts],
        "environments": [_json_of(one) for one in found.environments],
        "get_all": _get_all(found.environments),
    }


def _json_of(one: Standing) -> dict[str, Any]:
    return {**one._asdict(), "needs": [need._asdict() for need in one.needs], "ready": one.ready}


def _show(console: Console, found: Diagnosis) -> None:
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    console.print(f"[bold]agentgym-envs {agentgym_envs.__version__}[/] on {where}\n", soft_wrap=True)
    console.print(_table("core", "found", [(_mark(p.there, _NO), p.name, p.found, "") for p in found.core]))
    console.print(_table("machine", "found", [(_mark(p.there), p.name, p.found, p.blocks) for p in found.parts]))
    console.print(_table("extra", "for", [(_mark(e.ready), e.name, e.blocks, _missing(e)) for e in found.extras]))
    console.print(_table("environment", "state", [_row_of(one) for one in found.environments]))
    _show_commands(console, found)
    ready = sum(one.ready for one in found.environments)
    console.print(f"[bold]{ready} of {len(found.environments)} environments are ready.[/]", end=" ")
    console.print("The core is fine." if found.healthy else "[red]Something that should work does not.[/]")


def _mark(there: bool, otherwise: str = _OPEN) -> str:
    return _YES if there else otherwise


def _table(name: str, what: str, rows: Iterable[tuple[str, str, str, str]]) -> Table:
    """Rows of a mark, a name, what there is, and in yellow what is missing or blocked."""
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
    """What an extra lacks, in few words: the large ones lack many packages."""
    if extra.wrong_python:
        return f"is for Python {extra.wrong_python}"
    short = list(map(packages.short, extra.faults))
    more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
    return f"missing: {', '.join(short[:_SHOWN])}{more}" if short else ""


def _row_of(one: Standing) -> tuple[str, str, str, str]:
    lack = f"needs {'; '.join(need.what for need in one.needs)}" if one.needs else ""
    return _mark(one.ready, _NO if one.played else _OPEN), one.id, _state(one), lack


def _state(one: Standing) -> str:
    if one.needs:
        return ""
    if one.played is None:
        return "ready"
    turns, seconds = one.played["turns"], one.played["seconds"]
    if one.ready:
        return f"ready: solved in {turns} turn{'s' * (turns != 1)}, {seconds:.2f} s"
    return f"failed after {seconds:.2f} s: {one.played['error'] or 'the oracle did not solve its task'}"


def _show_commands(console: Console, found: Diagnosis) -> None:
    """Every command once, on a line of its own that can be copied."""
    rows = [(part.name, part.get) for part in found.core if not part.there]
    rows += [(extra.name, extra.get) for extra in found.extras if extra.name not in _BUNDLES]
    rows += [(part.name, part.get) for part in found.parts if not part.there]
    rows += [(one.id, need.get) for one in found.environments for need in one.needs]
    if all_of_them := _get_all(found.environments):
        rows.append(("every environment's packages", all_of_them))
    commands = dict[str, tuple[str, str]]()
    for name, get in rows:
        plain = get.partition("  #")[0]  # the same command with a word about it is one, and that word is shown
        first, shown = commands.get(plain, (name, ""))
        commands[plain] = first, max(shown, get, key=len)
    commands.pop("", None)
    if commands:
        console.print("[bold]How to get what is missing[/]")
    for name, get in commands.values():
        console.print(f"  [dim]{_safe(name)}:[/] [cyan]{_safe(get)}[/]", soft_wrap=True)
    if commands:
        console.print()


def _get_all(environments: Sequence[Standing]) -> str:
    """The one command that brings the packages of every environment that lacks some."""
    lacking = {one.extra: None for one in environments if one.extra and _lacks_packages(one)}
    return packages.install_command(*(name for name in lacking if name)) if lacking else ""


def _lacks_packages(one: Standing) -> bool:
    return any(need.get == packages.install_command(one.extra or "") for need in one.needs)


def _safe(text: str) -> str:
    """Text in which nothing is markup: `[babyai]` of a pip command is none."""
    from rich.markup import escape

    return escape(text)
