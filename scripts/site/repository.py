"""The location of a repository file in the site: docs and modules have pages, others are shown as source."""

from __future__ import annotations

import os
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ABOUT = {
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "NOTICE": "about/licence.md",
    "LICENSE": "about/licence.md",
}
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".toml": "toml"}


PLACEHOLDER = "REPOSITORY_URL"
"""Written on pages, as long as the repository has no public address."""
_HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"


def address() -> str | None:
    """The public address of the repository: AGENTGYM_REPOSITORY, or `Repository` of the URLs in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = os.environ.get("AGENTGYM_REPOSITORY") or project.get("urls", {}).get("Repository")
    return found.removesuffix(".git").rstrip("/") if found else None


def with_address(text: str) -> str:
    """The text with the address of the repository, if it is known, in place of the placeholder."""
    return text.replace(PLACEHOLDER, address() or PLACEHOLDER)


def colab_link(notebook: str) -> str:
    """The address at which Colab opens a notebook of docs/notebooks."""
    path = (address() or PLACEHOLDER).removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{path}/blob/main/docs/notebooks/{notebook}.ipynb"


def uri_of(path: str, modules: dict[str, str]) -> str:
    """The place in the site of a file of the repository; `modules` has the reference pages by path."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in ABOUT:
        return ABOUT[path]
    return f"source/{path}" if is_data(path) else modules.get(path, f"source/{path}.md")


def is_data(path: str) -> bool:
    """True for a file that the site has as it is: highlighting megabytes of figures takes longer than all else."""
    return path.endswith(".json")


def outward(markdown: str, origin: str) -> Iterator[str]:
    """The files of the repository, outside docs/, that the text of the file `origin` links to."""
    for part in _prose(markdown):
        for _, link, _ in _LINK.findall(part):
            path = _resolve(link, origin)
            if path is not None and not path.startswith("docs/"):
                yield path


def relink(markdown: str, origin: str, uri: str, modules: dict[str, str]) -> str:
    """The text of `origin`, shown at `uri`, with its links to files of the repository as links within the site."""

    def replace(match: re.Match[str]) -> str:
        path = _resolve(match[2], origin)
        if path is None:
            return match[0]
        anchor = match[2].partition("#")[2]
        target = posixpath.relpath(uri_of(path, modules), posixpath.dirname(uri) or ".")
        return f"{match[1]}{target}{'#' + anchor if anchor else ''}{match[3]}"

    pieces = _FENCE.split(markdown)  # prose, code, its fence, prose, ...
    return "".join(
        _LINK.sub(replace, piece) if index % 3 == 0 else piece
        for index, piece in enumerate(pieces)
        if index % 3 != 2  # noqa: RUF100
    )


def source_page(path: str) -> str:
    """A page that shows a file as it is, or what a folder holds. Searches do not find it."""
    source = ROOT / path
    if source.is_dir():
        return f"{_HIDDEN}# `{path}`\n\n" + "\n".join(f"- `{file.name}`" for file in sorted(source.iterdir()))
    text = source.read_text()
    if source.suffix == ".md":
        return _HIDDEN + text
    return f"{_HIDDEN}# `{path}`\n\n`````{_LANGUAGES.get(source.suffix, '')}\n{text.rstrip()}\n`````\n"


def _prose(markdown: str) -> list[str]:
    return _FENCE.split(markdown)[::3]


def _resolve(link: str, origin: str) -> str | None:
    """The path in the repository that a link means; None for other sites, anchors, and what is not there."""
    target = link.partition("#")[0]
    if not target or ":" in target or target.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    return None if path.startswith("..") or not (ROOT / path).exists() else path
