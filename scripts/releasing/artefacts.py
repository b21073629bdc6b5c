"""Build sdist and wheel, and inspect what is in them."""

from __future__ import annotations

import email.message
import email.parser
import hashlib
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from releasing.project import Distribution, copy_tracked, tracked

_CHECKED: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 or newer

MAX_MEGABYTES = {"wheel": 10.0, "sdist": 20.0, "file": 8.0}
"""Upper bounds of an artefact and of a file in it; the package index takes 100 MB."""
UNWANTED = re.compile(
    r"(^|/)(__pycache__|\.git|\.ci|\.venv[^/]*|\.(mypy|pytest|ruff)_cache|\.hypothesis|node_modules|build|dist)(/|$)"
    r"|\.(pyc|pyo|orig|rej|swp|part|partial|pem|key|p12|log)$|(^|/)(\.env|\.netrc|\.pypirc|\.DS_Store|id_rsa)$|~$"
)
"""Names that no artefact may have."""
SECRET = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/=]{20}"
    rb"|\b(?:AKIA[0-9A-Z]{16}|ghp_\w{36}|hf_[A-Za-z]{34}|pypi-AgE\w{20})"
)
"""Private keys and tokens of services."""


@dataclass(frozen=True)
class Artefact:
    """A wheel or an sdist, with its files; their names in an sdist are without its top folder."""

    path: Path
    kind: str
    files: Mapping[str, bytes]

    @property
    def megabytes(self) -> float:
        """Its size."""
        return self.path.stat().st_size / 1e6

    @property
    def digest(self) -> str:
        """Its SHA-256."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    @property
    def metadata(self) -> email.message.Message:
        """Its METADATA or PKG-INFO."""
        ending = ".dist-info/METADATA" if self.kind == "wheel" else "PKG-INFO"
        name = next(name for name in self.files if name.endswith(ending))
        return email.parser.Parser().parsestr(self.files[name].decode("utf-8"))


def read_artefact(path: Path) -> Artefact:
    """Read a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return Artefact(path, "wheel", {name: archive.read(name) for name in archive.namelist()})
    files = {}
    with tarfile.open(path) as archive:
        for member in archive:
            data = archive.extractfile(member) if member.isfile() else None
            files[member.name.partition("/")[2]] = b"" if data is None else data.read()
    return Artefact(path, "sdist", files)


def build(one: Distribution, python: str, scratch: Path, out: Path) -> list[Artefact]:
    """Build an sdist from the tracked files, and a wheel from the sdist, as an installer does that has no wheel.

    `python` is an interpreter with hatchling. Raises CalledProcessError.
    """
    tree, unpacked = scratch / "tree", scratch / "unpacked"
    copy_tracked(one.root, tree)
    out.mkdir(parents=True, exist_ok=True)
    _hatchling(python, "sdist", tree / one.folder, out)
    stem = f"{one.name.replace('-', '_')}-{one.version}"
    sdist = out / f"{stem}.tar.gz"
    shutil.unpack_archive(sdist, unpacked, **_CHECKED)
    _hatchling(python, "wheel", unpacked / stem, out)
    return [read_artefact(sdist), read_artefact(next(out.glob(f"{stem}-*.whl")))]


def built(one: Distribution, folder: Path) -> list[Artefact]:
    """Read the sdist and the wheel that were built into a folder. Raises FileNotFoundError."""
    stem = f"{one.name.replace('-', '_')}-{one.version}"
    paths = [folder / f"{stem}.tar.gz", *folder.glob(f"{stem}-*.whl")]
    if len(paths) < 2:
        raise FileNotFoundError(f"{folder} has no wheel of {one.name} {one.version}")
    return [read_artefact(path) for path in paths]


def _hatchling(python: str, target: str, source: Path, out: Path) -> None:
    words = [python, "-m", "hatchling", "build", "--target", target, "--directory", str(out.resolve())]
    subprocess.run(words, cwd=source, capture_output=True, text=True, check=True)


def faults(one: Distribution, artefact: Artefact) -> Iterator[str]:
    """Faults of the size and the contents of an artefact."""
    if artefact.megabytes > MAX_MEGABYTES[artefact.kind]:
        yield f"{artefact.megabytes:.1f} MB, more than {MAX_MEGABYTES[artefact.kind]:g}"
    wanted = expected_files(one, artefact.kind)
    found = {name for name in artefact.files if ".dist-info/" not in name} - {"PKG-INFO"}
    yield from (f"{name} is missing" for name in sorted(wanted.keys() - found))
    yield from (f"{name} does not belong there" for name in sorted(found - wanted.keys()))
    for name in sorted(found & wanted.keys()):
        if artefact.files[name] != wanted[name].read_bytes():
            yield f"{name} is not as in the repository"
    for name, data in artefact.files.items():
        yield from _file_faults(name, data)


def _file_faults(name: str, data: bytes) -> Iterator[str]:
    if UNWANTED.search(name):
        yield f"{name} must not be shipped"
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        yield f"{name} leads out of the archive"
    if len(data) / 1e6 > MAX_MEGABYTES["file"]:
        yield f"{name} has {len(data) / 1e6:.1f} MB"
    if SECRET.search(data):
        yield f"{name} contains a secret"


def expected_files(one: Distribution, kind: str) -> dict[str, Path]:
    """The files that an artefact has besides its metadata, and where each comes from."""
    if kind == "wheel":
        return {
            str(PurePosixPath(name).relative_to(PurePosixPath(package).parent)): one.root / name
            for package in one.packages
            for name in tracked(one.root, package)
        }
    names = tracked(one.root, one.folder)
    left_out = tuple(f"{folder}/" for folder in one.left_out)
    return {name: one.root / name for name in names if not name.startswith(left_out)}


def metadata_faults(one: Distribution, artefact: Artefact, classifiers: frozenset[str]) -> Iterator[str]:
    """Faults of the metadata, beyond those that `twine check` reports."""
    found, project = artefact.metadata, one.project
    for field, value in {
        "Name": one.name,
        "Version": one.version,
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Summary": project["description"],
        "Description-Content-Type": "text/markdown",
    }.items():
        if found[field] != value:
            yield f"{field} is {found[field]!r}, not {value!r}"
    readme = (one.root / one.folder / project["readme"]).read_text(encoding="utf-8")
    if str(found.get_payload()).strip() != readme.strip():
        yield "the long description is not the README"
    for name in project["license-files"]:
        if not any(PurePosixPath(file).name == name for file in artefact.files) or name not in found.get_all(
            "License-File", []
        ):
            yield f"the licence file {name} is missing"
    yield from (f"{name!r} is not a classifier" for name in found.get_all("Classifier", []) if name not in classifiers)
    if set(found.get_all("Provides-Extra", [])) != set(project["optional-dependencies"]):
        yield "the extras are not those of pyproject.toml"
