"""Articles about the real world, from the facts and the prose of the corpus: countries, cities, elements and more."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from agentgym_envs.corpus.facts import Columns, WorldFacts, read, world_facts
from agentgym_envs.webarena.sites.encyclopedia.articles import Article, ArticleSection, joined

_Row = Mapping[str, Any]
_LARGE = 1_000_000
"""Cities with this many people have an article, besides all capitals."""
_SECTIONS = {"Introduction": "History", "Geography": "Geography", "People and Society": "People", "Economy": "Economy"}
"""The sections of an article, by those of the corpus."""
_MOST_CHARS, _MOST_ENTRY = 1_300, 420
_ENTRY = re.compile(r"(?:^|(?<=\.) )([A-Z][A-Za-z0-9 ,/()-]{2,58}): ")
_SKIPPED = ("Map references", "Maritime claims", "Area -", "Background", "Environment - international")
_AMBIGUOUS = {"Lead", "Tin"}
"""Elements whose names are mostly other words."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@cache
def real_articles() -> tuple[Article, ...]:
    """Return all articles about the real world. The first call of a process reads the corpus: half a second."""
    facts, more = world_facts(1), read("pages.json.xz")  # version 1: the pages of the tasks stay the same
    found = [*_countries(facts), *_elements(facts.elements, more["elements"])]
    found += [*_currencies(facts.countries), *_peaks(facts.countries), *_cities(facts, more["cities"])]
    return tuple({article.title: article for article in found}.values())


def day_month(value: list[Any]) -> str:
    """Return a day such as "5 July 1962", or "5 July"."""
    year = f" {value[2]}" if len(value) > 2 and isinstance(value[2], int) else ""
    return f"{value[0]} {_MONTHS[value[1] - 1]}{year}"


def _row(columns: Columns, index: int) -> dict[str, Any]:
    return {name: column[index] for name, column in columns.items() if len(column) > index}


def _name(row: _Row) -> str:
    """Return a country's name as used in a sentence."""
    return f"the {row['name']}" if row["the"] else str(row["name"])


def _countries(facts: WorldFacts) -> Iterator[Article]:
    prose, names = _prose(), facts.countries["name"]
    for index, name in enumerate(names):
        row = _row(facts.countries, index)
        yield Article(
            name,
            f"{row['kind'].capitalize()} in {row['continent']}",
            (_country_lead(row),),
            tuple(_country_facts(row)),
            (*prose.get(name, ()), *_borders(row, names)),
            (f"Countries and territories of {row['continent']}",),
            tuple(row["aliases"]),
        )


def _country_lead(row: _Row) -> str:
    name = _name(row)
    called = f", also called {joined(row['aliases'], 'or')}," if row["aliases"] else ""
    status = f" ({row['status']})" if row["status"] else ""
    text = f"{name[0].upper()}{name[1:]}{called} is a {row['kind']}{status} in {row['continent']}."
    if row["capital"]:
        text += f" Its capital is {row['capital'][0]}."
    if row["peak"]:
        text += f" Its highest point is {row['peak'][0]}."
    return text


def _country_facts(row: _Row) -> Iterator[tuple[str, str]]:
    texts = {"capital": "Capital", "currency": "Currency", "anthem": "Anthem", "peak": "Highest point"}
    yield from ((label, row[key][0]) for key, label in texts.items() if row[key])
    numbers = {
        "peak_m": ("Height of it", "{:,} m"),
        "area": ("Area", "{:,} km²"),
        "population": ("Population (2015)", "{:,}"),
        "life": ("Life expectancy", "{} years"),
        "coast": ("Coastline", "{:,} km"),
        "border": ("Land borders", "{:,} km"),
        "roads": ("Roads", "{:,} km"),
        "rail": ("Railways", "{:,} km"),
    }
    yield from ((label, form.format(row[key])) for key, (label, form) in numbers.items() if row[key])
    if row["independence"]:
        yield "Independence", day_month(row["independence"])
    if row["holiday"]:
        yield "National day", f"{day_month(row['holiday'])} ({row['holiday'][2]})"
    if row["tld"]:
        yield "Internet domain", row["tld"][0]
    if row["phone"]:
        yield "Calling code", row["phone"][0]


def _borders(row: _Row, names: Sequence[str]) -> Iterator[ArticleSection]:
    if row["borders"]:
        entries = tuple((names[other], f"{km:,} km") for other, km in row["borders"])
        yield ArticleSection("Neighbours", (), entries)


def _prose() -> dict[str, list[ArticleSection]]:
    """Return the sections of each country, from the passages of the corpus."""
    found, texts = read("prose.json.xz"), defaultdict[tuple[int, int], list[str]](list)
    for title, section, text in zip(found["title"], found["section"], found["text"], strict=True):
        texts[title, section].append(text)
    sections = defaultdict[str, list[ArticleSection]](list)
    for (title, section), parts in texts.items():
        heading = _SECTIONS.get(found["sections"][section])
        if heading:
            sections[found["titles"][title]] += _section(heading, " ".join(parts))
    return sections


def _section(heading: str, text: str) -> Iterator[ArticleSection]:
    parts = _ENTRY.split(text.replace(" ++ ", "; ").replace("..", "."))
    entries = list(zip(parts[1::2], parts[2::2], strict=True))
    kept, size = [], 0
    prose = [
        _shortened(value, _MOST_CHARS) for label, value in entries if label in ("Background", "Economy - overview")
    ]
    for label, value in entries:
        if not label.startswith((*_SKIPPED, "Economy - overview")) and size + len(value) < _MOST_CHARS:
            kept.append((label.replace(" - ", ", "), _shortened(value.rstrip("."), _MOST_ENTRY)))
            size += len(kept[-1][1])
    if prose or kept:
        yield ArticleSection(heading, tuple(prose), tuple(kept[:12]))


def _shortened(text: str, most: int) -> str:
    """Return the whole sentences or clauses of a text that fit."""
    if len(text) <= most:
        return text
    end = max(text.rfind(mark, 0, most) for mark in (". ", "; ", ", "))
    return f"{text[: end if end > 0 else most].rstrip(' ,;.')}."


def _elements(table: Columns, more: Columns) -> Iterator[Article]:
    for index, name in enumerate(table["name"]):
        row, rest = _row(table, index), _row(more, index)
        weight = ("Mass number", f"{row['weight']:g}") if row["radioactive"] else ("Atomic weight", str(row["weight"]))
        facts = [("Symbol", row["symbol"]), ("Atomic number", str(index + 1)), weight, ("CAS number", row["cas"])]
        year = rest["year"]
        facts += [("Discovered", str(year))] if year else []
        facts += [("Discovered by", rest["discoverers"].rstrip("."))] if rest["discoverers"] else []
        lead = f"{name} is the chemical element with the symbol {row['symbol']} and the atomic number {index + 1}."
        yield Article(
            name,
            f"Chemical element with the symbol {row['symbol']}",
            (lead,),
            tuple(facts),
            tuple(_element_sections(rest)),
            ("Chemical elements",),
            linked=None if name in _AMBIGUOUS else name.lower(),
        )


def _element_sections(rest: _Row) -> Iterator[ArticleSection]:
    headings = {"description": "Properties", "sources": "Sources", "uses": "Uses", "name_origin": "Name"}
    for key, heading in headings.items():
        if rest[key]:
            yield ArticleSection(heading, (f"{rest[key].rstrip('.')}.",))
    if rest["discovery_location"] and rest["year"]:
        text = f"{rest['discoverers'].rstrip('.')} discovered it in {rest['year']} ({rest['discovery_location']})."
        yield ArticleSection("Discovery", (text,))


def _currencies(table: Columns) -> Iterator[Article]:
    users: dict[str, list[int]] = {}
    for country, currency in enumerate(table["currency"]):
        if currency:
            users.setdefault(currency[0], []).append(country)
    for name, countries in users.items():
        spoken = [_name(_row(table, country)) for country in countries]
        code = table["currency"][countries[0]][2:3]
        facts = (*(("Code", one) for one in code), ("Used in", str(len(countries))))
        lead = f"The {name} is the currency of {joined(spoken)}."
        section = ArticleSection("Where it is used", (), tuple((table["name"][one], "") for one in countries))
        title = name[0].upper() + name[1:]
        yield Article(title, "Currency", (lead,), facts, (section,), ("Currencies",), linked=name)


def _peaks(table: Columns) -> Iterator[Article]:
    for index, peak in enumerate(table["peak"]):
        if peak:
            row = _row(table, index)
            height = f"{row['peak_m']:,} m" if row["peak_m"] else ""
            lead = f"{peak[0]} is the highest point of {_name(row)}{f', {height} above sea level' if height else ''}."
            facts = (*([("Height", height)] if height else []), ("Country", row["name"]))
            yield Article(peak[0], f"Highest point of {_name(row)}", (lead,), facts, (), ("Mountains",))


def _cities(facts: WorldFacts, more: Columns) -> Iterator[Article]:
    table, taken = facts.cities, set(facts.countries["name"])
    capitals = {city: index for index, city in enumerate(facts.countries["capital_city"])}
    large = (i for i, people in enumerate(table["population"]) if i in capitals or (people or 0) > _LARGE)
    for index in sorted(large, key=lambda i: -(table["population"][i] or 0)):
        row = _row(table, index)
        country = _row(facts.countries, row["country"])
        title = row["name"] if row["name"] not in taken else f"{row['name']} ({country['name']})"
        taken.add(title)
        yield _city(title, row, country, _row(more, index), facts, index in capitals)


def _city(title: str, row: _Row, country: _Row, rest: _Row, facts: WorldFacts, is_capital: bool) -> Article:
    kind = "the capital" if is_capital else "a city"
    people = f"{row['population']:,}" if row["population"] else "unknown"
    where = f"{rest['latitude']}, {rest['longitude']}"
    zone = facts.cities["zones"][row["zone"]]
    lead = f"{row['name']} is {kind} of {_name(country)}. It has {people} inhabitants."
    given = (("Country", country["name"]), ("Population", people), ("Coordinates", where), ("Time zone", zone))
    names = ArticleSection("Names", (f"Other names are {joined(rest['others'])}.",)) if rest["others"] else None
    text = f"{row['name']} lies at {where} and keeps the time of the zone {zone}."
    sections = (ArticleSection("Geography", (text,)), *([names] if names else []))
    categories = (*(["Capitals"] if is_capital else []), f"Cities of {_name(country)}")
    short = f"{'Capital' if is_capital else 'City'} of {_name(country)}"
    return Article(title, short, (lead,), given, sections, categories, linked="" if title == row["name"] else None)
