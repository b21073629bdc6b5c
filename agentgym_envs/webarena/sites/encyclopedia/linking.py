"""Links between articles: the first mention of another article in a text becomes a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from agentgym_envs.webarena.sites.encyclopedia.articles import Article, article_path

_WORD = re.compile(r"\w+")
_SURNAME = re.compile(r" [A-Z]{2}")
"""The corpus writes surnames in capitals: "Salvador ALLENDE" is no city."""


class ArticleNames:
    """The spellings that become links, by their first word."""

    def __init__(self, articles: Iterable[Article]) -> None:
        self._by_word: dict[str, list[tuple[str, str]]] = {}
        for article in articles:
            if article.linked is not None:
                name = article.linked or article.title
                if word := _WORD.match(name):
                    self._by_word.setdefault(word[0], []).append((name, article.title))

    def mentions(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, title) of the names in a text. Longer names win."""
        end = 0
        for word in _WORD.finditer(text):
            known = self._by_word.get(word[0])
            start = word.start()
            if known and start >= end and (found := _longest(known, text, start)):
                name, title = found
                end = start + len(name)
                yield start, end, title


def _longest(known: list[tuple[str, str]], text: str, start: int) -> tuple[str, str] | None:
    fits = (one for one in known if _has_name(text, start, one[0]))
    return max(fits, key=lambda one: len(one[0]), default=None)


def _has_name(text: str, start: int, name: str) -> bool:
    end = start + len(name)
    if not text.startswith(name, start) or _SURNAME.match(text, end):
        return False
    return end == len(text) or not text[end].isalnum()


class ArticleLinker:
    """Converts the texts of one article to HTML. It links every title once, and never the article itself."""

    def __init__(self, names: Iterable[ArticleNames], own_title: str) -> None:
        self._names = tuple(names)
        self._linked = {own_title}

    def html(self, text: str) -> Any:
        """Return the escaped text with links, as Jinja's Markup."""
        from markupsafe import Markup

        parts, done = [], 0
        for start, end, title in self._mentions(text):
            parts += [escape(text[done:start]), _link(title, text[start:end])]
            done = end
        return Markup("".join([*parts, escape(text[done:])]))

    def _mentions(self, text: str) -> Iterator[tuple[int, int, str]]:
        end = 0
        for found in sorted(one for names in self._names for one in names.mentions(text)):
            if found[0] >= end and found[2] not in self._linked:
                self._linked.add(found[2])
                end = found[1]
                yield found


def _link(title: str, text: str) -> str:
    return f'<a href="{escape(article_path(title))}">{escape(text)}</a>'


def aliases_of(articles: Iterable[Article]) -> Mapping[str, str]:
    """Return the titles by their other names; a title is no alias of another article."""
    every = list(articles)
    titles = {article.title for article in every}
    return {alias: one.title for one in every for alias in one.aliases if alias not in titles}
