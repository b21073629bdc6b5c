"""Copies sections of docstrings into the pages of the scenarios, between two comments.

    python scripts/site/sections.py

A page says what it wants: `<!-- docstring PATH CLASS: SECTION; SECTION -->`, and where it ends:
`<!-- end of docstring -->`. `tests/docs` fails when a page and its docstring differ.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MARKED = re.compile(r"(<!-- docstring (\S+) (\w+): ([^>]+?) -->\n).*?(<!-- end of docstring -->)", re.DOTALL)


def fill_in(page: str) -> str:
    """The page with what the docstrings say now."""
    return _MARKED.sub(lambda match: match[1] + _wanted(match[2], match[3], match[4]) + match[5], page)


def _wanted(path: str, name: str, wanted: str) -> str:
    sections = _sections(_docstring(path, name))
    return "\n" + "".join(f"### {title}\n{sections[title]}\n\n" for title in wanted.split("; "))


def _docstring(path: str, name: str) -> str:
    tree = ast.parse((ROOT / path).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return inspect.cleandoc(ast.get_docstring(found) or "")


def _sections(docstring: str) -> dict[str, str]:
    pieces = re.split(r"^## (.+)$", docstring, flags=re.MULTILINE)
    return {title: text.strip() for title, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def main() -> None:
    """Bring every page up to date."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text()
        if (filled := fill_in(text)) != text:
            page.write_text(filled)


if __name__ == "__main__":
    main()
