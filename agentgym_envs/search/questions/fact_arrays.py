"""The facts as arrays: which entities questions may use, how they are named, and which queries find their pages."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.corpus.facts import VERSIONS, WorldFacts, world_facts
from agentgym_envs.search.corpus.pages import airport_id, city_id, country_id, landmark_id
from agentgym_envs.search.questions.queries import HARD, QUERY
from agentgym_envs.search.questions.question_templates import CLUE, COUNTRY, MORE

ATTRIBUTES = tuple(COUNTRY)
"""Attributes of a country that questions ask for."""
TRAIN, VALIDATION, TEST, NONE = 0, 1, 2, -1
SHARE = 0.08
"""The largest share of the questions of a type and split whose answer belongs to one country."""
PER_COUNTRY = 300
"""The most cities, and the most airports, of a country that questions use. Without this limit, half of all questions
would be about five countries."""
CLEAR = 1.15
"""The least ratio of two quantities that are compared."""
LANDING = (
    "airport",
    " field",
    "air base",
    "airfield",
    "airstrip",
    "aerodrome",
    "heliport",
    "aeroport",
    "aeropuerto",
    "airpark",
)
"""Words by which a name is recognized as that of an airport."""
Ints = NDArray[np.int64]


class Graph:
    """The graph that questions follow: cities and airports lie in countries, which have neighbours and attributes.

    Entities are row indices in the tables of `facts`; -1 means none.
    """

    def __init__(self, facts: WorldFacts) -> None:
        self.facts = facts
        countries = facts.countries
        self.split: Ints = np.array(countries["split"])
        self.usable = np.array(countries["asked"], bool)
        rows = [[ATTRIBUTES.index(name) for name in names] for names in countries["ask"]]
        self.attribute_count: Ints = np.array([len(row) for row in rows])
        self.attribute_table: Ints = np.array([row + [-1] * (len(ATTRIBUTES) - len(row)) for row in rows])
        self.neighbour: Ints = np.array([self._ranked(i, 0) for i in range(len(self.usable))])

    @cached_property
    def second(self) -> Ints:
        """The neighbour of each country with the second longest border, as `neighbour` has the one with the longest."""
        return np.array([self._ranked(i, 1) if self.neighbour[i] >= 0 else -1 for i in range(len(self.usable))])

    @cached_property
    def cities(self) -> Locations:
        """Cities with a unique name."""
        columns = self.facts.cities
        return Locations(columns, np.array(columns["use"]) == 1, len(self.usable), "population")

    @cached_property
    def airports(self) -> Locations:
        """Airports with a unique name."""
        columns = self.facts.airports
        return Locations(columns, np.array(columns["use"]) == 1, len(self.usable), "elevation")

    def quantity(self, name: str) -> NDArray[np.float64]:
        """Return a numeric attribute of all countries, NaN where it is unknown or unused."""
        values = zip(self.facts.countries[name], self.facts.countries["ask"], strict=True)
        return np.array([value if name in asks else np.nan for value, asks in values], float)

    @cached_property
    def compared(self) -> NDArray[np.float64]:
        """The quantities by which countries are compared, in the order of `MORE`: (quantities, countries)."""
        return np.stack([self.quantity(name) for name in MORE])

    def following(self, countries: Ints) -> Ints:
        """Return the neighbour with the longest border for each country."""
        return np.where(countries < 0, -1, self.neighbour[countries])

    @cached_property
    def clues(self) -> list[list[int]]:
        """For each country, the kinds of `CLUE` that identify it uniquely."""
        return [[n for n, name in enumerate(CLUE) if self._is_clue(i, name)] for i in range(len(self.usable))]

    def country(self, country: int) -> str:
        """Return the name of a country as used in a sentence."""
        name: str = self.facts.countries["name"][country]
        return f"the {name}" if self.facts.countries["the"][country] else name

    def airport(self, airport: int) -> str:
        """Return the name of an airport, marked as an airport."""
        name: str = self.facts.airports["name"][airport]
        return name if any(word in name.lower() for word in LANDING) else f"the airport {name}"

    def country_page(self, country: int, wanted: str) -> tuple[str, str]:
        """Return the id of a country's page, and a query for an attribute or "borders" that finds it."""
        query = QUERY[wanted][self.facts.countries["iso"][country] in HARD]
        return country_id(self.facts, country), query.format(self.facts.countries["name"][country])

    def city_page(self, city: int, country: int | None = None) -> tuple[str, str]:
        """Return the id of a city's page, and a query that finds it; pass the country if the name is ambiguous."""
        name, where = self.facts.cities["name"][city], "" if country is None else self.facts.countries["name"][country]
        return city_id(self.facts, city), f"{name} {where} population" if where else name

    def airport_page(self, airport: int, wanted: str = "country") -> tuple[str, str]:
        """Return the id of an airport's page, and a query for what is wanted that finds it."""
        return airport_id(self.facts, airport), f"{self.facts.airports['name'][airport]} {wanted}"

    def clue_page(self, country: int, clue: str) -> tuple[str, str]:
        """Return the id of the page that links a clue to its country, and a query that finds it."""
        value = self.facts.countries[clue][country][0]
        if clue == "capital":
            city = self.facts.countries["capital_city"][country]
            return city_id(self.facts, city), f"{self.facts.cities['name'][city]} capital of which country"
        words = {"peak": "highest point", "anthem": "national anthem", "currency": "currency"}
        return landmark_id(self.facts, country, clue), f"{value} {words[clue]}"

    def _ranked(self, country: int, rank: int) -> int:
        """Return the neighbour whose border has a rank by length; -1 if it is unknown, disputed or not clearly so."""
        borders, iso = self.facts.countries["borders"][country], self.facts.countries["iso"][country]
        if not self.usable[country] or len(borders) <= rank or iso == "FR":  # Brazil or Spain: French Guiana
            return -1
        if len(borders) > rank + 1 and borders[rank][1] < 1.05 * borders[rank + 1][1]:
            return -1
        return int(borders[rank][0]) if self.usable[borders[rank][0]] else -1

    def _is_clue(self, country: int, clue: str) -> bool:
        counts = self._name_counts[clue]
        names = self.facts.countries[clue][country]
        valid = clue in self.facts.countries["ask"][country]
        if clue == "capital":
            valid = valid and self.facts.countries["capital_city"][country] >= 0
        return bool(valid) and all(counts[name.lower()] == 1 for name in names)

    @cached_property
    def _name_counts(self) -> dict[str, Counter[str]]:
        columns = self.facts.countries
        return {clue: Counter(n.lower() for names in columns[clue] for n in set(names or ())) for clue in CLUE}


class Locations:
    """Cities or airports that questions may name, in table order."""

    def __init__(self, columns: Any, usable: NDArray[np.bool_], countries: int, quantity: str) -> None:
        """Select the usable rows of a table; `quantity` is the column by which locations are compared."""
        country: Ints = np.array(columns["country"])
        self.country, self.quantity = country, np.array(columns[quantity], float)
        self.usable: Ints = np.flatnonzero(usable)
        self._sorted = self.usable[np.lexsort((hashed(self.usable, 1), country[self.usable]))]
        self.count: Ints = np.bincount(country[self.usable], minlength=countries)
        self._start = np.concatenate(([0], np.cumsum(self.count)[:-1]))

    def limited(self, most: int = PER_COUNTRY) -> Ints:
        """Return at most `most` locations per country."""
        rank = np.arange(len(self._sorted)) - self._start[self.country[self._sorted]]
        return np.sort(self._sorted[rank < most])

    def pick(self, countries: Ints, numbers: NDArray[np.uint64]) -> Ints:
        """Pick a location in each country (which must have one) by a number."""
        nth = (numbers % self.count[countries].astype(np.uint64)).astype(np.int64)
        picked: Ints = self._sorted[self._start[countries] + nth]
        return picked


def hashed(numbers: Ints, salt: int) -> NDArray[np.uint64]:
    """Hash each number by SplitMix64; each salt gives another sequence.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    """
    value = numbers.astype(np.uint64) + np.uint64((salt * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % 2**64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def split_of(answer: Ints, *others: Ints) -> Ints:
    """Return the splits of questions from the splits of their entities: the answer's, and the others of the chain.

    Train: all entities are in train. Validation: the answer's entity is in validation and no other is in test. Test:
    the answer's entity is in test. Any other combination gives no question.
    """
    highest = np.max(np.stack([answer, *others]), axis=0)
    train, validation = highest == TRAIN, (answer == VALIDATION) & (highest < TEST)
    return np.select([answer == TEST, validation, train], [TEST, VALIDATION, TRAIN], NONE)


def evened(split: Ints, country: Ints) -> Ints:
    """Return the splits, with -1 for surplus questions, of countries that too many answers of a split belong to."""
    order = np.argsort(hashed(np.arange(len(split)), 7), kind="stable")
    found = split.copy()
    for one in (TRAIN, VALIDATION, TEST):
        rows = order[split[order] == one]
        rows = rows[np.argsort(country[rows], kind="stable")]
        counts = np.bincount(country[rows]) if len(rows) else np.zeros(1, np.int64)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        found[rows[nth >= _most(counts[counts > 0])]] = NONE
    return found


def _most(counts: Ints) -> int:
    """Return the largest number per country that is at most `SHARE` of the remaining questions.

    With few countries, the share is a little more than an even one.
    """
    share = max(SHARE, 1.3 / max(1, len(counts)))
    options = np.arange(1, counts.max(initial=1) + 1)
    valid = options[[most <= share * np.minimum(counts, most).sum() for most in options]]
    return int(valid.max(initial=1))


@lru_cache(maxsize=len(VERSIONS))
def graph(version: int = VERSIONS[-1]) -> Graph:
    """Return the graph of a version of the embedded corpus, built once per process."""
    return Graph(world_facts(version))
