"""Makes the notebooks in docs/notebooks from the pages of the same names, without outputs.

    python scripts/make_notebooks.py

Text becomes text, a block of Python a cell, and a block of shell commands a cell of `%%bash`. The first cell installs
the package where it is missing, with the extras that the page names: `<!-- notebook: trl -->`. The address of the
repository is that of `scripts/site/repository.py`, or its placeholder.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/notebooks"
sys.path.insert(0, str(ROOT / "scripts/site"))

from repository import PLACEHOLDER, address, colab_link  # noqa: E402

_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n", re.M | re.S)
_COMMENT = re.compile(r"^<!-- notebook[^>]*-->\n", re.M)
_EXTRAS = re.compile(r"^<!-- notebook: (\S+) -->\n")
_LINK = re.compile(r"(\]\()(?!https?:)([^)\s]+)(\))")
_INSTALL = '''import importlib.util

if importlib.util.find_spec("agentgym_envs") is None:  # on Colab
    %pip install -q "agentgym-envs{extras} @ git+{address}"'''


def pages() -> list[Path]:
    """The pages that are notebooks."""
    return [page for page in sorted(FOLDER.glob("*.md")) if page.stem != "index"]


def notebook(page: Path) -> dict[str, Any]:
    """The notebook of a page."""
    text = page.read_text(encoding="utf-8")
    extras = _EXTRAS.match(text)
    install = _INSTALL.format(extras=f"[{extras[1]}]" if extras else "", address=address() or PLACEHOLDER)
    title, _, body = _COMMENT.sub("", text).partition("\n")
    badge = f"{title}\n\n[Open in Colab]({colab_link(page.stem)})"
    cells = [_cell("markdown", badge), _cell("code", install), *_cells(body)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def written(page: Path) -> str:
    """The text of the file of a notebook."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


def _cells(body: str) -> list[dict[str, Any]]:
    """Texts and blocks in turns."""
    pieces = _BLOCK.split(body)  # text, language, code, text, ...
    cells = [_text(pieces[0])]
    for language, code, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        magic = "%%bash\nset -e\n" if language == "bash" else ""
        cells += [_cell("code", magic + code), _text(text)]
    return [cell for cell in cells if cell["source"]]


def _text(text: str) -> dict[str, Any]:
    """A cell of text, whose links lead to the repository."""
    base = f"{address() or PLACEHOLDER}/blob/main/"

    def full(match: re.Match[str]) -> str:
        return f"{match[1]}{base}{posixpath.normpath(posixpath.join('docs/notebooks', match[2]))}{match[3]}"

    return _cell("markdown", _LINK.sub(full, text))


def _cell(kind: str, source: str) -> dict[str, Any]:
    lines = source.strip("\n").splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": lines}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def main() -> None:
    """Write every notebook."""
    for page in pages():
        page.with_suffix(".ipynb").write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
