"""The kinds of embedded questions: for each, which questions there are (in arrays), and how one of them is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.search.corpus.pages import element_id
from agentgym_envs.search.corpus.values import accepted
from agentgym_envs.search.questions import queries, question_templates
from agentgym_envs.search.questions.fact_arrays import ATTRIBUTES, CLEAR, Graph, Ints, Places, evened, hashed, split_of

AIRPORT, ELEMENT = tuple(question_templates.AIRPORT), tuple(question_templates.ELEMENT)
Page = tuple[str, str]


class Rows(NamedTuple):
    """Questions as columns: what each is about (a column an entity), which attribute, and its split or -1."""

    subjects: Ints
    attribute: Ints
    split: Ints


class Asked(NamedTuple):
    """A question in words; `pages` are those of its hops with the queries that find them."""

    goal: str
    answers: list[str]
    pages: list[Page]


class Form(NamedTuple):
    """A family of questions: all that there are, and how one is worded."""

    rows: Callable[[Graph], Rows]
    ask: Callable[[Graph, Sequence[int], int, Wording], Asked]


class Wording:
    """Picks phrases by a number, so that a question is always worded in the same way."""

    def __init__(self, number: int) -> None:
        """`number` should be a hash: its lowest part picks first."""
        self._left = number

    def one(self, options: Sequence[str]) -> str:
        """One of them."""
        self._left, place = divmod(self._left, len(options))
        return options[place]

    def question(self, phrased: tuple[Sequence[str], Sequence[str]], of: str, *, changes: bool = False) -> str:
        """A noun phrase in a frame, or a question of its own, about `of`."""
        nouns, whole = phrased
        frames = question_templates.FRAMES_2015 if changes else question_templates.FRAMES
        form = self.one(["noun"] * len(frames) + ["whole"] * len(whole))
        return self.one(whole).format(of) if form == "whole" else self.one(frames).format(self.one(nouns).format(of))


# --- attributes of one thing


def countries_alone(graph: Graph) -> Rows:
    """Every country with each of its attributes."""
    return _times_attributes(graph, np.flatnonzero(graph.asked), lambda country: country)


def ask_country(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of a country that is named."""
    place = subjects[0]
    return _of_country(graph, place, attribute, graph.country(place), [], wording)


def airports_alone(graph: Graph) -> Rows:
    """Every airport with each of its own attributes."""
    usable = graph.airports.usable
    bits = np.array(graph.facts.airports["ask"])[usable, None] >> np.arange(len(AIRPORT))
    nth, attribute = np.nonzero(bits & 1)
    subjects = usable[nth]
    return Rows(subjects[:, None], attribute, graph.split[graph.airports.country[subjects]])


def ask_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of an airport that is named."""
    place, name = subjects[0], AIRPORT[attribute]
    goal = wording.question(question_templates.AIRPORT[name], graph.airport(place))
    return Asked(
        goal,
        accepted(name, graph.facts.airports[name][place]),
        [graph.airport_page(place, queries.QUERY_AIRPORT[name])],
    )


def elements_alone(graph: Graph) -> Rows:
    """Every element with each attribute; those that decay have no atomic weight."""
    elements = graph.facts.elements
    weight = ELEMENT.index("weight")
    rows = [(i, n) for i, decays in enumerate(elements["radioactive"]) for n in range(4) if n != weight or not decays]
    subjects, attribute = np.array(rows).T
    return Rows(subjects[:, None], attribute, np.array(elements["split"])[subjects])


def ask_element(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of an element that is named."""
    place, name, elements = subjects[0], ELEMENT[attribute], graph.facts.elements
    title = elements["name"][place]
    value = place + 1 if name == "number" else elements[name][place]
    page = element_id(graph.facts, place), f"{title} {queries.QUERY_ELEMENT[name]}"
    return Asked(wording.question(question_templates.ELEMENT[name], title.lower()), accepted(name, value), [page])


# --- attributes of a country to which one or two steps lead


def neighbours(graph: Graph) -> Rows:
    """Every country with the attributes of the neighbour behind its longest border."""
    return _times_attributes(graph, np.flatnonzero(graph.neighbour >= 0), graph.following)


def ask_neighbour(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of a neighbour."""
    place = subjects[0]
    return _of_neighbour(graph, place, attribute, graph.country(place), [], wording)


def from_places(pick: Callable[[Graph], Places], steps: int, most: int) -> Callable[[Graph], Rows]:
    """Cities or airports with at most so many attributes of their country, or of what is `steps` - 1 borders on."""

    def rows(graph: Graph) -> Rows:
        places = pick(graph)

        def target(place: Ints) -> Ints:
            return places.country[place] if steps == 1 else graph.following(places.country[place])

        some = places.some()
        return _times_attributes(graph, some[target(some) >= 0], target, places.country, most)

    return rows


def ask_from_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of a city's country."""
    place, country = subjects[0], graph.cities.country[subjects[0]]
    return _of_country(graph, country, attribute, in_city(graph, place, wording), _to(graph, place, city=True), wording)


def ask_from_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of an airport's country."""
    place, country = subjects[0], graph.airports.country[subjects[0]]
    return _of_country(graph, country, attribute, _at_airport(graph, place, wording), _to(graph, place), wording)


def ask_beyond_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of the neighbour of a city's country."""
    place, country = subjects[0], graph.cities.country[subjects[0]]
    where = in_city(graph, place, wording)
    return _of_neighbour(graph, country, attribute, where, _to(graph, place, city=True), wording)


def ask_beyond_airport(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """An attribute of the neighbour of an airport's country."""
    place, country = subjects[0], graph.airports.country[subjects[0]]
    return _of_neighbour(graph, country, attribute, _at_airport(graph, place, wording), _to(graph, place), wording)


# --- attributes of a country that a comparison or an order picks


COMPARED = tuple(question_templates.MORE)


def compared_countries(graph: Graph) -> Rows:
    """Pairs of countries, by a quantity; asked for is what lies beyond the longest border of the one with more."""
    first, second, by = _pairs(graph, 9_000, 11, np.flatnonzero(graph.neighbour >= 0))
    more, clear = _more(graph, first, second, by)
    target = graph.following(more)
    attribute = _one_attribute(graph, target, 12)
    others = [graph.split[first], graph.split[second]]
    split = np.where(clear, split_of(graph.split[target], *others), -1)
    return _kept(np.stack([first, second, by], 1), attribute, split, target)


def ask_compared_countries(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both countries and the neighbour of one have to be looked up."""
    first, second, by = subjects
    more = first if _larger(graph, COMPARED[by], first, second) else second
    phrase = wording.one(question_templates.COMPARED_COUNTRIES)
    where = phrase.format(
        more=wording.one(question_templates.MORE[COMPARED[by]]), a=graph.country(first), b=graph.country(second)
    )
    pages = [graph.country_page(place, COMPARED[by]) for place in (first, second)]
    return _of_neighbour(graph, more, attribute, where, pages, wording, known=True)


def compared_by_city(graph: Graph) -> Rows:
    """Pairs of cities whose countries are compared."""
    one, other, by = _pairs(graph, 30_000, 21, np.flatnonzero(graph.cities.count))
    more, clear = _more(graph, one, other, by)
    rows = np.arange(len(one))
    cities = [graph.cities.one_of(country, hashed(rows, salt)) for country, salt in ((one, 22), (other, 23))]
    attribute = _one_attribute(graph, more, 24)
    asked = np.array([ATTRIBUTES.index(name) for name in COMPARED])[by] != attribute
    split = np.where(clear & asked, split_of(graph.split[more], graph.split[one], graph.split[other]), -1)
    return _kept(np.stack([*cities, by], 1), attribute, split, more)


def ask_compared_by_city(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both cities and both countries have to be looked up."""
    first, second, by = subjects
    one, other = (int(graph.cities.country[city]) for city in (first, second))
    more = one if _larger(graph, COMPARED[by], one, other) else other
    phrase = wording.one(question_templates.COMPARED_CITIES)
    where = phrase.format(
        more=wording.one(question_templates.MORE[COMPARED[by]]),
        a=_city(graph, first, wording),
        b=_city(graph, second, wording),
    )
    pages = [graph.city_page(first), graph.city_page(second)]
    pages += [graph.country_page(place, COMPARED[by]) for place in (one, other)]
    return _of_country(graph, more, attribute, where, pages, wording, known=True)


def compared_airports(graph: Graph) -> Rows:
    """Pairs of airports, by their elevation."""
    places = _from_countries(graph.airports, 15_000, 31, 2)
    return _picked(graph, graph.airports, places, rank=0, salt=33, gap=50)


def ask_compared_airports(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Both airports and one country have to be looked up."""
    return _ask_picked(graph, graph.airports, subjects, attribute, wording, 0)


def ordered_cities(graph: Graph) -> Rows:
    """Three cities, by their population: asked is about the country of the second."""
    return _picked(graph, graph.cities, _from_countries(graph.cities, 35_000, 41, 3), rank=1, salt=44, gap=0)


def ask_ordered_cities(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Three cities and one country have to be looked up."""
    return _ask_picked(graph, graph.cities, subjects, attribute, wording, 1)


def ordered_airports(graph: Graph) -> Rows:
    """Three airports, by their elevation: asked is about the country of the second."""
    return _picked(graph, graph.airports, _from_countries(graph.airports, 35_000, 51, 3), rank=1, salt=54, gap=50)


def ask_ordered_airports(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Asked:
    """Three airports and one country have to be looked up."""
    return _ask_picked(graph, graph.airports, subjects, attribute, wording, 1)


# --- what these share


def _times_attributes(
    graph: Graph,
    subjects: Ints,
    target: Callable[[Ints], Ints],
    country: Ints | None = None,
    most: int = len(ATTRIBUTES),
) -> Rows:
    """Each subject with at most so many attributes of the country that `target` leads to."""
    targets = target(subjects)
    count = np.minimum(graph.ask_count[targets], most)
    rows = np.repeat(np.arange(len(subjects)), count)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    turned = (nth + (hashed(subjects, 3) % np.uint64(64)).astype(np.int64)[rows]) % graph.ask_count[targets[rows]]
    nth = nth if most >= len(ATTRIBUTES) else turned
    attribute = graph.ask_table[targets[rows], nth]
    first = graph.split[subjects if country is None else country[subjects]]
    split = split_of(graph.split[targets], first)[rows]
    return _kept(subjects[rows][:, None], attribute, split, targets[rows])


def _kept(subjects: Ints, attribute: Ints, split: Ints, last: Ints) -> Rows:
    """Without those that are in no split, or of too many that end in the same country."""
    split = evened(split, last)
    keep = split >= 0
    return Rows(subjects[keep], attribute[keep], split[keep])


def _one_attribute(graph: Graph, countries: Ints, salt: int) -> Ints:
    """For each country one of its attributes."""
    numbers = hashed(np.arange(len(countries)), salt) % graph.ask_count[countries].astype(np.uint64)
    return graph.ask_table[countries, numbers.astype(np.int64)]


def _pairs(graph: Graph, count: int, salt: int, countries: Ints) -> tuple[Ints, Ints, Ints]:
    """Pairs of some countries, and by what they are compared."""
    numbers = [hashed(np.arange(count), salt * 100 + n) for n in range(3)]
    one, other = (countries[(n % np.uint64(len(countries))).astype(np.int64)] for n in numbers[:2])
    return one, other, (numbers[2] % np.uint64(len(COMPARED))).astype(np.int64)


def _more(graph: Graph, one: Ints, other: Ints, by: Ints) -> tuple[Ints, Any]:
    """Which of two countries has more, and whether that is clear."""
    table = np.stack([graph.quantity(name) for name in COMPARED])
    a, b = table[by, one], table[by, other]
    clear = np.maximum(a, b) >= CLEAR * np.minimum(a, b)  # false where one is unknown
    return np.where(a > b, one, other), clear & (one != other)


def _larger(graph: Graph, name: str, one: int, other: int) -> bool:
    values = graph.facts.countries[name]
    return bool(values[one] > values[other])


def _from_countries(places: Places, count: int, salt: int, width: int) -> Ints:
    """Rows of places whose countries are drawn evenly."""
    countries, rows = np.flatnonzero(places.count), np.arange(count)
    columns = []
    for column in range(width):
        drawn = hashed(rows, salt * 100 + column) % np.uint64(len(countries))
        columns.append(places.one_of(countries[drawn.astype(np.int64)], hashed(rows, salt * 100 + 50 + column)))
    return np.stack(columns, 1)


def _picked(graph: Graph, places: Places, rows: Ints, rank: int, salt: int, gap: float) -> Rows:
    """Questions about the country of the place at `rank` of the row, counted from the most."""
    values = places.quantity[rows]
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, 1)
    clear = np.all((ranked[:, :-1] >= CLEAR * ranked[:, 1:]) & (ranked[:, :-1] - ranked[:, 1:] >= gap), axis=1)
    countries = places.country[rows]
    apart = np.all(np.diff(np.sort(countries, axis=1), axis=1) > 0, axis=1) & (ranked[:, -1] > 0)
    winner = countries[np.arange(len(rows)), order[:, rank]]
    split = split_of(graph.split[winner], *graph.split[countries].T)
    return _kept(rows, _one_attribute(graph, winner, salt), np.where(clear & apart, split, -1), winner)


def _ask_picked(
    graph: Graph, places: Places, subjects: Sequence[int], attribute: int, wording: Wording, rank: int
) -> Asked:
    city = places is graph.cities
    chosen = sorted(subjects, key=lambda place: -places.quantity[place])[rank]
    options = (
        question_templates.MIDDLE_CITY
        if city
        else question_templates.MIDDLE_AIRPORT
        if rank
        else question_templates.HIGHER_AIRPORT
    )
    names = [graph.facts.cities["name"][place] if city else graph.airport(place) for place in subjects]
    pages = [graph.city_page(place) if city else graph.airport_page(place, "elevation") for place in subjects]
    where = wording.one(options).format(**dict(zip("abc", names, strict=False)))
    return _of_country(graph, int(places.country[chosen]), attribute, where, pages, wording)


def _of_country(
    graph: Graph, country: int, attribute: int, where: str, pages: list[Page], wording: Wording, *, known: bool = False
) -> Asked:
    """An attribute of a country told as `where`, to which `pages` lead; `known`: they hold its own."""
    name = ATTRIBUTES[attribute]
    page = graph.country_page(country, name)
    goal = wording.question(question_templates.COUNTRY[name], where, changes=name in question_templates.CHANGES)
    own = [] if known else [page]
    return Asked(goal, accepted(name, graph.facts.countries[name][country]), [*pages, *own])


def _of_neighbour(
    graph: Graph, country: int, attribute: int, where: str, pages: list[Page], wording: Wording, *, known: bool = False
) -> Asked:
    """An attribute of the neighbour behind the longest border of a country told as `where`."""
    page = graph.country_page(country, "borders")
    beyond = wording.one(question_templates.NEIGHBOUR).format(where)
    pages = pages if known else [*pages, page]
    return _of_country(graph, int(graph.neighbour[country]), attribute, beyond, pages, wording)


def _city(graph: Graph, place: int, wording: Wording) -> str:
    return wording.one(question_templates.CITY).format(graph.facts.cities["name"][place])


def in_city(graph: Graph, place: int, wording: Wording) -> str:
    """A country, told by a city of it."""
    return wording.one(question_templates.CITY_COUNTRY).format(_city(graph, place, wording))


def _at_airport(graph: Graph, place: int, wording: Wording) -> str:
    return wording.one(question_templates.AIRPORT_COUNTRY).format(graph.airport(place))


def _to(graph: Graph, place: int, *, city: bool = False) -> list[Page]:
    return [graph.city_page(place) if city else graph.airport_page(place)]
