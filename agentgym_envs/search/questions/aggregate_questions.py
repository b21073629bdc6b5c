"""Types of embedded questions whose answer must be computed, or whose subject has an ambiguous name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.search.corpus.values import UNITS, quantities, quantity
from agentgym_envs.search.questions import question_templates as templates
from agentgym_envs.search.questions.fact_arrays import (
    CLEAR,
    NONE,
    TEST,
    TRAIN,
    VALIDATION,
    Graph,
    Ints,
    Locations,
    hashed,
)
from agentgym_envs.search.questions.question_types import (
    Page,
    Question,
    QuestionRows,
    QuestionType,
    Wording,
    country_of_city,
)

SUMMED, GAPS = tuple(templates.COUNTRY_SUM), tuple(templates.COUNTRY_GAP)
CLUES = tuple(templates.CLUE)
PEOPLE = UNITS["population"]


def city_sums(graph: Graph) -> QuestionRows:
    """List groups of four cities whose populations are added."""
    rows, cities = _cities(graph, 3_000, 61)
    return _rows(cities, np.zeros(len(rows), int), _split_of_all(graph, rows))


def ask_city_sum(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of four cities."""
    columns = graph.facts.cities
    names = dict(zip("abcd", (columns["name"][city] for city in subjects), strict=True))
    total = sum(columns["population"][city] for city in subjects)
    pages = [graph.city_page(city) for city in subjects]
    return Question(wording.one(templates.CITY_SUM).format(**names), quantities(total, PEOPLE), pages)


def country_sums(graph: Graph) -> QuestionRows:
    """List groups of four countries whose areas or populations are added."""
    valid = np.all([_is_whole(graph, name) for name in SUMMED], axis=0)
    rows = _draw_countries(valid.astype(int), 600, 71, 4)
    attribute = (hashed(np.arange(len(rows)), 72) % np.uint64(len(SUMMED))).astype(np.int64)
    return _rows(rows, attribute, _split_of_all(graph, rows))


def ask_country_sum(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of four countries."""
    name = SUMMED[attribute]
    total = sum(graph.facts.countries[name][country] for country in subjects)
    names = dict(zip("abcd", map(graph.country, subjects), strict=True))
    pages = [graph.country_page(country, name) for country in subjects]
    return Question(wording.one(templates.COUNTRY_SUM[name]).format(**names), quantities(total, UNITS[name]), pages)


def neighbour_counts(graph: Graph) -> QuestionRows:
    """List groups of two or three countries whose neighbours are counted; a missing third country is -1."""
    valid = np.array([_has_clear_borders(graph, country) for country in range(len(graph.usable))])
    rows = _draw_countries(valid.astype(int), 4_000, 81, 3)
    rows = np.where((np.arange(len(rows)) % 2 == 0)[:, None] & (np.arange(3) == 2), -1, rows)
    counts = np.array([len(_neighbours(graph, row[row >= 0])) for row in rows])
    return _rows(rows, np.zeros(len(rows), int), np.where(counts >= 3, _split_of_all(graph, rows), NONE))


def ask_neighbour_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of all countries in the group."""
    countries = [country for country in subjects if country >= 0]
    names = [graph.country(country) for country in countries]
    goal = wording.one(templates.NEIGHBOUR_COUNT).format(all=_join(names), any=_join(names, "or"))
    answers = quantities(len(_neighbours(graph, countries)), ("countries",))
    return Question(goal, answers, [graph.country_page(country, "borders") for country in countries])


def city_counts(graph: Graph) -> QuestionRows:
    """List a country, identified by a clue, and five cities; each count from zero to five in it is equally likely."""
    clues: Ints = np.array([len(clues) for clues in graph.clues])
    countries, cities, split = _mix_locations(graph, graph.cities, 4_000, 121, clues > 0)
    nth = (hashed(np.arange(len(cities)), 127) % clues[countries].astype(np.uint64)).astype(int)
    attribute = np.array([graph.clues[country][clue] for country, clue in zip(countries, nth, strict=True)])
    return _rows(np.column_stack([countries, cities]), attribute, split)


def ask_city_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of the clue and of five cities."""
    (country, *cities), clue = subjects, CLUES[attribute]
    where = wording.one(templates.CLUE[clue]).format(graph.facts.countries[clue][country][0])
    names = _join([graph.facts.cities["name"][city] for city in cities])
    pages = [graph.clue_page(country, clue), *(graph.city_page(city) for city in cities)]
    pages = list({page[0]: page for page in pages}.values())  # the capital may be one of the five
    inside = sum(graph.facts.cities["country"][city] == country for city in cities)
    return Question(wording.one(templates.COUNT_IN).format(where=where, all=names), quantities(inside), pages)


def airport_counts(graph: Graph) -> QuestionRows:
    """List a city and five airports; each count from zero to five in the city's country is equally likely."""
    countries, airports, split = _mix_locations(graph, graph.airports, 4_000, 131, graph.cities.count > 0)
    cities = graph.cities.pick(countries, hashed(np.arange(len(countries)), 137))
    return _rows(np.column_stack([cities, airports]), np.zeros(len(cities), int), split)


def ask_airport_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of a city and of five airports."""
    city, *airports = subjects
    names = _join([graph.airport(airport) for airport in airports])
    goal = wording.one(templates.COUNT_IN).format(where=country_of_city(graph, city, wording), all=names)
    inside = sum(int(graph.airports.country[airport] == graph.cities.country[city]) for airport in airports)
    pages = [graph.city_page(city), *(graph.airport_page(airport) for airport in airports)]
    return Question(goal, quantities(inside), pages)


def airports_above(graph: Graph) -> QuestionRows:
    """List five airports and a height in feet (the attribute); each count from zero to five above it is equally likely.

    Rows with an airport within 30 feet of the height are dropped.
    """
    rows = _draw_countries(graph.airports.count, 4_000, 141, 5)
    numbers = np.arange(len(rows))
    airports = np.stack([graph.airports.pick(rows[:, n], hashed(numbers, 142 + n)) for n in range(5)], 1)
    feet = np.sort(graph.airports.quantity[airports], axis=1)[:, ::-1]
    bounds = np.column_stack([feet[:, 0] + 2_000, feet, np.maximum(0, feet[:, 4] - 2_000)])
    above = (hashed(numbers, 149) % np.uint64(6)).astype(int)
    limit = (bounds[numbers, above] + bounds[numbers, above + 1]) // 200 * 100
    clear = (np.min(np.abs(feet - limit[:, None]), 1) >= 30) & (feet[:, 4] > 0) & (limit > 0)
    return _rows(airports, limit.astype(int), np.where(clear, _split_of_all(graph, rows), NONE))


def ask_airports_above(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of five airports."""
    names = _join([graph.airport(airport) for airport in subjects])
    goal = wording.one(templates.COUNT_ABOVE).format(feet=quantity(attribute), all=names)
    above = sum(graph.facts.airports["elevation"][airport] > attribute for airport in subjects)
    return Question(goal, quantities(above), [graph.airport_page(airport, "elevation") for airport in subjects])


def airport_gaps(graph: Graph) -> QuestionRows:
    """List two airports in different countries, the higher one first."""
    return _gaps(graph, graph.airports, 3_000, 91, 100)


def ask_airport_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both airports."""
    high, low = (graph.facts.airports["elevation"][airport] for airport in subjects)
    goal = wording.one(templates.HIGHER_BY).format(a=graph.airport(subjects[0]), b=graph.airport(subjects[1]))
    pages = [graph.airport_page(airport, "elevation") for airport in subjects]
    return Question(_capitalize(goal), quantities(high - low, UNITS["elevation"]), pages)


def city_gaps(graph: Graph) -> QuestionRows:
    """List two cities in different countries, the more populous one first."""
    return _gaps(graph, graph.cities, 4_500, 101, 1)


def ask_city_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both cities."""
    columns = graph.facts.cities
    names = dict(zip("ab", (columns["name"][city] for city in subjects), strict=True))
    large, small = (columns["population"][city] for city in subjects)
    pages = [graph.city_page(city) for city in subjects]
    return Question(
        _capitalize(wording.one(templates.MORE_PEOPLE).format(**names)), quantities(large - small, PEOPLE), pages
    )


def country_gaps(graph: Graph) -> QuestionRows:
    """List two cities whose countries are compared, the one whose country has the larger quantity first."""
    valid = np.all([_is_whole(graph, name) for name in GAPS], axis=0) & (graph.cities.count > 0)
    rows = _draw_countries(valid.astype(int), 4_500, 111, 2)
    numbers = np.arange(len(rows))
    attribute = (hashed(numbers, 112) % np.uint64(len(GAPS))).astype(np.int64)
    values = np.stack([graph.quantity(name) for name in GAPS])[attribute[:, None], rows]
    cities = np.stack([graph.cities.pick(rows[:, n], hashed(numbers, 113 + n)) for n in range(2)], 1)
    cities = np.where((values[:, 0] > values[:, 1])[:, None], cities, cities[:, ::-1])
    clear = np.max(values, 1) >= CLEAR * np.min(values, 1)
    return _rows(cities, attribute, np.where(clear, _split_of_all(graph, rows), NONE))


def ask_country_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both cities and both countries."""
    name, countries = GAPS[attribute], [int(graph.cities.country[city]) for city in subjects]
    more, less = (graph.facts.countries[name][country] for country in countries)
    where = dict(zip("ab", (country_of_city(graph, city, wording) for city in subjects), strict=True))
    pages = [*(graph.city_page(city) for city in subjects), *(graph.country_page(c, name) for c in countries)]
    return Question(
        wording.one(templates.COUNTRY_GAP[name]).format(**where), quantities(more - less, UNITS[name]), pages
    )


def namesakes(graph: Graph) -> QuestionRows:
    """List cities that share their name with a city in another country, each with a clue to its own country."""
    columns = graph.facts.cities
    named = np.flatnonzero(np.array(columns["use"]) == 2)
    country = np.array(columns["country"])
    found = [(city, clues[city % len(clues)]) for city in named.tolist() if (clues := graph.clues[country[city]])]
    cities, clues = np.array(found).T
    return _rows(cities[:, None], clues, graph.split[country[cities]])


def ask_namesake(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the country behind the clue, and then the city in it."""
    city, clue, columns = subjects[0], CLUES[attribute], graph.facts.cities
    template = wording.one(templates.NAMESAKE)
    goal = template.format(name=columns["name"][city], where=_country_by_clue(graph, city, clue, wording))
    return Question(goal, quantities(columns["population"][city], PEOPLE), _namesake_pages(graph, city, clue))


def namesake_gaps(graph: Graph) -> QuestionRows:
    """List pairs of cities with the same name, the larger one first, each with a clue to its country."""
    columns = graph.facts.cities
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for city in np.flatnonzero(np.array(columns["use"]) == 2).tolist():
        groups[columns["name"][city]].append(city)
    pairs = [pair for cities in groups.values() for pair in permutations(cities, 2) if _is_comparable(graph, *pair)]
    country = columns["country"]
    found = [
        (large, small, one * len(CLUES) + other)
        for large, small in pairs
        for one, other in product(graph.clues[country[large]], graph.clues[country[small]])
    ]
    rows = np.array(found)
    return _rows(rows[:, :2], rows[:, 2], _split_of_all(graph, np.array(country)[rows[:, :2]]))


def ask_namesake_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs two clues and two cities."""
    columns = graph.facts.cities
    large, small = subjects
    clues = [CLUES[number] for number in divmod(attribute, len(CLUES))]
    where = [_country_by_clue(graph, city, clue, wording) for city, clue in zip(subjects, clues, strict=True)]
    goal = wording.one(templates.NAMESAKE_GAP).format(name=columns["name"][large], a=where[0], b=where[1])
    gap = columns["population"][large] - columns["population"][small]
    return Question(
        goal, quantities(gap, PEOPLE), _namesake_pages(graph, large, clues[0]) + _namesake_pages(graph, small, clues[1])
    )


AGGREGATE_KINDS: dict[str, tuple[QuestionType, ...]] = {
    "count": (
        QuestionType(neighbour_counts, ask_neighbour_count),
        QuestionType(city_counts, ask_city_count),
        QuestionType(airport_counts, ask_airport_count),
        QuestionType(airports_above, ask_airports_above),
    ),
    "sum": (
        QuestionType(city_sums, ask_city_sum),
        QuestionType(country_sums, ask_country_sum),
    ),
    "difference": (
        QuestionType(airport_gaps, ask_airport_gap),
        QuestionType(city_gaps, ask_city_gap),
        QuestionType(country_gaps, ask_country_gap),
    ),
    "ambiguous": (
        QuestionType(namesakes, ask_namesake),
        QuestionType(namesake_gaps, ask_namesake_gap),
    ),
}
"""Kinds of questions (the task groups) whose answer is on no page, each with its types."""


# --- helpers


def _draw_countries(weights: Ints, count: int, salt: int, width: int) -> Ints:
    """Draw rows of distinct countries uniformly from those with a weight above 0."""
    countries = np.flatnonzero(weights)
    numbers = [hashed(np.arange(count), salt * 100 + n) % np.uint64(len(countries)) for n in range(width)]
    rows = countries[np.stack(numbers, 1).astype(np.int64)]
    return rows[np.all(np.diff(np.sort(rows, axis=1), axis=1) > 0, axis=1)]


def _split_of_all(graph: Graph, countries: Ints) -> Ints:
    """Return test if any entity is in test, else validation if any is, because the answer depends on all of them."""
    splits = np.where(countries >= 0, graph.split[countries], TRAIN)
    return np.select([np.any(splits == TEST, 1), np.any(splits == VALIDATION, 1)], [TEST, VALIDATION], TRAIN)


def _rows(subjects: Ints, attribute: Ints, split: Ints) -> QuestionRows:
    keep = split >= 0
    return QuestionRows(subjects[keep], attribute[keep], split[keep])


def _gaps(graph: Graph, locations: Locations, count: int, salt: int, minimum: int) -> QuestionRows:
    rows = _draw_countries(locations.count, count, salt, 2)
    chosen = np.stack(
        [locations.pick(rows[:, n], hashed(np.arange(len(rows)), salt * 100 + 50 + n)) for n in range(2)], 1
    )
    values = locations.quantity[chosen]
    chosen = np.where((values[:, 0] > values[:, 1])[:, None], chosen, chosen[:, ::-1])
    low, high = np.min(values, 1), np.max(values, 1)
    clear = (low > 0) & (high >= CLEAR * low) & (high - low >= minimum)
    return _rows(chosen, np.zeros(len(rows), int), np.where(clear, _split_of_all(graph, rows), NONE))


def _mix_locations(
    graph: Graph, locations: Locations, count: int, salt: int, valid: NDArray[np.bool_]
) -> tuple[Ints, Ints, Ints]:
    """Return countries, five locations for each, and the splits.

    Each count of locations inside the country, from zero to five, is equally likely.
    """
    rows = _draw_countries(locations.count, count, salt, 6)
    rows = rows[(locations.count[rows[:, 0]] >= 12) & valid[rows[:, 0]]]
    numbers = np.arange(len(rows))
    inside = (hashed(numbers, salt * 100 + 90) % np.uint64(6)).astype(int)
    where = np.where(np.arange(5) < inside[:, None], rows[:, :1], rows[:, 1:])
    chosen = np.stack([locations.pick(where[:, n], hashed(numbers, salt * 100 + 50 + n)) for n in range(5)], 1)
    mixed = np.argsort(np.stack([hashed(numbers, salt * 100 + 70 + n) for n in range(5)], 1), axis=1)
    apart = np.all(np.diff(np.sort(chosen, axis=1), axis=1) > 0, axis=1)
    split = np.where(apart, _split_of_all(graph, np.column_stack([rows[:, 0], where])), NONE)
    return rows[:, 0], np.take_along_axis(chosen, mixed, 1), split


def _cities(graph: Graph, count: int, salt: int) -> tuple[Ints, Ints]:
    """Return rows of four countries, and rows with a city in each."""
    rows = _draw_countries(graph.cities.count, count, salt, 4)
    numbers = np.arange(len(rows))
    return rows, np.stack([graph.cities.pick(rows[:, n], hashed(numbers, salt * 100 + 50 + n)) for n in range(4)], 1)


def _is_whole(graph: Graph, name: str) -> NDArray[np.bool_]:
    """Mark the countries whose quantity is a whole number."""
    values = graph.quantity(name)
    whole: NDArray[np.bool_] = values == np.floor(values)  # false for an unknown quantity
    return whole


def _has_clear_borders(graph: Graph, country: int) -> bool:
    """Return true if a country has neighbours and all of them are undisputed."""
    others = [other for other, _ in graph.facts.countries["borders"][country]]
    france = graph.facts.countries["iso"].index("FR")  # ambiguous: with or without French Guiana
    return bool(
        graph.usable[country] and others and all(graph.usable[o] for o in others) and france not in (country, *others)
    )


def _neighbours(graph: Graph, countries: Sequence[int]) -> set[int]:
    """Neighbours of some countries, without these countries themselves."""
    borders = graph.facts.countries["borders"]
    return {other for country in countries for other, _ in borders[country]} - set(map(int, countries))


def _country_by_clue(graph: Graph, city: int, clue: str, wording: Wording) -> str:
    value = graph.facts.countries[clue][graph.facts.cities["country"][city]][0]
    return wording.one(templates.CLUE[clue]).format(value)


def _namesake_pages(graph: Graph, city: int, clue: str) -> list[Page]:
    country = graph.facts.cities["country"][city]
    return [graph.clue_page(country, clue), graph.city_page(city, country)]


def _is_comparable(graph: Graph, large: int, small: int) -> bool:
    columns = graph.facts.cities
    known = all(graph.clues[columns["country"][city]] for city in (large, small))
    return known and bool(columns["population"][large] >= CLEAR * columns["population"][small])


def _join(names: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _capitalize(goal: str) -> str:
    return goal[0].upper() + goal[1:]
