"""Types of embedded questions whose answer is on a page: the questions of each type as arrays, and their wording.

`aggregate_questions` has the types whose answer must be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.search.corpus.pages import element_id
from agentgym_envs.search.corpus.values import accepted
from agentgym_envs.search.questions import queries
from agentgym_envs.search.questions import question_templates as templates
from agentgym_envs.search.questions.fact_arrays import (
    ATTRIBUTES,
    CLEAR,
    Graph,
    Ints,
    Locations,
    evened,
    hashed,
    split_of,
)

AIRPORT, ELEMENT = tuple(templates.AIRPORT), tuple(templates.ELEMENT)
Page = tuple[str, str]


class QuestionRows(NamedTuple):
    """Questions as columns: the entities of each (one column per entity), its attribute, and its split or -1."""

    subjects: Ints
    attribute: Ints
    split: Ints


class Question(NamedTuple):
    """A question in words, its answers, and the pages of its hops with the queries that find them."""

    goal: str
    answers: list[str]
    pages: list[Page]


class QuestionType(NamedTuple):
    """A type of question: `rows` lists all questions, and `ask` puts one into words."""

    rows: Callable[[Graph], QuestionRows]
    ask: Callable[[Graph, Sequence[int], int, Wording], Question]


class Wording:
    """Chooses phrases by a number, so that a question always has the same wording."""

    def __init__(self, number: int) -> None:
        """Take a number, which should be a hash: each choice uses up a part of it."""
        self._left = number

    def one(self, options: Sequence[str]) -> str:
        """Choose a phrase."""
        self._left, index = divmod(self._left, len(options))
        return options[index]

    def question(self, phrases: tuple[Sequence[str], Sequence[str]], of: str, *, changes: bool = False) -> str:
        """Word a question about `of`: a noun phrase in a frame, or a whole question."""
        nouns, whole = phrases
        frames = templates.FRAMES_2015 if changes else templates.FRAMES
        form = self.one(["noun"] * len(frames) + ["whole"] * len(whole))
        return self.one(whole).format(of) if form == "whole" else self.one(frames).format(self.one(nouns).format(of))


# --- attributes of one thing


def countries_alone(graph: Graph) -> QuestionRows:
    """List every country with each of its attributes."""
    return _times_attributes(graph, np.flatnonzero(graph.usable), lambda country: country)


def ask_country(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of a named country."""
    country = subjects[0]
    return _of_country(graph, country, attribute, graph.country(country), [], wording)


def airports_alone(graph: Graph) -> QuestionRows:
    """List every airport with each of its own attributes."""
    usable = graph.airports.usable
    bits = np.array(graph.facts.airports["ask"])[usable, None] >> np.arange(len(AIRPORT))
    nth, attribute = np.nonzero(bits & 1)
    subjects = usable[nth]
    return QuestionRows(subjects[:, None], attribute, graph.split[graph.airports.country[subjects]])


def ask_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of a named airport."""
    airport, name = subjects[0], AIRPORT[attribute]
    goal = wording.question(templates.AIRPORT[name], graph.airport(airport))
    return Question(
        goal,
        accepted(name, graph.facts.airports[name][airport]),
        [graph.airport_page(airport, queries.QUERY_AIRPORT[name])],
    )


def elements_alone(graph: Graph) -> QuestionRows:
    """List every element with each attribute; radioactive ones have no atomic weight."""
    elements = graph.facts.elements
    weight = ELEMENT.index("weight")
    rows = [(i, n) for i, decays in enumerate(elements["radioactive"]) for n in range(4) if n != weight or not decays]
    subjects, attribute = np.array(rows).T
    return QuestionRows(subjects[:, None], attribute, np.array(elements["split"])[subjects])


def ask_element(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of a named element."""
    element, name, elements = subjects[0], ELEMENT[attribute], graph.facts.elements
    title = elements["name"][element]
    value = element + 1 if name == "number" else elements[name][element]
    page = element_id(graph.facts, element), f"{title} {queries.QUERY_ELEMENT[name]}"
    return Question(wording.question(templates.ELEMENT[name], title.lower()), accepted(name, value), [page])


# --- attributes of a country that is one or two hops away


def neighbours(graph: Graph) -> QuestionRows:
    """List every country with the attributes of the neighbour behind its longest border."""
    return _times_attributes(graph, np.flatnonzero(graph.neighbour >= 0), graph.following)


def ask_neighbour(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of a neighbour."""
    country = subjects[0]
    return _of_neighbour(graph, country, attribute, graph.country(country), [], wording)


def from_locations(select: Callable[[Graph], Locations], steps: int, most: int) -> Callable[[Graph], QuestionRows]:
    """Return a function that lists cities or airports, each with up to `most` attributes of a country.

    The country is that of the location if `steps` is 1, and the neighbour of that country if `steps` is 2.
    """

    def rows(graph: Graph) -> QuestionRows:
        locations = select(graph)

        def target(indices: Ints) -> Ints:
            countries = locations.country[indices]
            return countries if steps == 1 else graph.following(countries)

        limited = locations.limited()
        return _times_attributes(graph, limited[target(limited) >= 0], target, locations.country, most)

    return rows


def ask_from_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of a city's country."""
    city, country = subjects[0], graph.cities.country[subjects[0]]
    where = country_of_city(graph, city, wording)
    return _of_country(graph, country, attribute, where, [graph.city_page(city)], wording)


def ask_from_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of an airport's country."""
    airport, country = subjects[0], graph.airports.country[subjects[0]]
    where = country_of_airport(graph, airport, wording)
    return _of_country(graph, country, attribute, where, [graph.airport_page(airport)], wording)


def ask_beyond_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of the neighbour of a city's country."""
    city, country = subjects[0], graph.cities.country[subjects[0]]
    where = country_of_city(graph, city, wording)
    return _of_neighbour(graph, country, attribute, where, [graph.city_page(city)], wording)


def ask_beyond_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask for an attribute of the neighbour of an airport's country."""
    airport, country = subjects[0], graph.airports.country[subjects[0]]
    where = country_of_airport(graph, airport, wording)
    return _of_neighbour(graph, country, attribute, where, [graph.airport_page(airport)], wording)


# --- attributes of a country that is selected by a comparison or an order


COMPARED = tuple(templates.MORE)


def compared_countries(graph: Graph) -> QuestionRows:
    """List pairs of countries and a quantity; the question is about the neighbour of the country with more."""
    first, second, by = _pairs(graph, 9_000, 11, np.flatnonzero(graph.neighbour >= 0))
    more, clear = _more(graph, first, second, by)
    target = graph.following(more)
    attribute = _one_attribute(graph, target, 12)
    others = [graph.split[first], graph.split[second]]
    split = np.where(clear, split_of(graph.split[target], *others), -1)
    return _kept(np.stack([first, second, by], 1), attribute, split, target)


def ask_compared_countries(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both countries and of a neighbour."""
    first, second, by = subjects
    more = first if _larger(graph, COMPARED[by], first, second) else second
    phrase = wording.one(templates.COMPARED_COUNTRIES)
    where = phrase.format(
        more=wording.one(templates.MORE[COMPARED[by]]), a=graph.country(first), b=graph.country(second)
    )
    pages = [graph.country_page(country, COMPARED[by]) for country in (first, second)]
    return _of_neighbour(graph, more, attribute, where, pages, wording, known=True)


def compared_by_city(graph: Graph) -> QuestionRows:
    """List pairs of cities whose countries are compared."""
    one, other, by = _pairs(graph, 30_000, 21, np.flatnonzero(graph.cities.count))
    more, clear = _more(graph, one, other, by)
    rows = np.arange(len(one))
    cities = [graph.cities.pick(country, hashed(rows, salt)) for country, salt in ((one, 22), (other, 23))]
    attribute = _one_attribute(graph, more, 24)
    differs = np.array([ATTRIBUTES.index(name) for name in COMPARED])[by] != attribute
    split = np.where(clear & differs, split_of(graph.split[more], graph.split[one], graph.split[other]), -1)
    return _kept(np.stack([*cities, by], 1), attribute, split, more)


def ask_compared_by_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both cities and both countries."""
    first, second, by = subjects
    one, other = (int(graph.cities.country[city]) for city in (first, second))
    more = one if _larger(graph, COMPARED[by], one, other) else other
    phrase = wording.one(templates.COMPARED_CITIES)
    where = phrase.format(
        more=wording.one(templates.MORE[COMPARED[by]]),
        a=_city(graph, first, wording),
        b=_city(graph, second, wording),
    )
    pages = [graph.city_page(first), graph.city_page(second)]
    pages += [graph.country_page(country, COMPARED[by]) for country in (one, other)]
    return _of_country(graph, more, attribute, where, pages, wording, known=True)


def compared_airports(graph: Graph) -> QuestionRows:
    """List pairs of airports; the question is about the country of the higher one."""
    pairs = _from_countries(graph.airports, 15_000, 31, 2)
    return _ranked(graph, graph.airports, pairs, rank=0, salt=33, gap=50)


def ask_compared_airports(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of both airports and one country."""
    return _ask_ranked(graph, graph.airports, subjects, attribute, wording, 0)


def ordered_cities(graph: Graph) -> QuestionRows:
    """List triples of cities; the question is about the country of the second most populous one."""
    return _ranked(graph, graph.cities, _from_countries(graph.cities, 35_000, 41, 3), rank=1, salt=44, gap=0)


def ask_ordered_cities(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of three cities and one country."""
    return _ask_ranked(graph, graph.cities, subjects, attribute, wording, 1)


def ordered_airports(graph: Graph) -> QuestionRows:
    """List triples of airports; the question is about the country of the second highest one."""
    return _ranked(graph, graph.airports, _from_countries(graph.airports, 35_000, 51, 3), rank=1, salt=54, gap=50)


def ask_ordered_airports(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
    """Ask a question that needs the pages of three airports and one country."""
    return _ask_ranked(graph, graph.airports, subjects, attribute, wording, 1)


# --- helpers


def _times_attributes(
    graph: Graph,
    subjects: Ints,
    target: Callable[[Ints], Ints],
    country: Ints | None = None,
    most: int = len(ATTRIBUTES),
) -> QuestionRows:
    """Combine each subject with up to `most` attributes of the country that `target` returns for it."""
    targets = target(subjects)
    count = np.minimum(graph.attribute_count[targets], most)
    rows = np.repeat(np.arange(len(subjects)), count)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    turned = (nth + (hashed(subjects, 3) % np.uint64(64)).astype(np.int64)[rows]) % graph.attribute_count[targets[rows]]
    nth = nth if most >= len(ATTRIBUTES) else turned
    attribute = graph.attribute_table[targets[rows], nth]
    first = graph.split[subjects if country is None else country[subjects]]
    split = split_of(graph.split[targets], first)[rows]
    return _kept(subjects[rows][:, None], attribute, split, targets[rows])


def _kept(subjects: Ints, attribute: Ints, split: Ints, last: Ints) -> QuestionRows:
    """Drop questions without a split, and surplus questions whose answers belong to the same country."""
    split = evened(split, last)
    keep = split >= 0
    return QuestionRows(subjects[keep], attribute[keep], split[keep])


def _one_attribute(graph: Graph, countries: Ints, salt: int) -> Ints:
    """Choose an attribute for each country."""
    numbers = hashed(np.arange(len(countries)), salt) % graph.attribute_count[countries].astype(np.uint64)
    return graph.attribute_table[countries, numbers.astype(np.int64)]


def _pairs(graph: Graph, count: int, salt: int, countries: Ints) -> tuple[Ints, Ints, Ints]:
    """Choose pairs of countries, and the quantity by which they are compared."""
    numbers = [hashed(np.arange(count), salt * 100 + n) for n in range(3)]
    one, other = (countries[(n % np.uint64(len(countries))).astype(np.int64)] for n in numbers[:2])
    return one, other, (numbers[2] % np.uint64(len(COMPARED))).astype(np.int64)


def _more(graph: Graph, one: Ints, other: Ints, by: Ints) -> tuple[Ints, Any]:
    """Return which of two countries has more, and if the difference is clear."""
    table = np.stack([graph.quantity(name) for name in COMPARED])
    a, b = table[by, one], table[by, other]
    clear = np.maximum(a, b) >= CLEAR * np.minimum(a, b)  # false where one is unknown
    return np.where(a > b, one, other), clear & (one != other)


def _larger(graph: Graph, name: str, one: int, other: int) -> bool:
    values = graph.facts.countries[name]
    return bool(values[one] > values[other])


def _from_countries(locations: Locations, count: int, salt: int, width: int) -> Ints:
    """Choose rows of locations whose countries are drawn uniformly."""
    countries, rows = np.flatnonzero(locations.count), np.arange(count)
    columns = []
    for column in range(width):
        drawn = hashed(rows, salt * 100 + column) % np.uint64(len(countries))
        columns.append(locations.pick(countries[drawn.astype(np.int64)], hashed(rows, salt * 100 + 50 + column)))
    return np.stack(columns, 1)


def _ranked(graph: Graph, locations: Locations, rows: Ints, rank: int, salt: int, gap: float) -> QuestionRows:
    """List questions about the country of the location with rank `rank` in its row, from the largest quantity down."""
    values = locations.quantity[rows]
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, 1)
    clear = np.all((ranked[:, :-1] >= CLEAR * ranked[:, 1:]) & (ranked[:, :-1] - ranked[:, 1:] >= gap), axis=1)
    countries = locations.country[rows]
    apart = np.all(np.diff(np.sort(countries, axis=1), axis=1) > 0, axis=1) & (ranked[:, -1] > 0)
    winner = countries[np.arange(len(rows)), order[:, rank]]
    split = split_of(graph.split[winner], *graph.split[countries].T)
    return _kept(rows, _one_attribute(graph, winner, salt), np.where(clear & apart, split, -1), winner)


def _ask_ranked(
    graph: Graph, locations: Locations, subjects: Sequence[int], attribute: int, wording: Wording, rank: int
) -> Question:
    city = locations is graph.cities
    chosen = sorted(subjects, key=lambda index: -locations.quantity[index])[rank]
    options = templates.MIDDLE_CITY if city else templates.MIDDLE_AIRPORT if rank else templates.HIGHER_AIRPORT
    names = [graph.facts.cities["name"][index] if city else graph.airport(index) for index in subjects]
    pages = [graph.city_page(index) if city else graph.airport_page(index, "elevation") for index in subjects]
    where = wording.one(options).format(**dict(zip("abc", names, strict=False)))
    return _of_country(graph, int(locations.country[chosen]), attribute, where, pages, wording)


def _of_country(
    graph: Graph, country: int, attribute: int, where: str, pages: list[Page], wording: Wording, *, known: bool = False
) -> Question:
    """Ask for an attribute of a country that is described as `where`.

    `pages` are those that identify the country. If `known`, they already include the page of the country.
    """
    name = ATTRIBUTES[attribute]
    page = graph.country_page(country, name)
    goal = wording.question(templates.COUNTRY[name], where, changes=name in templates.CHANGES)
    own = [] if known else [page]
    return Question(goal, accepted(name, graph.facts.countries[name][country]), [*pages, *own])


def _of_neighbour(
    graph: Graph, country: int, attribute: int, where: str, pages: list[Page], wording: Wording, *, known: bool = False
) -> Question:
    """Ask for an attribute of the neighbour behind the longest border of a country that is described as `where`."""
    page = graph.country_page(country, "borders")
    beyond = wording.one(templates.NEIGHBOUR).format(where)
    pages = pages if known else [*pages, page]
    return _of_country(graph, int(graph.neighbour[country]), attribute, beyond, pages, wording)


def _city(graph: Graph, city: int, wording: Wording) -> str:
    return wording.one(templates.CITY).format(graph.facts.cities["name"][city])


def country_of_city(graph: Graph, city: int, wording: Wording) -> str:
    """Describe a country by one of its cities."""
    return wording.one(templates.CITY_COUNTRY).format(_city(graph, city, wording))


def country_of_airport(graph: Graph, airport: int, wording: Wording) -> str:
    """Describe a country by one of its airports."""
    return wording.one(templates.AIRPORT_COUNTRY).format(graph.airport(airport))


FACT_KINDS: dict[str, tuple[QuestionType, ...]] = {
    "1hop-country": (QuestionType(countries_alone, ask_country),),
    "1hop-airport": (QuestionType(airports_alone, ask_airport),),
    "1hop-element": (QuestionType(elements_alone, ask_element),),
    "2hop-border": (QuestionType(neighbours, ask_neighbour),),
    "2hop-airport": (QuestionType(from_locations(lambda graph: graph.airports, 1, 99), ask_from_airport),),
    "2hop-city": (QuestionType(from_locations(lambda graph: graph.cities, 1, 99), ask_from_city),),
    "3hop-airport": (QuestionType(from_locations(lambda graph: graph.airports, 2, 6), ask_beyond_airport),),
    "3hop-city": (QuestionType(from_locations(lambda graph: graph.cities, 2, 2), ask_beyond_city),),
    "compare": (
        QuestionType(compared_countries, ask_compared_countries),
        QuestionType(compared_by_city, ask_compared_by_city),
        QuestionType(compared_airports, ask_compared_airports),
    ),
    "order": (
        QuestionType(ordered_cities, ask_ordered_cities),
        QuestionType(ordered_airports, ask_ordered_airports),
    ),
}
"""Kinds of questions (the task groups) whose answer is on a page, each with its types."""
