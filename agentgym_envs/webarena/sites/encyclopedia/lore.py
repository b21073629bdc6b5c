"""Invented facts about the country of a world: its historical people, its landmarks and the makers of its goods.

They follow from the world's first state and from nothing else. No site stores them.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.encyclopedia import wordlists
from agentgym_envs.webarena.sites.world import World

LANDMARKS = ("museum", "castle", "university", "gallery", "theatre")
"""Categories of places with an article."""
_OTHER_PEOPLE = 54
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class HistoricDay(NamedTuple):
    """A day in the past."""

    year: int
    month: int
    day: int

    def __str__(self) -> str:
        """Return the day as articles write it: "5 May 1871"."""
        return f"{self.day} {_MONTHS[self.month - 1]} {self.year}"


class HistoricPerson(NamedTuple):
    """A person of the past. Towns are names. `abroad` is a country of the real world."""

    name: str
    woman: bool
    trade: str
    birthplace: str
    raised: str
    deathplace: str
    born: HistoricDay
    died: HistoricDay
    parents: str
    child: str
    abroad: str
    works: tuple[tuple[str, int], ...]

    @property
    def years(self) -> str:
        """The years of birth and death: "1871–1944"."""
        return f"{self.born.year}–{self.died.year}"


class Landmark(NamedTuple):
    """A place of the map with an article. `architect` designed or restored it."""

    place: int
    name: str
    category: str
    town: str
    architect: HistoricPerson
    year: int


class Maker(NamedTuple):
    """The company of a brand of the shop."""

    brand: str
    founder: HistoricPerson
    town: str
    year: int
    goods: tuple[str, ...]
    """Categories of the shop."""


class Lore(NamedTuple):
    """The invented facts of a world. `first_named` is the year in which a document first names a town."""

    people: tuple[HistoricPerson, ...]
    landmarks: tuple[Landmark, ...]
    makers: tuple[Maker, ...]
    first_named: dict[str, int]


@lru_cache(maxsize=16)
def lore(world: World) -> Lore:
    """Return the invented facts of a world."""
    rng = random.Random(f"encyclopedia/{world.seed}")
    towns = [row["name"] for row in world.rows("SELECT name FROM map_towns ORDER BY id")]
    names = _Names(rng)
    architects: list[HistoricPerson] = []
    landmarks = []
    for row in _landmark_rows(world):
        if row["category"] == "museum" or not architects:  # an architect designed at most one museum
            architects.append(_person(rng, names, towns, "architect"))
        architect = architects[-1] if row["category"] == "museum" else rng.choice(architects)
        year = rng.randint(architect.born.year + 28, architect.died.year - 3)
        landmarks.append(Landmark(row["id"], row["name"], row["category"], row["town_name"], architect, year))
    makers = [_maker(world, rng, names, towns, row["brand"]) for row in _brand_rows(world)]
    trades = tuple(wordlists.TRADES)
    others = [_person(rng, names, towns, trades[n % len(trades)]) for n in range(_OTHER_PEOPLE)]
    people = (*architects, *(one.founder for one in makers), *others)
    first_named = {town: rng.randint(890, 1420) for town in towns}
    return Lore(people, tuple(landmarks), tuple(makers), first_named)


def _landmark_rows(world: World) -> list[dict[str, Any]]:
    """Return the landmarks with unique names; museums come first."""
    marks = ", ".join("?" * len(LANDMARKS))
    query = (
        "SELECT p.id, p.name, p.category, t.name AS town_name FROM map_places p JOIN map_towns t ON t.id = p.town "
        "WHERE p.name IN (SELECT name FROM map_places GROUP BY name HAVING COUNT(*) = 1) AND p.name NOT IN "
        f"(SELECT name FROM map_roads) AND p.category IN ({marks}) ORDER BY p.category <> 'museum', p.id"
    )
    return [dict(row) for row in world.rows(query, *LANDMARKS)]


def _brand_rows(world: World) -> list[dict[str, str]]:
    return [dict(row) for row in world.rows("SELECT DISTINCT brand FROM shop_products ORDER BY brand")]


class _Names:
    """Draws unique names."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def draw(self, woman: bool) -> str:
        while True:
            first = self._rng.choice(wordlists.WOMEN if woman else wordlists.MEN)
            name = f"{first} {self._rng.choice(wordlists.LAST_NAMES)}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def _person(rng: random.Random, names: _Names, towns: list[str], trade: str) -> HistoricPerson:
    woman = rng.random() < 0.5
    birthplace, raised, deathplace = rng.sample(towns, 3)
    born = _day(rng, rng.randint(1790, 1890))
    died = _day(rng, born.year + rng.randint(46, 88))
    father, mother = rng.sample(wordlists.PARENTS, 2)
    child, abroad = rng.choice(wordlists.ORDINALS), rng.choice(wordlists.FOREIGN)
    works = _works(rng, trade, born.year + 24, died.year)
    name = names.draw(woman)
    return HistoricPerson(
        name, woman, trade, birthplace, raised, deathplace, born, died, f"{father} and {mother}", child, abroad, works
    )


def _day(rng: random.Random, year: int) -> HistoricDay:
    return HistoricDay(year, rng.randint(1, 12), rng.randint(1, 28))


def _works(rng: random.Random, trade: str, begin: int, end: int) -> tuple[tuple[str, int], ...]:
    patterns = wordlists.TRADES.get(trade, ("", ""))[0].split("|")
    if patterns == [""]:
        return ()
    titles = dict.fromkeys(
        rng.choice(patterns)
        .replace("ADJ", rng.choice(wordlists.ADJECTIVES))
        .replace("NOUN", rng.choice(wordlists.NOUNS))
        for _ in range(4)
    )
    years = sorted(rng.sample(range(begin, end), len(titles)))
    return tuple(zip(titles, years, strict=True))


def _maker(world: World, rng: random.Random, names: _Names, towns: list[str], brand: str) -> Maker:
    query = (
        "SELECT c.name FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE p.brand = ? "
        "GROUP BY c.name ORDER BY COUNT(*) DESC, c.name LIMIT 4"
    )
    goods = tuple(row["name"] for row in world.rows(query, brand))
    founder = _person(rng, names, towns, "manufacturer")
    return Maker(brand, founder, rng.choice(towns), founder.born.year + rng.randint(22, 40), goods)
