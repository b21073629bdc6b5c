"""Kinds of embedded questions whose answers stand on no page: they are counted or added, or two are told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.search.corpus.values import UNITS, quantities, quantity
from agentgym_envs.search.questions import question_templates
from agentgym_envs.search.questions.fact_arrays import CLEAR, NONE, TEST, TRAIN, VALIDATION, Graph, Ints, Places, hashed
from agentgym_envs.search.questions.question_types import Asked, Page, Rows, Wording, in_city

SUMMED, GAPS = tuple(question_templates.COUNTRY_SUM), tuple(question_templates.COUNTRY_GAP)
CLUES = tuple(question_templates.CLUE)
PEOPLE = UNITS["population"]


def city_sums(graph: Graph) -> Rows:
    """Four cities, whose inhabitants are added up."""
    rows, cities = _cities(graph, 3_000, 61)
    return _rows(cities, np.zeros(len(rows), int), _split_of_all(graph, rows))


def ask_city_sum(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """All four have to be looked up."""
    columns = graph.facts.cities
    names = dict(zip("abcd", (columns["name"][place] for place in subjects), strict=True))
    total = sum(columns["population"][place] for place in subjects)
    pages = [graph.city_page(place) for place in subjects]
    return Asked(wording.one(question_templates.CITY_SUM).format(**names), quantities(total, PEOPLE), pages)


def country_sums(graph: Graph) -> Rows:
    """Four countries, whose areas or people are added up."""
    fine = np.all([_whole(graph, name) for name in SUMMED], axis=0)
    rows = _drawn(graph, fine.astype(int), 600, 71, 4)
    attribute = (hashed(np.arange(len(rows)), 72) % np.uint64(len(SUMMED))).astype(np.int64)
    return _rows(rows, attribute, _split_of_all(graph, rows))


def ask_country_sum(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """All four have to be looked up."""
    name = SUMMED[attribute]
    total = sum(graph.facts.countries[name][place] for place in subjects)
    goal = wording.one(question_templates.COUNTRY_SUM[name]).format(**_countries(graph, subjects))
    return Asked(goal, quantities(total, UNITS[name]), [graph.country_page(place, name) for place in subjects])


def neighbour_counts(graph: Graph) -> Rows:
    """Two or three countries, whose neighbours are counted: a third one of -1 is none."""
    fine = np.array([_told_borders(graph, place) for place in range(len(graph.asked))])
    rows = _drawn(graph, fine.astype(int), 4_000, 81, 3)
    rows = np.where((np.arange(len(rows)) % 2 == 0)[:, None] & (np.arange(3) == 2), -1, rows)
    counts = np.array([len(_around(graph, row[row >= 0])) for row in rows])
    return _rows(rows, np.zeros(len(rows), int), np.where(counts >= 3, _split_of_all(graph, rows), NONE))


def ask_neighbour_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """All have to be looked up."""
    places = [place for place in subjects if place >= 0]
    names = [graph.country(place) for place in places]
    goal = wording.one(question_templates.NEIGHBOUR_COUNT).format(all=_listed(names), any=_listed(names, "or"))
    answers = quantities(len(_around(graph, places)), ("countries",))
    return Asked(goal, answers, [graph.country_page(place, "borders") for place in places])


def city_counts(graph: Graph) -> Rows:
    """A country told by a clue, and five cities, of which as likely none as one, or all, lie in it."""
    clues: Ints = np.array([len(clues) for clues in graph.clues])
    countries, cities, split = _some_inside(graph, graph.cities, 4_000, 121, clues > 0)
    nth = (hashed(np.arange(len(cities)), 127) % clues[countries].astype(np.uint64)).astype(int)
    attribute = np.array([graph.clues[country][place] for country, place in zip(countries, nth, strict=True)])
    return _rows(np.column_stack([countries, cities]), attribute, split)


def ask_city_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """The country and all five have to be looked up."""
    (country, *cities), clue = subjects, CLUES[attribute]
    where = wording.one(question_templates.CLUE[clue]).format(graph.facts.countries[clue][country][0])
    names = _listed([graph.facts.cities["name"][place] for place in cities])
    pages = [graph.clue_page(country, clue), *(graph.city_page(place) for place in cities)]
    pages = list({page[0]: page for page in pages}.values())  # the capital may be one of the five
    inside = sum(graph.facts.cities["country"][place] == country for place in cities)
    return Asked(wording.one(question_templates.COUNT_IN).format(where=where, all=names), quantities(inside), pages)


def airport_counts(graph: Graph) -> Rows:
    """A city, and five airports, of which as likely none as one, or all, lie in its country."""
    countries, airports, split = _some_inside(graph, graph.airports, 4_000, 131, graph.cities.count > 0)
    cities = graph.cities.one_of(countries, hashed(np.arange(len(countries)), 137))
    return _rows(np.column_stack([cities, airports]), np.zeros(len(cities), int), split)


def ask_airport_count(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """The city and all five airports have to be looked up."""
    city, *airports = subjects
    names = _listed([graph.airport(place) for place in airports])
    goal = wording.one(question_templates.COUNT_IN).format(where=in_city(graph, city, wording), all=names)
    inside = sum(int(graph.airports.country[place] == graph.cities.country[city]) for place in airports)
    pages = [graph.city_page(city), *(graph.airport_page(place) for place in airports)]
    return Asked(goal, quantities(inside), pages)


def airports_above(graph: Graph) -> Rows:
    """Five airports, of which as likely none as one, or all, lie above a height in feet (the attribute)."""
    rows = _drawn(graph, graph.airports.count, 4_000, 141, 5)
    numbers = np.arange(len(rows))
    airports = np.stack([graph.airports.one_of(rows[:, n], hashed(numbers, 142 + n)) for n in range(5)], 1)
    feet = np.sort(graph.airports.quantity[airports], axis=1)[:, ::-1]
    bounds = np.column_stack([feet[:, 0] + 2_000, feet, np.maximum(0, feet[:, 4] - 2_000)])
    above = (hashed(numbers, 149) % np.uint64(6)).astype(int)
    limit = (bounds[numbers, above] + bounds[numbers, above + 1]) // 200 * 100
    clear = (np.min(np.abs(feet - limit[:, None]), 1) >= 30) & (feet[:, 4] > 0) & (limit > 0)
    return _rows(airports, limit.astype(int), np.where(clear, _split_of_all(graph, rows), NONE))


def ask_airports_above(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """All five have to be looked up."""
    names = _listed([graph.airport(place) for place in subjects])
    goal = wording.one(question_templates.COUNT_ABOVE).format(feet=quantity(attribute), all=names)
    above = sum(graph.facts.airports["elevation"][place] > attribute for place in subjects)
    return Asked(goal, quantities(above), [graph.airport_page(place, "elevation") for place in subjects])


def airport_gaps(graph: Graph) -> Rows:
    """Two airports of different countries, the higher one first."""
    return _gaps(graph, graph.airports, 3_000, 91, 100)


def ask_airport_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both have to be looked up."""
    high, low = (graph.facts.airports["elevation"][place] for place in subjects)
    goal = wording.one(question_templates.HIGHER_BY).format(a=graph.airport(subjects[0]), b=graph.airport(subjects[1]))
    pages = [graph.airport_page(place, "elevation") for place in subjects]
    return Asked(_capital(goal), quantities(high - low, UNITS["elevation"]), pages)


def city_gaps(graph: Graph) -> Rows:
    """Two cities of different countries, the larger one first."""
    return _gaps(graph, graph.cities, 4_500, 101, 1)


def ask_city_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both have to be looked up."""
    columns = graph.facts.cities
    names = dict(zip("ab", (columns["name"][place] for place in subjects), strict=True))
    large, small = (columns["population"][place] for place in subjects)
    pages = [graph.city_page(place) for place in subjects]
    return Asked(
        _capital(wording.one(question_templates.MORE_PEOPLE).format(**names)), quantities(large - small, PEOPLE), pages
    )


def country_gaps(graph: Graph) -> Rows:
    """Two cities, that whose country has more of something first."""
    fine = np.all([_whole(graph, name) for name in GAPS], axis=0) & (graph.cities.count > 0)
    rows = _drawn(graph, fine.astype(int), 4_500, 111, 2)
    numbers = np.arange(len(rows))
    attribute = (hashed(numbers, 112) % np.uint64(len(GAPS))).astype(np.int64)
    values = np.stack([graph.quantity(name) for name in GAPS])[attribute[:, None], rows]
    cities = np.stack([graph.cities.one_of(rows[:, n], hashed(numbers, 113 + n)) for n in range(2)], 1)
    cities = np.where((values[:, 0] > values[:, 1])[:, None], cities, cities[:, ::-1])
    clear = np.max(values, 1) >= CLEAR * np.min(values, 1)
    return _rows(cities, attribute, np.where(clear, _split_of_all(graph, rows), NONE))


def ask_country_gap(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both cities and both countries have to be looked up."""
    name, countries = GAPS[attribute], [int(graph.cities.country[place]) for place in subjects]
    more, less = (graph.facts.countries[name][country] for country in countries)
    where = dict(zip("ab", (in_city(graph, place, wording) for place in subjects), strict=True))
    pages = [*(graph.city_page(place) for place in subjects), *(graph.country_page(c, name) for c in countries)]
    return Asked(
        wording.one(question_templates.COUNTRY_GAP[name]).format(**where), quantities(more - less, UNITS[name]), pages
    )


def twins(graph: Graph) -> Rows:
    """Cities that share their name with one in another country, told by a clue to theirs."""
    columns = graph.facts.cities
    named = np.flatnonzero(np.array(columns["use"]) == 2)
    country = np.array(columns["country"])
    found = [(place, clues[place % len(clues)]) for place in named.tolist() if (clues := graph.clues[country[place]])]
    places, clues = np.array(found).T
    return _rows(places[:, None], clues, graph.split[country[places]])


def ask_twin(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """The country has to be found by the clue, and then the city in it."""
    place, clue, columns = subjects[0], CLUES[attribute], graph.facts.cities
    goal = wording.one(question_templates.TWIN).format(
        name=columns["name"][place], where=_where(graph, place, clue, wording)
    )
    return Asked(goal, quantities(columns["population"][place], PEOPLE), _twin_pages(graph, place, clue))


def twins_apart(graph: Graph) -> Rows:
    """Pairs of cities of one name, the larger one first, each told by a clue to its country."""
    columns = graph.facts.cities
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for place in np.flatnonzero(np.array(columns["use"]) == 2).tolist():
        groups[columns["name"][place]].append(place)
    pairs = [pair for places in groups.values() for pair in permutations(places, 2) if _tells_apart(graph, *pair)]
    country = columns["country"]
    found = [
        (large, small, one * len(CLUES) + other)
        for large, small in pairs
        for one, other in product(graph.clues[country[large]], graph.clues[country[small]])
    ]
    rows = np.array(found)
    return _rows(rows[:, :2], rows[:, 2], _split_of_all(graph, np.array(country)[rows[:, :2]]))


def ask_twins_apart(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Two countries and two cities have to be looked up."""
    columns = graph.facts.cities
    large, small = subjects
    clues = [CLUES[number] for number in divmod(attribute, len(CLUES))]
    where = [_where(graph, place, clue, wording) for place, clue in zip(subjects, clues, strict=True)]
    goal = wording.one(question_templates.TWINS_APART).format(name=columns["name"][large], a=where[0], b=where[1])
    gap = columns["population"][large] - columns["population"][small]
    return Asked(
        goal, quantities(gap, PEOPLE), _twin_pages(graph, large, clues[0]) + _twin_pages(graph, small, clues[1])
    )


# --- what these share


def _drawn(graph: Graph, weights: Ints, count: int, salt: int, width: int) -> Ints:
    """Rows of different countries, of those with a weight above 0, drawn evenly."""
    countries = np.flatnonzero(weights)
    numbers = [hashed(np.arange(count), salt * 100 + n) % np.uint64(len(countries)) for n in range(width)]
    rows = countries[np.stack(numbers, 1).astype(np.int64)]
    return rows[np.all(np.diff(np.sort(rows, axis=1), axis=1) > 0, axis=1)]


def _split_of_all(graph: Graph, countries: Ints) -> Ints:
    """Test if an entity is of test, else validation if one is, for the answer comes from all of them."""
    splits = np.where(countries >= 0, graph.split[countries], TRAIN)
    return np.select([np.any(splits == TEST, 1), np.any(splits == VALIDATION, 1)], [TEST, VALIDATION], TRAIN)


def _rows(subjects: Ints, attribute: Ints, split: Ints) -> Rows:
    keep = split >= 0
    return Rows(subjects[keep], attribute[keep], split[keep])


def _gaps(graph: Graph, places: Places, count: int, salt: int, least: int) -> Rows:
    rows = _drawn(graph, places.count, count, salt, 2)
    chosen = np.stack(
        [places.one_of(rows[:, n], hashed(np.arange(len(rows)), salt * 100 + 50 + n)) for n in range(2)], 1
    )
    values = places.quantity[chosen]
    chosen = np.where((values[:, 0] > values[:, 1])[:, None], chosen, chosen[:, ::-1])
    low, high = np.min(values, 1), np.max(values, 1)
    clear = (low > 0) & (high >= CLEAR * low) & (high - low >= least)
    return _rows(chosen, np.zeros(len(rows), int), np.where(clear, _split_of_all(graph, rows), NONE))


def _some_inside(
    graph: Graph, places: Places, count: int, salt: int, fine: NDArray[np.bool_]
) -> tuple[Ints, Ints, Ints]:
    """Countries, for each five places of which as likely none as one, or all, lie in it, and the splits."""
    rows = _drawn(graph, places.count, count, salt, 6)
    rows = rows[(places.count[rows[:, 0]] >= 12) & fine[rows[:, 0]]]
    numbers = np.arange(len(rows))
    inside = (hashed(numbers, salt * 100 + 90) % np.uint64(6)).astype(int)
    where = np.where(np.arange(5) < inside[:, None], rows[:, :1], rows[:, 1:])
    chosen = np.stack([places.one_of(where[:, n], hashed(numbers, salt * 100 + 50 + n)) for n in range(5)], 1)
    mixed = np.argsort(np.stack([hashed(numbers, salt * 100 + 70 + n) for n in range(5)], 1), axis=1)
    apart = np.all(np.diff(np.sort(chosen, axis=1), axis=1) > 0, axis=1)
    split = np.where(apart, _split_of_all(graph, np.column_stack([rows[:, 0], where])), NONE)
    return rows[:, 0], np.take_along_axis(chosen, mixed, 1), split


def _cities(graph: Graph, count: int, salt: int) -> tuple[Ints, Ints]:
    """Rows of four countries, and of a city in each."""
    rows = _drawn(graph, graph.cities.count, count, salt, 4)
    numbers = np.arange(len(rows))
    return rows, np.stack([graph.cities.one_of(rows[:, n], hashed(numbers, salt * 100 + 50 + n)) for n in range(4)], 1)


def _whole(graph: Graph, name: str) -> NDArray[np.bool_]:
    """The countries that have a whole number of something."""
    values = graph.quantity(name)
    whole: NDArray[np.bool_] = values == np.floor(values)  # false where it is unknown
    return whole


def _countries(graph: Graph, places: Sequence[int]) -> dict[str, str]:
    return dict(zip("abcd", (graph.country(place) for place in places), strict=False))


def _told_borders(graph: Graph, place: int) -> bool:
    """Whether a country has neighbours, all of them undisputed."""
    others = [other for other, _ in graph.facts.countries["borders"][place]]
    france = graph.facts.countries["iso"].index("FR")  # counted with French Guiana or without?
    return bool(
        graph.asked[place] and others and all(graph.asked[o] for o in others) and france not in (place, *others)
    )


def _around(graph: Graph, places: Sequence[int]) -> set[int]:
    """The countries that border on some, without these."""
    return {other for place in places for other, _ in graph.facts.countries["borders"][place]} - set(map(int, places))


def _where(graph: Graph, place: int, clue: str, wording: Wording) -> str:
    value = graph.facts.countries[clue][graph.facts.cities["country"][place]][0]
    return wording.one(question_templates.CLUE[clue]).format(value)


def _twin_pages(graph: Graph, place: int, clue: str) -> list[Page]:
    country = graph.facts.cities["country"][place]
    return [graph.clue_page(country, clue), graph.city_page(place, country)]


def _tells_apart(graph: Graph, large: int, small: int) -> bool:
    columns = graph.facts.cities
    known = all(graph.clues[columns["country"][place]] for place in (large, small))
    return known and bool(columns["population"][large] >= CLEAR * columns["population"][small])


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _capital(goal: str) -> str:
    return goal[0].upper() + goal[1:]
