"""Types of embedded questions of four to six hops, and of chains of comparisons.

A route starts at a city or an airport, enters its country, and crosses borders. Each step follows from the page of the
country before it, and no country occurs twice. Rows whose answer is also that of a shortcut are left out: of the same
route with a step left out, or with the wrong country at a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.search.corpus.values import accepted
from agentgym_envs.search.questions import deep_templates
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
from agentgym_envs.search.questions.question_types import (
    COMPARED,
    Question,
    QuestionRows,
    QuestionType,
    Wording,
    country_of_airport,
    country_of_city,
)
from agentgym_envs.search.scoring import normalise

LONGEST, SECOND, LARGER = 0, 1, 2
"""Steps to a neighbour. From `LARGER` on: of the two behind the longest borders, the one with more of a quantity."""
_PER_ROUTE = 3
"""The most starts for each route and attribute."""


class Route(NamedTuple):
    """The countries of a route, its steps, and the countries that were compared with one of the route and lost."""

    countries: tuple[int, ...]
    steps: tuple[int, ...]
    lost: tuple[int, ...] = ()


def routes(graph: Graph, shape: str) -> Iterator[Route]:
    """Yield the routes of a shape: "b" for a step over a border, and "c" for a step with a comparison."""
    for start in np.flatnonzero(graph.neighbour >= 0).tolist():
        yield from _extend(graph, Route((start,), ()), shape)


def _extend(graph: Graph, route: Route, shape: str) -> Iterator[Route]:
    if not shape:
        yield route
        return
    here, seen = route.countries[-1], {*route.countries, *route.lost}
    for step in (LONGEST, SECOND) if shape[0] == "b" else range(LARGER, LARGER + len(COMPARED)):
        if (there := follow(graph, here, step)) < 0 or there in seen:
            continue
        lost = tuple({graph.neighbour[here], graph.second[here]} - {there}) if step >= LARGER else ()
        if not seen & set(lost):
            longer = Route((*route.countries, there), (*route.steps, step), (*route.lost, *map(int, lost)))
            yield from _extend(graph, longer, shape[1:])


def follow(graph: Graph, country: int, step: int) -> int:
    """Return the country that a step leads to; -1 if it is unknown or not clear."""
    if country < 0 or step <= SECOND:
        return -1 if country < 0 else int((graph.neighbour, graph.second)[step][country])
    one, other = int(graph.neighbour[country]), int(graph.second[country])
    if one < 0 or other < 0:
        return -1
    a, b = graph.compared[step - LARGER, [one, other]].tolist()
    if not max(a, b) >= CLEAR * min(a, b):  # also if one is unknown
        return -1
    return one if a > b else other


def shortcuts(graph: Graph, route: Route) -> set[int]:
    """Return the countries where the route ends if a step is left out, or if a comparison is answered wrongly."""
    start, steps = route.countries[0], route.steps
    ends = {_walk(graph, start, steps[:n] + steps[n + 1 :]) for n in range(len(steps))} | {*route.countries[:-1]}
    for n, step in enumerate(steps):
        if step >= LARGER:
            here = route.countries[n]
            wrong = {int(graph.neighbour[here]), int(graph.second[here])} - {route.countries[n + 1]}
            ends |= {_walk(graph, country, steps[n + 1 :]) for country in wrong} | wrong
    return ends - {-1}


def _walk(graph: Graph, country: int, steps: Sequence[int]) -> int:
    for step in steps:
        country = follow(graph, country, step)
    return country


@lru_cache(maxsize=20_000)
def answers_of(graph: Graph, country: int, attribute: int) -> frozenset[str]:
    """Return the normalised answers to an attribute of a country; none if it is unknown."""
    value = graph.facts.countries[ATTRIBUTES[attribute]][country]
    return frozenset(map(normalise, accepted(ATTRIBUTES[attribute], value))) if value else frozenset()


def from_starts(shape: str, select: Callable[[Graph], Locations], salt: int) -> Callable[[Graph], QuestionRows]:
    """Return a function that lists the routes of a shape, each with some starts and the attributes of its end.

    The columns are the start and the steps.
    """

    def rows(graph: Graph) -> QuestionRows:
        locations, found = select(graph), list[list[int]]()
        for number, route in enumerate(routes(graph, shape)):
            country, end, short = route.countries[0], route.countries[-1], shortcuts(graph, route)
            split = split_of(*(np.array([graph.split[c]]) for c in (end, *route.countries[:-1], *route.lost)))
            if split[0] < 0 or not locations.count[country]:
                continue
            for attribute in graph.attribute_table[end][: graph.attribute_count[end]].tolist():
                if not _is_needed(graph, short, end, attribute):
                    continue
                numbers = hashed(np.arange(_PER_ROUTE) + 100 * attribute + 10_000 * number, salt)
                picked = set(locations.pick(np.full(_PER_ROUTE, country), numbers).tolist())
                found += [[start, *route.steps, attribute, int(split[0]), end] for start in sorted(picked)]
        return _rows(graph, found, lambda row: [_name(graph, locations, row[0])])

    return rows


def ask_route(select: Callable[[Graph], Locations]) -> Callable[[Graph, Sequence[int], int, Wording], Question]:
    """Return a function that asks for an attribute of the country where a route ends."""

    def ask(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
        start, *steps = subjects
        if (locations := select(graph)) is graph.cities:
            page, where = graph.city_page(start), country_of_city(graph, start, wording)
        else:
            page, where = graph.airport_page(start), country_of_airport(graph, start, wording)
        pages, here = [page], int(locations.country[start])
        for step in steps:
            pages.append(graph.country_page(here, "borders"))
            if step >= LARGER:
                both = (int(graph.neighbour[here]), int(graph.second[here]))
                pages += [graph.country_page(country, COMPARED[step - LARGER]) for country in both]
            here = follow(graph, here, step)
        name = ATTRIBUTES[attribute]
        distinct = dict[str, str]()
        for id, query in (*pages, graph.country_page(here, name)):
            distinct.setdefault(id, query)
        goal = _word_route(name, where, steps, wording)
        return Question(goal, accepted(name, graph.facts.countries[name][here]), list(distinct.items()))

    return ask


def _word_route(name: str, where: str, steps: Sequence[int], wording: Wording) -> str:
    """Word a question as one nested phrase, or as a journey of several sentences."""
    changes = name in templates.CHANGES
    more = [wording.one(templates.MORE[COMPARED[s - LARGER]]) if s >= LARGER else "" for s in steps]
    if wording.one(("nested", "journey", "journey")) == "nested":
        for step, words in zip(steps, more, strict=True):
            forms = (templates.NEIGHBOUR, deep_templates.SECOND_NEIGHBOUR, deep_templates.LARGER_NEIGHBOUR)[
                min(step, LARGER)
            ]
            where = wording.one(forms).format(where, more=words)
        return wording.question(templates.COUNTRY[name], where, changes=changes)
    first, *others = (
        wording.one(deep_templates.JOURNEY[min(step, LARGER)]).format(more=words)
        for step, words in zip(steps, more, strict=True)
    )
    then = "".join(f" {wording.one(deep_templates.JOURNEY_ON).format(step)}" for step in others)
    begin = wording.one(deep_templates.JOURNEY_BEGIN).format(where=where, step=first)
    end = wording.one(deep_templates.JOURNEY_END)
    return f"{begin}{then} {wording.question(templates.COUNTRY[name], end, changes=changes)}"


# --- chains of comparisons


def chains(width: int, count: int, salt: int) -> Callable[[Graph], QuestionRows]:
    """Return a function that lists `width` cities, whose countries are compared one after the other.

    Each comparison is by a quantity of its own. The question is about the neighbour of the country that is left. The
    columns are the cities and the quantities.
    """

    def rows(graph: Graph) -> QuestionRows:
        countries, by = _draw(graph, width, count, salt)
        ends = _ends_of_chains(graph, countries, by)
        distinct = np.all(np.diff(np.sort(countries, axis=1), axis=1) > 0, axis=1)
        split = np.where(distinct & (ends >= 0), split_of(graph.split[ends], *graph.split[countries].T), -1)
        split[np.any(countries == ends[:, None], axis=1)] = -1
        beyond = graph.neighbour[countries]
        split[np.sum(beyond == ends[:, None], axis=1) != 1] = -1  # else another country leads to the same end
        numbers = hashed(np.arange(count), salt + 77) % np.maximum(1, graph.attribute_count[ends]).astype(np.uint64)
        attribute = graph.attribute_table[ends, numbers.astype(int)]
        cities = np.zeros_like(countries)
        for n in range(width):
            cities[:, n] = graph.cities.pick(countries[:, n], hashed(np.arange(count), salt + 10 + n))
        found = [
            [*cities[n].tolist(), *by[n].tolist(), int(attribute[n]), int(split[n]), int(ends[n])]
            for n in np.flatnonzero(split >= 0).tolist()
            if _is_needed(
                graph, {*countries[n].tolist(), *beyond[n].tolist()} - {int(ends[n])}, int(ends[n]), int(attribute[n])
            )
        ]
        return _rows(graph, found, lambda row: [graph.facts.cities["name"][city] for city in row[:width]])

    return rows


def _draw(graph: Graph, width: int, count: int, salt: int) -> tuple[Ints, Ints]:
    """Draw countries (count, width), and the quantities by which they are compared (count, width - 1)."""
    places, numbers = np.flatnonzero(graph.cities.count), np.arange(count)
    drawn = [places[(hashed(numbers, salt + n) % np.uint64(len(places))).astype(int)] for n in range(width)]
    first = (hashed(numbers, salt + 20) % np.uint64(len(COMPARED))).astype(np.int64)
    return np.stack(drawn, 1), np.stack([(first + 2 * n) % len(COMPARED) for n in range(width - 1)], 1)


def _ends_of_chains(graph: Graph, countries: Ints, by: Ints) -> Ints:
    """Return the neighbours of the countries that win all comparisons; -1 where one is not clear."""
    winner, clear = countries[:, 0], np.ones(len(countries), bool)
    for n in range(by.shape[1]):
        other = countries[:, n + 1]
        a, b = graph.compared[by[:, n], winner], graph.compared[by[:, n], other]
        clear &= np.maximum(a, b) >= CLEAR * np.minimum(a, b)  # false where one is unknown
        winner = np.where(a > b, winner, other)
    return np.where(clear, graph.neighbour[winner], -1)


def _is_needed(graph: Graph, others: set[int], end: int, attribute: int) -> bool:
    """Return true if no other country has the answer."""
    answers = answers_of(graph, end, attribute)
    return not any(answers & answers_of(graph, other, attribute) for other in others - {-1})


def ask_chain(width: int) -> Callable[[Graph, Sequence[int], int, Wording], Question]:
    """Return a function that asks a question that needs the pages of the cities, their countries and a neighbour."""

    def ask(graph: Graph, subjects: Sequence[int], attribute: int, wording: Wording) -> Question:
        cities, by = subjects[:width], [COMPARED[n] for n in subjects[width:]]
        countries = [int(graph.cities.country[city]) for city in cities]
        name = ATTRIBUTES[attribute]
        end = int(_ends_of_chains(graph, np.array([countries]), np.array([subjects[width:]]))[0])
        where = [country_of_city(graph, city, wording) for city in cities]
        text = wording.one(deep_templates.CHAIN_BEGIN).format(a=where[0], b=where[1], more=_more(by[0], wording))
        for other, quantity in zip(where[2:], by[1:], strict=True):
            text += f" {wording.one(deep_templates.CHAIN_ON).format(other, more=_more(quantity, wording))}"
        beyond = wording.one(templates.NEIGHBOUR).format(wording.one(deep_templates.CHAIN_END))
        goal = wording.question(templates.COUNTRY[name], beyond, changes=name in templates.CHANGES)
        pages = [graph.city_page(city) for city in cities]
        pages += [graph.country_page(country, by[max(0, n - 1)]) for n, country in enumerate(countries)]
        answers = accepted(name, graph.facts.countries[name][end])
        return Question(f"{text} {goal}", answers, [*pages, graph.country_page(end, name)])

    return ask


def _more(quantity: str, wording: Wording) -> str:
    return wording.one(templates.MORE[quantity])


# --- helpers


def _rows(graph: Graph, found: list[list[int]], names: Callable[[list[int]], list[str]]) -> QuestionRows:
    """Return rows of subjects, attribute, split and end as columns, without those whose question has the answer."""
    kept = [row for row in found if row[-2] >= 0 and not _tells(graph, row, names(row))]
    table = np.array(kept)
    split: Any = evened(table[:, -2], table[:, -1])
    table, split = table[split >= 0], split[split >= 0]
    subjects: Ints = table[:, :-3]
    return QuestionRows(subjects, table[:, -3], split)


def _tells(graph: Graph, row: Sequence[int], names: Sequence[str]) -> bool:
    words = f" {normalise(' '.join(names))} "
    return any(f" {answer} " in words for answer in answers_of(graph, row[-1], row[-3]))


def _name(graph: Graph, locations: Locations, index: int) -> str:
    return str(graph.facts.cities["name"][index]) if locations is graph.cities else graph.airport(index)


def _cities(graph: Graph) -> Locations:
    return graph.cities


def _airports(graph: Graph) -> Locations:
    return graph.airports


def _routes(*shapes: str) -> tuple[QuestionType, ...]:
    """The types of some shapes, each from cities and from airports."""
    return tuple(
        QuestionType(from_starts(shape, select, 1_000 + 10 * n + m), ask_route(select))
        for n, shape in enumerate(shapes)
        for m, select in enumerate((_cities, _airports))
    )


DEEP_KINDS: dict[str, tuple[QuestionType, ...]] = {
    "4hop": _routes("bb"),
    "5hop": _routes("bbb", "cb"),
    "6hop": _routes("bbbb", "cbb", "bcb"),
    "chain": (
        QuestionType(chains(2, 30_000, 2_000), ask_chain(2)),
        QuestionType(chains(3, 60_000, 3_000), ask_chain(3)),
    ),
}
"""Kinds of questions (the task groups) of several hops, each with its types."""
