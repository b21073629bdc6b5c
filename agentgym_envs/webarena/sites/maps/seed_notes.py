"""Notes on the map with their comments, and edits of places."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import later
from agentgym_envs.webarena.sites.country import Town
from agentgym_envs.webarena.sites.maps.geometry import Point
from agentgym_envs.webarena.sites.maps.hours import waking_hour
from agentgym_envs.webarena.sites.maps.plan import RoadPlan
from agentgym_envs.webarena.sites.maps.seed_places import PointOfInterest
from agentgym_envs.webarena.sites.maps.seed_streets import TownStreets

_NOTES, _CHANGES = 140, 420
_ANY = (
    (
        "The opening hours of NAME are wrong, the door says something else for Saturdays.",
        "Which hours does it say? I could not read them on the photo.",
    ),
    (
        "NAME has closed for good; the windows are empty.",
        "I went past yesterday, they are only painting. Please wait a little.",
    ),
    ("The entrance of NAME is round the corner, not on ROAD.", "True, but the post goes to ROAD."),
    (
        "The phone number of NAME belongs to somebody else by now.",
        "The one on their website works, I have just called.",
    ),
    ("There is a ramp at the side door of NAME now.", "It is rather steep, I would say limited and not yes."),
    ("NAME has a new name above the door.", "Only the lettering is new, the name is the same."),
    ("Is NAME still there? A neighbour says it moved last autumn.", "It was open on Monday when I cycled past."),
    ("The website of NAME gives an error.", "It loads here, but slowly."),
)
_SPECIAL = {
    "charging_station": (
        "Only one of the sockets at NAME works.",
        "Reported to the operator, they promise a technician.",
    ),
    "fuel": ("NAME takes cards only after eight in the evening.", "That holds for every station of theirs."),
    "park": ("The gate of NAME on this side is locked at dusk.", "The path stays open, only the playground is closed."),
    "station": ("The lift to platform 2 of NAME is out of order.", "It has been repaired twice this year already."),
    "parking": ("NAME is closed while the ground floor is painted.", "The upper level can be reached from the back."),
    "restaurant": ("NAME has tables outside from April on.", "Last year they were on the other side of the street."),
    "cafe": ("NAME has no wireless any more.", "They gave me a password when I asked."),
    "museum": ("The entry to NAME is free on the first Sunday of a month.", "Only for people of the town, I fear."),
    "bicycle_rental": ("No bicycles at NAME all week.", "There were four of them this morning."),
}
_ROADS = (
    ("ROAD is dug up near number HOUSE; cyclists have to dismount.", "Still so today, the fence reaches the pavement."),
    ("A new zebra crossing on ROAD in front of number HOUSE.", "With lights or without?"),
    ("The street lights on ROAD are out from number HOUSE on.", "The town knows, it is on their list."),
    ("There is a bench missing on ROAD, next to number HOUSE.", "I can add it when I am there at the weekend."),
    ("The surface of ROAD is cobbled here, not asphalt.", "Only the first fifty metres."),
    ("A drinking fountain stands at number HOUSE of ROAD.", "It is turned off in winter."),
    ("Is the speed limit on ROAD really SPEED? I saw another sign.", "The sign belongs to the roadworks."),
    ("A tree has fallen across the pavement of ROAD.", "It was cleared away, but the kerb is broken."),
)
_DONE = (
    "Surveyed and corrected, thank you.",
    "Done.",
    "Fixed it, thanks for the hint.",
    "Checked on site, all is well now.",
)
_EDITS = (
    "Opening hours from the sign at the door",
    "Added the website",
    "Phone number checked",
    "Moved it to the right house",
    "Name as it stands on the sign",
    "Wheelchair access surveyed",
    "Wireless asked for at the counter",
    "Survey on foot",
    "Spelling",
    "Hours of the winter season",
    "Operator corrected",
    "Added the phone number",
)


@dataclass(slots=True)
class NoteRows:
    """Rows of notes and comments."""

    notes: list[tuple[object, ...]] = field(default_factory=list)
    comments: list[tuple[object, ...]] = field(default_factory=list)


class NoteGenerator:
    """Generates notes and edits. Accounts count from 1; lower ids are more active."""

    def __init__(self, plan: RoadPlan, rng: random.Random, streets: Sequence[TownStreets], accounts: int) -> None:
        self._plan, self._rng, self._streets = plan, rng, streets
        self._accounts = range(1, accounts + 1)
        self._weights = [5.0] + [30 / (rank + 3) for rank in range(1, accounts)]

    def random_account(self, exclude: int | None = None) -> int:
        """Draw an account other than `exclude`."""
        while True:
            account = self._rng.choices(self._accounts, self._weights)[0]
            if account != exclude:
                return account

    def notes(self, places: Sequence[PointOfInterest]) -> NoteRows:
        """Return all notes, oldest first."""
        rows = NoteRows()
        opened = sorted(waking_hour(self._rng, most_days=400) for _ in range(_NOTES))
        for index, moment in enumerate(opened):
            mine = index % 9 == 4
            self._note(rows, places, moment, 1 if mine else None)
        return rows

    def changes(self, places: Sequence[PointOfInterest]) -> list[tuple[int, int, str, str]]:
        """Return edits by time as (place, account, comment, time). A few places are edited often, most never."""
        numbers = self._rng.sample(range(1, len(places) + 1), _CHANGES // 2)
        edited = self._rng.choices(numbers, [1 / (rank + 2) for rank in range(len(numbers))], k=_CHANGES // 2)
        moments = sorted(waking_hour(self._rng, most_days=500) for _ in range(len(numbers) + len(edited)))
        targets = numbers + edited
        self._rng.shuffle(targets)
        return [
            (place, self.random_account(), self._rng.choice(_EDITS), moment)
            for place, moment in zip(targets, moments, strict=True)
        ]

    def _note(self, rows: NoteRows, places: Sequence[PointOfInterest], moment: str, author: int | None) -> None:
        if author is None and self._rng.random() < 0.72:
            author = self.random_account(1)
        (text, reply), town, place, point = self._subject(places)
        number = len(rows.notes) + 1
        thread = [(author, "opened", text, moment)]
        for answer in self._answers(reply):
            earlier = thread[-1]
            thread.append(
                (self.random_account(earlier[0]), "commented", answer, later(earlier[3], self._rng, most_days=20))
            )
        closed = None
        if self._rng.random() < 0.55:
            closed = later(thread[-1][3], self._rng, most_days=60)
            thread.append((self.random_account(), "resolved", self._rng.choice(_DONE), closed))
        status = "resolved" if closed else "open"
        rows.notes.append((number, town.number, place, *point, status, moment, closed))
        for line in thread:
            rows.comments.append((len(rows.comments) + 1, number, *line))

    def _answers(self, reply: str) -> list[str]:
        """Return no comment, the reply, or the reply and another comment."""
        count = self._rng.choices((0, 1, 2), (4, 4, 2))[0]
        more = self._rng.choice(
            ("I shall look at it next week.", "Thanks for looking!", "Could somebody take a photo?")
        )
        return [reply, more][:count]

    def _subject(self, places: Sequence[PointOfInterest]) -> tuple[tuple[str, str], Town, int | None, Point]:
        if self._rng.random() < 0.6:
            number = self._rng.randint(1, len(places))
            place = places[number - 1]
            texts = _SPECIAL.get(place.category) if self._rng.random() < 0.7 else None
            words = {"NAME": place.name, "ROAD": self._plan.roads[place.road].name}
            return self._filled(texts or self._rng.choice(_ANY), words), place.town, number, place.spot.point
        streets = self._rng.choice(self._streets)
        name, road = self._rng.choice([one for one in streets.roads.items() if self._plan.roads[one[1]].speed])
        house = self._rng.randint(1, 180)
        words = {"ROAD": name, "HOUSE": str(house), "SPEED": str(self._plan.roads[road].speed)}
        return self._filled(self._rng.choice(_ROADS), words), streets.town, None, self._plan.house(road, house).point

    def _filled(self, texts: tuple[str, str], words: dict[str, str]) -> tuple[str, str]:
        first, second = texts
        for slot, word in words.items():
            first, second = first.replace(slot, word), second.replace(slot, word)
        return first, second
