"""`Library`: all articles of a world, with their links, categories and search index."""

from __future__ import annotations

from collections import defaultdict
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.encyclopedia.articles import Article
from agentgym_envs.webarena.sites.encyclopedia.invented import invented_articles
from agentgym_envs.webarena.sites.encyclopedia.linking import ArticleLinker, ArticleNames, aliases_of
from agentgym_envs.webarena.sites.encyclopedia.real import real_articles
from agentgym_envs.webarena.sites.encyclopedia.searching import ArticleIndex, plain
from agentgym_envs.webarena.sites.world import World


class ShownSection(NamedTuple):
    """A section with its texts as HTML."""

    heading: str
    anchor: str
    paragraphs: list[Any]
    entries: list[tuple[Any, Any]]


class ShownArticle(NamedTuple):
    """An article with its texts as HTML."""

    article: Article
    lead: list[Any]
    facts: list[tuple[str, Any]]
    sections: list[ShownSection]


class Library:
    """All articles of a world: those about the real world, which all worlds share, and the invented ones."""

    def __init__(self, world: World) -> None:
        self.invented = tuple(invented_articles(world))
        every = sorted((*real_articles(), *self.invented), key=lambda one: (plain(one.title), one.title))
        self.articles = {article.title: article for article in every}
        self.country = self.invented[0]
        self._titles = {plain(title): title for title in [*aliases_of(every), *self.articles]}
        self._aliases = aliases_of(every)
        self._names = (_real_names(), ArticleNames(self.invented))
        self._shown: dict[str, ShownArticle] = {}

    def find(self, name: str) -> Article | None:
        """Return the article with a title or another name, in any spelling of case and accents."""
        title = self._titles.get(plain(" ".join(name.split())), "")
        return self.articles.get(self._aliases.get(title, title))

    def starting(self, text: str, most: int) -> list[Article]:
        """Return the first articles whose titles begin with a text, in any spelling of case and accents."""
        wanted = plain(" ".join(text.split()))
        matches = (one for one in self.articles.values() if plain(one.title).startswith(wanted))
        return list(islice(matches, most)) if wanted else []

    def show(self, article: Article) -> ShownArticle:
        """Return an article with links."""
        if article.title not in self._shown:
            self._shown[article.title] = self._render(article)
        return self._shown[article.title]

    @cached_property
    def indexes(self) -> tuple[ArticleIndex, ArticleIndex]:
        """The search indexes. The first call of a process reads all articles about the real world."""
        return _real_index(), ArticleIndex(self.invented)

    @cached_property
    def categories(self) -> dict[str, list[Article]]:
        """The articles of each category, sorted."""
        found = defaultdict[str, list[Article]](list)
        for article in self.articles.values():
            for category in article.categories:
                found[category].append(article)
        return dict(sorted(found.items()))

    @cached_property
    def letters(self) -> dict[str, list[Article]]:
        """The articles by the first letter of their titles."""
        found = defaultdict[str, list[Article]](list)
        for article in self.articles.values():
            found[plain(article.title)[:1].upper()].append(article)
        return dict(found)

    def _render(self, article: Article) -> ShownArticle:
        linker = ArticleLinker(self._names, article.title)
        lead = [linker.html(text) for text in article.lead]
        facts = [(label, linker.html(value)) for label, value in article.facts]
        sections = [
            ShownSection(
                section.heading,
                section.heading.replace(" ", "_"),
                [linker.html(text) for text in section.paragraphs],
                [(linker.html(label), linker.html(text)) for label, text in section.entries],
            )
            for section in article.sections
        ]
        return ShownArticle(article, lead, facts, sections)


@lru_cache(maxsize=8)
def library(world: World) -> Library:
    """Return the library of a world."""
    return Library(world)


@cache
def _real_names() -> ArticleNames:
    return ArticleNames(real_articles())


@cache
def _real_index() -> ArticleIndex:
    return ArticleIndex(real_articles())
