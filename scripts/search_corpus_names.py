"""Comparing and spelling names, for scripts/make_search_corpus.py."""

import unicodedata

import search_corpus_tables as tables


def fold(text: str) -> str:
    """Normalize a name for comparison: lower case, without accents, one kind of apostrophe."""
    plain = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return "".join(c for c in plain if not unicodedata.combining(c)).replace("-", " ").strip()


def distinct(names: list[str]) -> list[str]:
    """Return the distinct names that are not empty."""
    return list(dict.fromkeys(name.strip() for name in names if name and name.strip()))


def accented(names: list[str]) -> list[str]:
    """Return the names with their accents."""
    return [tables.ACCENTS.get(name.strip(), name.strip()) for name in names]


def plain(name: str) -> str:
    """Return a name without accents."""
    letters = unicodedata.normalize("NFKD", name.translate(str.maketrans("øØłıđ", "oOlid")))
    return "".join(c for c in letters if not unicodedata.combining(c))
