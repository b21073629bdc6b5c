"""Articles as values, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class ArticleSection:
    """A section: paragraphs of plain text, then a list of entries with optional labels."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Article:
    """An article. All texts are plain; links follow from the names in them.

    Attributes:
        title: unique within a world.
        short: a short description, for lists: "Town in Glenmarch".
        lead: the paragraphs before the first section.
        facts: the rows of the information box, by label.
        aliases: other names that lead here.
        linked: the spelling that articles link to; "" for the title. None prevents links.
    """

    title: str
    short: str
    lead: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[ArticleSection, ...]
    categories: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    linked: str | None = ""

    @property
    def path(self) -> str:
        """The path of the article's page."""
        return article_path(self.title)

    @cached_property
    def body(self) -> str:
        """The text of all sections."""
        parts = [text for section in self.sections for text in section.paragraphs]
        parts += [f"{label} {text}" for section in self.sections for label, text in section.entries]
        return "\n".join(parts)

    @cached_property
    def word_count(self) -> int:
        """Number of words, as lists of search results show it."""
        return len(" ".join([*self.lead, self.body]).split())


def article_path(title: str) -> str:
    """Return the path of the article with this title."""
    return f"/article/{quote(title.replace(' ', '_'), safe='')}"


def category_path(category: str) -> str:
    """Return the path of a category's page."""
    return f"/category/{quote(category.replace(' ', '_'), safe='')}"


def joined(names: list[str] | tuple[str, ...], word: str = "and") -> str:
    """Return an enumeration: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
