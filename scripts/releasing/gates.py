"""The conditions of a release: a clean tree, a green check, one version, a changelog section, and a new version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from check import git, marker_path

from releasing.project import changelog_section, distributions, versions


class Gate(NamedTuple):
    """A condition, and why it is not met; "" if it is."""

    name: str
    fault: str


def gates(root: Path, remote: str, *, ask_index: bool = True) -> Iterator[Gate]:
    """Check every condition of a release."""
    version = distributions(root)[0].version
    yield Gate("clean tree", _dirty(root))
    yield Gate("green check of this tree", _unchecked(root))
    yield Gate("one version", _versions_differ(root))
    yield Gate("changelog section", _no_section(root, version))
    yield Gate("new tag", _tag_exists(root, remote, f"v{version}"))
    if ask_index:
        for one in distributions(root):
            yield Gate(f"new version of {one.name}", published(one.name, version))


def _dirty(root: Path) -> str:
    changed = git(root, "status", "--porcelain").splitlines()
    return f"{len(changed)} files are changed or not tracked: commit or remove them" if changed else ""


def _unchecked(root: Path) -> str:
    try:
        marker = json.loads(marker_path(root).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "there is no record of a check: run scripts/check all"
    if marker["failed"]:
        return f"the last check failed ({', '.join(marker['failed'])}): run scripts/check all"
    if marker["tree"] != git(root, "rev-parse", "HEAD^{tree}"):
        return "the last check was of another tree: run scripts/check all"
    return "" if marker["mode"] == "all" else "the last check took one slice of each sweep: run scripts/check all"


def _versions_differ(root: Path) -> str:
    found = versions(root)
    return "" if len(set(found.values())) == 1 else ", ".join(f"{name} has {value}" for name, value in found.items())


def _no_section(root: Path, version: str) -> str:
    section = changelog_section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if section is None:
        return f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`"
    return "" if section else f"the section of {version} in CHANGELOG.md is empty"


def _tag_exists(root: Path, remote: str, tag: str) -> str:
    if git(root, "tag", "--list", tag):
        return f"the tag {tag} exists"
    if remote not in git(root, "remote").split():
        return f"there is no remote {remote}, so that nothing can be published; name one by --remote"
    try:
        return f"{remote} has the tag {tag}" if git(root, "ls-remote", "--tags", remote, tag) else ""
    except subprocess.CalledProcessError as error:
        return f"the tags of {remote} cannot be read: {error.stderr.strip()[-200:]}"


def published(name: str, version: str, ask: Callable[[str], str] | None = None) -> str:
    """A fault if the package index has the version; `ask` returns the index's list of versions."""
    listed = re.search(r"Available versions: (.*)", (ask or _index_versions)(name))
    found = [each.strip() for each in listed[1].split(",")] if listed else []
    return f"the package index has {name} {version}: raise the version" if version in found else ""


def _index_versions(name: str) -> str:
    """The output of pip; a package that does not exist there has no versions."""
    words = [sys.executable, "-m", "pip", "index", "versions", name, "--pre", "--disable-pip-version-check"]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120).stdout
