"""The structured pages of the embedded corpus, written from the facts: so no page and no answer can disagree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentgym_envs.search.corpus.facts import World, read, world
from agentgym_envs.search.corpus.values import date, quantity, written
from agentgym_envs.search.retrieval.base import Passage

Row = Mapping[str, Any]


def embedded_passages() -> Iterator[Passage]:
    """All passages: countries and what they are known by, cities, airports, elements, the prose of the profiles."""
    facts, more = world(), read("pages.json.xz")
    yield from country_pages(facts)
    yield from _landmark_pages(facts)
    yield from _city_pages(facts, more["cities"])
    yield from _airport_pages(facts, more["airports"])
    yield from _element_pages(facts, more["elements"])
    yield from _prose()


def country_id(facts: World, place: int) -> str:
    """The id of a country's page."""
    return f"country/{slug(facts.countries['name'][place])}"


def landmark_id(facts: World, place: int, kind: str) -> str:
    """The id of the page about a country's highest point ("peak"), anthem or currency."""
    name = facts.countries["currency"][place][0] if kind == "currency" else facts.countries["name"][place]
    return f"{kind}/{slug(name)}"


def slug(name: str) -> str:
    """A name as a part of an id: "west-bank-and-gaza"."""
    return "-".join(re.findall(r"\w+", name.lower()))


def city_id(facts: World, place: int) -> str:
    """The id of a city's page."""
    return f"city/{facts.cities['id'][place]}"


def airport_id(facts: World, place: int) -> str:
    """The id of an airport's page."""
    return f"airport/{facts.airports['iata'][place]}"


def element_id(facts: World, place: int) -> str:
    """The id of an element's page."""
    return f"element/{place + 1}"


def row_at(columns: Mapping[str, Any], place: int) -> dict[str, Any]:
    """One row of a table."""
    return {name: column[place] for name, column in columns.items() if len(column) > place}


def with_article(row: Row) -> str:
    """A country's name as it stands in a sentence."""
    return f"the {row['name']}" if row["the"] else str(row["name"])


def page(id: str, title: str, text: str) -> Passage:
    """A passage as Search-R1 writes them."""
    return Passage(id, f'"{title}"\n{text}')


def country_pages(facts: World) -> Iterator[Passage]:
    """A page for each country and territory."""
    for place, name in enumerate(facts.countries["name"]):
        yield page(country_id(facts, place), name, country_text(facts, place))


def country_text(facts: World, place: int) -> str:
    """Everything that is known of a country in columns."""
    row = row_at(facts.countries, place)
    called = f", also called {_listed(row['aliases'])}," if row["aliases"] else ""
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
    told = {
        "peak_m": "Height of the highest point (elevation): {} m.",
        "area": "Total area (size): {} sq km (square kilometres).",
        "population": "Population (inhabitants) in 2015: {}.",
        "life": "Life expectancy at birth: {} years.",
        "border": "Land boundaries (total length of the land borders): {} km.",
        "coast": "Coastline (length of the coast): {} km.",
        "roads": "Roads (total length of the road network): {} km (kilometres).",
        "rail": "Railways (total length of the rail network): {} km.",
    }
    for name, sentence in told.items():
        if row[name]:
            yield sentence.format(quantity(row[name]))


def _borders(facts: World, row: Row) -> str:
    if not row["borders"]:
        return "It has no land border with another country." if row["coast"] else ""
    names = facts.countries["name"]
    return f"Land borders: {', '.join(f'{names[other]} {quantity_km(km)} km' for other, km in row['borders'])}."


def quantity_km(value: float) -> str:
    """A length without a needless ".0"."""
    return quantity(int(value) if value == int(value) else value)


def _landmark_pages(facts: World) -> Iterator[Passage]:
    countries, users = facts.countries, dict[str, list[int]]()
    for place, currency in enumerate(countries["currency"]):
        if currency:
            users.setdefault(currency[0], []).append(place)
        yield from _peak_and_anthem(facts, place)
    for currency, places in users.items():
        named = written("currency", countries["currency"][places[0]])
        where = _listed([with_article(row_at(countries, place)) for place in places], "and")
        text = f"The {named} is the currency of {where} (as of 2015)."
        yield page(landmark_id(facts, places[0], "currency"), currency[0].upper() + currency[1:], text)


def _peak_and_anthem(facts: World, place: int) -> Iterator[Passage]:
    row = row_at(facts.countries, place)
    country = with_article(row)
    if row["peak"]:
        height = f", {quantity(row['peak_m'])} m above sea level" if row["peak_m"] else ""
        text = f"{written('peak', row['peak'])} is the highest point of {country}{height}."
        yield page(landmark_id(facts, place, "peak"), row["peak"][0], text)
    if row["anthem"] and "anthem" in row["ask"]:  # the others are called "National Anthem" or the like
        text = f"{written('anthem', row['anthem'])} is the national anthem of {country} (as of 2015)."
        yield page(landmark_id(facts, place, "anthem"), row["anthem"][0], text)


def _city_pages(facts: World, more: Mapping[str, Any]) -> Iterator[Passage]:
    cities, names = facts.cities, _names_of_countries(facts)
    capitals = set(facts.countries["capital_city"])
    for i, name in enumerate(cities["name"]):
        others = f" Other names: {', '.join(more['others'][i])}." if more["others"][i] else ""
        capital = f" and the capital of {names[cities['country'][i]]} (as of 2015)" if i in capitals else ""
        people = (
            f"a population of {quantity(cities['population'][i])}"
            if cities["population"][i]
            else "an unknown population"
        )
        country = names[cities["country"][i]]
        yield page(
            city_id(facts, i),
            name,
            f"{name} is a populated place in {country}{capital}. It has {people} (GeoNames). It lies "
            f"at latitude {more['latitude'][i]} and longitude {more['longitude'][i]} and keeps the time of the zone "
            f"{cities['zones'][cities['zone'][i]]}.{others}",
        )


def _names_of_countries(facts: World) -> list[str]:
    """The name of each country as it stands in a sentence."""
    return [with_article(row_at(facts.countries, place)) for place in range(len(facts.countries["name"]))]


def _airport_pages(facts: World, more: Mapping[str, Any]) -> Iterator[Passage]:
    names = _names_of_countries(facts)
    for i in range(len(facts.airports["iata"])):
        row = row_at(facts.airports, i)
        country = names[row["country"]] if row["country"] >= 0 else ""
        where = ", ".join(part for part in (row["city"], more["subdivision"][i], country) if part)
        icao = f", ICAO code {row['icao']}" if row["icao"] else ""
        height = f"lies {quantity(row['elevation'])} feet above sea level and " if row["elevation"] else ""
        serving = "serving" if row["city"] else "in"
        yield page(
            airport_id(facts, i),
            row["name"],
            f"{row['name']} (IATA code {row['iata']}{icao}) is an airport {serving} {where}. It {height}"
            f"keeps the time of the zone {more['zone'][i]}.",
        )


def _element_pages(facts: World, more: Mapping[str, Any]) -> Iterator[Passage]:
    for i, name in enumerate(facts.elements["name"]):
        row, rest = row_at(facts.elements, i), row_at(more, i)
        year, place = rest["year"], rest["discovery_location"]
        found = f"{rest['discoverers'].rstrip('.')}{f', {year}' if year else ''}{f' ({place})' if place else ''}"
        yield page(element_id(facts, i), name, " ".join(_element_sentences(i, row, {**rest, "found": found})))


def _element_sentences(place: int, row: Row, rest: Row) -> Iterator[str]:
    yield f"{row['name']} is the chemical element with the symbol {row['symbol']} and the atomic number {place + 1}."
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


def _listed(names: list[str], word: str = "or") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
