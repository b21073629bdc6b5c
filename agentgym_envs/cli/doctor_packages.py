"""Required and installed packages, read from metadata without importing them."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from typing import NamedTuple

PACKAGE = "agentgym-envs"
_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")
_PYTHON = re.compile(r"python_version\s*(<=|>=|==|!=|<|>)\s*['\"]([\d.]+)['\"]")
_OPERATORS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Requirement(NamedTuple):
    """A required package. `wanted` is its version range (">=1.2,<2"), `python` a bound on Python ("<3.13")."""

    name: str
    wanted: str
    extras: tuple[str, ...]
    python: str = ""

    @property
    def installed(self) -> str | None:
        """The installed version."""
        return version_of(self.name)

    @property
    def applies(self) -> bool:
        """True if the requirement applies to this version of Python."""
        return fits(".".join(map(str, sys.version_info[:2])), self.python)

    @property
    def fault(self) -> str | None:
        """A short description of the problem; None if there is none."""
        if self.installed is None:
            return f"{self.name} is missing"
        if not fits(self.installed, self.wanted):
            return f"{self.name} is {self.installed}, required is {self.wanted}"
        return None


def short(fault: str) -> str:
    """A fault without "is missing", for a text that already says so."""
    return fault.removesuffix(" is missing")


def parse(text: str) -> Requirement:
    """Parse a line of Requires-Dist. Its marker may name extras and a Python version, as ours do."""
    found = _REQUIREMENT.match(text)
    assert found is not None
    name, wanted, marker = found[1], found[2].strip(), found[3] or ""
    bound = _PYTHON.search(marker)
    return Requirement(name, wanted, tuple(_EXTRA.findall(marker)), f"{bound[1]}{bound[2]}" if bound else "")


def fits(version: str, wanted: str) -> bool:
    """True if a version is in a range such as ">=1.2,<2". Suffixes such as "rc1" are ignored."""
    return all(_fits(version, part.strip()) for part in wanted.split(",") if part.strip())


def _fits(version: str, part: str) -> bool:
    sign, bound = re.match(r"([<>=!~]*)\s*(.*)", part).groups()  # type: ignore[union-attr]
    star, low = bound.endswith(".*"), _numbers(bound.removesuffix(".*"))
    have = _numbers(version)
    if star or sign == "~=":
        same = have[: len(low) - (sign == "~=")] == low[: len(low) - (sign == "~=")]
        return (same and have >= low) if sign == "~=" else same == (sign == "==")
    width = max(len(have), len(low))
    padded = [numbers + (0,) * (width - len(numbers)) for numbers in (have, low)]
    return _OPERATORS[sign](padded[0], padded[1])


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def version_of(name: str) -> str | None:
    """The version of a distribution; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def requirements() -> tuple[Requirement, ...]:
    """All requirements of this package, with and without extras; empty if pip did not install it."""
    try:
        lines = metadata.requires(PACKAGE)
    except metadata.PackageNotFoundError:
        lines = None
    return tuple(parse(line) for line in lines or ())


@cache
def extras() -> Mapping[str, tuple[Requirement, ...]]:
    """The extras in the metadata, with the requirements of each beyond the core."""
    try:
        names = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        names = []
    return {name: tuple(r for r in requirements() if name in r.extras) for name in names}


def core() -> tuple[Requirement, ...]:
    """The requirements without any extra."""
    return tuple(requirement for requirement in requirements() if not requirement.extras)


def python_wanted() -> str:
    """The supported versions of Python, such as ">=3.11"."""
    try:
        found = metadata.metadata(PACKAGE).get_all("Requires-Python") or []
    except metadata.PackageNotFoundError:
        found = []
    return ",".join(found)


def install_command(*names: str) -> str:
    """The command that installs these extras; without names, the core."""
    wanted = f"[{','.join(dict.fromkeys(names))}]" if names else ""
    return f"pip install '{PACKAGE}{wanted}'"
