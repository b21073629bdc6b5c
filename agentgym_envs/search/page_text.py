"""Texts of pages and results: windows of a long page, places of words in it, and snippets.

A page is data: whatever in it looks like a tag of an episode or the beginning of a chat turn is escaped.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentgym_envs.search.retrieval.base import Hit, Page

MAX_PAGE_CHARS = 1_000_000
"""Longer pages are truncated."""
MAX_FIND_CHARS = 200
MOST_PLACES = 20
"""The most places that a search in a page shows."""
_MAX_TITLE_CHARS, _MAX_ID_CHARS = 200, 200
_EXCERPT_CHARS = 80
"""Characters on each side of a place."""
_SNIPPET_SOURCE_CHARS = 20_000
_STEM_CHARS = 6
"""Words whose first letters agree are taken as forms of one word: "border", "borders"."""
_TAGS = "think|search|open|scroll|find|information|answer|action|tool_call|tool_response"
_MARKUP = re.compile(rf"<(?=\||\s*(?:/\s*)?(?:{_TAGS})\b)", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class PagePart(NamedTuple):
    """A passage's part of a page: its id, and where it begins and ends in the text."""

    id: str
    begin: int
    end: int


class PageText(NamedTuple):
    """A page as text, divided into windows. `begins` are the begins of the windows, ascending from 0."""

    title: str
    text: str
    parts: tuple[PagePart, ...]
    begins: tuple[int, ...]
    complete: bool

    def window(self, number: int) -> str:
        """The text of a window, by number from 1."""
        begin, end = self._bounds(number)
        return self.text[begin:end].strip()

    def ids_in(self, number: int) -> list[str]:
        """Ids of the passages in a window, in whole or in part."""
        begin, end = self._bounds(number)
        return [part.id for part in self.parts if part.begin < end and part.end > begin]

    def window_at(self, place: int) -> int:
        """The number of the window that shows the character at a place."""
        return bisect_right(self.begins, place)

    def window_of(self, id: str) -> int:
        """The number of the window in which a passage begins; 1 for an unknown passage."""
        return self.window_at(next((part.begin for part in self.parts if part.id == id), 0))

    def render(self, number: int) -> str:
        """A window as an observation."""
        total, title = len(self.begins), shown_title(self.title)
        missing = "" if self.complete else " Parts of this page may be missing."
        where = f"Part {number} of {total}." if total > 1 else "The whole page."
        return wrap(f"Page: {title}\n{where}{missing}\n{neutralise(self.window(number))}")

    def find(self, words: str) -> Iterator[int]:
        """The places of some words, regardless of case and accents."""
        text, wanted = fold(self.text), fold(" ".join(words.split()))
        place = text.find(wanted)
        while place >= 0:
            yield place
            place = text.find(wanted, place + len(wanted))

    def render_places(self, words: str) -> str:
        """The places of some words as an observation."""
        places = list(self.find(words))
        shown = f'"{neutralise(words)}" in "{shown_title(self.title)}"'
        if not places:
            return wrap(f"There is no {shown}.")
        lines = [f"Part {self.window_at(place)}: {self._excerpt(place, len(words))}" for place in places[:MOST_PLACES]]
        more = f", the first {MOST_PLACES}" if len(places) > MOST_PLACES else ""
        return wrap("\n".join([f"{len(places)} places of {shown}{more}:", *lines]))

    def _bounds(self, number: int) -> tuple[int, int]:
        return self.begins[number - 1], [*self.begins, len(self.text)][number]

    def _excerpt(self, place: int, size: int) -> str:
        begin, end = max(place - _EXCERPT_CHARS, 0), place + size + _EXCERPT_CHARS
        return _in_one_line(self.text, begin, end)


def make_page_text(page: Page, window_chars: int) -> PageText:
    """Join the passages of a page, and divide the text into windows of up to `window_chars` characters."""
    parts, texts, begin = list[PagePart](), list[str](), 0
    for passage in page.passages:
        text = _tidy(passage.text)[: MAX_PAGE_CHARS - begin]
        texts.append(text)
        parts.append(PagePart(passage.id, begin, begin + len(text)))
        begin += len(text) + 1
        if begin >= MAX_PAGE_CHARS:
            break
    text = "\n".join(texts)
    complete = page.complete and begin < MAX_PAGE_CHARS
    return PageText(page.title, text, tuple(parts), tuple(_window_begins(text, window_chars)), complete)


def render_results(hits: Sequence[Hit], query: str, snippet_chars: int) -> str:
    """The results of a search as an observation: id, title and snippet of each passage."""
    rows = [
        f"[{handle(passage.id)}] {shown_title(passage.title)}\n{snippet(passage.text, query, snippet_chars)}"
        for passage, _ in hits
    ]
    return wrap("\n".join(rows) or "Nothing was found.")


def handle(id: str) -> str:
    """The id of a passage as results show it, and as `open` takes it: one line of limited length, without tags."""
    return neutralise(" ".join(id[:_MAX_ID_CHARS].split()))


def shown_title(title: str) -> str:
    """A title as one line of limited length, without tags."""
    line = neutralise(" ".join(title[:_MAX_TITLE_CHARS].split()))
    return line if len(title) <= _MAX_TITLE_CHARS else f"{line} ..."


def snippet(text: str, query: str, most_chars: int) -> str:
    """The part of a text with the most words of a query, in one line."""
    wanted = {word[:_STEM_CHARS] for word in _WORD.findall(fold(query)) if len(word) > 2}
    found = _WORD.finditer(fold(text[:_SNIPPET_SOURCE_CHARS]))
    words = [word for word in found if word[0][:_STEM_CHARS] in wanted]
    begin, end = _best_stretch(words, most_chars)
    begin = max(begin - (most_chars - min(end - begin, most_chars)) // 2, 0)
    return _in_one_line(text, begin, begin + most_chars)


def _best_stretch(words: Sequence[re.Match[str]], most_chars: int) -> tuple[int, int]:
    """Begin and end of the stretch of `most_chars` characters with the most distinct words; (0, 0) without words."""
    inside, distinct, best, stretch, first = Counter[str](), 0, 0, (0, 0), 0
    for word in words:
        stem = word[0][:_STEM_CHARS]
        inside[stem] += 1
        distinct += inside[stem] == 1
        while word.end() - words[first].start() > most_chars and words[first] is not word:
            gone = words[first][0][:_STEM_CHARS]
            inside[gone] -= 1
            distinct -= inside[gone] == 0
            first += 1
        if distinct > best:
            best, stretch = distinct, (words[first].start(), word.end())
    return stretch


def neutralise(text: str) -> str:
    """Escape what looks like a tag of an episode or a token of a chat template."""
    return _MARKUP.sub("&lt;", text)


def wrap(text: str) -> str:
    """Put a text between the tags of retrieved information."""
    return f"<information>{text}</information>"


def fold(text: str) -> str:
    """A text for comparisons: lower case, without accents, each white space as a space; as long as the text."""
    return text.translate(_FOLDED)


class _Folding(dict[int, str]):
    """The folded form of each character, which is one character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = unicodedata.normalize("NFKD", character)[:1].lower()
        self[code] = " " if character.isspace() else plain if len(plain) == 1 else character
        return self[code]


_FOLDED = _Folding()


def _tidy(text: str) -> str:
    """Make each run of white space one line break or one space."""
    return re.sub(r"\s+", lambda run: "\n" if "\n" in run[0] else " ", text.strip())


def _window_begins(text: str, most_chars: int) -> Iterator[int]:
    """Divide a text at white space, or within a word that is longer than a window."""
    begin = 0
    yield begin
    while len(text) - begin > most_chars:
        space = max(text.rfind(mark, begin + most_chars // 2, begin + most_chars) for mark in "\n ")
        begin = space + 1 if space >= 0 else begin + most_chars
        yield begin


def _in_one_line(text: str, begin: int, end: int) -> str:
    line = neutralise(" ".join(text[begin:end].split()))
    return f"{'... ' if begin > 0 else ''}{line}{' ...' if end < len(text) else ''}"
