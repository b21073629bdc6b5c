"""The repository as a release sees it: distributions, tracked files, versions, changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_VERSION_FILES = {
    "agentgym_envs/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (\S+)$",
}
"""The files with the version besides pyproject.toml."""


def tracked(root: Path, *paths: str) -> list[str]:
    """The files below these paths that git knows and that are there, from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", *paths], cwd=root, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def copy_tracked(root: Path, target: Path) -> None:
    """Copy the tracked files, so that nothing else in a working tree can get into an artefact."""
    for name in tracked(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, target / name)


@dataclass(frozen=True)
class Distribution:
    """A folder with a pyproject.toml that describes a distribution."""

    root: Path
    folder: str

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The contents of pyproject.toml."""
        return tomllib.loads((self.root / self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def project(self) -> dict[str, Any]:
        """The table [project]."""
        found: dict[str, Any] = self.settings["project"]
        return found

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return str(self.project["name"])

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.project["version"])

    @property
    def packages(self) -> list[str]:
        """The folders of its packages, from the root of the repository."""
        named = self.settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        return [str(Path(self.folder, name)) for name in named]

    @property
    def left_out(self) -> list[str]:
        """The folders that its sdist leaves out."""
        excluded = self.settings["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"]
        return [name.strip("/") for name in excluded]


def distributions(root: Path) -> list[Distribution]:
    """The distributions of the repository."""
    files = [Path(name) for name in tracked(root) if Path(name).name == "pyproject.toml"]
    found = [Distribution(root, str(file.parent)) for file in sorted(files)]
    return [one for one in found if "project" in one.settings]


def versions(root: Path) -> dict[str, str]:
    """The version that each file states; "none" if it states none."""
    found = {f"{Path(one.folder, 'pyproject.toml')}": one.version for one in distributions(root)}
    for name, pattern in _VERSION_FILES.items():
        stated = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        found[name] = stated[1] if stated else "none"
    return found


def changelog_section(text: str, version: str) -> str | None:
    """The contents of a section of CHANGELOG.md; None if there is no section with this name and a date."""
    date = "" if version == "Unreleased" else r" - \d{4}-\d\d-\d\d"
    found = re.search(rf"^## \[{re.escape(version)}\]{date}[ ]*\n(.*?)(?=^## \[|\Z)", text, re.M | re.S)
    return found[1].strip() if found else None


def release_notes(root: Path, version: str) -> tuple[str, str]:
    """The notes of a version, and the section they are from: its own, else "Unreleased"."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in (version, "Unreleased"):
        if section := changelog_section(text, name):
            return f"# {version}\n\n{_without_links_to_files(section)}\n", name
    return f"# {version}\n\nNo changes are listed.\n", "none"


def _without_links_to_files(text: str) -> str:
    """The text with the words of links whose targets are files of the repository, which notes cannot reach."""
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)\s]+\)", r"\1", text)
