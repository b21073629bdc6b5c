"""Contributors to the map: their accounts, lists of places, and traces."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import later, some_time_ago
from agentgym_envs.webarena.sites.maps.geometry import distance
from agentgym_envs.webarena.sites.maps.hours import waking_hour
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.seed_places import PointOfInterest
from agentgym_envs.webarena.sites.people import Person

ACCOUNTS = 60
_TRACES, _OWN_TRACES, _PUBLIC_LISTS = 52, 8, 14
_ABOUT = (
    "Maps whatever lies on the way to work.",
    "Walks, counts benches, and writes them down.",
    "Here for the bicycle routes.",
    "I check opening hours so that you need not.",
    "Retired surveyor.",
    "Hills first, everything else later.",
    "Adds what the bakery round the corner forgot.",
    "Reads old maps, draws new ones.",
    "",
    "Mostly wheelchair access and kerbs.",
    "Charging stations, cables and queues.",
    "Maps from the train window.",
    "",
)
_OWN_LISTS = (
    ("Favourites", "Where I keep going back to.", "private"),
    ("Want to go", "For some free day.", "private"),
    ("Lunch near work", "Quick, and not always the same.", "private"),
    ("Weekend trip", "Ideas for two days away.", "public"),
)
_LIKED = ("restaurant", "cafe", "pub", "bakery", "park", "museum", "library", "bookshop", "cinema", "florist")
_LIST_NAMES = (
    "The best PLURAL of TOWN",
    "PLURAL I like",
    "TOWN: PLURAL",
    "My favourite PLURAL",
    "PLURAL worth a detour",
)
_SAVED = (
    "Friendly people.",
    "Book ahead.",
    "",
    "",
    "Closed when I was there.",
    "My neighbour told me of it.",
    "Nice in the morning.",
    "",
    "Sit at the back.",
    "Ask for a quiet corner.",
    "",
    "Parking is hard.",
    "Go before noon.",
)
_TRIPS = {
    "foot": ("Evening walk", "Sunday walk", "Walk with the dog", "Lunch break on foot", "Night walk"),
    "bicycle": ("Morning ride", "Ride home", "Long way round", "Test of the new tyres", "Ride before the rain"),
    "car": ("Drive to the sea and back", "Delivery round", "Removal, second trip", "Sunday drive", "On holiday"),
}
_REACH = {"foot": 5.0, "bicycle": 60.0, "car": 400.0}
_TAGS = ("commute", "survey", "leisure", "training", "hills", "rain", "detour", "family", "night", "winter")


@dataclass(slots=True)
class ContributionRows:
    """Rows of the tables of lists and traces."""

    lists: list[tuple[object, ...]] = field(default_factory=list)
    saved: list[tuple[object, ...]] = field(default_factory=list)
    traces: list[tuple[object, ...]] = field(default_factory=list)
    tags: list[tuple[int, str]] = field(default_factory=list)


def make_accounts(rng: random.Random, people: Sequence[Person]) -> tuple[list[Person], list[tuple[object, ...]]]:
    """Return the people with accounts, starting with the agent's person, and the rows of their accounts."""
    members = [people[0], *rng.sample(people[1:], ACCOUNTS - 1)]
    rows: list[tuple[object, ...]] = []
    for number, person in enumerate(members, 1):
        joined = some_time_ago(rng, least_days=500, most_days=2600)
        mode = rng.choices(("car", "bicycle", "foot"), (5, 3, 2))[0] if number > 1 else "car"
        about = rng.choice(_ABOUT) if number > 1 else "Maps at weekends, mostly on foot."
        public = int(rng.random() < 0.7)
        town = person.town.number
        rows.append((number, person.user, person.name, person.email, town, about, joined, "km", mode, public))
    return members, rows


class ContributionGenerator:
    """Generates the lists and traces of accounts."""

    def __init__(self, rng: random.Random, members: Sequence[Person], places: Sequence[PointOfInterest]) -> None:
        self._rng, self._members, self._places = rng, members, places
        self._rows = ContributionRows()

    def generate(self) -> ContributionRows:
        """Return all rows."""
        self._own_lists()
        for _ in range(_PUBLIC_LISTS):
            self._public_list(self._rng.randint(2, len(self._members)))
        for number in range(_TRACES):
            self._trace(1 if number < _OWN_TRACES else self._rng.randint(2, len(self._members)))
        return self._rows

    def _own_lists(self) -> None:
        home = self._members[0].town
        near = self._numbers(lambda place: place.town is home and place.category in _LIKED)
        food = self._numbers(lambda place: place.town is home and place.category in ("restaurant", "cafe", "fast_food"))
        sights = self._numbers(lambda place: place.category in ("museum", "castle", "peak", "viewpoint", "campsite"))
        other = self._rng.choice(sorted({place.town.number for place in self._places if place.town is not home})[:8])
        trip = self._numbers(
            lambda place: place.town.number == other and place.category in ("hotel", "museum", "cafe", "park")
        )
        for (name, about, visibility), choice, most in zip(
            _OWN_LISTS, (near, sights, food, trip), (7, 6, 4, 5), strict=True
        ):
            self._list(1, name, about, visibility, choice, most)

    def _public_list(self, account: int) -> None:
        town = self._rng.choice([member.town for member in self._members])
        category = self._rng.choice(("restaurant", "cafe", "bakery", "pub", "museum", "park", "bookshop", "hotel"))
        choice = self._numbers(lambda place: place.category == category and place.town is town)
        pattern = self._rng.choice(_LIST_NAMES)
        if len(choice) < 3:
            pattern, choice = "PLURAL worth a detour", self._numbers(lambda place: place.category == category)
        name = pattern.replace("PLURAL", CATEGORIES[category].plural.lower()).replace("TOWN", town.name)
        self._list(account, name[0].upper() + name[1:], "", "public", choice, 6)

    def _numbers(self, wanted: Callable[[PointOfInterest], bool]) -> list[int]:
        return [number for number, place in enumerate(self._places, 1) if wanted(place)]

    def _list(self, account: int, name: str, about: str, visibility: str, choice: list[int], most: int) -> None:
        number = len(self._rows.lists) + 1
        created = some_time_ago(self._rng, least_days=60, most_days=480)
        self._rows.lists.append((number, account, name, about, visibility, created))
        for place in self._rng.sample(choice, min(len(choice), self._rng.randint(max(most - 2, 1), most))):
            moment = later(created, self._rng, most_days=300)
            row = (len(self._rows.saved) + 1, number, place, self._rng.choice(_SAVED), moment)
            self._rows.saved.append(row)

    def _trace(self, account: int) -> None:
        """Add a trace from a place in the account's town to a place within reach."""
        number = len(self._rows.traces) + 1
        mode = self._rng.choices(tuple(_TRIPS), (4, 4, 2))[0]
        home = self._members[account - 1].town
        start = self._rng.choice(self._numbers(lambda place: place.town is home and place.house is not None))
        here = self._places[start - 1].spot.point
        end = self._rng.choice(self._numbers(lambda place: 0.3 < distance(here, place.spot.point) < _REACH[mode]))
        length = round(1000 * distance(here, self._places[end - 1].spot.point) * self._rng.uniform(1.15, 1.5))
        moment = waking_hour(self._rng, most_days=420)
        visibility = "private" if self._rng.random() < 0.25 else "public"
        name = f"{self._rng.choice(_TRIPS[mode])}, {moment[:10]}"
        about = f"From {self._places[start - 1].name} to {self._places[end - 1].name}."
        self._rows.traces.append((number, account, name, about, mode, start, end, length, visibility, moment))
        self._rows.tags += [(number, tag) for tag in self._rng.sample(_TAGS, self._rng.randint(0, 3))]
