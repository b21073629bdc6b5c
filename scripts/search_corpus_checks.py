"""Checks of the corpus's facts for scripts/make_search_corpus.py: patterns and ranges, and sources against each other.

Each check yields findings: a value of the first version of the facts that is wrong, or that another source contradicts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import search_corpus_tables as tables
from search_corpus_elements import check_elements
from search_corpus_names import fold
from search_corpus_places import Places

from agentgym_envs.corpus.validation import VALIDATORS

POPULATIONS = 0.7, 1.25
"""The least and the most ratio of the profile's population (2015) to GeoNames' (up to ten years later)."""
AREAS = 0.95, 1.05
SAME_BORDER = 0.97
"""The least ratio of the two lengths that both neighbours' profiles give their border."""
SERVED_KM = 100.0
"""An airport is at most this far from the place that it serves."""
RULES = {
    "pattern": "the value has a wrong form or lies out of range",
    "dissolved": "the country does not exist any more",
    "population": "the World Factbook and GeoNames give populations that differ by more than 30 %",
    "area": "the World Factbook and GeoNames give areas that differ by more than 5 %",
    "capital": "the World Factbook and GeoNames name different capitals",
    "tld": "the World Factbook and GeoNames give different internet codes",
    "border": "the profiles of the two neighbours give different lengths, or the total is not the sum of the borders",
    "size": "the value is too large for the area of the country",
    "small": "GeoNames lists places of 15,000 people and more and capitals; this is neither",
    "people": "the place has more people than its country",
    "zone": "no other place of the country, or hardly any, has this time zone",
    "country": "all places nearby lie in another country according to GeoNames",
    "icao": "the code is not unique, or begins with a letter that the country's other codes do not begin with",
    "served": "GeoNames has places of this name in the country, but none within 100 km of the airport",
    "state": "no place within 60 km of the airport lies in this state",
    "height": "the airport would be higher than the highest point of its country",
    "isotopes": "the table of isotopes contradicts the sentence, or cannot confirm it",
    "year": "the element's table and its description give different years of discovery",
    "mass": "a mass number is a whole number; the source has the atomic mass",
    "abundance": "the weight differs from the mean of the isotopes by more than 0.5 %",
    "spelling": "a misspelt name or word",
    "false": "the sentence is known to be false or names the wrong discoverer",
}
"""The reasons of the report."""


class Finding(NamedTuple):
    """A value that the next version of the facts does not have; `now` replaces it (None: nothing)."""

    table: str
    key: object
    field: str
    rule: str
    evidence: object = ""
    now: object = None


def find_all(facts: dict, pages: dict, geonames: dict, places: Places, airports: list[dict], isotopes: list[dict]):
    """Return all findings, and the airports whose city GeoNames confirms."""
    confirmed: set[str] = set()
    found = [
        *check_patterns(facts, pages),
        *check_countries(facts["countries"], geonames),
        *check_cities(facts, pages["cities"], geonames),
        *check_airports(facts, pages["airports"], airports, places, confirmed),
        *(Finding("elements", *row) for row in check_elements(facts["elements"], pages["elements"], isotopes)),
    ]
    first: dict[tuple, Finding] = {}
    for row in found:
        first.setdefault((row.table, row.key, row.field), row)
    return list(first.values()), confirmed


KEYS = {"countries": "iso", "cities": "id", "airports": "iata", "elements": "symbol"}


def check_patterns(facts: dict, pages: dict) -> Iterator[Finding]:
    """Apply the table of validators to every value."""
    for table, field, rule, valid in VALIDATORS:
        columns = {**facts[table], **pages.get(table, {})}
        values = columns[field]
        if table == "cities" and field == "zone":
            values = [columns["zones"][zone] if zone >= 0 else "" for zone in values]
        for key, value in zip(columns[KEYS[table]], values, strict=True):
            if value not in (None, "") and not valid(value):
                yield Finding(table, key, field, "pattern", rule, "" if isinstance(value, str) else None)


# --- countries


def check_countries(table: dict, geonames: dict) -> Iterator[Finding]:
    """Compare the profiles of the World Factbook with GeoNames and with each other."""
    lengths = {(i, j): km for i, borders in enumerate(table["borders"]) for j, km in borders}
    for index, iso in enumerate(table["iso"]):
        row, other = {name: column[index] for name, column in table.items()}, geonames[iso]
        if iso in tables.DISSOLVED and row.get("shown", 1):
            yield Finding("countries", iso, "page", "dissolved", tables.DISSOLVED[iso])
        yield from _compare(iso, "population", row["population"], other["population"], POPULATIONS)
        yield from _compare(iso, "area", row["area"], other["areakm2"], AREAS)
        if row["capital"] and not _same_place(row["capital"], other["capital"]):
            yield Finding("countries", iso, "capital", "capital", other["capital"])
        if row["tld"] and row["tld"][0] != other["tld"]:
            yield Finding("countries", iso, "tld", "tld", other["tld"])
        yield from _check_sizes(iso, row)
        yield from _check_borders(iso, index, row, lengths)


def _compare(iso: str, field: str, value: float | None, other: float, ratios: tuple[float, float]) -> Iterator[Finding]:
    if value and other and not ratios[0] <= value / other <= ratios[1]:
        yield Finding("countries", iso, field, field, other)


def _same_place(names: list[str], other: str) -> bool:
    def bare(name: str) -> str:
        return re.sub(r"\bst\.? ", "saint ", fold(re.sub(r"\(.*\)", "", name))).strip()

    return bare(other) in {bare(part) for name in names for part in re.split(r"[;(]", name)}


def _check_sizes(iso: str, row: dict) -> Iterator[Finding]:
    """Compare lengths with the area: no country has 30 km of roads or 0.5 km of rails per square kilometre."""
    for field, most in (("roads", 30), ("rail", 0.5)):
        if row[field] and row["area"] and row[field] > most * row["area"]:
            yield Finding("countries", iso, field, "size", f"{row['area']} sq km")


def _check_borders(iso: str, index: int, row: dict, lengths: dict) -> Iterator[Finding]:
    total = sum(km for _, km in row["borders"])
    if row["border"] and total and not 0.97 < total / row["border"] < 1.03:
        yield Finding("countries", iso, "border", "border", total)
    pairs = [(km, lengths.get((other, index))) for other, km in row["borders"]]
    if any(back and min(km, back) < SAME_BORDER * max(km, back) for km, back in pairs):
        yield Finding("countries", iso, "borders", "border", [back for _, back in pairs])


# --- cities


def check_cities(facts: dict, pages: dict, geonames: dict) -> Iterator[Finding]:
    """Compare cities with their country."""
    table, countries = facts["cities"], facts["countries"]
    zones = Counter(zip(table["zone"], table["country"], strict=True))
    of_zone = Counter(table["zone"])
    for i, number in enumerate(table["id"]):
        country, people = table["country"][i], table["population"][i]
        iso = countries["iso"][country]
        capital = _same_place([table["name"][i], *pages["others"][i]], geonames[iso]["capital"])
        if people < 15_000 and not capital and ("shown" not in table or table["shown"][i]):
            yield Finding("cities", number, "page", "small", people)
        if (whole := countries["population"][country] or geonames[iso]["population"]) and people > 1.3 * whole:
            yield Finding("cities", number, "population", "people", whole, 0)
        if table["zone"][i] >= 0 and zones[table["zone"][i], country] < 0.02 * of_zone[table["zone"][i]]:
            yield Finding("cities", number, "zone", "zone", table["zones"][table["zone"][i]])


# --- airports


def check_airports(
    facts: dict, pages: dict, sources: list[dict], places: Places, confirmed: set[str]
) -> Iterator[Finding]:
    """Compare airports with GeoNames' places and with the other airports of their country."""
    table, countries = facts["airports"], facts["countries"]
    of = [countries["iso"][at] if at >= 0 else "" for at in table["country"]]
    codes, letters = Counter(table["icao"]), defaultdict(Counter)
    for iso, icao in zip(of, table["icao"], strict=True):
        letters[iso][icao[:1]] += len(icao) == 4 and icao.isalpha()
    for i, row in enumerate(sources):
        where = float(row["lat"]), float(row["lon"])
        icao = table["icao"][i]
        if icao and (codes[icao] > 1 or (of[i] and _is_rare(icao[:1], letters[of[i]]))):
            yield Finding("airports", row["iata"], "icao", "icao", dict(letters[of[i]]), "")
        if of[i]:
            yield from _check_place(table["city"][i], row, of[i], places, confirmed)
            yield from _check_zone_and_height(i, facts, pages, of[i], places)
        states = places.states_around(*where) if of[i] == "US" else set()
        if states and pages["subdivision"][i] not in {"", *states}:
            yield Finding("airports", row["iata"], "subdivision", "state", sorted(states), "")


def _check_place(city: str, row: dict, iso: str, places: Places, confirmed: set[str]) -> Iterator[Finding]:
    where = float(row["lat"]), float(row["lon"])
    if other := places.other_country(*where, iso):
        yield Finding("airports", row["iata"], "country", "country", other, -1)
    nearest = places.nearest_named(city, iso, *where)
    if nearest is not None and nearest <= SERVED_KM:
        confirmed.add(row["iata"])
    elif nearest is not None:
        yield Finding("airports", row["iata"], "city", "served", f"{nearest:.0f} km", "")


def _check_zone_and_height(i: int, facts: dict, pages: dict, iso: str, places: Places) -> Iterator[Finding]:
    table, countries = facts["airports"], facts["countries"]
    key, zone, peak = table["iata"][i], pages["zone"][i], countries["peak_m"][countries["iso"].index(iso)]
    if places.zones[zone] and not places.zones[zone][iso]:
        yield Finding("airports", key, "zone", "zone", max(places.zones[zone]), "")
    if peak and table["elevation"][i] > 1.02 * peak / 0.3048:
        yield Finding("airports", key, "elevation", "height", f"{peak} m", 0)


def _is_rare(letter: str, letters: Counter) -> bool:
    return letters[letter] < 0.05 * letters.total() and letters.total() >= 5 and letter not in "PT"
