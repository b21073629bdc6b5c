"""The blocks of code in the README and in docs/, as tests need them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(r"^(?P<mark><!-- not run: [^>]+ -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S)


class Block(NamedTuple):
    """A fenced block; `skipped` says that the line before it has `<!-- not run: why -->`."""

    page: str
    line: int
    language: str
    code: str
    skipped: bool


def blocks(page: str, *languages: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [
        Block(page, text[: found.start("code")].count("\n"), found["language"], found["code"], bool(found["mark"]))
        for found in _BLOCK.finditer(text)
        if found["language"] in languages
    ]


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a shell block, each as its words, without the variables that are set for it.

    A variable of one word is substituted; others stay.
    """
    variables: dict[str, str] = {}
    for line in block.code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|") or word == "do":
                if words:
                    yield words
                words = []
            elif not words and (found := re.fullmatch(r"([A-Z_]+)=(.*)", word)):
                if " " not in found[2]:
                    variables[f"${found[1]}"] = found[2]
            else:
                words.append(variables.get(word, word))


def our_words(words: list[str]) -> list[str] | None:
    """The words after `agentgym`, if the command starts our program in one of its ways."""
    if words[0] == "agentgym":
        return words[1:]
    module = words.index("-m") + 1 if "-m" in words else 0
    return words[module + 1 :] if module and words[module] == "agentgym_envs" else None
