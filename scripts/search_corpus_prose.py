"""The prose of the factbook's profiles as passages, for scripts/make_search_corpus.py."""

import re

import search_corpus_tables as tables

WORDS_PER_PASSAGE = 100


def leaf(tree: object, *path: str) -> str:
    """Return the text at a path of a profile, or ""."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    text = tree.get("text") if isinstance(tree, dict) else tree
    return text.strip() if isinstance(text, str) else ""


def make_prose(profiles: dict[str, dict], names: dict[str, str]) -> dict:
    """Return columns over passages of about a hundred words; titles and sections are indices into lists.

    `names` holds the names of the countries by the two letters of their profiles.
    """
    titles, sections, rows = [], [], []
    for code in sorted(profiles):
        title = names.get(code) or profile_title(code, profiles[code])
        titles.append(title)
        for section, tree in profiles[code].items():
            if section not in sections:
                sections.append(section)
            rows += [(len(titles) - 1, sections.index(section), text) for text in chunks(tree, section)]
    title, section, text = zip(*rows, strict=True)
    return {"titles": titles, "sections": sections, "title": title, "section": section, "text": text}


def profile_title(code: str, profile: dict) -> str:
    """Return the title of a profile that is not a country's."""
    name = leaf(profile, "Government", "Country name", "conventional short form")
    return tables.OTHER_TITLES.get(code) or re.split(r"[;(]", name)[0].strip()


def chunks(tree: object, section: str) -> list[str]:
    """Split a section into passages."""
    words = " ".join(leaves(tree, [section])).split()
    size = WORDS_PER_PASSAGE
    parts = [words[at : at + size] for at in range(0, len(words), size)]
    if len(parts) > 1 and len(parts[-1]) < size // 4:
        parts[-2:] = [parts[-2] + parts[-1]]
    return [" ".join(part) for part in parts]


def leaves(tree: object, path: list[str]) -> list[str]:
    """Return every text of a section, each after the names of its fields."""
    if not isinstance(tree, dict):
        return []
    own = tree.get("text")
    label = " - ".join(path[1:])
    found = [f"{label}: {own}." if label else own] if isinstance(own, str) and own.strip() else []
    return [*found, *(text for key, value in tree.items() if key != "text" for text in leaves(value, [*path, key]))]
