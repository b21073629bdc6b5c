"""Checks of the elements for scripts/make_search_corpus.py: their texts against their tables."""

import re
from collections import defaultdict
from collections.abc import Iterator

import search_corpus_tables as tables

TEXTS = ("discoverers", "description", "sources", "uses", "name_origin")
SECONDS = {"sec": 1.0, "s": 1.0, "second": 1.0, "minute": 60.0, "min": 60.0, "hour": 3_600.0, "day": 86_400.0}
SECONDS |= {"year": 31_556_926.0, "msec": 1e-3, "usec": 1e-6, "kyear": 3.1556926e10, "Myear": 3.1556926e13}
SECONDS |= {"Gyear": 3.1556926e16, "Tyear": 3.1556926e19}
ISOTOPE = re.compile(r"\b(?:([A-Z][a-z]?)|([A-Z][a-z]+um|[a-z]+um|carbon|bismuth|cobalt|lead|zinc|iron))-(\d{1,3})\b")
HALF_LIFE = re.compile(
    r"half[- ]li(?:fe|ves)(?: of| is|:)? (?:about )?([\d.]+)(?:[*x]10\^(\d+))? ?"
    r"(years?|days?|hours?|minutes?|seconds?|s)\b"
)
SPEAKS = re.compile(r"isotop|half[- ]li", re.IGNORECASE)
RANKS = re.compile(r"stable|longest|known|only|isotopes|excess", re.IGNORECASE)
DISCOVERED = re.compile(r"(?:[Dd]iscovered|[Ii]dentified)\b.{0,120}?\b(1[5-9]\d\d)\b")
NEAR = 0.05
"""Half-lives may differ by this share."""


def check_elements(facts: dict, pages: dict, isotopes: list[dict]) -> Iterator[tuple]:
    """Yield (symbol, field, rule, evidence, value) for each text or value to change."""
    lives = half_lives(isotopes)
    for i, symbol in enumerate(facts["symbol"]):
        wrong_year = [year for year in found_years(pages["description"][i]) if year != pages["year"][i]]
        if pages["year"][i] and wrong_year:
            yield symbol, "year", "year", wrong_year[0], None
        if symbol in tables.WRONG_DISCOVERERS:
            yield symbol, "discoverers", "false", tables.WRONG_DISCOVERERS[symbol], ""
        for field in TEXTS:
            yield from check_text(symbol, field, pages[field][i], lives, drop_years=bool(wrong_year))
        if facts["radioactive"][i] and facts["weight"][i] != round(facts["weight"][i]):
            yield symbol, "weight", "mass", facts["weight"][i], round(facts["weight"][i])
        mean = mean_mass(symbol, i + 1, isotopes)
        if mean and not facts["radioactive"][i] and abs(mean / facts["weight"][i] - 1) > 0.005:
            yield symbol, "weight", "abundance", round(mean, 4), None


def check_text(symbol: str, field: str, text: str, lives: dict, *, drop_years: bool) -> Iterator[tuple]:
    """Yield a change of a text: sentences left out, or words spelled right."""
    if field == "discoverers" and symbol in tables.WRONG_DISCOVERERS:
        return
    kept, dropped = [], []
    for sentence in sentences(text):
        wrong = (
            (SPEAKS.search(sentence) or ISOTOPE.search(sentence)) and not is_confirmed(sentence, symbol, lives)
        ) or any(part in sentence for part in tables.FALSE_SENTENCES)
        wrong = wrong or (drop_years and bool(found_years(sentence)))
        (dropped if wrong else kept).append(sentence)
    new = spelled(" ".join(kept))
    if dropped:
        years = drop_years and any(found_years(sentence) for sentence in dropped)
        yield symbol, field, "year" if years else "isotopes", " ".join(dropped), new
    elif new != " ".join(sentences(text)):
        yield symbol, field, "spelling", " ".join(sentences(text)), new


def sentences(text: str) -> list[str]:
    """Split a text after full stops that end a sentence."""
    return [part for part in re.split(r"(?<=[a-z0-9)]\.)\s+(?=[A-Z])", text.strip()) if part]


def found_years(text: str) -> list[int]:
    """Return the years in which an element was discovered, according to a text."""
    return [int(year) for year in DISCOVERED.findall(text)]


def is_confirmed(sentence: str, symbol: str, lives: dict) -> bool:
    """Return true if the table of isotopes confirms a sentence: its isotopes exist, and its half-lives are right."""
    named = [
        (short or tables.ELEMENT_SYMBOLS.get(long.lower(), ""), int(mass))
        for short, long, mass in ISOTOPE.findall(sentence)
    ]
    if any(isotope not in lives for isotope in named):
        return False
    if not SPEAKS.search(sentence):
        return True
    found = HALF_LIFE.findall(sentence)
    if not found or len(named) != 1 or len(found) != 1 or RANKS.search(sentence):
        return False
    number, power, unit = found[0]
    seconds = float(number) * 10 ** int(power or 0) * SECONDS[unit.rstrip("s") or "s"]
    return lives[named[0]] is not None and abs(seconds / lives[named[0]] - 1) <= NEAR


def half_lives(isotopes: list[dict]) -> dict:
    """Return the half-life in seconds, None for unknown or stable ones, by symbol and mass number."""
    return {
        (row["symbol"], row["mass_number"]): row["half_life"] * SECONDS[row["half_life_unit"]]
        if row["half_life"] and row["half_life_unit"] in SECONDS
        else None
        for row in isotopes
    }


def mean_mass(symbol: str, number: int, isotopes: list[dict]) -> float | None:
    """Return the mean mass of an element's isotopes by abundance, if the abundances add up to 1."""
    rows = by_element(isotopes)[number]
    total = sum(row["abundance"] or 0 for row in rows)
    return sum(row["mass"] * (row["abundance"] or 0) for row in rows) / total if 99 < total < 101 else None


def by_element(isotopes: list[dict]) -> dict[int, list[dict]]:
    """Group isotopes by atomic number."""
    found = defaultdict(list)
    for row in isotopes:
        found[row["atomic_number"]].append(row)
    return found


def spelled(text: str) -> str:
    """Return a text with misspelt words corrected."""
    for wrong, right in tables.SPELLING.items():
        text = re.sub(rf"\b{wrong}\b", right, text)
    return text
