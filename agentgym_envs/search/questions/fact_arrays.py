"""The facts as arrays, and what may be said of them: which names are told how, which searches find which page."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.search.corpus.facts import World, world
from agentgym_envs.search.corpus.pages import airport_id, city_id, country_id, landmark_id
from agentgym_envs.search.questions.queries import HARD, QUERY
from agentgym_envs.search.questions.question_templates import CLUE, COUNTRY

ATTRIBUTES = tuple(COUNTRY)
"""What is asked of a country."""
TRAIN, VALIDATION, TEST, NONE = 0, 1, 2, -1
SHARE = 0.08
"""So many of the questions of a form and split may end in one country."""
PER_COUNTRY = 300
"""At most so many cities, and airports, of a country lead to it, or half of all questions were about five countries."""
CLEAR = 1.15
"""How many times the smaller of two quantities the larger must be."""
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
"""Words that tell an airport."""
Ints = NDArray[np.int64]


class Graph:
    """What questions walk along: places lie in countries, countries border on countries, and have attributes."""

    def __init__(self, facts: World) -> None:
        """Places in tables are numbers; -1 stands for none."""
        self.facts = facts
        countries = facts.countries
        self.split: Ints = np.array(countries["split"])
        self.asked = np.array(countries["asked"], bool)
        self.asks = [[ATTRIBUTES.index(name) for name in names] for names in countries["ask"]]
        self.ask_count: Ints = np.array([len(asks) for asks in self.asks])
        self.ask_table: Ints = np.array([asks + [-1] * (len(ATTRIBUTES) - len(asks)) for asks in self.asks])
        self.neighbour: Ints = np.array([self._longest(i) for i in range(len(self.asked))])

    @cached_property
    def cities(self) -> Places:
        """Those that are the only ones of their name."""
        columns = self.facts.cities
        return Places(columns, np.array(columns["use"]) == 1, len(self.asked), "population")

    @cached_property
    def airports(self) -> Places:
        """Those whose name is that of no other."""
        columns = self.facts.airports
        return Places(columns, np.array(columns["use"]) == 1, len(self.asked), "elevation")

    def quantity(self, name: str) -> NDArray[np.float64]:
        """A numeric attribute of the countries, NaN where it is unknown or not asked for."""
        values = zip(self.facts.countries[name], self.facts.countries["ask"], strict=True)
        return np.array([value if name in asks else np.nan for value, asks in values], float)

    def following(self, countries: Ints) -> Ints:
        """The neighbours behind the longest borders."""
        return np.where(countries < 0, -1, self.neighbour[countries])

    @cached_property
    def clues(self) -> list[list[int]]:
        """For each country, which kinds of `CLUE` no other country shares."""
        return [[n for n, name in enumerate(CLUE) if self._is_clue(i, name)] for i in range(len(self.asked))]

    def country(self, place: int) -> str:
        """The name as it stands in a sentence."""
        name: str = self.facts.countries["name"][place]
        return f"the {name}" if self.facts.countries["the"][place] else name

    def airport(self, place: int) -> str:
        """The name, which tells that it is an airport."""
        name: str = self.facts.airports["name"][place]
        return name if any(word in name.lower() for word in LANDING) else f"the airport {name}"

    def country_page(self, place: int, wanted: str) -> tuple[str, str]:
        """Its id, and a query for one of its attributes, or its "borders", that finds it."""
        query = QUERY[wanted][self.facts.countries["iso"][place] in HARD]
        return country_id(self.facts, place), query.format(self.facts.countries["name"][place])

    def city_page(self, place: int, where: int | None = None) -> tuple[str, str]:
        """Its id, and a query that finds it; `where` is the country, if the name alone does not do."""
        name, country = self.facts.cities["name"][place], "" if where is None else self.facts.countries["name"][where]
        return city_id(self.facts, place), f"{name} {country} population" if country else name

    def airport_page(self, place: int, wanted: str = "country") -> tuple[str, str]:
        """Its id, and a query for what is wanted of it that finds it."""
        return airport_id(self.facts, place), f"{self.facts.airports['name'][place]} {wanted}"

    def clue_page(self, place: int, clue: str) -> tuple[str, str]:
        """The id of a page that tells which country something belongs to, and a query that finds it."""
        value = self.facts.countries[clue][place][0]
        if clue == "capital":
            city = self.facts.countries["capital_city"][place]
            return city_id(self.facts, city), f"{self.facts.cities['name'][city]} capital of which country"
        words = {"peak": "highest point", "anthem": "national anthem", "currency": "currency"}
        return landmark_id(self.facts, place, clue), f"{value} {words[clue]}"

    def _longest(self, place: int) -> int:
        borders, iso = self.facts.countries["borders"][place], self.facts.countries["iso"][place]
        if not self.asked[place] or not borders or iso == "FR":  # Brazil or Spain: is French Guiana a part of it?
            return -1
        if len(borders) > 1 and borders[0][1] < 1.05 * borders[1][1]:
            return -1
        return int(borders[0][0]) if self.asked[borders[0][0]] else -1

    def _is_clue(self, place: int, clue: str) -> bool:
        words = self._named[clue]
        names = self.facts.countries[clue][place]
        fine = clue in self.facts.countries["ask"][place]
        if clue == "capital":
            fine = fine and self.facts.countries["capital_city"][place] >= 0
        return bool(fine) and all(words[name.lower()] == 1 for name in names)

    @cached_property
    def _named(self) -> dict[str, Counter[str]]:
        columns = self.facts.countries
        return {clue: Counter(n.lower() for names in columns[clue] for n in set(names or ())) for clue in CLUE}


class Places:
    """Cities or airports that questions may name, in the order of their table."""

    def __init__(self, columns: Any, usable: NDArray[np.bool_], countries: int, quantity: str) -> None:
        """`quantity` is the column by which they are compared."""
        country: Ints = np.array(columns["country"])
        self.country, self.quantity = country, np.array(columns[quantity], float)
        self.usable: Ints = np.flatnonzero(usable)
        self._sorted = self.usable[np.lexsort((hashed(self.usable, 1), country[self.usable]))]
        self.count: Ints = np.bincount(country[self.usable], minlength=countries)
        self._start = np.concatenate(([0], np.cumsum(self.count)[:-1]))

    def some(self, most: int = PER_COUNTRY) -> Ints:
        """At most so many of a country."""
        rank = np.arange(len(self._sorted)) - self._start[self.country[self._sorted]]
        return np.sort(self._sorted[rank < most])

    def one_of(self, countries: Ints, numbers: NDArray[np.uint64]) -> Ints:
        """For each country (with a place) the one that a number picks."""
        nth = (numbers % self.count[countries].astype(np.uint64)).astype(np.int64)
        places: Ints = self._sorted[self._start[countries] + nth]
        return places


def hashed(numbers: Ints, salt: int) -> NDArray[np.uint64]:
    """SplitMix64 of each number; the salt gives another sequence.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    """
    value = numbers.astype(np.uint64) + np.uint64((salt * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % 2**64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def split_of(answer: Ints, *others: Ints) -> Ints:
    """The split of questions from those of the entities: that of the answer's, and those of the chain's others.

    Train: all are of train. Validation: the answer's is of validation and no other of test. Test: the answer's is of
    test. What is left is in no split, and no question.
    """
    highest = np.max(np.stack([answer, *others]), axis=0)
    train, validation = highest == TRAIN, (answer == VALIDATION) & (highest < TEST)
    return np.select([answer == TEST, validation, train], [TEST, VALIDATION, TRAIN], NONE)


def evened(split: Ints, country: Ints) -> Ints:
    """The splits, -1 for questions of which their split has too many that end in the same country."""
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
    """How many of each are at most `SHARE` of what is left, or about even shares where these are too few."""
    share = max(SHARE, 1.3 / max(1, len(counts)))
    options = np.arange(1, counts.max(initial=1) + 1)
    fine = options[[most <= share * np.minimum(counts, most).sum() for most in options]]
    return int(fine.max(initial=1))


@lru_cache(maxsize=1)
def graph() -> Graph:
    """The embedded corpus's, made once a process."""
    return Graph(world())
