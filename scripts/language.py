"""Finds words that the house rules replace by the field's own, in docstrings, comments, pages and names of tests.

    python scripts/language.py [PATH ...]   all tracked Python and Markdown files, or those of these files and folders

Prints a line per finding and ends with status 1 if there is one. CONTRIBUTING.md ("House rules") has the rules.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

WORDS = {
    r"told|tells?|telling": "report, return, show, give",
    r"nobody|somebody|anybody": "no caller, no user, users",
    r"anew": "again, from scratch",
    r"of which|of whose|to whom|by whom|for whom": "two sentences",
    r"(?<!there )(?:is|are|was|be) (?-i:none)": "is not a ..., does not exist",
    r"comes? to nothing": "has no effect",
    r"so many|as many as": "up to N",
    r"stands?(?!-in)|standing": "is, is written, represents",
    r"by hand of": "by",
    r"machine's": "infrastructure error, simulator crash",
    r"tries(?! to\b)": "attempts",
    r"cut": "truncated",
    r"limit of turns|turns' limit|growing limit": "turn limit, turn-limit curriculum",
    r"beside it|times better|times sooner": "baseline, speedup",
    r"twins?|lanes?|seats?": "remote environment, runner, team member",
    r"goes? on with|gone on with": "resume, continue",
    r"make[s]? (?:\w+ )?of it": "produces",
}
"""Regular expressions of whole words, and what to write instead."""

OPENINGS = r"(?:What|Whether|How|Who|Whose|Where|When|Why|See)\b"
"""Words that must not begin a docstring; use a noun phrase or an imperative. Titles may ask a question."""

NAME_WORDS = WORDS | {
    r"what(?:ever)?|whichever": "a noun",
    r"but for": "except for",
    r"by hand": "hand-computed",
    r"chapters?": "section",
    r"goes? on|gone on": "continue",
    r"says?|said": "report, show",
    r"waited for": "wait for",
}
"""Words that a test's name must not have, with spaces for its underscores."""

LONGEST_NAME = 70
LONE_WORD = "the behaviour: subject, verb, object"
ALLOWED_NAMES = {
    "test_stand_ins_are_marked_and_superseded_by_real_tasks": "stand",  # environments that stand in for others
}
"""Words that the name of a test may have, since they are its subject."""

ALLOWED: dict[str, str] = {
    "agentgym_envs/webarena/sites": r"stands?|twins?|seats?|lanes?|cut",  # sold in the shop, drawn on the map
    "scripts/language.py": r".*",
}
"""Words that a path (by its beginning) may use, since they are its subject."""

_OPENING = re.compile(OPENINGS)
_QUESTION = re.compile(r".*\?$|\w+ to ")
_TITLE = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ANCHOR = re.compile(r"""<a [^>]*\b(?:id|name)=["']([^"']+)""")
_QUOTED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|https?://\S+|\]\([^)]*\)")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


class Finding(NamedTuple):
    """A word at a line of a file, and what to write instead."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: write {self.instead}"


def main(paths: list[str]) -> int:
    """Check the given files, or all tracked ones. Returns the exit status."""
    with ProcessPoolExecutor() as pool:
        found = [finding for own in pool.map(findings, tracked(paths), chunksize=32) for finding in own]
    for finding in found:
        print(finding)
    if found:
        print(f"{len(found)} findings in {len({finding.path for finding in found})} files")
    return int(bool(found))


def tracked(paths: list[str]) -> list[str]:
    """Python and Markdown files that git tracks under the paths, or all, relative to the root."""
    command = ["git", "ls-files", "-z", "--", *paths]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if name.endswith((".py", ".md")) and (ROOT / name).exists()]


def findings(path: str) -> list[Finding]:
    """The findings of one file, for another process."""
    return list(check(path))


def check(path: str) -> Iterator[Finding]:
    """Yield the findings of one file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        yield from check_titles(path, text)
    elif Path(path).name.startswith("test_"):
        yield from check_test_names(path, text)
    pieces = prose_of_python(text) if path.endswith(".py") else prose_of_markdown(text)
    allowed = "|".join(words for start, words in ALLOWED.items() if path.startswith(start))
    for line, prose, opens in pieces:
        if opens and (opening := _OPENING.match(prose.lstrip())):
            yield Finding(path, line, opening[0], "an imperative or a noun phrase")
        for hit, instead in _hits(WORDS, _QUOTED.sub(lambda quoted: " " * len(quoted[0]), prose)):
            if not (allowed and re.fullmatch(allowed, hit[0], re.IGNORECASE)):
                yield Finding(path, line + prose.count("\n", 0, hit.start()), hit[0], instead)


def check_test_names(path: str, text: str) -> Iterator[Finding]:
    """Yield the test functions of a module whose names do not state a behaviour in plain English."""
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for word, instead in check_test_name(node.name):
                yield Finding(path, node.lineno, word, f"{instead} in {node.name}")


def check_test_name(name: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a test's name that break a rule, and what to write instead."""
    words = name.removeprefix("test_").replace("_", " ")
    if opening := _OPENING.match(words.capitalize()):
        yield opening[0], "a subject and a verb"
    elif " " not in words:
        yield words, LONE_WORD
    for hit, instead in _hits(NAME_WORDS, words):
        if (hit.start() or not opening) and hit[0] != ALLOWED_NAMES.get(name):
            yield hit[0], instead
    if len(name) > LONGEST_NAME:
        yield name, f"at most {LONGEST_NAME} characters"


def check_titles(path: str, text: str) -> Iterator[Finding]:
    """Yield the titles of a page that begin like a clause, and its own anchors with words to avoid."""
    page = _without_fences(text)
    for title in _TITLE.finditer(page):
        if (opening := _OPENING.match(title[1])) and not _QUESTION.match(title[1]):
            yield Finding(path, _line(page, title.start()), opening[0], "a noun phrase, an imperative or a question")
    for anchor in _ANCHOR.finditer(page):
        for hit, instead in _hits(NAME_WORDS, anchor[1].replace("-", " ")):
            yield Finding(path, _line(page, anchor.start()), hit[0], instead)


def prose_of_python(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield docstrings and comments: the line, the text, and if it is a docstring."""
    for node in _statements(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value, True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string[1:], False


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, which are a tenth of the nodes."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, name, ())
            todo += below if isinstance(below, list) else ()


def prose_of_markdown(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield a page without its fenced blocks."""
    yield 1, _without_fences(text), False


def _without_fences(text: str) -> str:
    return _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)


def _hits(words: dict[str, str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the words that a text has, and what to write instead of each."""
    pattern = re.compile(rf"\b(?:{'|'.join(f'({word})' for word in words)})\b", re.IGNORECASE)
    for hit in pattern.finditer(text):
        yield hit, list(words.values())[(hit.lastindex or 1) - 1]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
