"""The structured pages of the embedded corpus. They are written from the facts, so pages and answers always agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentgym_envs.corpus.facts import VERSIONS, WorldFacts, page_facts, read, world_facts
from agentgym_envs.search.corpus.values import date, quantity, written
from agentgym_envs.search.retrieval.base import Passage

Row = Mapping[str, Any]


def embedded_passages(version: int = VERSIONS[-1]) -> Iterator[Passage]:
    """Yield all passages: countries and their landmarks, cities, airports, elements, and the prose of the profiles."""
    facts, more = world_facts(version), page_facts(version)
    yield from country_pages(facts)
    yield from _landmark_pages(facts)
    yield from _city_pages(facts, more["cities"])
    yield from _airport_pages(facts, more["airports"])
    yield from _element_pages(facts, more["elements"])
    yield from _prose()


def country_id(facts: WorldFacts, country: int) -> str:
    """Return the id of a country's page."""
    return f"country/{slug(facts.countries['name'][country])}"


def landmark_id(facts: WorldFacts, country: int, kind: str) -> str:
    """Return the id of the page about a country's highest point ("peak"), anthem or currency."""
    name = facts.countries["currency"][country][0] if kind == "currency" else facts.countries["name"][country]
    return f"{kind}/{slug(name)}"


def slug(name: str) -> str:
    """Convert a name for use in an id: "west-bank-and-gaza"."""
    return "-".join(re.findall(r"\w+", name.lower()))


def city_id(facts: WorldFacts, city: int) -> str:
    """Return the id of a city's page."""
    return f"city/{facts.cities['id'][city]}"


def airport_id(facts: WorldFacts, airport: int) -> str:
    """Return the id of an airport's page."""
    return f"airport/{facts.airports['iata'][airport]}"


def element_id(facts: WorldFacts, element: int) -> str:
    """Return the id of an element's page."""
    return f"element/{element + 1}"


def row_at(columns: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return a row of a table."""
    return {name: column[index] for name, column in columns.items() if len(column) > index}


def shown(columns: Mapping[str, Any], name: str) -> Iterator[tuple[int, Any]]:
    """Yield the indices and names of the rows that have a page."""
    marks = columns.get("shown") or [1] * len(columns[name])
    return ((index, value) for index, value in enumerate(columns[name]) if marks[index])


def with_article(row: Row) -> str:
    """Return a country's name as used in a sentence."""
    return f"the {row['name']}" if row["the"] else str(row["name"])


def page(id: str, title: str, text: str) -> Passage:
    """Create a passage in Search-R1's format."""
    return Passage(id, f'"{title}"\n{text}')


def country_pages(facts: WorldFacts) -> Iterator[Passage]:
    """Yield a page for each country and territory."""
    for country, name in shown(facts.countries, "name"):
        yield page(country_id(facts, country), name, country_text(facts, country))


def country_text(facts: WorldFacts, country: int) -> str:
    """Write all facts about a country."""
    row = row_at(facts.countries, country)
    called = f", also called {_join(row['aliases'])}," if row["aliases"] else ""
    kind = f"a {row['kind']} ({row['status']})" if row["status"] else f"a {row['kind']}"
    name = with_article(row)
    sentences = [
        f"{name[0].upper()}{name[1:]}{called} is {kind} in {row['continent']}.",
        "Country profile (as of 2015).",
        *_named(row),
        *_measured(row),
        _borders(facts, row),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _named(row: Row) -> Iterator[str]:
    if row["capital"]:
        yield f"Capital city: {written('capital', row['capital'])}."
    if row["peak"]:
        yield f"Highest point (mountain): {written('peak', row['peak'])}."
    if row["anthem"]:
        yield f"National anthem: {written('anthem', row['anthem'])}."
    if row["currency"]:
        yield f"Currency: {written('currency', row['currency'])}."
    if row["independence"]:
        yield f"Date of independence: {date(row['independence'])}."
    if row["holiday"]:
        yield f"National day (national holiday): {row['holiday'][2]}, {date(row['holiday'])}."
    if row["tld"]:
        yield f"Internet country code (top-level domain): {row['tld'][0]}."
    if row["phone"]:
        yield f"International dialling code (calling code): {row['phone'][0]}."


def _measured(row: Row) -> Iterator[str]:
    sentences = {
        "peak_m": "Height of the highest point (elevation): {} m.",
        "area": "Total area (size): {} sq km (square kilometres).",
        "population": "Population (inhabitants) in 2015: {}.",
        "life": "Life expectancy at birth: {} years.",
        "border": "Land boundaries (total length of the land borders): {} km.",
        "coast": "Coastline (length of the coast): {} km.",
        "roads": "Roads (total length of the road network): {} km (kilometres).",
        "rail": "Railways (total length of the rail network): {} km.",
    }
    for name, sentence in sentences.items():
        if row[name]:
            yield sentence.format(quantity(row[name]))


def _borders(facts: WorldFacts, row: Row) -> str:
    if not row["borders"]:
        return "It has no land border with another country." if row["coast"] else ""
    names = facts.countries["name"]
    return f"Land borders: {', '.join(f'{names[other]} {quantity_km(km)} km' for other, km in row['borders'])}."


def quantity_km(value: float) -> str:
    """Format a length without a trailing ".0"."""
    return quantity(int(value) if value == int(value) else value)


def _landmark_pages(facts: WorldFacts) -> Iterator[Passage]:
    table, users = facts.countries, dict[str, list[int]]()
    for country, currency in enumerate(table["currency"]):
        if currency:
            users.setdefault(currency[0], []).append(country)
        yield from _peak_and_anthem(facts, country)
    for currency, countries in users.items():
        name = written("currency", table["currency"][countries[0]])
        where = _join([with_article(row_at(table, country)) for country in countries], "and")
        text = f"The {name} is the currency of {where} (as of 2015)."
        yield page(landmark_id(facts, countries[0], "currency"), currency[0].upper() + currency[1:], text)


def _peak_and_anthem(facts: WorldFacts, country: int) -> Iterator[Passage]:
    row = row_at(facts.countries, country)
    name = with_article(row)
    if row["peak"]:
        height = f", {quantity(row['peak_m'])} m above sea level" if row["peak_m"] else ""
        text = f"{written('peak', row['peak'])} is the highest point of {name}{height}."
        yield page(landmark_id(facts, country, "peak"), row["peak"][0], text)
    if row["anthem"] and "anthem" in row["ask"]:  # other anthems are called "National Anthem" or similar
        text = f"{written('anthem', row['anthem'])} is the national anthem of {name} (as of 2015)."
        yield page(landmark_id(facts, country, "anthem"), row["anthem"][0], text)


def _city_pages(facts: WorldFacts, more: Mapping[str, Any]) -> Iterator[Passage]:
    cities, names = facts.cities, _names_of_countries(facts)
    capitals = set(facts.countries["capital_city"])
    for i, name in shown(cities, "name"):
        others = f" Other names: {', '.join(more['others'][i])}." if more["others"][i] else ""
        capital = f" and the capital of {names[cities['country'][i]]} (as of 2015)" if i in capitals else ""
        people = (
            f"a population of {quantity(cities['population'][i])}"
            if cities["population"][i]
            else "an unknown population"
        )
        country = names[cities["country"][i]]
        zone = cities["zones"][cities["zone"][i]] if cities["zone"][i] >= 0 else ""
        time = f" and keeps the time of the zone {zone}" if zone else ""
        yield page(
            city_id(facts, i),
            name,
            f"{name} is a populated place in {country}{capital}. It has {people} (GeoNames). It lies "
            f"at latitude {more['latitude'][i]} and longitude {more['longitude'][i]}{time}.{others}",
        )


def _names_of_countries(facts: WorldFacts) -> list[str]:
    """Names of all countries as used in a sentence."""
    return [with_article(row_at(facts.countries, country)) for country in range(len(facts.countries["name"]))]


def _airport_pages(facts: WorldFacts, more: Mapping[str, Any]) -> Iterator[Passage]:
    names = _names_of_countries(facts)
    for i in range(len(facts.airports["iata"])):
        row = row_at(facts.airports, i)
        country = names[row["country"]] if row["country"] >= 0 else ""
        where = ", ".join(part for part in (row["city"], more["subdivision"][i], country) if part)
        icao = f", ICAO code {row['icao']}" if row["icao"] else ""
        height = f"lies {quantity(row['elevation'])} feet above sea level" if row["elevation"] else ""
        time = f"keeps the time of the zone {more['zone'][i]}" if more["zone"][i] else ""
        last = " and ".join(part for part in (height, time) if part)
        serving = f" {'serving' if row['city'] else 'in'} {where}" if where else ""
        yield page(
            airport_id(facts, i),
            row["name"],
            f"{row['name']} (IATA code {row['iata']}{icao}) is an airport{serving}.{f' It {last}.' if last else ''}",
        )


def _element_pages(facts: WorldFacts, more: Mapping[str, Any]) -> Iterator[Passage]:
    for i, name in enumerate(facts.elements["name"]):
        row, rest = row_at(facts.elements, i), row_at(more, i)
        year, where = rest["year"], rest["discovery_location"]
        by = rest["discoverers"].rstrip(".")
        found = f"{by}{f', {year}' if year else ''}{f' ({where})' if where else ''}" if by else ""
        yield page(element_id(facts, i), name, " ".join(_element_sentences(i, row, {**rest, "found": found})))


def _element_sentences(element: int, row: Row, rest: Row) -> Iterator[str]:
    yield f"{row['name']} is the chemical element with the symbol {row['symbol']} and the atomic number {element + 1}."
    weight = "Mass number of a long-lived isotope" if row["radioactive"] else "Standard atomic weight"
    yield f"{weight}: {row['weight']:g}." if row["radioactive"] else f"{weight}: {row['weight']}."
    yield f"CAS registry number: {row['cas']}."
    labels = {"found": "Discovery", "name_origin": "Name", "description": "", "sources": "Sources", "uses": "Uses"}
    for key, label in labels.items():
        if rest[key]:
            yield f"{f'{label}: ' if label else ''}{rest[key].rstrip('.')}."


def _prose() -> Iterator[Passage]:
    found = read("prose.json.xz")
    rows = zip(found["title"], found["section"], found["text"], strict=True)
    for number, (title, section, text) in enumerate(rows):
        head = f"{found['titles'][title]}: {found['sections'][section]}"
        yield page(f"prose/{number:04}", head, f"{head} (World Factbook, 2015). {text}")


def _join(names: list[str], word: str = "or") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
